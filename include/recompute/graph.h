/* graph.h — rc_graph: the operations of one micro-batch on one rank, and their tensors.
 *
 * A graph is built for a profile: `engine` is what our kernels read and retain, the Megatron
 * profiles what Megatron's kernels retain (Megatron-LM, TransformerEngine; bytes per tensor as in
 * Korthikanti et al. 2022 for megatron-local). Shapes are written in the symbols of docs/shapes.md.
 */
#ifndef RECOMPUTE_GRAPH_H
#define RECOMPUTE_GRAPH_H

#include <recompute/arena.h>
#include <recompute/config.h>
#include <recompute/label.h>
#include <recompute/layout.h>
#include <recompute/op.h>
#include <recompute/table.h>

#include <stdio.h>

RC_EXTERN_C_BEGIN

typedef enum rc_profile {
    RC_PROFILE_ENGINE,
    RC_PROFILE_MEGATRON_TE,   /* Transformer Engine modules, fused attention */
    RC_PROFILE_MEGATRON_LOCAL /* Megatron's own modules, unfused attention */
} rc_profile;
enum { RC_PROFILE_COUNT = RC_PROFILE_MEGATRON_LOCAL + 1 };

typedef enum rc_tensor_kind {
    RC_TENSOR_INPUT,  /* tokens, targets */
    RC_TENSOR_WEIGHT, /* gradients and optimizer state have its shape */
    RC_TENSOR_ACTIVATION,
    RC_TENSOR_STATS, /* norms' mean and rstd, log-sum-exp: per-row numbers */
    RC_TENSOR_MASK,  /* dropout masks of profiles that keep them */
    RC_TENSOR_LOSS
} rc_tensor_kind;

typedef enum rc_init { RC_INIT_NONE, RC_INIT_ZERO, RC_INIT_ONE, RC_INIT_NORMAL } rc_init;

/* The buffers that a parameter may have. ORDER of the columns of param_layouts.def. */
typedef enum rc_param_role {
    RC_PARAM_WEIGHT, /* what kernels read */
    RC_PARAM_GRAD,   /* what backward adds to */
    RC_PARAM_MASTER, /* the optimizer's own copy of the weight, in more bits */
    RC_PARAM_MOMENT1,
    RC_PARAM_MOMENT2
} rc_param_role;
enum { RC_PARAM_ROLE_COUNT = RC_PARAM_MOMENT2 + 1 };

/* What those buffers hold, by profile, precision and optimizer. */
typedef struct rc_param_layout {
    /* RC_DTYPE_COUNT: there is none */
    rc_dtype dtype[RC_PARAM_ROLE_COUNT];
    /* Of matrices in layers, and of other weights. */
    int n_moments_of_matrix, n_moments_of_other;
} rc_param_layout;

/* Symbols of shapes, per rank: s, b, h, ... */
typedef struct rc_dims {
#define RC_SYMBOL(name, help, setting) int64_t name;
#include "defs/symbols.def" /* installed beside this header */
#undef RC_SYMBOL
    bool has_sequence_parallel;
} rc_dims;

typedef struct rc_tensor {
    /* its name without the layer, "mlp.linear_fc1", and what stands before that and the layer's number;
     * rc_graph_tensor_name puts them together */
    const char *part, *prefix;
    /* -1 before the first, num_layers after the last */
    int layer;
    rc_tensor_kind kind;
    rc_dtype dtype;
    /* "[N, (a+2g)d/t]" */
    const char *shape;
    /* of this tensor, the view's own for a view */
    int64_t n_elem;
    /* rows of `ld` elements apart */
    int64_t rows, ld;
    /* n_elem * dtype */
    int64_t bytes;

    /* tensor that owns the bytes: itself, a view's base, or the tensor that an in-place op
     * overwrote */
    int storage;
    /* elements from the storage's start */
    int64_t offset;
    /* the value this is a slice of, or -1 */
    int view_of;
    /* op that computes it, or -1 (inputs, weights, views) */
    int producer;
    /* forward ops that read it, views counted for themselves */
    int n_consumers;

    /* weights */
    rc_init init;
    double init_std;
    /* leading elements that take part; those behind are 0 and stay 0 */
    int64_t n_used;
    bool has_weight_decay;
    /* of a routed expert: its replicas are the expert-data-parallel ranks, not all of them */
    bool is_expert;
} rc_tensor;

/* What an op sends, and to whom; a replay sends what forward does. */
typedef struct rc_comm {
    rc_comm_kind kind;
    rc_comm_group group;
    /* of the full tensor: of all ranks' shards together */
    int64_t bytes;
} rc_comm;

typedef struct rc_op {
    /* whose kernels run; all else about the op stand in its facts */
    rc_op_kind kind;
    const rc_op_facts *facts;
    int layer;
    /* as a tensor's */
    const char *part, *prefix;
    rc_op_attr attr;
    /* [n_in], [n_out] tensors; -1 absent */
    int in[RC_OP_MAX_IN], out[RC_OP_MAX_OUT];
    int n_in, n_out;
    /* what backward reads, in this profile */
    uint32_t needs_in, needs_out;
    /* out[0] overwrites in[0] */
    bool is_in_place;
    int64_t fwd_flops, bwd_flops;
    /* read and written by forward, each operand once */
    int64_t fwd_bytes;
} rc_op;

/* Ops [first, last] that a label covers in one layer. */
typedef struct rc_region {
    rc_label label;
    int layer;
    int first, last;
} rc_region;

/* A stretch of the graph that is stored once and stands `n_layers` times in a row: a run of layers that are
 * alike, or an end of the model (once). How rows become indices: src/graph/block.c. */
typedef struct rc_block {
    /* -1 before the first layer, num_layers after the last */
    int first_layer;
    int n_layers;
    bool has_layers;
    /* its stored rows */
    int row_op, row_tensor, row_region;
    /* of one layer */
    int n_ops, n_tensors, n_regions;
    /* indices of the first of its first layer */
    int first_op, first_tensor, first_region;
    /* the tensor, counted from the layer's first, that the next layer or block begins with; -1 */
    int out;
    /* ops of a layer that read what the layer or block before hands on */
    int n_input_reads;
} rc_block;

/* Tensors, ops and regions go by their index in forward order, [0, n_tensors) and so on; ask with
 * rc_graph_tensor, rc_graph_op and rc_graph_region. */
typedef struct rc_graph {
    rc_profile profile;
    rc_dims dims;
    /* of activations and weights */
    rc_dtype dtype;
    int n_tensors, n_ops, n_regions;
    /* tensors; -1 where the graph has none: a chunk that does not embed has no tokens, one without the loss no
     * targets */
    int tokens, targets, loss;
    /* the model's number of the graph's first layer: names count from it, all else from 0 */
    int first_layer;
    int64_t n_parameters;
    rc_param_layout layout;

    rc_block *blocks;
    int n_blocks;
    size_t n_blocks_room;
    /* what is stored; src/graph/ alone reads it */
    rc_tensor *tensor_rows;
    int n_tensor_rows;
    size_t n_tensor_rows_room;
    rc_op *op_rows;
    int n_op_rows;
    size_t n_op_rows_room;
    rc_region *region_rows;
    int n_region_rows;
    size_t n_region_rows_room;
} rc_graph;

/* Which graph. */
typedef struct rc_graph_request {
    /* what is null is derived as Megatron derives it */
    const rc_config *cfg;
    /* whose kernels run */
    rc_profile profile;
    /* vocabulary where cfg has none; 0 refuses that */
    int64_t n_words;
    /* the part of the model, which may have no layer at all; NULL: all of it, every layer of its kind */
    const rc_chunk *chunk;
    /* of Transformer Engine, 100 times the first number and the second: 217 is 2.17; 0: new enough for all that
     * is known here */
    int te_version;
    /* rows that this rank's experts receive, over the mean of all ranks; 0 is 1, as dealt out evenly */
    double imbalance;
} rc_graph_request;

/**
 * The graph of one micro-batch of a GPT or Llama-style model, or of a chunk of it on one rank.
 *
 * takes   request  as above
 * gives   *out     the graph, verified
 * errors  RC_E_INPUT with the position of the setting that is missing or does not divide;
 *         RC_E_UNSUPPORTED for a setting that this profile's graph would leave out, at its position
 *         (src/defs/graph_lacks.def), for words that no builder knows, for a layer of a kind without a
 *         builder, for pipeline stages where no chunk is asked for, and for an optimizer whose state is
 *         not known;
 *         RC_E_RANGE when a size passes 2^63-1
 */
RC_MUST_CHECK
RC_API rc_code rc_graph_make(const rc_graph_request *request, rc_arena *mem, rc_graph **out,
                             rc_error *err);

/* The sizes alone: what must be given is, and each is in its range. For callers with other rules too, which
 * say less well that a size is missing.
 *
 * takes   cfg  as rc_graph_make
 * errors  as rc_graph_make */
RC_MUST_CHECK
RC_API rc_code rc_graph_check_sizes(const rc_config *cfg, rc_error *err);

/* What rc_graph_make refuses, for callers that look at other rules before they make the graph.
 *
 * takes   cfg  its fields, and its keys that are none; a default is never refused
 * errors  RC_E_UNSUPPORTED naming the first setting that the profile's graph would leave out */
RC_MUST_CHECK
RC_API rc_code rc_graph_refuse_lacks(const rc_config *cfg, rc_profile profile, rc_error *err);

/* The rows of graph_lacks.def, for `recompute list lacks`.
 *
 * gives   *out  a row per setting, a column per profile
 * errors  RC_E_MEMORY */
RC_MUST_CHECK
RC_API rc_code rc_graph_lacks_table(rc_arena *mem, rc_table **out, rc_error *err);
/* The rows of symbols.def, of param_layouts.def and of optimizers.def, for `recompute list`.
 *
 * gives   *out  a row per symbol, layout or optimizer
 * errors  RC_E_MEMORY */
RC_MUST_CHECK
RC_API rc_code rc_graph_symbols_table(rc_arena *mem, rc_table **out, rc_error *err);
RC_MUST_CHECK
RC_API rc_code rc_graph_layouts_table(rc_arena *mem, rc_table **out, rc_error *err);
RC_MUST_CHECK
RC_API rc_code rc_graph_optimizers_table(rc_arena *mem, rc_table **out, rc_error *err);

/* Its invariants: operands exist, shapes and bytes agree, storages own themselves, regions hold ops.
 * errors  RC_E_BUG naming the first that is broken */
RC_MUST_CHECK
RC_API rc_code rc_graph_verify(const rc_graph *graph, rc_error *err);
/* One stable text form, for --dump and tests. */
RC_API void rc_graph_print(const rc_graph *graph, FILE *to);

/* For people and programs.
 *
 * gives   *out  a row per op
 * errors  RC_E_MEMORY */
RC_MUST_CHECK
RC_API rc_code rc_graph_table(const rc_graph *graph, rc_arena *mem, rc_table **out,
                              rc_error *err);

/* "engine", "megatron-te", "megatron-local" */
RC_API const char *rc_profile_name(rc_profile profile);
/* The reverse; false, and *profile is left, when `name` is none. */
RC_API bool rc_profile_find(const char *name, rc_profile *profile);

/* The tensor, op and region of an index. */
RC_API rc_tensor rc_graph_tensor(const rc_graph *graph, int tensor);
RC_API rc_op rc_graph_op(const rc_graph *graph, int op);
RC_API rc_region rc_graph_region(const rc_graph *graph, int region);
/* What an op sends in forward, or in backward; kind NONE where it sends nothing. */
RC_API rc_comm rc_graph_comm(const rc_graph *graph, int op, bool is_backward);
/* The ops [*first, *last] of the layers [from, to], which are from 0 to num_layers - 1. */
RC_API void rc_graph_layer_ops(const rc_graph *graph, int from, int to, int *first, int *last);

/* The run of layers where all layers are alike; NULL where there are several runs. */
RC_API const rc_block *rc_graph_only_run(const rc_graph *graph);
/* The same graph with `n` layers.
 *
 * takes   graph  with one run (rc_graph_only_run); its rows are shared, so it must outlive *out
 *         n      1 to its layers
 * gives   *out   op for op what rc_graph_make gives for so few layers, but for the weights' init
 * errors  RC_E_MEMORY */
RC_MUST_CHECK
RC_API rc_code rc_graph_with_layers(const rc_graph *graph, int n, rc_arena *mem, rc_graph **out,
                                    rc_error *err);

enum { RC_GRAPH_NAME_BYTES = 160 };
/* "decoder.layers.3.mlp.linear_fc1". Returns buf. */
RC_API const char *rc_graph_tensor_name(const rc_graph *graph, int tensor,
                                        char buf[RC_GRAPH_NAME_BYTES]);
RC_API const char *rc_graph_op_name(const rc_graph *graph, int op,
                                    char buf[RC_GRAPH_NAME_BYTES]);

/* Whether a weight of the graph has a buffer of that role, and then its dtype. */
RC_API bool rc_graph_param_dtype(const rc_graph *graph, const rc_tensor *weight,
                                 rc_param_role role, rc_dtype *out);

/* Regions of a label: 0 means the label acts nowhere in this model. */
RC_API int rc_graph_count_regions(const rc_graph *graph, rc_label label);

RC_EXTERN_C_END

#endif
