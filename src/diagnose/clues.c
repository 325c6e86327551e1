/* clues.c — one small predicate per row of clues.def.
 *
 * takes  the collected facts (facts.c)
 * gives  a truth per clue; what the rows of diagnoses.def are made of
 */
#include "diagnose/diag.h"
#include "diagnose/kinds.h"

#include <math.h>
#include <string.h>

/* Shares of the card, from the sources in clues.def. */
static const double IDLE_SHARE = 0.05, OTHER_SHARE = 0.10, OUTSIDE_SHARE = 0.08,
                    FULL_SHARE = 0.90;
static const double SPREAD_PERCENT = 8;
static const int64_t OUTSIDE_MOST = (int64_t)5 << 30, OUTSIDE_NORMAL = (int64_t)2 << 30;

static bool has_event(const diag *d, rc_log_kind kind)
{
    return d->job->log->n_seen[kind] > 0;
}

static bool has_any(const diag *d, const rc_log_kind *kinds, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (has_event(d, kinds[i]))
            return true;
    return false;
}
#define HAS_ANY(d, ...)                                                                        \
    has_any((d), (const rc_log_kind[]){__VA_ARGS__},                                           \
            sizeof((const rc_log_kind[]){__VA_ARGS__}) / sizeof(rc_log_kind))

static bool is_share(int64_t bytes, int64_t of, double share)
{
    return bytes >= 0 && of > 0 && (double)bytes >= share * (double)of;
}

#define SEE(name) static bool see_##name(const diag *d)

/* --- what failed */

SEE(OOM)
{
    return d->oom != NULL;
}
SEE(OOM_SIZES)
{
    return d->oom &&
           (d->oom->source == RC_OOM_TORCH ||
            (d->oom->source == RC_OOM_DEVICE && d->capacity >= 0 && d->allocated >= 0));
}
SEE(OOM_ASYNC)
{
    return d->oom && d->oom->source == RC_OOM_ASYNC;
}
SEE(OOM_OVERFLOW)
{
    return d->oom && d->oom->source == RC_OOM_OVERFLOW;
}
SEE(OOM_LIBRARY)
{
    return HAS_ANY(d, KINDS_LIBRARY);
}
SEE(ENGINE_REFUSED)
{
    return HAS_ANY(d, KINDS_ENGINE);
}
SEE(HOST_KILLED)
{
    return HAS_ANY(d, RC_LOG_HOST_OOM_KILLER, RC_LOG_HOST_OOM_KILL, RC_LOG_HOST_OOM_KILL2,
                   RC_LOG_HOST_OOM_HANDLER, RC_LOG_HOST_K8S, RC_LOG_HOST_SIGKILL,
                   RC_LOG_HOST_KILLED, RC_LOG_HOST_SHELL_KILLED, RC_LOG_HOST_RAY,
                   RC_LOG_HOST_RAY2, RC_LOG_HOST_SRUN);
}
SEE(HOST_REFUSED)
{
    return HAS_ANY(d, KINDS_HOST);
}
SEE(PINNED)
{
    return (d->frames & RC_FRAMES_PINNED) != 0;
}
SEE(REFUSED)
{
    return d->job->log->n_refusals > 0 && !d->oom;
}
/* A step, a report or a phase behind construction proves that the framework took the settings,
 * whatever our rules say. */
static bool has_begun(const diag *d)
{
    const rc_log *log = d->job->log;
    return log->train.n_lines > 0 || log->n_ranks > 0 ||
           (d->phase != RC_JOB_UNKNOWN && d->phase != RC_JOB_CONFIG &&
            d->phase != RC_JOB_MODEL_BUILD);
}
SEE(INVALID)
{
    return d->broken && !has_begun(d);
}
SEE(INVALID_OPEN)
{
    return !d->broken && d->open && !has_begun(d);
}
SEE(GROUP_OVERRUN)
{
    bool is_uneven = false;
    for (size_t i = 0; d->check && i < d->check->findings.n; i++)
        is_uneven = is_uneven ||
                    strcmp(d->check->findings.at[i].rule, "uniform-group-does-not-divide") == 0;
    return is_uneven && d->error_text && strstr(d->error_text, "out of range");
}
SEE(SETTINGS_FINE)
{
    return d->check && !d->broken && !d->open;
}
SEE(NOT_APPLIED)
{
    return d->not_applied != NULL;
}
SEE(POOL_REFUSED)
{
    return has_event(d, RC_LOG_EXPANDABLE_POOL);
}
SEE(MISMATCH)
{
    return HAS_ANY(d, KINDS_MISMATCH);
}
SEE(MISMATCH_ROWS)
{
    const rc_log *log = d->job->log;
    if (log->n_mismatches == 0)
        return false;
    const rc_log_mismatch *first = &log->mismatches[0];
    if (first->n_saved < 1 || first->n_saved != first->n_replayed)
        return false;
    for (int i = 1; i < first->n_saved; i++)
        if (first->saved[i] != first->replayed[i])
            return false;
    return first->saved[0] != first->replayed[0];
}
SEE(MISMATCH_DTYPE)
{
    const rc_log *log = d->job->log;
    return log->n_mismatches > 0 && log->mismatches[0].replayed_dtype[0] &&
           strcmp(log->mismatches[0].saved_dtype, log->mismatches[0].replayed_dtype) != 0;
}
SEE(MISMATCH_COUNT)
{
    return d->n_saved >= 0 && d->n_replayed >= 0;
}
SEE(REPLAY_SHAPE)
{
    /* A re-entrant checkpoint compares nothing itself: what differs meets a gradient or a
     * collective of the wrong size. */
    bool is_split = (d->frames & RC_FRAMES_REPLAY) != 0 && d->error_text &&
                    (strstr(d->error_text, "Split sizes") || strstr(d->error_text, "shape") ||
                     strstr(d->error_text, "must match the size of tensor"));
    bool is_gradient = has_event(d, RC_LOG_REPLAY_SHAPE) &&
                       (d->phase == RC_JOB_BACKWARD || d->phase == RC_JOB_UNKNOWN);
    return !d->oom && (is_split || is_gradient);
}
SEE(REPLAY_STOP)
{
    return has_event(d, RC_LOG_CHECKPOINT_STOP);
}
SEE(REPLAY_GRAD)
{
    return has_event(d, RC_LOG_CHECKPOINT_GRAD);
}
SEE(REPLAY_TWICE)
{
    return HAS_ANY(d, KINDS_TWICE);
}
SEE(LOSS_DETACHED)
{
    return has_event(d, RC_LOG_NO_GRAD_FN);
}
SEE(ZERO_GRAD)
{
    const rc_log_train *train = &d->job->log->train;
    bool is_trained = train->n_lines >= 2 && train->skipped < train->n_lines;
    return !d->oom && is_trained && train->n_zero_grad == train->n_lines;
}
SEE(ADAPTERS)
{
    return HAS_ANY(d, RC_LOG_PEFT, RC_LOG_PEFT_APPLY, RC_LOG_TRAINABLE);
}
SEE(RECOMPUTE_ON)
{
    bool is_set = diag_granularity(d->job->cfg)[0] != '\0';
    return is_set || has_event(d, RC_LOG_CHECKPOINT_INPUTS);
}
SEE(NAN)
{
    const rc_log_train *train = &d->job->log->train;
    return !d->oom && (HAS_ANY(d, RC_LOG_NAN_LOSS, RC_LOG_NAN_GRAD) || train->nan > 0 ||
                       train->n_nan_grad > 0);
}
SEE(OTHER_ERROR)
{
    /* An exception that steps follow was caught: it is not what ended the job. */
    const rc_log *log = d->job->log;
    bool is_last = has_event(d, RC_LOG_ERROR) &&
                   (log->train.n_lines == 0 || log->last_error.file != log->train.where.file ||
                    log->last_error.line > log->train.where.line);
    bool is_crash = HAS_ANY(d, KINDS_CRASH);
    return !d->oom && (is_last || is_crash);
}
SEE(DIED)
{
    return d->exit != RC_LOG_NO_EXIT;
}
SEE(CUT_TRACEBACK)
{
    return d->job->log->has_traceback && !d->oom;
}

/* --- sizes */

/* torch counts more than the card holds: Windows spills to the host, an engine's pool sleeps. What
 * it calls idle is then not memory of the card. */
static bool is_overcommitted(const diag *d)
{
    return d->capacity > 0 && d->reserved > d->capacity;
}

SEE(IDLE_LARGE)
{
    int64_t card = d->limit > 0 ? d->limit : d->capacity;
    if (card < 0 && d->reserved >= 0 && d->free >= 0)
        card = d->reserved + d->free; /* a snapshot does not say; no smaller than this */
    return is_share(d->idle, card, IDLE_SHARE) && !is_overcommitted(d);
}
SEE(IDLE_SERVES)
{
    return d->idle >= 0 && d->request >= 0 && d->room >= 0 && d->request <= d->room;
}
SEE(OVER_CARD)
{
    return d->capacity > 0 && d->request > d->capacity;
}
SEE(OTHER_PROCESS)
{
    /* Enough to matter: a tenth of the card, and the request would have fitted without it. */
    return is_share(d->other, d->capacity, OTHER_SHARE) && d->free >= 0 &&
           d->request <= d->other + d->free;
}
SEE(LIMITED)
{
    return d->limit > 0 && d->capacity > 0 &&
           is_share(d->capacity - d->limit, d->capacity, 0.01) && d->free >= d->request &&
           d->request >= 0;
}
SEE(OUTSIDE_LARGE)
{
    if (!is_share(d->outside, d->capacity, OUTSIDE_SHARE) || d->outside < OUTSIDE_MOST ||
        d->free < 0 || see_LIMITED(d))
        return false;
    int64_t idle = d->idle > 0 ? d->idle : 0;
    return d->request <= d->outside - OUTSIDE_NORMAL + d->free + idle && d->outside > idle;
}
SEE(PRIVATE_LARGE)
{
    return is_share(d->private, d->capacity, IDLE_SHARE) && d->private >= d->request;
}
SEE(CARD_FULL)
{
    return is_share(d->allocated, d->capacity, FULL_SHARE);
}
SEE(EXPANDABLE_ON)
{
    const rc_snapshot_facts *snapshot = d->job->snapshot;
    return d->job->log->is_expandable_on || (snapshot && snapshot->is_expandable);
}
SEE(SNAPSHOT_HOLES)
{
    return d->job->snapshot && d->largest_block >= 0 && d->largest_block < d->request;
}
SEE(GROWING)
{
    /* A leak that the request would have failed without is not what it failed for. */
    bool is_cause = d->request < 0 || d->free < 0 || d->request <= d->free + d->grown;
    return d->grown > 0 && (!d->oom || is_cause);
}
SEE(STATE_FILLS)
{
    return is_share(d->state, d->capacity, FULL_SHARE);
}

/* --- where */

#define SEE_STAGE(name, wanted)                                                                \
    SEE(name)                                                                                  \
    {                                                                                          \
        return d->phase == (wanted);                                                           \
    }
SEE_STAGE(AT_BUILD, RC_JOB_MODEL_BUILD)
SEE_STAGE(AT_LOAD, RC_JOB_CHECKPOINT_LOAD)
SEE_STAGE(AT_FORWARD, RC_JOB_FORWARD)
SEE_STAGE(AT_BACKWARD, RC_JOB_BACKWARD)
SEE_STAGE(AT_GRAD_SYNC, RC_JOB_GRAD_SYNC)
SEE_STAGE(AT_OPTIMIZER_INIT, RC_JOB_OPTIMIZER_INIT)
SEE_STAGE(AT_OPTIMIZER_STEP, RC_JOB_OPTIMIZER_STEP)
SEE_STAGE(AT_SAVE, RC_JOB_CHECKPOINT_SAVE)
SEE_STAGE(AT_EVAL, RC_JOB_EVAL)
SEE_STAGE(AT_CAPTURE, RC_JOB_GRAPH_CAPTURE)

SEE(AT_REPLAY)
{
    return d->phase == RC_JOB_BACKWARD && (d->frames & RC_FRAMES_REPLAY) != 0;
}
SEE(NO_STEP_DONE)
{
    const rc_log_train *train = &d->job->log->train;
    return train->n_lines == 0 || train->skipped >= train->n_lines;
}

/* --- which tensor */

SEE(TENSOR_LOGITS)
{
    /* Round sizes are shared by many tensors: a traceback elsewhere outweighs the size. */
    bool is_elsewhere =
        (d->frames & (RC_FRAMES_EXPERTS | RC_FRAMES_SCORES | RC_FRAMES_REPLAY)) != 0;
    bool is_named = d->tensor && strstr(d->tensor, "logits") && !is_elsewhere;
    bool is_framed = (d->frames & RC_FRAMES_LOGITS) != 0;
    /* A few MiB inside the loss are not what filled the card. */
    bool is_small =
        d->capacity > 0 && d->request >= 0 && !is_share(d->request, d->capacity, 0.005);
    return is_named || (is_framed && !is_small);
}
SEE(TENSOR_SCORES)
{
    bool is_named = d->tensor && strstr(d->tensor, "scores");
    bool is_small =
        d->capacity > 0 && d->request >= 0 && !is_share(d->request, d->capacity, 0.005);
    return is_named || ((d->frames & RC_FRAMES_SCORES) != 0 && !is_small);
}
SEE(TENSOR_EXPERTS)
{
    return (d->frames & RC_FRAMES_EXPERTS) != 0;
}

/* --- which rank, what was running */

SEE(RANKS_DIFFER)
{
    return d->spread_percent >= SPREAD_PERCENT;
}
SEE(EXPERTS_DIFFER)
{
    const rc_config *cfg = d->job->cfg;
    bool has_experts = cfg && cfg->num_moe_experts != RC_NULL_INT;
    return see_RANKS_DIFFER(d) && has_experts && d->is_same_stage;
}
SEE(HEAVY_RANK_FAILED)
{
    return see_RANKS_DIFFER(d) && d->oom && d->oom->rank >= 0 && d->oom->rank == d->worst_rank;
}
SEE(COMPARISON)
{
    return d->job->base && d->before >= 0 && d->after >= 0;
}
SEE(STEPS_COMPARED)
{
    return d->step_before > 0 && d->step_after > 0;
}
SEE(BASE_FAILED)
{
    return d->job->base && d->job->base->n_ooms > 0 && !d->oom;
}
SEE(FUSED_CORE_ATTN)
{
    const rc_config *cfg = d->job->cfg;
    if (strcmp(diag_granularity(cfg), "selective") != 0)
        return false;
    bool is_default = !cfg->recompute_modules.at;
    bool is_only =
        cfg->recompute_modules.n == 1 && strcmp(cfg->recompute_modules.at[0], "core_attn") == 0;
    const char *backend = cfg->attention_backend;
    bool is_unfused =
        backend && (strcmp(backend, "unfused") == 0 || strcmp(backend, "local") == 0);
    return (is_default || is_only) && !is_unfused;
}
SEE(RAN)
{
    const rc_log *log = d->job->log;
    return log->train.n_lines > 0 || log->n_ranks > 0 || log->phase == RC_JOB_NONE ||
           d->job->snapshot;
}

static const struct {
    const char *name, *meaning;
    bool (*see)(const diag *d);
} clues[CLUE_COUNT] = {
#define RC_CLUE(name, meaning) {#name, meaning, see_##name},
#include "defs/clues.def"
#undef RC_CLUE
};

void diag_clues(const diag *d, bool holds[CLUE_COUNT])
{
    for (size_t i = 0; i < CLUE_COUNT; i++)
        holds[i] = clues[i].see(d);
}

const char *diag_clue_name(diag_clue clue)
{
    return clues[clue].name;
}

const char *diag_clue_meaning(diag_clue clue)
{
    return clues[clue].meaning;
}
