/* test_resume.c — a run that was stopped and goes on is the run that was not: no step skipped, none
 * taken twice, the same samples, draws, rates, losses and evaluations, the same weights and moments.
 */
#include "loop.h"

enum { N_STEPS = 7 };

static const loop_record *whole(const char *name, const char *more)
{
    static loop_record record;
    memset(&record, 0, sizeof record);
    loop_train(loop_line(name, false, more), &record);
    assert_int_equal(record.n_steps, N_STEPS);
    return &record;
}

/* Without the evaluation after step k: asked to stop, the run breaks it off. */
static const loop_record *without_evaluation(const loop_record *record, int k)
{
    static loop_record out;
    int n_updates = 0;
    out = (loop_record){.n = 0};
    for (int i = 0; i < record->n; i++) {
        n_updates += loop_is(&record->calls[i], "update");
        if (n_updates != k || !loop_is(&record->calls[i], "eval"))
            out.calls[out.n++] = record->calls[i];
    }
    return &out;
}

/* Stopped by who watches, after every possible step. */
static void stopped_at_any_step_it_goes_on_as_if_it_was_not(void **state)
{
    static loop_record parts;
    (void)state;
    const loop_record *right = whole("whole", "");
    for (int k = 1; k < N_STEPS; k++) {
        char name[32], made[64];
        snprintf(name, sizeof name, "stop%d", k);
        memset(&parts, 0, sizeof parts);
        parts.stop_after = k;
        rc_train_result result = loop_train(loop_line(name, true, ""), &parts);
        assert_true(result.is_stopped && result.iteration == k);
        assert_int_equal(parts.n_steps, k);
        parts.stop_after = 0;
        loop_train(loop_line(name, true, ""), &parts);
        loop_need_same(without_evaluation(right, k), &parts, name);
        snprintf(made, sizeof made, "%s/iter_0000007", name);
        loop_need_same_files("whole/iter_0000007", made);
    }
}

/* Ended by train.exit_interval, after each step in turn. */
static void stopped_after_every_step_it_goes_on_as_if_it_was_not(void **state)
{
    static const char *const extras[] = {
        "", "train.micro_batch_size=6",
        "dataset.split=\"8,2\" train.eval_iters=3 dataset.eod_mask_loss=true"};
    static loop_record parts;
    (void)state;
    for (size_t i = 0; i < sizeof extras / sizeof *extras; i++) {
        char more[200], one[32], other[32];
        const loop_record *right = whole(i == 0 ? "a0" : i == 1 ? "a1" : "a2", extras[i]);
        snprintf(more, sizeof more, "train.exit_interval=1 %s", extras[i]);
        snprintf(one, sizeof one, "a%zu/iter_0000007", i);
        snprintf(other, sizeof other, "b%zu", i);
        memset(&parts, 0, sizeof parts);
        for (int k = 1; k <= N_STEPS; k++) {
            rc_train_result result = loop_train(loop_line(other, true, more), &parts);
            assert_int_equal(result.iteration, k);
            assert_int_equal(parts.n_steps, k);
        }
        loop_need_same(right, &parts, other);
        snprintf(other, sizeof other, "b%zu/iter_0000007", i);
        loop_need_same_files(one, other);
    }
}

/* Every save_interval steps and at the end, and at no other. */
static void checkpoints_are_of_the_steps_that_were_asked_for(void **state)
{
    static loop_record record;
    (void)state;
    memset(&record, 0, sizeof record);
    loop_train(loop_line("every", false, "checkpoint.save_interval=3"), &record);
    for (int k = 0; k <= N_STEPS + 1; k++) {
        char path[120];
        snprintf(path, sizeof path, "%s/every/iter_%07d/state.json", loop_folder, k);
        assert_true((access(path, F_OK) == 0) == (k == 3 || k == 6 || k == 7));
    }
}

/* A checkpoint of a run that is done is the last step's: nothing is left to do. */
static void finished_run_takes_no_step(void **state)
{
    static loop_record record;
    (void)state;
    whole("done", "");
    memset(&record, 0, sizeof record);
    rc_train_result result = loop_train(loop_line("done", true, ""), &record);
    assert_int_equal(record.n_steps, 0);
    assert_int_equal(result.iteration, N_STEPS);
    for (int i = 0; i < record.n; i++)
        assert_false(loop_is(&record.calls[i], "micro") || loop_is(&record.calls[i], "update"));
}

/* The micro-batch may change at a stop. Samples go on where they were, and no draw comes again. */
static void another_micro_batch_goes_on_with_new_samples_and_draws(void **state)
{
    static const int sizes[] = {1, 6, 2, 3, 1, 6, 2};
    static loop_record parts;
    (void)state;
    const loop_record *right = whole("sizes", "train.micro_batch_size=1 train.eval_interval=0");
    memset(&parts, 0, sizeof parts);
    for (int k = 0; k < N_STEPS; k++) {
        char more[120];
        snprintf(more, sizeof more,
                 "train.exit_interval=1 train.eval_interval=0 train.micro_batch_size=%d",
                 sizes[k]);
        loop_train(loop_line("other-sizes", true, more), &parts);
    }
    int64_t n_right = 0, n_got = 0;
    static int32_t a[LOOP_MOST_CALLS * LOOP_S], b[LOOP_MOST_CALLS * LOOP_S];
    for (int i = 0; i < right->n; i++) {
        const loop_call *call = &right->calls[i];
        memcpy(a + n_right, call->tokens, (size_t)call->n_tokens * sizeof *a);
        n_right += call->n_tokens;
    }
    for (int i = 0; i < parts.n; i++) {
        const loop_call *call = &parts.calls[i];
        memcpy(b + n_got, call->tokens, (size_t)call->n_tokens * sizeof *b);
        n_got += call->n_tokens;
        for (int j = 0; j < i && loop_is(call, "micro"); j++)
            if (loop_is(&parts.calls[j], "micro") && parts.calls[j].draw == call->draw)
                fail_msg(
                    "step %lld, micro-batch %lld draws what step %lld, micro-batch %lld did",
                    (long long)call->step, (long long)call->micro,
                    (long long)parts.calls[j].step, (long long)parts.calls[j].micro);
    }
    assert_int_equal(n_right, n_got);
    assert_memory_equal(a, b, (size_t)n_right * sizeof *a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stopped_at_any_step_it_goes_on_as_if_it_was_not),
        cmocka_unit_test(stopped_after_every_step_it_goes_on_as_if_it_was_not),
        cmocka_unit_test(checkpoints_are_of_the_steps_that_were_asked_for),
        cmocka_unit_test(finished_run_takes_no_step),
        cmocka_unit_test(another_micro_batch_goes_on_with_new_samples_and_draws),
    };
    return cmocka_run_group_tests_name("resume", tests, loop_open, loop_close);
}
