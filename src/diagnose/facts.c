/* facts.c — collects everything a clue or a sentence may ask, once.
 *
 * takes  the job: log, settings, snapshot, the run before
 * gives  diag, filled
 * next   clues.c asks, diagnose.c decides, words.c tells
 */
#include "diagnose/diag.h"
#include "diagnose/kinds.h"

#include "base/num.h"
#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static int64_t sum_known(int64_t a, int64_t b)
{
    int64_t sum;
    return a >= 0 && b >= 0 && rc_add(a, b, &sum) ? sum : RC_LOG_UNKNOWN;
}

/* What is left of `whole`, not below 0; unknown when a part is. */
static int64_t rest_of(int64_t whole, int64_t a, int64_t b, int64_t c)
{
    int64_t parts = sum_known(sum_known(a, b), c);
    if (whole < 0 || parts < 0)
        return RC_LOG_UNKNOWN;
    return whole > parts ? whole - parts : 0;
}

static double percent_of(int64_t part, int64_t whole)
{
    return part >= 0 && whole > 0 ? 100.0 * (double)part / (double)whole : (double)NAN;
}

/* --- the message */

/* Of several messages the first with torch's sizes, else the first. */
static const rc_oom *deciding_oom(const rc_log *log)
{
    for (size_t i = 0; i < log->n_ooms; i++)
        if (log->ooms[i].source == RC_OOM_TORCH)
            return &log->ooms[i];
    return log->n_ooms > 0 ? &log->ooms[0] : NULL;
}

static const char *alloc_variable_of(const rc_oom *oom)
{
    if (oom->has_new_variable)
        return "PYTORCH_ALLOC_CONF";
    if (strcmp(oom->device, "NPU") == 0)
        return "PYTORCH_NPU_ALLOC_CONF";
    if (strcmp(oom->device, "MLU") == 0)
        return "PYTORCH_MLU_ALLOC_CONF";
    bool is_old_hip = strcmp(oom->device, "HIP") == 0 && oom->is_parenthesised;
    return is_old_hip || oom->has_hip_variable ? "PYTORCH_HIP_ALLOC_CONF"
                                               : "PYTORCH_CUDA_ALLOC_CONF";
}

static void copy_sizes(diag *d, const rc_oom *oom)
{
    d->request = oom->requested_bytes;
    d->capacity = oom->capacity_bytes;
    d->free = oom->free_bytes;
    d->allocated = oom->allocated_bytes;
    d->idle = oom->idle_bytes;
    d->reserved = oom->reserved_bytes;
    d->process = oom->process_bytes;
    d->other = oom->other_bytes;
    d->pid = oom->other_pid;
    d->private = oom->private_bytes;
    d->active = oom->active_bytes;
    d->local_rank = oom->local_rank;
    d->rank = oom->rank;
    d->gpu = oom->gpu;
    d->own = d->process >= 0 ? d->process : d->reserved;
}

/* The failing request of a snapshot, as the message that is not here would tell it. */
static rc_code oom_of_snapshot(const diag *d, const rc_oom **out, rc_error *err)
{
    const rc_snapshot_facts *facts = d->job->snapshot;
    rc_oom *oom;
    if (!facts || facts->oom_request_bytes < 0)
        return RC_OK;
    RC_TRY(RC_NEW(d->mem, &oom, 1, err));
    *oom = (rc_oom){.source = RC_OOM_TORCH,
                    .where = RC_NOWHERE,
                    .rank = RC_LOG_UNKNOWN,
                    .local_rank = RC_LOG_UNKNOWN,
                    .gpu = RC_LOG_UNKNOWN,
                    .device = "CUDA",
                    .requested_bytes = facts->oom_request_bytes,
                    .capacity_bytes = RC_LOG_UNKNOWN,
                    .free_bytes = facts->oom_free_bytes,
                    .allocated_bytes = facts->active_bytes,
                    .reserved_bytes = facts->reserved_bytes,
                    .idle_bytes = facts->reserved_bytes - facts->active_bytes,
                    .process_bytes = RC_LOG_UNKNOWN,
                    .other_bytes = RC_LOG_UNKNOWN,
                    .other_pid = RC_LOG_UNKNOWN,
                    .private_bytes = RC_LOG_UNKNOWN,
                    .allowed_bytes = RC_LOG_UNKNOWN,
                    .active_bytes = RC_LOG_UNKNOWN,
                    .phase = facts->phase};
    *out = oom;
    return RC_OK;
}

/* Ranks that failed, each once. */
static int64_t count_oom_ranks(const rc_log *log)
{
    int64_t n = 0;
    for (size_t i = 0; i < log->n_ooms; i++) {
        bool is_new = log->ooms[i].rank >= 0;
        for (size_t k = 0; k < i; k++)
            is_new = is_new && log->ooms[k].rank != log->ooms[i].rank;
        n += is_new;
    }
    return n > 0 ? n : RC_LOG_UNKNOWN;
}

static rc_code collect_oom(diag *d, rc_error *err)
{
    const rc_oom *oom = deciding_oom(d->job->log);
    if (!oom)
        RC_TRY(oom_of_snapshot(d, &oom, err));
    d->oom = oom;
    if (!oom)
        return RC_OK;
    copy_sizes(d, oom);
    d->n_ooms = d->job->log->n_ooms_seen;
    d->n_oom_ranks = count_oom_ranks(d->job->log);
    /* 17179869184 GiB is 2^64 bytes, torch's "no limit": it reads as unknown. */
    d->limit = oom->allowed_bytes >= 0 && oom->allowed_bytes < d->capacity ? oom->allowed_bytes
                                                                           : RC_LOG_UNKNOWN;
    d->allowed = d->limit >= 0 ? d->limit : oom->allowed_bytes;
    d->outside = d->process >= 0
                     ? rest_of(d->process, d->allocated, d->idle, 0)
                     : rest_of(d->capacity, d->free, d->reserved, d->other >= 0 ? d->other : 0);
    d->room = sum_known(d->free, d->idle);
    if (d->limit >= 0 && d->reserved >= 0)
        d->room = sum_known(d->limit > d->reserved ? d->limit - d->reserved : 0, d->idle);
    d->unaccounted = rest_of(d->capacity, d->allocated, d->free, 0);
    d->idle_percent = percent_of(d->idle, d->capacity);
    d->alloc_variable = alloc_variable_of(oom);
    if (oom->trace && oom->trace[0])
        RC_TRY(diag_safe(d->mem, oom->trace, 200, &d->frame, err));
    return RC_OK;
}

/* --- reports */

static int64_t peak_of(const rc_log_rank *rank, bool by_reserved)
{
    return by_reserved ? rank->max_reserved_bytes : rank->max_allocated_bytes;
}

/* Peaks are compared by reserve, which is what the card must hold, where every rank printed it. */
static void find_extremes(diag *d)
{
    const rc_log *log = d->job->log;
    bool by_reserved = true;
    for (size_t i = 0; i < log->n_ranks; i++)
        by_reserved = by_reserved && log->ranks[i].max_reserved_bytes >= 0;
    for (size_t i = 0; i < log->n_ranks; i++) {
        const rc_log_rank *rank = &log->ranks[i];
        int64_t peak = peak_of(rank, by_reserved);
        if (peak < 0)
            continue;
        if (d->worst < 0 || peak > d->worst) {
            d->worst = peak;
            d->worst_rank = rank->rank;
            d->peak = rank->max_allocated_bytes;
            d->peak_reserved = rank->max_reserved_bytes;
            d->live = rank->allocated_bytes;
        }
        if (d->best < 0 || peak < d->best) {
            d->best = peak;
            d->best_rank = rank->rank;
        }
    }
}

static void collect_ranks(diag *d)
{
    const rc_log *log = d->job->log;
    find_extremes(d);
    for (size_t i = 0; i < log->n_ranks; i++)
        d->is_decimal = d->is_decimal || log->ranks[i].is_decimal;
    if (log->n_ranks > 1 && d->worst > 0)
        d->spread_percent = 100.0 * (double)(d->worst - d->best) / (double)d->worst;
    d->spread = d->worst >= 0 ? d->worst - d->best : RC_LOG_UNKNOWN;
    if (d->rank < 0 && log->n_ranks > 0)
        d->rank = d->worst_rank;
    if (d->rank < 0)
        d->rank = log->first_rank;
    /* What weights and optimizer take: the log's own estimate, else live memory after a full step
     * of the rank that failed. A report after skipped steps holds no optimizer state. */
    d->state = log->estimate.weight_optimizer_bytes;
    if (d->state < 0 && log->train.n_lines > log->train.skipped && d->live >= 0)
        d->state = d->live;
}

/* Pipeline stages are the slowest index of a rank's number (Megatron's default order). */
static void collect_stages(diag *d)
{
    const rc_config *cfg = d->job->cfg;
    if (!cfg || cfg->pipeline_model_parallel_size < 1 || d->worst_rank < 0)
        return;
    int64_t pp = cfg->pipeline_model_parallel_size, largest = 0;
    const rc_log *log = d->job->log;
    for (size_t i = 0; i < log->n_ranks; i++)
        largest = log->ranks[i].rank > largest ? log->ranks[i].rank : largest;
    int64_t per_stage = (largest + pp) / pp;
    if (per_stage < 1)
        return;
    int64_t worst = d->worst_rank / per_stage, best = d->best_rank / per_stage;
    d->pp = pp;
    d->is_same_stage = worst == best;
    d->is_worst_first_stage = pp > 1 && worst == 0 && best != 0;
    d->is_worst_last_stage = pp > 1 && worst == pp - 1 && best != pp - 1;
}

/* Layers to leave on the heavy end so that the others still divide evenly. */
static void collect_layers(diag *d)
{
    const rc_config *cfg = d->job->cfg;
    if (!cfg || cfg->num_layers == RC_NULL_INT || cfg->num_layers < 1)
        return;
    int64_t layers = cfg->num_layers, pp = cfg->pipeline_model_parallel_size;
    int64_t per_stage = pp > 0 ? layers / pp : layers;
    d->layers_quarter = per_stage >= 4 ? per_stage / 4 : 1;
    if (pp < 2)
        return;
    for (int64_t keep = per_stage - 1; keep > 0 && d->layers_heavy < 0; keep--)
        if ((layers - keep) % (pp - 1) == 0)
            d->layers_heavy = keep;
}

static rc_code collect_stage_words(diag *d, rc_error *err)
{
    d->heavy_end = d->is_worst_last_stage ? "last" : "first";
    if (d->is_worst_last_stage)
        d->stage_text =
            "The heavier one is on the last pipeline stage, which holds the output layer, "
            "the logits and the loss.";
    else if (d->is_worst_first_stage)
        RC_TRY(rc_arena_printf(
            d->mem, &d->stage_text, err,
            "The heavier one is on the first pipeline stage: in 1F1B it keeps the "
            "activations of all in-flight micro-batches (up to %" PRId64
            ", the last stage 1) and the embedding.",
            d->pp));
    else
        d->stage_text =
            "With pipeline parallelism the first stage keeps the activations of every "
            "in-flight micro-batch and the embedding, the last one the logits.";
    if (d->layers_heavy > 0)
        RC_TRY(rc_arena_printf(d->mem, &d->layers_text, err,
                               "%" PRId64 " layers a stage now, %" PRId64 " on the %s one then",
                               d->job->cfg->num_layers / d->pp, d->layers_heavy, d->heavy_end));
    return RC_OK;
}

/* --- events */

static rc_code shape_text(diag *d, const int64_t shape[8], int n, const char **out,
                          rc_error *err)
{
    rc_text text = {.mem = d->mem};
    RC_TRY(rc_text_add(&text, "[", 1, err));
    for (int i = 0; i < n; i++)
        RC_TRY(rc_text_printf(&text, err, "%s%" PRId64, i ? ", " : "", shape[i]));
    RC_TRY(rc_text_add(&text, "]", 1, err));
    *out = text.at;
    return RC_OK;
}

static rc_code collect_mismatch(diag *d, rc_error *err)
{
    const rc_log *log = d->job->log;
    d->n_saved = log->saved_tensors;
    d->n_replayed = log->replayed_tensors;
    if (log->n_mismatches == 0)
        return RC_OK;
    const rc_log_mismatch *first = &log->mismatches[0];
    d->position = first->position;
    if (first->n_saved > 0) {
        d->saved_rows = first->saved[0];
        RC_TRY(shape_text(d, first->saved, first->n_saved, &d->saved_shape, err));
    }
    if (first->n_replayed > 0) {
        d->replayed_rows = first->replayed[0];
        RC_TRY(shape_text(d, first->replayed, first->n_replayed, &d->replayed_shape, err));
    }
    d->saved_dtype = first->saved_dtype;
    d->replayed_dtype = first->replayed_dtype;
    return RC_OK;
}

static const rc_log_event *first_of(const rc_log *log, const rc_log_kind *kinds, size_t n)
{
    const rc_log_event *first = NULL;
    for (size_t i = 0; i < n; i++) {
        const rc_log_event *event = rc_log_find(log, kinds[i]);
        if (event && (!first || event < first)) /* events stand in the log's order */
            first = event;
    }
    return first;
}

static const rc_log_kind library_kinds[] = {KINDS_LIBRARY};
static const rc_log_kind engine_kinds[] = {KINDS_ENGINE};
static const rc_log_kind host_kinds[] = {KINDS_HOST};
static const rc_log_kind error_kinds[] = {RC_LOG_ERROR, KINDS_CRASH};
static const rc_log_kind replay_kinds[] = {KINDS_MISMATCH,         KINDS_TWICE,
                                           RC_LOG_CHECKPOINT_STOP, RC_LOG_CHECKPOINT_GRAD,
                                           RC_LOG_NO_GRAD_FN,      RC_LOG_EXPANDABLE_POOL};
#define FIRST_OF(log, kinds) first_of((log), (kinds), sizeof(kinds) / sizeof *(kinds))

static rc_code event_text(diag *d, const rc_log_event *event, const char **out, rc_error *err)
{
    return event ? diag_safe(d->mem, event->text, 200, out, err) : RC_OK;
}

static rc_code collect_events(diag *d, rc_error *err)
{
    const rc_log *log = d->job->log;
    const rc_log_event *library = FIRST_OF(log, library_kinds);
    const rc_log_event *error = FIRST_OF(log, error_kinds);
    const rc_log_event *replay = FIRST_OF(log, replay_kinds);
    d->event = replay ? replay : library ? library : error;
    if (library)
        d->library = rc_log_kind_meaning(library->kind);
    RC_TRY(event_text(d, FIRST_OF(log, engine_kinds), &d->engine_text, err));
    RC_TRY(event_text(d, FIRST_OF(log, host_kinds), &d->refused_host, err));
    RC_TRY(event_text(d, error, &d->error_text, err));
    if (log->n_refusals > 0)
        RC_TRY(diag_safe(d->mem, log->refusals[0].text, 240, &d->refused_text, err));
    for (size_t i = 0; i < log->n_events && d->rank < 0; i++)
        d->rank = log->events[i].rank;
    d->exit = log->exit_code;
    d->exit_rank = log->exit_rank;
    d->exit_local_rank = log->exit_local_rank;
    d->host_percent = log->host_percent;
    d->host_used = log->host_used_gib;
    return RC_OK;
}

static rc_code collect_progress(diag *d, rc_error *err)
{
    const rc_log *log = d->job->log;
    const rc_log_train *train = &log->train;
    d->n_lines = train->n_lines > 0 ? train->n_lines : RC_LOG_UNKNOWN;
    d->iteration = train->last_iteration;
    d->grad_norm = train->grad_norm;
    if (train->n_same_loss == train->n_lines - 1) /* named only where it does not move */
        d->loss = train->loss;
    const rc_log_event *stop = rc_log_find(log, RC_LOG_NAN_LOSS);
    stop = stop ? stop : rc_log_find(log, RC_LOG_NAN_GRAD);
    if (stop)
        return event_text(d, stop, &d->nan_text, err);
    return rc_arena_printf(d->mem, &d->nan_text, err,
                           "%" PRId64 " nan iterations, %" PRId64
                           " step lines with a gradient norm that is no number, %" PRId64
                           " without a loss",
                           train->nan, train->n_nan_grad, train->n_without_loss);
}

/* --- comparison */

static const rc_log_rank *rank_with_peak(const rc_log *log, int64_t rank)
{
    for (size_t i = 0; i < log->n_ranks; i++)
        if (log->ranks[i].rank == rank || (rank < 0 && i == 0))
            return &log->ranks[i];
    return NULL;
}

static rc_code collect_comparison(diag *d, rc_error *err)
{
    const rc_log *base = d->job->base;
    if (!base)
        return RC_OK;
    d->step_before = base->train.step_ms;
    d->step_after = d->job->log->train.step_ms;
    if (d->step_before > 0)
        d->slower_percent = 100 * (d->step_after - d->step_before) / d->step_before;
    const rc_log_rank *after = rank_with_peak(d->job->log, d->worst_rank);
    const rc_log_rank *before = after ? rank_with_peak(base, after->rank) : NULL;
    if (!before)
        return RC_OK;
    bool has_allocated = before->max_allocated_bytes >= 0 && after->max_allocated_bytes >= 0;
    d->metric = has_allocated ? "peak allocated" : "peak reserved";
    d->before = has_allocated ? before->max_allocated_bytes : before->max_reserved_bytes;
    d->after = has_allocated ? after->max_allocated_bytes : after->max_reserved_bytes;
    if (d->before >= 0 && d->after >= 0)
        d->saved_gib = (double)(d->before - d->after) / RC_GIB;
    if (d->before > 0 && d->after >= 0) /* to one decimal: the reports carry no more */
        d->saved_percent =
            round(1000.0 * (double)(d->before - d->after) / (double)d->before) / 10;
    if (isnan(d->saved_percent))
        return RC_OK;
    return rc_arena_printf(d->mem, &d->change, err, "%.1f %% %s", fabs(d->saved_percent),
                           d->saved_percent < 0 ? "more" : "less");
}

/* --- settings */

static void collect_sizes_of_settings(diag *d)
{
    const rc_config *cfg = d->job->cfg;
    d->tp_double = d->cp_double = 2;
    if (!cfg)
        return;
    if (cfg->recompute_num_layers > 0 && cfg->recompute_num_layers < 1 << 20)
        d->layers_more = 2 * cfg->recompute_num_layers;
    d->mbs = cfg->micro_batch_size != RC_NULL_INT ? cfg->micro_batch_size : RC_LOG_UNKNOWN;
    d->mbs_half = d->mbs > 1 ? d->mbs / 2 : RC_LOG_UNKNOWN;
    if (cfg->tensor_model_parallel_size > 0 && cfg->tensor_model_parallel_size < 1 << 20)
        d->tp_double = 2 * cfg->tensor_model_parallel_size;
    if (cfg->context_parallel_size > 0 && cfg->context_parallel_size < 1 << 20)
        d->cp_double = 2 * cfg->context_parallel_size;
    if (cfg->seq_length != RC_NULL_INT && cfg->seq_length > 1)
        d->tokens_half = cfg->seq_length / 2;
}

static void collect_framework(diag *d)
{
    const rc_log *log = d->job->log;
    unsigned seen = log->seen_frames;
    d->framework = d->job->framework;
    if (d->framework != RC_TRAINER_ANY)
        return;
    bool is_bridge = (seen & RC_FRAMES_BRIDGE) != 0 || log->n_seen[RC_LOG_MEMORY_GB] > 0;
    bool is_megatron = (seen & RC_FRAMES_MEGATRON) != 0 || log->n_seen[RC_LOG_ITERATION] > 0 ||
                       log->settings != NULL;
    if ((seen & RC_FRAMES_VERL) || log->n_seen[RC_LOG_MEMORY_VERL] ||
        log->n_seen[RC_LOG_STEP_VERL])
        d->framework = RC_TRAINER_VERL;
    else if (is_bridge)
        d->framework = RC_TRAINER_BRIDGE;
    else if ((seen & RC_FRAMES_DEEPSPEED) || log->n_seen[RC_LOG_MEMORY_DEEPSPEED])
        d->framework = RC_TRAINER_DEEPSPEED;
    else if (is_megatron)
        d->framework = RC_TRAINER_MEGATRON_LM;
    else if ((seen & RC_FRAMES_HF) || log->n_seen[RC_LOG_STEP_HF] || d->job->has_hf_config)
        d->framework = RC_TRAINER_HF;
}

/* --- the phase */

static rc_job_phase phase_of_event(const diag *d)
{
    const rc_log *log = d->job->log;
    bool is_replay = FIRST_OF(log, replay_kinds) != NULL;
    if (log->n_seen[RC_LOG_EXPANDABLE_POOL] > 0)
        return d->event->phase != RC_JOB_UNKNOWN ? d->event->phase : RC_JOB_CONFIG;
    if (is_replay) /* torch compares saved tensors in backward and nowhere else */
        return RC_JOB_BACKWARD;
    if (log->n_refusals > 0)
        return RC_JOB_CONFIG;
    if (d->event && d->event->phase != RC_JOB_UNKNOWN)
        return d->event->phase;
    if (log->has_traceback && log->last_phase != RC_JOB_UNKNOWN)
        return log->last_phase;
    return log->phase != RC_JOB_NONE ? log->phase : RC_JOB_UNKNOWN;
}

static void collect_phase(diag *d)
{
    const rc_log *log = d->job->log;
    const rc_snapshot_facts *snapshot = d->job->snapshot;
    d->phase = d->oom ? d->oom->phase : phase_of_event(d);
    d->frames = d->oom ? d->oom->frames : d->event ? d->event->frames : log->last_frames;
    if (d->oom && d->phase == RC_JOB_UNKNOWN && snapshot)
        d->phase = snapshot->phase;
}

rc_code diag_collect(diag *d, rc_error *err)
{
    diag_forget(d);
    RC_TRY(collect_oom(d, err));
    collect_ranks(d);
    diag_collect_growth(d);
    collect_stages(d);
    collect_layers(d);
    RC_TRY(collect_stage_words(d, err));
    RC_TRY(collect_mismatch(d, err));
    RC_TRY(collect_events(d, err));
    RC_TRY(collect_progress(d, err));
    RC_TRY(collect_comparison(d, err));
    collect_sizes_of_settings(d);
    collect_framework(d);
    collect_phase(d);
    if (d->job->snapshot)
        d->largest_block = d->job->snapshot->largest_free_block_bytes;
    if (d->job->not_applied)
        RC_TRY(diag_safe(d->mem, d->job->not_applied, 240, &d->not_applied, err));
    d->alloc_variable = d->alloc_variable ? d->alloc_variable : "PYTORCH_CUDA_ALLOC_CONF";
    d->graph_register = "";
    return RC_OK;
}
