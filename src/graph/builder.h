/* builder.h — what layer builders add tensors, ops and regions with.
 *
 * The first failure sticks in `code`; after it every call does nothing and answers 0, so a builder
 * reads as the list of its ops and the caller looks at `code` once.
 */
#ifndef RC_GRAPH_BUILDER_H
#define RC_GRAPH_BUILDER_H

#include <recompute/graph.h>

typedef struct rc_builder {
    const rc_config *cfg;
    rc_graph *graph;
    rc_arena *mem;
    rc_error *err;
    rc_code code;
    /* of names: "embedding.", or "decoder.layers." before a layer's number */
    const char *prefix;
    /* profile engine: in-place ops, no masks */
    bool is_engine;
    bool is_rms_norm;
    bool has_rope;
    /* what every rope op of the model has */
    rc_op_attr rope;
    rc_act act;
    /* as in rc_graph_request, the newest for 0 */
    int te_version;
    /* weights that are added now are routed experts' */
    bool is_in_experts;
    /* of a layer of this block so far: forward's bytes, both ways' FLOPs, parameters */
    int64_t moved_bytes, flops, n_parameters;
    /* of the blocks before */
    int64_t all_moved_bytes, all_flops;
} rc_builder;

/* A stream of the residual: what a builder is handed and hands on. All int are tensor indices. */

/* A block (graph.h) begins; what is added next stands in its layer. */
void rc_build_block(rc_builder *b, const char *prefix, bool has_layers);
/* It ends: there are `n_layers` of it in a row, and each hands `out` on, or nothing (RC_ABSENT). Gives the
 * tensor that the next block begins with. */
int rc_build_block_end(rc_builder *b, int n_layers, int out);
/* What is stored of a tensor or op of the present block, to be changed; its indices are rows (block.h). Valid
 * until the next is added, and only where b->code is RC_OK. */
rc_tensor *rc_build_row(rc_builder *b, int tensor);
rc_op *rc_build_op_row(rc_builder *b, int op);

/* "PART.SUFFIX" in the arena; names are kept by tensors, so they outlive the call. */
const char *rc_build_name(rc_builder *b, const char *part, const char *suffix);
int rc_build_weight(rc_builder *b, const char *part, const char *shape, rc_init init,
                    double std);
int rc_build_tensor(rc_builder *b, const char *part, rc_tensor_kind kind, rc_dtype dtype,
                    const char *shape);
/* A slice of `base`'s rows from element `offset` of each row. */
int rc_build_view(rc_builder *b, const char *part, int base, const char *shape, int64_t offset);
/* The value an in-place op leaves in the storage of `over`. */
int rc_build_overwrite(rc_builder *b, const char *part, int over);

/* What rc_build_op takes; absent operands are RC_ABSENT. */
enum { RC_ABSENT = -1 };
typedef struct rc_operands {
    int at[RC_OP_MAX_IN > RC_OP_MAX_OUT ? RC_OP_MAX_IN : RC_OP_MAX_OUT];
    int n;
} rc_operands;
#define RC_OPERANDS(...)                                                                       \
    {                                                                                          \
        {__VA_ARGS__}, (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int))                       \
    }
typedef struct rc_op_parts {
    rc_op_kind kind;
    /* of an op that is no row of ops.def (RC_OP_OTHER); else NULL */
    const rc_op_facts *facts;
    const char *part;
    rc_op_attr attr;
    rc_operands in, out;
} rc_op_parts;
/* Adds the op; gives its index. needs_in/needs_out come from the op's facts; a profile that keeps
 * something else changes them on the op afterwards. */
int rc_build_op(rc_builder *b, const rc_op_parts *parts);

void rc_build_region(rc_builder *b, rc_label label, int first_op, int last_op);

/* RMS or layer norm, as the config has it, over rows of width h, `groups` of them a token. */
typedef struct rc_norm_parts {
    const char *part;
    int x;
    const char *weight_shape, *out_shape, *stats_shape;
    int64_t n, h, groups; /* tokens; width */
} rc_norm_parts;
int rc_build_norm_of(rc_builder *b, const rc_norm_parts *parts);

/* y = norm(x) over rows of width h, with new weights "PART.weight" (".bias" for LayerNorm). */
int rc_build_norm(rc_builder *b, const char *part, int x);
/* y = x w^T (+ bias) as one op. `init_std` 0 means init_method_std. */
typedef struct rc_linear_parts {
    const char *part;
    int x;
    const char *weight_shape, *bias_shape, *out_shape; /* bias_shape NULL: none in this op */
    double init_std;
    /* rows of x; 0: N */
    int64_t n;
    /* the output is float32 whatever the model's dtype */
    bool is_f32;
    /* whose ranks sum the gradient of x */
    rc_comm_group grad_group;
} rc_linear_parts;
int rc_build_linear(rc_builder *b, const rc_linear_parts *parts);
/* What stands around a linear whose weight is cut over the tensor-parallel group: x as every rank of the group
 * needs it, [N,h] of [n,h]; and the sum of the ranks' products, [n,h] again. x itself without such a group. */
int rc_build_enter_tp(rc_builder *b, const char *part, int x);
int rc_build_leave_tp(rc_builder *b, const char *part, int x);
/* Exchanges that nothing computes again; x itself where there is nobody to exchange with. Rows: every rank's [n, ..],
 * whose gradient is summed and cut up; columns: every rank's share of a row, whose gradient is cut up. */
int rc_build_gather_rows(rc_builder *b, const char *part, int x, const char *shape);
int rc_build_gather_columns(rc_builder *b, const char *part, int x, const char *shape);
/* A rank's share of the rows of what all ranks have; the gradient is gathered. */
int rc_build_scatter_rows(rc_builder *b, const char *part, int x, const char *shape);
/* As rc_build_enter_tp, of rows of another width. */
int rc_build_enter_tp_as(rc_builder *b, const char *part, int x, const char *shape);
/* Any exchange, from x to y over a group. */
int rc_build_exchange(rc_builder *b, const rc_op_parts *parts, rc_comm_group group);
/* The shape of that product: rows of all the group's tokens where they are told apart from a rank's. */
const char *rc_build_product_shape(const rc_builder *b);
/* Who sums the gradient of what such a linear reads: the gather's backward does where there is one. */
rc_comm_group rc_build_grad_group(const rc_builder *b);
/* A copy of x, which is a slice, or of which rows or heads come to stand elsewhere. */
int rc_build_contiguous(rc_builder *b, const char *part, int x, const char *shape);
/* Attention itself, all that label core_attn covers but for copies that its caller makes. */
typedef struct rc_core_parts {
    int q, k, v;
    /* heads of key and value, width of a head of query and key, and of value */
    int64_t g, d, dv;
    const char *query_shape, *key_shape, *value_shape, *out_shape;
    /* of context-parallel ranks: keys and values of all, those of one and of all side by side, outputs of all */
    const char *keys_shape, *values_shape, *pair_shape, *pairs_shape, *steps_shape;
} rc_core_parts;
int rc_build_core(rc_builder *b, const rc_core_parts *parts);
/* Is it one kernel? Else scores and probabilities are tensors. */
bool rc_build_has_fused_core(const rc_builder *b);
/* What stands between the two projections of an MLP: rows of width f, out of x, which is twice as wide where the MLP is
 * gated. With `weights` every row is weighed by a number. As one kernel where Megatron has it as one. */
typedef struct rc_activation_parts {
    const char *part;
    int x, weights;
    int64_t n, f;
    const char *shape;
} rc_activation_parts;
int rc_build_activation(rc_builder *b, const rc_activation_parts *parts);
/* residual + dropout(x + bias); `bias` may be RC_ABSENT. */
int rc_build_bias_dropout_add(rc_builder *b, const char *part, int x, int residual, int bias);
/* dropout of a whole tensor, by p; gives x itself when p is 0. */
int rc_build_dropout(rc_builder *b, const char *part, int x, double p);

/* The layer builders: the residual stream in, the residual stream out. */
int rc_build_attention_branch(rc_builder *b, int x); /* norm, attention, bias-dropout-add */
int rc_build_mla_branch(rc_builder *b, int x);       /* the same with latent attention */
int rc_build_mlp_branch(rc_builder *b, int x);       /* norm, MLP, bias-dropout-add */
int rc_build_moe_branch(rc_builder *b, int x);       /* norm, experts, bias-dropout-add */
/* Of a kind that no graph has yet: fails; graph.c refuses such a chunk by name beforehand. */
int rc_build_lacking(rc_builder *b, int x);
/* Tokens embedded; *words is the tensor of the table. */
int rc_build_embedding(rc_builder *b, int *words);
/* Another look-up of tokens: the table `words` and no positions. */
int rc_build_lookup(rc_builder *b, int words, int positions);
/* The table of the output layer: `words`, the embedding's, where weights are tied and it stands here, else one of its
 * own. `words` may be RC_ABSENT. */
int rc_build_output_words(rc_builder *b, int words);
/* A table of words of its own. */
int rc_build_words(rc_builder *b, const char *part);
/* Output layer and loss of x, which was normed; gives the loss, a tensor of that kind. */
int rc_build_loss(rc_builder *b, rc_tensor_kind kind, int x, int words);
/* Depths of multi-token prediction behind x, the model's normed output, with a loss each. `words` is the table that
 * embeds, `output_words` that of the output layer. */
typedef int rc_build_layer(rc_builder *b, const rc_layer_kind *kind, int x);
void rc_build_mtp(rc_builder *b, const rc_chunk *chunk, int x, int words, int output_words,
                  rc_build_layer *build_layer);
/* The ends of a chunk that has neighbours. */
int rc_build_recv(rc_builder *b);
void rc_build_send(rc_builder *b, int x);

int rc_build_count_ops(const rc_builder *b); /* next op's index: where a region starts */
double rc_build_scaled_init_std(const rc_builder *b); /* init_method_std / sqrt(2 L) */

#endif
