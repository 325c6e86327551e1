/* layout.h — rc_layout: who holds what. The layers of a model by kind, and the part of them that a rank has.
 *
 * Names and order of the parallel dimensions: megatron/core/parallel_state.py.
 */
#ifndef RECOMPUTE_LAYOUT_H
#define RECOMPUTE_LAYOUT_H

#include <recompute/config.h>
#include <recompute/table.h>

#include <stdio.h>

RC_EXTERN_C_BEGIN

typedef enum rc_mixer {
#define RC_MIXER(name, builder, help) RC_MIXER_##name,
#define RC_MLP(name, builder, help)
#include "defs/layer_kinds.def" /* installed beside this header */
#undef RC_MIXER
#undef RC_MLP
    RC_MIXER_COUNT
} rc_mixer;

typedef enum rc_mlp {
#define RC_MIXER(name, builder, help)
#define RC_MLP(name, builder, help) RC_MLP_##name,
#include "defs/layer_kinds.def"
#undef RC_MIXER
#undef RC_MLP
    RC_MLP_COUNT
} rc_mlp;

/* What a layer is made of. */
typedef struct rc_layer_kind {
    rc_mixer mixer;
    rc_mlp mlp;
} rc_layer_kind;

/* Layers of one kind in a row. */
typedef struct rc_layer_run {
    rc_layer_kind kind;
    int n_layers;
} rc_layer_run;

/* A model chunk: what one rank runs between two exchanges with its neighbours in the pipeline. */
typedef struct rc_chunk {
    /* [n_runs] in order; the caller's */
    const rc_layer_run *runs;
    int n_runs;
    /* the model's number of its first layer */
    int first_layer;
    /* the first chunk embeds, others receive; the last has final norm, output layer and loss, others send */
    bool has_embedding, has_loss;
    /* Depths of multi-token prediction behind its layers, each of [n_mtp_runs] runs of layers between norms and
     * a projection of its own. A depth embeds the shifted tokens, so the word embedding stands here once more. */
    int n_mtp;
    const rc_layer_run *mtp_runs;
    int n_mtp_runs;
    /* the depths run one depth's weights in turn (mtp_use_repeated_layer), else each has its own */
    bool is_mtp_shared;
    /* With multi-token prediction it stands behind the model's last layer, else with the loss. */
    bool has_final_norm;
    /* The [V, h] weights that are allocated here: of the word embedding, of the output layer. */
    bool has_word_embedding, has_output_weight;
} rc_chunk;

/* Where a rank stands in each parallel dimension, from 0; vp is which of its chunks. */
typedef struct rc_rank {
    int64_t tp, cp, ep, dp, pp, vp;
} rc_rank;

/* Sizes of the parallel dimensions. */
typedef struct rc_parallel {
    /* ranks of the job: tp * cp * gtp * dp * pp, and etp * ep * edp * pp */
    int64_t world;
    /* false: it was not said, and is the smallest that holds every layer once */
    bool is_world_given;
    int64_t tp, cp, pp, dp;
    /* ranks that share each weight out and gather it for every use (gtp_weight_remat_size) */
    int64_t gtp;
    /* of experts: parallel size, tensor-parallel size, replicas */
    int64_t ep, etp, edp;
    /* chunks of a stage */
    int64_t vp;
    /* the interleaved schedule, with one chunk too where the virtual size is set to 1 */
    bool is_interleaved;
    /* ranks are numbered by stage before replica (use_tp_pp_dp_mapping), else the other way round */
    bool is_stage_before_replica;
} rc_parallel;

/* Ranks that hold the same as one another: one of them, and how many there are. */
typedef struct rc_rank_kind {
    /* the first of them, and its number in the job */
    rc_rank rank;
    int64_t number;
    int64_t n_ranks;
} rc_rank_kind;

typedef struct rc_layout {
    rc_parallel sizes;

    /* of the whole model: [n_runs] in order */
    const rc_layer_run *runs;
    int n_runs, n_layers;
    /* depths of multi-token prediction */
    int n_mtp;
    /* routed experts of a layer that one rank holds, as many on each; 0: there are none */
    int64_t n_local_experts;
    /* the output layer uses the word embedding's weights */
    bool is_tied;

    /* [sizes.vp * sizes.pp] in the order of the model: chunk i stands on stage i % pp, as its chunk i / pp */
    const rc_chunk *chunks;
    int n_chunks;

    /* [n_rank_kinds] that differ in what they hold or for how long: one a stage, as Megatron deals weights, tokens
     * and experts evenly over all other dimensions */
    const rc_rank_kind *rank_kinds;
    int n_rank_kinds;

    /* of one step, on a rank; 0: the config has no micro-batch size */
    int64_t n_micro_batches;
    /* micro-batches that a chunk runs in a row where stages are interleaved */
    int64_t micro_batch_group;
    /* forward and backward of two micro-batches side by side (overlap_moe_expert_parallel_comm) */
    bool overlaps_experts;
} rc_layout;

/**
 * Who holds what in a job.
 *
 * takes   cfg         Megatron's settings, of any release
 *         world_size  ranks of the job, as nodes times GPUs; 0: the config's, else data_parallel_size replicas, else
 *                     the fewest that hold every layer once
 * gives   *out        verified
 * errors  RC_E_INPUT at the setting that does not divide, contradicts another or is missing; RC_E_RANGE for sizes past
 *         2^31, more layers than 65,536; RC_E_UNSUPPORTED for a setting that places layers otherwise than is known here
 *         (layout_lacks.def)
 * cost    one pass over layers and chunks; the number of ranks plays no part
 * source  Megatron-LM megatron/core/transformer/transformer_block.py, get_num_layers_to_build; transformer_layer.py,
 *         get_transformer_layer_offset; pipeline_parallel_layer_layout.py; parallel_state.py, initialize_model_parallel;
 *         num_microbatches_calculator.py; megatron/training/arguments.py, validate_args
 */
RC_MUST_CHECK
RC_API rc_code rc_layout_make(const rc_config *cfg, int64_t world_size, rc_arena *mem,
                              rc_layout **out, rc_error *err);

/* Its invariants hold: every layer stands in one chunk, in order; ranks add up to the world.
 * errors  RC_E_BUG */
RC_MUST_CHECK
RC_API rc_code rc_layout_verify(const rc_layout *layout, rc_error *err);

/* One stable text form, for --dump and tests. */
RC_API void rc_layout_print(const rc_layout *layout, FILE *to);

/* For people and programs.
 *
 * gives   *out  a row per chunk, by stage; layers of one kind are summed up
 * errors  RC_E_MEMORY */
RC_MUST_CHECK
RC_API rc_code rc_layout_table(const rc_layout *layout, rc_arena *mem, rc_table **out,
                               rc_error *err);

/* The rest of it.
 *
 * gives   *out  one row of facts: parallel sizes, kinds of layers, micro-batches
 * errors  RC_E_MEMORY */
RC_MUST_CHECK
RC_API rc_code rc_layout_facts(const rc_layout *layout, rc_arena *mem, rc_table **out,
                               rc_error *err);

/* Where rank `number` of the job stands, below sizes.world; vp is 0.
 * source  megatron/core/parallel_state.py, RankGenerator: tp-cp-ep-dp-pp, or tp-cp-ep-pp-dp */
RC_API rc_rank rc_layout_rank_at(const rc_layout *layout, int64_t number);
/* Chunk `vp` of stage `pp`. */
RC_API const rc_chunk *rc_layout_chunk(const rc_layout *layout, int64_t pp, int64_t vp);
/* Layers of a chunk, those of multi-token prediction left out. */
RC_API int rc_chunk_n_layers(const rc_chunk *chunk);

/* A row of layer_kinds.def; `mixer` is below RC_MIXER_COUNT, `mlp` below RC_MLP_COUNT. */
RC_API const char *rc_mixer_name(rc_mixer mixer);
RC_API const char *rc_mlp_name(rc_mlp mlp);

RC_EXTERN_C_END

#endif
