/* mla.c — multi-latent attention of one layer: queries, keys and values out of narrow projections.
 *
 *   x [n,h] -> norm -> q_down [n,rq] -> norm -> q_up [N,a(dqk+dr)/t]             -> query
 *                   -> kv_down [n,rkv+dr] = latent | rotary key
 *                      latent -> norm -> kv_up [N,a(dqk+dv)/t] = key part | value -> key, value
 *     rotary key, one for all heads, beside each key part
 *     -> core attention -> o [N,adv/t] -> proj [n,h] -> + x
 *
 * Order and names are Megatron's (megatron/core/transformer/multi_latent_attention.py; which modules:
 * models/gpt/gpt_layer_specs.py). Transformer Engine's down projections are whole on every rank and read its share of
 * the tokens, and their norms are fused into the up projections. Megatron's own are cut over the tensor-parallel group,
 * and the norms are modules. Of a head's two parts the first of all heads stands before the second of all.
 */
#include "graph/builder.h"

typedef struct latent {
    /* q [n,rq], or the norm's output where queries are not compressed; kv [n,rkv]; rotary [N,dr] */
    int q, kv, rotary;
} latent;

static bool has_fused_norms(const rc_builder *b)
{
    return b->graph->profile == RC_PROFILE_MEGATRON_TE;
}

/* ---- down ---- */

static int build_whole_down(rc_builder *b, const char *part, int x, const char *weight_shape,
                            const char *out_shape)
{
    return rc_build_linear(b, &(rc_linear_parts){.part = part,
                                                 .x = x,
                                                 .weight_shape = weight_shape,
                                                 .out_shape = out_shape,
                                                 .n = b->graph->dims.n});
}

static latent build_whole_downs(rc_builder *b, int x)
{
    latent at = {.q = x};
    if (b->graph->dims.rq > 0)
        at.q =
            build_whole_down(b, "self_attention.linear_q_down_proj", x, "[rq, h]", "[n, rq]");
    int kv = build_whole_down(b, "self_attention.linear_kv_down_proj", x, "[rkv+dr, h]",
                              "[n, rkv+dr]");
    at.kv = rc_build_view(b, "self_attention.kv_compressed", kv, "[n, rkv]", 0);
    at.rotary = rc_build_view(b, "self_attention.k_pos_emb", kv, "[n, dr]", b->graph->dims.rkv);
    at.rotary =
        rc_build_gather_rows(b, "self_attention.k_pos_emb.gathered", at.rotary, "[N, dr]");
    return at;
}

static latent build_cut_downs(rc_builder *b, int x)
{
    const rc_comm_group group = rc_build_grad_group(b);
    latent at = {.q = x};
    if (b->graph->dims.rq > 0) {
        int y = rc_build_enter_tp(b, "self_attention.linear_q_down_proj.gathered", x);
        y = rc_build_linear(b, &(rc_linear_parts){.part = "self_attention.linear_q_down_proj",
                                                  .x = y,
                                                  .weight_shape = "[rq/t, h]",
                                                  .out_shape = "[N, rq/t]",
                                                  .grad_group = group});
        y = rc_build_gather_columns(b, "self_attention.q_compressed", y, "[N, rq]");
        at.q = rc_build_scatter_rows(b, "self_attention.q_compressed.share", y, "[n, rq]");
    }
    int kv = rc_build_enter_tp(b, "self_attention.linear_kv_down_proj.gathered", x);
    kv = rc_build_linear(b, &(rc_linear_parts){.part = "self_attention.linear_kv_down_proj",
                                               .x = kv,
                                               .weight_shape = "[(rkv+dr)/t, h]",
                                               .out_shape = "[N, (rkv+dr)/t]",
                                               .grad_group = group});
    kv = rc_build_gather_columns(b, "self_attention.kv_combined", kv, "[N, rkv+dr]");
    at.kv = rc_build_view(b, "self_attention.kv_compressed", kv, "[N, rkv]", 0);
    at.rotary = rc_build_view(b, "self_attention.k_pos_emb", kv, "[N, dr]", b->graph->dims.rkv);
    at.kv = rc_build_scatter_rows(b, "self_attention.kv_compressed.share", at.kv, "[n, rkv]");
    return at;
}

/* ---- up ---- */

/* Modules of Transformer Engine and the norms of both profiles copy a slice before they read it. */
static int build_compact(rc_builder *b, const char *part, int x, const char *shape)
{
    if (b->code != RC_OK || rc_build_row(b, x)->view_of < 0)
        return x;
    return rc_build_contiguous(b, part, x, shape);
}

static int build_query_norm(rc_builder *b, int x)
{
    return rc_build_norm_of(b, &(rc_norm_parts){.part = "self_attention.q_layernorm",
                                                .x = x,
                                                .weight_shape = "[rq]",
                                                .out_shape = "[n, rq]",
                                                .stats_shape = "[n]",
                                                .n = b->graph->dims.n,
                                                .h = b->graph->dims.rq,
                                                .groups = 1});
}

static int build_key_norm(rc_builder *b, int x)
{
    x = build_compact(b, "self_attention.kv_compressed.contiguous", x, "[n, rkv]");
    return rc_build_norm_of(b, &(rc_norm_parts){.part = "self_attention.kv_layernorm",
                                                .x = x,
                                                .weight_shape = "[rkv]",
                                                .out_shape = "[n, rkv]",
                                                .stats_shape = "[n]",
                                                .n = b->graph->dims.n,
                                                .h = b->graph->dims.rkv,
                                                .groups = 1});
}

/* Norms that are modules, of which the up projections read the output. */
static latent build_norms(rc_builder *b, latent at)
{
    if (!b->cfg->qk_layernorm || has_fused_norms(b))
        return at;
    if (b->graph->dims.rq > 0)
        at.q = build_query_norm(b, at.q);
    at.kv = build_key_norm(b, at.kv);
    return at;
}

static int build_query_up(rc_builder *b, int x)
{
    const bool is_narrow = b->graph->dims.rq > 0;
    const char *part =
        is_narrow ? "self_attention.linear_q_up_proj" : "self_attention.linear_q_proj";
    if (is_narrow && b->cfg->qk_layernorm && has_fused_norms(b))
        x = build_query_norm(b, x);
    x = rc_build_enter_tp_as(b, "self_attention.linear_q_up_proj.gathered", x,
                             is_narrow ? "[N, rq]" : "[N, h]");
    return rc_build_linear(b, &(rc_linear_parts){.part = part,
                                                 .x = x,
                                                 .weight_shape = is_narrow ? "[a(dqk+dr)/t, rq]"
                                                                           : "[a(dqk+dr)/t, h]",
                                                 .out_shape = "[N, a(dqk+dr)/t]",
                                                 .grad_group = rc_build_grad_group(b)});
}

static int build_key_up(rc_builder *b, int x)
{
    if (has_fused_norms(b))
        x = b->cfg->qk_layernorm
                ? build_key_norm(b, x)
                : build_compact(b, "self_attention.kv_compressed.contiguous", x, "[n, rkv]");
    x = rc_build_enter_tp_as(b, "self_attention.linear_kv_up_proj.gathered", x, "[N, rkv]");
    return rc_build_linear(b, &(rc_linear_parts){.part = "self_attention.linear_kv_up_proj",
                                                 .x = x,
                                                 .weight_shape = "[a(dqk+dv)/t, rkv]",
                                                 .out_shape = "[N, a(dqk+dv)/t]",
                                                 .grad_group = rc_build_grad_group(b)});
}

static int build_rope(rc_builder *b, const char *part, int x, int y, int64_t groups)
{
    const rc_dims *dims = &b->graph->dims;
    rc_op_parts op = {.kind = RC_OP_rope,
                      .part = part,
                      .attr = {.n = dims->N,
                               .groups = groups,
                               .d = dims->dr,
                               .rotary_dim = dims->dr,
                               .rotary_base = b->cfg->rotary_base},
                      .in = RC_OPERANDS(x),
                      .out = RC_OPERANDS(y)};
    rc_build_op(b, &op);
    return y;
}

static int build_concat(rc_builder *b, const char *part, int first, int second)
{
    int y = rc_build_tensor(b, part, RC_TENSOR_ACTIVATION, b->graph->dtype, "[N, a(dqk+dr)/t]");
    rc_op_parts op = {.kind = RC_OP_concat_heads,
                      .part = part,
                      .in = RC_OPERANDS(first, second),
                      .out = RC_OPERANDS(y)};
    rc_build_op(b, &op);
    return y;
}

/* One kernel turns the rotary part where it stands; without it both parts are written anew. */
static int build_query(rc_builder *b, int x)
{
    const rc_dims *dims = &b->graph->dims;
    const int64_t al = dims->a / dims->t;
    if (b->cfg->apply_rope_fusion)
        return build_rope(b, "self_attention.query", x,
                          rc_build_overwrite(b, "self_attention.query", x), al);
    int part = rc_build_view(b, "self_attention.q_no_pe", x, "[N, adqk/t]", 0);
    int rotary = rc_build_view(b, "self_attention.q_pos_emb", x, "[N, adr/t]", al * dims->dqk);
    int turned = rc_build_tensor(b, "self_attention.q_pos_emb.rotary", RC_TENSOR_ACTIVATION,
                                 b->graph->dtype, "[N, adr/t]");
    build_rope(b, "self_attention.q_pos_emb.rotary", rotary, turned, al);
    return build_concat(b, "self_attention.query", part, turned);
}

/* The fused kernel turns the rotary key while it writes the key, so nothing stands between. */
static int build_key(rc_builder *b, int kv, int rotary)
{
    int part = rc_build_view(b, "self_attention.k_no_pe", kv, "[N, adqk/t]", 0);
    if (!b->cfg->apply_rope_fusion) {
        int turned = rc_build_tensor(b, "self_attention.k_pos_emb.rotary", RC_TENSOR_ACTIVATION,
                                     b->graph->dtype, "[N, dr]");
        rotary = build_rope(b, "self_attention.k_pos_emb.rotary", rotary, turned, 1);
    }
    return build_concat(b, "self_attention.key", part, rotary);
}

/* What label mla_up_proj covers: it starts from the latents, and from the rotary key. */
static rc_core_parts build_heads(rc_builder *b, latent at)
{
    const rc_dims *dims = &b->graph->dims;
    const int64_t al = dims->a / dims->t;
    const int first = rc_build_count_ops(b);
    int q = build_query_up(b, at.q);
    int kv = build_key_up(b, at.kv);
    q = build_query(b, q);
    int k = build_key(b, kv, at.rotary);
    int v = rc_build_view(b, "self_attention.value.slice", kv, "[N, adv/t]", al * dims->dqk);
    v = rc_build_contiguous(b, "self_attention.value", v, "[N, adv/t]");
    rc_build_region(b, RC_LABEL_mla_up_proj, first, rc_build_count_ops(b) - 1);
    return (rc_core_parts){.q = q,
                           .k = k,
                           .v = v,
                           .g = al,
                           .d = dims->dqk + dims->dr,
                           .dv = dims->dv,
                           .query_shape = "[N, a(dqk+dr)/t]",
                           .key_shape = "[N, a(dqk+dr)/t]",
                           .value_shape = "[N, adv/t]",
                           .out_shape = "[N, adv/t]",
                           .keys_shape = "[cN, a(dqk+dr)/t]",
                           .values_shape = "[cN, adv/t]",
                           .pair_shape = "[N, a(dqk+dr+dv)/t]",
                           .pairs_shape = "[cN, a(dqk+dr+dv)/t]",
                           .steps_shape = "[cN, adv/t]"};
}

int rc_build_mla_branch(rc_builder *b, int x)
{
    const int norm_op = rc_build_count_ops(b);
    int y = rc_build_norm(b, "input_layernorm", x);
    rc_build_region(b, RC_LABEL_layernorm, norm_op, norm_op);
    latent at = b->graph->profile == RC_PROFILE_MEGATRON_TE ? build_whole_downs(b, y)
                                                            : build_cut_downs(b, y);
    at = build_norms(b, at);
    const rc_core_parts core = build_heads(b, at);
    const int core_op = rc_build_count_ops(b);
    int o = rc_build_core(b, &core);
    rc_build_region(b, RC_LABEL_core_attn, core_op, rc_build_count_ops(b) - 1);

    int bias = b->cfg->add_bias_linear ? rc_build_weight(b, "self_attention.linear_proj.bias",
                                                         "[h]", RC_INIT_ZERO, 0)
                                       : RC_ABSENT;
    int proj = rc_build_linear(b, &(rc_linear_parts){.part = "self_attention.linear_proj",
                                                     .x = o,
                                                     .weight_shape = "[h, adv/t]",
                                                     .out_shape = rc_build_product_shape(b),
                                                     .init_std = rc_build_scaled_init_std(b)});
    proj = rc_build_leave_tp(b, "self_attention.linear_proj.reduced", proj);
    return rc_build_bias_dropout_add(b, "self_attn_bda", proj, x, bias);
}
