/* attn_context.c — o = p v. Backward reads p for dv and v for dp. */
#include "op/facts.h"

const rc_op_facts rc_op_attn_context = {
    .name = "attn_context",
    .n_in = 2,
    .n_out = 1,
    .needs_in = RC_BIT(0) | RC_BIT(1),
    .grads = RC_BIT(0) | RC_BIT(1),
    .fwd_flops = rc_op_square_fwd_flops,
    .bwd_flops = rc_op_square_bwd_flops,
    .library_bytes = rc_op_square_library_bytes,
    .tolerance = 5e-6,
};
