/* dropout.c — x * keep / (1 - p). Backward draws the mask again and reads nothing. */
#include "op/facts.h"

const rc_op_facts rc_op_dropout = {
    .name = "dropout",
    .n_in = 1,
    .n_out = 1,
    .grads = RC_BIT(0),
    .in_place = RC_BIT(0),
    .grad_in_place = RC_BIT(0),
    .fwd_flops = rc_op_no_flops,
    .bwd_flops = rc_op_no_flops,
    .tolerance = 1e-6,
};
