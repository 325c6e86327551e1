/* estimate.h — rc_estimate: the memory of every rank of a Megatron job, before it runs.
 *
 * Layers that are alike are priced once (a graph of one layer, its policy, its schedule), put in a row for every model
 * chunk, and chunks follow each other as the pipeline's schedule runs them, event by event. Nothing is averaged: a
 * peak is an event of one rank, and says which.
 *
 * Bytes are those that PyTorch's allocator counts as allocated. What is reserved beyond them, and what lies outside of
 * the allocator, is not among them.
 */
#ifndef RECOMPUTE_ESTIMATE_H
#define RECOMPUTE_ESTIMATE_H

#include <recompute/graph.h>
#include <recompute/layout.h>
#include <recompute/policy.h>

RC_EXTERN_C_BEGIN

typedef enum rc_component {
#define RC_COMPONENT(name, kind, help) RC_COMPONENT_##name,
#include "defs/components.def" /* installed beside this header */
#undef RC_COMPONENT
    RC_COMPONENT_COUNT
} rc_component;

typedef struct rc_component_facts {
    const char *name, *help;
    /* else an allowance */
    bool is_computed;
} rc_component_facts;

/* A row of components.def; `component` is below RC_COMPONENT_COUNT. */
RC_API const rc_component_facts *rc_component_find(rc_component component);

/* A GPU: a row of gpus.def. */
typedef struct rc_gpu {
    const char *name;
    /* first number of the compute capability; 0: not NVIDIA's */
    int sm;
    /* as PyTorch sees it */
    int64_t memory_bytes;
    /* a second: of dense products in 16 bits; bytes of its memory, and to other GPUs of a node, one way */
    double flops, memory_rate, link_rate;
} rc_gpu;

typedef enum rc_phase { RC_PHASE_FORWARD, RC_PHASE_BACKWARD, RC_PHASE_STEP } rc_phase;
/* "forward", "backward", "optimizer step" */
RC_API const char *rc_phase_name(rc_phase phase);

/* What is held at one moment. */
typedef struct rc_held {
    rc_phase phase;
    /* which chunk of the stage, and micro-batch; of STEP 0 */
    int64_t vp, micro_batch;
    /* the op that runs, "decoder.layers.0.mlp.linear_fc1", numbered in its stretch of layers; NULL of STEP */
    const char *op;
    /* chunks of micro-batches that wait for their backward, this one left out */
    int64_t n_in_flight;
    int64_t bytes, of[RC_COMPONENT_COUNT];
} rc_held;

/* A kind of rank. */
typedef struct rc_estimate_rank {
    rc_rank rank;
    int64_t n_ranks;
    int64_t n_parameters;
    /* of one micro-batch: forward and backward without recompute, and what is replayed */
    double micro_seconds, replay_seconds;
    /* of one micro-batch: kept from forward to backward; what is replayed, by products and by bytes moved */
    int64_t retained_bytes, replay_flops, replay_moved_bytes;
    /* the most that is held in the first step, when there are no moments before the update, and in a later one */
    rc_held first, later;
} rc_estimate_rank;

/* A setting that changes what ranks hold and is not counted: a row of estimate_lacks.def. */
typedef struct rc_estimate_lack {
    /* "ddp.use_megatron_fsdp", what is counted instead, where it stands */
    const char *key, *words;
    rc_where where;
} rc_estimate_lack;

typedef struct rc_estimate {
    const rc_layout *layout;
    rc_profile profile;
    rc_setting setting;
    /* by rc_label: modules of the job that it covers; a layer may have several */
    int n_label_modules[RC_LABEL_COUNT];
    /* [n_ranks] kinds of rank, in the order of the layout */
    rc_estimate_rank *ranks;
    int n_ranks;
    /* the one that holds most in a later step */
    int hottest;
    /* Of a step, as the slowest rank has it: without recompute, and what it adds. An order of settings, not a promise
     * (efficiencies.def). */
    double step_seconds, replay_seconds;
    /* what is asked for and not counted */
    rc_estimate_lack *lacks;
    int n_lacks;
    size_t n_lacks_room;
} rc_estimate;

typedef struct rc_estimate_request {
    /* Megatron's settings */
    const rc_config *cfg;
    /* a Megatron profile */
    rc_profile profile;
    /* ranks of the job; 0: as the config says */
    int64_t world_size;
    /* instead of the config's; NULL: the config's */
    const rc_setting *setting;
    /* on which the libraries' workspaces depend, and what everything takes; NULL: an H100 */
    const rc_gpu *gpu;
    /* of Transformer Engine, as in rc_graph_request */
    int te_version;
    /* rows that the experts of the hottest rank receive, as a multiple of the mean; 0: 1, all alike */
    double imbalance;
} rc_estimate_request;

/* The memory of every rank.
 *
 * takes   request  as above
 * gives   *out     a row per kind of rank
 * errors  those of rc_layout_make, rc_graph_make, rc_setting_make; RC_E_RANGE when a sum passes 2^63-1
 * cost    a schedule per kind of layer, and one pass over the pipeline's events per kind of rank
 */
RC_MUST_CHECK
RC_API rc_code rc_estimate_make(const rc_estimate_request *request, rc_arena *mem,
                                rc_estimate **out, rc_error *err);
/* One stable text form, for --dump and tests. */
RC_API void rc_estimate_print(const rc_estimate *estimate, FILE *to);

/* For people and programs.
 *
 * gives   report  tables added: what the job is, a row per kind of rank, components at the hottest rank's peak
 * errors  RC_E_MEMORY */
RC_MUST_CHECK
RC_API rc_code rc_estimate_report(const rc_estimate *estimate, rc_arena *mem, rc_report *report,
                                  rc_error *err);

/* The GPU of a name, in any case; NULL where there is none. */
RC_API const rc_gpu *rc_gpu_find(const char *name);
/* What is left for a job's allocator of a GPU's memory: without the allowances (allowances.def). */
RC_API int64_t rc_gpu_room(int64_t memory_bytes);

typedef enum rc_fit { RC_FIT_YES, RC_FIT_NO, RC_FIT_UNKNOWN } rc_fit;
/* Does the hottest rank fit into so many bytes of the allocator? Unknown where something is not counted. */
RC_API rc_fit rc_estimate_judge(const rc_estimate *estimate, int64_t room_bytes);

/* One recompute setting of a job. */
typedef struct rc_choice {
    rc_setting setting;
    /* of the hottest rank, in a later step */
    int64_t peak_bytes;
    int64_t stage;
    /* what it adds to a step, as a share of the step without recompute */
    double added_share;
    bool is_fitting;
    /* no other holds less and adds less */
    bool is_front;
} rc_choice;

/* Every setting that Megatron can express for a job: each set of the labels that act, full uniform and full block for
 * every number of layers of a chunk. */
typedef struct rc_choices {
    /* cheapest first, by what it adds, then by peak */
    rc_choice *at;
    int n;
    int64_t room_bytes;
    /* the cheapest that fits, or -1; the one that holds least; the one without recompute */
    int best, smallest, control;
    /* of the job without recompute: what is not modelled */
    const rc_estimate *without;
} rc_choices;

/**
 * Prices them all, so that the cheapest that fits is an optimum; the proof is their number.
 *
 * takes   request     its setting is left aside
 *         room_bytes  that a rank's allocator may hand out; 0: no limit
 * gives   *out        cheapest first
 * errors  as rc_estimate_make
 * cost    one graph for each stretch of layers, and a schedule of each under every setting
 */
RC_MUST_CHECK
RC_API rc_code rc_choices_make(const rc_estimate_request *request, int64_t room_bytes,
                               rc_arena *mem, rc_choices **out, rc_error *err);
/* For people and programs.
 *
 * gives   *out  a row per setting
 * errors  RC_E_MEMORY */
RC_MUST_CHECK
RC_API rc_code rc_choices_table(const rc_choices *choices, rc_arena *mem, rc_table **out,
                                rc_error *err);

typedef enum rc_label_verdict {
    /* no layer has what it covers */
    RC_LABEL_NO_LAYER,
    /* it frees nothing of the peak */
    RC_LABEL_NO_USE,
    /* the peak grows */
    RC_LABEL_HARMFUL,
    RC_LABEL_FREES
} rc_label_verdict;
/* "no layer has it", ... */
RC_API const char *rc_label_verdict_name(rc_label_verdict verdict);

/* A label alone, or full recompute, beside the job without recompute. */
typedef struct rc_label_effect {
    rc_setting setting;
    /* that it covers; of full recompute layers */
    int n_modules;
    /* of the hottest rank: of one micro-batch, and at its peak; below 0 it holds more */
    int64_t freed_bytes, freed_at_peak_bytes;
    int64_t replay_flops, replay_moved_bytes;
    /* to a step, as a share of the step without recompute */
    double added_share;
    rc_label_verdict verdict;
} rc_label_effect;

/* What every label does in a job: all of them, then full recompute of every layer. Labels nest and overlap, so effects do
 * not add up: rc_choices_make prices sets. */
typedef struct rc_label_effects {
    rc_label_effect at[RC_LABEL_COUNT + 1];
    const rc_estimate *without;
} rc_label_effects;

/**
 * takes   request  its setting is left aside
 * gives   *out     by rc_label, and full/uniform/1
 * errors  as rc_estimate_make
 */
RC_MUST_CHECK
RC_API rc_code rc_label_effects_make(const rc_estimate_request *request, rc_arena *mem,
                                     rc_label_effects **out, rc_error *err);
/* For people and programs.
 *
 * gives   *out  a row per label
 * errors  RC_E_MEMORY */
RC_MUST_CHECK
RC_API rc_code rc_label_effects_table(const rc_label_effects *effects, rc_arena *mem,
                                      rc_table **out, rc_error *err);

/* The rows of gpus.def, of allowances.def and of efficiencies.def, for `recompute list`.
 *
 * gives   *out  a row per GPU, allowance or efficiency
 * errors  RC_E_MEMORY */
RC_MUST_CHECK
RC_API rc_code rc_gpus_table(rc_arena *mem, rc_table **out, rc_error *err);
RC_MUST_CHECK
RC_API rc_code rc_efficiencies_table(rc_arena *mem, rc_table **out, rc_error *err);
RC_MUST_CHECK
RC_API rc_code rc_allowances_table(rc_arena *mem, rc_table **out, rc_error *err);

/* What is asked for and not counted.
 *
 * gives   *out  a row per setting
 * errors  RC_E_MEMORY */
RC_MUST_CHECK
RC_API rc_code rc_estimate_lacks_table(const rc_estimate *estimate, rc_arena *mem,
                                       rc_table **out, rc_error *err);

/* The rows of components.def, for `recompute list`.
 *
 * gives   *out  a row per component
 * errors  RC_E_MEMORY */
RC_MUST_CHECK
RC_API rc_code rc_components_table(rc_arena *mem, rc_table **out, rc_error *err);

RC_EXTERN_C_END

#endif
