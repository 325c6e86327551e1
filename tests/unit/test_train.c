/* test_train.c — the loop: resume, stop, accumulate, evaluate, refuse. */
#define _POSIX_C_SOURCE 200809L
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <recompute/exec.h>
#include <recompute/read.h>
#include <recompute/train.h>

#include "../sanitized.h"
#include "train_files.h"

#include <jansson.h>
#include <math.h>

static char folder[64];

/* Everything random is on: three dropouts, accumulation over two micro-batches, evaluation. */
static const char base[] =
    "model: {num_layers: 2, hidden_size: 16, num_attention_heads: 2, seq_length: 16,\n"
    "  attention_dropout: 0.1, hidden_dropout: 0.1}\n"
    "train: {train_iters: 8, micro_batch_size: 2, global_batch_size: 4, eval_interval: 3,\n"
    "  eval_iters: 2}\n"
    "optimizer: {lr: 0.01, weight_decay: 0.1}\n"
    "scheduler: {lr_decay_style: cosine, lr_warmup_iters: 2}\n"
    "engine: {threads: 1}\n";

static int open_all(void **state)
{
    char text[3000];
    make_temp_folder(folder);
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)('a' + i * i % 23);
    write_bytes(path_in(folder, "text"), text, sizeof text);
    (void)state;
    return 0;
}

static int close_all(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

/* What a run showed. */
typedef struct seen {
    double loss[64], valid[64];
    int n_steps, n_valid, n_saves, n_starts, n_stops, n_ends;
    int stop_after; /* steps; 0 never */
    int stop_at;    /* the n-th question alone says stop; 0 none does */
    int n_asked;
} seen;

static void see(void *user, const rc_train_event *event)
{
    seen *s = user;
    s->n_starts += event->kind == RC_TRAIN_START;
    s->n_saves += event->kind == RC_TRAIN_SAVE;
    s->n_stops += event->kind == RC_TRAIN_STOP;
    s->n_ends += event->kind == RC_TRAIN_END;
    if (event->kind == RC_TRAIN_STEP)
        s->loss[s->n_steps++] = event->loss;
    if (event->kind == RC_TRAIN_VALID)
        s->valid[s->n_valid++] = event->loss;
}

static bool wants_stop(void *user)
{
    seen *s = user;
    return ++s->n_asked == s->stop_at || (s->stop_after > 0 && s->n_steps >= s->stop_after);
}

static rc_code make_config(const char *const *words, size_t n, rc_arena *mem, rc_config **cfg,
                           rc_error *err)
{
    rc_doc *docs[3];
    const char *data;
    rc_input inputs[3];
    RC_TRY(rc_arena_printf(mem, &data, err, "dataset.data_path=[%s/text]", folder));
    RC_TRY(rc_yaml_read("base.yaml", base, strlen(base), mem, &docs[0], err));
    RC_TRY(rc_override_read(&data, 1, mem, &docs[1], err));
    RC_TRY(rc_override_read(words, n, mem, &docs[2], err));
    for (int i = 0; i < 3; i++)
        inputs[i] = (rc_input){docs[i], i == 0 ? RC_FROM_FILE : RC_FROM_OVERRIDE};
    RC_TRY(rc_config_make(inputs, 3, mem, cfg, err));
    return rc_train_refuse_unknown(*cfg, err);
}

/* Trains with `words` over the base config, a space between words. */
static rc_code train(const char *line, seen *s, rc_train_result *result, rc_error *err)
{
    char copy[1024];
    const char *words[32];
    size_t n = 0;
    rc_arena *mem = rc_arena_open();
    rc_config *cfg;
    rc_training *training = NULL;
    snprintf(copy, sizeof copy, "%s", line);
    for (char *at = strtok(copy, " "); at; at = strtok(NULL, " "))
        words[n++] = at;
    rc_code code = make_config(words, n, mem, &cfg, err);
    if (code == RC_OK)
        code = rc_training_open(cfg, mem, &training, err);
    rc_train_watch watch = {see, wants_stop, s};
    if (code == RC_OK)
        code = rc_training_run(training, &watch, result, err);
    rc_training_close(training);
    rc_arena_close(mem);
    return code;
}

static void train_well(const char *line, seen *s, rc_train_result *result)
{
    rc_error err = {0};
    if (train(line, s, result, &err) != RC_OK)
        fail_msg("%s: %s", line, err.msg);
}

static char *line_of(const char *fmt, ...) RC_PRINTF(1, 2);
static char *line_of(const char *fmt, ...)
{
    static char lines[8][1024];
    static int at;
    va_list args;
    va_start(args, fmt);
    vsnprintf(lines[at = (at + 1) % 8], sizeof lines[0], fmt, args);
    va_end(args);
    return lines[at];
}

static size_t read_bytes(const char *path, char **bytes)
{
    FILE *from = fopen(path, "rb");
    assert_non_null(from);
    fseek(from, 0, SEEK_END);
    size_t n = (size_t)ftell(from);
    rewind(from);
    *bytes = malloc(n);
    assert_int_equal(fread(*bytes, 1, n, from), n);
    fclose(from);
    return n;
}

static void expect_same_files(const char *a, const char *b, const char *name)
{
    char *x, *y;
    size_t n = read_bytes(path_in(path_in(folder, a), name), &x);
    assert_int_equal(n, read_bytes(path_in(path_in(folder, b), name), &y));
    assert_memory_equal(x, y, n);
    free(x);
    free(y);
}

/* Interrupted after 3 and after 6 of 8 steps, against 8 in one go: the same losses, the same
 * validation, the same bytes of weights and moments. */
static void resumed_run_is_the_uninterrupted_one(void **state)
{
    seen whole = {0}, parts = {0};
    rc_train_result result;
    (void)state;
    train_well(line_of("checkpoint.save=%s/whole engine.threads=2", folder), &whole, &result);
    for (int i = 0; i < 3; i++)
        train_well(line_of("checkpoint.save=%s/parts checkpoint.load=%s/parts "
                           "train.exit_interval=3 engine.threads=2",
                           folder, folder),
                   &parts, &result);
    assert_int_equal(whole.n_steps, 8);
    assert_int_equal(parts.n_steps, 8);
    assert_memory_equal(whole.loss, parts.loss, sizeof whole.loss);
    assert_int_equal(whole.n_valid, 3); /* after 3, 6 and the last */
    assert_int_equal(parts.n_valid, 3);
    assert_memory_equal(whole.valid, parts.valid, sizeof whole.valid);
    expect_same_files("whole/iter_0000008", "parts/iter_0000008", "model.safetensors");
    expect_same_files("whole/iter_0000008", "parts/iter_0000008", "optimizer.safetensors");
    expect_same_files("whole/iter_0000008", "parts/iter_0000008", "state.json");
    assert_int_equal(result.iteration, 8);
    assert_int_equal(result.n_samples, 32);
}

static void stop_saves_and_the_rest_follows(void **state)
{
    seen whole = {0}, s = {.stop_after = 2};
    rc_train_result result;
    const char *line =
        line_of("checkpoint.save=%s/stop checkpoint.load=%s/stop", folder, folder);
    (void)state;
    train_well("", &whole, &result);
    assert_int_equal(result.saved_to[0], '\0');
    train_well(line, &s, &result);
    assert_true(result.is_stopped);
    assert_int_equal(result.iteration, 2);
    assert_int_equal(s.n_stops, 1);
    assert_int_equal(s.n_ends, 0);
    assert_non_null(strstr(result.saved_to, "stop/iter_0000002"));
    s.stop_after = 0;
    train_well(line, &s, &result);
    assert_false(result.is_stopped);
    assert_int_equal(s.n_steps, 8);
    assert_memory_equal(whole.loss, s.loss, sizeof whole.loss);
}

/* Asked within the evaluation after step 3 (4 batches: questions 3 to 6): no step more, a checkpoint,
 * and the evaluations of the resumed run are those of the run without a stop. */
static void a_stop_ends_the_evaluation(void **state)
{
    (void)state;
    for (int question = 3; question <= 6; question++) {
        seen whole = {0}, s = {.stop_at = question};
        rc_train_result result;
        const char *line = line_of("checkpoint.save=%s/eval%d checkpoint.load=%s/eval%d",
                                   folder, question, folder, question);
        train_well("", &whole, &result);
        train_well(line, &s, &result);
        assert_true(result.is_stopped);
        assert_int_equal(result.iteration, 3);
        assert_int_equal(s.n_asked, question);
        assert_int_equal(s.n_valid, 0);
        assert_true(isnan(result.valid_loss));
        assert_non_null(strstr(result.saved_to, "iter_0000003"));
        train_well(line, &s, &result);
        assert_memory_equal(whole.loss, s.loss, sizeof whole.loss);
        assert_int_equal(s.n_valid, 2);
        assert_memory_equal(whole.valid + 1, s.valid, 2 * sizeof whole.valid[0]);
    }
}

static void finished_run_has_nothing_left_to_do(void **state)
{
    seen s = {0};
    rc_train_result result;
    const char *line =
        line_of("checkpoint.save=%s/done checkpoint.load=%s/done", folder, folder);
    (void)state;
    for (int i = 0; i < 3; i++)
        train_well(line, &s, &result);
    assert_int_equal(s.n_steps, 8);
    assert_int_equal(s.n_saves, 1);
    assert_int_equal(result.iteration, 8);
    assert_true(isnan(result.first_loss));
    assert_non_null(strstr(result.saved_to, "done/iter_0000008"));
    assert_int_equal(s.n_valid,
                     5); /* after 3, 6 and 8; and the last again, on the same samples */
    assert_true(s.valid[3] == s.valid[2] && s.valid[4] == s.valid[2]);
}

static void recompute_changes_neither_losses_nor_weights(void **state)
{
    static const char *const settings[] = {
        "model.recompute_granularity=selective",
        "model.recompute_granularity=selective "
        "model.recompute_modules=[core_attn,mlp,layernorm]",
        "model.recompute_granularity=full model.recompute_method=uniform "
        "model.recompute_num_layers=1",
        "model.recompute_granularity=full model.recompute_method=block "
        "model.recompute_num_layers=1",
    };
    seen plain = {0};
    rc_train_result result;
    (void)state;
    train_well(line_of("checkpoint.save=%s/plain", folder), &plain, &result);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        seen s = {0};
        train_well(line_of("checkpoint.save=%s/set%zu %s", folder, i, settings[i]), &s,
                   &result);
        assert_memory_equal(plain.loss, s.loss, sizeof plain.loss);
        expect_same_files("plain/iter_0000008", line_of("set%zu/iter_0000008", i),
                          "model.safetensors");
        assert_int_equal(result.peak_bytes, result.touched_bytes);
    }
}

/* By the system's count, not ours: the arena is there, and the rest is bounded. */
static void a_process_takes_little_beside_the_account(void **state)
{
    rc_train_result result;
    seen s = {0};
    (void)state;
    if (RC_IS_SANITIZED) {
        print_message("skipped: a sanitizer's own memory is many times the program's\n");
        skip();
    }
    train_well("model.hidden_size=256 model.seq_length=64 train.eval_iters=0", &s, &result);
    if (result.process_peak_bytes == 0) {
        print_message("skipped: /proc/self/status is not to be read here\n");
        skip();
    }
    const int64_t run_bytes = result.process_peak_bytes - result.process_before_bytes;
    assert_true(result.touched_bytes == result.peak_bytes && result.peak_bytes > 8 << 20);
    assert_true(run_bytes <= result.peak_bytes + rc_run_beside_bytes(2));
    assert_true(result.process_peak_bytes >= result.peak_bytes);
}

/* Four samples at once or two and two: the same sum in another order. */
static void accumulated_micro_batches_are_one_batch(void **state)
{
    seen one = {0}, two = {0};
    rc_train_result result;
    const char *plain = "model.hidden_dropout=0 model.attention_dropout=0 train.eval_iters=0";
    (void)state;
    train_well(line_of("%s train.micro_batch_size=4", plain), &one, &result);
    train_well(line_of("%s train.micro_batch_size=2", plain), &two, &result);
    for (int i = 0; i < 8; i++)
        assert_true(fabs(one.loss[i] - two.loss[i]) <= 1e-5 * one.loss[i]);
    assert_true(two.loss[7] < two.loss[0]);
    assert_int_equal(two.n_valid, 0);
}

static void weights_of_another_run_start_a_new_one(void **state)
{
    seen first = {0}, second = {0};
    rc_train_result result;
    const char *still = "optimizer.lr=0 model.hidden_dropout=0 model.attention_dropout=0";
    (void)state;
    train_well(line_of("%s checkpoint.save=%s/seed", still, folder), &first, &result);
    train_well(line_of("%s rng.seed=7 dataset.random_seed=1234 "
                       "checkpoint.pretrained_checkpoint=%s/seed",
                       still, folder),
               &second, &result);
    assert_memory_equal(first.loss, second.loss, sizeof first.loss);
}

static void every_bad_setting_is_refused(void **state)
{
    static const struct {
        const char *line;
        rc_code code;
        const char *says;
    } cases[] = {
        {"train.train_iters=0", RC_E_INPUT, "train.train_iters is 0; it must be 1"},
        {"train.train_iters=null", RC_E_INPUT, "train.train_iters is null"},
        {"train.micro_batch_size=0", RC_E_INPUT, "micro_batch_size is 0"},
        {"train.train_iters=2147483647 train.global_batch_size=131074", RC_E_INPUT,
         "fewer than 2^48 samples"},
        {"train.micro_batch_size=3", RC_E_INPUT, "multiple of micro_batch_size, 3"},
        {"train.eval_interval=-1", RC_E_INPUT, "eval_interval is -1"},
        {"train.exit_interval=0", RC_E_INPUT, "exit_interval is 0"},
        {"checkpoint.save_interval=2", RC_E_INPUT, "name a folder"},
        {"logger.log_interval=0", RC_E_INPUT, "log_interval is 0"},
        {"rng.seed=-1", RC_E_INPUT, "rng.seed is -1"},
        {"rng.seed=4294967296", RC_E_INPUT, "rng.seed is 4294967296"},
        {"optimizer.adam_beta1=1", RC_E_INPUT,
         "adam_beta1 is 1; it must be 0 or more and below 1"},
        {"optimizer.adam_beta2=.nan", RC_E_INPUT, "adam_beta2 is nan"},
        {"optimizer.weight_decay=-1", RC_E_INPUT, "weight_decay is -1"},
        {"optimizer.clip_grad=-1", RC_E_INPUT, "clip_grad is -1"},
        {"optimizer.optimizer=sgd", RC_E_UNSUPPORTED, "the one optimizer is adam"},
        {"model.hidden_dropout=1", RC_E_INPUT, "hidden_dropout is 1"},
        {"dataset.sequence_length=8", RC_E_INPUT, "they must be equal"},
        {"dataset.reset_position_ids=true", RC_E_UNSUPPORTED, "unsupported by the engine"},
        {"dataset.reset_attention_mask=true", RC_E_UNSUPPORTED, "unsupported by the engine"},
        {"model.tensor_model_parallel_size=2", RC_E_UNSUPPORTED, "one process"},
        {"model.bf16=true", RC_E_UNSUPPORTED, "float32"},
        {"scheduler.lr_decay_style=square", RC_E_INPUT, "must be one of constant"},
        {"engine.memory_budget=1KiB", RC_E_INPUT, ""},
        {"engine.threads=0", RC_E_INPUT, "threads is 0"},
        {"train.micro_batchsize=2", RC_E_INPUT, "micro_batch_size"},
        {"optimizer.lr=1e30 model.hidden_dropout=0", RC_E_RANGE, " at step "},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        seen s = {0};
        rc_error err = {0};
        rc_train_result result;
        rc_code code = train(cases[i].line, &s, &result, &err);
        if (code != cases[i].code || !strstr(err.msg, cases[i].says))
            fail_msg("%s: code %d, \"%s\"", cases[i].line, (int)code, err.msg);
    }
}

static void resume_refuses_another_run(void **state)
{
    static const struct {
        const char *line, *says;
    } cases[] = {
        {"model.hidden_size=32", "model.hidden_size 16, this run has 32"},
        {"model.hidden_dropout=0.2", "model.hidden_dropout 0.1, this run has 0.2"},
        {"optimizer.lr=0.02", "optimizer.lr 0.01, this run has 0.02"},
        {"scheduler.lr_warmup_iters=3", "the warm-up (in samples) 8, this run has 12"},
        {"scheduler.lr_decay_style=linear", "lr_decay_style cosine, this run has linear"},
        {"train.global_batch_size=8", "train.global_batch_size 4, this run has 8"},
        {"rng.seed=1", "rng.seed 1234, this run has 1"},
        {"dataset.random_seed=1", "dataset.random_seed 1234, this run has 1"},
        {"dataset.split=1", "dataset.split"},
    };
    seen s = {.stop_after = 1};
    rc_train_result result;
    (void)state;
    train_well(line_of("checkpoint.save=%s/other", folder), &s, &result);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rc_error err = {0};
        rc_code code = train(line_of("checkpoint.load=%s/other %s", folder, cases[i].line), &s,
                             &result, &err);
        if (code != RC_E_INPUT || !strstr(err.msg, cases[i].says))
            fail_msg("%s: code %d, \"%s\"", cases[i].line, (int)code, err.msg);
    }
    /* What only moves memory or time may change. */
    s = (seen){0};
    train_well(line_of("checkpoint.load=%s/other model.recompute_granularity=selective "
                       "engine.memory_budget=1GiB train.eval_interval=0",
                       folder),
               &s, &result);
    assert_int_equal(s.n_steps, 7);
}

/* Every allocation fails once: opening a run is refused cleanly each time, until it succeeds. */
static void no_memory_at_any_point_is_a_clean_error(void **state)
{
    char data[128];
    rc_arena *cfg_mem = rc_arena_open();
    rc_config *cfg;
    rc_code code = RC_E_MEMORY;
    snprintf(data, sizeof data, "dataset.data_path=[%s/text]", folder);
    const char *words[] = {data};
    (void)state;
    assert_int_equal(make_config(words, 1, cfg_mem, &cfg, NULL), RC_OK);
    int64_t n = 0;
    for (; code != RC_OK && n < 100000; n++) {
        rc_arena *mem = rc_arena_open();
        rc_training *training;
        rc_error err = {0};
        rc_arena_fail_after(mem, n);
        code = rc_training_open(cfg, mem, &training, &err);
        if (code != RC_OK) {
            assert_int_equal(code, RC_E_MEMORY);
            assert_null(training);
        }
        rc_training_close(training);
        rc_arena_close(mem);
    }
    assert_int_equal(code, RC_OK);
    assert_true(n > 50);
    rc_arena_close(cfg_mem);
}

static void folder_that_cannot_be_written_is_found_before_the_first_step(void **state)
{
    seen s = {0};
    rc_error err = {0};
    rc_train_result result;
    (void)state;
    assert_int_equal(train(line_of("checkpoint.save=%s/text/sub", folder), &s, &result, &err),
                     RC_E_IO);
    assert_int_equal(s.n_starts, 0);
}

static rc_train_event step_event(int64_t iteration, double loss)
{
    return (rc_train_event){.kind = RC_TRAIN_STEP,
                            .iteration = iteration,
                            .n_steps = 100,
                            .n_samples = iteration * 8,
                            .n_global = 8,
                            .n_tokens = 1000,
                            .loss = loss,
                            .lr = 2e-4,
                            .next_lr = 3e-4,
                            .grad_norm = 1.2345,
                            .seconds = 0.5,
                            .peak_bytes = 1 << 20};
}

static size_t text_of(FILE *from, char *text, size_t room)
{
    rewind(from);
    size_t n = fread(text, 1, room - 1, from);
    text[n] = '\0';
    return n;
}

/* The loss is the mean since the last line, the rate is the next step's: as Megatron prints. */
static void iteration_line_has_megatrons_format(void **state)
{
    char text[2048];
    rc_progress progress = {.to = tmpfile(), .log_interval = 2};
    (void)state;
    for (int i = 9; i <= 10; i++) {
        rc_train_event event = step_event(i, i == 9 ? 5.0 : 5.246912);
        rc_progress_event(&progress, &event);
    }
    text_of(progress.to, text, sizeof text);
    static const char right[] =
        "] iteration       10/     100 | consumed samples:           80 | elapsed time per "
        "iteration (ms): 500.0 | learning rate: 3.000000E-04 | global batch size:     8 | lm "
        "loss: "
        "5.123456E+00 | loss scale: 1.0 | grad norm: 1.234 | number of skipped iterations:   0 "
        "| "
        "number of nan iterations:   0 |\n"
        "[Rank 0] (after 10 iterations) memory (MB) | allocated: 1.00 | max allocated: 1.00 | "
        "reserved: 1.00 | max reserved: 1.00\n";
    assert_string_equal(strchr(text, ']'), right);
    assert_true(text[0] == ' ' && text[1] == '[' && text[12] == ' ' && text[21] == ']');
    fclose(progress.to);
}

static void terminal_line_is_redrawn_once_a_second_and_fits(void **state)
{
    char text[4096];
    rc_progress progress = {
        .to = tmpfile(), .is_terminal = true, .width = 40, .log_interval = 1};
    (void)state;
    for (int i = 1; i <= 50; i++) {
        rc_train_event event = step_event(i, 5);
        rc_progress_event(&progress, &event);
    }
    size_t n = text_of(progress.to, text, sizeof text);
    assert_int_equal(n, 39); /* one line: 50 steps took less than a second */
    assert_memory_equal(text, "step 1/100  loss 5.0000  2,000 tokens/s", 39);
    fclose(progress.to);
}

static void log_is_one_json_object_a_line(void **state)
{
    char text[4096], *at = text;
    rc_progress progress = {.log = tmpfile(), .log_interval = 1};
    (void)state;
    for (int i = 1; i <= 2; i++) {
        rc_train_event event = step_event(i, i == 1 ? 5.5 : (double)NAN);
        rc_progress_event(&progress, &event);
    }
    rc_train_event save = {.kind = RC_TRAIN_SAVE, .iteration = 2, .text = "a\"\xff/b"};
    rc_progress_event(&progress, &save);
    text_of(progress.log, text, sizeof text);
    for (int i = 0; i < 3; i++) {
        size_t n = strcspn(at, "\n");
        json_t *line = json_loadb(at, n, 0, NULL);
        assert_non_null(line);
        assert_string_equal(json_string_value(json_object_get(line, "event")),
                            i < 2 ? "step" : "save");
        json_t *loss = json_object_get(line, "lm_loss");
        assert_int_equal(loss != NULL, i == 0); /* NaN is no JSON: left out */
        if (i == 0)
            assert_true(json_number_value(loss) == 5.5);
        if (i == 2)
            assert_string_equal(json_string_value(json_object_get(line, "path")), "a\"\\xFF/b");
        json_decref(line);
        at += n + 1;
    }
    fclose(progress.log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resumed_run_is_the_uninterrupted_one),
        cmocka_unit_test(stop_saves_and_the_rest_follows),
        cmocka_unit_test(a_stop_ends_the_evaluation),
        cmocka_unit_test(finished_run_has_nothing_left_to_do),
        cmocka_unit_test(recompute_changes_neither_losses_nor_weights),
        cmocka_unit_test(a_process_takes_little_beside_the_account),
        cmocka_unit_test(accumulated_micro_batches_are_one_batch),
        cmocka_unit_test(weights_of_another_run_start_a_new_one),
        cmocka_unit_test(every_bad_setting_is_refused),
        cmocka_unit_test(resume_refuses_another_run),
        cmocka_unit_test(no_memory_at_any_point_is_a_clean_error),
        cmocka_unit_test(folder_that_cannot_be_written_is_found_before_the_first_step),
        cmocka_unit_test(iteration_line_has_megatrons_format),
        cmocka_unit_test(terminal_line_is_redrawn_once_a_second_and_fits),
        cmocka_unit_test(log_is_one_json_object_a_line),
    };
    return cmocka_run_group_tests_name("train", tests, open_all, close_all);
}
