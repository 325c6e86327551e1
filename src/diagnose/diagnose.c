/* diagnose.c — walks the decision table and writes the verdict.
 *
 * takes  the job: log, settings, snapshot, the run before
 * gives  rc_diagnosis: the first row of diagnoses.def whose clues all hold, told with this job's
 *        numbers
 * next   cli/cmd_diagnose.c prints it
 */
#include "diagnose/diag.h"

#include "base/text.h"

#include <string.h>

typedef struct row {
    const char *name;
    rc_cause cause;
    rc_confidence confidence;
    const char *steps, *source;
    const char *why, *falsify;
    const uint8_t *needs, *without; /* clues + 1, up to a 0 */
} row;

/* The same table three times: its words, the clues that must hold, the clues that must not. */
#define ALWAYS
enum { MOST_CLUES = 5 };
_Static_assert(CLUE_COUNT < UINT8_MAX, "a clue is a byte");
#define C(clue) CLUE_##clue + 1,
#define N(clue)
static const uint8_t needs[][MOST_CLUES] = {
#define RC_DIAGNOSIS(name, clues, verdict, sure, steps, source) {clues 0},
#include "defs/diagnoses.def"
#undef RC_DIAGNOSIS
};
#undef C
#undef N
#define C(clue)
#define N(clue) CLUE_##clue + 1,
static const uint8_t withouts[][MOST_CLUES] = {
#define RC_DIAGNOSIS(name, clues, verdict, sure, steps, source) {clues 0},
#include "defs/diagnoses.def"
#undef RC_DIAGNOSIS
};
#undef C
#undef N
static const row rows[] = {
#define RC_DIAGNOSIS(name, clues, verdict, sure, steps, source)                                \
    {#name, RC_CAUSE_##verdict, RC_CONFIDENCE_##sure, steps, source, NULL, NULL, NULL, NULL},
#include "defs/diagnoses.def"
#undef RC_DIAGNOSIS
};
static const struct {
    const char *name, *why, *falsify;
} sentences[] = {
#define RC_DIAGNOSIS_WORDS(name, why, falsify) {#name, why, falsify},
#include "defs/diagnosis_words.def"
#undef RC_DIAGNOSIS_WORDS
};
enum { N_ROWS = sizeof rows / sizeof *rows };
_Static_assert(N_ROWS == sizeof sentences / sizeof *sentences,
               "ORDER diagnoses: every row of diagnoses.def has its sentences");

static row row_at(size_t i)
{
    row at = rows[i];
    at.needs = needs[i];
    at.without = withouts[i];
    at.why = sentences[i].why;
    at.falsify = sentences[i].falsify;
    return at;
}

static bool row_holds(const diag *d, const row *at)
{
    for (const uint8_t *clue = at->needs; *clue; clue++)
        if (!d->clues[*clue - 1])
            return false;
    for (const uint8_t *clue = at->without; *clue; clue++)
        if (d->clues[*clue - 1])
            return false;
    return true;
}

const char *rc_cause_name(rc_cause cause)
{
    /* ORDER causes */
    static const char *const names[RC_CAUSE_COUNT] = {
        "fragmentation",      "capacity-activations",    "capacity-model-state",
        "capacity-logits",    "capacity-optimizer-init", "config-invalid",
        "recompute-mismatch", "non-pytorch-memory",      "imbalance",
        "not-memory",         "insufficient-data"};
    return (size_t)cause < RC_CAUSE_COUNT ? names[cause] : "";
}

const char *rc_confidence_name(rc_confidence confidence)
{
    static const char *const names[] = {"low", "medium", "high"};
    return names[confidence];
}

/* The stage of a verdict: where it failed, or that nothing did. */
static rc_stage stage_of(const diag *d, const row *at)
{
    static const char *const calm[] = {
        "zero_grad_plain", "settings_fine",  "base_failed", "compared", "compared_core_attn",
        "compared_steps",  "nothing_failed", "nan",         "growing"};
    if (strncmp(at->name, "zero_grad", 9) == 0 && at->cause == RC_CAUSE_RECOMPUTE_MISMATCH)
        return RC_STAGE_BACKWARD;
    if (strcmp(at->name, "nan") == 0 && rc_log_find(d->job->log, RC_LOG_NAN_LOSS))
        return RC_STAGE_FORWARD;
    for (size_t i = 0; i < sizeof calm / sizeof *calm; i++)
        if (strcmp(at->name, calm[i]) == 0)
            return RC_STAGE_NONE;
    if (at->cause == RC_CAUSE_IMBALANCE && !d->oom)
        return RC_STAGE_NONE;
    bool is_settings = strcmp(at->name, "invalid") == 0 ||
                       strcmp(at->name, "invalid_open") == 0 ||
                       strcmp(at->name, "not_applied") == 0;
    return is_settings ? RC_STAGE_CONFIG : d->stage;
}

static rc_code write_verdict(diag *d, const row *at, rc_diagnosis *out, rc_error *err)
{
    out->cause = at->cause;
    out->confidence = at->confidence;
    out->row = at->name;
    out->source = at->source;
    out->stage = d->stage = stage_of(d, at);
    RC_TRY(diag_fill(d, at->why, &out->why, err));
    if (!out->why) /* a size the sentence needs is missing from the message */
        out->why = "The files fit this verdict, but a figure it would be told with is missing.";
    RC_TRY(diag_fill(d, at->falsify, &out->falsify, err));
    RC_TRY(diag_steps(d, at->steps, out, err));
    RC_TRY(diag_evidence(d, out, err));
    RC_TRY(diag_rule_out(d, out, err));
    RC_TRY(diag_numbers(d, out, err));
    return diag_findings(d, out, err);
}

rc_code rc_diagnosis_make(const rc_job *job, rc_arena *mem, rc_diagnosis **out, rc_error *err)
{
    diag d = {.job = job, .mem = mem};
    rc_diagnosis *diagnosis;
    RC_TRY(RC_NEW(mem, &diagnosis, 1, err));
    RC_TRY(diag_collect(&d, err));
    RC_TRY(diag_name_tensor(&d, err));
    RC_TRY(diag_check_settings(&d, err));
    diag_clues(&d, d.clues);
    for (size_t i = 0; i < N_ROWS; i++) {
        row at = row_at(i);
        if (!row_holds(&d, &at))
            continue;
        RC_TRY(write_verdict(&d, &at, diagnosis, err));
        *out = diagnosis;
        return RC_OK;
    }
    return RC_FAIL(err, RC_E_BUG, RC_NOWHERE, "the decision table has no last row");
}

rc_code rc_diagnosis_verify(const rc_diagnosis *diagnosis, rc_error *err)
{
    bool is_whole = diagnosis->row && diagnosis->why && diagnosis->falsify && diagnosis->source;
    if (!is_whole || diagnosis->n_steps == 0)
        return RC_FAIL(err, RC_E_BUG, RC_NOWHERE,
                       "row %s has no reason, no counter-test or no step",
                       diagnosis->row ? diagnosis->row : "?");
    for (size_t i = 0; i < diagnosis->n_steps; i++)
        if (!diagnosis->steps[i].what)
            return RC_FAIL(err, RC_E_BUG, RC_NOWHERE, "step %s says nothing",
                           diagnosis->steps[i].name);
    return RC_OK;
}

static rc_code add_clues(rc_text *text, const uint8_t *clues, const char *before, rc_error *err)
{
    for (; *clues; clues++)
        RC_TRY(rc_text_printf(text, err, "%s%s%s", text->n ? "; " : "", before,
                              diag_clue_meaning((diag_clue)(*clues - 1))));
    return RC_OK;
}

/* What a row needs, joined. */
static rc_code clue_text(rc_arena *mem, const row *at, const char **out, rc_error *err)
{
    rc_text text = {.mem = mem};
    RC_TRY(add_clues(&text, at->needs, "", err));
    RC_TRY(add_clues(&text, at->without, "not: ", err));
    *out = text.n ? text.at : "anything else";
    return RC_OK;
}

rc_code rc_diagnosis_table(rc_arena *mem, rc_table **out, rc_error *err)
{
    static const rc_column columns[] = {
        {"row", NULL, RC_UNIT_TEXT},       {"when", NULL, RC_UNIT_TEXT},
        {"diagnosis", NULL, RC_UNIT_TEXT}, {"confidence", NULL, RC_UNIT_TEXT},
        {"next", NULL, RC_UNIT_TEXT},      {"rests_on", NULL, RC_UNIT_TEXT}};
    RC_TRY(rc_table_make(mem, "diagnoses", NULL, columns, sizeof columns / sizeof *columns, out,
                         err));
    for (size_t i = 0; i < N_ROWS; i++) {
        row at = row_at(i);
        const char *when;
        rc_cell *cells;
        if (strcmp(at.name, sentences[i].name) != 0)
            return RC_FAIL(err, RC_E_BUG, RC_NOWHERE,
                           "ORDER diagnoses: row %s has the words of %s", at.name,
                           sentences[i].name);
        RC_TRY(diag_verify_steps(at.steps, err));
        RC_TRY(diag_verify_words(at.why, err));
        RC_TRY(diag_verify_words(at.falsify, err));
        RC_TRY(clue_text(mem, &at, &when, err));
        RC_TRY(rc_table_add_row(*out, &cells, err));
        cells[0] = rc_cell_text(at.name);
        cells[1] = rc_cell_text(when);
        cells[2] = rc_cell_text(rc_cause_name(at.cause));
        cells[3] = rc_cell_text(rc_confidence_name(at.confidence));
        cells[4] = rc_cell_text(at.steps);
        cells[5] = rc_cell_text(at.source);
    }
    return RC_OK;
}
