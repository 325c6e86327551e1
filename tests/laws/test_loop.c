/* test_loop.c — what the training loop makes of a config: samples, rates, updates, evaluations. */
#include "loop.h"

/* ---- samples ---- */

/* Where the sample lies in the text: tokens there, targets one further on. -1: nowhere. */
static int64_t find_sample(const int32_t *tokens, const int32_t *targets, int64_t end)
{
    for (int64_t at = 0; at + LOOP_S < end; at++) {
        bool is_here = true;
        for (int i = 0; i < LOOP_S && is_here; i++)
            is_here = tokens[i] == loop_text[at + i] && targets[i] == loop_text[at + i + 1];
        if (is_here)
            return at;
    }
    return -1;
}

static int count_calls(const loop_record *record, const char *kind)
{
    int n = 0;
    for (int i = 0; i < record->n; i++)
        n += loop_is(&record->calls[i], kind);
    return n;
}

/* A step is global_batch_size samples in so many micro-batches and then one update; no sample of a
 * pass is left out or comes twice; targets are the next tokens. */
static void a_step_takes_the_next_global_batch(void **state)
{
    static const struct {
        int b, n_global;
    } sizes[] = {{2, 6}, {6, 6}, {1, 4}, {3, 3}};
    static loop_record record;
    (void)state;
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        const int n_micro = sizes[k].n_global / sizes[k].b;
        char line[200];
        bool is_seen[LOOP_N_TEXT] = {false};
        snprintf(line, sizeof line,
                 "train.micro_batch_size=%d train.global_batch_size=%d train.eval_interval=0",
                 sizes[k].b, sizes[k].n_global);
        memset(&record, 0, sizeof record);
        rc_train_result result = loop_train(line, &record);
        assert_int_equal(record.n, 7 * (n_micro + 1));
        for (int i = 0; i < record.n; i++) {
            const loop_call *call = &record.calls[i];
            if (i % (n_micro + 1) == n_micro) {
                assert_string_equal(call->kind, "update");
                assert_int_equal(call->update.step, i / (n_micro + 1) + 1);
                continue;
            }
            assert_string_equal(call->kind, "micro");
            assert_int_equal(call->step, i / (n_micro + 1));
            assert_int_equal(call->micro, i % (n_micro + 1));
            assert_int_equal(call->n_tokens, sizes[k].b * LOOP_S);
            for (int j = 0; j < sizes[k].b; j++) {
                int64_t at = find_sample(call->tokens + j * LOOP_S, call->targets + j * LOOP_S,
                                         LOOP_N_TEXT);
                assert_true(at >= 0 && at % LOOP_S == 0 && !is_seen[at]);
                is_seen[at] = true;
            }
        }
        assert_int_equal(result.n_samples, 7 * sizes[k].n_global);
        assert_int_equal(result.n_tokens, 7 * sizes[k].n_global * LOOP_S);
    }
}

/* Calls of one kind consume samples 0, 1, 2, ... of a dataset. */
static void need_order(const loop_record *record, const char *kind, const rc_dataset *dataset,
                       int64_t n_right)
{
    int64_t n = 0;
    for (int i = 0; i < record->n; i++) {
        const loop_call *call = &record->calls[i];
        if (!loop_is(call, kind))
            continue;
        int32_t tokens[LOOP_S], targets[LOOP_S];
        for (int64_t at = 0; at < call->n_tokens; at += LOOP_S, n++) {
            rc_error err = {0};
            law_check(rc_dataset_sample(dataset, n, tokens, targets, &err), &err);
            assert_memory_equal(tokens, call->tokens + at, sizeof tokens);
            assert_memory_equal(targets, call->targets + at, sizeof targets);
        }
    }
    assert_int_equal(n, n_right);
}

/* Training goes on to a second pass; evaluations go on where the last one was. */
static void samples_come_in_the_order_of_the_dataset(void **state)
{
    static loop_record record;
    rc_error err = {0};
    rc_training *training;
    const char *line = "train.train_iters=40 train.eval_interval=3 train.eval_iters=2";
    (void)state;
    memset(&record, 0, sizeof record);
    loop_train(line, &record);
    rc_arena *mem = rc_arena_open();
    law_check(rc_training_open(loop_config(line, mem), mem, &training, &err), &err);
    law_check(rc_training_order(training, &err), &err);
    need_order(&record, "micro", training->train, 40 * 6);
    need_order(&record, "eval", training->valid, (40 / 3 + 1) * 2 * 6);
    assert_true(training->train->n_epochs == 2);
    rc_training_close(training);
    rc_arena_close(mem);
}

/* ---- losses, seeds, draws ---- */

static void losses_told_are_means(void **state)
{
    static loop_record record;
    int at = 0;
    (void)state;
    memset(&record, 0, sizeof record);
    rc_train_result result = loop_train("train.eval_iters=2", &record);
    assert_int_equal(record.n_events, 7 + 4); /* evaluated after 2, 4, 6 and at the end */
    static const int steps[] = {1, 2, 2, 3, 4, 4, 5, 6, 6, 7, 7};
    for (int i = 0; i < record.n_events; i++) {
        const rc_train_event *event = &record.events[i];
        const int n = event->kind == RC_TRAIN_STEP ? 3 : 6;
        double sum = 0;
        assert_int_equal(event->iteration, steps[i]);
        for (int k = 0; k < n; k++, at++) {
            assert_string_equal(record.calls[at].kind, n == 3 ? "micro" : "eval");
            sum += record.calls[at].value;
        }
        assert_true(fabs(event->loss - sum / n) <= 1e-15 * sum);
        if (n == 3)
            assert_true(event->grad_norm == record.calls[at++].value);
        else
            assert_true(i < record.n_events - 1 || result.valid_loss == event->loss);
    }
    assert_int_equal(at, record.n);
}

static void every_micro_batch_draws_anew_under_the_runs_seed(void **state)
{
    static const char *const lines[] = {"", "train.micro_batch_size=6",
                                        "train.micro_batch_size=1 rng.seed=4294967295"};
    static loop_record record;
    (void)state;
    for (size_t k = 0; k < 3; k++) {
        memset(&record, 0, sizeof record);
        loop_train(lines[k], &record);
        for (int i = 0; i < record.n; i++) {
            const loop_call *call = &record.calls[i];
            if (!loop_is(call, "micro")) {
                assert_int_equal(call->n_draws, 0);
                continue;
            }
            assert_true(call->n_draws > 0);
            assert_true(call->seed == (k == 2 ? 4294967295u : 77u));
            for (int j = 0; j < i; j++)
                assert_true(!loop_is(&record.calls[j], "micro") ||
                            record.calls[j].draw != call->draw);
        }
    }
}

/* ---- evaluation ---- */

/* Evaluated often, seldom or never: the same training calls, with the same values, and the same
 * weights in the end. */
static void evaluation_leaves_no_trace(void **state)
{
    static const char *const lines[] = {"train.eval_interval=0", "train.eval_interval=1",
                                        "train.eval_interval=3 train.eval_iters=4"};
    static loop_record records[3];
    (void)state;
    memset(records, 0, sizeof records);
    for (int k = 0; k < 3; k++) {
        char name[16];
        snprintf(name, sizeof name, "eval%d", k);
        loop_record *record = &records[k];
        loop_train(loop_line(name, false, lines[k]), record);
        int n_evals = count_calls(record, "eval"), n = 0;
        assert_int_equal(n_evals, k == 0 ? 0 : k == 1 ? 7 * 3 : 3 * 4 * 3);
        for (int i = 0; i < record->n; i++)
            if (!loop_is(&record->calls[i], "eval"))
                record->calls[n++] = record->calls[i];
        record->n = n;
        loop_need_same(&records[0], record, lines[k]);
    }
    loop_need_same_files("eval0/iter_0000007", "eval1/iter_0000007");
    loop_need_same_files("eval0/iter_0000007", "eval2/iter_0000007");
}

/* Samples of the validation part of the text alone, which training never sees, and their loss is that
 * of the model without dropout. */
static void evaluation_is_of_its_own_samples_without_dropout(void **state)
{
    static loop_record wet, dry;
    const char *still = "optimizer.lr=0 optimizer.min_lr=0 scheduler.lr_warmup_init=0 "
                        "train.eval_interval=1 train.eval_iters=2 dataset.split=\"8,2\"";
    char line[400];
    int64_t first_valid = LOOP_N_TEXT + 1, last_train = 0;
    (void)state;
    memset(&wet, 0, sizeof wet);
    memset(&dry, 0, sizeof dry);
    loop_train(still, &wet);
    snprintf(line, sizeof line, "%s model.hidden_dropout=0 model.attention_dropout=0", still);
    loop_train(line, &dry);
    assert_int_equal(wet.n, dry.n);
    for (int i = 0; i < wet.n; i++) {
        const loop_call *call = &wet.calls[i];
        assert_memory_equal(call->tokens, dry.calls[i].tokens, sizeof call->tokens);
        if (loop_is(call, "eval"))
            assert_true(call->value == dry.calls[i].value);
        if (loop_is(call, "micro"))
            assert_true(call->value != dry.calls[i].value);
        for (int64_t at = 0; at < call->n_tokens; at += LOOP_S) {
            int64_t from = find_sample(call->tokens + at, call->targets + at, LOOP_N_TEXT);
            if (from < 0)
                continue; /* the last one holds the end of the document */
            if (loop_is(call, "eval") && from < first_valid)
                first_valid = from;
            if (loop_is(call, "micro") && from > last_train)
                last_train = from;
        }
    }
    assert_true(last_train + LOOP_S < first_valid);
}

/* ---- rates and updates ---- */

static float *last_weights, *now_weights;
static double largest_moves[64];

static void copy_weights(const rc_training *training, float *to)
{
    int n;
    const rc_run_param *params = rc_run_params(training->run, &n);
    for (int i = 0; i < n; i++) {
        memcpy(to, params[i].weight, (size_t)params[i].tensor.bytes);
        to += params[i].tensor.n_elem;
    }
}

static void measure_move(loop_record *record, const rc_train_event *event)
{
    const int64_t n = record->training->passes.graph->n_parameters;
    copy_weights(record->training, now_weights);
    double most = 0;
    for (int64_t i = 0; i < n && event->iteration > 1; i++)
        most = fmax(most, fabs((double)now_weights[i] - (double)last_weights[i]));
    largest_moves[event->iteration - 1] = most;
    memcpy(last_weights, now_weights, (size_t)n * sizeof *now_weights);
}

/* Without moments AdamW is the sign of the gradient times the rate: weights tell what rate they were
 * moved by. That is also what the update was asked for, and what the event tells. */
static void weights_move_by_the_rate_of_their_step(void **state)
{
    static const char *const styles[] = {
        "constant", "linear", "cosine", "inverse-square-root",
        "WSD scheduler.lr_wsd_decay_iters=6 scheduler.lr_wsd_decay_style=linear"};
    static loop_record record;
    (void)state;
    last_weights = malloc(200000);
    now_weights = malloc(200000);
    for (size_t k = 0; k < sizeof styles / sizeof *styles; k++) {
        char line[400];
        snprintf(line, sizeof line,
                 "optimizer.adam_beta1=0 optimizer.adam_beta2=0 optimizer.weight_decay=0 "
                 "optimizer.adam_eps=1e-12 optimizer.clip_grad=0 train.train_iters=12 "
                 "train.eval_interval=0 scheduler.lr_warmup_iters=3 "
                 "scheduler.lr_decay_style=%s",
                 styles[k]);
        memset(&record, 0, sizeof record);
        record.after_step = measure_move;
        loop_train(line, &record);
        for (int i = 0; i < 12; i++) {
            const rc_train_event *event = &record.events[i];
            /* warm-up from 0.002 to 0.01 in 3 steps; what follows is law.rates' matter */
            if (i < 4)
                assert_true(fabs(event->lr - (0.002 + 0.008 * i / 3)) < 1e-15);
            if (i > 0) {
                assert_true(event->lr == record.events[i - 1].next_lr);
                assert_true(fabs(largest_moves[i] - event->lr) <= 2e-4 * event->lr);
            }
        }
        assert_true(fabs(record.events[11].lr - record.events[4].lr) > 1e-4 || k == 0);
    }
    free(last_weights);
    free(now_weights);
}

/* The config's numbers reach the update as they are, with the number of its step. */
static void update_is_what_the_config_says(void **state)
{
    static loop_record record;
    int n_updates = 0;
    (void)state;
    memset(&record, 0, sizeof record);
    loop_train("optimizer.adam_beta1=0.8 optimizer.adam_beta2=0.7 optimizer.adam_eps=1e-5 "
               "optimizer.weight_decay=0.03 optimizer.clip_grad=0.25 train.eval_interval=0",
               &record);
    for (int i = 0; i < record.n; i++) {
        const rc_update *update = &record.calls[i].update;
        if (!loop_is(&record.calls[i], "update"))
            continue;
        assert_true(update->lr == record.events[n_updates].lr);
        assert_int_equal(update->step, ++n_updates);
        assert_true(update->beta1 == 0.8 && update->beta2 == 0.7 && update->eps == 1e-5);
        assert_true(update->weight_decay == 0.03 && update->clip_grad == 0.25);
    }
    assert_int_equal(n_updates, 7);
}

/* A clip above every norm leaves the run as it is without one; a small one does not, and the first
 * norm that is told is the one before clipping. */
static void clip_above_the_norms_changes_nothing(void **state)
{
    static const char *const clips[] = {"0", "1e30", "1000", "0.01"};
    static loop_record records[4];
    (void)state;
    memset(records, 0, sizeof records);
    for (int k = 0; k < 4; k++) {
        char name[16], line[100];
        snprintf(name, sizeof name, "clip%d", k);
        snprintf(line, sizeof line, "optimizer.clip_grad=%s", clips[k]);
        loop_train(loop_line(name, false, line), &records[k]);
        for (int i = 0; i < records[k].n_events; i++)
            assert_true(records[k].events[i].grad_norm < 1000);
    }
    loop_need_same_files("clip0/iter_0000007", "clip1/iter_0000007");
    loop_need_same_files("clip0/iter_0000007", "clip2/iter_0000007");
    assert_true(records[3].events[0].grad_norm == records[0].events[0].grad_norm);
    assert_true(records[3].events[1].loss != records[0].events[1].loss);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_takes_the_next_global_batch),
        cmocka_unit_test(samples_come_in_the_order_of_the_dataset),
        cmocka_unit_test(losses_told_are_means),
        cmocka_unit_test(every_micro_batch_draws_anew_under_the_runs_seed),
        cmocka_unit_test(evaluation_leaves_no_trace),
        cmocka_unit_test(evaluation_is_of_its_own_samples_without_dropout),
        cmocka_unit_test(weights_move_by_the_rate_of_their_step),
        cmocka_unit_test(update_is_what_the_config_says),
        cmocka_unit_test(clip_above_the_norms_changes_nothing),
    };
    return cmocka_run_group_tests_name("loop", tests, loop_open, loop_close);
}
