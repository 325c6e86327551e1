/* ends.c — the two ends of the model: embeddings, and final norm, output layer and loss. */
#include "graph/builder.h"

#include <string.h>

/* A row a word, and rows behind them that only make V a round number. Of the engine's those are 0:
 * no token reads them and the softmax ends before them, so they have no gradient, and weight decay
 * of 0 is 0. In Megatron they are words that no target ever names (W is V). */
static int build_words(rc_builder *b, const char *part)
{
    const rc_dims *dims = &b->graph->dims;
    int w = rc_build_weight(b, part, "[V/t, h]", RC_INIT_NORMAL, b->cfg->init_method_std);
    if (b->code == RC_OK)
        rc_build_row(b, w)->n_used = dims->W / dims->t * dims->h;
    return w;
}

int rc_build_embedding(rc_builder *b)
{
    rc_graph *graph = b->graph;
    const rc_config *cfg = b->cfg;
    bool has_positions = strcmp(cfg->position_embedding_type, "learned_absolute") == 0;
    int w = build_words(b, "word_embeddings.weight");
    int positions = has_positions ? rc_build_weight(b, "position_embeddings.weight", "[s, h]",
                                                    RC_INIT_NORMAL, cfg->init_method_std)
                                  : RC_ABSENT;
    int y = rc_build_tensor(b, "output", RC_TENSOR_ACTIVATION, graph->dtype, "[n, h]");
    rc_op_parts op = {
        .kind = RC_OP_embedding,
        .part = "output",
        .attr = {.n = graph->dims.n, .h = graph->dims.h, .V = graph->dims.V / graph->dims.t},
        .in = RC_OPERANDS(graph->tokens, w, positions),
        .out = RC_OPERANDS(y)};
    rc_build_op(b, &op);
    return rc_build_dropout(b, "embedding_dropout", y, cfg->hidden_dropout);
}

/* Engine: backward reads the logits and their log-sum-exp, and writes dlogits over the logits.
 * Megatron (fusions/fused_cross_entropy.py): keeps the softmax in fp32, the logits die. */
static void build_cross_entropy(rc_builder *b, int logits)
{
    rc_graph *graph = b->graph;
    int kept = b->is_engine ? rc_build_tensor(b, "loss.lse", RC_TENSOR_STATS, RC_F32, "[N]")
                            : rc_build_tensor(b, "loss.softmax", RC_TENSOR_ACTIVATION, RC_F32,
                                              "[N, W/t]");
    graph->loss = rc_build_tensor(b, "loss", RC_TENSOR_LOSS, RC_F32, "[1]");
    rc_op_parts op = {
        .kind = RC_OP_cross_entropy,
        .part = "loss",
        .attr = {.n = graph->dims.N, .V = graph->dims.W / graph->dims.t, .loss_scale = 1.0},
        .in = RC_OPERANDS(logits, graph->targets),
        .out = RC_OPERANDS(graph->loss, kept)};
    int at = rc_build_op(b, &op);
    if (!b->is_engine && b->code == RC_OK)
        rc_build_op_row(b, at)->needs_in &= ~1u;
}

void rc_build_loss(rc_builder *b, int x, int word_embeddings)
{
    rc_graph *graph = b->graph;
    int y = rc_build_norm(b, "decoder.final_layernorm", x);
    int w = word_embeddings;
    if (!b->cfg->share_embeddings_and_output_weights)
        w = build_words(b, "output_layer.weight");
    int logits =
        rc_build_tensor(b, "output_layer", RC_TENSOR_ACTIVATION, graph->dtype, "[N, W/t]");
    rc_op_parts op = {
        .kind = RC_OP_linear,
        .part = "output_layer",
        .attr = {.n = graph->dims.N, .in = graph->dims.h, .out = graph->dims.W / graph->dims.t},
        .in = RC_OPERANDS(y, w),
        .out = RC_OPERANDS(logits)};
    rc_build_op(b, &op);
    build_cross_entropy(b, logits);
}
