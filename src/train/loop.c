/* train/loop.c — steps, evaluations and checkpoints, in Megatron's order.
 *
 * takes  an opened training
 * gives  trained weights, checkpoints, and events for whoever watches
 *
 * One step: for every micro-batch forward and backward on the next samples; clip and update with
 * the rate that the samples consumed before the step give; then count the samples. After it, in
 * this order: log, evaluate, save, stop. (Megatron-LM megatron/training/training.py, train.)
 */
#define _POSIX_C_SOURCE 200809L
#include "train/training.h"

#include "base/num.h"
#include "base/process.h"
#include "base/text.h"
#include "train/limits.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <time.h>

typedef struct loop {
    rc_training *training;
    const rc_train_watch *watch;
    rc_train_result *result;
    int64_t checked_at; /* iteration whose weights were found finite, -1 before one */
    double lr;          /* of the last step */
    bool is_asked;      /* to stop: the watch need say so only once */
    bool has_no_data;   /* a sample could not be read; the weights are whole */
    int64_t began_at;   /* iteration */
    bool is_peak_ours;  /* the peak of the process counts from this run's start */
} loop;

static double now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

static void tell(const loop *of, rc_train_event event)
{
    const rc_training *training = of->training;
    event.iteration = training->state.iteration;
    event.n_steps = training->set.n_steps;
    event.n_samples = training->state.n_train_samples;
    event.n_global = training->set.n_global;
    event.peak_bytes = training->passes.cost->peak_bytes;
    event.budget_bytes = training->budget_bytes;
    if (of->watch && of->watch->event)
        of->watch->event(of->watch->user, &event);
}

static bool is_asked_to_stop(loop *of)
{
    const rc_train_watch *watch = of->watch;
    of->is_asked =
        of->is_asked || (watch && watch->is_stopping && watch->is_stopping(watch->user));
    return of->is_asked;
}

/* --- start --- */

static rc_code describe_idle_labels(const rc_training *training, rc_text *text, rc_error *err)
{
    const rc_setting *setting = training->passes.setting;
    for (int i = 0; i < RC_LABEL_COUNT; i++) {
        bool is_asked =
            setting->granularity == RC_GRANULARITY_SELECTIVE && (setting->labels >> i & 1u);
        if (is_asked && rc_graph_count_regions(training->passes.graph, (rc_label)i) == 0)
            RC_TRY(rc_text_printf(text, err, "; label %s acts on no layer of this model",
                                  rc_label_find_facts((rc_label)i)->name));
    }
    return RC_OK;
}

static bool lacks_validation(const rc_training *training)
{
    const rc_train_settings *set = &training->set;
    return set->eval_interval > 0 && set->eval_iters > 0 && !training->valid;
}

/* "1,234,567 parameters; 12.0 MiB predicted peak of 16 MiB: weights 4 MiB, ...; resuming from x" */
static rc_code describe(const rc_training *training, const char *origin, const char **out,
                        rc_error *err)
{
    rc_text text = {.mem = training->mem};
    char count[32], peak[32], budget[32], bytes[32];
    RC_TRY(rc_text_printf(&text, err, "%s parameters, recompute %s; %s predicted peak",
                          rc_format_count(training->passes.graph->n_parameters, count),
                          training->passes.policy->name,
                          rc_format_bytes(training->passes.cost->peak_bytes, peak)));
    if (training->budget_bytes > 0)
        RC_TRY(rc_text_printf(&text, err, " of %s budget",
                              rc_format_bytes(training->budget_bytes, budget)));
    for (int i = 0, n = 0; i < RC_CATEGORY_COUNT; i++)
        if (training->passes.cost->at_peak[i] > 0)
            RC_TRY(rc_text_printf(&text, err, "%s%s %s", n++ ? ", " : ": ",
                                  rc_category_name((rc_category)i),
                                  rc_format_bytes(training->passes.cost->at_peak[i], bytes)));
    RC_TRY(describe_idle_labels(training, &text, err));
    if (training->set.n_threads < training->cfg->threads)
        RC_TRY(rc_text_printf(&text, err, "; %d of %" PRId64 " threads: OMP_THREAD_LIMIT",
                              training->set.n_threads, training->cfg->threads));
    if (lacks_validation(training))
        RC_TRY(rc_text_printf(&text, err,
                              "; no validation, since dataset.split %s leaves it no data",
                              training->cfg->split));
    RC_TRY(rc_text_printf(&text, err, "; %s", origin));
    *out = text.at;
    return RC_OK;
}

static rc_code start(loop *of, rc_error *err)
{
    rc_training *training = of->training;
    const char *origin, *text;
    rc_run_options options = {.seed = (uint64_t)training->set.seed,
                              .n_micro_batches = (int)training->set.n_micro};
    rc_limits limits;
    RC_TRY(rc_training_open_folder(training, err));
    RC_TRY(rc_limits_read("", training->mem, &limits, err));
    RC_TRY(rc_limits_refuse(&limits, training->passes.schedule,
                            rc_training_order_bytes(training), training->mem, err));
    of->is_peak_ours = rc_process_forget_peak();
    of->result->process_before_bytes = rc_process_memory_read(training->mem).now_bytes;
    RC_TRY(rc_run_open(training->passes.schedule, &options, &training->run, err));
    RC_TRY(rc_training_list_weights(training, err));
    RC_TRY(rc_training_place_weights(training, &origin, err));
    RC_TRY(describe(training, origin, &text, err));
    RC_TRY(rc_training_order(training, err));
    tell(of, (rc_train_event){.kind = RC_TRAIN_START, .text = text});
    return RC_OK;
}

/* --- one step --- */

static rc_code read_batch(loop *of, const rc_dataset *dataset, int64_t first, rc_error *err)
{
    const rc_training *training = of->training;
    rc_code code = RC_OK;
    for (int64_t i = 0; i < training->set.b && code == RC_OK; i++) {
        int64_t at = i * training->set.s;
        /* A validation split that evaluation outruns begins again; training never does. */
        code = rc_dataset_sample(dataset, (first + i) % dataset->n_samples,
                                 training->tokens + at, training->targets + at, err);
    }
    of->has_no_data = code != RC_OK;
    return code;
}

/* Ends the run: `what` went wrong. */
static rc_code diverged(const loop *of, const char *what, rc_error *err)
{
    const rc_training *training = of->training;
    char left[RC_LEFT_BYTES];
    return RC_FAIL(err, RC_E_RANGE, RC_NOWHERE,
                   "%s (learning rate %g, loss before %g); %s. %s may help", what, of->lr,
                   of->result->last_loss, rc_training_tell_left(training, left),
                   training->cfg->adam_eps > 0
                       ? "A smaller optimizer.lr, a longer warm-up or optimizer.clip_grad"
                       : "An optimizer.adam_eps above 0");
}

/* printf shows the sign of a NaN too, which means nothing. */
static rc_code check_finite(const loop *of, const char *what, double value, int64_t step,
                            rc_error *err)
{
    char text[120];
    if (isfinite(value))
        return RC_OK;
    snprintf(text, sizeof text, "the %s is %s at step %" PRId64, what,
             isnan(value) ? "nan"
             : value > 0  ? "inf"
                          : "-inf",
             step);
    return diverged(of, text, err);
}

/* Once for the weights that a step made, however often it is asked. */
static rc_code check_weights(loop *of, rc_error *err)
{
    rc_error bad = {0};
    char text[280];
    int64_t iteration = of->training->state.iteration;
    if (of->checked_at == iteration || rc_training_check_weights(of->training, &bad) == RC_OK) {
        of->checked_at = iteration;
        return RC_OK;
    }
    snprintf(text, sizeof text, "%.220s after step %" PRId64, bad.msg, iteration);
    return diverged(of, text, err);
}

static rc_code step(loop *of, rc_error *err)
{
    rc_training *training = of->training;
    const rc_config *cfg = training->cfg;
    rc_state *state = &training->state;
    const rc_train_settings *set = &training->set;
    double started = now(), loss = 0, micro_loss, grad_norm;
    of->lr = rc_lr_at(&training->lr, state->n_train_samples);
    for (int64_t i = 0; i < set->n_micro; i++) {
        RC_TRY(read_batch(of, training->train, state->n_train_samples + i * set->b, err));
        rc_batch batch = {training->tokens, training->targets, state->iteration, (int)i};
        RC_TRY(rc_run_micro(training->run, &batch, &micro_loss, err));
        loss += micro_loss;
    }
    loss /= (double)set->n_micro;
    RC_TRY(check_finite(of, "loss", loss, state->iteration + 1, err));
    rc_update update = {.lr = of->lr,
                        .weight_decay = cfg->weight_decay,
                        .beta1 = cfg->adam_beta1,
                        .beta2 = cfg->adam_beta2,
                        .eps = cfg->adam_eps,
                        .clip_grad = cfg->clip_grad,
                        .step = state->iteration + 1};
    RC_TRY(rc_run_update(training->run, &update, &grad_norm, err));
    RC_TRY(check_finite(of, "norm of the gradients", grad_norm, state->iteration + 1, err));
    state->iteration++;
    state->n_train_samples += set->n_global;
    rc_train_event event = {.kind = RC_TRAIN_STEP,
                            .n_tokens = set->n_global * set->s,
                            .loss = loss,
                            .lr = update.lr,
                            .next_lr = rc_lr_at(&training->lr, state->n_train_samples),
                            .grad_norm = grad_norm,
                            .seconds = now() - started};
    if (isnan(of->result->first_loss))
        of->result->first_loss = loss;
    of->result->last_loss = loss;
    of->result->seconds += event.seconds;
    of->result->n_tokens += event.n_tokens;
    tell(of, event);
    return RC_OK;
}

/* --- between steps --- */

/* Of the samples from `first` on. Asked to stop, it ends early and without a result. */
static rc_code evaluate_from(loop *of, int64_t first, rc_error *err)
{
    rc_training *training = of->training;
    int64_t b = training->set.b, n_batches = training->state.valid.n_batch_samples / b;
    double started = now(), loss = 0, batch_loss;
    for (int64_t i = 0; i < n_batches; i++) {
        if (is_asked_to_stop(of))
            return RC_OK;
        RC_TRY(read_batch(of, training->valid, first + i * b, err));
        rc_batch batch = {.tokens = training->tokens, .targets = training->targets};
        RC_TRY(rc_run_eval(training->run, &batch, &batch_loss, err));
        loss += batch_loss;
    }
    loss /= (double)n_batches;
    RC_TRY(check_finite(of, "validation loss", loss, training->state.iteration, err));
    of->result->valid_loss = loss;
    tell(of,
         (rc_train_event){.kind = RC_TRAIN_VALID, .loss = loss, .seconds = now() - started});
    return RC_OK;
}

/* Its samples count as seen even where it ends early: the next evaluation of the resumed run is then
 * the one of a run that was never stopped. */
static rc_code evaluate(loop *of, rc_error *err)
{
    rc_state *state = &of->training->state;
    int64_t first = state->n_valid_samples;
    state->n_valid_samples += state->valid.n_batch_samples;
    return evaluate_from(of, first, err);
}

static void tell_saved_to(const loop *of)
{
    if (of->training->saved_path)
        snprintf(of->result->saved_to, sizeof of->result->saved_to, "%s",
                 of->training->saved_path);
}

/* Looks at the weights in any case, and writes them where a folder is set. */
static rc_code save(loop *of, rc_error *err)
{
    rc_training *training = of->training;
    double started = now();
    RC_TRY(check_weights(of, err));
    if (!training->cfg->save)
        return RC_OK;
    if (training->saved_at == training->state.iteration) { /* it was finished before */
        tell_saved_to(of);
        return RC_OK;
    }
    RC_TRY(rc_training_save(training, err));
    tell_saved_to(of);
    tell(of, (rc_train_event){.kind = RC_TRAIN_SAVE,
                              .text = of->result->saved_to,
                              .seconds = now() - started});
    return RC_OK;
}

static bool is_due(int64_t iteration, int64_t interval)
{
    return interval > 0 && iteration % interval == 0;
}

/* Evaluates and saves where due. A checkpoint comes last, so that it counts what was evaluated. */
static rc_code after_step(loop *of, bool *is_ending, rc_error *err)
{
    const rc_training *training = of->training;
    const rc_train_settings *set = &training->set;
    int64_t iteration = training->state.iteration;
    bool is_last = iteration == set->n_steps;
    if (training->valid && (is_last || is_due(iteration, set->eval_interval))) {
        RC_TRY(check_weights(of, err));
        RC_TRY(evaluate(of, err));
    }
    bool is_asked = is_asked_to_stop(of);
    of->result->is_stopped = is_asked && !is_last;
    *is_ending = is_last || is_asked || is_due(iteration, set->exit_interval);
    if (!*is_ending && !is_due(iteration, set->save_interval))
        return RC_OK;
    return save(of, err);
}

/* A run that was finished before it was started again: its last evaluation once more, on the same
 * samples, and no other checkpoint than the one it has. */
static rc_code repeat_the_end(loop *of, rc_error *err)
{
    const rc_training *training = of->training;
    const rc_state *state = &training->state;
    int64_t first = state->n_valid_samples - state->valid.n_batch_samples;
    if (training->valid)
        RC_TRY(evaluate_from(of, first > 0 ? first : 0, err));
    return save(of, err);
}

static rc_code run_steps(loop *of, rc_error *err)
{
    rc_training *training = of->training;
    bool is_ending = training->state.iteration == training->set.n_steps;
    if (is_ending)
        RC_TRY(repeat_the_end(of, err));
    while (!is_ending) {
        RC_TRY(step(of, err));
        RC_TRY(after_step(of, &is_ending, err));
    }
    bool is_stopped = of->result->is_stopped;
    tell(of, (rc_train_event){
                 .kind = is_stopped ? RC_TRAIN_STOP : RC_TRAIN_END,
                 .text = is_stopped && of->result->saved_to[0] ? of->result->saved_to : NULL});
    return RC_OK;
}

/* Data files may be cut off or fail while a run goes on, after days. The weights are those of the
 * last whole step, so what was reached is kept. */
static rc_code end_without_data(loop *of, const rc_error *why, rc_error *err)
{
    rc_error unsaved = {0};
    int64_t n_done = of->training->state.iteration - of->began_at;
    if (n_done == 0)
        return RC_FAIL(err, why->code, why->where, "%s", why->msg);
    if (!of->training->cfg->save)
        return RC_FAIL(err, why->code, why->where,
                       "%.300s; this run's %" PRId64
                       " steps are lost, since checkpoint.save is "
                       "not set",
                       why->msg, n_done);
    if (save(of, &unsaved) != RC_OK)
        return RC_FAIL(err, why->code, why->where,
                       "%.230s; and its steps are not saved: %.200s", why->msg, unsaved.msg);
    return RC_FAIL(err, why->code, why->where, "%.300s; all steps before are saved in %.120s",
                   why->msg, of->result->saved_to);
}

static rc_code run_to_the_end(loop *of, rc_error *err)
{
    rc_error why = {0};
    of->began_at = of->training->state.iteration;
    rc_code code = run_steps(of, &why);
    if (code == RC_OK)
        return RC_OK;
    if (of->has_no_data)
        return end_without_data(of, &why, err);
    if (err && err->code == RC_OK)
        *err = why;
    return code;
}

rc_code rc_training_run(rc_training *training, const rc_train_watch *watch,
                        rc_train_result *result, rc_error *err)
{
    loop of = {.training = training, .watch = watch, .result = result, .checked_at = -1};
    *result = (rc_train_result){.first_loss = (double)NAN,
                                .last_loss = (double)NAN,
                                .valid_loss = (double)NAN,
                                .n_steps = training->set.n_steps,
                                .peak_bytes = training->passes.cost->peak_bytes};
    RC_TRY(start(&of, err));
    RC_TRY(run_to_the_end(&of, err));
    result->iteration = training->state.iteration;
    result->n_samples = training->state.n_train_samples;
    result->touched_bytes = rc_run_touched_bytes(training->run);
    if (of.is_peak_ours) /* else it is that of any run before in this process */
        result->process_peak_bytes = rc_process_memory_read(training->mem).peak_bytes;
    return RC_OK;
}
