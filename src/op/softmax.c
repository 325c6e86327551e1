/* softmax.c — probabilities of the keys a query sees. Backward reads p alone. */
#include "op/facts.h"

const rc_op_facts rc_op_softmax = {
    .name = "softmax",
    .n_in = 1,
    .n_out = 1,
    .needs_out = RC_BIT(0),
    .grads = RC_BIT(0),
    .in_place = RC_BIT(0),
    .grad_in_place = RC_BIT(0),
    .fwd_flops = rc_op_no_flops,
    .bwd_flops = rc_op_no_flops,
    .tolerance = 5e-6,
};
