/* events.h — what a stage of the pipeline runs, in its order. */
#ifndef RC_ESTIMATE_EVENTS_H
#define RC_ESTIMATE_EVENTS_H

#include <recompute/layout.h>

typedef struct rc_event {
    bool is_backward;
    int64_t vp, micro_batch;
} rc_event;

/* The events of one step, asked for one by one. */
typedef struct rc_events {
    /* chunks of a stage, micro-batches, micro-batches that a chunk runs in a row */
    int64_t v, m, group;
    /* forwards before the first backward */
    int64_t n_warmup;
    /* forwards and backwards so far */
    int64_t n_fwd, n_bwd;
} rc_events;

/* source  megatron/core/pipeline_parallel/schedules.py: get_pp_rank_microbatches, get_schedule_table
 *
 * takes  micro_batches  at least 1
 *        has_overlap    overlap_moe_expert_parallel_comm: one more forward before the first backward */
void rc_events_open(rc_events *events, const rc_layout *layout, int64_t pp,
                    int64_t micro_batches, bool has_overlap);
/* false: the step is over */
bool rc_events_next(rc_events *events, rc_event *out);

#endif
