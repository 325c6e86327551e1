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
    int64_t saved_at; /* iteration of the last checkpoint, -1 before one */
    bool is_asked;    /* to stop: the watch need say so only once */
    bool has_no_data; /* a sample could not be read; the weights are whole */
    int64_t began_at; /* iteration */
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
    event.peak_bytes = training->cost->peak_bytes;
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

static void set_weight(rc_weight *weight, const rc_tensor *tensor, const char *name,
                       rc_dtype dtype, void *at)
{
    *weight = (rc_weight){.name = name, .dtype = dtype, .n_dims = 1, .at = at};
    weight->n_padding = tensor->n_elem - tensor->n_used;
    weight->dims[0] = tensor->n_elem;
    if (!strchr(tensor->shape, ','))
        return;
    weight->n_dims = 2;
    weight->dims[0] = tensor->rows;
    weight->dims[1] = tensor->n_elem / tensor->rows;
}

rc_code rc_training_list_weights(rc_training *training, rc_error *err)
{
    int n;
    const rc_run_param *params = rc_run_params(training->run, &n);
    training->n_weights = (size_t)n;
    training->n_moments = 2 * (size_t)n;
    RC_TRY(RC_NEW(training->mem, &training->weights, n, err));
    RC_TRY(RC_NEW(training->mem, &training->moments, 2 * n, err));
    for (int i = 0; i < n; i++) {
        const rc_tensor *tensor = params[i].tensor;
        const char *first, *second;
        RC_TRY(rc_arena_printf(training->mem, &first, err, "exp_avg.%s", tensor->name));
        RC_TRY(rc_arena_printf(training->mem, &second, err, "exp_avg_sq.%s", tensor->name));
        set_weight(&training->weights[i], tensor, tensor->name, tensor->dtype,
                   params[i].weight);
        set_weight(&training->moments[2 * i], tensor, first, RC_F32, params[i].moment1);
        set_weight(&training->moments[2 * i + 1], tensor, second, RC_F32, params[i].moment2);
    }
    return RC_OK;
}

static rc_checkpoint checkpoint_of(const rc_training *training)
{
    return (rc_checkpoint){.weights = training->weights,
                           .moments = training->moments,
                           .n_weights = training->n_weights,
                           .n_moments = training->n_moments};
}

/* Weights come from the newest checkpoint of checkpoint.load; else, as in Megatron when that
 * folder holds none, from checkpoint.pretrained_checkpoint; else from the seed. */
static rc_code place_weights(rc_training *training, const char **origin, rc_error *err)
{
    const rc_config *cfg = training->cfg;
    const char *path = NULL;
    if (cfg->load && rc_path_exists(cfg->load) && !rc_path_is_directory(cfg->load))
        return RC_FAIL(err, RC_E_INPUT, cfg->origin[RC_FIELD_load].where,
                       "checkpoint.load is no folder; checkpoints lie in one");
    if (cfg->load)
        RC_TRY(rc_checkpoint_find(cfg->load, training->mem, &path, err));
    if (path) {
        rc_checkpoint checkpoint = checkpoint_of(training);
        RC_TRY(rc_checkpoint_load(path, &checkpoint, &training->state, training->mem, err));
        const char *differs = training->state.differs;
        return rc_arena_printf(training->mem, origin, err, "resuming from %s%s%s%s", path,
                               differs ? " (" : "", differs ? differs : "",
                               differs ? ": sums run in another order, so the last digits will "
                                         "not be those of a run without a stop)"
                                       : "");
    }
    if (cfg->pretrained_checkpoint) {
        RC_TRY(rc_checkpoint_find(cfg->pretrained_checkpoint, training->mem, &path, err));
        path = path ? path : cfg->pretrained_checkpoint;
        RC_TRY(rc_weights_start_from(path, training->weights, training->n_weights,
                                     training->mem, err));
        return rc_arena_printf(
            training->mem, origin, err, "weights from %s%s", path,
            training->is_function_told
                ? ""
                : " (no config.json beside them says of which function; names "
                  "and shapes fit)");
    }
    rc_run_init_weights(training->run);
    return rc_arena_printf(training->mem, origin, err, "weights from seed %" PRId64 "%s%s",
                           training->set.seed, cfg->load ? ", no checkpoint yet in " : "",
                           cfg->load ? cfg->load : "");
}

static rc_code describe_idle_labels(const rc_training *training, rc_text *text, rc_error *err)
{
    const rc_setting *setting = &training->policy->setting;
    for (int i = 0; i < RC_LABEL_COUNT; i++) {
        bool is_asked =
            setting->granularity == RC_GRANULARITY_SELECTIVE && (setting->labels >> i & 1u);
        if (is_asked && rc_graph_count_regions(training->graph, (rc_label)i) == 0)
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
    char count[32], peak[32], budget[32], bytes[32], name[160];
    RC_TRY(rc_text_printf(&text, err, "%s parameters, recompute %s; %s predicted peak",
                          rc_format_count(training->graph->n_parameters, count),
                          rc_setting_name(&training->policy->setting, name),
                          rc_format_bytes(training->cost->peak_bytes, peak)));
    if (training->budget_bytes > 0)
        RC_TRY(rc_text_printf(&text, err, " of %s budget",
                              rc_format_bytes(training->budget_bytes, budget)));
    for (int i = 0, n = 0; i < RC_CATEGORY_COUNT; i++)
        if (training->cost->at_peak[i] > 0)
            RC_TRY(rc_text_printf(&text, err, "%s%s %s", n++ ? ", " : ": ",
                                  rc_category_name((rc_category)i),
                                  rc_format_bytes(training->cost->at_peak[i], bytes)));
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

/* A folder that cannot be written to is found before the first step, not after hours. */
static rc_code try_folder(const char *folder, rc_arena *tmp, rc_error *err)
{
    const char *path;
    rc_out_file file;
    if (!folder)
        return RC_OK;
    RC_TRY(rc_path_make_directory(folder, err));
    RC_TRY(rc_arena_printf(tmp, &path, err, "%s/latest_checkpointed_iteration.txt", folder));
    RC_TRY(rc_out_file_open(path, &file, err));
    rc_out_file_abort(&file);
    return RC_OK;
}

static rc_code start(loop *of, rc_error *err)
{
    rc_training *training = of->training;
    const char *origin, *text;
    rc_run_options options = {.seed = (uint64_t)training->set.seed,
                              .n_micro_batches = (int)training->set.n_micro};
    rc_limits limits;
    RC_TRY(try_folder(training->cfg->save, training->mem, err));
    RC_TRY(rc_limits_read("", training->mem, &limits, err));
    RC_TRY(rc_limits_refuse(&limits, training->schedule, 0, training->mem, err));
    rc_process_forget_peak();
    of->result->process_before_bytes = rc_process_memory_read(training->mem).now_bytes;
    RC_TRY(rc_run_open(training->schedule, &options, &training->run, err));
    RC_TRY(rc_training_list_weights(training, err));
    RC_TRY(place_weights(training, &origin, err));
    RC_TRY(describe(training, origin, &text, err));
    if (training->state.iteration > training->set.n_steps)
        return RC_FAIL(err, RC_E_INPUT, training->cfg->origin[RC_FIELD_train_iters].where,
                       "the checkpoint has %" PRId64 " steps, train.train_iters is %" PRId64
                       "; it counts the whole run, so it must be at least as many",
                       training->state.iteration, training->set.n_steps);
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

static rc_code check_finite(const loop *of, const char *what, double value, rc_error *err)
{
    const rc_training *training = of->training;
    if (isfinite(value))
        return RC_OK;
    return RC_FAIL(err, RC_E_RANGE, RC_NOWHERE,
                   "the %s is %g at step %" PRId64 " (learning rate %g, loss before %g); %s. A "
                   "smaller optimizer.lr, a longer warm-up or optimizer.clip_grad may help",
                   what, value, training->state.iteration + 1,
                   rc_lr_at(&training->lr, training->state.n_train_samples),
                   of->result->last_loss,
                   of->saved_at >= 0 ? "the last checkpoint is unharmed"
                                     : "no checkpoint was written in this run");
}

static rc_code step(loop *of, rc_error *err)
{
    rc_training *training = of->training;
    const rc_config *cfg = training->cfg;
    rc_state *state = &training->state;
    const rc_train_settings *set = &training->set;
    double started = now(), loss = 0, micro_loss, grad_norm;
    for (int64_t i = 0; i < set->n_micro; i++) {
        RC_TRY(read_batch(of, training->train, state->n_train_samples + i * set->b, err));
        rc_batch batch = {training->tokens, training->targets, state->iteration, (int)i};
        RC_TRY(rc_run_micro(training->run, &batch, &micro_loss, err));
        loss += micro_loss;
    }
    loss /= (double)set->n_micro;
    RC_TRY(check_finite(of, "loss", loss, err));
    rc_update update = {.lr = rc_lr_at(&training->lr, state->n_train_samples),
                        .weight_decay = cfg->weight_decay,
                        .beta1 = cfg->adam_beta1,
                        .beta2 = cfg->adam_beta2,
                        .eps = cfg->adam_eps,
                        .clip_grad = cfg->clip_grad,
                        .step = state->iteration + 1};
    RC_TRY(rc_run_update(training->run, &update, &grad_norm, err));
    RC_TRY(check_finite(of, "norm of the gradients", grad_norm, err));
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

/* Asked to stop, it ends early and without a result. Its samples count as seen all the same: the
 * next evaluation of the resumed run is then the one of a run that was never stopped. */
static rc_code evaluate(loop *of, rc_error *err)
{
    rc_training *training = of->training;
    const rc_train_settings *set = &training->set;
    int64_t n_batches = set->eval_iters * set->n_micro;
    int64_t first = training->state.n_valid_samples;
    double started = now(), loss = 0, batch_loss;
    training->state.n_valid_samples += n_batches * set->b;
    for (int64_t i = 0; i < n_batches; i++) {
        if (is_asked_to_stop(of))
            return RC_OK;
        RC_TRY(read_batch(of, training->valid, first + i * set->b, err));
        rc_batch batch = {.tokens = training->tokens, .targets = training->targets};
        RC_TRY(rc_run_eval(training->run, &batch, &batch_loss, err));
        loss += batch_loss;
    }
    of->result->valid_loss = loss / (double)n_batches;
    tell(of, (rc_train_event){.kind = RC_TRAIN_VALID,
                              .loss = of->result->valid_loss,
                              .seconds = now() - started});
    return RC_OK;
}

static rc_code save(loop *of, rc_error *err)
{
    rc_training *training = of->training;
    const char *folder = training->cfg->save;
    rc_checkpoint checkpoint = checkpoint_of(training);
    double started = now();
    if (!folder || of->saved_at == training->state.iteration)
        return RC_OK;
    RC_TRY(rc_checkpoint_save(folder, &training->state, &checkpoint, training->mem, err));
    of->saved_at = training->state.iteration;
    snprintf(of->result->saved_to, sizeof of->result->saved_to, "%s/iter_%07" PRId64, folder,
             of->saved_at);
    tell(of, (rc_train_event){.kind = RC_TRAIN_SAVE,
                              .text = of->result->saved_to,
                              .seconds = now() - started});
    return RC_OK;
}

static bool is_due(int64_t iteration, int64_t interval)
{
    return interval > 0 && iteration % interval == 0;
}

/* Evaluates and saves where due; *is_ending when the run ends before its last step. */
static rc_code after_step(loop *of, bool *is_ending, rc_error *err)
{
    const rc_training *training = of->training;
    const rc_train_settings *set = &training->set;
    int64_t iteration = training->state.iteration;
    if (training->valid && is_due(iteration, set->eval_interval))
        RC_TRY(evaluate(of, err));
    bool is_asked = is_asked_to_stop(of);
    of->result->is_stopped = is_asked && iteration < set->n_steps;
    *is_ending = is_asked || is_due(iteration, set->exit_interval);
    if (*is_ending || is_due(iteration, set->save_interval))
        RC_TRY(save(of, err));
    return RC_OK;
}

static rc_code run_steps(loop *of, rc_error *err)
{
    rc_training *training = of->training;
    const rc_train_settings *set = &training->set;
    int64_t evaluated_at = -1;
    bool is_ending = false;
    while (training->state.iteration < set->n_steps && !is_ending) {
        RC_TRY(step(of, err));
        RC_TRY(after_step(of, &is_ending, err));
        if (training->valid && is_due(training->state.iteration, set->eval_interval))
            evaluated_at = training->state.iteration;
    }
    if (of->result->is_stopped) {
        tell(of,
             (rc_train_event){.kind = RC_TRAIN_STOP,
                              .text = of->result->saved_to[0] ? of->result->saved_to : NULL});
        return RC_OK;
    }
    bool is_last = training->state.iteration == set->n_steps;
    if (training->valid && is_last && evaluated_at != set->n_steps)
        RC_TRY(evaluate(of, err));
    RC_TRY(save(of, err));
    tell(of, (rc_train_event){.kind = RC_TRAIN_END});
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
    loop of = {.training = training, .watch = watch, .result = result, .saved_at = -1};
    *result = (rc_train_result){.first_loss = (double)NAN,
                                .last_loss = (double)NAN,
                                .valid_loss = (double)NAN,
                                .n_steps = training->set.n_steps,
                                .peak_bytes = training->cost->peak_bytes};
    RC_TRY(start(&of, err));
    RC_TRY(run_to_the_end(&of, err));
    result->iteration = training->state.iteration;
    result->n_samples = training->state.n_train_samples;
    result->touched_bytes = rc_run_touched_bytes(training->run);
    result->process_peak_bytes = rc_process_memory_read(training->mem).peak_bytes;
    return RC_OK;
}
