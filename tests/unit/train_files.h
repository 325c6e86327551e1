/* train_files.h — little files and configs for the tests of the training loop. */
#ifndef TRAIN_FILES_H
#define TRAIN_FILES_H

#include <recompute/config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static inline void make_temp_folder(char *path)
{
    strcpy(path, "/tmp/recompute-test-XXXXXX");
    if (!mkdtemp(path))
        abort();
}

static inline const char *path_in(const char *folder, const char *name)
{
    static char paths[256][512]; /* a test keeps fewer at a time */
    static int at;
    char joined[512];
    at = (at + 1) % 256;
    snprintf(joined, sizeof joined, "%s/%s", folder, name);
    return strcpy(paths[at], joined);
}

static inline void write_bytes(const char *path, const void *bytes, size_t n)
{
    FILE *to = fopen(path, "wb");
    if (!to || fwrite(bytes, 1, n, to) != n || fclose(to) != 0)
        abort();
}

/* An indexed dataset as Megatron writes it, one sequence a document. */
typedef struct index_bytes {
    unsigned char at[4096];
    size_t n;
} index_bytes;

static inline void put_number(index_bytes *to, uint64_t value, int n_bytes)
{
    for (int i = 0; i < n_bytes; i++)
        to->at[to->n++] = (unsigned char)(value >> (8 * i));
}

/* `code` and `elem_bytes` are of the token type. */
static inline index_bytes make_index(const int64_t *lengths, int n, int code, int elem_bytes)
{
    index_bytes index = {.n = 9};
    uint64_t pointer = 0;
    memcpy(index.at, "MMIDIDX\0\0", 9);
    put_number(&index, 1, 8);
    put_number(&index, (uint64_t)code, 1);
    put_number(&index, (uint64_t)n, 8);
    put_number(&index, (uint64_t)n + 1, 8);
    for (int i = 0; i < n; i++)
        put_number(&index, (uint64_t)lengths[i], 4);
    for (int i = 0; i < n; i++) {
        put_number(&index, pointer, 8);
        pointer += (uint64_t)(lengths[i] * elem_bytes);
    }
    for (int i = 0; i <= n; i++)
        put_number(&index, (uint64_t)i, 8);
    return index;
}

/* A config with the defaults the loop reads and nothing given; tests set fields by set_*. */
static inline rc_config empty_config(void)
{
    rc_config cfg = {0};
    for (int i = 0; i < RC_FIELD_COUNT; i++)
        cfg.origin[i].is_null = strcmp(rc_field_find((rc_field)i)->dflt, "null") == 0;
    cfg.lr = 3e-4;
    cfg.lr_decay_style = "linear";
    cfg.lr_wsd_decay_style = "exponential";
    cfg.split = "969,30,1";
    return cfg;
}

#define SET(cfg, field, value)                                                                 \
    ((cfg)->field = (value), (cfg)->origin[RC_FIELD_##field].is_null = false)

#endif
