/* linear.c — y = x w^T + b. Backward reads x for dw and w for dx. Where every rank of a group has the same x and
 * rows of w of its own, dx is the sum over the group. */
#include "op/facts.h"

static int64_t fwd_flops(const rc_op_attr *attr)
{
    return rc_op_times(rc_op_times(2 * attr->n, attr->in), attr->out);
}

/* dx and dw: one product of the forward's size each */
static int64_t bwd_flops(const rc_op_attr *attr)
{
    return rc_op_times(2, fwd_flops(attr));
}

/* the largest of y = x w^T, dx = dy w, dw = dy^T x */
static int64_t library_bytes(const rc_op_attr *attr, int n_threads)
{
    const int64_t y = rc_op_gemm_library_bytes(attr->n, attr->out, attr->in, n_threads);
    const int64_t dx = rc_op_gemm_library_bytes(attr->n, attr->in, attr->out, n_threads);
    const int64_t dw = rc_op_gemm_library_bytes(attr->out, attr->in, attr->n, n_threads);
    const int64_t grads = dx > dw ? dx : dw;
    return y > grads ? y : grads;
}

const rc_op_facts rc_op_linear = {
    .name = "linear",
    .n_in = 3,
    .n_out = 1,
    .needs_in = RC_BIT(0) | RC_BIT(1),
    .grads = RC_BIT(0) | RC_BIT(1) | RC_BIT(2),
    .adds_grad = RC_BIT(1),
    .bwd_comm = RC_COMM_ALL_REDUCE,
    .fwd_flops = fwd_flops,
    .bwd_flops = bwd_flops,
    .library_bytes = library_bytes,
    .tolerance = 5e-6,
};
