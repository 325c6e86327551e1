/* attn_scores.c — scale q k^T, the whole square. Backward reads q for dk and k for dq. */
#include "op/facts.h"

/* the whole square, masked or not: 2 s^2 d per head (Korthikanti et al. 2022, appendix A) */
int64_t rc_op_square_fwd_flops(const rc_op_attr *attr)
{
    const int64_t squares = rc_op_times(attr->s, attr->s);
    const int64_t heads = rc_op_times(attr->b, attr->a);
    return rc_op_times(2 * attr->d, rc_op_times(heads, squares));
}

int64_t rc_op_square_bwd_flops(const rc_op_attr *attr)
{
    return rc_op_times(2, rc_op_square_fwd_flops(attr));
}

/* each thread works on a product of its own: [s,s] over d, [s,d] over s */
int64_t rc_op_square_library_bytes(const rc_op_attr *attr, int n_threads)
{
    const int64_t square = rc_op_gemm_library_bytes(attr->s, attr->s, attr->d, 1);
    const int64_t rows = rc_op_gemm_library_bytes(attr->s, attr->d, attr->s, 1);
    return n_threads * (square > rows ? square : rows);
}

const rc_op_facts rc_op_attn_scores = {
    .name = "attn_scores",
    .n_in = 2,
    .n_out = 1,
    .needs_in = RC_BIT(0) | RC_BIT(1),
    .grads = RC_BIT(0) | RC_BIT(1),
    .fwd_flops = rc_op_square_fwd_flops,
    .bwd_flops = rc_op_square_bwd_flops,
    .library_bytes = rc_op_square_library_bytes,
    .tolerance = 5e-6,
};
