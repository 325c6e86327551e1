/* log.h — rc_log: the facts in a training job's output.
 *
 * Any part of a log of any size, streamed: what is kept is bounded (first and last of everything
 * that can repeat), so memory does not grow with the file. Strings are copies of untrusted
 * bytes: print them through rc_text_printable or a report only.
 */
#ifndef RECOMPUTE_LOG_H
#define RECOMPUTE_LOG_H

#include <recompute/arena.h>
#include <recompute/doc.h>
#include <recompute/error.h>

RC_EXTERN_C_BEGIN

/* Where in a job's life something happened. ORDER job_phases */
typedef enum rc_job_phase {
    RC_JOB_UNKNOWN,
    RC_JOB_NONE, /* nothing failed */
    RC_JOB_CONFIG,
    RC_JOB_MODEL_BUILD,
    RC_JOB_CHECKPOINT_LOAD,
    RC_JOB_FORWARD,
    RC_JOB_BACKWARD,
    RC_JOB_GRAD_SYNC,
    RC_JOB_OPTIMIZER_INIT,
    RC_JOB_OPTIMIZER_STEP,
    RC_JOB_CHECKPOINT_SAVE,
    RC_JOB_EVAL,
    RC_JOB_GRAPH_CAPTURE,
    RC_JOB_COUNT
} rc_job_phase;

/* "optimizer-init" */
RC_API const char *rc_job_phase_name(rc_job_phase phase);

/* What a traceback shows besides the phase; bits. */
typedef enum rc_frames {
    RC_FRAMES_REPLAY = 1 << 0,  /* a recompute inside backward */
    RC_FRAMES_LOGITS = 1 << 1,  /* output layer, loss, log-probabilities */
    RC_FRAMES_EXPERTS = 1 << 2, /* mixture-of-experts layer or dispatch */
    RC_FRAMES_SCORES = 1 << 3,  /* unfused attention: scores, softmax */
    RC_FRAMES_ENGINE = 1 << 4,  /* an inference engine inside the job */
    RC_FRAMES_PINNED = 1 << 5,  /* pinned host memory */
    /* whose code the frames are */
    RC_FRAMES_MEGATRON = 1 << 6,
    RC_FRAMES_BRIDGE = 1 << 7,
    RC_FRAMES_HF = 1 << 8,
    RC_FRAMES_DEEPSPEED = 1 << 9,
    RC_FRAMES_VERL = 1 << 10,
    RC_FRAMES_TRAIN = 1 << 11 /* a frame that only a training loop has: no evaluation */
} rc_frames;

/* These name the tensor, so only the innermost frames count. */
#define RC_FRAMES_TENSOR ((unsigned)(RC_FRAMES_LOGITS | RC_FRAMES_SCORES))

enum { RC_LOG_UNKNOWN = -1 };

/* Who refused the memory. */
typedef enum rc_oom_source {
    RC_OOM_TORCH,   /* torch's caching allocator, with sizes */
    RC_OOM_ASYNC,   /* torch on cudaMallocAsync: no reserve figure */
    RC_OOM_DEVICE,  /* another device's allocator, fewer sizes */
    RC_OOM_BARE,    /* torch's message without sizes */
    RC_OOM_OVERFLOW /* "more than 1EB": a negative or overflown shape */
} rc_oom_source;

/* One out-of-memory message. Bytes; RC_LOG_UNKNOWN where the message does not say. */
typedef struct rc_oom {
    rc_oom_source source;
    rc_where where;
    int rank, local_rank, gpu;
    /* "CUDA" "HIP" "NPU" "XPU" "MLU" "HPU" */
    char device[8];
    int64_t requested_bytes, capacity_bytes, free_bytes;
    /* by torch, live */
    int64_t allocated_bytes;
    /* by torch, live and idle */
    int64_t reserved_bytes;
    /* reserved and not allocated */
    int64_t idle_bytes;
    /* "this process has" */
    int64_t process_bytes;
    /* sum of the other listed processes */
    int64_t other_bytes;
    /* the largest of them */
    int64_t other_pid;
    int n_others;
    /* in private pools (graphs) */
    int64_t private_bytes;
    /* per-process fraction */
    int64_t allowed_bytes;
    /* NPU "current active" */
    int64_t active_bytes;
    /* "Process N" taken for this job: pid namespaces differ */
    bool is_process_guessed;
    /* torch's standing advice was printed; says nothing */
    bool has_hint;
    /* the hint names expandable segments: torch 2.2 on */
    bool has_expandable_hint;
    /* the hint names max_split_size_mb: torch 1.10 to 2.1 */
    bool has_split_hint;
    /* it says PYTORCH_ALLOC_CONF */
    bool has_new_variable;
    /* it says PYTORCH_HIP_ALLOC_CONF */
    bool has_hip_variable;
    /* the older wording, torch up to 2.0 */
    bool is_parenthesised;
    /* from the traceback above it, else RC_JOB_UNKNOWN */
    rc_job_phase phase;
    /* rc_frames */
    unsigned frames;
    /* the frame that decided the phase, or NULL */
    const char *trace;
} rc_oom;

/* What else a line can say: rows of src/defs/log_patterns.def. */
typedef enum rc_log_kind {
#define RC_LOG_PATTERN(kind, handler, needle, also, meaning) RC_LOG_##kind,
#include "defs/log_patterns.def" /* installed beside this header */
#undef RC_LOG_PATTERN
    RC_LOG_KIND_COUNT
} rc_log_kind;

/* What a line of that kind means, in words; "" for what is no kind. */
RC_API const char *rc_log_kind_meaning(rc_log_kind kind);

/* One line that says one of them. */
typedef struct rc_log_event {
    rc_log_kind kind;
    rc_where where;
    int rank, local_rank;
    /* of the traceback it ends, or its phase */
    rc_job_phase phase;
    unsigned frames;
    /* the line, cleaned and cut */
    const char *text;
} rc_log_event;

/* The refusal of a setting that the log itself shows: rows of log_refusals.def. */
typedef struct rc_log_refusal {
    const char *rule;
    rc_where where;
    const char *text;
} rc_log_refusal;

enum { RC_LOG_MAX_SAMPLES = 64, RC_LOG_SAMPLED_RANKS = 64 };

/* What a rank reported after each step, thinned evenly to RC_LOG_MAX_SAMPLES: every `stride`-th step
 * behind the first RC_LOG_WARMUP_STEPS, in which optimizer state, workspaces and caches appear. */
enum { RC_LOG_WARMUP_STEPS = 2 };
typedef struct rc_log_samples {
    /* NULL before the first, and past RC_LOG_SAMPLED_RANKS ranks */
    int64_t *bytes;
    int n;
    /* peaks, where no live memory is reported */
    bool is_peak;
    int64_t stride, n_steps, last_step;
} rc_log_samples;

/* Memory of one rank as the trainer reports it: the largest peaks and the last live value. */
typedef struct rc_log_rank {
    int rank;
    rc_where where;
    int64_t iteration;
    int64_t allocated_bytes, max_allocated_bytes, reserved_bytes, max_reserved_bytes;
    /* "total device memory used" */
    int64_t device_bytes;
    int64_t alloc_retries;
    rc_log_samples samples;
    /* the log printed units of 1e9 */
    bool is_decimal;
} rc_log_rank;

/* One iteration line; NAN where it does not say. */
typedef struct rc_log_step {
    int64_t iteration;
    double ms, loss;
} rc_log_step;

enum { RC_LOG_MAX_STEPS = 4096 };

/* Iteration lines of the rank that prints them. */
typedef struct rc_log_train {
    /* the first RC_LOG_MAX_STEPS lines */
    rc_log_step *steps;
    size_t n_steps, room_steps;
    int64_t n_lines;
    /* RC_LOG_UNKNOWN if none */
    int64_t first_iteration, last_iteration, n_iterations;
    /* lines in the mean below */
    int64_t n_steady;
    /* last; mean from iteration 3 on; NAN if none */
    double step_ms, steady_step_ms;
    double loss, first_loss, grad_norm, learning_rate, loss_scale, tflops;
    /* summed over the lines */
    int64_t skipped, nan;
    int64_t last_skipped, last_nan;
    int64_t global_batch, consumed_samples;
    int64_t n_zero_grad, n_nan_grad, n_without_loss, n_same_loss;
    /* the last line */
    rc_where where;
} rc_log_train;

/* Megatron's and Bridge's estimate block. */
typedef struct rc_log_estimate {
    rc_where where;
    int64_t weight_optimizer_bytes, activation_bytes, total_bytes;
    double params_billion, shard_params_billion;
} rc_log_estimate;

/* Tensors that a recompute gave back different from what forward saved. */
typedef struct rc_log_mismatch {
    rc_where where;
    int64_t position;
    int64_t saved[8], replayed[8];
    int n_saved, n_replayed;
    char saved_dtype[24], replayed_dtype[24];
} rc_log_mismatch;

enum { RC_LOG_MAX_OOMS = 512, RC_LOG_MAX_EVENTS = 512, RC_LOG_MAX_RANKS = 65536 };

typedef struct rc_log {
    /* of the last file read */
    const char *path;
    int64_t n_bytes, n_lines;
    rc_oom *ooms;
    size_t n_ooms, room_ooms;
    /* may pass n_ooms: the first RC_LOG_MAX_OOMS are kept */
    int64_t n_ooms_seen;
    rc_log_event *events;
    size_t n_events, room_events;
    int64_t n_seen[RC_LOG_KIND_COUNT];
    rc_log_refusal *refusals;
    size_t n_refusals, room_refusals;
    rc_log_rank *ranks;
    size_t n_ranks, room_ranks;
    rc_log_train train;
    rc_log_estimate estimate;
    /* the first 16 */
    rc_log_mismatch *mismatches;
    size_t n_mismatches, room_mismatches;
    /* counts that differ; RC_LOG_UNKNOWN */
    int64_t saved_tensors, replayed_tensors;
    /* of a rank that died; RC_LOG_NO_EXIT if none */
    int64_t exit_code;
    int exit_rank, exit_local_rank;
    /* host memory in use, NAN */
    double host_percent;
    double host_used_gib;
    /* of the first prefixed traceback or failure */
    int first_rank;
    /* of the last exception's message */
    rc_where last_error;
    /* the last mark: coarse */
    rc_job_phase phase;
    /* of the last traceback, finished or cut */
    rc_job_phase last_phase;
    unsigned last_frames;
    /* rc_frames of all tracebacks */
    unsigned seen_frames;
    bool has_traceback;
    /* a packed file was damaged: what came before it was read */
    bool is_cut_short;
    /* the environment or the command line says so */
    bool is_expandable_on;
    /* argument dump: name → value, or NULL */
    rc_doc *settings;
    rc_arena *mem;
} rc_log;

enum { RC_LOG_NO_EXIT = -100000 };

/* A reader holds the stream's state: a buffer of fixed size in `mem`. */
typedef struct rc_log_reader rc_log_reader;

/* A new, empty log; pieces are fed through a reader, files one after the other.
 *
 * gives   *out  keeps `mem`: what is read later is taken from it
 * errors  RC_E_MEMORY */
RC_MUST_CHECK
RC_API rc_code rc_log_make(rc_arena *mem, rc_log **out, rc_error *err);

/**
 * Reads one file into `log`, adding to what earlier files said.
 *
 * takes   path    plain, gzip or zstd; "-" is standard input
 * errors  RC_E_IO when the file cannot be read, RC_E_INPUT for an empty path; nothing in the bytes is an
 *         error
 * memory  one buffer of about 2 MiB plus the bounded facts
 * cost    one pass; a search for keywords, then patterns on the lines that hold one
 */
RC_MUST_CHECK
RC_API rc_code rc_log_read(const char *path, rc_log *log, rc_error *err);

/* The same from memory, in pieces: open, feed any number of times, finish.
 *
 * takes   name   of the input, for positions
 *         rank   what the file's name says, else RC_LOG_UNKNOWN
 * gives   *out   a reader in the log's arena; nothing is to be closed
 * errors  RC_E_MEMORY */
RC_MUST_CHECK
RC_API rc_code rc_log_open(const char *name, int rank, rc_log *log, rc_log_reader **out,
                           rc_error *err);

/* takes   bytes  copied; a line may be cut anywhere
 * errors  RC_E_MEMORY */
RC_MUST_CHECK
RC_API rc_code rc_log_feed(rc_log_reader *reader, const char *bytes, size_t n_bytes,
                           rc_error *err);

/* The rest of the last line, and tracebacks that did not end.
 * errors  RC_E_MEMORY */
RC_MUST_CHECK
RC_API rc_code rc_log_finish(rc_log_reader *reader, rc_error *err);

/* The first event of a kind, or NULL. */
RC_API const rc_log_event *rc_log_find(const rc_log *log, rc_log_kind kind);

/* The phase that `n` frames show, outermost first, by the same rows as a traceback's: the name of each
 * frame's function and the path of its file. RC_JOB_UNKNOWN where none is telling. */
RC_API rc_job_phase rc_log_phase_of(const char *const *names, const char *const *paths,
                                    size_t n);

/* Invariants: counts within bounds, no size below RC_LOG_UNKNOWN, every event has its text.
 * errors  RC_E_BUG */
RC_MUST_CHECK
RC_API rc_code rc_log_verify(const rc_log *log, rc_error *err);

RC_EXTERN_C_END

#endif
