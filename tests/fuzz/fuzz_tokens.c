/* fuzz_tokens.c — any bytes as the .idx of a dataset whose .bin has 64 bytes: refused, or every
 * token of every sequence can be read. */
#define _GNU_SOURCE /* memfd_create */
#include "read/tokens.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

/* A folder of this process with links to files in memory: the reader wants a prefix. */
static const char *make_folder(int *fd)
{
    static char folder[] = "/tmp/recompute-fuzz-XXXXXX";
    static char path[64], target[64];
    *fd = memfd_create("idx", 0);
    int data = memfd_create("bin", 0);
    if (!mkdtemp(folder) || *fd < 0 || data < 0 || ftruncate(data, 64) != 0)
        abort();
    snprintf(path, sizeof path, "%s/x.idx", folder);
    snprintf(target, sizeof target, "/proc/self/fd/%d", *fd);
    if (symlink(target, path) != 0)
        abort();
    snprintf(path, sizeof path, "%s/x.bin", folder);
    snprintf(target, sizeof target, "/proc/self/fd/%d", data);
    if (symlink(target, path) != 0)
        abort();
    return folder;
}

static char prefix[64];

static void remove_folder(void)
{
    char path[80];
    snprintf(path, sizeof path, "%s.idx", prefix);
    unlink(path);
    snprintf(path, sizeof path, "%s.bin", prefix);
    unlink(path);
    *strrchr(prefix, '/') = '\0';
    rmdir(prefix);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    static int fd = -1;
    rc_tokens tokens;
    int32_t read[64];
    if (fd < 0) {
        snprintf(prefix, sizeof prefix, "%s/x", make_folder(&fd));
        atexit(remove_folder);
    }
    if (ftruncate(fd, 0) != 0 || pwrite(fd, bytes, n, 0) != (ssize_t)n)
        abort();
    rc_arena *mem = rc_arena_open();
    if (!mem)
        abort();
    if (rc_tokens_open(prefix, mem, &tokens, NULL) != RC_OK) {
        rc_arena_close(mem);
        return 0;
    }
    for (int64_t i = 0; i < tokens.n_sequences; i++) {
        int64_t length = rc_tokens_length(&tokens, i);
        if (length > 64)
            abort(); /* longer than the data */
        if (rc_tokens_read(&tokens, i, 0, length, 300, read, NULL) == RC_OK)
            for (int64_t k = 0; k < length; k++)
                if (read[k] < 0 || read[k] >= 300)
                    abort();
    }
    rc_tokens_close(&tokens);
    rc_arena_close(mem);
    return 0;
}
