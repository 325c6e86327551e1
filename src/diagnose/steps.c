/* steps.c — the next actions of a verdict: only those that can act here, with the line to paste.
 *
 * takes  the row's steps, best first
 * gives  rc_step, filled with this job's numbers
 */
#include "diagnose/diag.h"

#include <string.h>

static const struct step_row {
    const char *name, *what, *cost, *rests_on;
} step_rows[STEP_COUNT] = {
#define RC_STEP(step, what, cost, rests_on) {#step, what, cost, rests_on},
#include "defs/steps.def"
#undef RC_STEP
};

static const struct {
    diag_step step;
    rc_trainer framework;
    const char *line;
} line_rows[] = {
#define RC_STEP_LINE(step, framework, line) {STEP_##step, RC_TRAINER_##framework, line},
#include "defs/step_lines.def"
#undef RC_STEP_LINE
};
enum { N_LINES = sizeof line_rows / sizeof *line_rows };

const char *diag_step_name(diag_step step)
{
    return step_rows[step].name;
}

/* --- when a step cannot act */

static bool is_older_torch(const diag *d)
{
    return d->oom && d->oom->is_parenthesised && strcmp(d->oom->device, "NPU") != 0;
}

static bool is_megatron(const diag *d)
{
    return d->framework == RC_TRAINER_MEGATRON_LM || d->framework == RC_TRAINER_BRIDGE;
}

static bool may_expandable(const diag *d)
{
    return !is_older_torch(d) && !diag_has(d, CLUE_EXPANDABLE_ON) &&
           !diag_has(d, CLUE_POOL_REFUSED);
}

static bool may_split_size(const diag *d)
{
    bool is_known_there = d->oom && d->oom->has_split_hint;
    return is_known_there || (!may_expandable(d) && !is_older_torch(d));
}

static bool may_newer_torch(const diag *d)
{
    return is_older_torch(d);
}

static bool may_smaller_batch(const diag *d)
{
    return d->mbs < 0 || d->mbs > 1;
}

static bool may_recompute_some(const diag *d)
{
    bool is_other = d->framework != RC_TRAINER_ANY && !is_megatron(d);
    return !is_other && d->modules && strcmp(diag_granularity(d->job->cfg), "full") != 0 &&
           !diag_has(d, CLUE_AT_EVAL);
}

static bool may_recompute_full(const diag *d)
{
    return strcmp(diag_granularity(d->job->cfg), "full") != 0 && !diag_has(d, CLUE_AT_EVAL);
}

static bool has_method(const diag *d, const char *method)
{
    const rc_config *cfg = d->job->cfg;
    return cfg && strcmp(diag_granularity(cfg), "full") == 0 && cfg->recompute_method &&
           strcmp(cfg->recompute_method, method) == 0;
}

static bool may_smaller_groups(const diag *d)
{
    return has_method(d, "uniform") && d->job->cfg->recompute_num_layers > 1;
}

static bool may_more_layers(const diag *d)
{
    return has_method(d, "block");
}

static bool may_sequence_parallel(const diag *d)
{
    const rc_config *cfg = d->job->cfg;
    return cfg && cfg->tensor_model_parallel_size > 1 && !cfg->sequence_parallel;
}

static bool may_experts(const diag *d)
{
    const rc_config *cfg = d->job->cfg;
    return !cfg || cfg->num_moe_experts != RC_NULL_INT;
}

static bool may_shard_optimizer(const diag *d)
{
    const rc_config *cfg = d->job->cfg;
    return !cfg || !cfg->use_distributed_optimizer;
}

static bool may_hf_eval(const diag *d)
{
    return d->framework == RC_TRAINER_HF || d->framework == RC_TRAINER_ANY;
}

static bool may_engine(const diag *d)
{
    return d->framework == RC_TRAINER_VERL || diag_has(d, CLUE_ENGINE_REFUSED) ||
           (d->job->log->seen_frames & RC_FRAMES_ENGINE) != 0;
}

static bool may_take_line_only(const diag *d)
{
    return is_megatron(d) || d->framework == RC_TRAINER_ANY;
}

static bool may_check(const diag *d)
{
    return d->settings_path != NULL;
}

/* A step without a condition always can. */
static bool (*const conditions[STEP_COUNT])(const diag *d) = {
    [STEP_expandable] = may_expandable,
    [STEP_split_size] = may_split_size,
    [STEP_newer_torch] = may_newer_torch,
    [STEP_smaller_batch] = may_smaller_batch,
    [STEP_recompute_some] = may_recompute_some,
    [STEP_recompute_full] = may_recompute_full,
    [STEP_block_few] = may_recompute_full,
    [STEP_smaller_groups] = may_smaller_groups,
    [STEP_more_layers] = may_more_layers,
    [STEP_sequence_parallel] = may_sequence_parallel,
    [STEP_recompute_experts] = may_experts,
    [STEP_moe_parts] = may_experts,
    [STEP_shard_optimizer] = may_shard_optimizer,
    [STEP_eval_loss_only] = may_hf_eval,
    [STEP_eval_accumulate] = may_hf_eval,
    [STEP_engine_share] = may_engine,
    [STEP_engine_sleep] = may_engine,
    [STEP_offload_activations] = may_take_line_only,
    [STEP_all_rules] = may_check,
};

static bool can_act(const diag *d, diag_step step)
{
    return !conditions[step] || conditions[step](d);
}

/* --- lines */

static rc_code find_line(const diag *d, diag_step step, rc_trainer framework, const char **out,
                         rc_error *err)
{
    *out = NULL;
    for (size_t i = 0; i < N_LINES && !*out; i++) {
        bool is_fit =
            line_rows[i].framework == framework || line_rows[i].framework == RC_TRAINER_ANY;
        if (is_fit && line_rows[i].step == step)
            RC_TRY(diag_fill(d, line_rows[i].line, out, err));
    }
    return RC_OK;
}

/* Whether the framework's rules accept the step's setting on top of the job's. Rules know
 * settings by Bridge's keys; a step without such a line changes no setting. */
static rc_code is_refused(const diag *d, diag_step step, bool *is, rc_error *err)
{
    const char *overrides = NULL;
    *is = false;
    for (size_t i = 0; i < N_LINES && !overrides; i++)
        if (line_rows[i].framework == RC_TRAINER_BRIDGE && line_rows[i].step == step)
            RC_TRY(diag_fill(d, line_rows[i].line, &overrides, err));
    if (!overrides)
        return RC_OK;
    bool is_accepted;
    RC_TRY(diag_accepts(d, overrides, &is_accepted, err));
    *is = !is_accepted;
    return RC_OK;
}

static rc_code add_step(const diag *d, diag_step which, rc_diagnosis *out, rc_error *err)
{
    const struct step_row *row = &step_rows[which];
    bool is_bad;
    RC_TRY(is_refused(d, which, &is_bad, err));
    if (is_bad)
        return RC_OK;
    rc_step step = {.name = row->name, .cost = row->cost, .rests_on = row->rests_on};
    RC_TRY(diag_fill(d, row->what, &step.what, err));
    if (!step.what)
        return RC_OK;
    RC_TRY(find_line(d, which, d->framework, &step.paste, err));
    out->steps[out->n_steps++] = step;
    return RC_OK;
}

rc_code diag_verify_steps(rc_error *err)
{
    for (size_t i = 0; i < STEP_COUNT; i++)
        RC_TRY(diag_verify_words(step_rows[i].what, err));
    for (size_t i = 0; i < N_LINES; i++)
        RC_TRY(diag_verify_words(line_rows[i].line, err));
    return RC_OK;
}

rc_code diag_steps(const diag *d, const uint8_t *steps, rc_diagnosis *out, rc_error *err)
{
    enum { MOST = 12 };
    RC_TRY(RC_NEW(d->mem, &out->steps, MOST, err));
    for (; *steps && out->n_steps < MOST; steps++)
        if (can_act(d, (diag_step)(*steps - 1)))
            RC_TRY(add_step(d, (diag_step)(*steps - 1), out, err));
    return RC_OK;
}
