/* file.c — whole files in, whole files out: atomically, with clear errors. */
#define _DEFAULT_SOURCE /* flock */
#include "base/file.h"

#include "base/open.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static rc_where in_file(const char *path)
{
    return (rc_where){.file = path};
}

/* `why` is the errno of the call that failed: what is called after it may set another. */
static rc_code io_failed(const char *what, const char *path, int why, rc_error *err)
{
    return RC_FAIL(err, RC_E_IO, in_file(path), "cannot %s: %s", what, strerror(why));
}

/* Reads to the end of `from`, growing as it goes: a pipe does not tell its length. */
static rc_code read_stream(FILE *from, const char *path, int64_t max_bytes, rc_arena *mem,
                           const char **bytes, size_t *n_bytes, rc_error *err)
{
    size_t room = 1 << 16, n = 0;
    char *buffer;
    RC_TRY(RC_NEW(mem, &buffer, room, err));
    for (;;) {
        size_t got = fread(buffer + n, 1, room - n - 1, from);
        n += got;
        if ((int64_t)n > max_bytes)
            return RC_FAIL(err, RC_E_RANGE, in_file(path),
                           "is larger than %" PRId64 " bytes, the most that is read here",
                           max_bytes);
        if (got == 0)
            break;
        if (n + 1 < room)
            continue;
        char *larger;
        RC_TRY(RC_NEW(mem, &larger, room * 2, err));
        memcpy(larger, buffer, n);
        buffer = larger;
        room *= 2;
    }
    if (ferror(from))
        return io_failed("read", path, errno, err);
    buffer[n] = '\0';
    *bytes = buffer;
    *n_bytes = n;
    return RC_OK;
}

rc_code rc_file_read(const char *path, int64_t max_bytes, rc_arena *mem, const char **bytes,
                     size_t *n_bytes, rc_error *err)
{
    if (strcmp(path, "-") == 0)
        return read_stream(stdin, "standard input", max_bytes, mem, bytes, n_bytes, err);
    FILE *from;
    RC_TRY(rc_stream_open(path, "rb", &from, err));
    rc_code code = read_stream(from, path, max_bytes, mem, bytes, n_bytes, err);
    fclose(from);
    return code;
}

rc_code rc_in_file_open(const char *path, rc_in_file *file, rc_error *err)
{
    *file = (rc_in_file){.path = path, .fd = -1};
    return rc_open_reading(path, RC_OPEN_FILE, &file->fd, &file->n_bytes, err);
}

rc_code rc_in_file_read(const rc_in_file *file, int64_t at, int64_t n, void *out, rc_error *err)
{
    char *to = out;
    for (int64_t n_read = 0; n_read < n;) {
        ssize_t got = pread(file->fd, to + n_read, (size_t)(n - n_read), at + n_read);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return io_failed("read", file->path, errno, err);
        if (got == 0)
            return RC_FAIL(err, RC_E_IO, in_file(file->path),
                           "has no byte %" PRId64 " any more; it had %" PRId64
                           " when it was opened and was cut off meanwhile",
                           at + n_read, file->n_bytes);
        n_read += got;
    }
    return RC_OK;
}

void rc_in_file_close(rc_in_file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    file->fd = -1;
}

rc_code rc_map_open(const char *path, rc_map *map, rc_error *err)
{
    int fd;
    int64_t n_bytes;
    *map = (rc_map){.at = (const unsigned char *)"", .n_bytes = 0};
    RC_TRY(rc_open_reading(path, RC_OPEN_FILE, &fd, &n_bytes, err));
    if (n_bytes > 0) {
        void *at = mmap(NULL, (size_t)n_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
        if (at == MAP_FAILED) {
            rc_code code = io_failed("map", path, errno, err);
            close(fd);
            return code;
        }
        map->at = at;
        map->n_bytes = (size_t)n_bytes;
    }
    close(fd);
    return RC_OK;
}

void rc_map_close(rc_map *map)
{
    if (map->n_bytes > 0)
        munmap((void *)(uintptr_t)map->at, map->n_bytes);
    *map = (rc_map){.at = (const unsigned char *)"", .n_bytes = 0};
}

/* The path goes into the message: a caller's buffer may be gone when the error is printed. */
static rc_code write_failed(const char *path, int why, rc_error *err)
{
    return RC_FAIL(err, RC_E_IO, RC_NOWHERE, "cannot write %.160s: %s", path, strerror(why));
}

/* Who saw it fail before may have called others since, so that errno is theirs; but what failed
 * once fails again. */
int rc_stream_flush(FILE *to)
{
    errno = 0;
    if (fflush(to) == 0 && ferror(to) && fputc('\n', to) != EOF)
        (void)fflush(to);
    if (!ferror(to))
        return 0;
    return errno ? errno : EIO;
}

/* A rename onto a device or a link would replace it. */
static bool is_replaceable(const char *path)
{
    struct stat info;
    return lstat(path, &info) != 0 || S_ISREG(info.st_mode) || S_ISDIR(info.st_mode);
}

rc_code rc_out_file_open(const char *path, rc_out_file *file, rc_error *err)
{
    *file = (rc_out_file){0};
    RC_TRY(rc_path_refuse_empty(path, err));
    const bool has_tmp = is_replaceable(path);
    int n = snprintf(file->path, sizeof file->path, "%s", path);
    int n_tmp = has_tmp ? snprintf(file->tmp_path, sizeof file->tmp_path, "%s.tmp.%ld", path,
                                   (long)getpid())
                        : 0;
    if (n < 0 || n_tmp < 0 || (size_t)n_tmp >= sizeof file->tmp_path ||
        (size_t)n >= sizeof file->path)
        return RC_FAIL(err, RC_E_RANGE, RC_NOWHERE, "the path %.80s... is too long", path);
    int fd;
    RC_TRY(rc_open_writing(has_tmp ? file->tmp_path : path, path, false, &fd, err));
    file->to = fdopen(fd, "wb");
    if (file->to)
        return RC_OK;
    rc_code code = write_failed(path, errno, err);
    close(fd);
    return code;
}

rc_code rc_out_file_commit(rc_out_file *file, rc_error *err)
{
    const bool has_tmp = file->tmp_path[0] != '\0';
    int why = rc_stream_flush(file->to);
    if (!why && has_tmp && fsync(fileno(file->to)) != 0)
        why = errno;
    if (fclose(file->to) != 0 && !why)
        why = errno;
    file->to = NULL;
    if (!why && has_tmp && rename(file->tmp_path, file->path) != 0)
        why = errno;
    if (!why)
        return RC_OK;
    rc_code code = write_failed(file->path, why, err);
    if (has_tmp)
        unlink(file->tmp_path);
    return code;
}

rc_code rc_out_file_write(rc_out_file *file, const void *bytes, size_t n_bytes, rc_error *err)
{
    return fwrite(bytes, 1, n_bytes, file->to) == n_bytes
               ? RC_OK
               : write_failed(file->path, errno, err);
}

void rc_out_file_abort(rc_out_file *file)
{
    if (!file->to)
        return;
    fclose(file->to);
    file->to = NULL;
    if (file->tmp_path[0] != '\0')
        unlink(file->tmp_path);
}

rc_code rc_out_file_end(rc_out_file *file, rc_code code, rc_error *err)
{
    if (code == RC_OK)
        return rc_out_file_commit(file, err);
    int why = code == RC_E_IO ? rc_stream_flush(file->to) : 0;
    bool is_named = err && (err->where.file || strstr(err->msg, file->path));
    if (code == RC_E_IO && (why || !is_named)) { /* a writer may know neither path nor reason */
        if (err && !err->where.file)
            *err = (rc_error){0};
        (void)write_failed(file->path, why ? why : EIO, err);
    }
    rc_out_file_abort(file);
    return code;
}

rc_code rc_stream_open(const char *path, const char *mode, FILE **out, rc_error *err)
{
    int fd;
    *out = NULL;
    if (*mode == 'r')
        RC_TRY(rc_open_reading(path, RC_OPEN_STREAM, &fd, NULL, err));
    else
        RC_TRY(rc_open_writing(path, path, *mode == 'a', &fd, err));
    *out = fdopen(fd, mode);
    if (*out)
        return RC_OK;
    rc_code code = io_failed("open", path, errno, err);
    close(fd);
    return code;
}

bool rc_path_is_directory(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

bool rc_path_is_link(const char *path)
{
    struct stat info;
    return lstat(path, &info) == 0 && S_ISLNK(info.st_mode);
}

bool rc_path_exists(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0;
}

bool rc_path_is_same(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* Some file systems cannot sync a directory and say so; they keep their own order. */
rc_code rc_path_sync_directory(const char *path, rc_error *err)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return io_failed("open", path, errno, err);
    bool is_synced = fsync(fd) == 0 || errno == EINVAL || errno == ENOTSUP;
    rc_code code =
        is_synced ? RC_OK : io_failed("write the directory to its disk", path, errno, err);
    close(fd);
    return code;
}

/* Makes one directory, and its name durable. `path` ends behind its last part. */
static rc_code make_part(char *path, const char *whole, rc_error *err)
{
    int why = mkdir(path, 0777) == 0 ? 0 : errno;
    if (why)
        return rc_path_is_directory(path) ? RC_OK
                                          : io_failed("make the directory", whole, why, err);
    char *slash = strrchr(path, '/');
    if (!slash || slash == path)
        return rc_path_sync_directory(slash ? "/" : ".", err);
    *slash = '\0';
    rc_code code = rc_path_sync_directory(path, err);
    *slash = '/';
    return code;
}

rc_code rc_path_look(const char *path, bool *exists, rc_error *err)
{
    struct stat info;
    *exists = stat(path, &info) == 0;
    if (*exists || errno == ENOENT || errno == ENOTDIR)
        return RC_OK;
    return io_failed("look at it", path, errno, err);
}

rc_code rc_path_make_directory(const char *path, rc_error *err)
{
    char part[4096];
    size_t n = strlen(path);
    RC_TRY(rc_path_refuse_empty(path, err));
    if (n >= sizeof part)
        return RC_FAIL(err, RC_E_RANGE, RC_NOWHERE, "the path %.80s... is too long", path);
    for (size_t i = 1; i <= n; i++) {
        if (i < n && path[i] != '/')
            continue;
        memcpy(part, path, i);
        part[i] = '\0';
        RC_TRY(make_part(part, path, err));
    }
    return RC_OK;
}

rc_code rc_path_rename(const char *from, const char *to, rc_error *err)
{
    return rename(from, to) == 0 ? RC_OK : io_failed("rename", from, errno, err);
}

rc_code rc_path_remove(const char *path, rc_error *err)
{
    return remove(path) == 0 || errno == ENOENT ? RC_OK : io_failed("remove", path, errno, err);
}

rc_code rc_path_list(const char *path, rc_arena *mem, const char ***names, size_t *n,
                     rc_error *err)
{
    size_t room = 0;
    rc_code code = RC_OK;
    DIR *folder = opendir(path);
    *names = NULL;
    *n = 0;
    if (!folder)
        return io_failed("open", path, errno, err);
    for (const struct dirent *entry; code == RC_OK && (entry = readdir(folder));) {
        const char *name = entry->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
            continue;
        code = RC_GROW(mem, names, *n, &room, *n + 1, err);
        if (code == RC_OK)
            code = rc_arena_copy(mem, name, strlen(name), &(*names)[(*n)++], err);
    }
    closedir(folder);
    return code;
}

rc_code rc_path_lock(const char *path, int wait_ms, int *fd, bool *is_locked, rc_error *err)
{
    const struct timespec pause = {.tv_nsec = 20 * 1000000};
    *fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*fd < 0)
        return io_failed("open", path, errno, err);
    for (int waited = 0;; waited += 20) {
        *is_locked = flock(*fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
        if (*is_locked || waited >= wait_ms || nanosleep(&pause, NULL) != 0)
            break;
    }
    if (!*is_locked)
        rc_path_unlock(fd);
    return RC_OK;
}

void rc_path_unlock(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

rc_code rc_path_remove_folder(const char *path, rc_error *err)
{
    if (rc_path_is_link(path))
        return rc_path_remove(path, err);
    DIR *folder = opendir(path);
    if (!folder)
        return errno == ENOENT ? RC_OK : io_failed("open", path, errno, err);
    for (const struct dirent *entry; (entry = readdir(folder));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlinkat(dirfd(folder), entry->d_name, 0); /* what stays makes the next line fail */
    closedir(folder);
    return rc_path_remove(path, err);
}
