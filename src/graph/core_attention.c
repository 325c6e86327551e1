/* core_attention.c — attention itself, from query, key and value to its output: what label core_attn covers.
 *
 *   fused    one op; what backward reads of it are query, key, value, output and a log-sum-exp a row
 *   unfused  scores [b,a/t,S,S] -> softmax -> dropout -> context; in Transformer Engine the same tensors stay
 *   ring     context parallelism by p2p: every rank's keys and values come by, the last pair stays, not its own
 *   gathered context parallelism by all_gather: keys and values of all ranks are gathered, in backward again
 *   dealt    context parallelism by a2a: a rank has all tokens of a share of the heads, and its output goes back
 *   flash    FlashAttention-2 as Transformer Engine calls it: rows of a sample stand together in it, so with several
 *            samples operands are turned first and the output last; one width for all heads, the rest is zeros
 *
 * source  Megatron-LM megatron/core/transformer/dot_product_attention.py; TransformerEngine
 *         transformer_engine/pytorch/attention/dot_product_attention/backends.py, FlashAttention and FusedAttnFunc,
 *         dot_product_attention.py, _pad_qkv_head_dim; context_parallel.py
 */
#include "graph/builder.h"

#include <math.h>
#include <string.h>

bool rc_build_has_fused_core(const rc_builder *b)
{
    const char *backend = b->cfg->attention_backend;
    return b->graph->profile != RC_PROFILE_MEGATRON_LOCAL && strcmp(backend, "unfused") != 0 &&
           strcmp(backend, "local") != 0;
}

static bool is_flash(const rc_builder *b)
{
    return b->graph->profile == RC_PROFILE_MEGATRON_TE &&
           strcmp(b->cfg->attention_backend, "flash") == 0;
}

static rc_op_attr core_attr(const rc_builder *b, const rc_core_parts *parts)
{
    const rc_dims *dims = &b->graph->dims;
    const double scale = b->cfg->softmax_scale;
    return (rc_op_attr){.n = dims->N,
                        .a = dims->a / dims->t,
                        .g = parts->g,
                        .d = parts->d,
                        .dv = parts->dv,
                        .n_ranks = dims->c,
                        .scale = isnan(scale) ? 1.0 / sqrt((double)parts->d) : scale,
                        .is_causal = true};
}

static int build_fused(rc_builder *b, const rc_core_parts *parts)
{
    int o = rc_build_tensor(b, "self_attention.core_attention", RC_TENSOR_ACTIVATION,
                            b->graph->dtype, parts->out_shape);
    int lse = rc_build_tensor(b, "self_attention.core_attention.lse", RC_TENSOR_STATS, RC_F32,
                              "[b, a/t, S]");
    rc_op_parts op = {.kind = RC_OP_attention,
                      .part = "self_attention.core_attention",
                      .attr = core_attr(b, parts),
                      .in = RC_OPERANDS(parts->q, parts->k, parts->v),
                      .out = RC_OPERANDS(o, lse)};
    op.attr.p = b->cfg->attention_dropout;
    rc_build_op(b, &op);
    return o;
}

/* As many steps as ranks; the last rank of the ring computes whole outputs in all of them, and is counted. */
static int build_ring(rc_builder *b, const rc_core_parts *parts)
{
    static const char part[] = "self_attention.core_attention";
    const rc_dtype dtype = b->graph->dtype;
    int o = rc_build_tensor(b, part, RC_TENSOR_ACTIVATION, dtype, parts->out_shape);
    int pair = rc_build_tensor(b, "self_attention.core_attention.last_pair",
                               RC_TENSOR_ACTIVATION, dtype, parts->pair_shape);
    int lse = rc_build_tensor(b, "self_attention.core_attention.lse", RC_TENSOR_STATS, RC_F32,
                              "[b, a/t, S]");
    int pairs = rc_build_tensor(b, "self_attention.core_attention.pairs", RC_TENSOR_ACTIVATION,
                                dtype, parts->pairs_shape);
    int steps = rc_build_tensor(b, "self_attention.core_attention.steps", RC_TENSOR_ACTIVATION,
                                dtype, parts->steps_shape);
    rc_op_parts op = {.kind = RC_OP_ring_attention,
                      .part = part,
                      .attr = core_attr(b, parts),
                      .in = RC_OPERANDS(parts->q, parts->k, parts->v),
                      .out = RC_OPERANDS(o, pair, lse, pairs, steps)};
    op.attr.group = RC_GROUP_CP;
    rc_build_op(b, &op);
    return o;
}

static int build_exchanged(rc_builder *b, rc_op_kind kind, const char *part, int x,
                           const char *shape)
{
    int y = rc_build_tensor(b, part, RC_TENSOR_ACTIVATION, b->graph->dtype, shape);
    rc_op_parts op = {.kind = kind,
                      .part = part,
                      .attr = {.group = RC_GROUP_CP},
                      .in = RC_OPERANDS(x),
                      .out = RC_OPERANDS(y)};
    rc_build_op(b, &op);
    return y;
}

/* How ranks of a sequence meet each other's keys: one word for all layers, or a list of it. */
static const char *exchange_of(const rc_config *cfg)
{
    const rc_doc *word = cfg->cp_comm_type;
    if (word && word->kind == RC_DOC_LIST)
        word = word->child;
    return word && word->kind == RC_DOC_STRING ? word->text : "p2p";
}

static int build_gathered(rc_builder *b, const rc_core_parts *parts)
{
    rc_core_parts all = *parts;
    all.k = build_exchanged(b, RC_OP_all_gather, "self_attention.key_gathered", all.k,
                            parts->keys_shape);
    all.v = build_exchanged(b, RC_OP_all_gather, "self_attention.value_gathered", all.v,
                            parts->values_shape);
    return build_fused(b, &all);
}

/* Every rank has the whole sequence of its share of the heads: as many elements, in storages of their own. */
static int build_dealt_out(rc_builder *b, const rc_core_parts *parts)
{
    rc_core_parts own = *parts;
    own.q = build_exchanged(b, RC_OP_all_to_all, "self_attention.query_exchanged", own.q,
                            parts->query_shape);
    own.k = build_exchanged(b, RC_OP_all_to_all, "self_attention.key_exchanged", own.k,
                            parts->key_shape);
    own.v = build_exchanged(b, RC_OP_all_to_all, "self_attention.value_exchanged", own.v,
                            parts->value_shape);
    return build_exchanged(b, RC_OP_all_to_all, "self_attention.core_attention.exchanged",
                           build_fused(b, &own), parts->out_shape);
}

static int build_context_parallel(rc_builder *b, const rc_core_parts *parts)
{
    const char *exchange = exchange_of(b->cfg);
    if (strcmp(exchange, "all_gather") == 0)
        return build_gathered(b, parts);
    return strcmp(exchange, "a2a") == 0 ? build_dealt_out(b, parts) : build_ring(b, parts);
}

/* Heads of x at another width, and rows in another order. */
static int build_turned(rc_builder *b, const char *part, int x, const char *shape)
{
    return rc_build_contiguous(b, part, x, shape);
}

static int build_resized(rc_builder *b, const char *part, int x, const char *shape)
{
    int y = rc_build_tensor(b, part, RC_TENSOR_ACTIVATION, b->graph->dtype, shape);
    rc_op_parts op = {
        .kind = RC_OP_resize_heads, .part = part, .in = RC_OPERANDS(x), .out = RC_OPERANDS(y)};
    rc_build_op(b, &op);
    return y;
}

static int build_flash(rc_builder *b, const rc_core_parts *parts)
{
    const bool is_turned = b->graph->dims.b > 1, is_padded = parts->dv != parts->d;
    rc_core_parts flash = *parts;
    if (b->code == RC_OK && parts->d % 8 != 0) {
        b->code =
            RC_FAIL(b->err, RC_E_UNSUPPORTED, b->cfg->origin[RC_FIELD_attention_backend].where,
                    "attention_backend is flash, which pads heads of %lld elements to a "
                    "multiple of 8; that is not known here, set it to fused",
                    (long long)parts->d);
        return 0;
    }
    if (is_turned) {
        flash.q = build_turned(b, "self_attention.query_turned", flash.q, parts->query_shape);
        flash.k = build_turned(b, "self_attention.key_turned", flash.k, parts->key_shape);
        flash.v = build_turned(b, "self_attention.value_turned", flash.v, parts->value_shape);
    }
    if (is_padded) {
        flash.v = build_resized(b, "self_attention.value_padded", flash.v, parts->key_shape);
        flash.out_shape = parts->query_shape;
        flash.dv = parts->d;
    }
    int o = build_fused(b, &flash);
    if (is_padded) /* cut and turned back by one copy */
        return build_resized(b, "self_attention.core_attention.cut", o, parts->out_shape);
    if (is_turned)
        return build_turned(b, "self_attention.core_attention.turned", o, parts->out_shape);
    return o;
}

static int build_unfused(rc_builder *b, const rc_core_parts *parts)
{
    rc_graph *graph = b->graph;
    static const char shape[] = "[b, a/t, S, S]";
    int scores = rc_build_tensor(b, "self_attention.core_attention.scores",
                                 RC_TENSOR_ACTIVATION, graph->dtype, shape);
    rc_op_parts product = {.kind = RC_OP_attn_scores,
                           .part = "self_attention.core_attention.scores",
                           .attr = core_attr(b, parts),
                           .in = RC_OPERANDS(parts->q, parts->k),
                           .out = RC_OPERANDS(scores)};
    if (!b->is_engine)
        product.attr.g = product.attr.a; /* keys were repeated */
    rc_build_op(b, &product);
    int p = b->is_engine
                ? rc_build_overwrite(b, "self_attention.core_attention.softmax", scores)
                : rc_build_tensor(b, "self_attention.core_attention.softmax",
                                  RC_TENSOR_ACTIVATION, graph->dtype, shape);
    rc_op_parts softmax = {.kind = RC_OP_softmax,
                           .part = "self_attention.core_attention.softmax",
                           .attr = core_attr(b, parts),
                           .in = RC_OPERANDS(scores),
                           .out = RC_OPERANDS(p)};
    rc_build_op(b, &softmax);
    p = rc_build_dropout(b, "self_attention.core_attention.attention_dropout", p,
                         b->cfg->attention_dropout);
    int o = rc_build_tensor(b, "self_attention.core_attention", RC_TENSOR_ACTIVATION,
                            graph->dtype, parts->out_shape);
    rc_op_parts context = {.kind = RC_OP_attn_context,
                           .part = "self_attention.core_attention",
                           .attr = product.attr,
                           .in = RC_OPERANDS(p, parts->v),
                           .out = RC_OPERANDS(o)};
    context.attr.d = parts->dv;
    rc_build_op(b, &context);
    return o;
}

int rc_build_core(rc_builder *b, const rc_core_parts *parts)
{
    if (!rc_build_has_fused_core(b))
        return build_unfused(b, parts);
    if (b->graph->dims.c > 1)
        return build_context_parallel(b, parts);
    return is_flash(b) ? build_flash(b, parts) : build_fused(b, parts);
}
