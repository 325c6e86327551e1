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

/* The phase that a verdict names. */
typedef enum phase_of { FROM_FAILURE, FROM_NAN, FROM_ROW } phase_of;

typedef struct phase_rule {
    phase_of from;
    rc_job_phase phase;
} phase_rule;
#define PHASE_FAILED                                                                           \
    {                                                                                          \
        FROM_FAILURE, RC_JOB_UNKNOWN                                                           \
    }
#define PHASE_OF_NAN                                                                           \
    {                                                                                          \
        FROM_NAN, RC_JOB_UNKNOWN                                                               \
    }
#define PHASE_NONE                                                                             \
    {                                                                                          \
        FROM_ROW, RC_JOB_NONE                                                                  \
    }
#define PHASE_CONFIG                                                                           \
    {                                                                                          \
        FROM_ROW, RC_JOB_CONFIG                                                                \
    }
#define PHASE_BACKWARD                                                                         \
    {                                                                                          \
        FROM_ROW, RC_JOB_BACKWARD                                                              \
    }

enum { MOST_CLUES = 5, MOST_STEPS = 12 };
_Static_assert(CLUE_COUNT < UINT8_MAX && STEP_COUNT < UINT8_MAX,
               "a clue is a byte, and so is a step");

/* Clues and steps, each + 1, up to a 0. */
typedef struct row {
    const char *name;
    rc_cause cause;
    rc_confidence confidence;
    phase_rule phase;
    uint8_t steps[MOST_STEPS];
} row;

/* The table three times: all but its clues, the clues that must hold, those that must not. */
#define S(step) STEP_##step + 1,
static const row rows[ROW_COUNT] = {
#define RC_DIAGNOSIS(name, clues, verdict, sure, phase, steps)                                 \
    {#name, RC_CAUSE_##verdict, RC_CONFIDENCE_##sure, PHASE_##phase, {steps 0}},
#include "defs/diagnoses.def"
#undef RC_DIAGNOSIS
};
#undef S
#define ALWAYS
#define C(clue) CLUE_##clue + 1,
#define N(clue)
static const uint8_t needs[ROW_COUNT][MOST_CLUES] = {
#define RC_DIAGNOSIS(name, clues, verdict, sure, phase, steps) {clues 0},
#include "defs/diagnoses.def"
#undef RC_DIAGNOSIS
};
#undef C
#undef N
#define C(clue)
#define N(clue) CLUE_##clue + 1,
static const uint8_t withouts[ROW_COUNT][MOST_CLUES] = {
#define RC_DIAGNOSIS(name, clues, verdict, sure, phase, steps) {clues 0},
#include "defs/diagnoses.def"
#undef RC_DIAGNOSIS
};
#undef C
#undef N

static const struct {
    const char *why, *falsify, *rests_on;
} words[ROW_COUNT] = {
#define RC_DIAGNOSIS_WORDS(name, why, falsify, rests_on)                                       \
    [ROW_##name] = {why, falsify, rests_on},
#include "defs/diagnosis_words.def"
#undef RC_DIAGNOSIS_WORDS
};

static bool row_holds(const diag *d, size_t i)
{
    for (const uint8_t *clue = needs[i]; *clue; clue++)
        if (!d->clues[*clue - 1])
            return false;
    for (const uint8_t *clue = withouts[i]; *clue; clue++)
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

/* Where the job failed, or that nothing did. */
static rc_job_phase phase_of_verdict(const diag *d, const phase_rule *rule)
{
    switch (rule->from) {
    case FROM_FAILURE:
        return d->phase;
    case FROM_NAN:
        return rc_log_find(d->job->log, RC_LOG_NAN_LOSS) ? RC_JOB_FORWARD : RC_JOB_NONE;
    case FROM_ROW:
        break;
    }
    return rule->phase;
}

static rc_code write_verdict(diag *d, rc_diagnosis *out, rc_error *err)
{
    const row *at = &rows[d->row];
    out->cause = at->cause;
    out->confidence = at->confidence;
    out->row = at->name;
    out->source = words[d->row].rests_on;
    out->phase = d->phase = phase_of_verdict(d, &at->phase);
    RC_TRY(diag_fill(d, words[d->row].why, &out->why, err));
    if (!out->why) /* a size the sentence needs is missing from the message */
        out->why = "The files fit this verdict, but a figure it would be told with is missing.";
    RC_TRY(diag_fill(d, words[d->row].falsify, &out->falsify, err));
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
    for (size_t i = 0; i < ROW_COUNT; i++) {
        if (!row_holds(&d, i))
            continue;
        d.row = (diag_row)i;
        RC_TRY(write_verdict(&d, diagnosis, err));
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
static rc_code clue_text(rc_arena *mem, size_t i, const char **out, rc_error *err)
{
    rc_text text = {.mem = mem};
    RC_TRY(add_clues(&text, needs[i], "", err));
    RC_TRY(add_clues(&text, withouts[i], "not: ", err));
    *out = text.n ? text.at : "anything else";
    return RC_OK;
}

static rc_code step_text(rc_arena *mem, const uint8_t *steps, const char **out, rc_error *err)
{
    rc_text text = {.mem = mem};
    RC_TRY(rc_text_add(&text, "", 0, err));
    for (; *steps; steps++)
        RC_TRY(rc_text_printf(&text, err, "%s%s", text.n ? " " : "",
                              diag_step_name((diag_step)(*steps - 1))));
    *out = text.at;
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
    RC_TRY(diag_verify_steps(err));
    for (size_t i = 0; i < ROW_COUNT; i++) {
        const char *when, *steps;
        rc_cell *cells;
        if (!words[i].why)
            return RC_FAIL(err, RC_E_BUG, RC_NOWHERE, "diagnosis_words.def has no row %s",
                           rows[i].name);
        RC_TRY(diag_verify_words(words[i].why, err));
        RC_TRY(diag_verify_words(words[i].falsify, err));
        RC_TRY(clue_text(mem, i, &when, err));
        RC_TRY(step_text(mem, rows[i].steps, &steps, err));
        RC_TRY(rc_table_add_row(*out, &cells, err));
        cells[0] = rc_cell_text(rows[i].name);
        cells[1] = rc_cell_text(when);
        cells[2] = rc_cell_text(rc_cause_name(rows[i].cause));
        cells[3] = rc_cell_text(rc_confidence_name(rows[i].confidence));
        cells[4] = rc_cell_text(steps);
        cells[5] = rc_cell_text(words[i].rests_on);
    }
    return RC_OK;
}
