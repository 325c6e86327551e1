/* op.c — dtypes. */
#include <recompute/op.h>

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
