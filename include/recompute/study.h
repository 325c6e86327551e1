/* study.h — rc_study: the matched comparison of recompute settings.
 *
 * Every row runs the same model on the same data with the same seed and changes one thing: the
 * recompute setting. A study goes in rounds: the control, which retains everything, then every
 * row in an order that changes from round to round, then the control again. Times are compared
 * with the control of the same round, so that what slows the machine for a minute slows both
 * sides, and rounds go on until the intervals of the ratios are narrow or the time is up.
 */
#ifndef RECOMPUTE_STUDY_H
#define RECOMPUTE_STUDY_H

#include <recompute/arena.h>
#include <recompute/config.h>
#include <recompute/error.h>
#include <recompute/table.h>

RC_EXTERN_C_BEGIN

/* A number measured several times: the middle, and where the middle half lies. */
typedef struct rc_spread {
    /* low and high are the quartiles; NAN when n is 0 */
    double median, low, high;
    size_t n;
} rc_spread;

/* Sorts `values`; NULL only where n is 0.
 * source  quartiles lie between neighbours: Hyndman and Fan 1996, type 7 */
RC_API rc_spread rc_spread_of(double *values, size_t n);

/* The median of a population from n values that were measured: at RC_STUDY_CONFIDENCE it lies
 * from `low` to `high`, however the values are spread. */
typedef struct rc_interval {
    /* the median of the values; NAN when n is 0 */
    double center;
    /* NAN when n is less than RC_INTERVAL_LEAST */
    double low, high;
    size_t n;
} rc_interval;

#define RC_STUDY_CONFIDENCE 0.95
enum { RC_INTERVAL_LEAST = 6 };

/**
 * Sorts `values` (NULL only where n is 0); the interval goes from the k-th smallest to the k-th largest.
 *
 * source  the sign test's interval: the median lies outside with probability 2 * P(B < k), B
 *         binomial (n, 1/2) (Conover 1999, "Practical Nonparametric Statistics", section 3.2).
 *         k is the largest that leaves 97.5 %, or 96.9 % of six values: a study looks after
 *         every round and stops when the interval is narrow, which costs up to two in a hundred
 *         of it (tests/unit/test_study_noise.c).
 */
RC_API rc_interval rc_interval_of(double *values, size_t n);

/* What a time is read from. The processor's leaves out the time that a thread waits for a core,
 * and adds up over threads: a step that keeps two cores busy counts twice. */
typedef enum rc_study_clock { RC_CLOCK_WALL, RC_CLOCK_CPU, RC_CLOCK_COUNT } rc_study_clock;

/* What a row's run in one round measured. */
typedef struct rc_study_sample {
    /* of a steady step; NAN: not run, or unknown */
    double seconds[RC_CLOCK_COUNT];
    /* when in its round: 0 the first control, 1 the last */
    double at;
} rc_study_sample;

typedef enum rc_verdict {
    RC_VERDICT_CONTROL,
    RC_VERDICT_FAILED,     /* did not reach the steady steps */
    RC_VERDICT_OTHER_LOSS, /* computed something else: not comparable */
    RC_VERDICT_NO_EFFECT,  /* same memory, nothing recomputed */
    RC_VERDICT_NO_SAVING,  /* costs time, saves nothing */
    RC_VERDICT_HARMFUL,    /* more memory than the control */
    RC_VERDICT_DOMINATED,  /* another row needs no more memory and clearly less time */
    RC_VERDICT_SAVES,
    RC_VERDICT_COUNT
} rc_verdict;

/* "no-effect" */
RC_API const char *rc_verdict_name(rc_verdict verdict);

enum { RC_STUDY_UNKNOWN = -1, RC_STUDY_MAX_ROUNDS = 1000 };

typedef struct rc_study_row {
    /* "[]", "[core_attn]", "full/block/4" */
    const char *setting;
    bool is_control;
    /* reached the steady steps with finite losses */
    bool is_pass;
    /* what ended it, and in which stage; NULL when it passed */
    const char *failure;
    /* peak; RC_STUDY_UNKNOWN for launched trainers */
    int64_t predicted_bytes;
    /* measured, of the fullest rank */
    int64_t peak_bytes;
    /* that rank; RC_STUDY_UNKNOWN for one process */
    int64_t peak_rank;
    /* recomputed in one step; RC_STUDY_UNKNOWN */
    int64_t replay_flops;
    /* [n_rounds of the study] */
    rc_study_sample *rounds;
    /* the fewest that a run completed */
    int64_t n_iterations;
    /* of every step, as far as known */
    const double *losses;
    size_t n_losses;
    /* the last of them; NAN unknown */
    double loss;

    /* set by rc_study_judge */

    /* as the control's at every step both know: bit for bit, unless the two controls differ
     * too */
    bool is_same_loss;
    /* of the control's peak; NAN unknown */
    double saved_ratio;
    /* over the rounds */
    rc_spread step_seconds[RC_CLOCK_COUNT];
    /* Time to that of the same round's nearer control. The first control's is empty, the last
     * control's is to the first: 1, unless time passes differently within a round. */
    rc_interval ratio[RC_CLOCK_COUNT];
    rc_verdict verdict;
    /* the verdict in words */
    const char *says;
} rc_study_row;

/* What else the machine did while a study ran; seconds of cores, NAN where it does not tell. */
typedef struct rc_study_load {
    /* that passed */
    double seconds;
    /* of the machine */
    double n_cores;
    /* used by the study */
    double own;
    /* used by other programs */
    double other;
    /* threads of the study were ready and had no core */
    double waited;
    /* taken by the host of a virtual machine */
    double stolen;
    /* the study was held back by a container's limit */
    double throttled;
} rc_study_load;

/* Why there was no further round. */
typedef enum rc_study_end {
    RC_STUDY_END_ROUNDS, /* no more were asked for */
    RC_STUDY_END_NARROW, /* every interval was as narrow as was asked for */
    RC_STUDY_END_LIMIT,  /* the time was up */
    RC_STUDY_END_COUNT
} rc_study_end;

/* "rounds" */
RC_API const char *rc_study_end_name(rc_study_end end);

/* How long a study goes on. */
typedef struct rc_study_rules {
    /* rounds that are made in any case */
    int64_t n_least;
    /* further ones are made for rows whose interval is wider than this to each side */
    double target_ratio;
    /* no further one begins that would pass this; 0: none is made */
    double limit_seconds;
} rc_study_rules;

typedef struct rc_study {
    /* of its table in JSON */
    const char *name;
    /* for people */
    const char *title;
    /* the first and the last are the control */
    rc_study_row *rows;
    size_t n_rows;
    size_t n_rounds, n_rounds_room;
    rc_study_rules rules;
    rc_study_end end;
    rc_study_load load;
    /* The most that a run took beside its account (train.h); 0 where that is not counted. */
    int64_t beside_bytes;
    /* Processor time stands for the work of a step: it is known for steps alone, and no thread
     * burns it while waiting. Else it is shown and decides nothing. */
    bool is_cpu_fair;

    /* set by rc_study_judge */

    /* the machine, with other things */
    bool is_busy;
    /* whose intervals decide */
    rc_study_clock clock;
    /* in words: "quiet", "busy: ..." */
    const char *machine;
    /* What the wall times of the control's own runs differ by; for information. */
    double noise_ratio;
    /* What their losses and peaks differ by: 0 for a deterministic trainer, ours among them. Smaller
     * differences of a row mean nothing. */
    double loss_noise_ratio, peak_noise_ratio;
} rc_study;

/* A further round, in which nothing is measured yet.
 * errors  RC_E_MEMORY */
RC_MUST_CHECK
RC_API rc_code rc_study_add_round(rc_study *study, rc_arena *mem, rc_error *err);

/**
 * The rows of the next round in the order of their runs: control, rows, control; *n is 0 when
 * there is no next round, and study->end then says why.
 *
 * takes   seconds  that the study took so far
 * gives   order    [n_rows]; rows that failed, and after n_least rounds those whose interval is
 *                  narrow, are left out. The order is a function of the round's number:
 *                  shuffled, and every other round is the one before it backwards, so that a
 *                  drift favours no row
 *         *n       how many of `order` are set
 * errors  RC_E_MEMORY
 */
RC_MUST_CHECK
RC_API rc_code rc_study_next_round(rc_study *study, double seconds, rc_arena *tmp,
                                   size_t *order, size_t *n, rc_error *err);

/**
 * Compares every row with the control and with each other, and fills what is "set by judge".
 *
 * A time is compared by wall time. Where that is disturbed (the machine was busy, or its
 * intervals are wider than the target) and processor time is fair and its intervals are
 * narrower, by processor time.
 *
 * takes   study  rows measured; the first and last are the control
 * errors  RC_E_RANGE when the control itself failed: then nothing can be compared
 * memory  the verdicts' words, from `mem`
 */
RC_MUST_CHECK
RC_API rc_code rc_study_judge(rc_study *study, rc_arena *mem, rc_error *err);

/* The rows of a judged study.
 *
 * takes   is_brief  leaves out what only programs want
 * gives   *out      named study->name
 * errors  RC_E_MEMORY */
RC_MUST_CHECK
RC_API rc_code rc_study_table(const rc_study *study, bool is_brief, rc_arena *mem,
                              rc_table **out, rc_error *err);

/* What holds for the whole study.
 *
 * takes   is_brief  as rc_study_table
 * gives   *out      one row: rounds, confidence, the machine, noise, whether every prediction was exact
 * errors  RC_E_MEMORY */
RC_MUST_CHECK
RC_API rc_code rc_study_facts(const rc_study *study, bool is_brief, rc_arena *mem,
                              rc_table **out, rc_error *err);
enum { RC_STUDY_CHART_SETTING, RC_STUDY_CHART_STEP, RC_STUDY_CHART_PEAK };

/* What a picture of memory against time is drawn from.
 *
 * gives   *out  a row per row that passed and was measured; columns as above
 * errors  RC_E_MEMORY */
RC_MUST_CHECK
RC_API rc_code rc_study_chart(const rc_study *study, rc_arena *mem, rc_table **out,
                              rc_error *err);

/* What a running study tells while it runs. */
typedef struct rc_study_progress {
    /* of the study, of the row that runs now */
    const char *name, *setting;
    /* runs that have ended, and runs of the rounds that are made in any case */
    size_t n_done, n_runs;
    /* NAN before the first run ended */
    double seconds_left;
} rc_study_progress;

typedef struct rc_study_watch {
    /* NULL: no progress is told */
    void (*progress)(void *user, const rc_study_progress *progress);
    /* asked between steps; NULL: never stops */
    bool (*is_stopping)(void *user);
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
    /* model, data and everything else but the recompute setting */
    const rc_input *inputs;
    size_t n_inputs;
    /* as rc_setting_parse reads them; the control is added */
    const char *const *settings;
    size_t n_settings;
    rc_study_rules rules;
    /* of a run, warm-up included */
    int64_t n_steps;
    /* steps not timed */
    int64_t n_warmup;
    /* idle threads burn processor time, which then measures no work */
    bool is_spinning;
} rc_study_plan;

/**
 * Trains the model once per setting and round, and judges.
 *
 * takes   plan   borrowed
 *         watch  may be NULL
 * gives   *out   judged
 * errors  RC_E_INPUT for settings that do not exist; RC_E_STOPPED when the watch asks for it;
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
    /* name of the row */
    const char *setting;
    /* replaces {overrides} in the command */
    const char *overrides;
} rc_launch_row;

typedef struct rc_launch {
    const char *name, *title;
    /* run by `sh -c`; holds {overrides} */
    const char *command;
    /* the first is the control; it is run last again */
    const rc_launch_row *rows;
    size_t n_rows;
    rc_study_rules rules;
    /* iterations after the second that make a pass */
    int64_t n_steady;
    /* of one run; 0 never */
    double timeout_seconds;
    /* logs, and state.jsonl with every finished run: a study that was interrupted goes on where
     * it stopped */
    const char *folder;
} rc_launch;

/* The rows of a launched study.
 *
 * takes   settings  as rc_setting_parse reads them; borrowed as long as the rows live. The control "[]"
 *                   is added
 *         style     whose command line the settings are written for
 * gives   *rows     [*n_rows], the control first
 * errors  RC_E_INPUT for what is no setting, RC_E_MEMORY */
RC_MUST_CHECK
RC_API rc_code rc_launch_rows_make(const char *const *settings, size_t n_settings,
                                   rc_launch_style style, rc_arena *mem, rc_launch_row **rows,
                                   size_t *n_rows, rc_error *err);

/**
 * Runs the command once per row and round, reads the logs, and judges. Processor time is that
 * of the whole run, its start included, an iteration: it is shown and decides nothing.
 *
 * A run passes when its log shows the optimizer's first step done, `n_steady` iterations after
 * the second, and no loss that is not finite. What failed instead, and in which stage, comes
 * from the log; the exit status alone is no evidence.
 *
 * takes   launch  borrowed
 *         watch   may be NULL
 * gives   *out    judged
 * errors  RC_E_INPUT when the command has no {overrides}, or the folder holds another study;
 *         RC_E_STOPPED on SIGINT or SIGTERM: the child is stopped, finished runs are kept; RC_E_IO for
 *         a folder or log that cannot be written or read; RC_E_RANGE when the control itself failed
 */
RC_MUST_CHECK
RC_API rc_code rc_study_launch(const rc_launch *launch, const rc_study_watch *watch,
                               rc_arena *mem, rc_study **out, rc_error *err);

RC_EXTERN_C_END

#endif
