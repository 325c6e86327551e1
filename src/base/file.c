/* file.c — whole files in, whole files out: atomically, with clear errors. */
#define _POSIX_C_SOURCE 200809L
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static rc_where in_file(const char *path)
{
    return (rc_where){.file = path};
}

static rc_code io_failed(const char *what, const char *path, rc_error *err)
{
    return RC_FAIL(err, RC_E_IO, in_file(path), "cannot %s: %s", what, strerror(errno));
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
        return io_failed("read", path, err);
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
    if (rc_path_is_directory(path))
        return RC_FAIL(err, RC_E_IO, in_file(path), "is a directory; a file is needed here");
    FILE *from;
    RC_TRY(rc_stream_open(path, "rb", &from, err));
    rc_code code = read_stream(from, path, max_bytes, mem, bytes, n_bytes, err);
    fclose(from);
    return code;
}

rc_code rc_map_open(const char *path, rc_map *map, rc_error *err)
{
    *map = (rc_map){.at = (const unsigned char *)"", .n_bytes = 0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return io_failed("open", path, err);
    struct stat info;
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        close(fd);
        return RC_FAIL(err, RC_E_IO, in_file(path), "is not a regular file");
    }
    if (info.st_size > 0) {
        void *at = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (at == MAP_FAILED) {
            close(fd);
            return io_failed("map", path, err);
        }
        map->at = at;
        map->n_bytes = (size_t)info.st_size;
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

rc_code rc_out_file_open(const char *path, rc_out_file *file, rc_error *err)
{
    *file = (rc_out_file){0};
    int n = snprintf(file->path, sizeof file->path, "%s", path);
    int n_tmp =
        snprintf(file->tmp_path, sizeof file->tmp_path, "%s.tmp.%ld", path, (long)getpid());
    if (n < 0 || n_tmp < 0 || (size_t)n_tmp >= sizeof file->tmp_path)
        return RC_FAIL(err, RC_E_RANGE, RC_NOWHERE, "the path %.80s... is too long", path);
    file->to = fopen(file->tmp_path, "wb");
    if (!file->to)
        return io_failed("write", path, err);
    return RC_OK;
}

rc_code rc_out_file_commit(rc_out_file *file, rc_error *err)
{
    bool is_written =
        fflush(file->to) == 0 && !ferror(file->to) && fsync(fileno(file->to)) == 0;
    is_written = fclose(file->to) == 0 && is_written;
    file->to = NULL;
    if (is_written && rename(file->tmp_path, file->path) == 0)
        return RC_OK;
    rc_code code = io_failed("write", file->path, err);
    unlink(file->tmp_path);
    return code;
}

void rc_out_file_abort(rc_out_file *file)
{
    if (!file->to)
        return;
    fclose(file->to);
    file->to = NULL;
    unlink(file->tmp_path);
}

rc_code rc_stream_open(const char *path, const char *mode, FILE **out, rc_error *err)
{
    *out = fopen(path, mode);
    if (!*out)
        return io_failed("open", path, err);
    return RC_OK;
}

bool rc_path_is_directory(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

bool rc_path_exists(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0;
}

rc_code rc_path_make_directory(const char *path, rc_error *err)
{
    char part[4096];
    size_t n = strlen(path);
    if (n >= sizeof part)
        return RC_FAIL(err, RC_E_RANGE, RC_NOWHERE, "the path %.80s... is too long", path);
    for (size_t i = 1; i <= n; i++) {
        if (i < n && path[i] != '/')
            continue;
        memcpy(part, path, i);
        part[i] = '\0';
        if (mkdir(part, 0777) != 0 && !rc_path_is_directory(part))
            return io_failed("make the directory", path, err);
    }
    return RC_OK;
}

rc_code rc_path_rename(const char *from, const char *to, rc_error *err)
{
    return rename(from, to) == 0 ? RC_OK : io_failed("rename", from, err);
}

rc_code rc_path_remove(const char *path, rc_error *err)
{
    return remove(path) == 0 || errno == ENOENT ? RC_OK : io_failed("remove", path, err);
}
