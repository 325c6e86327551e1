/* heads.c — ops that move parts of heads and compute nothing. Backward moves the gradient back; of a part that stands in
 * every head it is the sum over them. source  Megatron-LM megatron/core/transformer/multi_latent_attention.py,
 * qkv_up_proj_and_rope_apply; TransformerEngine dot_product_attention.py, _pad_qkv_head_dim */
#include "op/facts.h"

const rc_op_facts rc_op_concat_heads = {
    .name = "concat_heads",
    .n_in = 2,
    .n_out = 1,
    .grads = RC_BIT(0) | RC_BIT(1),
    .fwd_flops = rc_op_no_flops,
    .bwd_flops = rc_op_no_flops,
};

const rc_op_facts rc_op_resize_heads = {
    .name = "resize_heads",
    .n_in = 1,
    .n_out = 1,
    .grads = RC_BIT(0),
    .fwd_flops = rc_op_no_flops,
    .bwd_flops = rc_op_no_flops,
};
