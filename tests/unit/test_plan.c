/* test_plan.c — the cheapest setting that fits, and budgets that cannot be met. */
#include "../laws/law.h"

static void plan_prices_every_setting_once_and_proves_the_best(void **state)
{
    (void)state;
    rc_error err = {0};
    rc_arena *mem = rc_arena_open();
    const rc_graph *graph = law_graph(&law_models[0], "unfused", mem);
    rc_plan *plan;
    int64_t L = graph->dims.L;
    law_check(rc_plan_make(graph, 1, 0, mem, &plan, &err), &err);
    assert_int_equal(plan->n, 8 + (L - 1) + L); /* label subsets, block, uniform */
    assert_int_equal(plan->best, 0);            /* without a budget: do nothing */
    assert_int_equal(plan->candidates[0].recompute_flops, 0);
    for (size_t i = 0; i < plan->n; i++) {
        int64_t budget = plan->candidates[i].peak_bytes;
        rc_plan *tight;
        law_check(rc_plan_make(graph, 1, budget, mem, &tight, &err), &err);
        const rc_candidate *best = &tight->candidates[tight->best];
        assert_true(best->peak_bytes <= budget);
        for (size_t k = 0; k < plan->n; k++)
            if (plan->candidates[k].peak_bytes <= budget)
                assert_true(best->replay_cost <= plan->candidates[k].replay_cost);
    }
    rc_arena_close(mem);
}

static void a_budget_that_cannot_be_met_names_the_nearest_setting(void **state)
{
    (void)state;
    rc_error err = {0};
    rc_arena *mem = rc_arena_open();
    const rc_graph *graph = law_graph(&law_models[0], "unfused", mem);
    rc_schedule *none = law_schedule(graph, "none", 1, mem);
    rc_schedule *full = law_schedule(graph, "full/uniform/1", 1, mem);
    law_check(rc_plan_refuse_over_budget(none, none->arena_bytes, RC_NOWHERE, mem, &err), &err);
    assert_int_equal(
        rc_plan_refuse_over_budget(none, none->arena_bytes - 1, RC_NOWHERE, mem, &err),
        RC_E_INPUT);
    assert_non_null(strstr(err.msg, "the cheapest setting that fits needs"));
    assert_non_null(strstr(err.msg, "model.recompute_granularity="));
    err = (rc_error){0};
    assert_int_equal(
        rc_plan_refuse_over_budget(none, full->persistent_bytes, RC_NOWHERE, mem, &err),
        RC_E_INPUT);
    assert_non_null(strstr(err.msg, "no setting fits"));
    err = (rc_error){0};
    assert_int_equal(rc_plan_refuse_over_budget(none, 0, RC_NOWHERE, mem, &err), RC_E_INPUT);
    assert_non_null(strstr(err.msg, "null sets no limit")); /* 0 is no lack of a limit */
    rc_arena_close(mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plan_prices_every_setting_once_and_proves_the_best),
        cmocka_unit_test(a_budget_that_cannot_be_met_names_the_nearest_setting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
