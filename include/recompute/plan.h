/* plan.h — rc_plan: every setting that acts differently in a model, priced, and the cheapest that
 * fits.
 *
 * The search is exhaustive: every subset of the labels that act in the graph, full with block 1..L
 * and with uniform 1..L. So the answer is an optimum, and the proof is the number of candidates.
 */
#ifndef RECOMPUTE_PLAN_H
#define RECOMPUTE_PLAN_H

#include <recompute/cost.h>

RC_EXTERN_C_BEGIN

/* What a moved byte costs beside a FLOP: the fp32 balance of a server core with AVX-512, 240 GFLOP/s
 * against 15 GB/s of main memory (measured). It orders replays of norms and activations, which have
 * no FLOPs to speak of, after doing nothing. */
enum { RC_FLOPS_PER_BYTE = 16 };

typedef struct rc_candidate {
    rc_setting setting;
    int64_t peak_bytes;
    /* no placement takes less */
    int64_t bound_bytes;
    int64_t recompute_flops;
    int64_t recompute_moved_bytes;
    /* FLOPs, and RC_FLOPS_PER_BYTE for every byte moved */
    int64_t replay_cost;
    bool is_fitting;
    /* no other candidate has both less peak and less replay_cost */
    bool is_front;
} rc_candidate;

typedef struct rc_plan {
    /* cheapest first: by replay_cost, then by peak */
    rc_candidate *candidates;
    size_t n;
    int64_t budget_bytes;
    /* cheapest that fits, or -1 */
    int best;
    /* least peak of all */
    int smallest;
} rc_plan;

/* Every setting, with its peak.
 *
 * takes   graph         of any profile; must outlive the plan
 *         n_threads     kernels' scratch depends on it
 *         budget_bytes  0 has no limit
 * gives   *out          every candidate; the proof that the best is an optimum is their number
 * errors  RC_E_RANGE when an arena passes 2^63-1 bytes, RC_E_MEMORY
 * cost    a schedule and a placement for each */
RC_MUST_CHECK
RC_API rc_code rc_plan_make(const rc_graph *graph, int n_threads, int64_t budget_bytes,
                            rc_arena *mem, rc_plan **out, rc_error *err);

/**
 * The cheapest setting that fits, without the others' peaks.
 *
 * takes   graph, n_threads, budget_bytes  as rc_plan_make
 * gives   *out  candidates[best] of rc_plan_make, or candidates[smallest] where none fits;
 *               is_fitting says which, is_front is not set
 * errors  as rc_plan_make
 * cost    only what can fit by its liveness bound is placed, cheapest first: mostly one
 */
RC_MUST_CHECK
RC_API rc_code rc_plan_find(const rc_graph *graph, int n_threads, int64_t budget_bytes,
                            rc_arena *mem, rc_candidate *out, rc_error *err);
/* One stable text form, for --dump and tests. */
RC_API void rc_plan_print(const rc_plan *plan, FILE *to);

/* For people and programs.
 *
 * gives   *out  a row per candidate, cheapest first
 * errors  RC_E_MEMORY */
RC_MUST_CHECK
RC_API rc_code rc_plan_table(const rc_plan *plan, rc_arena *mem, rc_table **out, rc_error *err);

/* What a schedule's arena may take, and how a refusal says so. */
typedef struct rc_plan_bound {
    /* 0 or less holds nothing */
    int64_t bytes;
    /* goes on behind the need: ", the budget is 64 MiB" */
    const char *given;
    /* of the bound in the user's input, or the file that sets it */
    rc_where where;
    rc_code code;
} rc_plan_bound;

/**
 * Refuses a schedule that passes a bound.
 *
 * takes   schedule  its arena_bytes are compared; its graph is searched for a setting that fits
 *         bound     what it may take
 * errors  bound->code: what is needed, what is given, and the cheapest setting that would fit, ready
 *         to paste; or the smallest peak where none fits. As rc_plan_find
 */
RC_MUST_CHECK
RC_API rc_code rc_plan_refuse_over(const rc_schedule *schedule, const rc_plan_bound *bound,
                                   rc_arena *mem, rc_error *err);

/* The same for a budget of the user's.
 *
 * takes   budget_bytes  0 or less holds nothing: always refused
 *         where         of the budget in the user's input
 * errors  RC_E_INPUT as above; as rc_plan_find */
RC_MUST_CHECK
RC_API rc_code rc_plan_refuse_over_budget(const rc_schedule *schedule, int64_t budget_bytes,
                                          rc_where where, rc_arena *mem, rc_error *err);

RC_EXTERN_C_END

#endif
