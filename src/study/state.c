/* state.c — which runs of a launched study are finished. */
#define _POSIX_C_SOURCE 200809L
#include "study/state.h"

#include "base/file.h"
#include "base/num.h"
#include "base/text.h"

#include <recompute/read.h>

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

enum { MAX_STATE_BYTES = 1 << 24 };

/* A JSON string; commands may hold any byte a shell takes. */
static rc_code add_quoted(rc_text *line, const char *text, rc_error *err)
{
    RC_TRY(rc_text_add(line, "\"", 1, err));
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (*c == '"' || *c == '\\')
            RC_TRY(rc_text_printf(line, err, "\\%c", *c));
        else if (*c < 0x20)
            RC_TRY(rc_text_printf(line, err, "\\u%04x", *c));
        else
            RC_TRY(rc_text_add(line, (const char *)c, 1, err));
    }
    return rc_text_add(line, "\"", 1, err);
}

/* What must be the same for two launches to be one study. */
static rc_code make_head(const rc_launch *launch, rc_text *line, rc_error *err)
{
    RC_TRY(rc_text_printf(line, err, "{\"command\": "));
    RC_TRY(add_quoted(line, launch->command, err));
    RC_TRY(rc_text_printf(line, err, ", \"rows\": ["));
    for (size_t i = 0; i < launch->n_rows; i++) {
        RC_TRY(rc_text_printf(line, err, "%s[", i ? ", " : ""));
        RC_TRY(add_quoted(line, launch->rows[i].setting, err));
        RC_TRY(rc_text_printf(line, err, ", "));
        RC_TRY(add_quoted(line, launch->rows[i].overrides, err));
        RC_TRY(rc_text_printf(line, err, "]"));
    }
    return rc_text_printf(line, err, "]}");
}

static rc_code write_head(const rc_study_state *state, const rc_text *head, rc_error *err)
{
    rc_out_file file;
    RC_TRY(rc_out_file_open(state->path, &file, err));
    fprintf(file.to, "%s\n", head->at);
    return rc_out_file_commit(&file, err);
}

static int64_t int_of(const rc_doc *line, const char *key)
{
    const rc_doc *node = rc_doc_find(line, key);
    return node && node->kind == RC_DOC_INT ? node->i : -1;
}

/* {"run": 3, "end": 0, "status": 0, "ms": 1234, "cpu_ms": 2100} */
static rc_code read_run(rc_study_state *state, const char *bytes, size_t n, int line_number,
                        rc_arena *mem, rc_error *err)
{
    rc_doc *line;
    RC_TRY(rc_json_read(state->path, bytes, n, mem, &line, err));
    int64_t run = int_of(line, "run"), end = int_of(line, "end");
    rc_where at = {.file = state->path, .line = line_number, .col = 1};
    if (run < 0 || run >= (int64_t)state->n_runs || end < 0 || end > RC_PROCESS_TIMEOUT)
        return RC_FAIL(
            err, RC_E_INPUT, at,
            "this is no run of the study; remove the line and the run is made again");
    int64_t cpu_ms = int_of(line, "cpu_ms");
    state->runs[run] = (rc_study_run){
        .is_done = true,
        .result = {.end = (rc_process_end)end,
                   .status = (int)int_of(line, "status"),
                   .seconds = (double)int_of(line, "ms") / 1e3,
                   .cpu_seconds = cpu_ms < 0 ? (double)NAN : (double)cpu_ms / 1e3}};
    return RC_OK;
}

/* Without the torn line, to which the next one would be glued. */
static rc_code write_whole_lines(const rc_study_state *state, const char *bytes, size_t n,
                                 rc_error *err)
{
    rc_out_file file;
    RC_TRY(rc_out_file_open(state->path, &file, err));
    fwrite(bytes, 1, n, file.to);
    return rc_out_file_commit(&file, err);
}

static rc_code read_state(rc_study_state *state, const rc_text *head, const char *bytes,
                          size_t n_bytes, rc_arena *mem, rc_error *err)
{
    int line_number = 0;
    for (size_t at = 0; at < n_bytes;) {
        const char *end = memchr(bytes + at, '\n', n_bytes - at);
        if (!end && at == 0)
            return write_head(state, head, err);
        if (!end)
            return write_whole_lines(state, bytes, at, err);
        size_t n = (size_t)(end - (bytes + at));
        if (line_number++ == 0) {
            rc_where where = {.file = state->path, .line = 1, .col = 1};
            if (n != head->n || memcmp(bytes + at, head->at, n) != 0)
                return RC_FAIL(err, RC_E_INPUT, where,
                               "the folder holds a study of another command or other "
                               "settings; name another folder with --out, or remove it");
        } else {
            RC_TRY(read_run(state, bytes + at, n, line_number, mem, err));
        }
        at += n + 1;
    }
    return RC_OK;
}

rc_code rc_study_state_open(const rc_launch *launch, size_t n_runs, rc_arena *mem,
                            rc_study_state *state, rc_error *err)
{
    const char *bytes;
    size_t n_bytes;
    bool exists;
    rc_text head = {.mem = mem};
    *state = (rc_study_state){.n_runs = n_runs};
    RC_TRY(rc_arena_printf(mem, &state->path, err, "%s/state.jsonl", launch->folder));
    RC_TRY(RC_NEW(mem, &state->runs, n_runs, err));
    RC_TRY(make_head(launch, &head, err));
    RC_TRY(rc_path_make_directory(launch->folder, err));
    RC_TRY(rc_path_look(state->path, &exists, err)); /* else its runs would be lost */
    if (!exists)
        return write_head(state, &head, err);
    RC_TRY(rc_file_read(state->path, MAX_STATE_BYTES, mem, &bytes, &n_bytes, err));
    return read_state(state, &head, bytes, n_bytes, mem, err);
}

rc_code rc_study_state_add(rc_study_state *state, size_t run, const rc_process_result *result,
                           rc_error *err)
{
    FILE *to;
    state->runs[run] = (rc_study_run){.is_done = true, .result = *result};
    RC_TRY(rc_stream_open(state->path, "a", &to, err));
    fprintf(to, "{\"run\": %zu, \"end\": %d, \"status\": %d, \"ms\": %.0f", run,
            (int)result->end, result->status, result->seconds * 1e3);
    if (isfinite(result->cpu_seconds))
        fprintf(to, ", \"cpu_ms\": %.0f", result->cpu_seconds * 1e3);
    fprintf(to, "}\n");
    int why = rc_stream_flush(to);
    if (!why && fsync(fileno(to)) != 0)
        why = errno;
    if (fclose(to) != 0 && !why)
        why = errno;
    if (why)
        return RC_FAIL(err, RC_E_IO, (rc_where){.file = state->path}, "cannot write: %s",
                       strerror(why));
    return RC_OK;
}
