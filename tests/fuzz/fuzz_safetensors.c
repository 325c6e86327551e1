/* fuzz_safetensors.c — any bytes as a file of weights: refused, or every byte of every tensor can
 * be read and belongs to it alone. */
#define _GNU_SOURCE /* memfd_create */
#include "read/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    char path[64];
    rc_safetensors file;
    rc_arena *mem = rc_arena_open();
    int fd = memfd_create("weights", 0);
    if (!mem || fd < 0 || write(fd, bytes, n) != (ssize_t)n)
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (rc_safetensors_open(path, mem, &file, NULL) == RC_OK) {
        unsigned sum = 0;
        int64_t n_data = 0;
        for (size_t i = 0; i < file.n; i++) {
            const unsigned char *at = file.at[i].at;
            n_data += file.at[i].n_bytes;
            for (int64_t k = 0; k < file.at[i].n_bytes; k++)
                sum += at[k];
            if (rc_safetensors_find(&file, file.at[i].name) != &file.at[i])
                abort();
        }
        if (n_data > (int64_t)n || sum == 1u << 31) /* the second keeps the reads alive */
            abort();
        rc_safetensors_close(&file);
    }
    close(fd);
    rc_arena_close(mem);
    return 0;
}
