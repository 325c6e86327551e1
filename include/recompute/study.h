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
    double median, low, high; /* low and high are the quartiles; NAN when n is 0 */
    size_t n;
} rc_spread;

/* Sorts `values`. Quartiles lie between neighbours (Hyndman and Fan 1996, type 7). */
RC_API rc_spread rc_spread_of(double *values, size_t n);

/* The median of a population from n values that were measured: at RC_STUDY_CONFIDENCE it lies
 * from `low` to `high`, however the values are spread. */
typedef struct rc_interval {
    double center;    /* the median of the values; NAN when n is 0 */
    double low, high; /* NAN when n is less than RC_INTERVAL_LEAST */
    size_t n;
} rc_interval;

#define RC_STUDY_CONFIDENCE 0.95
enum { RC_INTERVAL_LEAST = 6 };

/**
 * Sorts `values`; the interval goes from the k-th smallest to the k-th largest.
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
    double seconds[RC_CLOCK_COUNT]; /* of a steady step; NAN: not run, or unknown */
    double at;                      /* when in its round: 0 the first control, 1 the last */
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
RC_API const char *rc_verdict_name(rc_verdict verdict); /* "no-effect" */

enum { RC_STUDY_UNKNOWN = -1, RC_STUDY_MAX_ROUNDS = 1000 };

typedef struct rc_study_row {
    const char *setting; /* "[]", "[core_attn]", "full/block/4" */
    bool is_control;
    bool is_pass;            /* reached the steady steps with finite losses */
    const char *failure;     /* what ended it, and in which stage; NULL when it passed */
    int64_t predicted_bytes; /* peak; RC_STUDY_UNKNOWN for launched trainers */
    int64_t peak_bytes;      /* measured, of the fullest rank */
    int64_t peak_rank;       /* that rank; RC_STUDY_UNKNOWN for one process */
    int64_t replay_flops;    /* recomputed in one step; RC_STUDY_UNKNOWN */
    rc_study_sample *rounds; /* [n_rounds of the study] */
    int64_t n_iterations;    /* the fewest that a run completed */
    const double *losses;    /* of every step, as far as known */
    size_t n_losses;
    double loss; /* the last of them; NAN unknown */
    /* set by rc_study_judge */
    bool is_same_loss;  /* as the control's at every step both know: bit for bit, unless the two
                           controls differ too */
    double saved_ratio; /* of the control's peak; NAN unknown */
    rc_spread step_seconds[RC_CLOCK_COUNT]; /* over the rounds */
    /* Time to that of the same round's nearer control. The first control's is empty, the last
     * control's is to the first: 1, unless time passes differently within a round. */
    rc_interval ratio[RC_CLOCK_COUNT];
    rc_verdict verdict;
    const char *says; /* the verdict in words */
} rc_study_row;

/* What else the machine did while a study ran; seconds of cores, NAN where it does not tell. */
typedef struct rc_study_load {
    double seconds;   /* that passed */
    double n_cores;   /* of the machine */
    double own;       /* used by the study */
    double other;     /* used by other programs */
    double waited;    /* threads of the study were ready and had no core */
    double stolen;    /* taken by the host of a virtual machine */
    double throttled; /* the study was held back by a container's limit */
} rc_study_load;

/* Why there was no further round. */
typedef enum rc_study_end {
    RC_STUDY_END_ROUNDS, /* no more were asked for */
    RC_STUDY_END_NARROW, /* every interval was as narrow as was asked for */
    RC_STUDY_END_LIMIT,  /* the time was up */
    RC_STUDY_END_COUNT
} rc_study_end;
RC_API const char *rc_study_end_name(rc_study_end end); /* "rounds" */

/* How long a study goes on. */
typedef struct rc_study_rules {
    int64_t n_least;     /* rounds that are made in any case */
    double target_ratio; /* then further ones, for rows whose interval is wider to each side, */
    double limit_seconds; /* while the study took less; 0: none */
} rc_study_rules;

typedef struct rc_study {
    const char *name;   /* of its table in JSON */
    const char *title;  /* for people */
    rc_study_row *rows; /* the first and the last are the control */
    size_t n_rows;
    size_t n_rounds, n_rounds_room;
    rc_study_rules rules;
    rc_study_end end;
    rc_study_load load;
    /* The most that a run took beside its account (train.h); 0: nobody counted */
    int64_t beside_bytes;
    /* Processor time stands for the work of a step: it is known for steps alone, and no thread
     * burns it while waiting. Else it is shown and decides nothing. */
    bool is_cpu_fair;
    /* set by rc_study_judge */
    bool is_busy;         /* the machine, with other things */
    rc_study_clock clock; /* whose intervals decide */
    const char *machine;  /* in words: "quiet", "busy: ..." */
    /* What the control's own runs differ by. Loss and peak: 0 for a deterministic trainer, ours
     * among them, and smaller differences of a row mean nothing. */
    double noise_ratio; /* of wall times; for information */
    double loss_noise_ratio, peak_noise_ratio;
} rc_study;

/* A further round, in which nothing is measured yet. */
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

/* The rows as a table named study->name; `is_brief` leaves out what only programs want. */
RC_MUST_CHECK
RC_API rc_code rc_study_table(const rc_study *study, bool is_brief, rc_arena *mem,
                              rc_table **out, rc_error *err);
/* One row: rounds, confidence, the machine, noise, whether every prediction was exact. */
RC_MUST_CHECK
RC_API rc_code rc_study_facts(const rc_study *study, bool is_brief, rc_arena *mem,
                              rc_table **out, rc_error *err);
/* What a picture of memory against time is drawn from: the rows that passed. */
enum { RC_STUDY_CHART_SETTING, RC_STUDY_CHART_STEP, RC_STUDY_CHART_PEAK };
RC_MUST_CHECK
RC_API rc_code rc_study_chart(const rc_study *study, rc_arena *mem, rc_table **out,
                              rc_error *err);

/* What a running study tells whoever waits for it. */
typedef struct rc_study_progress {
    const char *name, *setting; /* of the study, of the row that runs now */
    size_t n_done, n_runs;      /* runs of the rounds that are sure */
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
    rc_study_rules rules;
    int64_t n_steps;  /* of a run, warm-up included */
    int64_t n_warmup; /* steps not timed */
    bool is_spinning; /* idle threads burn processor time, which then measures no work */
} rc_study_plan;

/**
 * Trains the model once per setting and round, and judges.
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
    rc_study_rules rules;
    int64_t n_steady;       /* iterations after the second that make a pass */
    double timeout_seconds; /* of one run; 0 never */
    const char *folder;     /* logs, and state.jsonl with every finished run: a study that was
                               interrupted goes on where it stopped */
} rc_launch;

/* The rows of settings that rc_setting_parse reads, written in a style; the control first. */
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
 * errors  RC_E_INPUT when the command has no {overrides}, or the folder holds another study;
 *         RC_E_STOPPED on SIGINT or SIGTERM: the child is stopped, finished runs are kept
 */
RC_MUST_CHECK
RC_API rc_code rc_study_launch(const rc_launch *launch, const rc_study_watch *watch,
                               rc_arena *mem, rc_study **out, rc_error *err);

RC_EXTERN_C_END

#endif
