/* ends.c — the two ends of the model: embeddings, and final norm, output layer and loss; and those of a chunk
 * between them, which receives and sends. */
#include "graph/builder.h"

#include <string.h>

/* A row a word, and rows behind them that only make V a round number. Of the engine's those are 0:
 * no token reads them and the softmax ends before them, so they have no gradient, and weight decay
 * of 0 is 0. In Megatron they are words that no target ever names (W is V). */
int rc_build_words(rc_builder *b, const char *part)
{
    const rc_dims *dims = &b->graph->dims;
    int w = rc_build_weight(b, part, "[V/t, h]", RC_INIT_NORMAL, b->cfg->init_method_std);
    if (b->code == RC_OK)
        rc_build_row(b, w)->n_used = dims->W / dims->t * dims->h;
    return w;
}

int rc_build_lookup(rc_builder *b, int words, int positions)
{
    const rc_graph *graph = b->graph;
    const bool is_cut = graph->dims.t > 1;
    /* A rank has the rows of its own words; the others' are 0 until the ranks are added up. */
    const char *part = is_cut ? "word_embeddings" : "output";
    int y =
        rc_build_tensor(b, part, RC_TENSOR_ACTIVATION, graph->dtype, rc_build_product_shape(b));
    rc_op_parts op = {
        .kind = RC_OP_embedding,
        .part = part,
        .attr = {.n = graph->dims.N, .h = graph->dims.h, .V = graph->dims.V / graph->dims.t},
        .in = RC_OPERANDS(graph->tokens, words, positions),
        .out = RC_OPERANDS(y)};
    rc_build_op(b, &op);
    return rc_build_leave_tp(b, "output", y);
}

int rc_build_embedding(rc_builder *b, int *words)
{
    const rc_config *cfg = b->cfg;
    bool has_positions = strcmp(cfg->position_embedding_type, "learned_absolute") == 0;
    *words = rc_build_words(b, "word_embeddings.weight");
    int positions = has_positions ? rc_build_weight(b, "position_embeddings.weight", "[s, h]",
                                                    RC_INIT_NORMAL, cfg->init_method_std)
                                  : RC_ABSENT;
    int y = rc_build_lookup(b, *words, positions);
    return rc_build_dropout(b, "embedding_dropout", y, cfg->hidden_dropout);
}

int rc_build_recv(rc_builder *b)
{
    int y = rc_build_tensor(b, "received", RC_TENSOR_ACTIVATION, b->graph->dtype, "[n, h]");
    rc_op_parts op = {.kind = RC_OP_recv,
                      .part = "received",
                      .attr = {.group = RC_GROUP_PP},
                      .out = RC_OPERANDS(y)};
    rc_build_op(b, &op);
    return y;
}

void rc_build_send(rc_builder *b, int x)
{
    rc_op_parts op = {.kind = RC_OP_send,
                      .part = "sent",
                      .attr = {.group = RC_GROUP_PP},
                      .in = RC_OPERANDS(x)};
    rc_build_op(b, &op);
}

/* Does the gradient take the place of the logits? Transformer Engine's loss does so before 2.18, which keeps the
 * gradient in float32 beside them. source  transformer_engine/pytorch/triton/cross_entropy.py, commit 01bbe3ee */
static bool writes_over_logits(const rc_builder *b)
{
    const rc_config *cfg = b->cfg;
    if (b->is_engine)
        return true;
    return cfg->cross_entropy_loss_fusion && b->te_version < 218 &&
           strcmp(cfg->cross_entropy_fusion_impl, "te") == 0;
}

/* Engine: backward reads the logits and their log-sum-exp, and writes dlogits over the logits.
 * Megatron (fusions/fused_cross_entropy.py): keeps the softmax in fp32, the logits die. */
static int build_cross_entropy(rc_builder *b, rc_tensor_kind kind, int logits)
{
    rc_graph *graph = b->graph;
    const bool is_over = writes_over_logits(b);
    int kept =
        is_over ? rc_build_tensor(b, "loss.lse", RC_TENSOR_STATS, RC_F32, "[N]")
                : rc_build_tensor(b, "loss.softmax", RC_TENSOR_ACTIVATION, RC_F32, "[N, W/t]");
    int loss = rc_build_tensor(b, "loss", kind, RC_F32, "[1]");
    rc_op_parts op = {
        .kind = RC_OP_cross_entropy,
        .part = "loss",
        .attr = {.n = graph->dims.N, .V = graph->dims.W / graph->dims.t, .loss_scale = 1.0},
        .in = RC_OPERANDS(logits, graph->targets),
        .out = RC_OPERANDS(loss, kept)};
    int at = rc_build_op(b, &op);
    if (!is_over && b->code == RC_OK)
        rc_build_op_row(b, at)->needs_in &= ~1u;
    return loss;
}

int rc_build_output_words(rc_builder *b, int words)
{
    if (words == RC_ABSENT || !b->cfg->share_embeddings_and_output_weights)
        return rc_build_words(b, "output_layer.weight");
    return words;
}

int rc_build_loss(rc_builder *b, rc_tensor_kind kind, int x, int words)
{
    const rc_graph *graph = b->graph;
    int y = rc_build_enter_tp(b, "output_layer.gathered", x);
    int logits =
        rc_build_tensor(b, "output_layer", RC_TENSOR_ACTIVATION, graph->dtype, "[N, W/t]");
    rc_op_parts op = {.kind = RC_OP_linear,
                      .part = "output_layer",
                      .attr = {.n = graph->dims.N,
                               .in = graph->dims.h,
                               .out = graph->dims.W / graph->dims.t,
                               .group = rc_build_grad_group(b)},
                      .in = RC_OPERANDS(y, words),
                      .out = RC_OPERANDS(logits)};
    rc_build_op(b, &op);
    return build_cross_entropy(b, kind, logits);
}
