/* trace.c — tracebacks: which phase of a job a failure happened in.
 *
 * takes  frame lines, one process at a time, however the processes' lines are mixed
 * gives  the phase and what else the frames show, to the message that ends the traceback
 * next   oom.c and the error handler below attach it
 *
 * Frames come outermost first. The first that names a phase decides: forward frames inside
 * backward are a recompute, forward frames inside evaluation are evaluation. Rows of
 * log_frames.def that hold other phases (setup functions) give way; rows marked INNER refine.
 */
#include "log/parts.h"

#include <stdio.h>
#include <string.h>

enum { STRENGTH_HOLDER, STRENGTH_PHASE, STRENGTH_INNER, STRENGTH_LAST, STRENGTH_OPEN };
typedef enum frame_part { NAME, PART, CODE, PATH } frame_part;

typedef struct frame_row {
    frame_part where;
    const char *text;
    rc_job_phase phase;
    int strength;
    unsigned frames;
} frame_row;

static const frame_row frame_rows[] = {
#define RC_LOG_FRAME(where, text, phase, strength, frames)                                     \
    {where, text, RC_JOB_##phase, strength, frames},
#include "defs/log_frames.def"
#undef RC_LOG_FRAME
};

/* A frame, not terminated pieces of one or two lines. */
typedef struct frame {
    const char *path, *name, *code;
    size_t n_path, n_name, n_code;
} frame;

log_context *log_context_of(rc_log_reader *reader, const log_line *line)
{
    log_context *oldest = &reader->contexts[0];
    for (size_t i = 0; i < LOG_CONTEXTS; i++) {
        log_context *context = &reader->contexts[i];
        if (context->used_at > 0 && context->key == line->key) {
            context->used_at = reader->tick + 1;
            if (line->rank >= 0)
                context->rank = line->rank;
            return context;
        }
        if (context->used_at < oldest->used_at)
            oldest = context;
    }
    *oldest = (log_context){.key = line->key,
                            .used_at = reader->tick + 1,
                            .rank = line->rank >= 0 ? line->rank : reader->file_rank};
    return oldest;
}

enum { N_RECENT = sizeof((log_context *)0)->recent / sizeof *((log_context *)0)->recent };

unsigned log_context_frames(const log_context *context)
{
    unsigned recent = 0;
    for (int i = 0; i < N_RECENT && i < context->n_frames; i++)
        recent |= context->recent[i];
    return (context->frames & ~RC_FRAMES_TENSOR) | (recent & RC_FRAMES_TENSOR);
}

static void forget_frames(log_context *context)
{
    context->is_open = false;
    context->phase = RC_JOB_UNKNOWN;
    context->strength = STRENGTH_HOLDER;
    context->frames = 0;
    context->n_frames = 0;
    context->trace[0] = '\0';
    context->code[0] = '\0';
}

/* A traceback that lost its outer frames shows the forward of whichever loop ran. A frame of the
 * training loop settles it. Without one, and after an evaluation began, it is the evaluation's where
 * its end is printed and was not, and else either's. */
rc_job_phase log_context_phase(const rc_log_reader *reader, const log_context *context)
{
    if (context->phase != RC_JOB_FORWARD || (context->frames & RC_FRAMES_TRAIN) ||
        reader->eval == LOG_EVAL_NONE)
        return context->phase;
    return reader->eval == LOG_EVAL_RUNS ? RC_JOB_EVAL : RC_JOB_UNKNOWN;
}

void log_context_close(rc_log_reader *reader, log_context *context)
{
    rc_log *log = reader->log;
    if (context->is_open) {
        log->last_phase = log_context_phase(reader, context);
        if (log->last_phase == RC_JOB_UNKNOWN && log->phase == RC_JOB_EVAL)
            log->phase = RC_JOB_UNKNOWN; /* the evaluation's end is not printed */
        log->last_frames = log_context_frames(context);
        log->seen_frames |= context->frames;
        log->has_traceback = true;
        if (log->first_rank < 0)
            log->first_rank = context->rank;
    }
    forget_frames(context);
}

static bool row_matches(const frame_row *row, const frame *at)
{
    size_t n = strlen(row->text);
    switch (row->where) {
    case NAME:
        return at->n_name == n && memcmp(at->name, row->text, n) == 0;
    case PART:
        return log_find(at->name, at->n_name, row->text) != NULL;
    case CODE:
        return log_find(at->code, at->n_code, row->text) != NULL;
    case PATH:
        return log_find(at->path, at->n_path, row->text) != NULL;
    default:
        return false;
    }
}

/* Whether a row's phase replaces what outer frames said. */
static bool row_replaces(const log_context *context, const frame_row *row)
{
    rc_job_phase now = context->phase;
    if (now == RC_JOB_UNKNOWN || context->strength == STRENGTH_HOLDER)
        return true;
    if (context->strength == STRENGTH_LAST || row->strength == STRENGTH_HOLDER)
        return false;
    if (row->strength == STRENGTH_LAST)
        return true;
    bool is_step_phase =
        now == RC_JOB_FORWARD || now == RC_JOB_BACKWARD || now == RC_JOB_OPTIMIZER_STEP;
    if (row->strength == STRENGTH_INNER)
        return is_step_phase || now == RC_JOB_MODEL_BUILD;
    /* Strategies run the whole step inside one module call: backward in there is backward. */
    if (now == RC_JOB_FORWARD)
        return row->phase == RC_JOB_BACKWARD;
    return now == RC_JOB_MODEL_BUILD && row->phase == RC_JOB_CHECKPOINT_LOAD;
}

static void keep_trace(log_context *context, const frame *at)
{
    char path[LOG_NAME_BYTES], name[LOG_NAME_BYTES];
    size_t n_path = at->n_path < sizeof path ? at->n_path : sizeof path - 1;
    size_t n_name = at->n_name < sizeof name ? at->n_name : sizeof name - 1;
    memcpy(path, at->path + at->n_path - n_path, n_path);
    memcpy(name, at->name, n_name);
    path[n_path] = name[n_name] = '\0';
    snprintf(context->trace, sizeof context->trace, "%s in %s", name, path);
}

static void apply_row(log_context *context, const frame_row *row, const frame *at)
{
    context->frames |= row->frames;
    context->recent[context->n_frames % N_RECENT] |= row->frames;
    if (row->strength == STRENGTH_OPEN && context->phase == RC_JOB_OPTIMIZER_STEP) {
        context->phase = RC_JOB_UNKNOWN;
        context->strength = STRENGTH_HOLDER;
    }
    if (row->phase == RC_JOB_UNKNOWN || !row_replaces(context, row))
        return;
    rc_job_phase phase = row->phase;
    /* Construction of an optimizer object is not its step. */
    if (row->where == PATH && phase == RC_JOB_OPTIMIZER_STEP && at->n_name == 8 &&
        memcmp(at->name, "__init__", 8) == 0)
        phase = RC_JOB_OPTIMIZER_INIT;
    context->phase = phase;
    context->strength = row->strength;
    keep_trace(context, at);
}

static void read_frame(log_context *context, const frame *at)
{
    context->recent[context->n_frames % N_RECENT] = 0;
    for (size_t i = 0; i < sizeof frame_rows / sizeof *frame_rows; i++)
        if (row_matches(&frame_rows[i], at))
            apply_row(context, &frame_rows[i], at);
    context->n_frames =
        context->n_frames < INT32_MAX - N_RECENT ? context->n_frames + 1 : N_RECENT;
    context->is_open = true;
    size_t n = at->n_code < sizeof context->code ? at->n_code : sizeof context->code - 1;
    if (n)
        memcpy(context->code, at->code, n);
    context->code[n] = '\0';
}

rc_job_phase rc_log_phase_of(const char *const *names, const char *const *paths, size_t n)
{
    log_context context = {.rank = RC_LOG_UNKNOWN};
    for (size_t i = 0; i < n; i++) {
        frame at = {.path = paths[i], .name = names[i], .code = ""};
        at.n_path = strlen(paths[i]);
        at.n_name = strlen(names[i]);
        read_frame(&context, &at);
    }
    return context.phase;
}

/* --- finding the pieces */

static bool is_name_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '_' || c == '.' || c == '<' || c == '>';
}

/* "in NAME" behind `at`; of a dotted name the last part. */
static bool take_name(const char *at, const char *limit, frame *out)
{
    const char *in = log_find(at, (size_t)(limit - at), "in ");
    if (!in || in - at > 4)
        return false;
    const char *name = in + 3;
    const char *end = name;
    while (end < limit && is_name_byte(*end))
        end++;
    for (const char *dot = name; dot < end; dot++)
        if (*dot == '.' && dot + 1 < end)
            name = dot + 1;
    out->name = name;
    out->n_name = (size_t)(end - name);
    return out->n_name > 0;
}

/* `File "PATH", line 12, in NAME`; logs that lost `File "` still match. */
static bool take_plain_frame(const log_line *line, frame *out)
{
    const char *limit = line->text + line->n;
    const char *at = line->text + line->hit;
    const char *path_end = at > line->text && at[-1] == '"' ? at - 1 : at;
    const char *path = path_end;
    while (path > line->text && path[-1] != '"' && path[-1] != ' ')
        path--;
    out->path = path;
    out->n_path = (size_t)(path_end - path);
    double number;
    const char *end;
    if (!log_number(at + strlen(", line "), limit, &number, &end) || out->n_path == 0)
        return false;
    return take_name(end, limit, out);
}

/* `PATH.py:12 in NAME` of rich, `PATH.py:12, in NAME(...)` of IPython, `PATH.py in NAME(...)` of
 * older ones. */
static bool take_colon_frame(const log_line *line, frame *out)
{
    const char *limit = line->text + line->n;
    const char *colon = log_find(line->text, line->n, ".py:");
    double number;
    const char *end;
    if (!colon) {
        colon = log_find(line->text, line->n, ".py in ");
        end = colon ? colon + 3 : NULL;
    } else if (!log_number(colon + 4, limit, &number, &end)) {
        return false;
    }
    if (!colon)
        return false;
    const char *path = colon;
    while (path > line->text && path[-1] != ' ' && path[-1] != '"')
        path--;
    out->path = path;
    out->n_path = (size_t)(colon + 3 - path);
    return take_name(end, limit, out);
}

static bool looks_like_frame(const log_line *line)
{
    return log_has(line, "\", line ") || log_has(line, "Traceback (most recent");
}

/* The source line under a plain frame: the next line of the same process that is no frame. */
static void take_code_below(rc_log_reader *reader, const log_line *line, frame *out)
{
    enum { MOST = 24 };
    log_line at = *line, next;
    for (int i = 0; i < MOST && log_line_next(reader, &at, reader->ahead, &next); i++) {
        at.raw_end = next.raw_end;
        if (next.key != line->key)
            continue;
        const char *text = next.text + next.body;
        size_t n = next.n - next.body;
        bool is_message = log_find(text, n, "Error:") && n > 0 && text[0] != ' ';
        if (looks_like_frame(&next) || is_message)
            return;
        out->code = text;
        out->n_code = n;
        return;
    }
}

/* IPython and rich mark the line with an arrow. */
static void take_code_at_arrow(rc_log_reader *reader, const log_line *line, frame *out)
{
    enum { MOST = 10 };
    log_line at = *line, next;
    for (int i = 0; i < MOST && log_line_next(reader, &at, reader->ahead, &next); i++) {
        at.raw_end = next.raw_end;
        const char *arrow = log_find(next.text, next.n, "-> ");
        arrow = arrow ? arrow : log_find(next.text, next.n, "\xe2\x9d\xb1"); /* ❱ */
        if (!arrow)
            continue;
        out->code = arrow;
        out->n_code = (size_t)(next.text + next.n - arrow);
        return;
    }
}

/* --- handlers */

LOG_HANDLER(traceback)
{
    (void)kind;
    (void)err;
    log_context *context = log_context_of(reader, line);
    forget_frames(context);
    /* The header of a boxed traceback is drawn with U+2500. */
    reader->is_boxed = log_has(line, "\xe2\x94\x80");
    return RC_OK;
}

LOG_HANDLER(frame)
{
    (void)err;
    bool was_boxed = reader->is_boxed;
    if (was_boxed && (log_has(line, "\xe2\x95\xb0") || !log_has(line, "\xe2\x94\x82")))
        reader->is_boxed = false; /* the box's last line, or the box was cut */
    frame at = {.path = "", .name = "", .code = ""};
    bool is_plain = !was_boxed && kind == RC_LOG_FRAME && take_plain_frame(line, &at);
    bool is_colon = !is_plain && (was_boxed || kind != RC_LOG_FRAME) &&
                    !log_has(line, "\", line ") && take_colon_frame(line, &at);
    if (!is_plain && !is_colon)
        return RC_OK;
    if (is_plain)
        take_code_below(reader, line, &at);
    else
        take_code_at_arrow(reader, line, &at);
    read_frame(log_context_of(reader, line), &at);
    return RC_OK;
}

/* Launchers' and wrappers' reports of an error that another line states. */
static bool is_report_of_another(const log_line *line)
{
    static const char *const names[] = {"ChildFailedError",       "CalledProcessError",
                                        "RayTaskError",           "RayActorError",
                                        "ProcessRaisedException", "InstantiationException"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (log_has(line, names[i]))
            return true;
    return false;
}

static void add_lower(char *to, size_t room, const char *from, size_t n)
{
    size_t used = strlen(to);
    for (size_t i = 0; i < n && used + 1 < room; i++)
        to[used++] = from[i] >= 'A' && from[i] <= 'Z' ? (char)(from[i] + 32) : from[i];
    to[used] = '\0';
}

/* Compares the message, the asserted source line and the message's next line with the refusals
 * the frameworks are known for. */
static rc_code find_refusal(rc_log_reader *reader, const log_line *line, const char *code,
                            rc_error *err)
{
    static const struct {
        const char *rule, *words[3];
    } rows[] = {
#define RC_LOG_REFUSAL(rule, a, b, c) {rule, {a, b, c}},
#include "defs/log_refusals.def"
#undef RC_LOG_REFUSAL
    };
    char text[2048] = "";
    add_lower(text, sizeof text, line->text + line->body, line->n - line->body);
    add_lower(text, sizeof text, " ", 1);
    add_lower(text, sizeof text, code, strlen(code));
    log_line next;
    if (log_line_next(reader, line, reader->ahead, &next) && next.key == line->key) {
        add_lower(text, sizeof text, " ", 1);
        add_lower(text, sizeof text, next.text + next.body, next.n - next.body);
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool is_all = true;
        for (size_t k = 0; k < 3; k++)
            is_all = is_all && (rows[i].words[k][0] == '\0' || strstr(text, rows[i].words[k]));
        if (is_all)
            return log_add_refusal(reader, line, rows[i].rule, err);
    }
    return RC_OK;
}

LOG_HANDLER(refusal)
{
    (void)kind;
    return find_refusal(reader, line, "", err);
}

LOG_HANDLER(error)
{
    (void)kind;
    static const char *const refusing[] = {
        "AssertionError", "ValueError", "NotImplementedError", "KeyError", "ValidationError"};
    log_context *context = log_context_of(reader, line);
    bool is_memory = log_has(line, "ut of memory") || log_has(line, "MemoryError") ||
                     log_has(line, "Allocation on device");
    bool is_source =
        log_has(line, "except ") || log_has(line, "raise ") || log_has(line, "\", line ");
    if (is_memory || is_source || is_report_of_another(line))
        return RC_OK;
    /* The exception's name begins the line, or a traceback led here. */
    bool begins = line->hit >= line->body && line->hit - line->body < 80 &&
                  !memchr(line->text + line->body, ' ', line->hit - line->body);
    if (!begins && !context->is_open)
        return RC_OK;
    for (size_t i = 0; i < sizeof refusing / sizeof *refusing; i++)
        if (log_has(line, refusing[i])) {
            RC_TRY(find_refusal(reader, line, context->code, err));
            break;
        }
    RC_TRY(log_add_event(reader, line, RC_LOG_ERROR, err));
    reader->log->last_error = log_where(reader, line);
    log_context_close(reader, context);
    return RC_OK;
}
