/* op.c — the names of what ops speak of, and what the facts of several ops share. */
#include "op/facts.h"

#include "base/num.h"

#include <recompute/arena.h>

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

static const char *const group_names[RC_GROUP_COUNT] = {"none", "tp", "cp", "ep",
                                                        "etp",  "dp", "pp", "ep-etp"};
static const char *const comm_names[RC_COMM_COUNT] = {
    "none", "all-reduce", "all-gather", "reduce-scatter", "send", "receive", "all-to-all"};

const char *rc_comm_group_name(rc_comm_group group)
{
    return group_names[group];
}

const char *rc_comm_kind_name(rc_comm_kind kind)
{
    return comm_names[kind];
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

rc_op_scratch rc_op_scratch_of(const rc_op_facts *facts, const rc_op_attr *attr, rc_dtype dtype,
                               int n_threads, bool is_backward)
{
    int64_t (*own)(const rc_op_attr *, rc_dtype, int) =
        is_backward ? facts->bwd_scratch_bytes : facts->fwd_scratch_bytes;
    return (rc_op_scratch){
        .own_bytes = own ? rc_round_up(own(attr, dtype, n_threads), RC_ALIGN) : 0,
        .library_bytes = facts->library_bytes ? facts->library_bytes(attr, n_threads) : 0};
}

int64_t rc_op_gemm_library_bytes(int64_t m, int64_t n, int64_t k, int n_threads)
{
    enum {
        MOST_COLUMNS = 10240,
        LEAST_DEPTH = 128,
        MOST_DEPTH = 384,
        MOST_OWN_BYTES = 800 << 10, /* of a thread: its rows, */
        LEAST_OWN_BYTES = 80 << 10  /* and what it needs without any */
    };
    int64_t columns = rc_round_up(n, 64), depth = k < LEAST_DEPTH ? LEAST_DEPTH : k;
    if (columns > (int64_t)n_threads * MOST_COLUMNS)
        columns = (int64_t)n_threads * MOST_COLUMNS;
    if (depth > MOST_DEPTH)
        depth = MOST_DEPTH;
    int64_t own_bytes = (int64_t)sizeof(float) * (rc_round_up(m, 64) + 64) * depth;
    if (own_bytes > MOST_OWN_BYTES)
        own_bytes = MOST_OWN_BYTES;
    return (int64_t)sizeof(float) * columns * depth +
           (int64_t)n_threads * (own_bytes + LEAST_OWN_BYTES);
}
