/* evidence.c — what a verdict rests on, line by line, and what was looked at and ruled out. */
#include "diagnose/diag.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MOST_EVIDENCE = 24, MOST_RULED_OUT = 12 };

static rc_code add_evidence(const diag *d, rc_diagnosis *out, rc_where where, const char *text,
                            rc_error *err)
{
    if (out->n_evidence >= MOST_EVIDENCE)
        return RC_OK;
    rc_evidence *row = &out->evidence[out->n_evidence++];
    row->where = where;
    return diag_safe(d->mem, text, 250, &row->text, err);
}

static void add_part(char *text, size_t room, const char *label, int64_t bytes)
{
    char size[64];
    size_t n = strlen(text);
    if (bytes >= 0)
        snprintf(text + n, room - n, "%s%s %s", n ? ", " : "", label,
                 diag_size(bytes, false, size));
}

static rc_code oom_evidence(const diag *d, const rc_oom *oom, rc_diagnosis *out, rc_error *err)
{
    char sizes[512] = "", text[700];
    add_part(sizes, sizeof sizes, "asked", oom->requested_bytes);
    add_part(sizes, sizeof sizes, "capacity", oom->capacity_bytes);
    add_part(sizes, sizeof sizes, "free", oom->free_bytes);
    add_part(sizes, sizeof sizes, "live", oom->allocated_bytes);
    add_part(sizes, sizeof sizes, "idle", oom->idle_bytes);
    add_part(sizes, sizeof sizes, "this process", oom->process_bytes);
    add_part(sizes, sizeof sizes, "others", oom->other_bytes);
    char rank[32] = "";
    if (oom->rank >= 0)
        snprintf(rank, sizeof rank, "rank %d: ", oom->rank);
    snprintf(text, sizeof text, "%s%s out of memory: %s%s", rank, oom->device,
             sizes[0] ? sizes : "no sizes",
             oom->is_process_guessed
                 ? " (the listed process of that size is taken for this job)"
                 : "");
    RC_TRY(add_evidence(d, out, oom->where, text, err));
    if (!oom->trace || !oom->trace[0])
        return RC_OK;
    snprintf(text, sizeof text, "the outermost phase frame is %s: %s", oom->trace,
             rc_job_phase_name(oom->phase));
    return add_evidence(d, out, oom->where, text, err);
}

static rc_code rank_evidence(const diag *d, rc_diagnosis *out, rc_error *err)
{
    const rc_log *log = d->job->log;
    for (size_t i = 0; i < log->n_ranks; i++) {
        const rc_log_rank *rank = &log->ranks[i];
        if (rank->rank != d->worst_rank && rank->rank != d->best_rank)
            continue;
        char allocated[64] = "?", reserved[64] = "?", text[260];
        if (rank->max_allocated_bytes >= 0)
            diag_size(rank->max_allocated_bytes, rank->is_decimal, allocated);
        if (rank->max_reserved_bytes >= 0)
            diag_size(rank->max_reserved_bytes, rank->is_decimal, reserved);
        snprintf(text, sizeof text, "rank %d reports a peak of %s allocated and %s reserved",
                 rank->rank, allocated, reserved);
        RC_TRY(add_evidence(d, out, rank->where, text, err));
    }
    return RC_OK;
}

rc_code diag_evidence(const diag *d, rc_diagnosis *out, rc_error *err)
{
    enum { MOST_EVENTS = 6, MOST_OOMS = 4 };
    const rc_log *log = d->job->log;
    RC_TRY(RC_NEW(d->mem, &out->evidence, MOST_EVIDENCE, err));
    if (d->oom)
        RC_TRY(oom_evidence(d, d->oom, out, err));
    for (size_t i = 0, n = 0; i < log->n_ooms && n < MOST_OOMS; i++)
        if (&log->ooms[i] != d->oom) {
            RC_TRY(oom_evidence(d, &log->ooms[i], out, err));
            n++;
        }
    for (size_t i = 0; i < log->n_refusals && i < MOST_EVENTS; i++)
        RC_TRY(add_evidence(d, out, log->refusals[i].where, log->refusals[i].text, err));
    for (size_t i = 0, n = 0; i < log->n_events && n < MOST_EVENTS; i++) {
        const rc_log_event *event = &log->events[i];
        bool is_refusal =
            log->n_refusals > 0 && event->where.line == log->refusals[0].where.line;
        if (is_refusal)
            continue;
        char text[260];
        snprintf(text, sizeof text, "%s: %.160s", rc_log_kind_meaning(event->kind),
                 event->text);
        RC_TRY(add_evidence(d, out, event->where, text, err));
        n++;
    }
    RC_TRY(rank_evidence(d, out, err));
    if (log->train.n_lines > 0) {
        char text[200];
        snprintf(text, sizeof text, "%" PRId64 " step lines, the last for iteration %" PRId64,
                 log->train.n_lines, log->train.last_iteration);
        RC_TRY(add_evidence(d, out, log->train.where, text, err));
    }
    if (d->job->cfg) {
        const char *text;
        RC_TRY(diag_predict(d->job->cfg, d->mem, &text, err));
        if (text)
            RC_TRY(add_evidence(d, out, RC_NOWHERE, text, err));
    }
    return RC_OK;
}

static rc_code rule_out(const diag *d, rc_diagnosis *out, const char *sentence, rc_error *err)
{
    const char *text;
    if (out->n_ruled_out >= MOST_RULED_OUT)
        return RC_OK;
    RC_TRY(diag_fill(d, sentence, &text, err));
    if (text)
        out->ruled_out[out->n_ruled_out++] = text;
    return RC_OK;
}

rc_code diag_rule_out(const diag *d, rc_diagnosis *out, rc_error *err)
{
    RC_TRY(RC_NEW(d->mem, &out->ruled_out, MOST_RULED_OUT, err));
    if (!d->oom)
        return RC_OK;
    bool is_judged = out->cause != RC_CAUSE_FRAGMENTATION && d->idle >= 0;
    bool is_served = diag_has(d, CLUE_IDLE_SERVES), is_large = diag_has(d, CLUE_IDLE_LARGE);
    bool is_outside = out->cause == RC_CAUSE_NON_PYTORCH_MEMORY || d->outside < 0;
    bool is_early = diag_has(d, CLUE_AT_BUILD) || diag_has(d, CLUE_AT_LOAD) ||
                    diag_has(d, CLUE_AT_OPTIMIZER_INIT);
    const struct {
        bool holds;
        const char *sentence;
    } rows[] = {
        {is_judged && !is_served,
         "not fragmentation: {idle} is idle, and with {free} free that makes "
         "{room}, too little for {request} in any arrangement"},
        {is_judged && is_served && !is_large,
         "not fragmentation: {idle} is idle, {idle_percent} % of the "
         "card; 1 to 4 % is ordinary slack"},
        {d->capacity > 0 && d->reserved > d->capacity,
         "torch counts {reserved}, more than the card's {capacity}: part of it is not on the card "
         "(Windows spills to the host, an engine's pool sleeps), so its idle figure proves nothing"},
        {d->oom->has_hint,
         "the message's hint about fragmentation is no evidence: torch prints it "
         "every time"},
        {!is_outside, "not memory outside torch: {outside} is, and 0.5 to 4 GiB is normal"},
        {is_early,
         "not activations: recompute and a smaller batch change nothing in this phase"},
        {diag_has(d, CLUE_TENSOR_LOGITS),
         "not the layers' activations: recompute of layers does not "
         "touch the logits"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].holds)
            RC_TRY(rule_out(d, out, rows[i].sentence, err));
    return RC_OK;
}
