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
    /* the arena: what a run takes */
    int64_t peak_bytes;
    /* sum of what is alive at the peak: no placement takes less */
    int64_t bound_bytes;
    int peak_instr;
    /* alive at the peak, by category */
    int64_t at_peak[RC_CATEGORY_COUNT];
    /* largest that a category ever is */
    int64_t largest[RC_CATEGORY_COUNT];
    /* weights, gradients, optimizer */
    int64_t model_state_bytes;
    /* from forward to backward */
    int64_t retained_bytes;
    /* The math library's working memory, a part of scratch: the most that one op reserves for it
     * (src/op/facts.h). */
    int64_t library_bytes;
    /* of one micro-batch */
    int64_t fwd_flops, bwd_flops, recompute_flops;
} rc_cost;

/* What a schedule takes.
 *
 * takes   schedule  made by rc_schedule_make; must outlive the cost
 * gives   *out      peak_bytes is schedule->arena_bytes, to the byte what exec takes
 * errors  RC_E_MEMORY
 * cost    one pass over instructions and buffers */
RC_MUST_CHECK
RC_API rc_code rc_cost_make(const rc_schedule *schedule, rc_arena *mem, rc_cost **out,
                            rc_error *err);
/* One stable text form, for --dump and tests. */
RC_API void rc_cost_print(const rc_cost *cost, FILE *to);

/* The whole answer of `estimate`.
 *
 * gives   report  tables added: facts, categories, what is alive at the peak, layers
 * errors  RC_E_MEMORY */
RC_MUST_CHECK
RC_API rc_code rc_cost_report(const rc_cost *cost, rc_arena *mem, rc_report *report,
                              rc_error *err);

/* What a picture of the step is drawn from.
 *
 * gives   *out  a row per instruction: live bytes by category
 * errors  RC_E_MEMORY */
RC_MUST_CHECK
RC_API rc_code rc_cost_timeline(const rc_cost *cost, rc_arena *mem, rc_table **out,
                                rc_error *err);

/**
 * Bytes that one layer's forward retains for its backward, under a policy, in any profile.
 *
 * takes   policy  made from its graph
 *         layer   0 to L-1; -1 embedding, L the head
 * gives   *bytes        whole storages, not rounded, without per-row statistics
 *         *stats_bytes  per-row statistics (norms' rstd, log-sum-exp), which published formulas
 *                       leave out
 * errors  RC_E_RANGE when a sum passes 2^63-1, RC_E_MEMORY
 * source  Korthikanti et al. 2022, section 4; tests/laws/test_closed_forms.c
 */
RC_MUST_CHECK
RC_API rc_code rc_cost_layer(const rc_policy *policy, int layer, rc_arena *mem, int64_t *bytes,
                             int64_t *stats_bytes, rc_error *err);

RC_EXTERN_C_END

#endif
