/* test_outline_law.c — the short way to a plan against the long one: an outline says what the
 * schedule of all layers says, and the setting that rc_plan_find names is the one that pricing every
 * setting in full finds. */
#include "law.h"

#include "plan/settings.h"
#include "schedule/outline.h"

#include <stdlib.h>

static const rc_graph *graph_of(const law_model *model, const char *core, int n_layers,
                                int vocab, rc_arena *mem)
{
    char layers[40], words[40];
    law_model other = *model;
    size_t n = 0;
    snprintf(layers, sizeof layers, "model.num_layers=%d", n_layers);
    snprintf(words, sizeof words, "model.vocab_size=%d", vocab);
    while (other.words[n])
        n++;
    other.words[n++] = layers;
    other.words[n] = words;
    return law_graph(&other, core, mem);
}

static void check_outline(rc_outliner *outliner, const rc_graph *graph,
                          const rc_setting *setting, const char *model, rc_arena *mem)
{
    rc_error err = {0};
    rc_outline outline;
    char name[160];
    law_check(rc_outline_make(outliner, setting, &outline, &err), &err);
    const rc_schedule *schedule = law_made(graph, setting, 2, RC_NOUN_SCHEDULE, mem).schedule;
    if (outline.bound_bytes != schedule->bound_bytes ||
        outline.recompute_flops != schedule->recompute_flops ||
        outline.recompute_moved_bytes != schedule->recompute_moved_bytes ||
        outline.is_last_kept != (schedule->policy->is_last_layer_kept))
        fail_msg("%s, %d layers, %s: bound %lld, in full %lld; replayed %lld, in full %lld",
                 model, (int)graph->dims.L, rc_setting_name(setting, name),
                 (long long)outline.bound_bytes, (long long)schedule->bound_bytes,
                 (long long)outline.recompute_flops, (long long)schedule->recompute_flops);
}

static void an_outline_is_the_schedule_of_all_layers(void **state)
{
    (void)state;
    static const int n_layers[] = {1, 2, 3, 4, 5, 9, 23, 31};
    rc_error err = {0};
    for (size_t m = 0; m < LAW_N_MODELS; m++)
        for (size_t i = 0; i < sizeof n_layers / sizeof *n_layers; i++) {
            rc_arena *mem = rc_arena_open(), *outlines = rc_arena_open();
            const rc_graph *graph = graph_of(&law_models[m], law_cores[i % 2], n_layers[i],
                                             i % 3 ? 101 : 20000, mem);
            rc_setting *settings;
            rc_outliner *outliner;
            size_t n;
            assert_non_null(rc_graph_only_run(graph));
            law_check(rc_plan_settings(graph, mem, &settings, &n, &err), &err);
            law_check(rc_outliner_open(graph, 2, outlines, &outliner, &err), &err);
            for (size_t k = 0; k < n; k++) {
                rc_mark mark = rc_arena_mark(mem);
                check_outline(outliner, graph, &settings[k], law_models[m].name, mem);
                rc_arena_rewind(mem, mark);
            }
            rc_arena_close(outlines);
            rc_arena_close(mem);
        }
}

/* What a search through all says: `plan` has every setting's peak from its own schedule. */
static const rc_candidate *find_plainly(const rc_plan *plan, int64_t budget)
{
    const rc_candidate *best = NULL, *smallest = NULL;
    for (size_t i = 0; i < plan->n; i++) { /* cheapest first */
        const rc_candidate *at = &plan->candidates[i];
        if (!best && at->peak_bytes <= budget)
            best = at;
        if (!smallest || at->peak_bytes < smallest->peak_bytes)
            smallest = at;
    }
    return best ? best : smallest;
}

static void check_find(const rc_graph *graph, const rc_plan *plan, int64_t budget,
                       const char *model, rc_arena *mem)
{
    rc_error err = {0};
    rc_candidate found;
    char a[160], b[160];
    const rc_candidate *right = find_plainly(plan, budget);
    law_check(rc_plan_find(graph, 2, budget, mem, &found, &err), &err);
    if (found.peak_bytes != right->peak_bytes || found.replay_cost != right->replay_cost ||
        found.is_fitting != (right->peak_bytes <= budget))
        fail_msg("%s, %d layers, budget %lld: %s of %lld bytes, in full %s of %lld", model,
                 (int)graph->dims.L, (long long)budget, rc_setting_name(&found.setting, a),
                 (long long)found.peak_bytes, rc_setting_name(&right->setting, b),
                 (long long)right->peak_bytes);
}

static void the_cheapest_that_fits_is_that_of_pricing_all(void **state)
{
    (void)state;
    static const int n_layers[] = {1, 2, 7, 24};
    rc_error err = {0};
    for (size_t m = 0; m < LAW_N_MODELS; m++)
        for (size_t i = 0; i < sizeof n_layers / sizeof *n_layers; i++) {
            rc_arena *mem = rc_arena_open();
            rc_plan *plan;
            const rc_graph *graph =
                graph_of(&law_models[m], law_cores[i % 2], n_layers[i], 101, mem);
            law_check(rc_plan_make(graph, 2, 0, mem, &plan, &err), &err);
            for (size_t k = 0; k < plan->n; k++) {
                const rc_candidate *at = &plan->candidates[k];
                rc_schedule *s;
                char name[160];
                rc_mark mark = rc_arena_mark(mem);
                s = law_schedule(graph, rc_setting_name(&at->setting, name), 2, mem);
                assert_int_equal(at->peak_bytes, s->arena_bytes);
                rc_arena_rewind(mem, mark);
                check_find(graph, plan, at->peak_bytes, law_models[m].name, mem);
                check_find(graph, plan, at->peak_bytes - 1, law_models[m].name, mem);
            }
            check_find(graph, plan, 1, law_models[m].name, mem);
            rc_arena_close(mem);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_outline_is_the_schedule_of_all_layers),
        cmocka_unit_test(the_cheapest_that_fits_is_that_of_pricing_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
