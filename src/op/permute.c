/* permute.c — rows in the order of the experts that they go to, and back. Backward moves gradients by the same order,
 * which is all that it reads. source  Megatron-LM megatron/core/transformer/moe/moe_utils.py, permute and unpermute;
 * TransformerEngine pytorch/permutation.py */
#include "op/facts.h"

const rc_op_facts rc_op_permute = {
    .name = "permute",
    .n_in = 2,
    .n_out = 2,
    .needs_in = RC_BIT(1),
    .needs_out = RC_BIT(1),
    .grads = RC_BIT(0),
    .fwd_flops = rc_op_no_flops,
    .bwd_flops = rc_op_no_flops,
};

const rc_op_facts rc_op_permute_probs = {
    .name = "permute_probs",
    .n_in = 2,
    .n_out = 2,
    .needs_in = RC_BIT(1),
    .needs_out = RC_BIT(1),
    .grads = RC_BIT(0),
    .fwd_flops = rc_op_no_flops,
    .bwd_flops = rc_op_no_flops,
};

const rc_op_facts rc_op_unpermute = {
    .name = "unpermute",
    .n_in = 2,
    .n_out = 1,
    .needs_in = RC_BIT(1),
    .grads = RC_BIT(0),
    .fwd_flops = rc_op_no_flops,
    .bwd_flops = rc_op_no_flops,
};
