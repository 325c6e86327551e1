/* log.c — the stream: a buffer slides over the file, keywords pick lines, handlers read them.
 *
 * takes  bytes in pieces of any size
 * gives  rc_log, by way of the handlers in oom.c, memory.c, train.c, trace.c
 * next   src/diagnose/ decides what the facts mean
 *
 * The buffer always holds LOG_AHEAD_BYTES behind the line that is read, because messages go on
 * in later lines and may be broken anywhere.
 */
#include "log/parts.h"

#include "read/unpack.h"

#include <math.h>
#include <string.h>

typedef rc_code (*log_handler)(rc_log_reader *reader, rc_log_kind kind, const log_line *line,
                               rc_error *err);
static const log_handler handlers[RC_LOG_KIND_COUNT] = {
#define RC_LOG_PATTERN(kind, handler, needle, also, meaning) log_handle_##handler,
#include "defs/log_patterns.def"
#undef RC_LOG_PATTERN
};

const char *rc_log_kind_meaning(rc_log_kind kind)
{
    return (size_t)kind < RC_LOG_KIND_COUNT ? log_patterns[kind].meaning : "";
}

const char *rc_job_phase_name(rc_job_phase phase)
{
    /* ORDER job_phases */
    static const char *const names[RC_JOB_COUNT] = {
        "unknown",         "none",     "config",       "model-build",    "checkpoint-load",
        "forward",         "backward", "grad-sync",    "optimizer-init", "optimizer-step",
        "checkpoint-save", "eval",     "graph-capture"};
    return (size_t)phase < RC_JOB_COUNT ? names[phase] : "unknown";
}

rc_code rc_log_make(rc_arena *mem, rc_log **out, rc_error *err)
{
    rc_log *log;
    RC_TRY(RC_NEW(mem, &log, 1, err));
    log->mem = mem;
    log->first_rank = RC_LOG_UNKNOWN;
    log->exit_code = RC_LOG_NO_EXIT;
    log->exit_rank = log->exit_local_rank = RC_LOG_UNKNOWN;
    log->saved_tensors = log->replayed_tensors = RC_LOG_UNKNOWN;
    log->host_percent = log->host_used_gib = (double)NAN;
    rc_log_train *train = &log->train;
    train->first_iteration = train->last_iteration = train->n_iterations = RC_LOG_UNKNOWN;
    train->global_batch = train->consumed_samples = RC_LOG_UNKNOWN;
    train->step_ms = train->steady_step_ms = train->loss = train->first_loss = (double)NAN;
    train->grad_norm = train->learning_rate = train->loss_scale = train->tflops = (double)NAN;
    rc_log_estimate *estimate = &log->estimate;
    estimate->weight_optimizer_bytes = estimate->activation_bytes = RC_LOG_UNKNOWN;
    estimate->total_bytes = RC_LOG_UNKNOWN;
    estimate->params_billion = estimate->shard_params_billion = (double)NAN;
    *out = log;
    return RC_OK;
}

/* --- adding facts */

rc_code log_grow(rc_log *log, log_rows rows, void **row, rc_error *err)
{
    *row = NULL;
    if (*rows.n >= rows.max)
        return RC_OK;
    rc_growth by = {*rows.n, *rows.n + 1, rows.row_bytes};
    RC_TRY(rc_arena_grow(log->mem, rows.at, rows.room, by, err));
    *row = (char *)*rows.at + *rows.n * rows.row_bytes;
    memset(*row, 0, rows.row_bytes);
    ++*rows.n;
    return RC_OK;
}

rc_where log_where(const rc_log_reader *reader, const log_line *line)
{
    int number = line->number < INT32_MAX ? (int)line->number : INT32_MAX;
    return (rc_where){.file = reader->name, .line = number, .col = (int)line->hit + 1};
}

rc_code log_copy_line(rc_log *log, const log_line *line, size_t from, const char **out,
                      rc_error *err)
{
    enum { MOST = 400 };
    size_t n = line->n > from ? line->n - from : 0;
    return rc_arena_copy(log->mem, line->text + from, n < MOST ? n : MOST, out, err);
}

rc_code log_add_event(rc_log_reader *reader, const log_line *line, rc_log_kind kind,
                      rc_error *err)
{
    enum { MOST_OF_A_KIND = 16 };
    rc_log *log = reader->log;
    if (++log->n_seen[kind] > MOST_OF_A_KIND)
        return RC_OK;
    void *row;
    RC_TRY(log_grow(log, LOG_ROWS(log, events, RC_LOG_MAX_EVENTS), &row, err));
    rc_log_event *event = row;
    if (!event)
        return RC_OK;
    log_context *context = log_context_of(reader, line);
    event->kind = kind;
    event->where = log_where(reader, line);
    event->rank = line->rank >= 0 ? line->rank : reader->file_rank;
    event->local_rank = line->local_rank;
    event->phase = context->is_open ? log_context_phase(reader, context) : RC_JOB_UNKNOWN;
    event->frames = context->is_open ? log_context_frames(context) : 0;
    return log_copy_line(log, line, line->body < line->hit ? line->body : 0, &event->text, err);
}

rc_code log_add_refusal(rc_log_reader *reader, const log_line *line, const char *rule,
                        rc_error *err)
{
    rc_log *log = reader->log;
    for (size_t i = 0; i < log->n_refusals; i++)
        if (strcmp(log->refusals[i].rule, rule) == 0)
            return RC_OK;
    void *row;
    RC_TRY(log_grow(log, LOG_ROWS(log, refusals, 64), &row, err));
    rc_log_refusal *refusal = row;
    if (!refusal)
        return RC_OK;
    refusal->rule = rule;
    refusal->where = log_where(reader, line);
    return log_copy_line(log, line, line->body, &refusal->text, err);
}

rc_code log_rank_of(rc_log_reader *reader, const log_line *line, int rank, rc_log_rank **out,
                    rc_error *err)
{
    rc_log *log = reader->log;
    *out = NULL;
    /* Ranks print in turn: the one wanted is most often near the one found last. */
    for (size_t i = log->n_ranks; i-- > 0 && !*out;)
        if (log->ranks[i].rank == rank)
            *out = &log->ranks[i];
    if (!*out) {
        void *row;
        RC_TRY(log_grow(log, LOG_ROWS(log, ranks, RC_LOG_MAX_RANKS), &row, err));
        *out = row;
        if (!*out)
            return RC_OK;
        (*out)->rank = rank;
        (*out)->iteration = (*out)->allocated_bytes = (*out)->max_allocated_bytes =
            RC_LOG_UNKNOWN;
        (*out)->reserved_bytes = (*out)->max_reserved_bytes = RC_LOG_UNKNOWN;
        (*out)->device_bytes = (*out)->alloc_retries = RC_LOG_UNKNOWN;
    }
    (*out)->where = log_where(reader, line);
    return RC_OK;
}

LOG_HANDLER(none)
{
    (void)reader;
    (void)kind;
    (void)line;
    (void)err;
    return RC_OK;
}

LOG_HANDLER(event)
{
    return log_add_event(reader, line, kind, err);
}

/* --- the stream */

static int64_t count_newlines(const char *at, const char *end)
{
    int64_t n = 0;
    while (at < end) {
        /* In pieces of 255 the counter fits a byte, which lets the compiler count 16 at a time. */
        size_t piece = (size_t)(end - at) < 255 ? (size_t)(end - at) : 255;
        uint8_t n_piece = 0;
        for (size_t i = 0; i < piece; i++)
            n_piece = (uint8_t)(n_piece + (at[i] == '\n'));
        n += n_piece;
        at += piece;
    }
    return n;
}

/* The line around `hit`, and its number. '\r' ends a line too: progress bars redraw with it. */
static void line_around(rc_log_reader *reader, const char *hit, log_line *line)
{
    const char *end = reader->buffer + reader->n;
    const char *raw = hit;
    const char *first =
        hit - reader->buffer > LOG_LINE_BYTES / 2 ? hit - LOG_LINE_BYTES / 2 : reader->buffer;
    while (raw > first && raw[-1] != '\n' && raw[-1] != '\r')
        raw--;
    size_t n = (size_t)(end - raw) < LOG_LINE_BYTES ? (size_t)(end - raw) : LOG_LINE_BYTES;
    const char *raw_end = memchr(raw, '\n', n);
    raw_end = raw_end ? raw_end : raw + n;
    const char *redraw = memchr(hit, '\r', (size_t)(raw_end - hit));
    raw_end = redraw ? redraw : raw_end;
    if (raw > reader->counted) {
        reader->n_lines += count_newlines(reader->counted, raw);
        reader->counted = raw;
    }
    log_line_make(raw, raw_end, hit, reader->clean, line);
    line->number = reader->n_lines + 1;
}

static rc_code read_hit(rc_log_reader *reader, rc_log_kind kind, const char *hit, rc_error *err)
{
    log_line line;
    line_around(reader, hit, &line);
    const char *also = log_patterns[kind].also;
    if (also[0] && !log_has(&line, also))
        return RC_OK;
    reader->tick++;
    return handlers[kind](reader, kind, &line, err);
}

/* Reads every line that begins before `limit`. */
static rc_code read_region(rc_log_reader *reader, const char *limit, rc_error *err)
{
    const char *end = reader->buffer + reader->n;
    const char *at = reader->buffer;
    while (at < limit) {
        const char *hit;
        if (reader->is_boxed) {
            /* A boxed traceback has no keywords of its own: every line of it is read. */
            log_line line;
            line_around(reader, at, &line);
            RC_TRY(log_handle_frame(reader, RC_LOG_FRAME, &line, err));
            at = line.raw_end + 1;
            continue;
        }
        rc_log_kind kind = log_scan_find(&reader->scan, at, end, &hit);
        if (kind == RC_LOG_KIND_COUNT || hit >= limit)
            break;
        RC_TRY(read_hit(reader, kind, hit, err));
        at = hit + 1;
        if (reader->is_boxed) {
            const char *newline = memchr(hit, '\n', (size_t)(end - hit));
            at = newline ? newline + 1 : end;
        }
    }
    if (limit > reader->counted) {
        reader->n_lines += count_newlines(reader->counted, limit);
        reader->counted = limit;
    }
    return RC_OK;
}

/* Behind the last newline that leaves LOG_AHEAD_BYTES, or that far into one endless line. */
static const char *whole_lines(const rc_log_reader *reader)
{
    const char *limit = reader->buffer + reader->n - LOG_AHEAD_BYTES;
    const char *first =
        limit - reader->buffer > LOG_AHEAD_BYTES ? limit - LOG_AHEAD_BYTES : reader->buffer;
    for (const char *at = limit; at > first; at--)
        if (at[-1] == '\n')
            return at;
    return limit;
}

static rc_code read_full_buffer(rc_log_reader *reader, rc_error *err)
{
    const char *limit = whole_lines(reader);
    RC_TRY(read_region(reader, limit, err));
    size_t done = (size_t)(limit - reader->buffer);
    memmove(reader->buffer, limit, reader->n - done);
    reader->n -= done;
    reader->counted = reader->buffer;
    return RC_OK;
}

rc_code rc_log_open(const char *name, int rank, rc_log *log, rc_log_reader **out, rc_error *err)
{
    rc_log_reader *reader;
    RC_TRY(RC_NEW(log->mem, &reader, 1, err));
    RC_TRY(rc_arena_copy(log->mem, name, strlen(name), &reader->name, err));
    RC_TRY(RC_NEW(log->mem, &reader->buffer, LOG_BUFFER_BYTES + LOG_AHEAD_BYTES, err));
    reader->log = log;
    log->path = reader->name;
    reader->file_rank = rank;
    reader->counted = reader->buffer;
    reader->mismatch_position = RC_LOG_UNKNOWN;
    log_scan_make(&reader->scan);
    *out = reader;
    return RC_OK;
}

rc_code rc_log_feed(rc_log_reader *reader, const char *bytes, size_t n_bytes, rc_error *err)
{
    const size_t room = LOG_BUFFER_BYTES + LOG_AHEAD_BYTES;
    reader->log->n_bytes += (int64_t)n_bytes;
    while (n_bytes > 0) {
        size_t n = room - reader->n < n_bytes ? room - reader->n : n_bytes;
        memcpy(reader->buffer + reader->n, bytes, n);
        reader->n += n;
        bytes += n;
        n_bytes -= n;
        if (reader->n == room)
            RC_TRY(read_full_buffer(reader, err));
    }
    return RC_OK;
}

rc_code rc_log_finish(rc_log_reader *reader, rc_error *err)
{
    rc_log *log = reader->log;
    RC_TRY(read_region(reader, reader->buffer + reader->n, err));
    log->n_lines += reader->n_lines;
    if (reader->n > 0 && reader->buffer[reader->n - 1] != '\n')
        log->n_lines++;
    reader->n = 0;
    reader->counted = reader->buffer;
    for (size_t i = 0; i < LOG_CONTEXTS; i++) {
        log_context *context = &reader->contexts[i];
        if (context->is_open)
            log_context_close(reader, context);
    }
    return RC_OK;
}

/* "log_rank3.txt" and "rank-12.err" name their rank. */
static int rank_of_name(const char *path)
{
    const char *base = strrchr(path, '/');
    const char *at = strstr(base ? base + 1 : path, "rank");
    if (!at)
        return RC_LOG_UNKNOWN;
    at += 4;
    at += *at == '-' || *at == '_' || *at == '.' || *at == '=';
    int rank = 0, n = 0;
    for (; *at >= '0' && *at <= '9' && n < 7; at++, n++)
        rank = rank * 10 + (*at - '0');
    return n > 0 ? rank : RC_LOG_UNKNOWN;
}

/* A packed log that ends early (the job died while it wrote) is read up to where it ends. */
static rc_code feed_all(rc_unpack *from, rc_log_reader *reader, rc_error *err)
{
    unsigned char piece[1 << 16];
    size_t n = sizeof piece;
    while (n == sizeof piece) {
        rc_error damage = {.code = RC_OK};
        rc_code code = rc_unpack_read(from, piece, sizeof piece, &n, &damage);
        if (code == RC_E_INPUT) {
            reader->log->is_cut_short = true;
            break;
        }
        if (code != RC_OK)
            return RC_FAIL(err, code, damage.where, "%s", damage.msg);
        RC_TRY(rc_log_feed(reader, (const char *)piece, n, err));
    }
    return rc_log_finish(reader, err);
}

rc_code rc_log_read(const char *path, rc_log *log, rc_error *err)
{
    rc_unpack *from = NULL;
    rc_log_reader *reader;
    rc_code code = rc_unpack_open(path, log->mem, &from, err);
    if (code == RC_OK)
        code = rc_log_open(strcmp(path, "-") == 0 ? "standard input" : path, rank_of_name(path),
                           log, &reader, err);
    if (code == RC_OK)
        code = feed_all(from, reader, err);
    rc_unpack_close(from);
    return code;
}

const rc_log_event *rc_log_find(const rc_log *log, rc_log_kind kind)
{
    for (size_t i = 0; i < log->n_events; i++)
        if (log->events[i].kind == kind)
            return &log->events[i];
    return NULL;
}

rc_code rc_log_verify(const rc_log *log, rc_error *err)
{
    if (log->n_ooms > RC_LOG_MAX_OOMS || log->n_events > RC_LOG_MAX_EVENTS ||
        log->n_ranks > RC_LOG_MAX_RANKS)
        return RC_FAIL(err, RC_E_BUG, RC_NOWHERE, "a log keeps more facts than its bounds");
    for (size_t i = 0; i < log->n_ooms; i++) {
        const rc_oom *oom = &log->ooms[i];
        if (oom->requested_bytes < RC_LOG_UNKNOWN || oom->idle_bytes < RC_LOG_UNKNOWN ||
            oom->other_bytes < RC_LOG_UNKNOWN || oom->phase >= RC_JOB_COUNT)
            return RC_FAIL(err, RC_E_BUG, oom->where, "a size of this message is negative");
    }
    for (size_t i = 0; i < log->n_events; i++)
        if (!log->events[i].text)
            return RC_FAIL(err, RC_E_BUG, log->events[i].where, "this event has no text");
    return RC_OK;
}
