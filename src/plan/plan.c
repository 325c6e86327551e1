/* plan.c — prices every setting a graph can tell apart and finds the cheapest that fits.
 *
 * takes  graph, budget
 * gives  rc_plan
 *
 * 128 layers have at most 8 label subsets and 256 full settings; a candidate costs one schedule.
 */
#include <recompute/plan.h>

#include "base/num.h"

#include <inttypes.h>
#include <stdlib.h>

static rc_code price(const rc_graph *graph, const rc_setting *setting, int n_threads,
                     rc_arena *mem, rc_candidate *out, rc_error *err)
{
    rc_policy *policy;
    rc_schedule *schedule;
    rc_mark mark = rc_arena_mark(mem);
    RC_TRY(rc_policy_make(graph, setting, mem, &policy, err));
    RC_TRY(rc_schedule_make(policy, n_threads, mem, &schedule, err));
    *out = (rc_candidate){.setting = *setting,
                          .peak_bytes = schedule->arena_bytes,
                          .recompute_flops = schedule->recompute_flops,
                          .recompute_moved_bytes = schedule->recompute_moved_bytes,
                          .replay_cost = schedule->recompute_flops +
                                         RC_FLOPS_PER_BYTE * schedule->recompute_moved_bytes};
    rc_arena_rewind(mem, mark);
    return RC_OK;
}

static uint32_t acting_labels(const rc_graph *graph)
{
    uint32_t labels = 0;
    for (int i = 0; i < graph->n_regions; i++)
        labels |= 1u << graph->regions[i].label;
    return labels;
}

/* Every setting, each once: block L equals uniform 1 and stands as uniform. */
static size_t list_settings(const rc_graph *graph, rc_setting *out)
{
    uint32_t acting = acting_labels(graph), subset = 0;
    size_t n = 0;
    do { /* all subsets of `acting`, the empty one first */
        out[n++] = (rc_setting){.granularity = RC_GRANULARITY_SELECTIVE, .labels = subset};
        subset = (subset - acting) & acting;
    } while (subset);
    for (int64_t layers = 1; layers < graph->dims.L; layers++)
        out[n++] = (rc_setting){.granularity = RC_GRANULARITY_FULL,
                                .method = RC_METHOD_BLOCK,
                                .num_layers = layers};
    for (int64_t layers = 1; layers <= graph->dims.L; layers++)
        out[n++] = (rc_setting){.granularity = RC_GRANULARITY_FULL,
                                .method = RC_METHOD_UNIFORM,
                                .num_layers = layers};
    return n;
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
    size_t n_most = ((size_t)1 << RC_LABEL_COUNT) + 2 * (size_t)graph->dims.L;
    rc_setting *settings;
    RC_TRY(RC_NEW(mem, out, 1, err));
    RC_TRY(RC_NEW(mem, &settings, n_most, err));
    rc_plan *plan = *out;
    plan->budget_bytes = budget_bytes;
    plan->n = list_settings(graph, settings);
    RC_TRY(RC_NEW(mem, &plan->candidates, plan->n, err));
    for (size_t i = 0; i < plan->n; i++)
        RC_TRY(price(graph, &settings[i], n_threads, mem, &plan->candidates[i], err));
    qsort(plan->candidates, plan->n, sizeof *plan->candidates, by_cost);
    mark_candidates(plan);
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

rc_code rc_plan_refuse_over_budget(const rc_schedule *schedule, int64_t budget_bytes,
                                   rc_where where, rc_arena *mem, rc_error *err)
{
    char needed[32], given[32], other[32], overrides[400];
    if (schedule->arena_bytes <= budget_bytes)
        return RC_OK;
    if (budget_bytes < 1)
        return RC_FAIL(err, RC_E_INPUT, where,
                       "a budget of %" PRId64 " bytes holds nothing; null sets no limit",
                       budget_bytes);
    rc_plan *plan;
    RC_TRY(rc_plan_make(schedule->graph, schedule->n_threads, budget_bytes, mem, &plan, err));
    const rc_candidate *nearest =
        &plan->candidates[plan->best >= 0 ? plan->best : plan->smallest];
    rc_format_bytes(schedule->arena_bytes, needed);
    rc_format_bytes(budget_bytes, given);
    rc_format_bytes(nearest->peak_bytes, other);
    rc_setting_overrides(&nearest->setting, overrides);
    if (plan->best >= 0)
        return RC_FAIL(err, RC_E_INPUT, where,
                       "this setting needs %s (%" PRId64
                       " bytes), the budget is %s; the cheapest "
                       "setting that fits needs %s: %s",
                       needed, schedule->arena_bytes, given, other, overrides);
    return RC_FAIL(err, RC_E_INPUT, where,
                   "this setting needs %s, the budget is %s, and no setting fits: the smallest "
                   "needs %s (%" PRId64 " bytes): %s; or lower micro_batch_size or seq_length",
                   needed, given, other, nearest->peak_bytes, overrides);
}
