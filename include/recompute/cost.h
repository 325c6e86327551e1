/* cost.h — rc_cost: what a schedule takes, without running it.
 *
 * Reads the schedule only. Bytes are to the byte what exec takes for the same schedule.
 */
#ifndef RECOMPUTE_COST_H
#define RECOMPUTE_COST_H

#include <recompute/schedule.h>

RC_EXTERN_C_BEGIN

typedef struct rc_cost {
    const rc_schedule *schedule;
    int64_t peak_bytes;  /* the arena: what a run takes */
    int64_t bound_bytes; /* sum of what is alive at the peak: no placement takes less */
    int peak_instr;
    int64_t at_peak[RC_CATEGORY_COUNT]; /* alive at the peak, by category */
    int64_t largest[RC_CATEGORY_COUNT]; /* largest that a category ever is */
    int64_t model_state_bytes;          /* weights, gradients, optimizer */
    int64_t retained_bytes;             /* from forward to backward */
    /* The math library's working memory, a part of scratch: the most that one op reserves for it
     * (src/op/facts.h). */
    int64_t library_bytes;
    int64_t fwd_flops, bwd_flops, recompute_flops; /* of one micro-batch */
} rc_cost;

RC_MUST_CHECK
RC_API rc_code rc_cost_make(const rc_schedule *schedule, rc_arena *mem, rc_cost **out,
                            rc_error *err);
RC_API void rc_cost_print(const rc_cost *cost, FILE *to);
/* The whole answer of `estimate`: facts, categories, what is alive at the peak, per layer. */
RC_MUST_CHECK
RC_API rc_code rc_cost_report(const rc_cost *cost, rc_arena *mem, rc_report *report,
                              rc_error *err);
/* One row per instruction: live bytes by category; what a picture of the step is drawn from. */
RC_MUST_CHECK
RC_API rc_code rc_cost_timeline(const rc_cost *cost, rc_arena *mem, rc_table **out,
                                rc_error *err);

/**
 * Bytes that one layer's forward retains for its backward, under a policy, in any profile.
 *
 * takes   policy  made from its graph
 *         layer   0 to L-1; -1 embedding, L the head
 * gives   *bytes  whole storages, not rounded; per-row statistics (norms' rstd, log-sum-exp) are
 *                 also given apart, since published formulas leave them out
 * source  Korthikanti et al. 2022, section 4; tests/laws/test_closed_forms.c
 */
RC_MUST_CHECK
RC_API rc_code rc_cost_layer(const rc_policy *policy, int layer, rc_arena *mem, int64_t *bytes,
                             int64_t *stats_bytes, rc_error *err);

RC_EXTERN_C_END

#endif
