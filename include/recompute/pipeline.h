/* pipeline.h — rc_pipeline: what the ranks of one stage run in a step, in order: forward or backward, of which chunk, of
 * which micro-batch.
 *
 * The order is kept as runs, in which micro-batches follow one another, and its steady state once, with how often it
 * repeats: what is stored does not grow with the micro-batches.
 */
#ifndef RECOMPUTE_PIPELINE_H
#define RECOMPUTE_PIPELINE_H

#include <recompute/layout.h>

RC_EXTERN_C_BEGIN

/* `n` steps in a row. A step is a forward, then a backward, or one of them alone; the next step does the same with
 * the next micro-batch of either. */
typedef struct rc_pipeline_run {
    /* chunk of the stage, -1: none; and micro-batch of the first step */
    int fwd_chunk;
    int64_t fwd_micro;
    int bwd_chunk;
    int64_t bwd_micro;
    int64_t n;
} rc_pipeline_run;

typedef struct rc_pipeline {
    int64_t stage;
    int n_chunks;
    int64_t n_micro_batches;
    /* forwards before the first backward */
    int64_t n_warmup;
    /* the forward and the backward of a step run side by side (overlap_moe_expert_parallel_comm) */
    bool is_side_by_side;

    /* [n_runs]: n_lead of them, then n_period that are gone through n_periods times, each time with micro-batches
     * that are period_micro_batches on, then the rest. n_periods 0: n_period is 0 too */
    const rc_pipeline_run *runs;
    int n_runs, n_lead, n_period;
    int64_t n_periods, period_micro_batches;
} rc_pipeline;

/**
 * The schedule of a stage: one micro-batch after the other without a pipeline, 1F1B, or interleaved 1F1B.
 *
 * takes   layout  with micro-batches
 *         stage   below sizes.pp
 * gives   *out    verified
 * errors  RC_E_INPUT where the layout has no micro-batches; RC_E_RANGE for more than 2^62 forwards
 * cost    of the chunks of a stage, whatever the number of micro-batches, stages and ranks
 * source  Megatron-LM megatron/core/pipeline_parallel/schedules.py, get_pp_rank_microbatches, get_schedule_table,
 *         forward_backward_pipelining_with_interleaving; combined_1f1b.py
 */
RC_MUST_CHECK
RC_API rc_code rc_pipeline_make(const rc_layout *layout, int64_t stage, rc_arena *mem,
                                rc_pipeline **out, rc_error *err);

/* Its invariants hold: each chunk runs each micro-batch forward once and in order, and backward once, behind it.
 * errors  RC_E_BUG */
RC_MUST_CHECK
RC_API rc_code rc_pipeline_verify(const rc_pipeline *pipeline, rc_arena *tmp, rc_error *err);

/* One stable text form, for --dump and tests: a line per run. */
RC_API void rc_pipeline_print(const rc_pipeline *pipeline, FILE *to);

/* For people and programs.
 *
 * gives   *out  a row per run
 * errors  RC_E_MEMORY */
RC_MUST_CHECK
RC_API rc_code rc_pipeline_table(const rc_pipeline *pipeline, rc_arena *mem, rc_table **out,
                                 rc_error *err);

/* One thing that a stage runs. */
typedef struct rc_pipeline_event {
    bool is_backward;
    int chunk;
    int64_t micro_batch;
} rc_pipeline_event;

/* Every event in order, for pictures and tests.
 *
 * gives   *events  [*n], two a chunk and micro-batch
 * errors  RC_E_RANGE for more than 2^24 */
RC_MUST_CHECK
RC_API rc_code rc_pipeline_events(const rc_pipeline *pipeline, rc_arena *mem,
                                  const rc_pipeline_event **events, int64_t *n, rc_error *err);

/* What a chunk weighs: held from the end of its forward to the end of its backward, and beside that while its
 * forward, or its backward, runs. None is negative. */
typedef struct rc_chunk_weight {
    int64_t held, fwd_extra, bwd_extra;
} rc_chunk_weight;

/* The heaviest moment of a step. */
typedef struct rc_pipeline_peak {
    int64_t weight;
    /* what ran, the first time; beside a forward a backward may have run (is_side_by_side) */
    rc_pipeline_event event;
    /* [n_chunks] micro-batches of each chunk that were held then, that of `event` among them */
    const int64_t *n_held;
} rc_pipeline_peak;

/* Exact: as if every event was gone through.
 *
 * takes   weights  [n_chunks]
 * gives   *out     the first such moment
 * errors  RC_E_RANGE past 2^63-1
 * cost    one pass over the runs */
RC_MUST_CHECK
RC_API rc_code rc_pipeline_find_peak(const rc_pipeline *pipeline,
                                     const rc_chunk_weight *weights, rc_arena *mem,
                                     rc_pipeline_peak *out, rc_error *err);

/* Of a job: a row a stage, with the most forwards that wait for their backward at once.
 *
 * takes   layout  with micro-batches
 * gives   *out    by stage; where as many are held more than once, those of the first time are told by chunk
 * errors  those of rc_pipeline_make */
RC_MUST_CHECK
RC_API rc_code rc_pipeline_in_flight_table(const rc_layout *layout, rc_arena *mem,
                                           rc_table **out, rc_error *err);

RC_EXTERN_C_END

#endif
