/* linear.c — y = x w^T + b. Backward reads x for dw and w for dx. */
#include "op/facts.h"

static int64_t fwd_flops(const rc_op_attr *attr)
{
    return 2 * attr->n * attr->in * attr->out;
}

/* dx and dw: one product of the forward's size each */
static int64_t bwd_flops(const rc_op_attr *attr)
{
    return 4 * attr->n * attr->in * attr->out;
}

const rc_op_facts rc_op_linear = {
    .name = "linear",
    .n_in = 3,
    .n_out = 1,
    .needs_in = RC_BIT(0) | RC_BIT(1),
    .grads = RC_BIT(0) | RC_BIT(1) | RC_BIT(2),
    .fwd_flops = fwd_flops,
    .bwd_flops = bwd_flops,
    .tolerance = 5e-6,
};
