/* cross_entropy.c — mean loss over the tokens whose target is not masked. Backward reads logits, targets
 * and lse, and may write over the logits. */
#include "op/facts.h"

const rc_op_facts rc_op_cross_entropy = {
    .name = "cross_entropy",
    .n_in = 2,
    .n_out = 2,
    .needs_in = RC_BIT(0) | RC_BIT(1),
    .needs_out = RC_BIT(1),
    .grads = RC_BIT(0),
    .grad_over_input = RC_BIT(0),
    .seeds_grad = true,
    .fwd_flops = rc_op_no_flops,
    .bwd_flops = rc_op_no_flops,
    .tolerance = 5e-6,
};
