/* diagnose.h — rc_diagnosis: why a job died, in which phase, and what to do next.
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

RC_EXTERN_C_BEGIN

/* ORDER causes */
typedef enum rc_cause {
    RC_CAUSE_FRAGMENTATION,
    RC_CAUSE_CAPACITY_ACTIVATIONS,
    RC_CAUSE_CAPACITY_MODEL_STATE,
    RC_CAUSE_CAPACITY_LOGITS,
    RC_CAUSE_CAPACITY_OPTIMIZER_INIT,
    RC_CAUSE_CONFIG_INVALID,
    RC_CAUSE_RECOMPUTE_MISMATCH,
    RC_CAUSE_NON_PYTORCH_MEMORY,
    RC_CAUSE_IMBALANCE,
    RC_CAUSE_NOT_MEMORY,
    RC_CAUSE_INSUFFICIENT_DATA,
    RC_CAUSE_COUNT
} rc_cause;

/* "capacity-logits" */
RC_API const char *rc_cause_name(rc_cause cause);

typedef enum rc_confidence {
    RC_CONFIDENCE_LOW,
    RC_CONFIDENCE_MEDIUM,
    RC_CONFIDENCE_HIGH
} rc_confidence;

/* "low", "medium", "high" */
RC_API const char *rc_confidence_name(rc_confidence confidence);

/* Whose settings to write lines for. ORDER trainers */
typedef enum rc_trainer {
    RC_TRAINER_ANY,
    RC_TRAINER_MEGATRON_LM,
    RC_TRAINER_BRIDGE,
    RC_TRAINER_HF,
    RC_TRAINER_DEEPSPEED,
    RC_TRAINER_VERL
} rc_trainer;

/* What a memory snapshot adds; bytes. */
typedef struct rc_snapshot_facts {
    int64_t reserved_bytes, active_bytes, largest_free_block_bytes;
    int64_t n_segments;
    /* RC_LOG_UNKNOWN: no such event */
    int64_t oom_request_bytes;
    /* free at the driver then; RC_LOG_UNKNOWN: no such event */
    int64_t oom_free_bytes;
    bool is_expandable;
    /* of the frames of the failing request */
    rc_job_phase phase;
} rc_snapshot_facts;

/* Reads a snapshot for these facts alone.
 *
 * takes   path  as rc_snapshot_read
 * gives   *out  sizes are sums over devices
 * errors  as rc_snapshot_read */
RC_MUST_CHECK
RC_API rc_code rc_snapshot_facts_read(const char *path, rc_arena *mem, rc_snapshot_facts **out,
                                      rc_error *err);

/* What a person brings. Everything but `log` may be NULL. */
typedef struct rc_job {
    const rc_log *log;
    /* the run before the change, for a comparison */
    const rc_log *base;
    const rc_config *cfg;
    /* what `cfg` was made from: proposals are tried on top of them */
    const rc_input *inputs;
    size_t n_inputs;
    /* for the lines to paste */
    const char *settings_path;
    const rc_snapshot_facts *snapshot;
    /* ANY: taken from the log */
    rc_trainer framework;
    bool has_hf_config;
    /* a recompute setting that the resolved configuration lost */
    const char *not_applied;
    rc_where not_applied_at;
} rc_job;

typedef struct rc_step {
    const char *name;
    const char *what;
    /* the line to paste, NULL where there is none */
    const char *paste;
    const char *cost;
    const char *rests_on;
} rc_step;

typedef struct rc_evidence {
    /* in the log; line 0 where it is no line */
    rc_where where;
    const char *text;
} rc_evidence;

typedef struct rc_number {
    /* with its unit: "requested_gib" */
    const char *name;
    double value;
} rc_number;

typedef struct rc_diagnosis {
    rc_cause cause;
    rc_job_phase phase;
    rc_confidence confidence;
    /* of the decision table */
    const char *row;
    /* what the row rests on */
    const char *source;
    /* one line, with the numbers */
    const char *why;
    const char *falsify;
    /* ranked */
    rc_step *steps;
    size_t n_steps;
    rc_evidence *evidence;
    size_t n_evidence;
    /* what it is not, and why */
    const char **ruled_out;
    size_t n_ruled_out;
    rc_number *numbers;
    size_t n_numbers;
    /* of the settings, of the comparison, of progress */
    rc_findings findings;
} rc_diagnosis;

/**
 * The diagnosis of a job.
 *
 * takes   job   what there is; must outlive the diagnosis
 * gives   *out  always a verdict: insufficient-data names what to bring
 * errors  RC_E_MEMORY
 */
RC_MUST_CHECK
RC_API rc_code rc_diagnosis_make(const rc_job *job, rc_arena *mem, rc_diagnosis **out,
                                 rc_error *err);
/* Verdict, reason, steps, evidence, what would prove it wrong: for people. */
RC_API void rc_diagnosis_print(const rc_diagnosis *diagnosis, FILE *to);

/* The same for programs.
 *
 * gives   report  tables added: facts at the top, numbers, actions, evidence, findings
 * errors  RC_E_MEMORY */
RC_MUST_CHECK
RC_API rc_code rc_diagnosis_report(const rc_diagnosis *diagnosis, rc_arena *mem,
                                   rc_report *report, rc_error *err);

/* Its invariants: a reason, a counter-test, a source, and at least one step that says something.
 * errors  RC_E_BUG naming the row */
RC_MUST_CHECK
RC_API rc_code rc_diagnosis_verify(const rc_diagnosis *diagnosis, rc_error *err);

/* The decision table itself, for `recompute list diagnoses`.
 *
 * gives   *out  a row per diagnosis
 * errors  RC_E_BUG when a row names a step or a word that does not exist; RC_E_MEMORY */
RC_MUST_CHECK
RC_API rc_code rc_diagnosis_table(rc_arena *mem, rc_table **out, rc_error *err);

RC_EXTERN_C_END

#endif
