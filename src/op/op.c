/* op.c — dtypes, and the table of facts. */
#include "op/facts.h"

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
