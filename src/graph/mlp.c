/* mlp.c — the dense MLP of one layer: norm, fc1, activation, fc2, bias-dropout-add.
 *
 *   x [n,h] -> norm -> fc1 [N,f/t] or gate|up [N,2f/t] -> act [N,f/t] -> fc2 [n,h] -> + x
 *
 * Names and order are Megatron's (megatron/core/transformer/mlp.py).
 */
#include "graph/builder.h"

int rc_build_mlp_branch(rc_builder *b, int x)
{
    const rc_config *cfg = b->cfg;
    bool has_fused_norm = b->graph->profile == RC_PROFILE_MEGATRON_TE;
    int norm_op = rc_build_count_ops(b);
    int y = rc_build_norm(b, "pre_mlp_layernorm", x);
    if (!has_fused_norm)
        rc_build_region(b, RC_LABEL_layernorm, norm_op, norm_op);

    /* A norm fused into fc1 is inside the module, so label mlp covers it. */
    int first_op = has_fused_norm ? norm_op : rc_build_count_ops(b);
    y = rc_build_enter_tp(b, "mlp.linear_fc1.gathered", y);
    const char *bias_shape = cfg->gated_linear_unit ? "[2f/t]" : "[f/t]";
    int fc1 = rc_build_linear(
        b, &(rc_linear_parts){.part = "mlp.linear_fc1",
                              .x = y,
                              .weight_shape = cfg->gated_linear_unit ? "[2f/t, h]" : "[f/t, h]",
                              .bias_shape = cfg->add_bias_linear ? bias_shape : NULL,
                              .out_shape = cfg->gated_linear_unit ? "[N, 2f/t]" : "[N, f/t]",
                              .grad_group = rc_build_grad_group(b)});
    const rc_dims *dims = &b->graph->dims;
    int act = rc_build_activation(b, &(rc_activation_parts){.part = "mlp.activation",
                                                            .x = fc1,
                                                            .weights = RC_ABSENT,
                                                            .n = dims->N,
                                                            .f = dims->f / dims->t,
                                                            .shape = "[N, f/t]"});
    int bias = cfg->add_bias_linear
                   ? rc_build_weight(b, "mlp.linear_fc2.bias", "[h]", RC_INIT_ZERO, 0)
                   : RC_ABSENT;
    int fc2 = rc_build_linear(b, &(rc_linear_parts){.part = "mlp.linear_fc2",
                                                    .x = act,
                                                    .weight_shape = "[h, f/t]",
                                                    .out_shape = rc_build_product_shape(b),
                                                    .init_std = rc_build_scaled_init_std(b)});
    fc2 = rc_build_leave_tp(b, "mlp.linear_fc2.reduced", fc2);
    rc_build_region(b, RC_LABEL_mlp, first_op, rc_build_count_ops(b) - 1);
    return rc_build_bias_dropout_add(b, "mlp_bda", fc2, x, bias);
}
