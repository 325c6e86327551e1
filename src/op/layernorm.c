/* layernorm.c — (x - mean) * rstd * (w + w_shift) + b. Backward reads x, w, mean and rstd, never y. */
#include "op/facts.h"
#include "op/scratch.h"

/* Partial sums of dw and db, one row a chunk. */
static int64_t bwd_scratch_bytes(const rc_op_attr *attr, rc_dtype dtype, int n_threads)
{
    (void)dtype;
    (void)n_threads;
    return RC_N_CHUNKS * 2 * rc_pad16(attr->h) * (int64_t)sizeof(float);
}

const rc_op_facts rc_op_layernorm = {
    .name = "layernorm",
    .n_in = 3,
    .n_out = 3,
    .needs_in = RC_BIT(0) | RC_BIT(1),
    .needs_out = RC_BIT(1) | RC_BIT(2),
    .grads = RC_BIT(0) | RC_BIT(1) | RC_BIT(2),
    .grad_in_place = RC_BIT(0),
    .fwd_flops = rc_op_no_flops,
    .bwd_flops = rc_op_no_flops,
    .bwd_scratch_bytes = bwd_scratch_bytes,
    .tolerance = 5e-6,
};
