/* train.c — how far a job came: iteration lines, phase marks, exit codes, settings.
 *
 * takes  lines of Megatron-LM and Bridge, NeMo, Transformers, torchtitan, verl, torchrun, Slurm
 * gives  rc_log_train and what the launcher says about dead ranks
 */
#include "log/parts.h"

#include <math.h>
#include <string.h>

static void read_real(const log_line *line, size_t from, const char *label, double *value)
{
    double read;
    if (log_number_after(line, from, label, &read))
        *value = read;
}

static int64_t read_count(const log_line *line, size_t from, const char *label,
                          int64_t fallback)
{
    double value;
    if (!log_number_after(line, from, label, &value) || !(value >= 0) || value > 1e15)
        return fallback;
    return (int64_t)value;
}

static rc_code keep_step(rc_log *log, double loss, rc_error *err)
{
    rc_log_train *train = &log->train;
    if (train->n_steps == RC_LOG_MAX_STEPS)
        return RC_OK;
    RC_TRY(RC_GROW(log->mem, &train->steps, train->n_steps, &train->room_steps,
                   train->n_steps + 1, err));
    train->steps[train->n_steps++] =
        (rc_log_step){.iteration = train->last_iteration, .ms = (double)NAN, .loss = loss};
    return RC_OK;
}

/* Counts a step and what its loss and gradient say. */
static rc_code count_step(rc_log_reader *reader, const log_line *line, bool has_loss,
                          double loss, const double *grad, rc_error *err)
{
    rc_log_train *train = &reader->log->train;
    train->where = log_where(reader, line);
    if (has_loss && train->n_lines > 0 && !(loss < train->loss) && !(loss > train->loss))
        train->n_same_loss++;
    if (has_loss) {
        if (isnan(train->first_loss))
            train->first_loss = loss;
        train->loss = loss;
    } else {
        train->n_without_loss++;
    }
    if (grad) {
        train->grad_norm = *grad;
        train->n_nan_grad += !isfinite(*grad);
        train->n_zero_grad += !(*grad < 0) && !(*grad > 0) && isfinite(*grad);
    }
    train->n_lines++;
    /* What comes after a finished step is a new phase. */
    reader->log->phase = RC_JOB_UNKNOWN;
    reader->eval = LOG_EVAL_NONE;
    return keep_step(reader->log, has_loss ? loss : (double)NAN, err);
}

static void count_iteration(rc_log_train *train, int64_t iteration)
{
    if (iteration < 0)
        return;
    if (train->first_iteration < 0)
        train->first_iteration = iteration;
    train->last_iteration = iteration;
}

static void keep_step_time(rc_log_train *train, double ms)
{
    if (!(ms >= 0))
        return;
    train->step_ms = ms;
    if (train->n_steps > 0 && train->n_lines == (int64_t)train->n_steps)
        train->steps[train->n_steps - 1].ms = ms;
    /* A running mean of the lines from iteration 3 on: the first ones warm up. */
    if (train->last_iteration < 3)
        return;
    double mean = train->n_steady++ ? train->steady_step_ms : ms;
    train->steady_step_ms = mean + (ms - mean) / (double)train->n_steady;
}

/* The part of the line that one report occupies: from the "iteration" before the keyword. */
static size_t report_start(const log_line *line)
{
    size_t start = 0;
    const char *at = line->text;
    while ((at = log_find(at, line->hit - (size_t)(at - line->text), "iteration"))) {
        start = (size_t)(at - line->text);
        at++;
    }
    return start;
}

LOG_HANDLER(train)
{
    rc_log_train *train = &reader->log->train;
    reader->log->n_seen[kind]++;
    size_t from = report_start(line);
    double iteration, total = -1, loss = 0, grad = 0, ms;
    if (log_number_after(line, from, "iteration", &iteration) && iteration >= 0 &&
        iteration < 1e15)
        count_iteration(train, (int64_t)iteration);
    const char *slash = memchr(line->text + from, '/', line->n - from);
    if (slash && log_number_after(line, (size_t)(slash - line->text), "/", &total) &&
        total >= 0 && total < 1e15)
        train->n_iterations = (int64_t)total;
    bool has_loss = log_number_after(line, from, "lm loss", &loss) ||
                    log_number_after(line, from, "reduced_train_loss", &loss) ||
                    log_number_after(line, from, "| loss", &loss);
    bool has_grad = log_number_after(line, from, "grad norm", &grad);
    RC_TRY(count_step(reader, line, has_loss, loss, has_grad ? &grad : NULL, err));
    if (log_number_after(line, line->hit, "elapsed time per iteration (ms)", &ms))
        keep_step_time(train, ms);
    read_real(line, from, "learning rate", &train->learning_rate);
    read_real(line, from, "loss scale", &train->loss_scale);
    read_real(line, from, "throughput per GPU (TFLOP/s/GPU)", &train->tflops);
    train->global_batch = read_count(line, from, "global batch size", train->global_batch);
    train->consumed_samples =
        read_count(line, from, "consumed samples", train->consumed_samples);
    train->last_skipped = read_count(line, from, "number of skipped iterations", 0);
    train->last_nan = read_count(line, from, "number of nan iterations", 0);
    if (train->last_skipped < INT64_MAX - train->skipped)
        train->skipped += train->last_skipped;
    if (train->last_nan < INT64_MAX - train->nan)
        train->nan += train->last_nan;
    return RC_OK;
}

/* "{'loss': 1.0213, 'grad_norm': 3.112, 'learning_rate': 1e-05, 'epoch': 0.04}" */
LOG_HANDLER(train_hf)
{
    rc_log_train *train = &reader->log->train;
    reader->log->n_seen[kind]++;
    double loss = 0, grad = 0;
    bool has_loss = log_number_after(line, line->hit, "'loss'", &loss);
    bool has_grad = log_number_after(line, line->hit, "'grad_norm'", &grad);
    if (!has_loss)
        return RC_OK;
    RC_TRY(count_step(reader, line, has_loss, loss, has_grad ? &grad : NULL, err));
    read_real(line, line->hit, "'learning_rate'", &train->learning_rate);
    return RC_OK;
}

LOG_HANDLER(train_kv)
{
    rc_log_train *train = &reader->log->train;
    double value, loss = 0, grad = 0;
    reader->log->n_seen[kind]++;
    if (kind == RC_LOG_STEP_BRIDGE) { /* "Step Time : 42.21s", in front of the iteration line */
        if (log_number_after(line, line->hit, "Step Time :", &value) && isnan(train->step_ms))
            keep_step_time(train, value * 1000);
        read_real(line, line->hit, "GPU utilization", &train->tflops);
        return RC_OK;
    }
    bool has_step = log_number_after(line, 0, "global_step", &value) ||
                    log_number_after(line, 0, "step:", &value);
    if (has_step && value >= 0 && value < 1e15)
        count_iteration(train, (int64_t)value);
    bool has_loss = log_number_after(line, 0, "reduced_train_loss", &loss) ||
                    log_number_after(line, 0, "  loss:", &loss) ||
                    log_number_after(line, 0, "pg_loss:", &loss);
    bool has_grad = log_number_after(line, 0, "grad_norm:", &grad);
    RC_TRY(count_step(reader, line, has_loss, loss, has_grad ? &grad : NULL, err));
    if (log_number_after(line, 0, "train_step_timing in s", &value) ||
        log_number_after(line, 0, "timing_s/step", &value))
        keep_step_time(train, value * 1000);
    return RC_OK;
}

LOG_HANDLER(mark)
{
    static const struct {
        rc_log_kind kind;
        rc_job_phase phase;
        log_eval eval;
    } marks[] = {
#define RC_LOG_MARK(kind, phase, eval) {RC_LOG_##kind, RC_JOB_##phase, LOG_EVAL_##eval},
#include "defs/log_marks.def"
#undef RC_LOG_MARK
    };
    rc_log *log = reader->log;
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (marks[i].kind == kind) {
            log->phase = marks[i].phase;
            reader->eval = marks[i].eval;
        }
    if (kind == RC_LOG_MARK_TRAIN_PL) { /* a bar that moves is no evidence to show */
        log->n_seen[kind]++;
        return RC_OK;
    }
    return log_add_event(reader, line, kind, err);
}

/* --- dead processes */

static void keep_exit(rc_log *log, const log_line *line, int64_t code)
{
    bool is_kill = code == -9 || code == 137;
    bool had_kill = log->exit_code == -9 || log->exit_code == 137;
    if (code == 0 || (log->exit_code != RC_LOG_NO_EXIT && (had_kill || !is_kill)))
        return;
    log->exit_code = code;
    double value;
    if (log_number_after(line, 0, "local_rank:", &value) && value >= 0 && value < 1e6)
        log->exit_local_rank = (int)value;
    if (line->rank >= 0)
        log->exit_rank = line->rank;
}

/* "  rank      : 3 (local_rank: 3)" of torchrun's report; the first one is the root cause. */
static void keep_exit_rank(rc_log *log, const log_line *line)
{
    int64_t rank = read_count(line, 0, "rank ", RC_LOG_UNKNOWN);
    int64_t local = read_count(line, 0, "(local_rank:", RC_LOG_UNKNOWN);
    if (log->exit_rank < 0 && rank < INT32_MAX)
        log->exit_rank = (int)rank;
    if (log->exit_local_rank < 0 && local < INT32_MAX)
        log->exit_local_rank = (int)local;
}

LOG_HANDLER(exit)
{
    rc_log *log = reader->log;
    double value;
    if (kind == RC_LOG_EXIT_RANK) {
        keep_exit_rank(log, line);
        return RC_OK;
    }
    if (kind == RC_LOG_HOST_SIGKILL) {
        keep_exit(log, line, -9);
        return log_add_event(reader, line, kind, err);
    }
    if (!log_number_after(line, line->hit, log_patterns[kind].needle, &value) ||
        !(fabs(value) < 1e6))
        return RC_OK;
    int64_t code = (int64_t)value;
    keep_exit(log, line, code);
    if (code == -9 || code == 137)
        RC_TRY(log_add_event(reader, line, RC_LOG_HOST_SIGKILL, err));
    return log_add_event(reader, line, kind, err);
}

/* Python's MemoryError, not torch's OutOfMemoryError. */
LOG_HANDLER(host_error)
{
    char before = line->hit > 0 ? line->text[line->hit - 1] : ' ';
    bool is_part = (before >= 'a' && before <= 'z') || (before >= 'A' && before <= 'Z');
    return is_part ? RC_OK : log_add_event(reader, line, kind, err);
}

/* --- what a recompute gave back */

static int read_shape(const log_line *line, size_t from, int64_t shape[8])
{
    const char *limit = line->text + line->n;
    const char *at = log_find(line->text + from, line->n - from, "torch.Size([");
    int n = 0;
    if (!at)
        return 0;
    at += strlen("torch.Size([");
    double value;
    while (n < 8 && log_number(at, limit, &value, &at) && value >= 0 && value < 1e15) {
        shape[n++] = (int64_t)value;
        while (at < limit && (*at == ',' || *at == ' '))
            at++;
    }
    return n;
}

static void read_dtype(const log_line *line, size_t from, char dtype[24])
{
    const char *at = log_find(line->text + from, line->n - from, "torch.");
    const char *limit = line->text + line->n;
    /* The shape is a torch.Size: the dtype is the next one in lower case. */
    while (at && at + 6 < limit && !(at[6] >= 'a' && at[6] <= 'z'))
        at = log_find(at + 6, (size_t)(limit - at - 6), "torch.");
    size_t n = 0;
    if (at)
        for (at += 6; at < limit && n < 23 &&
                      ((*at >= 'a' && *at <= 'z') || (*at >= '0' && *at <= '9') || *at == '_');
             at++)
            dtype[n++] = *at;
    dtype[n] = '\0';
}

LOG_HANDLER(mismatch)
{
    enum { MOST = 16 };
    rc_log *log = reader->log;
    if (kind == RC_LOG_COUNT_SAVED || kind == RC_LOG_COUNT_REPLAYED) {
        int64_t *to = kind == RC_LOG_COUNT_SAVED ? &log->saved_tensors : &log->replayed_tensors;
        *to = read_count(line, line->hit,
                         kind == RC_LOG_COUNT_SAVED ? "forward" : "recomputation", *to);
        return RC_OK;
    }
    if (kind == RC_LOG_TENSOR_POSITION) {
        reader->mismatch_position = read_count(line, line->hit, "position", RC_LOG_UNKNOWN);
        return RC_OK;
    }
    if (kind == RC_LOG_TENSOR_SAVED) {
        void *row;
        RC_TRY(log_grow(log, LOG_ROWS(log, mismatches, MOST), &row, err));
        rc_log_mismatch *mismatch = row;
        if (!mismatch)
            return RC_OK;
        mismatch->where = log_where(reader, line);
        mismatch->position = reader->mismatch_position;
        mismatch->n_saved = read_shape(line, line->hit, mismatch->saved);
        read_dtype(line, line->hit, mismatch->saved_dtype);
        return RC_OK;
    }
    if (log->n_mismatches == 0)
        return RC_OK;
    rc_log_mismatch *mismatch = &log->mismatches[log->n_mismatches - 1];
    if (mismatch->n_replayed == 0) {
        mismatch->n_replayed = read_shape(line, line->hit, mismatch->replayed);
        read_dtype(line, line->hit, mismatch->replayed_dtype);
    }
    return RC_OK;
}

/* --- argument dumps: "  recompute_granularity ........... full" */

static size_t count_bytes(const char *at, const char *limit, const char *among)
{
    size_t n = 0;
    while (at + n < limit && at[n] && strchr(among, at[n]))
        n++;
    return n;
}

typedef struct setting_line {
    const char *name, *value;
    size_t n_name, n_value;
} setting_line;

/* "NAME DOTS VALUE"; GPT-NeoX closes with more dots and "updated" or "default". */
static bool take_setting(const log_line *line, setting_line *out)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    const char *limit = line->text + line->n, *at = line->text + line->body;
    at += count_bytes(at, limit, " ");
    out->name = at;
    out->n_name = count_bytes(at, limit, letters);
    at += out->n_name;
    size_t n_blanks = count_bytes(at, limit, " ");
    size_t n_dots = count_bytes(at + n_blanks, limit, ".");
    at += n_blanks + n_dots;
    if (out->n_name == 0 || out->n_name > 96 || n_blanks == 0 || n_dots == 0 || at >= limit ||
        *at != ' ')
        return false;
    out->value = at + 1;
    const char *tail = log_find(out->value, (size_t)(limit - out->value), "....");
    out->n_value = (size_t)((tail ? tail : limit) - out->value);
    return true;
}

LOG_HANDLER(setting)
{
    enum { MOST_LINES = 16384, MOST_KEYS = 4096 };
    rc_log *log = reader->log;
    setting_line at;
    if (++log->n_seen[kind] > MOST_LINES || !take_setting(line, &at))
        return RC_OK;
    if (!log->settings)
        RC_TRY(rc_doc_new(log->mem, RC_DOC_MAP, log_where(reader, line), &log->settings, err));
    const char *key;
    RC_TRY(rc_arena_copy(log->mem, at.name, at.n_name, &key, err));
    if (log->settings->n_children >= MOST_KEYS || rc_doc_find(log->settings, key))
        return RC_OK;
    rc_doc *node;
    return rc_doc_add_string(log->mem, log->settings, key, log_where(reader, line), at.value,
                             at.n_value, &node, err);
}
