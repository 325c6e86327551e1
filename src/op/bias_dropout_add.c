/* bias_dropout_add.c — residual + dropout(x + b). Backward draws the mask again and reads nothing;
 * the residual's gradient is the output's, and without dropout so is that of x: then all three may
 * stand in one place, and nothing is copied. With dropout only one of the two may. */
#include "op/facts.h"

const rc_op_facts rc_op_bias_dropout_add = {
    .name = "bias_dropout_add",
    .n_in = 3,
    .n_out = 1,
    .grads = RC_BIT(0) | RC_BIT(1) | RC_BIT(2),
    .in_place = RC_BIT(0),
    .passes_grad = RC_BIT(1),
    .passes_undropped_grad = RC_BIT(0),
    .fwd_flops = rc_op_no_flops,
    .bwd_flops = rc_op_no_flops,
    .tolerance = 5e-6,
};
