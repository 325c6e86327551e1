/* attn_scores.c — scale q k^T, the whole square. Backward reads q for dk and k for dq. */
#include "op/facts.h"

/* the whole square, masked or not: 2 s^2 d per head (Korthikanti et al. 2022, appendix A) */
static int64_t fwd_flops(const rc_op_attr *attr)
{
    return 2 * attr->b * attr->a * attr->s * attr->s * attr->d;
}

static int64_t bwd_flops(const rc_op_attr *attr)
{
    return 2 * fwd_flops(attr);
}

const rc_op_facts rc_op_attn_scores = {
    .name = "attn_scores",
    .n_in = 2,
    .n_out = 1,
    .needs_in = RC_BIT(0) | RC_BIT(1),
    .grads = RC_BIT(0) | RC_BIT(1),
    .fwd_flops = fwd_flops,
    .bwd_flops = bwd_flops,
    .tolerance = 5e-6,
};
