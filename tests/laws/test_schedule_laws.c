/* test_schedule_laws.c — what holds for every schedule, without running it: no overlap, operands
 * alive and written, the arena near its bound, a label pays. */
#include "law.h"

/* Runs `check` on every model x core x setting. */
static void for_grid(void (*check)(const rc_schedule *, const char *, rc_arena *))
{
    for (size_t m = 0; m < LAW_N_MODELS; m++)
        for (size_t c = 0; c < 2; c++) {
            rc_arena *mem = rc_arena_open();
            const rc_graph *graph = law_graph(&law_models[m], law_cores[c], mem);
            law_settings settings = law_all_settings(graph, mem);
            for (size_t i = 0; i < settings.n; i++)
                for (int threads = 1; threads <= 2; threads++) {
                    char name[200];
                    snprintf(name, sizeof name, "%s %s %s, %d threads", law_models[m].name,
                             law_cores[c], settings.at[i], threads);
                    check(law_schedule(graph, settings.at[i], threads, mem), name, mem);
                }
            rc_arena_close(mem);
        }
}

static void check_no_overlap(const rc_schedule *schedule, const char *name, rc_arena *mem)
{
    rc_error err = {0};
    if (rc_schedule_verify(schedule, mem, &err) != RC_OK)
        fail_msg("%s: %s", name, err.msg);
}

static void live_tensors_never_overlap(void **state)
{
    (void)state;
    for_grid(check_no_overlap);
}

static void check_near_bound(const rc_schedule *schedule, const char *name, rc_arena *mem)
{
    (void)mem;
    if ((double)schedule->arena_bytes > 1.02 * (double)schedule->bound_bytes)
        fail_msg("%s: arena %lld, bound %lld", name, (long long)schedule->arena_bytes,
                 (long long)schedule->bound_bytes);
}

static void arena_is_within_two_percent_of_the_bound(void **state)
{
    (void)state;
    for_grid(check_near_bound);
}

static void check_no_third_run(const rc_schedule *schedule, const char *name, rc_arena *mem)
{
    int *n_runs;
    rc_error err = {0};
    law_check(RC_NEW(mem, &n_runs, schedule->graph->n_ops, &err), &err);
    for (int i = 0; i < schedule->n_instrs; i++) {
        const rc_instr *instr = &schedule->instrs[i];
        if (instr->kind != RC_INSTR_FORWARD && instr->kind != RC_INSTR_RECOMPUTE)
            continue;
        if (++n_runs[instr->op] > 2)
            fail_msg("%s: %s runs three times", name,
                     rc_graph_op(schedule->graph, instr->op).part);
    }
}

static void no_op_runs_a_third_time(void **state)
{
    (void)state;
    for_grid(check_no_third_run);
}

/* The last product of a layer gives only the sum that nothing in backward reads. */
static void a_block_leaves_out_its_last_product(void **state)
{
    (void)state;
    rc_arena *mem = rc_arena_open();
    const rc_graph *graph = law_graph(&law_models[0], "fused", mem);
    const rc_schedule *schedule = law_schedule(graph, "full/uniform/1", 1, mem);
    int n_fc1 = 0, n_fc2 = 0;
    for (int i = 0; i < schedule->n_instrs; i++) {
        const rc_instr *instr = &schedule->instrs[i];
        if (instr->kind != RC_INSTR_RECOMPUTE)
            continue;
        n_fc1 += strstr(rc_graph_op(graph, instr->op).part, "mlp.linear_fc1") != NULL;
        n_fc2 += strstr(rc_graph_op(graph, instr->op).part, "mlp.linear_fc2") != NULL;
    }
    assert_true(n_fc1 >= graph->dims.L - 1);
    assert_int_equal(n_fc2, 0);
    rc_arena_close(mem);
}

/* Between a RECOMPUTE and the first instruction that reads its result nothing else runs than other
 * recomputes: a replay starts at its first reader. */
static void a_replay_starts_at_its_first_reader(void **state)
{
    (void)state;
    rc_arena *mem = rc_arena_open();
    const rc_graph *graph = law_graph(&law_models[2], "unfused", mem);
    const rc_schedule *s = law_schedule(graph, "full/uniform/2", 1, mem);
    for (int i = 0; i + 1 < s->n_instrs; i++) {
        if (s->instrs[i].kind != RC_INSTR_RECOMPUTE)
            continue;
        int reader = i + 1;
        while (s->instrs[reader].kind == RC_INSTR_RECOMPUTE)
            reader++;
        assert_int_equal(s->instrs[reader].kind, RC_INSTR_BACKWARD);
    }
    /* and the chain of recomputes just before a backward instruction feeds it or one another */
    rc_error err = {0};
    law_check(rc_schedule_verify(s, mem, &err), &err);
    rc_arena_close(mem);
}

static int count_recomputes(const rc_schedule *s, int layer)
{
    int n = 0;
    for (int i = 0; i < s->n_instrs; i++)
        n += s->instrs[i].kind == RC_INSTR_RECOMPUTE &&
             rc_graph_op(s->graph, s->instrs[i].op).layer == layer;
    return n;
}

/* The last layer's backward follows the loss at once: it is kept, unless the loss is the peak. */
static void a_layer_whose_backward_comes_next_is_kept_unless_the_loss_is_the_peak(void **state)
{
    static const law_model large_vocabulary = {"large vocabulary",
                                               {LAW_COMMON, "model.vocab_size=20000"}};
    (void)state;
    rc_arena *mem = rc_arena_open();
    const rc_graph *graph = law_graph(&law_models[0], "fused", mem);
    int last = (int)graph->dims.L - 1;
    const rc_schedule *s = law_schedule(graph, "full/uniform/1", 1, mem);
    assert_true(s->policy->is_last_layer_kept);
    assert_int_equal(count_recomputes(s, last), 0);
    assert_true(count_recomputes(s, last - 1) > 0);
    graph = law_graph(&large_vocabulary, "fused", mem);
    s = law_schedule(graph, "full/uniform/1", 1, mem);
    assert_false(s->policy->is_last_layer_kept);
    assert_true(count_recomputes(s, last) > 0);
    rc_arena_close(mem);
}

static bool covers(uint32_t a, uint32_t b)
{
    return (a & b) == b;
}

/* In the engine one more label never raises what forward retains and never lowers FLOPs. */
static void need_labels_pay(const rc_graph *graph, const char *name, rc_arena *mem)
{
    enum { MOST_SETS = 1 << 6 };
    rc_label acting[RC_LABEL_COUNT];
    int n_labels = law_labels(graph, acting);
    uint32_t n_sets = 1u << n_labels, labels[MOST_SETS];
    int64_t retained[MOST_SETS], flops[MOST_SETS];
    assert_in_range(n_labels, 3, 6);
    for (uint32_t set = 0; set < n_sets; set++) {
        labels[set] = 0;
        for (int i = 0; i < n_labels; i++)
            labels[set] |= (set >> i & 1u) << acting[i];
        rc_setting setting = {.granularity = RC_GRANULARITY_SELECTIVE, .labels = labels[set]};
        const rc_schedule *schedule =
            law_made(graph, &setting, 1, RC_NOUN_SCHEDULE, mem).schedule;
        flops[set] = schedule->recompute_flops;
        retained[set] = schedule->retained_bytes;
    }
    for (uint32_t i = 0; i < n_sets; i++)
        for (uint32_t j = 0; j < n_sets; j++)
            if (covers(j, i) && (retained[j] > retained[i] || flops[j] < flops[i]))
                fail_msg("%s: labels %x retain %lld at %lld flops, %x retain %lld at %lld",
                         name, labels[i], (long long)retained[i], (long long)flops[i],
                         labels[j], (long long)retained[j], (long long)flops[j]);
}

static void a_label_pays(void **state)
{
    (void)state;
    for (size_t m = 0; m < LAW_N_MODELS; m++)
        for (size_t c = 0; c < 2; c++) {
            rc_arena *mem = rc_arena_open();
            char name[80];
            snprintf(name, sizeof name, "%s %s", law_models[m].name, law_cores[c]);
            need_labels_pay(law_graph(&law_models[m], law_cores[c], mem), name, mem);
            rc_arena_close(mem);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(live_tensors_never_overlap),
        cmocka_unit_test(arena_is_within_two_percent_of_the_bound),
        cmocka_unit_test(no_op_runs_a_third_time),
        cmocka_unit_test(a_block_leaves_out_its_last_product),
        cmocka_unit_test(a_replay_starts_at_its_first_reader),
        cmocka_unit_test(a_layer_whose_backward_comes_next_is_kept_unless_the_loss_is_the_peak),
        cmocka_unit_test(a_label_pays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
