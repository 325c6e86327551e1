/* diag.h — what the parts of the diagnosis share (src/diagnose/ only).
 *
 * One struct holds everything a clue asks or a sentence names. Unknown sizes and counts are
 * RC_LOG_UNKNOWN, unknown reals NAN, unknown texts NULL.
 */
#ifndef RC_DIAGNOSE_DIAG_H
#define RC_DIAGNOSE_DIAG_H

#include <recompute/diagnose.h>

typedef enum diag_clue {
#define RC_CLUE(name, meaning) CLUE_##name,
#include "defs/clues.def"
#undef RC_CLUE
    CLUE_COUNT
} diag_clue;

typedef enum diag_step {
#define RC_STEP(step, what, cost, rests_on) STEP_##step,
#include "defs/steps.def"
#undef RC_STEP
    STEP_COUNT
} diag_step;

typedef enum diag_row {
#define RC_DIAGNOSIS(name, clues, verdict, sure, phase, steps) ROW_##name,
#include "defs/diagnoses.def"
#undef RC_DIAGNOSIS
    ROW_COUNT
} diag_row;

/* What holds a field of each kind (diag_fields.def). */
#define DIAG_TYPE_SIZE int64_t
#define DIAG_TYPE_REPORTED_SIZE int64_t
#define DIAG_TYPE_COUNT int64_t
#define DIAG_TYPE_EXIT int64_t
#define DIAG_TYPE_REAL double
#define DIAG_TYPE_TEXT const char *

typedef enum diag_kind {
    DIAG_SIZE,
    DIAG_REPORTED_SIZE,
    DIAG_COUNT,
    DIAG_EXIT,
    DIAG_REAL,
    DIAG_TEXT
} diag_kind;

/* When a field is a number of the report. */
typedef enum diag_when {
    DIAG_NONE,
    DIAG_ALWAYS,
    DIAG_OOM,
    DIAG_RANKS,
    DIAG_EVENTS,
    DIAG_COMPARED
} diag_when;

/* A row of diag_fields.def. */
typedef struct diag_field {
    const char *name;
    diag_kind kind;
    diag_when when;
    /* of the report, "" where it has none */
    const char *number;
    /* into diag */
    size_t offset;
} diag_field;

typedef struct diag {
    const rc_job *job;
    rc_arena *mem;
    /* the message that decides, or NULL */
    const rc_oom *oom;
    /* the event that decides where there is no such message */
    const rc_log_event *event;
    /* of the settings, or NULL */
    const rc_check *check;
    /* its first error, or NULL */
    const rc_finding *broken;
    /* its first error that a recipe's values could still correct */
    const rc_finding *open;
    rc_trainer framework;
    bool clues[CLUE_COUNT];
    /* the row that decides, once it is found */
    diag_row row;
    rc_job_phase phase;
    unsigned frames;
    /* the log speaks in units of 1e9 */
    bool is_decimal;
    bool is_worst_first_stage, is_worst_last_stage, is_same_stage;

#define RC_DIAG_FIELD(name, kind, when, number) DIAG_TYPE_##kind name;
#include "defs/diag_fields.def"
#undef RC_DIAG_FIELD
} diag;

/* fields.c: the rows of diag_fields.def; NULL past the last one. */
const diag_field *diag_field_at(size_t i);
/* The field of that name, n bytes long; NULL when there is none. */
const diag_field *diag_field_find(const char *name, size_t n);
/* Makes every field unknown. */
void diag_forget(diag *d);
/* The field as a sentence tells it, in `buf` or borrowed; NULL when it is not known. */
const char *diag_show(const diag *d, const diag_field *field, char buf[64]);
/* The field as a number of the report; NAN when it is not known or none. */
double diag_number(const diag *d, const diag_field *field);
/* "1.25 GiB"; with `is_decimal` "1.34 GB (1.25 GiB)". */
const char *diag_size(int64_t bytes, bool is_decimal, char buf[64]);
/* In GiB; NAN when unknown. */
double diag_gib(int64_t bytes);
/* facts.c: fills the struct from the job. */
RC_MUST_CHECK
rc_code diag_collect(diag *d, rc_error *err);
/* growth.c: the rank whose memory grew most, if any grew as a leak does. */
void diag_collect_growth(diag *d);
/* clues.c: which clues hold. */
void diag_clues(const diag *d, bool holds[CLUE_COUNT]);
const char *diag_clue_name(diag_clue clue);
const char *diag_clue_meaning(diag_clue clue);
/* tensor.c: names the request where a tensor of this model has its size. */
RC_MUST_CHECK
rc_code diag_name_tensor(diag *d, rc_error *err);
/* words.c: fills {names} and [optional parts]; *out NULL when a name outside brackets is unknown. */
RC_MUST_CHECK
rc_code diag_fill(const diag *d, const char *sentence, const char **out, rc_error *err);
/* Every name in a sentence exists. errors RC_E_BUG */
RC_MUST_CHECK
rc_code diag_verify_words(const char *sentence, rc_error *err);
/* A copy that is safe to print, cut at `most` bytes. */
RC_MUST_CHECK
rc_code diag_safe(rc_arena *mem, const char *text, size_t most, const char **out,
                  rc_error *err);
/* steps.c: of `steps`, which are steps + 1 up to a 0, those that can act here. */
RC_MUST_CHECK
rc_code diag_steps(const diag *d, const uint8_t *steps, rc_diagnosis *out, rc_error *err);
const char *diag_step_name(diag_step step);
/* Every name in the words and lines of all steps exists. errors RC_E_BUG */
RC_MUST_CHECK
rc_code diag_verify_steps(rc_error *err);
/* settings.c: what the framework's rules say; whether they still hold with overrides added. */
RC_MUST_CHECK
rc_code diag_check_settings(diag *d, rc_error *err);
/* "full", "selective" or "", Megatron-LM's shorthand --recompute-activations counted. */
const char *diag_granularity(const rc_config *cfg);
RC_MUST_CHECK
rc_code diag_accepts(const diag *d, const char *overrides, bool *is_accepted, rc_error *err);
/* predict.c: what our own estimate says about this job, a sentence; *out NULL where it has none. */
RC_MUST_CHECK
rc_code diag_predict(const rc_config *cfg, rc_arena *mem, const char **out, rc_error *err);
/* evidence.c, numbers.c, findings.c */
RC_MUST_CHECK
rc_code diag_evidence(const diag *d, rc_diagnosis *out, rc_error *err);
RC_MUST_CHECK
rc_code diag_rule_out(const diag *d, rc_diagnosis *out, rc_error *err);
RC_MUST_CHECK
rc_code diag_numbers(const diag *d, rc_diagnosis *out, rc_error *err);
RC_MUST_CHECK
rc_code diag_findings(const diag *d, rc_diagnosis *out, rc_error *err);

static inline bool diag_has(const diag *d, diag_clue clue)
{
    return d->clues[clue];
}

#endif
