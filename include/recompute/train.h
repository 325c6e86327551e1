/* train.h — rc_training: the loop around the step. Data in, weights out.
 *
 * Opening one looks at all that can be known beforehand: settings checked, data opened, memory
 * planned and held against the budget. Running it holds the plan against what the machine lets it
 * take, takes the memory, puts the data in order and trains.
 */
#ifndef RECOMPUTE_TRAIN_H
#define RECOMPUTE_TRAIN_H

#include <recompute/config.h>
#include <recompute/cost.h>
#include <recompute/table.h>

#include <stdio.h>

RC_EXTERN_C_BEGIN

typedef struct rc_training rc_training;

/* The threads of a run.
 *
 * takes   cfg   engine.threads
 * gives   *out  that number, or the cores that this process may use; at most what OMP_THREAD_LIMIT allows
 * errors  RC_E_INPUT with the position when it is not from 1 to 1024 */
RC_MUST_CHECK
RC_API rc_code rc_train_threads(const rc_config *cfg, int *out, rc_error *err);

/**
 * Refuses what the engine's graph would leave out (rc_graph_refuse_lacks), unknown keys, and a vocabulary
 * that is not said. For callers that cost a model without training it; rc_training_open asks it too.
 *
 * takes   cfg  model and parallel sections
 * errors  RC_E_UNSUPPORTED naming the setting; RC_E_INPUT for a vocabulary that only a tokenizer
 *         knows; as rc_train_refuse_unknown
 */
RC_MUST_CHECK
RC_API rc_code rc_train_refuse_model(const rc_config *cfg, rc_error *err);

/* The rows of fates.def, for `recompute list fates`.
 *
 * gives   *out  a row per setting
 * errors  RC_E_MEMORY */
RC_MUST_CHECK
RC_API rc_code rc_fates_table(rc_arena *mem, rc_table **out, rc_error *err);

/* Fails at the first key that is neither a field nor known to be harmless or refused (fates.def).
 *
 * takes   cfg  its unknown keys
 * errors  RC_E_INPUT, as rc_config_refuse_key */
RC_MUST_CHECK
RC_API rc_code rc_train_refuse_unknown(const rc_config *cfg, rc_error *err);

/**
 * Prepares a run.
 *
 * takes   cfg   every section; must outlive the training
 * gives   *out  to be closed; NULL after an error
 * errors  RC_E_INPUT with the position of the setting that is wrong, missing or over budget (then
 *         naming the nearest recompute setting that fits); RC_E_UNSUPPORTED for what the engine
 *         cannot do; RC_E_IO for data that cannot be opened
 * memory  the plan and the lengths of the data's documents, from `mem`; neither the order of the
 *         data nor the model's arena is taken yet
 */
RC_MUST_CHECK
RC_API rc_code rc_training_open(const rc_config *cfg, rc_arena *mem, rc_training **out,
                                rc_error *err);
/* Gives back what the run holds: files, memory, threads. NULL does nothing. */
RC_API void rc_training_close(rc_training *training);

/* Prints one noun of the pipeline.
 *
 * takes   noun  config, data, graph, policy, schedule or cost
 * errors  RC_E_INPUT for another name, listing these */
RC_MUST_CHECK
RC_API rc_code rc_training_dump(const rc_training *training, const char *noun, FILE *to,
                                rc_error *err);

/* What is known before the first step.
 *
 * gives   report  tables added: model, data, memory by category
 * errors  RC_E_MEMORY */
RC_MUST_CHECK
RC_API rc_code rc_training_report(const rc_training *training, rc_arena *mem, rc_report *report,
                                  rc_error *err);

/* What the plan costs; lives as long as the training. */
RC_API const rc_cost *rc_training_cost(const rc_training *training);

typedef enum rc_train_event_kind {
    RC_TRAIN_START, /* memory was taken; weights are in place */
    RC_TRAIN_STEP,  /* one optimizer step is done */
    RC_TRAIN_VALID, /* the validation loss was measured */
    RC_TRAIN_SAVE,  /* a checkpoint was written */
    RC_TRAIN_STOP,  /* the user asked to stop, and all that was asked to be saved is */
    RC_TRAIN_END    /* the last step is done */
} rc_train_event_kind;

/* What happened. Fields that an event has no value for are 0. */
typedef struct rc_train_event {
    rc_train_event_kind kind;
    /* steps done; of the whole run */
    int64_t iteration, n_steps;
    /* training samples consumed */
    int64_t n_samples;
    /* samples of a step */
    int64_t n_global;
    /* STEP: of this step */
    int64_t n_tokens;
    /* STEP: mean over the step; VALID: mean over the batches */
    double loss;
    /* STEP: the rate this step was taken with */
    double lr;
    /* STEP: the next one's, which is what Megatron prints */
    double next_lr;
    /* STEP: before clipping */
    double grad_norm;
    /* STEP: of this step; VALID, SAVE: of the work */
    double seconds;
    /* planned memory */
    int64_t peak_bytes;
    /* its limit; 0 without one */
    int64_t budget_bytes;
    /* START: the run in one line; SAVE: where */
    const char *text;
} rc_train_event;

/* Who watches a run. */
typedef struct rc_train_watch {
    /* NULL: no event is told */
    void (*event)(void *user, const rc_train_event *event);
    /* asked after every step and batch of an evaluation; NULL: never stops */
    bool (*is_stopping)(void *user);
    void *user;
} rc_train_watch;

typedef struct rc_train_result {
    int64_t iteration, n_steps;
    int64_t n_samples;
    /* of this run's first and last step; NAN without one */
    double first_loss, last_loss;
    /* the last measured; NAN without one */
    double valid_loss;
    /* in steps */
    double seconds;
    /* trained on in this run */
    int64_t n_tokens;
    /* predicted */
    int64_t peak_bytes;
    /* measured in the first step: exec.h, rc_run_touched_bytes */
    int64_t touched_bytes;
    /* The whole process by the system's count, its peak during the run and what it had before; 0
     * where that is unknown. What the run took outside the account is peak - before - touched. */
    int64_t process_peak_bytes, process_before_bytes;
    /* before the last step, as the watch asked */
    bool is_stopped;
    /* the last checkpoint of this run; "" without one */
    char saved_to[4096];
} rc_train_result;

/**
 * Trains to the last step, to a multiple of train.exit_interval, or until the watch stops it.
 *
 * takes   watch    may be NULL
 * gives   *result  what was done
 * errors  RC_E_MEMORY when the run does not fit into a limit of the machine, which is named, or the
 *         host refuses the arena; RC_E_IO for data that was cut off or cannot be read any more, and
 *         for a folder or disk that cannot be saved to; RC_E_RANGE when a loss or gradient is not
 *         finite; RC_E_INPUT for a checkpoint of another run or a token outside the vocabulary
 */
RC_MUST_CHECK
RC_API rc_code rc_training_run(rc_training *training, const rc_train_watch *watch,
                               rc_train_result *result, rc_error *err);

/* The result as facts.
 *
 * gives   *out  one row
 * errors  RC_E_MEMORY */
RC_MUST_CHECK
RC_API rc_code rc_train_result_table(const rc_train_result *result, rc_arena *mem,
                                     rc_table **out, rc_error *err);

/* A listener that writes what people and programs expect: on a terminal one line that is redrawn
 * at most once a second, elsewhere Megatron's iteration lines; and JSON lines to a log. */
typedef struct rc_progress {
    /* NULL: nothing is shown */
    FILE *to;
    /* JSON lines; NULL: none */
    FILE *log;
    bool is_terminal;
    /* of the terminal */
    int width;
    /* steps between iteration lines */
    int64_t log_interval;
    /* Since the last iteration line, and since the start; zero to begin with. */
    struct {
        double loss, seconds;
        int64_t n_steps;
    } since_line;
    /* of a step, smoothed */
    double recent_seconds;
    /* when the line was last drawn */
    double drawn_at;
    /* it stands on the screen */
    bool has_line;
    /* Megatron's line about memory was printed */
    bool has_memory_line;
    /* errno of the first line that the log lacks; 0 */
    int log_failure;
} rc_progress;

/* For rc_train_watch.event, with an rc_progress as `user`. Writes to its streams; a failed write of the
 * log is kept in log_failure. */
RC_API void rc_progress_event(void *progress, const rc_train_event *event);

RC_EXTERN_C_END

#endif
