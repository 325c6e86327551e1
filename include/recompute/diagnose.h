/* diagnose.h — rc_diagnosis: why a job died, at which stage, and what to do next.
 *
 * Made by one decision table, src/defs/diagnoses.def: the first row whose clues (clues.def) all
 * hold is the verdict. Every row says how sure it is and what it rests on. The allocator's hint
 * about fragmentation is never a clue: torch prints it in every message.
 */
#ifndef RECOMPUTE_DIAGNOSE_H
#define RECOMPUTE_DIAGNOSE_H

#include <recompute/check.h>
#include <recompute/config.h>
#include <recompute/finding.h>
#include <recompute/log.h>
#include <recompute/table.h>

/* ORDER verdicts */
typedef enum rc_verdict {
    RC_VERDICT_FRAGMENTATION,
    RC_VERDICT_CAPACITY_ACTIVATIONS,
    RC_VERDICT_CAPACITY_MODEL_STATE,
    RC_VERDICT_CAPACITY_LOGITS,
    RC_VERDICT_CAPACITY_OPTIMIZER_INIT,
    RC_VERDICT_CONFIG_INVALID,
    RC_VERDICT_RECOMPUTE_MISMATCH,
    RC_VERDICT_NON_PYTORCH_MEMORY,
    RC_VERDICT_IMBALANCE,
    RC_VERDICT_NOT_MEMORY,
    RC_VERDICT_INSUFFICIENT_DATA,
    RC_VERDICT_COUNT
} rc_verdict;
RC_API const char *rc_verdict_name(rc_verdict verdict); /* "capacity-logits" */

typedef enum rc_confidence { RC_CONFIDENCE_LOW, RC_CONFIDENCE_MEDIUM, RC_CONFIDENCE_HIGH } rc_confidence;
RC_API const char *rc_confidence_name(rc_confidence confidence);

/* Whose settings to write lines for. ORDER frameworks */
typedef enum rc_framework {
    RC_FRAMEWORK_ANY,
    RC_FRAMEWORK_MEGATRON_LM,
    RC_FRAMEWORK_BRIDGE,
    RC_FRAMEWORK_HF,
    RC_FRAMEWORK_DEEPSPEED,
    RC_FRAMEWORK_VERL
} rc_framework;

/* What a memory snapshot adds; bytes. */
typedef struct rc_snapshot_facts {
    int64_t reserved_bytes, active_bytes, largest_free_block_bytes;
    int64_t n_segments;
    int64_t oom_request_bytes; /* RC_LOG_UNKNOWN: no such event */
    bool is_expandable;
    rc_stage stage;       /* of the frames of the failing request */
    const char *holder;   /* the source line that holds most, or NULL */
    int64_t holder_bytes;
} rc_snapshot_facts;

/* What a person brings. Everything but `log` may be NULL. */
typedef struct rc_job {
    const rc_log *log;
    const rc_log *base; /* the run before the change, for a comparison */
    const rc_config *cfg;
    const rc_input *inputs; /* what `cfg` was made from: proposals are tried on top of them */
    size_t n_inputs;
    const char *settings_path; /* for the lines to paste */
    const rc_snapshot_facts *snapshot;
    rc_framework framework; /* ANY: taken from the log */
    bool has_hf_config;
    const char *not_applied; /* a recompute setting that the resolved configuration lost */
    rc_where not_applied_at;
} rc_job;

typedef struct rc_step {
    const char *name;
    const char *what;
    const char *paste;    /* the line to paste, NULL where there is none */
    const char *cost;
    const char *rests_on;
} rc_step;

typedef struct rc_evidence {
    rc_where where; /* in the log; line 0 where it is no line */
    const char *text;
} rc_evidence;

typedef struct rc_number {
    const char *name; /* with its unit: "requested_gib" */
    double value;
} rc_number;

typedef struct rc_diagnosis {
    rc_verdict verdict;
    rc_stage stage;
    rc_confidence confidence;
    const char *row;    /* of the decision table */
    const char *source; /* what the row rests on */
    const char *why;    /* one line, with the numbers */
    const char *falsify;
    rc_step *steps; /* ranked */
    size_t n_steps;
    rc_evidence *evidence;
    size_t n_evidence;
    const char **ruled_out; /* what it is not, and why */
    size_t n_ruled_out;
    rc_number *numbers;
    size_t n_numbers;
    rc_findings findings; /* of the settings, of the comparison, of progress */
} rc_diagnosis;

/**
 * The diagnosis of a job.
 *
 * takes   job     what there is; borrowed
 * gives   *out    always a verdict: insufficient-data names what to bring
 * errors  RC_E_MEMORY
 */
RC_MUST_CHECK
RC_API rc_code rc_diagnosis_make(const rc_job *job, rc_arena *mem, rc_diagnosis **out,
                                 rc_error *err);
/* Verdict, reason, steps, evidence, what would prove it wrong: for people. */
RC_API void rc_diagnosis_print(const rc_diagnosis *diagnosis, FILE *to);
/* The same as tables: facts at the top, numbers, actions, evidence, findings. */
RC_MUST_CHECK
RC_API rc_code rc_diagnosis_report(const rc_diagnosis *diagnosis, rc_arena *mem,
                                   rc_report *report, rc_error *err);
RC_MUST_CHECK
RC_API rc_code rc_diagnosis_verify(const rc_diagnosis *diagnosis, rc_error *err);
/* The decision table itself, for `recompute list diagnoses`. */
RC_MUST_CHECK
RC_API rc_code rc_diagnosis_table(rc_arena *mem, rc_table **out, rc_error *err);

#endif
