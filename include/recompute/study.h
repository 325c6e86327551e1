/* study.h — rc_study: the matched comparison of recompute settings.
 *
 * Every row runs the same model on the same data with the same seed and changes one thing: the
 * recompute setting. The control retains everything and runs first and last, so that a machine
 * that changed under the study shows. Repeats are interleaved (all rows, then all rows again), so
 * that a slow minute hits every row alike.
 */
#ifndef RECOMPUTE_STUDY_H
#define RECOMPUTE_STUDY_H

#include <recompute/arena.h>
#include <recompute/config.h>
#include <recompute/error.h>
#include <recompute/table.h>

/* A number measured several times: the middle, and where the middle half lies. */
typedef struct rc_spread {
    double median, low, high; /* low and high are the quartiles; NAN when n is 0 */
    size_t n;
} rc_spread;

/* Sorts `values`. Quartiles are interpolated between neighbours (Hyndman and Fan 1996, type 7). */
RC_API rc_spread rc_spread_of(double *values, size_t n);

typedef enum rc_verdict {
    RC_VERDICT_CONTROL,
    RC_VERDICT_FAILED,     /* did not reach the steady steps */
    RC_VERDICT_OTHER_LOSS, /* computed something else: not comparable */
    RC_VERDICT_NO_EFFECT,  /* same memory, nothing recomputed */
    RC_VERDICT_NO_SAVING,  /* costs time, saves nothing */
    RC_VERDICT_HARMFUL,    /* more memory than the control */
    RC_VERDICT_DOMINATED,  /* another row needs less memory and no more time */
    RC_VERDICT_SAVES,
    RC_VERDICT_COUNT
} rc_verdict;
RC_API const char *rc_verdict_name(rc_verdict verdict); /* "no-effect" */

enum { RC_STUDY_UNKNOWN = -1 };

typedef struct rc_study_row {
    const char *setting; /* "[]", "[core_attn]", "full/block/4" */
    bool is_control;
    bool is_pass;            /* reached the steady steps with finite losses */
    const char *failure;     /* what ended it, and in which stage; NULL when it passed */
    int64_t predicted_bytes; /* peak; RC_STUDY_UNKNOWN for launched trainers */
    int64_t peak_bytes;      /* measured, of the fullest rank */
    int64_t peak_rank;       /* that rank; RC_STUDY_UNKNOWN for one process */
    int64_t replay_flops;    /* recomputed in one step; RC_STUDY_UNKNOWN */
    rc_spread step_seconds;  /* steady steps of all repeats */
    int64_t n_iterations;    /* the fewest that a repeat completed */
    const double *losses;    /* of every step, as far as known */
    size_t n_losses;
    double loss; /* the last of them; NAN unknown */
    /* set by rc_study_judge */
    bool is_same_loss;  /* as the control's at every step both know: bit for bit, unless the two
                           controls differ too */
    double saved_ratio; /* of the control's peak; NAN unknown */
    double time_ratio;  /* to the control's median step; NAN unknown */
    rc_verdict verdict;
    const char *says; /* the verdict in words */
} rc_study_row;

typedef struct rc_study {
    const char *name;   /* of its table in JSON */
    const char *title;  /* for people */
    rc_study_row *rows; /* the first and the last are the control */
    size_t n_rows;
    int64_t n_repeats;
    /* What the control's own runs differ by; smaller differences of a row mean nothing. Loss and
     * peak: 0 for a deterministic trainer, ours among them. */
    double noise_ratio; /* of step times */
    double loss_noise_ratio, peak_noise_ratio;
} rc_study;

/**
 * Compares every row with the control and with each other, and fills what is "set by judge".
 *
 * takes   study  rows measured; the first and last are the control
 * errors  RC_E_RANGE when the control itself failed: then nothing can be compared
 * memory  the verdicts' words, from `mem`
 */
RC_MUST_CHECK
RC_API rc_code rc_study_judge(rc_study *study, rc_arena *mem, rc_error *err);

/* The rows as a table named study->name; `is_brief` leaves out what only programs want. */
RC_MUST_CHECK
RC_API rc_code rc_study_table(const rc_study *study, bool is_brief, rc_arena *mem,
                              rc_table **out, rc_error *err);
/* One row: repeats, noise, whether every prediction was exact. */
RC_MUST_CHECK
RC_API rc_code rc_study_facts(const rc_study *study, rc_arena *mem, rc_table **out,
                              rc_error *err);
/* What a picture of memory against time is drawn from: the rows that passed. */
enum { RC_STUDY_CHART_SETTING, RC_STUDY_CHART_STEP, RC_STUDY_CHART_PEAK };
RC_MUST_CHECK
RC_API rc_code rc_study_chart(const rc_study *study, rc_arena *mem, rc_table **out,
                              rc_error *err);

/* What a running study tells whoever waits for it. */
typedef struct rc_study_progress {
    const char *name, *setting; /* of the study, of the row that runs now */
    size_t n_done, n_runs;      /* runs of all repeats */
    double seconds_left;        /* NAN before the first run ended */
} rc_study_progress;

typedef struct rc_study_watch {
    void (*progress)(void *user, const rc_study_progress *progress); /* NULL: nobody listens */
    bool (*is_stopping)(void *user);                                 /* NULL: never */
    void *user;
} rc_study_watch;

/* --- our own trainer */

/* A model to study when none is given: a row of src/defs/studies.def. */
typedef struct rc_study_model {
    const char *name, *title, *settings;
} rc_study_model;
/* The k-th, or NULL past the last. */
RC_API const rc_study_model *rc_study_model_find(size_t k);

typedef struct rc_study_plan {
    const char *name, *title;
    const rc_input *inputs; /* model, data and everything else but the recompute setting */
    size_t n_inputs;
    const char *const *settings; /* as rc_setting_parse reads them; the control is added */
    size_t n_settings;
    int64_t n_repeats;
    int64_t n_steps;  /* of a run, warm-up included */
    int64_t n_warmup; /* steps not timed */
} rc_study_plan;

/**
 * Trains the model once per setting and repeat, and judges.
 *
 * gives   *out  judged
 * errors  RC_E_INPUT for settings that do not exist; RC_E_STOPPED when the watch said so;
 *         what training can fail with, for the control
 */
RC_MUST_CHECK
RC_API rc_code rc_study_make(const rc_study_plan *plan, const rc_study_watch *watch,
                             rc_arena *mem, rc_study **out, rc_error *err);

/* --- someone's own trainer, launched */

/* How a setting is written into the command line. */
typedef enum rc_launch_style {
    RC_LAUNCH_BRIDGE,     /* model.recompute_granularity=full ... */
    RC_LAUNCH_MEGATRON_LM /* --recompute-granularity full ... */
} rc_launch_style;

typedef struct rc_launch_row {
    const char *setting;   /* name of the row */
    const char *overrides; /* replaces {overrides} in the command */
} rc_launch_row;

typedef struct rc_launch {
    const char *name, *title;
    const char *command;       /* run by `sh -c`; holds {overrides} */
    const rc_launch_row *rows; /* the first is the control; it is run last again */
    size_t n_rows;
    int64_t n_repeats;
    int64_t n_steady;       /* iterations after the second that make a pass */
    double timeout_seconds; /* of one run; 0 never */
    const char *folder;     /* logs, and state.jsonl with every finished run: a study that was
                               interrupted goes on where it stopped */
} rc_launch;

/* The rows of settings as rc_setting_parse reads them, written in a style; the control first. */
RC_MUST_CHECK
RC_API rc_code rc_launch_rows_make(const char *const *settings, size_t n_settings,
                                   rc_launch_style style, rc_arena *mem, rc_launch_row **rows,
                                   size_t *n_rows, rc_error *err);

/**
 * Runs the command once per row and repeat, reads the logs, and judges.
 *
 * A run passes when its log shows the optimizer's first step done, `n_steady` iterations after the
 * second, and no loss that is not finite. What failed instead, and in which stage, comes from the
 * log; the exit status alone is no evidence.
 *
 * errors  RC_E_INPUT when the command has no {overrides}, or the folder holds another study;
 *         RC_E_STOPPED on SIGINT or SIGTERM: the child is stopped, finished runs are kept
 */
RC_MUST_CHECK
RC_API rc_code rc_study_launch(const rc_launch *launch, const rc_study_watch *watch,
                               rc_arena *mem, rc_study **out, rc_error *err);

#endif
