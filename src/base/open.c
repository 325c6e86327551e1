/* open.c — a descriptor for a path, without waiting: what stands there is looked at first. */
#define _GNU_SOURCE /* fstatfs */
#include "base/open.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

static const char *kind_name(mode_t mode)
{
    return S_ISFIFO(mode)   ? "a FIFO"
           : S_ISSOCK(mode) ? "a socket"
           : S_ISCHR(mode)  ? "a character device"
           : S_ISBLK(mode)  ? "a block device"
           : S_ISDIR(mode)  ? "a directory"
                            : "no regular file";
}

static rc_code refuse_kind(const char *path, mode_t mode, rc_error *err)
{
    return RC_FAIL(err, RC_E_IO, (rc_where){.file = path}, "is %s; a file is needed here",
                   kind_name(mode));
}

rc_code rc_path_refuse_empty(const char *path, rc_error *err)
{
    if (*path)
        return RC_OK;
    return RC_FAIL(err, RC_E_INPUT, RC_NOWHERE, "a path is empty; it names no file");
}

static rc_code open_failed(const char *path, int why, rc_error *err)
{
    struct stat info;
    if (why == ENXIO && stat(path, &info) == 0 && !S_ISREG(info.st_mode))
        return refuse_kind(path, info.st_mode, err);
    return RC_FAIL(err, RC_E_IO, (rc_where){.file = path}, "cannot open: %s", strerror(why));
}

/* Is it a descriptor of this process under another name? Then its other end is held already. */
static bool is_descriptor(const char *path)
{
    static const char *const starts[] = {"/dev/fd/", "/proc/self/fd/"};
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (strncmp(path, starts[i], strlen(starts[i])) == 0)
            return true;
    return strcmp(path, "/dev/stdin") == 0;
}

/* A pipe without a name has been opened by whoever made it; one with a name may have nobody. */
static bool is_readable_stream(const char *path, int fd, mode_t mode)
{
    struct statfs system;
    if (S_ISDIR(mode))
        return false;
    return is_descriptor(path) ||
           (S_ISFIFO(mode) && fstatfs(fd, &system) == 0 && system.f_type == PIPEFS_MAGIC);
}

/* It was opened so that open() would not wait; reads and writes shall. */
static bool let_wait(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) == 0;
}

/* Data of a thousand files stays open while it is trained on, and shells allow 1024 of what the kernel
 * allows, for the sake of programs with select(). */
static bool allow_more_files(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max)
        return false;
    limit.rlim_cur = limit.rlim_max;
    return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

rc_code rc_open_reading(const char *path, rc_open_for reads, int *fd, int64_t *n_bytes,
                        rc_error *err)
{
    struct stat info;
    RC_TRY(rc_path_refuse_empty(path, err));
    const int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    *fd = open(path, flags);
    if (*fd < 0 && errno == EMFILE && allow_more_files())
        *fd = open(path, flags);
    if (*fd < 0)
        return open_failed(path, errno, err);
    bool is_known = fstat(*fd, &info) == 0 && let_wait(*fd);
    bool is_wanted =
        is_known && (S_ISREG(info.st_mode) ||
                     (reads == RC_OPEN_STREAM && is_readable_stream(path, *fd, info.st_mode)));
    if (is_wanted) {
        if (n_bytes)
            *n_bytes = S_ISREG(info.st_mode) ? info.st_size : 0;
        return RC_OK;
    }
    int why = errno;
    close(*fd);
    *fd = -1;
    return is_known ? refuse_kind(path, info.st_mode, err) : open_failed(path, why, err);
}

rc_code rc_open_writing(const char *path, const char *shown, bool is_added, int *fd,
                        rc_error *err)
{
    struct stat info;
    RC_TRY(rc_path_refuse_empty(path, err));
    int flags = O_WRONLY | O_CREAT | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    *fd = open(path, flags | (is_added ? O_APPEND : O_TRUNC), 0666);
    if (*fd >= 0 && let_wait(*fd))
        return RC_OK;
    int why = errno;
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
    if (why != ENXIO || stat(path, &info) != 0)
        return RC_FAIL(err, RC_E_IO, RC_NOWHERE, "cannot write %.160s: %s", shown,
                       strerror(why));
    return RC_FAIL(err, RC_E_IO, RC_NOWHERE, "cannot write %.160s: it is %s%s", shown,
                   kind_name(info.st_mode),
                   S_ISFIFO(info.st_mode) ? " that nobody reads; start its reader before" : "");
}
