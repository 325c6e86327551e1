/* parts.h — what the parts of the log reader share (src/log/ only). */
#ifndef RC_LOG_PARTS_H
#define RC_LOG_PARTS_H

#include "log/scan.h"

enum {
    LOG_BUFFER_BYTES = 1 << 20,
    LOG_AHEAD_BYTES = 1 << 15, /* kept behind a line that is read: messages go on there */
    LOG_LINE_BYTES = 1 << 14,  /* a longer line is read in windows of this size */
    LOG_CONTEXTS = 64,
    LOG_NAME_BYTES = 96
};

/* What the marks say of an evaluation since the last finished step. */
typedef enum log_eval { LOG_EVAL_NONE, LOG_EVAL_RUNS, LOG_EVAL_MAY_BE_OVER } log_eval;

/* A traceback in the making, one per rank or process that prints. */
typedef struct log_context {
    uint64_t key;
    int64_t used_at;
    int rank;
    /* frames were seen since the last message */
    bool is_open;
    rc_job_phase phase;
    int strength;
    unsigned frames;
    /* bits of the innermost frames, a ring */
    unsigned recent[6];
    int n_frames;
    /* the frame that decided */
    char trace[LOG_NAME_BYTES * 2 + 8];
    /* the last source line */
    char code[LOG_NAME_BYTES * 2];
} log_context;

/* One line, cleaned of colours and with its prefixes understood. */
typedef struct log_line {
    /* not terminated */
    const char *text;
    size_t n;
    /* where the text behind the prefixes begins */
    size_t body;
    /* where the keyword begins */
    size_t hit;
    int64_t number;
    int rank, local_rank, gpu;
    /* of the process: rank, pid or 0 */
    uint64_t key;
    /* where the next line begins in the buffer */
    const char *raw_end;
} log_line;

struct rc_log_reader {
    rc_log *log;
    const char *name;
    int file_rank;
    /* LOG_BUFFER_BYTES + LOG_AHEAD_BYTES */
    char *buffer;
    /* bytes in it */
    size_t n;
    /* newlines before this are in n_lines */
    const char *counted;
    int64_t n_lines;
    int64_t tick;
    /* inside a rich traceback's frame of lines */
    bool is_boxed;
    /* the buffer's first byte begins a line */
    bool has_started;
    log_scan scan;
    log_context contexts[LOG_CONTEXTS];
    char clean[LOG_LINE_BYTES + 64];
    char ahead[LOG_LINE_BYTES + 64];
    int64_t mismatch_position;
    log_eval eval;
};

/* --- line.c: lines, prefixes, numbers */
void log_line_make(const char *raw, const char *raw_end, const char *hit, char *room,
                   log_line *line);
/* The line behind `line`; false at the end of what is buffered. Cleaned into `room`. */
bool log_line_next(const rc_log_reader *reader, const log_line *line, char *room,
                   log_line *next);
/* The first `needle` in text[0..n), or NULL. */
const char *log_find(const char *text, size_t n, const char *needle);
bool log_has(const log_line *line, const char *needle);
/* Behind the first `needle` at or after `from`: the number there. Blanks, ':' and '=' are skipped. */
bool log_number_after(const log_line *line, size_t from, const char *needle, double *value);
/* A plain number at `at`; *end behind it. Accepts nan and inf. */
bool log_number(const char *at, const char *limit, double *value, const char **end);
/* "1.25 GiB", "512 bytes", with or without the blank. */
bool log_size(const char *at, const char *limit, int64_t *bytes, const char **end);
int64_t log_bytes_of(double value, double unit);

/* --- log.c: adding facts */
rc_where log_where(const rc_log_reader *reader, const log_line *line);
RC_MUST_CHECK
rc_code log_copy_line(rc_log *log, const log_line *line, size_t from, const char **out,
                      rc_error *err);
RC_MUST_CHECK
rc_code log_add_event(rc_log_reader *reader, const log_line *line, rc_log_kind kind,
                      rc_error *err);
RC_MUST_CHECK
rc_code log_add_refusal(rc_log_reader *reader, const log_line *line, const char *rule,
                        rc_error *err);
RC_MUST_CHECK
rc_code log_rank_of(rc_log_reader *reader, const log_line *line, int rank, rc_log_rank **out,
                    rc_error *err);
/* A table of the log: LOG_ROWS(log, ooms, RC_LOG_MAX_OOMS). */
typedef struct log_rows {
    void **at;
    size_t *n, *room, row_bytes, max;
} log_rows;
#define LOG_ROWS(log, name, max)                                                               \
    ((log_rows){(void **)&(log)->name, &(log)->n_##name, &(log)->room_##name,                  \
                sizeof *(log)->name, (max)})
/* Grows a table by one zeroed row, up to `max`; *row NULL when it is full. */
RC_MUST_CHECK
rc_code log_grow(rc_log *log, log_rows rows, void **row, rc_error *err);

/* --- trace.c */
log_context *log_context_of(rc_log_reader *reader, const log_line *line);
/* What the frames so far show; of the bits that name a tensor only those of the innermost. */
unsigned log_context_frames(const log_context *context);
/* The phase the frames show, where an evaluation may have run them weighed in. */
rc_job_phase log_context_phase(const rc_log_reader *reader, const log_context *context);
/* Ends the context's traceback: what it said stays readable until the next frame. */
void log_context_close(rc_log_reader *reader, log_context *context);

/* --- handlers named in log_patterns.def */
#define LOG_HANDLER(name)                                                                      \
    RC_MUST_CHECK rc_code log_handle_##name(rc_log_reader *reader, rc_log_kind kind,           \
                                            const log_line *line, rc_error *err)
LOG_HANDLER(none);
LOG_HANDLER(event);
LOG_HANDLER(oom);
LOG_HANDLER(oom_name);
LOG_HANDLER(oom_async);
LOG_HANDLER(oom_gaudi);
LOG_HANDLER(expandable);
LOG_HANDLER(exit);
LOG_HANDLER(host);
LOG_HANDLER(host_error);
LOG_HANDLER(mismatch);
LOG_HANDLER(memory);
LOG_HANDLER(memory_ds);
LOG_HANDLER(memory_kv);
LOG_HANDLER(estimate);
LOG_HANDLER(train);
LOG_HANDLER(train_kv);
LOG_HANDLER(train_hf);
LOG_HANDLER(mark);
LOG_HANDLER(setting);
LOG_HANDLER(refusal);
LOG_HANDLER(traceback);
LOG_HANDLER(frame);
LOG_HANDLER(error);

#endif
