/* op.c — dtypes, and the table of facts. */
#include "op/facts.h"

#include "base/num.h"

static const struct {
    const char *name;
    int64_t bytes;
} dtypes[RC_DTYPE_COUNT] = {
    [RC_F32] = {"f32", 4}, [RC_BF16] = {"bf16", 2}, [RC_F16] = {"f16", 2},
    [RC_U8] = {"u8", 1},   [RC_I32] = {"i32", 4},   [RC_I64] = {"i64", 8},
};

int64_t rc_dtype_bytes(rc_dtype dtype)
{
    return dtypes[dtype].bytes;
}

const char *rc_dtype_name(rc_dtype dtype)
{
    return dtypes[dtype].name;
}

static const rc_op_facts *const table[RC_OP_COUNT] = {
#define RC_OP(name, help) [RC_OP_##name] = &rc_op_##name,
#include "defs/ops.def"
#undef RC_OP
};

const rc_op_facts *rc_op_find(rc_op_kind kind)
{
    return table[kind];
}

int64_t rc_op_no_flops(const rc_op_attr *attr)
{
    (void)attr;
    return 0;
}

int64_t rc_op_times(int64_t a, int64_t b)
{
    int64_t product;
    return rc_mul(a, b, &product) ? product : INT64_MAX;
}

int64_t rc_op_gemm_library_bytes(int64_t n, int64_t k, int n_threads)
{
    enum { MOST_COLUMNS = 10240, LEAST_DEPTH = 128, MOST_DEPTH = 384, OWN_BYTES = 800 << 10 };
    int64_t columns = rc_round_up(n, 64), depth = k < LEAST_DEPTH ? LEAST_DEPTH : k;
    if (columns > (int64_t)n_threads * MOST_COLUMNS)
        columns = (int64_t)n_threads * MOST_COLUMNS;
    if (depth > MOST_DEPTH)
        depth = MOST_DEPTH;
    return (int64_t)sizeof(float) * columns * depth + (int64_t)n_threads * OWN_BYTES;
}
