/* mtp.c — multi-token prediction: depths behind the model, each with a layer, an output and a loss of its own.
 *
 *   x [n,h], of the depth before -> norm |
 *   tokens shifted by one -> embedding -> norm | side by side [n,2h] -> eh_proj [n,h] -> layer -> norm -> logits -> loss
 *
 * The embedding's and the output layer's tables are the model's. All of it stands in one block with the model's own
 * norm, output and loss: a depth starts from what they start from. Norms here are modules of their own in either
 * profile, and no label covers them.
 *
 * source  megatron/core/transformer/multi_token_prediction.py, MultiTokenPredictionLayer
 */
#include "graph/builder.h"

static int build_side_by_side(rc_builder *b, int x, int z)
{
    int y = rc_build_tensor(b, "concat", RC_TENSOR_ACTIVATION, b->graph->dtype, "[n, 2h]");
    rc_op_parts op = {.kind = RC_OP_concat_heads,
                      .part = "concat",
                      .in = RC_OPERANDS(x, z),
                      .out = RC_OPERANDS(y)};
    rc_build_op(b, &op);
    return y;
}

/* Column-parallel: the columns of all ranks come together again, and a rank keeps its rows. */
static int build_projection(rc_builder *b, int x)
{
    int y = rc_build_enter_tp_as(b, "eh_proj.gathered", x, "[N, 2h]");
    y = rc_build_linear(b, &(rc_linear_parts){.part = "eh_proj",
                                              .x = y,
                                              .weight_shape = "[h/t, 2h]",
                                              .out_shape = "[N, h/t]",
                                              .grad_group = rc_build_grad_group(b)});
    y = rc_build_gather_columns(b, "eh_proj.columns", y, "[N, h]");
    return rc_build_scatter_rows(b, "eh_proj.rows", y, "[n, h]");
}

static int build_depth(rc_builder *b, const rc_chunk *chunk, int x, int words,
                       rc_build_layer *build_layer)
{
    int embedded = rc_build_norm(b, "enorm", rc_build_lookup(b, words, RC_ABSENT));
    int hidden = rc_build_norm(b, "hnorm", x);
    int y = build_projection(b, build_side_by_side(b, embedded, hidden));
    for (int i = 0; i < chunk->n_mtp_runs; i++)
        for (int k = 0; k < chunk->mtp_runs[i].n_layers; k++)
            y = build_layer(b, &chunk->mtp_runs[i].kind, y);
    return rc_build_norm(b, "final_layernorm", y);
}

void rc_build_mtp(rc_builder *b, const rc_chunk *chunk, int x, int words, int output_words,
                  rc_build_layer *build_layer)
{
    const char *prefix = b->prefix;
    for (int depth = 0; depth < chunk->n_mtp && b->code == RC_OK; depth++) {
        b->code = rc_arena_printf(b->mem, &b->prefix, b->err, "mtp.layers.%d.", depth);
        x = build_depth(b, chunk, x, words, build_layer);
        rc_build_loss(b, RC_TENSOR_STATS, x, output_words);
    }
    b->prefix = prefix;
}
