/* experts.c — the routed experts of a rank: each a gated or plain MLP on its rows, which stand one after another.
 *
 *   rows [R,hl] -> fc1 [R,fe/et] or gate|up [R,2fe/et] -> act, times the row's probability -> fc2 [R,hl]
 *
 * Grouped products and one MLP after another keep the same: slices of rows are no copies. Only grouped experts have an
 * activation that label moe_act covers.
 *
 * source  Megatron-LM megatron/core/transformer/moe/experts.py (TEGroupedMLP, SequentialMLP)
 */
#include "graph/experts.h"

static int build_product(rc_builder *b, const char *part, int x, const char *weight_shape,
                         const char *out_shape)
{
    return rc_build_linear(b, &(rc_linear_parts){.part = part,
                                                 .x = x,
                                                 .weight_shape = weight_shape,
                                                 .out_shape = out_shape,
                                                 .n = b->graph->dims.R});
}

int rc_build_experts(rc_builder *b, const rc_dispatch *way)
{
    const rc_dims *dims = &b->graph->dims;
    const bool is_gated = b->cfg->gated_linear_unit;
    const bool is_grouped =
        b->graph->profile == RC_PROFILE_MEGATRON_TE && b->cfg->moe_grouped_gemm;
    b->is_in_experts = true;
    int y = build_product(b, "mlp.experts.linear_fc1", way->rows,
                          is_gated ? "[el, 2fe/et, hl]" : "[el, fe/et, hl]",
                          is_gated ? "[R, 2fe/et]" : "[R, fe/et]");
    const int first = rc_build_count_ops(b);
    y = rc_build_activation(b,
                            &(rc_activation_parts){.part = "mlp.experts.activation",
                                                   .x = y,
                                                   .weights = way->probs,
                                                   .n = dims->R,
                                                   .f = dims->et > 0 ? dims->fe / dims->et : 0,
                                                   .shape = "[R, fe/et]"});
    if (is_grouped)
        rc_build_region(b, RC_LABEL_moe_act, first, rc_build_count_ops(b) - 1);
    y = build_product(b, "mlp.experts.linear_fc2", y, "[el, hl, fe/et]", "[R, hl]");
    b->is_in_experts = false;
    if (!is_grouped && dims->el > 1)
        y = rc_build_contiguous(b, "mlp.experts.output", y, "[R, hl]");
    return y;
}
