/* cut_on_map.c — loaded before libc (LD_PRELOAD): a file named *.cut loses its data the moment it was
 * mapped, as if somebody had shortened it just then. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

void *mmap(void *at, size_t n, int protection, int flags, int fd, off_t offset)
{
    char link[64], path[4096];
    long got = syscall(SYS_mmap, at, n, protection, flags, fd, offset);
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = fd >= 0 ? readlink(link, path, sizeof path - 1) : -1;
    path[length > 0 ? length : 0] = '\0';
    if (length > 4 && strcmp(path + length - 4, ".cut") == 0 && truncate(path, 0) != 0)
        return MAP_FAILED;
    return (void *)got;
}
