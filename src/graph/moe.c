/* moe.c — a mixture of experts in the place of the MLP: norm, shared experts, router, dispatcher, routed experts.
 *
 *   x [n,h] -> norm -> shared experts ------------------------------------------------+
 *                   -> router -> probabilities [n,E]                                  |
 *                   -> (latent projection) -> dispatch -> experts -> combine -> (back) + -> + x
 *
 * The norm is a module in both profiles: several modules read it. Label moe covers all behind it.
 *
 * source  Megatron-LM megatron/core/transformer/moe/moe_layer.py; models/gpt/gpt_layer_specs.py
 */
#include "graph/dispatch.h"
#include "graph/experts.h"
#include "graph/router.h"
#include "graph/shared_experts.h"

static int build_latent(rc_builder *b, const char *part, int x, const char *weight_shape,
                        const char *out_shape)
{
    if (b->graph->dims.hl == b->graph->dims.h &&
        b->cfg->origin[RC_FIELD_moe_latent_size].is_null)
        return x;
    return rc_build_linear(b, &(rc_linear_parts){.part = part,
                                                 .x = x,
                                                 .weight_shape = weight_shape,
                                                 .out_shape = out_shape,
                                                 .n = b->graph->dims.n});
}

int rc_build_moe_branch(rc_builder *b, int x)
{
    const int norm_op = rc_build_count_ops(b);
    int y = rc_build_norm(b, "pre_mlp_layernorm", x);
    rc_build_region(b, RC_LABEL_layernorm, norm_op, norm_op);
    const int first = rc_build_count_ops(b);
    rc_shared shared = rc_build_shared(b, y);
    const int probs = rc_build_router(b, y);
    int rows = build_latent(b, "mlp.fc1_latent_proj", y, "[hl, h]", "[n, hl]");
    const rc_dispatch way = rc_build_dispatch(b, rows, probs, &shared);
    rows = rc_build_combine(b, rc_build_experts(b, &way), &way, &shared);
    y = build_latent(b, "mlp.fc2_latent_proj", rows, "[h, hl]", "[n, h]");
    y = rc_build_shared_add(b, y, &shared);
    rc_build_region(b, RC_LABEL_moe, first, rc_build_count_ops(b) - 1);
    return rc_build_bias_dropout_add(b, "mlp_bda", y, x, RC_ABSENT);
}
