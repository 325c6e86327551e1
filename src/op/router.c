/* op/router.c — how a token chooses its experts. What backward reads of each is what its autograd function saves: of a
 * softmax and a sigmoid the output, of a choice the indices, of a quotient both terms. The two losses stand on what they
 * balance as identities that add a gradient.
 * source  Megatron-LM megatron/core/transformer/moe/moe_utils.py; TransformerEngine pytorch/router.py */
#include "op/facts.h"

const rc_op_facts rc_op_gate = {
    .name = "gate",
    .n_in = 1,
    .n_out = 1,
    .needs_out = RC_BIT(0),
    .grads = RC_BIT(0),
    .fwd_flops = rc_op_no_flops,
    .bwd_flops = rc_op_no_flops,
};

const rc_op_facts rc_op_normalize_rows = {
    .name = "normalize_rows",
    .n_in = 1,
    .n_out = 2,
    .needs_in = RC_BIT(0),
    .needs_out = RC_BIT(1),
    .grads = RC_BIT(0),
    .fwd_flops = rc_op_no_flops,
    .bwd_flops = rc_op_no_flops,
};

const rc_op_facts rc_op_topk = {
    .name = "topk",
    .n_in = 1,
    .n_out = 3,
    .needs_out = RC_BIT(1) | RC_BIT(2),
    .grads = RC_BIT(0),
    .fwd_flops = rc_op_no_flops,
    .bwd_flops = rc_op_no_flops,
};

const rc_op_facts rc_op_scatter_probs = {
    .name = "scatter_probs",
    .n_in = 2,
    .n_out = 1,
    .needs_in = RC_BIT(1),
    .grads = RC_BIT(0),
    .fwd_flops = rc_op_no_flops,
    .bwd_flops = rc_op_no_flops,
};

const rc_op_facts rc_op_mask_probs = {
    .name = "mask_probs",
    .n_in = 1,
    .n_out = 2,
    .needs_out = RC_BIT(1),
    .grads = RC_BIT(0),
    .fwd_flops = rc_op_no_flops,
    .bwd_flops = rc_op_no_flops,
};

const rc_op_facts rc_op_fused_router = {
    .name = "fused_router",
    .n_in = 1,
    .n_out = 3,
    .needs_out = RC_BIT(1) | RC_BIT(2),
    .grads = RC_BIT(0),
    .fwd_flops = rc_op_no_flops,
    .bwd_flops = rc_op_no_flops,
};

const rc_op_facts rc_op_z_loss = {
    .name = "z_loss",
    .n_in = 1,
    .n_out = 3,
    .needs_out = RC_BIT(0) | RC_BIT(1) | RC_BIT(2),
    .grads = RC_BIT(0),
    .in_place = RC_BIT(0),
    .fwd_flops = rc_op_no_flops,
    .bwd_flops = rc_op_no_flops,
};

const rc_op_facts rc_op_aux_loss = {
    .name = "aux_loss",
    .n_in = 2,
    .n_out = 3,
    .needs_out = RC_BIT(1) | RC_BIT(2),
    .grads = RC_BIT(0) | RC_BIT(1),
    .in_place = RC_BIT(0),
    .fwd_flops = rc_op_no_flops,
    .bwd_flops = rc_op_no_flops,
};
