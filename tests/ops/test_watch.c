/* test_watch.c — a kernel that is skipped, or does a part, ends the run; a run that lost nothing does not.
 *
 * Faulty tables of kernels stand in for a build, a library or a team that leaves work undone.
 */
#include "../laws/law.h"

#include "exec/run.h"

#include <omp.h>

enum { MOST_TOKENS = 256 };

/* The faulty kernel: the first call of `kind` in that direction does `share` of its work (its rows' beginning),
 * a kernel having no argument of ours. */
static struct {
    rc_op_kind kind;
    bool is_backward, is_part;
    const rc_schedule *schedule;
} plan;

static void do_part(const rc_call *call)
{
    if (!plan.is_part)
        return;
    (plan.is_backward ? rc_backend_cpu.bwd : rc_backend_cpu.fwd)[plan.kind](call);
    /* the last element of the first output as if it had not been reached */
    const rc_graph *graph = plan.schedule->graph;
    for (int i = 0; i < graph->n_ops; i++) {
        const rc_op row = rc_graph_op(graph, i), *op = &row;
        if (op->kind != plan.kind || op->attr.random_id != call->attr->random_id)
            continue;
        const rc_tensor of = rc_graph_tensor(graph, plan.is_backward ? op->in[0] : op->out[0]);
        const rc_tensor *tensor = &of;
        const rc_operand *out = plan.is_backward ? &call->d_in[0] : &call->out[0];
        int64_t last = (tensor->rows - 1) * tensor->ld + tensor->n_elem / tensor->rows - 1;
        memset((char *)out->at + last * rc_dtype_bytes(out->dtype), 0xFF,
               (size_t)rc_dtype_bytes(out->dtype));
        return;
    }
}

static void do_nothing(const rc_call *call)
{
    (void)call;
}

static void fill_tokens(const rc_graph *graph, int32_t *tokens, int32_t *targets)
{
    assert_true(graph->dims.N <= MOST_TOKENS);
    for (int64_t i = 0; i < graph->dims.N; i++) {
        tokens[i] = (int32_t)(i * 37 % graph->dims.W);
        targets[i] = i % 13 == 5 ? -1 : (int32_t)((i * 53 + 11) % graph->dims.W);
    }
}

/* One step; gives what the micro-batch returned. */
static rc_code step_on(const rc_backend *backend, const rc_schedule *schedule, rc_error *err,
                       int64_t *touched_bytes)
{
    rc_run *run;
    int32_t tokens[MOST_TOKENS], targets[MOST_TOKENS];
    double loss;
    rc_run_options options = {.seed = 5, .n_micro_batches = 1, .is_poisoned = true};
    fill_tokens(schedule->graph, tokens, targets);
    law_check(rc_run_open_on(backend, schedule, &options, &run, err), err);
    rc_run_init_weights(run);
    rc_batch batch = {.tokens = tokens, .targets = targets};
    rc_code code = rc_run_micro(run, &batch, &loss, err);
    *touched_bytes = rc_run_touched_bytes(run);
    rc_run_close(run);
    return code;
}

static bool has_op(const rc_graph *graph, int kind)
{
    for (int i = 0; i < graph->n_ops; i++)
        if ((int)rc_graph_op(graph, i).kind == kind)
            return true;
    return false;
}

/* Ops whose outputs all stand in the place of an operand, or are added to what is there: they cannot
 * be watched, and the laws of gradients hold them (tests/laws). */
static bool is_watchable(int kind, bool is_backward)
{
    switch (kind) {
    case RC_OP_embedding:
    case RC_OP_layernorm:
    case RC_OP_rmsnorm:
    case RC_OP_contiguous:
        return !is_backward;
    case RC_OP_linear:
    case RC_OP_attention:
    case RC_OP_attn_scores:
    case RC_OP_attn_context:
    case RC_OP_activation:
        return true;
    case RC_OP_cross_entropy:
        return !is_backward;
    default:
        return false;
    }
}

static void need_found(const rc_schedule *schedule, int kind, bool is_backward, bool is_part)
{
    rc_backend backend = rc_backend_cpu;
    rc_error err = {0};
    int64_t touched;
    backend.name = "faulty";
    (is_backward ? backend.bwd : backend.fwd)[kind] = is_part ? do_part : do_nothing;
    plan.kind = (rc_op_kind)kind;
    plan.is_backward = is_backward;
    plan.is_part = is_part;
    plan.schedule = schedule;
    rc_code code = step_on(&backend, schedule, &err, &touched);
    if (code != RC_E_BUG || touched != 0)
        fail_msg("%s of %s, %s: code %d, %lld bytes called touched",
                 is_backward ? "backward" : "forward", rc_op_find((rc_op_kind)kind)->name,
                 is_part ? "a part" : "skipped", (int)code, (long long)touched);
    assert_non_null(strstr(err.msg, "elements"));
}

static void a_skipped_or_partial_kernel_ends_the_run(void **state)
{
    int n_tried = 0;
    (void)state;
    for (size_t m = 0; m < LAW_N_MODELS; m++)
        for (size_t c = 0; c < 2; c++) {
            rc_arena *mem = rc_arena_open();
            const rc_graph *graph = law_graph(&law_models[m], law_cores[c], mem);
            rc_schedule *schedule = law_schedule(graph, "full/uniform/2", 2, mem);
            for (int kind = 0; kind < RC_OP_COUNT; kind++)
                for (int how = 0; how < 4; how++) {
                    bool is_backward = how & 1, is_part = how & 2;
                    if (!has_op(graph, kind) || !is_watchable(kind, is_backward))
                        continue;
                    need_found(schedule, kind, is_backward, is_part);
                    n_tried++;
                }
            rc_arena_close(mem);
        }
    assert_true(n_tried > 100);
}

static void a_build_that_calls_no_kernel_touches_nothing(void **state)
{
    (void)state;
    for (size_t m = 0; m < LAW_N_MODELS; m++) {
        rc_backend backend = {.name = "none"};
        rc_arena *mem = rc_arena_open();
        const rc_graph *graph = law_graph(&law_models[m], "fused", mem);
        rc_error err = {0};
        int64_t touched;
        for (int kind = 0; kind < RC_OP_COUNT; kind++)
            backend.fwd[kind] = backend.bwd[kind] = do_nothing;
        assert_int_equal(step_on(&backend, law_schedule(graph, "none", 1, mem), &err, &touched),
                         RC_E_BUG);
        assert_int_equal(touched, 0);
        rc_arena_close(mem);
    }
}

/* An arena larger than what kernels reach into is not called touched. */
static void touched_is_measured_not_planned(void **state)
{
    (void)state;
    for (size_t m = 0; m < LAW_N_MODELS; m++) {
        rc_arena *mem = rc_arena_open();
        const rc_graph *graph = law_graph(&law_models[m], "unfused", mem);
        rc_schedule *schedule = law_schedule(graph, "full/block/1", 2, mem), roomy = *schedule;
        rc_error err = {0};
        int64_t touched;
        roomy.arena_bytes += 1 << 20;
        law_check(step_on(&rc_backend_cpu, &roomy, &err, &touched), &err);
        assert_int_equal(touched, schedule->arena_bytes);
        rc_arena_close(mem);
    }
}

static void find_no_memory(const rc_call *call)
{
    rc_fault_note(call->fault, RC_FAULT_LIBRARY_MEMORY);
}

/* Also after the watched micro-batch, and in an evaluation. */
static void a_fault_is_an_error_at_any_step(void **state)
{
    (void)state;
    rc_backend backend = rc_backend_cpu;
    rc_arena *mem = rc_arena_open();
    const rc_graph *graph = law_graph(&law_models[0], "fused", mem);
    rc_schedule *schedule = law_schedule(graph, "none", 1, mem);
    for (int is_evaluation = 0; is_evaluation < 2; is_evaluation++) {
        rc_run *run;
        rc_error err = {0};
        double loss = 0;
        int32_t tokens[MOST_TOKENS], targets[MOST_TOKENS];
        fill_tokens(graph, tokens, targets);
        rc_batch batch = {.tokens = tokens, .targets = targets, .step = 1};
        backend.fwd[RC_OP_linear] = rc_backend_cpu.fwd[RC_OP_linear];
        law_check(rc_run_open_on(&backend, schedule, &(rc_run_options){.n_micro_batches = 1},
                                 &run, &err),
                  &err);
        rc_run_init_weights(run);
        law_micro(run, tokens, targets, 0, 0);
        backend.fwd[RC_OP_linear] = find_no_memory;
        rc_code code = is_evaluation ? rc_run_eval(run, &batch, &loss, &err)
                                     : rc_run_micro(run, &batch, &loss, &err);
        assert_int_equal(code, RC_E_MEMORY);
        assert_true(loss != loss); /* no number to go on with */
        assert_non_null(strstr(err.msg, "finds no memory"));
        rc_run_close(run);
    }
    rc_arena_close(mem);
}

/* The caller's threads: inside a region of its own, with another mode, with fewer than asked for. */
static double loss_at(const rc_schedule *schedule)
{
    rc_run *run;
    rc_error err = {0};
    int32_t tokens[MOST_TOKENS], targets[MOST_TOKENS];
    double losses[2];
    rc_run_options options = {.seed = 5, .n_micro_batches = 1};
    fill_tokens(schedule->graph, tokens, targets);
    law_check(rc_run_open(schedule, &options, &run, &err), &err);
    rc_run_init_weights(run);
    for (int step = 0; step < 2; step++) {
        losses[step] = law_micro(run, tokens, targets, step, 0);
        law_update(run,
                   &(rc_update){
                       .lr = 1e-2, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-8, .step = step + 1});
    }
    rc_run_close(run);
    return losses[1];
}

static void any_team_gives_the_right_numbers(void **state)
{
    (void)state;
    for (size_t m = 0; m < LAW_N_MODELS; m++)
        for (size_t c = 0; c < 2; c++) {
            rc_arena *mem = rc_arena_open();
            const rc_graph *graph = law_graph(&law_models[m], law_cores[c], mem);
            rc_schedule *schedule = law_schedule(graph, "none", 2, mem);
            double alone = loss_at(schedule), dynamic, flat, nested = 0;
            omp_set_dynamic(1);
            dynamic = loss_at(schedule);
            assert_int_equal(omp_get_dynamic(), 1); /* the caller's own is put back */
            omp_set_dynamic(0);
            const int levels = omp_get_max_active_levels();
            omp_set_max_active_levels(0);
            flat = loss_at(schedule);
            assert_int_equal(omp_get_max_active_levels(), 0);
            omp_set_max_active_levels(levels);
#pragma omp parallel num_threads(2)
#pragma omp single
            nested = loss_at(schedule); /* a team of one */
            assert_true(alone == dynamic && alone == flat);
            if (!(nested > alone - 1e-5 && nested < alone + 1e-5))
                fail_msg("%s %s: %.9g inside a region, %.9g outside", law_models[m].name,
                         law_cores[c], nested, alone);
            rc_arena_close(mem);
        }
}

static void the_library_works_inside_its_scratch(void **state)
{
    (void)state;
    for (size_t m = 0; m < LAW_N_MODELS; m++)
        for (size_t c = 0; c < 2; c++) {
            rc_arena *mem = rc_arena_open();
            const rc_graph *graph = law_graph(&law_models[m], law_cores[c], mem);
            rc_schedule *schedule = law_schedule(graph, "none", 2, mem);
            rc_run *run;
            rc_cost *cost;
            rc_error err = {0};
            int32_t tokens[MOST_TOKENS], targets[MOST_TOKENS];
            fill_tokens(graph, tokens, targets);
            law_check(rc_cost_make(schedule, mem, &cost, &err), &err);
            law_check(
                rc_run_open(schedule, &(rc_run_options){.n_micro_batches = 1}, &run, &err),
                &err);
            rc_run_init_weights(run);
            law_micro(run, tokens, targets, 0, 0);
            assert_true(rc_run_library_bytes(run) <= cost->library_bytes);
            assert_int_equal(rc_run_touched_bytes(run), cost->peak_bytes);
            rc_run_close(run);
            rc_arena_close(mem);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_skipped_or_partial_kernel_ends_the_run),
        cmocka_unit_test(a_build_that_calls_no_kernel_touches_nothing),
        cmocka_unit_test(touched_is_measured_not_planned),
        cmocka_unit_test(a_fault_is_an_error_at_any_step),
        cmocka_unit_test(any_team_gives_the_right_numbers),
        cmocka_unit_test(the_library_works_inside_its_scratch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
