/* loop.h — trains by config words and writes down every call that the loop makes of the executor.
 *
 * The linker hands this program the loop's calls (--wrap, as cmocka's mocks do) and the kernels'
 * draws; all are passed on. One program includes this once. Data is one text file whose samples all
 * differ, so tokens tell where they are from.
 */
#ifndef RC_TESTS_LOOP_H
#define RC_TESTS_LOOP_H

#define _POSIX_C_SOURCE 200809L /* before any header */

#include "law.h"

#include "../unit/train_files.h"
#include "base/random.h"
#include "train/training.h"

#include <math.h>

enum { LOOP_S = 8, LOOP_MOST_B = 6, LOOP_MOST_CALLS = 400, LOOP_N_TEXT = 1501 };

/* One call of the executor; unused fields are 0, so that calls compare as bytes. */
typedef struct loop_call {
    char kind[8]; /* "micro", "eval", "update" */
    int32_t tokens[LOOP_S * LOOP_MOST_B], targets[LOOP_S * LOOP_MOST_B];
    int64_t n_tokens, step, micro;
    rc_update update;
    double value;        /* loss, or norm */
    uint64_t seed, draw; /* of the dropouts, the same for all in a call */
    int64_t n_draws;
} loop_call;

typedef struct loop_record {
    loop_call calls[LOOP_MOST_CALLS];
    int n;
    rc_train_event events[LOOP_MOST_CALLS]; /* STEP and VALID */
    int n_events;
    int n_steps;
    /* Called after every step, where the law looks at weights. */
    void (*after_step)(struct loop_record *record, const rc_train_event *event);
    rc_training *training; /* while it runs */
    int stop_after;        /* steps of this record; 0 never */
} loop_record;

static loop_record *loop_current; /* what the calls are written to */
static char loop_folder[64];

static inline loop_call *loop_add(const char *kind)
{
    assert_true(loop_current->n < LOOP_MOST_CALLS);
    loop_call *call = &loop_current->calls[loop_current->n++];
    memset(call, 0, sizeof *call);
    strcpy(call->kind, kind);
    return call;
}

static inline void loop_note(const rc_random *random)
{
    loop_call *call = &loop_current->calls[loop_current->n - 1];
    if (call->n_draws++ == 0) {
        call->seed = random->seed;
        call->draw = random->draw;
    }
    assert_true(call->seed == random->seed && call->draw == random->draw);
}

static inline void loop_feed(loop_call *call, const rc_batch *batch)
{
    call->n_tokens = loop_current->training->set.b * loop_current->training->set.s;
    assert_true(call->n_tokens <= LOOP_S * LOOP_MOST_B);
    memcpy(call->tokens, batch->tokens, (size_t)call->n_tokens * sizeof *batch->tokens);
    memcpy(call->targets, batch->targets, (size_t)call->n_tokens * sizeof *batch->targets);
}

rc_code __real_rc_run_micro(rc_run *run, const rc_batch *batch, double *loss, rc_error *err);
rc_code __wrap_rc_run_micro(rc_run *run, const rc_batch *batch, double *loss, rc_error *err);
rc_code __wrap_rc_run_micro(rc_run *run, const rc_batch *batch, double *loss, rc_error *err)
{
    loop_call *call = loop_add("micro");
    loop_feed(call, batch);
    call->step = batch->step;
    call->micro = batch->micro;
    rc_code code = __real_rc_run_micro(run, batch, loss, err);
    call->value = *loss;
    return code;
}

rc_code __real_rc_run_eval(rc_run *run, const rc_batch *batch, double *loss, rc_error *err);
rc_code __wrap_rc_run_eval(rc_run *run, const rc_batch *batch, double *loss, rc_error *err);
rc_code __wrap_rc_run_eval(rc_run *run, const rc_batch *batch, double *loss, rc_error *err)
{
    loop_call *call = loop_add("eval");
    loop_feed(call, batch);
    rc_code code = __real_rc_run_eval(run, batch, loss, err);
    call->value = *loss;
    return code;
}

rc_code __real_rc_run_update(rc_run *run, const rc_update *update, double *norm, rc_error *err);
rc_code __wrap_rc_run_update(rc_run *run, const rc_update *update, double *norm, rc_error *err);
rc_code __wrap_rc_run_update(rc_run *run, const rc_update *update, double *norm, rc_error *err)
{
    loop_call *call = loop_add("update");
    call->update = *update;
    rc_code code = __real_rc_run_update(run, update, norm, err);
    call->value = *norm;
    return code;
}

void __real_rc_random_keep(const rc_random *random, uint64_t first, int64_t n, double p,
                           float *keep);
void __wrap_rc_random_keep(const rc_random *random, uint64_t first, int64_t n, double p,
                           float *keep);
void __wrap_rc_random_keep(const rc_random *random, uint64_t first, int64_t n, double p,
                           float *keep)
{
    loop_note(random);
    __real_rc_random_keep(random, first, n, p, keep);
}

void __real_rc_random_lanes(const rc_random *random, uint64_t first, uint64_t step, int n,
                            uint32_t out[4][RC_RANDOM_LANES]);
void __wrap_rc_random_lanes(const rc_random *random, uint64_t first, uint64_t step, int n,
                            uint32_t out[4][RC_RANDOM_LANES]);
void __wrap_rc_random_lanes(const rc_random *random, uint64_t first, uint64_t step, int n,
                            uint32_t out[4][RC_RANDOM_LANES])
{
    loop_note(random);
    __real_rc_random_lanes(random, first, step, n, out);
}

/* ---- training ---- */

/* Everything that could leave a trace is on: two dropouts, three micro-batches, decay, clipping, a
 * schedule, and evaluations that do not fall on the last step. */
static const char loop_base[] =
    "model: {num_layers: 1, hidden_size: 16, num_attention_heads: 2, seq_length: 8,\n"
    "  attention_dropout: 0.1, hidden_dropout: 0.1, make_vocab_size_divisible_by: 1}\n"
    "train: {train_iters: 7, micro_batch_size: 2, global_batch_size: 6, eval_interval: 2,\n"
    "  eval_iters: 1}\n"
    "rng: {seed: 77}\n"
    "optimizer: {lr: 0.01, min_lr: 0.001, weight_decay: 0.1, adam_beta2: 0.95, clip_grad: 1}\n"
    "scheduler: {lr_decay_style: cosine, lr_warmup_iters: 2, lr_warmup_init: 0.002}\n"
    "engine: {threads: 1}\n";

static char loop_text[LOOP_N_TEXT];

static inline int loop_open(void **state)
{
    uint32_t x = 3;
    (void)state;
    make_temp_folder(loop_folder);
    for (int i = 0; i < LOOP_N_TEXT; i++) {
        x = x * 1664525u + 1013904223u;
        loop_text[i] = (char)('a' + (x >> 16) % 26);
    }
    write_bytes(path_in(loop_folder, "text"), loop_text, sizeof loop_text);
    return 0;
}

static inline int loop_close(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -r %s", loop_folder);
    return system(command);
}

static inline void loop_see(void *user, const rc_train_event *event)
{
    loop_record *record = user;
    if (event->kind != RC_TRAIN_STEP && event->kind != RC_TRAIN_VALID)
        return;
    assert_true(record->n_events < LOOP_MOST_CALLS);
    record->events[record->n_events++] = *event;
    record->n_steps += event->kind == RC_TRAIN_STEP;
    if (event->kind == RC_TRAIN_STEP && record->after_step)
        record->after_step(record, event);
}

static inline bool loop_wants_stop(void *user)
{
    const loop_record *record = user;
    return record->stop_after > 0 && record->n_steps >= record->stop_after;
}

static inline rc_config *loop_config(const char *line, rc_arena *mem)
{
    const char *words[32];
    size_t n = 0;
    char copy[1024];
    rc_error err = {0};
    rc_doc *docs[2];
    rc_config *cfg;
    int n_printed =
        snprintf(copy, sizeof copy, "dataset.data_path=[%s/text] %s", loop_folder, line);
    assert_true(n_printed < (int)sizeof copy);
    for (char *at = strtok(copy, " "); at; at = strtok(NULL, " "))
        words[n++] = at;
    law_check(rc_yaml_read("base.yaml", loop_base, strlen(loop_base), mem, &docs[0], &err),
              &err);
    law_check(rc_override_read(words, n, mem, &docs[1], &err), &err);
    rc_input inputs[] = {{docs[0], RC_FROM_FILE}, {docs[1], RC_FROM_OVERRIDE}};
    law_check(rc_config_make(inputs, 2, mem, &cfg, &err), &err);
    law_check(rc_train_refuse_unknown(cfg, &err), &err);
    return cfg;
}

/* Trains with `line`, words with a space between them, over the base config; adds to the record. */
static inline rc_train_result loop_train(const char *line, loop_record *record)
{
    rc_error err = {0};
    rc_arena *mem = rc_arena_open();
    rc_train_result result = {0};
    rc_train_watch watch = {loop_see, loop_wants_stop, record};
    loop_current = record;
    rc_code code = rc_training_open(loop_config(line, mem), mem, &record->training, &err);
    if (code == RC_OK)
        code = rc_training_run(record->training, &watch, &result, &err);
    if (code != RC_OK)
        fail_msg("%s: %s", line, err.msg);
    rc_training_close(record->training);
    record->training = NULL;
    rc_arena_close(mem);
    return result;
}

/* "checkpoint.save=FOLDER/NAME " and what follows. */
static inline const char *loop_line(const char *name, bool is_resumed, const char *more)
{
    static char lines[4][600];
    static int at;
    char load[160] = "";
    at = (at + 1) % 4;
    if (is_resumed)
        snprintf(load, sizeof load, " checkpoint.load=%s/%s", loop_folder, name);
    snprintf(lines[at], sizeof lines[0], "checkpoint.save=%s/%s%s %s", loop_folder, name, load,
             more);
    return lines[at];
}

static inline bool loop_is(const loop_call *call, const char *kind)
{
    return strcmp(call->kind, kind) == 0;
}

/* The same calls in the same order, to the bit: samples, steps, rates, losses and norms. */
static inline void loop_need_same(const loop_record *right, const loop_record *got,
                                  const char *name)
{
    for (int i = 0; i < right->n && i < got->n; i++) {
        const loop_call *a = &right->calls[i], *b = &got->calls[i];
        if (memcmp(a, b, sizeof *a) != 0)
            fail_msg(
                "%s: call %d is %s of step %lld, micro-batch %lld, value %.9g, rate %g; it "
                "should be %s of step %lld, micro-batch %lld, value %.9g, rate %g%s",
                name, i, b->kind, (long long)b->step, (long long)b->micro, b->value,
                b->update.lr, a->kind, (long long)a->step, (long long)a->micro, a->value,
                a->update.lr,
                memcmp(a->tokens, b->tokens, sizeof a->tokens) ? "; other samples" : "");
    }
    if (right->n != got->n)
        fail_msg("%s: %d calls, not %d", name, got->n, right->n);
}

static inline void loop_need_same_files(const char *a, const char *b)
{
    static const char *const files[] = {"model.safetensors", "optimizer.safetensors"};
    for (size_t i = 0; i < 2; i++) {
        char command[400];
        snprintf(command, sizeof command, "cmp %s/%s/%s %s/%s/%s", loop_folder, a, files[i],
                 loop_folder, b, files[i]);
        if (system(command) != 0)
            fail_msg("%s and %s differ in %s", a, b, files[i]);
    }
}

#endif
