/* steps.c — the next actions of a verdict: only those that can act here, with the line to paste.
 *
 * takes  the row's list of steps, best first
 * gives  rc_step, filled with this job's numbers
 */
#include "diagnose/diag.h"

#include <string.h>

static const struct step_row {
    const char *name, *what, *cost, *rests_on;
} step_rows[] = {
#define RC_STEP(step, what, cost, rests_on) {#step, what, cost, rests_on},
#include "defs/steps.def"
#undef RC_STEP
};

static const struct {
    const char *step;
    rc_trainer framework;
    const char *line;
} line_rows[] = {
#define RC_STEP_LINE(step, framework, line) {#step, RC_TRAINER_##framework, line},
#include "defs/step_lines.def"
#undef RC_STEP_LINE
};

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

static const struct {
    const char *step;
    bool (*may)(const diag *d);
} conditions[] = {
    {"expandable", may_expandable},
    {"split_size", may_split_size},
    {"newer_torch", may_newer_torch},
    {"smaller_batch", may_smaller_batch},
    {"recompute_some", may_recompute_some},
    {"recompute_full", may_recompute_full},
    {"block_few", may_recompute_full},
    {"smaller_groups", may_smaller_groups},
    {"more_layers", may_more_layers},
    {"sequence_parallel", may_sequence_parallel},
    {"recompute_experts", may_experts},
    {"moe_parts", may_experts},
    {"shard_optimizer", may_shard_optimizer},
    {"eval_loss_only", may_hf_eval},
    {"eval_accumulate", may_hf_eval},
    {"engine_share", may_engine},
    {"engine_sleep", may_engine},
    {"offload_activations", may_take_line_only},
    {"all_rules", may_check},
};

static bool can_act(const diag *d, const char *step)
{
    for (size_t i = 0; i < sizeof conditions / sizeof *conditions; i++)
        if (strcmp(conditions[i].step, step) == 0)
            return conditions[i].may(d);
    return true;
}

/* --- lines */

static rc_code find_line(const diag *d, const char *step, rc_trainer framework,
                         const char **out, rc_error *err)
{
    *out = NULL;
    for (size_t i = 0; i < sizeof line_rows / sizeof *line_rows && !*out; i++) {
        bool is_fit =
            line_rows[i].framework == framework || line_rows[i].framework == RC_TRAINER_ANY;
        if (is_fit && strcmp(line_rows[i].step, step) == 0)
            RC_TRY(diag_fill(d, line_rows[i].line, out, err));
    }
    return RC_OK;
}

/* Whether the framework's rules accept the step's setting on top of the job's. Rules know
 * settings by Bridge's keys; a step without such a line changes no setting. */
static rc_code is_refused(const diag *d, const char *step, bool *is, rc_error *err)
{
    const char *overrides = NULL;
    *is = false;
    for (size_t i = 0; i < sizeof line_rows / sizeof *line_rows && !overrides; i++)
        if (line_rows[i].framework == RC_TRAINER_BRIDGE && strcmp(line_rows[i].step, step) == 0)
            RC_TRY(diag_fill(d, line_rows[i].line, &overrides, err));
    if (!overrides)
        return RC_OK;
    bool is_accepted;
    RC_TRY(diag_accepts(d, overrides, &is_accepted, err));
    *is = !is_accepted;
    return RC_OK;
}

static rc_code add_step(const diag *d, const struct step_row *row, rc_diagnosis *out,
                        rc_error *err)
{
    bool is_bad;
    RC_TRY(is_refused(d, row->name, &is_bad, err));
    if (is_bad)
        return RC_OK;
    rc_step step = {.name = row->name, .cost = row->cost, .rests_on = row->rests_on};
    RC_TRY(diag_fill(d, row->what, &step.what, err));
    if (!step.what)
        return RC_OK;
    RC_TRY(find_line(d, row->name, d->framework, &step.paste, err));
    out->steps[out->n_steps++] = step;
    return RC_OK;
}

/* The row of the first name in a list, with *names moved behind it. errors RC_E_BUG */
static rc_code next_step(const char **names, const struct step_row **out, rc_error *err)
{
    size_t n = strcspn(*names, " ");
    *out = NULL;
    for (size_t i = 0; i < sizeof step_rows / sizeof *step_rows; i++)
        if (strlen(step_rows[i].name) == n && memcmp(step_rows[i].name, *names, n) == 0)
            *out = &step_rows[i];
    if (!*out)
        return RC_FAIL(err, RC_E_BUG, RC_NOWHERE, "diagnoses.def names an unknown step: %s",
                       *names);
    *names += n;
    *names += strspn(*names, " ");
    return RC_OK;
}

rc_code diag_verify_steps(const char *names, rc_error *err)
{
    while (*names) {
        const struct step_row *row;
        RC_TRY(next_step(&names, &row, err));
        RC_TRY(diag_verify_words(row->what, err));
        for (size_t i = 0; i < sizeof line_rows / sizeof *line_rows; i++)
            if (strcmp(line_rows[i].step, row->name) == 0)
                RC_TRY(diag_verify_words(line_rows[i].line, err));
    }
    return RC_OK;
}

rc_code diag_steps(const diag *d, const char *names, rc_diagnosis *out, rc_error *err)
{
    enum { MOST = 12 };
    RC_TRY(RC_NEW(d->mem, &out->steps, MOST, err));
    while (*names && out->n_steps < MOST) {
        const struct step_row *row;
        RC_TRY(next_step(&names, &row, err));
        if (can_act(d, row->name))
            RC_TRY(add_step(d, row, out, err));
    }
    return RC_OK;
}
