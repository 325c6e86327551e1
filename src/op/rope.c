/* rope.c — rotary position embedding. Backward turns the gradient back and reads nothing. */
#include "op/facts.h"
#include "op/scratch.h"

static int64_t scratch_bytes(const rc_op_attr *attr, rc_dtype dtype, int n_threads)
{
    (void)dtype;
    const int64_t table = rc_pad16(rc_rope_table_rows(attr->s) * (attr->rotary_dim / 2) * 2);
    const int64_t turns = n_threads * rc_pad16(attr->rotary_dim / 2 * 2);
    return table * (int64_t)sizeof(double) + turns * (int64_t)sizeof(float);
}

const rc_op_facts rc_op_rope = {
    .name = "rope",
    .n_in = 1,
    .n_out = 1,
    .grads = RC_BIT(0),
    .in_place = RC_BIT(0),
    .grad_in_place = RC_BIT(0),
    .fwd_flops = rc_op_no_flops,
    .bwd_flops = rc_op_no_flops,
    .fwd_scratch_bytes = scratch_bytes,
    .bwd_scratch_bytes = scratch_bytes,
    .tolerance = 2e-6,
};
