/* attention.c — self-attention of one layer: norm, projections, core, bias-dropout-add.
 *
 * The order and the names are Megatron's (megatron/core/transformer/attention.py). The rows of the
 * qkv weight are all query heads, then all key heads, then all value heads.
 *
 *   x [n,h] -> norm -> qkv [N,(a+2g)d/t] -> q, k, v (views) -> qk norm -> rotary
 *     -> core attention -> o [N,ad/t] -> proj [n,h] -> + x
 */
#include "graph/builder.h"

typedef struct heads {
    int q, k, v;
} heads;

/* RMS or layer norm of every head: rows of width d, `groups` of them a token. */
static int build_head_norm(rc_builder *b, const char *part, int x, int64_t groups,
                           const char *shape, const char *stats_shape)
{
    return rc_build_norm_of(b, &(rc_norm_parts){.part = part,
                                                .x = x,
                                                .weight_shape = "[d]",
                                                .out_shape = shape,
                                                .stats_shape = stats_shape,
                                                .n = b->graph->dims.N,
                                                .h = b->graph->dims.d,
                                                .groups = groups});
}

static int build_rope(rc_builder *b, const char *part, int x, int64_t groups, const char *shape)
{
    rc_graph *graph = b->graph;
    int y = b->is_engine ? rc_build_overwrite(b, part, x)
                         : rc_build_tensor(b, part, RC_TENSOR_ACTIVATION, graph->dtype, shape);
    rc_op_parts op = {.kind = RC_OP_rope,
                      .part = part,
                      .attr = b->rope,
                      .in = RC_OPERANDS(x),
                      .out = RC_OPERANDS(y)};
    op.attr.n = graph->dims.N;
    op.attr.groups = groups;
    rc_build_op(b, &op);
    return y;
}

/* Query, key and value up to where label core_attn starts. */
static heads build_heads(rc_builder *b, int qkv)
{
    const rc_config *cfg = b->cfg;
    const rc_dims *dims = &b->graph->dims;
    int64_t al = dims->a / dims->t, gl = dims->g / dims->t;
    heads at = {
        .q = rc_build_view(b, "self_attention.query", qkv, "[N, ad/t]", 0),
        .k = rc_build_view(b, "self_attention.key", qkv, "[N, gd/t]", al * dims->d),
        .v = rc_build_view(b, "self_attention.value", qkv, "[N, gd/t]", (al + gl) * dims->d)};
    if (cfg->qk_layernorm &&
        !b->is_engine) { /* the norms of both profiles copy strided input */
        at.q = rc_build_contiguous(b, "self_attention.query_contiguous", at.q, "[N, ad/t]");
        at.k = rc_build_contiguous(b, "self_attention.key_contiguous", at.k, "[N, gd/t]");
    }
    if (cfg->qk_layernorm) {
        at.q =
            build_head_norm(b, "self_attention.q_layernorm", at.q, al, "[N, ad/t]", "[N, a/t]");
        at.k =
            build_head_norm(b, "self_attention.k_layernorm", at.k, gl, "[N, gd/t]", "[N, g/t]");
    }
    if (b->has_rope) {
        at.q = build_rope(b, "self_attention.query_rotary", at.q, al, "[N, ad/t]");
        at.k = build_rope(b, "self_attention.key_rotary", at.k, gl, "[N, gd/t]");
    } else if (!b->is_engine && !cfg->qk_layernorm && dims->a != dims->g) {
        /* Megatron reshapes the grouped query to its heads, which copies it. */
        at.q = rc_build_contiguous(b, "self_attention.query_contiguous", at.q, "[N, ad/t]");
    }
    return at;
}

/* What a profile's core attention copies before it starts: Transformer Engine makes strided
 * operands contiguous unless query, key and value are one interleaved buffer; Megatron's local
 * backend repeats grouped keys and values to every query head. */
static heads build_core_copies(rc_builder *b, heads at)
{
    const rc_graph *graph = b->graph;
    if (b->code != RC_OK || b->is_engine)
        return at;
    if (!rc_build_has_fused_core(b)) {
        if (graph->dims.a == graph->dims.g)
            return at;
        at.k = rc_build_contiguous(b, "self_attention.key_repeated", at.k, "[N, ad/t]");
        at.v = rc_build_contiguous(b, "self_attention.value_repeated", at.v, "[N, ad/t]");
        return at;
    }
    const bool is_one_buffer =
        rc_build_row(b, at.q)->view_of >= 0 && rc_build_row(b, at.k)->view_of >= 0;
    if (is_one_buffer && graph->dims.c == 1)
        return at;
    if (is_one_buffer) /* context parallelism takes no slices */
        at.q = rc_build_contiguous(b, "self_attention.query_contiguous", at.q, "[N, ad/t]");
    if (rc_build_row(b, at.k)->view_of >= 0)
        at.k = rc_build_contiguous(b, "self_attention.key_contiguous", at.k, "[N, gd/t]");
    at.v = rc_build_contiguous(b, "self_attention.value_contiguous", at.v, "[N, gd/t]");
    return at;
}

int rc_build_attention_branch(rc_builder *b, int x)
{
    const rc_config *cfg = b->cfg;
    bool has_fused_norm = b->graph->profile == RC_PROFILE_MEGATRON_TE;
    int norm_op = rc_build_count_ops(b);
    int y = rc_build_norm(b, "input_layernorm", x);
    if (!has_fused_norm)
        rc_build_region(b, RC_LABEL_layernorm, norm_op, norm_op);

    bool has_qkv_bias = cfg->add_bias_linear || cfg->add_qkv_bias;
    y = rc_build_enter_tp(b, "self_attention.linear_qkv.gathered", y);
    int qkv =
        rc_build_linear(b, &(rc_linear_parts){.part = "self_attention.linear_qkv",
                                              .x = y,
                                              .weight_shape = "[(a+2g)d/t, h]",
                                              .bias_shape = has_qkv_bias ? "[(a+2g)d/t]" : NULL,
                                              .out_shape = "[N, (a+2g)d/t]",
                                              .grad_group = rc_build_grad_group(b)});
    heads at = build_heads(b, qkv);
    int core_op = rc_build_count_ops(b);
    at = build_core_copies(b, at);
    const rc_dims *dims = &b->graph->dims;
    int o = rc_build_core(b, &(rc_core_parts){.q = at.q,
                                              .k = at.k,
                                              .v = at.v,
                                              .g = dims->g / dims->t,
                                              .d = dims->d,
                                              .dv = dims->d,
                                              .value_shape = "[N, gd/t]",
                                              .query_shape = "[N, ad/t]",
                                              .key_shape = "[N, gd/t]",
                                              .out_shape = "[N, ad/t]",
                                              .keys_shape = "[cN, gd/t]",
                                              .values_shape = "[cN, gd/t]",
                                              .pair_shape = "[N, 2gd/t]",
                                              .pairs_shape = "[cN, 2gd/t]",
                                              .steps_shape = "[cN, ad/t]"});
    rc_build_region(b, RC_LABEL_core_attn, core_op, rc_build_count_ops(b) - 1);

    int bias = cfg->add_bias_linear ? rc_build_weight(b, "self_attention.linear_proj.bias",
                                                      "[h]", RC_INIT_ZERO, 0)
                                    : RC_ABSENT;
    int proj = rc_build_linear(b, &(rc_linear_parts){.part = "self_attention.linear_proj",
                                                     .x = o,
                                                     .weight_shape = "[h, ad/t]",
                                                     .out_shape = rc_build_product_shape(b),
                                                     .init_std = rc_build_scaled_init_std(b)});
    proj = rc_build_leave_tp(b, "self_attention.linear_proj.reduced", proj);
    return rc_build_bias_dropout_add(b, "self_attn_bda", proj, x, bias);
}
