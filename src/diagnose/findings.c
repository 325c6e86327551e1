/* findings.c — what is worth saying beside the verdict: rules broken, progress that proves nothing.
 *
 * takes  the framework's refusals in the log, the rules' findings on the settings, the step lines
 * gives  findings: of the settings where they are known, of the log where they are not
 */
#include "diagnose/diag.h"

#include <inttypes.h>
#include <string.h>

static bool has_finding(const rc_findings *findings, const char *rule)
{
    for (size_t i = 0; i < findings->n; i++)
        if (strcmp(findings->at[i].rule, rule) == 0)
            return true;
    return false;
}

/* What the framework refused, or what the verdict rests on, is an error, whatever a recipe that is
 * not here might have set. */
static bool is_proved(const diag *d, const rc_diagnosis *out, const rc_finding *finding)
{
    const rc_log *log = d->job->log;
    char id[RC_RULE_ID_ROOM];
    for (size_t i = 0; i < log->n_refusals; i++) {
        const rc_rule_facts *rule = rc_rule_find(log->refusals[i].rule);
        if (rule && strcmp(rc_rule_id(rule, id), finding->rule) == 0)
            return true;
    }
    return finding == d->open && diag_has(d, CLUE_INVALID_OPEN) &&
           out->cause == RC_CAUSE_CONFIG_INVALID;
}

/* A refusal in the log is the framework's own word; our rule of that name explains it. */
static rc_code add_refusals(const diag *d, rc_diagnosis *out, rc_error *err)
{
    const rc_log *log = d->job->log;
    for (size_t i = 0; i < log->n_refusals; i++) {
        const rc_log_refusal *refusal = &log->refusals[i];
        const rc_rule_facts *rule = rc_rule_find(refusal->rule);
        rc_finding finding = {.level = RC_LEVEL_ERROR, .where = refusal->where};
        char id[RC_RULE_ID_ROOM];
        RC_TRY(rc_arena_printf(d->mem, &finding.rule, err, "%s",
                               rule ? rc_rule_id(rule, id) : refusal->rule));
        if (has_finding(&out->findings, finding.rule))
            continue;
        RC_TRY(diag_safe(d->mem, refusal->text, 240, &finding.reason, err));
        finding.fix = rule && rule->fix[0] ? rule->fix : NULL;
        RC_TRY(rc_findings_add(&out->findings, &finding, err));
    }
    return RC_OK;
}

static rc_code add_note(rc_diagnosis *out, rc_level level, const char *rule, rc_where where,
                        const char *reason, const char *fix, rc_error *err)
{
    rc_finding finding = {
        .level = level, .rule = rule, .where = where, .reason = reason, .fix = fix};
    if (has_finding(&out->findings, rule))
        return RC_OK;
    return rc_findings_add(&out->findings, &finding, err);
}

static rc_code add_adapter_finding(const diag *d, rc_diagnosis *out, rc_error *err)
{
    bool is_zero = d->row == ROW_zero_grad || d->row == ROW_zero_grad_adapters;
    const rc_rule_facts *rule = rc_rule_find("lora-pp1-full-recompute-no-input-grad");
    char id[RC_RULE_ID_ROOM];
    const char *name = "lora-pp1-full-recompute-no-input-grad";
    if (!is_zero)
        return RC_OK;
    if (rule)
        RC_TRY(rc_arena_printf(d->mem, &name, err, "%s", rc_rule_id(rule, id)));
    return add_note(
        out, RC_LEVEL_WARNING, name, d->job->log->train.where,
        "adapters, PP 1 and full recompute: the frozen embedding's output requires no grad, so the "
        "re-entrant checkpoint's backward never runs",
        "mark the block input differentiable, or recompute selectively", err);
}

/* Whether every iteration so far was skipped; the counters are since the last line. */
static bool is_all_skipped(const rc_log_train *train)
{
    int64_t done = train->last_iteration > 0 ? train->last_iteration : train->n_lines;
    return train->n_lines > 0 && train->skipped > 0 && train->skipped >= done;
}

/* Whether the job stopped before three steps without being told to. */
static bool is_short(const rc_log *log)
{
    const rc_log_train *train = &log->train;
    int64_t done = train->last_iteration >= 0 ? train->last_iteration : train->n_lines;
    bool is_whole = log->phase == RC_JOB_NONE ||
                    (train->n_iterations > 0 && train->last_iteration >= train->n_iterations);
    return done < 3 && (train->n_lines > 0 || log->n_ranks > 0) && !is_whole;
}

/* Farther than before is not a pass: optimizer state and several whole steps must have fitted. */
static rc_code add_progress(const diag *d, rc_diagnosis *out, rc_error *err)
{
    const rc_log *log = d->job->log;
    const rc_log_train *train = &log->train;
    if (is_all_skipped(train))
        RC_TRY(add_note(
            out, RC_LEVEL_WARNING, "report-without-optimizer-state", train->where,
            "the loss scaler skipped these iterations: memory reports until then hold no optimizer state",
            "wait for the first step that is not skipped", err));
    bool is_compared = d->job->base && d->job->base->n_ooms > 0;
    bool came_farther = d->oom && (is_compared || d->phase == RC_JOB_OPTIMIZER_INIT);
    if (is_short(log) || came_farther)
        RC_TRY(add_note(
            out, RC_LEVEL_NOTE, "progress-is-not-a-pass", train->where,
            "coming this far is not a pass: a setting fits when optimizer state exists and several "
            "steady steps have run",
            "run at least 5 steps", err));
    return RC_OK;
}

static rc_code add_retries(const diag *d, rc_diagnosis *out, rc_error *err)
{
    const rc_log *log = d->job->log;
    const rc_log_event *event = rc_log_find(log, RC_LOG_ALLOC_RETRY);
    event = event ? event : rc_log_find(log, RC_LOG_CACHE_FLUSH);
    rc_where where = event ? event->where : RC_NOWHERE;
    bool has_retries = event != NULL;
    for (size_t i = 0; i < log->n_ranks && !has_retries; i++)
        if (log->ranks[i].alloc_retries > 0) {
            has_retries = true;
            where = log->ranks[i].where;
        }
    if (!has_retries)
        return RC_OK;
    return add_note(
        out, RC_LEVEL_WARNING, "allocator-retries", where,
        "the card was full at some point: torch had to flush its cache and ask again, which costs time",
        "leave a few percent of the card free", err);
}

rc_code diag_findings(const diag *d, rc_diagnosis *out, rc_error *err)
{
    out->findings = (rc_findings){.mem = d->mem};
    for (size_t i = 0; d->check && i < d->check->findings.n; i++) {
        const rc_finding *finding = &d->check->findings.at[i];
        bool is_ours = d->check->rules[i]->layer == RC_LAYER_ADVICE;
        bool is_worth = finding->level != RC_LEVEL_NOTE || is_ours;
        rc_finding said = *finding;
        if (is_proved(d, out, finding))
            said.level = RC_LEVEL_ERROR;
        if (is_worth && !has_finding(&out->findings, finding->rule))
            RC_TRY(rc_findings_add(&out->findings, &said, err));
    }
    RC_TRY(add_refusals(d, out, err));
    if (d->not_applied) {
        const rc_rule_facts *rule = rc_rule_find("recompute-not-applied");
        char id[RC_RULE_ID_ROOM];
        const char *name = "recompute-not-applied";
        if (rule)
            RC_TRY(rc_arena_printf(d->mem, &name, err, "%s", rc_rule_id(rule, id)));
        RC_TRY(add_note(out, RC_LEVEL_WARNING, name, d->job->not_applied_at, d->not_applied,
                        "give it where the resolved configuration takes it from", err));
    }
    RC_TRY(add_adapter_finding(d, out, err));
    RC_TRY(add_progress(d, out, err));
    RC_TRY(add_retries(d, out, err));
    if (d->job->log->is_cut_short)
        RC_TRY(add_note(
            out, RC_LEVEL_WARNING, "log-cut-short", (rc_where){.file = d->job->log->path},
            "the packed log is damaged or ends early; what came before was read", NULL, err));
    return RC_OK;
}
