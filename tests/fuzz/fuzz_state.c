/* fuzz_state.c — any bytes as a checkpoint's state.json, as they are and with a right checksum at their
 * end: refused with the run's state untouched, or its counts fit each other. */
#define _GNU_SOURCE /* memfd_create */
#include "base/checksum.h"
#include "train/checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

enum { ITERATION = 25, N_GLOBAL = 8, N_STEPS = 1000 };

static void read_state(const char *bytes, size_t n)
{
    static const rc_same identity[] = {{"model.num_layers", "2", NULL}};
    static const rc_pair order[] = {{"engine.threads", "2"}};
    char path[64];
    rc_file_seal seals[RC_CHECKPOINT_FILES];
    rc_state state = {.n_global = N_GLOBAL,
                      .valid = {.interval = 10, .n_batch_samples = 16, .n_steps = N_STEPS},
                      .identity = identity,
                      .n_identity = 1,
                      .order = order,
                      .n_order = 1};
    rc_arena *mem = rc_arena_open();
    int fd = memfd_create("state", 0);
    if (!mem || fd < 0 || write(fd, bytes, n) != (ssize_t)n)
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    bool is_read = rc_state_read(path, ITERATION, &state, seals, mem, NULL) == RC_OK;
    if (state.iteration != (is_read ? ITERATION : 0) ||
        state.n_train_samples != (is_read ? ITERATION * N_GLOBAL : 0))
        abort();
    if (state.n_valid_samples < 0 || state.n_valid_samples % N_GLOBAL != 0)
        abort();
    if (is_read && rc_valid_plan_count(&state.valid, ITERATION) != state.n_valid_samples)
        abort();
    if (rc_valid_plan_count(&state.valid, N_STEPS) < state.n_valid_samples)
        abort();
    close(fd);
    rc_arena_close(mem);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    static const char start[] = ", \"crc32\": \"00000000\"\n}\n";
    const size_t n_digits = 8, n_behind = 4;
    read_state((const char *)bytes, n);
    /* Once more, its last brace replaced by a seal that fits. */
    char *sealed = malloc(n + sizeof start), digits[9];
    if (!sealed)
        abort();
    memcpy(sealed, bytes, n);
    while (n > 0 && sealed[n - 1] != '}')
        n--;
    n -= n > 0;
    memcpy(sealed + n, start, sizeof start - 1);
    n += sizeof start - 1;
    rc_crc32_print(rc_crc32(0, sealed, n), digits);
    memcpy(sealed + n - n_behind - n_digits, digits, n_digits);
    read_state(sealed, n);
    free(sealed);
    return 0;
}
