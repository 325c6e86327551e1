/* pointwise.c — products of elements and of rows. Backward reads both factors. */
#include "op/facts.h"

const rc_op_facts rc_op_multiply = {
    .name = "multiply",
    .n_in = 2,
    .n_out = 1,
    .needs_in = RC_BIT(0) | RC_BIT(1),
    .grads = RC_BIT(0) | RC_BIT(1),
    .fwd_flops = rc_op_no_flops,
    .bwd_flops = rc_op_no_flops,
};

const rc_op_facts rc_op_scale_rows = {
    .name = "scale_rows",
    .n_in = 2,
    .n_out = 1,
    .needs_in = RC_BIT(0) | RC_BIT(1),
    .grads = RC_BIT(0) | RC_BIT(1),
    .fwd_flops = rc_op_no_flops,
    .bwd_flops = rc_op_no_flops,
};

/* As activation, but that the row is weighed in the same kernel. source  Megatron-LM
 * megatron/core/fusions/fused_bias_swiglu.py, WeightedSwiGLUFunction */
const rc_op_facts rc_op_weighted_activation = {
    .name = "weighted_activation",
    .n_in = 2,
    .n_out = 1,
    .needs_in = RC_BIT(0) | RC_BIT(1),
    .grads = RC_BIT(0) | RC_BIT(1),
    .fwd_flops = rc_op_no_flops,
    .bwd_flops = rc_op_no_flops,
};
