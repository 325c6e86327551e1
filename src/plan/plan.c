/* plan.c — prices every setting a graph can tell apart and finds the cheapest that fits.
 *
 * takes  graph, budget
 * gives  rc_plan, or one candidate
 *
 * 128 layers have at most 8 label subsets and 256 full settings. What a setting replays and its
 * liveness bound come from its outline, which costs next to nothing; its peak needs a schedule of
 * all layers, placed.
 */
#include "plan/settings.h"

#include "base/num.h"
#include "schedule/outline.h"

#include <recompute/passes.h>

#include <inttypes.h>
#include <stdlib.h>

/* Candidates in the order of list_settings, without peaks. */
typedef struct pricing {
    const rc_graph *graph;
    int n_threads;
    rc_candidate *candidates;
    bool *is_last_kept; /* [n] */
    size_t n;
    rc_arena *mem;
    size_t scratch_bytes; /* what placing one took so far */
} pricing;

static uint32_t acting_labels(const rc_graph *graph)
{
    uint32_t labels = 0;
    for (int i = 0; i < graph->n_regions; i++)
        labels |= 1u << rc_graph_region(graph, i).label;
    return labels;
}

/* Block L equals uniform 1 and stands as uniform. */
rc_code rc_plan_settings(const rc_graph *graph, rc_arena *mem, rc_setting **out, size_t *n,
                         rc_error *err)
{
    uint32_t acting = acting_labels(graph), subset = 0;
    size_t n_most = ((size_t)1 << RC_LABEL_COUNT) + 2 * (size_t)graph->dims.L;
    RC_TRY(RC_NEW(mem, out, n_most, err));
    *n = 0;
    do { /* all subsets of `acting`, the empty one first */
        (*out)[(*n)++] =
            (rc_setting){.granularity = RC_GRANULARITY_SELECTIVE, .labels = subset};
        subset = (subset - acting) & acting;
    } while (subset);
    for (int64_t layers = 1; layers < graph->dims.L; layers++)
        (*out)[(*n)++] = (rc_setting){.granularity = RC_GRANULARITY_FULL,
                                      .method = RC_METHOD_BLOCK,
                                      .num_layers = layers};
    for (int64_t layers = 1; layers <= graph->dims.L; layers++)
        (*out)[(*n)++] = (rc_setting){.granularity = RC_GRANULARITY_FULL,
                                      .method = RC_METHOD_UNIFORM,
                                      .num_layers = layers};
    return RC_OK;
}

static rc_code outline_all(pricing *p, rc_error *err)
{
    rc_setting *settings;
    rc_outliner *outliner;
    RC_TRY(rc_plan_settings(p->graph, p->mem, &settings, &p->n, err));
    RC_TRY(RC_NEW(p->mem, &p->candidates, p->n, err));
    RC_TRY(RC_NEW(p->mem, &p->is_last_kept, p->n, err));
    rc_mark mark = rc_arena_mark(p->mem);
    RC_TRY(rc_outliner_open(p->graph, p->n_threads, p->mem, &outliner, err));
    for (size_t i = 0; i < p->n; i++) {
        rc_outline outline;
        int64_t moved;
        RC_TRY(rc_outline_make(outliner, &settings[i], &outline, err));
        p->is_last_kept[i] = outline.is_last_kept;
        p->candidates[i] =
            (rc_candidate){.setting = settings[i],
                           .bound_bytes = outline.bound_bytes,
                           .recompute_flops = outline.recompute_flops,
                           .recompute_moved_bytes = outline.recompute_moved_bytes};
        if (!rc_mul(RC_FLOPS_PER_BYTE, outline.recompute_moved_bytes, &moved) ||
            !rc_add(outline.recompute_flops, moved, &p->candidates[i].replay_cost))
            return RC_FAIL(err, RC_E_RANGE, RC_NOWHERE, "what a setting replays passes 2^63-1");
    }
    rc_arena_rewind(p->mem, mark);
    return RC_OK;
}

/* The peak of one candidate. */
static rc_code place(pricing *p, size_t at, rc_error *err)
{
    rc_candidate *candidate = &p->candidates[at];
    rc_passes passes = {.graph = p->graph,
                        .setting = &candidate->setting,
                        .is_last_layer_kept = &p->is_last_kept[at],
                        .n_threads = p->n_threads};
    RC_TRY(rc_arena_reserve(p->mem, p->scratch_bytes, err));
    rc_mark mark = rc_arena_mark(p->mem);
    size_t before = rc_arena_used_bytes(p->mem);
    RC_TRY(rc_passes_make(&passes, RC_NOUN_SCHEDULE, p->mem, err));
    const rc_schedule *schedule = passes.schedule;
    RC_ASSERT(schedule->bound_bytes == candidate->bound_bytes &&
              schedule->recompute_flops == candidate->recompute_flops &&
              schedule->recompute_moved_bytes == candidate->recompute_moved_bytes);
    candidate->peak_bytes = schedule->arena_bytes;
    if (rc_arena_used_bytes(p->mem) - before > p->scratch_bytes)
        p->scratch_bytes = rc_arena_used_bytes(p->mem) - before;
    rc_arena_rewind(p->mem, mark);
    return RC_OK;
}

static int by_cost(const void *a, const void *b)
{
    const rc_candidate *x = a, *y = b;
    if (x->replay_cost != y->replay_cost)
        return x->replay_cost < y->replay_cost ? -1 : 1;
    return x->peak_bytes < y->peak_bytes ? -1 : x->peak_bytes > y->peak_bytes;
}

static void mark_candidates(rc_plan *plan)
{
    int64_t least_peak = INT64_MAX;
    plan->best = -1;
    for (size_t i = 0; i < plan->n; i++) {
        rc_candidate *candidate = &plan->candidates[i];
        candidate->is_fitting =
            plan->budget_bytes == 0 || candidate->peak_bytes <= plan->budget_bytes;
        if (candidate->is_fitting && plan->best < 0)
            plan->best = (int)i;
        candidate->is_front = candidate->peak_bytes < least_peak;
        if (!candidate->is_front)
            continue;
        least_peak = candidate->peak_bytes;
        plan->smallest = (int)i;
    }
}

rc_code rc_plan_make(const rc_graph *graph, int n_threads, int64_t budget_bytes, rc_arena *mem,
                     rc_plan **out, rc_error *err)
{
    pricing p = {.graph = graph, .n_threads = n_threads, .mem = mem};
    RC_TRY(RC_NEW(mem, out, 1, err));
    RC_TRY(outline_all(&p, err));
    for (size_t i = 0; i < p.n; i++)
        RC_TRY(place(&p, i, err));
    qsort(p.candidates, p.n, sizeof *p.candidates, by_cost);
    **out = (rc_plan){.candidates = p.candidates, .n = p.n, .budget_bytes = budget_bytes};
    mark_candidates(*out);
    return RC_OK;
}

/* The candidate of least bound among those not placed whose bound is at most `most`; -1 none. */
static ptrdiff_t next_smallest(const pricing *p, int64_t most)
{
    ptrdiff_t found = -1;
    for (size_t i = 0; i < p->n; i++) {
        const rc_candidate *candidate = &p->candidates[i];
        if (candidate->peak_bytes != 0 || candidate->bound_bytes > most)
            continue;
        if (found < 0 || candidate->bound_bytes < p->candidates[found].bound_bytes)
            found = (ptrdiff_t)i;
    }
    return found;
}

/* The cheapest, then smallest, then earliest of those not placed that may fit; -1 none. */
static ptrdiff_t next_cheapest(const pricing *p, int64_t budget_bytes)
{
    ptrdiff_t found = -1;
    for (size_t i = 0; i < p->n; i++) {
        const rc_candidate *candidate = &p->candidates[i];
        if (candidate->peak_bytes != 0 || candidate->bound_bytes > budget_bytes)
            continue;
        if (found < 0 || candidate->replay_cost < p->candidates[found].replay_cost)
            found = (ptrdiff_t)i;
    }
    return found;
}

static rc_code find_best(pricing *p, int64_t budget_bytes, ptrdiff_t *out, rc_error *err)
{
    *out = -1;
    for (;;) {
        ptrdiff_t at = next_cheapest(p, budget_bytes);
        if (at < 0 ||
            (*out >= 0 && p->candidates[at].replay_cost > p->candidates[*out].replay_cost))
            return RC_OK;
        RC_TRY(place(p, (size_t)at, err));
        if (p->candidates[at].peak_bytes > budget_bytes)
            continue;
        p->candidates[at].is_fitting = true;
        if (*out < 0 || p->candidates[at].peak_bytes < p->candidates[*out].peak_bytes)
            *out = at;
    }
}

/* Of all, those placed by find_best too: the least peak, of these the cheapest. */
static rc_code find_smallest(pricing *p, ptrdiff_t *out, rc_error *err)
{
    int64_t least = INT64_MAX;
    for (size_t i = 0; i < p->n; i++)
        if (p->candidates[i].peak_bytes != 0 && p->candidates[i].peak_bytes < least)
            least = p->candidates[i].peak_bytes;
    for (ptrdiff_t at; (at = next_smallest(p, least)) >= 0;) {
        RC_TRY(place(p, (size_t)at, err));
        if (p->candidates[at].peak_bytes < least)
            least = p->candidates[at].peak_bytes;
    }
    *out = -1;
    for (size_t i = 0; i < p->n; i++)
        if (p->candidates[i].peak_bytes == least &&
            (*out < 0 || p->candidates[i].replay_cost < p->candidates[*out].replay_cost))
            *out = (ptrdiff_t)i;
    return RC_OK;
}

rc_code rc_plan_find(const rc_graph *graph, int n_threads, int64_t budget_bytes, rc_arena *mem,
                     rc_candidate *out, rc_error *err)
{
    pricing p = {.graph = graph, .n_threads = n_threads, .mem = mem};
    rc_mark mark = rc_arena_mark(mem);
    ptrdiff_t at;
    RC_TRY(outline_all(&p, err));
    RC_TRY(find_best(&p, budget_bytes ? budget_bytes : INT64_MAX, &at, err));
    if (at < 0)
        RC_TRY(find_smallest(&p, &at, err));
    *out = p.candidates[at];
    rc_arena_rewind(mem, mark);
    return RC_OK;
}

void rc_plan_print(const rc_plan *plan, FILE *to)
{
    char name[160];
    fprintf(to, "plan: %zu candidates, budget %" PRId64 ", best %d, smallest %d\n", plan->n,
            plan->budget_bytes, plan->best, plan->smallest);
    for (size_t i = 0; i < plan->n; i++)
        fprintf(to, "%-40s peak %" PRId64 " recompute %" PRId64 "%s%s\n",
                rc_setting_name(&plan->candidates[i].setting, name),
                plan->candidates[i].peak_bytes, plan->candidates[i].recompute_flops,
                plan->candidates[i].is_fitting ? " fits" : "",
                plan->candidates[i].is_front ? " front" : "");
}

rc_code rc_plan_table(const rc_plan *plan, rc_arena *mem, rc_table **out, rc_error *err)
{
    static const rc_column columns[] = {{"setting", NULL, RC_UNIT_TEXT},
                                        {"peak_bytes", "peak", RC_UNIT_BYTES},
                                        {"recompute_flops", "recomputed", RC_UNIT_FLOPS},
                                        {"recompute_moved_bytes", "moved again", RC_UNIT_BYTES},
                                        {"fits", NULL, RC_UNIT_BOOL},
                                        {"front", "Pareto front", RC_UNIT_BOOL}};
    RC_TRY(rc_table_make(mem, "plan", "settings, cheapest first", columns, 6, out, err));
    for (size_t i = 0; i < plan->n; i++) {
        const rc_candidate *candidate = &plan->candidates[i];
        char buf[160];
        const char *name;
        rc_cell *row;
        RC_TRY(
            rc_arena_printf(mem, &name, err, "%s", rc_setting_name(&candidate->setting, buf)));
        RC_TRY(rc_table_add_row(*out, &row, err));
        row[0] = rc_cell_text(name);
        row[1] = rc_cell_int(candidate->peak_bytes);
        row[2] = rc_cell_int(candidate->recompute_flops);
        row[3] = rc_cell_int(candidate->recompute_moved_bytes);
        row[4] = rc_cell_int(candidate->is_fitting);
        row[5] = rc_cell_int(candidate->is_front);
    }
    return RC_OK;
}

rc_code rc_plan_refuse_over(const rc_schedule *schedule, const rc_plan_bound *bound,
                            rc_arena *mem, rc_error *err)
{
    char needed[32], other[32], overrides[400];
    int64_t arena_bytes = schedule->arena_bytes, bytes = bound->bytes > 1 ? bound->bytes : 1;
    rc_candidate nearest;
    if (arena_bytes <= bound->bytes)
        return RC_OK;
    RC_TRY(rc_plan_find(schedule->graph, schedule->n_threads, bytes, mem, &nearest, err));
    rc_format_bytes(arena_bytes, needed);
    rc_format_bytes(nearest.peak_bytes, other);
    rc_setting_overrides(&nearest.setting, overrides);
    if (nearest.is_fitting)
        return RC_FAIL(err, bound->code, bound->where,
                       "this setting needs %s (%" PRId64
                       " bytes)%s; the cheapest setting that fits needs %s: %s",
                       needed, arena_bytes, bound->given, other, overrides);
    return RC_FAIL(err, bound->code, bound->where,
                   "this setting needs %s%s, and no setting fits: the smallest needs %s "
                   "(%" PRId64 " bytes): %s; or lower micro_batch_size or seq_length",
                   needed, bound->given, other, nearest.peak_bytes, overrides);
}

rc_code rc_plan_refuse_over_budget(const rc_schedule *schedule, int64_t budget_bytes,
                                   rc_where where, rc_arena *mem, rc_error *err)
{
    char bytes[32], given[64];
    if (schedule->arena_bytes <= budget_bytes)
        return RC_OK;
    if (budget_bytes < 1)
        return RC_FAIL(err, RC_E_INPUT, where,
                       "the memory budget is %" PRId64 " bytes, which hold nothing; "
                       "engine.memory_budget=null sets no limit",
                       budget_bytes);
    snprintf(given, sizeof given, ", the budget is %s", rc_format_bytes(budget_bytes, bytes));
    rc_plan_bound bound = {budget_bytes, given, where, RC_E_INPUT};
    return rc_plan_refuse_over(schedule, &bound, mem, err);
}
