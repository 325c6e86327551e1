/* gpu.c — GPUs by name, and what a rank takes of one beside what its allocator hands out. */
#include <recompute/estimate.h>

#include <string.h>

static const rc_gpu gpus[] = {
#define RC_GPU(name, sm, gib, tflops, gbs, link)                                               \
    {name, sm, (int64_t)(gib * 1024.0 * 1024.0 * 1024.0), tflops * 1e12, gbs * 1e9, link * 1e9},
#include "defs/gpus.def"
#undef RC_GPU
};
enum { N_GPUS = sizeof gpus / sizeof *gpus };

static const struct allowance {
    const char *name, *help;
    int64_t mib, per_mille;
} allowances[] = {
#define RC_ALLOWANCE(name, mib, per_mille, help) {#name, help, mib, per_mille},
#include "defs/allowances.def"
#undef RC_ALLOWANCE
};
enum { N_ALLOWANCES = sizeof allowances / sizeof *allowances };

static int lower(char c)
{
    return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}

static bool is_named(const char *a, const char *b)
{
    while (*a && lower(*a) == lower(*b))
        a++, b++;
    return !*a && !*b;
}

const rc_gpu *rc_gpu_find(const char *name)
{
    for (int i = 0; i < N_GPUS; i++)
        if (is_named(name, gpus[i].name))
            return &gpus[i];
    return NULL;
}

int64_t rc_gpu_room(int64_t memory_bytes)
{
    int64_t mib = 0, per_mille = 0;
    for (int i = 0; i < N_ALLOWANCES; i++) {
        mib += allowances[i].mib;
        per_mille += allowances[i].per_mille;
    }
    const int64_t left = memory_bytes - mib * 1024 * 1024;
    return left > 0 ? left / (1000 + per_mille) * 1000 : 0;
}

rc_code rc_gpus_table(rc_arena *mem, rc_table **out, rc_error *err)
{
    static const rc_column columns[] = {{"gpu", NULL, RC_UNIT_TEXT},
                                        {"memory", NULL, RC_UNIT_BYTES},
                                        {"room", "room for a job's allocator", RC_UNIT_BYTES},
                                        {"flops", "FLOP/s, 16 bits", RC_UNIT_FLOPS},
                                        {"memory_rate", "memory, a second", RC_UNIT_BYTES},
                                        {"link_rate", "link, a second", RC_UNIT_BYTES}};
    RC_TRY(rc_table_make(mem, "gpus", "GPUs, for recompute estimate --gpu NAME", columns, 6,
                         out, err));
    for (int i = 0; i < N_GPUS; i++) {
        rc_cell *row;
        RC_TRY(rc_table_add_row(*out, &row, err));
        row[0] = rc_cell_text(gpus[i].name);
        row[1] = rc_cell_int(gpus[i].memory_bytes);
        row[2] = rc_cell_int(rc_gpu_room(gpus[i].memory_bytes));
        row[3] = rc_cell_int((int64_t)gpus[i].flops);
        row[4] = rc_cell_int((int64_t)gpus[i].memory_rate);
        row[5] = rc_cell_int((int64_t)gpus[i].link_rate);
    }
    return RC_OK;
}

rc_code rc_allowances_table(rc_arena *mem, rc_table **out, rc_error *err)
{
    static const rc_column columns[] = {{"allowance", NULL, RC_UNIT_TEXT},
                                        {"bytes", NULL, RC_UNIT_BYTES},
                                        {"share", "of what is allocated", RC_UNIT_RATIO},
                                        {"about", NULL, RC_UNIT_TEXT}};
    RC_TRY(rc_table_make(mem, "allowances",
                         "What a rank takes beside what its allocator hands out", columns, 4,
                         out, err));
    for (int i = 0; i < N_ALLOWANCES; i++) {
        rc_cell *row;
        RC_TRY(rc_table_add_row(*out, &row, err));
        row[0] = rc_cell_text(allowances[i].name);
        row[1] = rc_cell_int(allowances[i].mib * 1024 * 1024);
        row[2] = rc_cell_real((double)allowances[i].per_mille / 1000);
        row[3] = rc_cell_text(allowances[i].help);
    }
    return RC_OK;
}
