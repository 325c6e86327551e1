/* activation.c — act(x), or act(gate) * up. Backward reads x, never y. */
#include "op/facts.h"

const rc_op_facts rc_op_activation = {
    .name = "activation",
    .n_in = 1,
    .n_out = 1,
    .needs_in = RC_BIT(0),
    .grads = RC_BIT(0),
    .fwd_flops = rc_op_no_flops,
    .bwd_flops = rc_op_no_flops,
    .tolerance = 2e-6,
};
