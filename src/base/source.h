/* source.h — what every reader of text stands on: checked bytes, and the position of each. */
#ifndef RC_BASE_SOURCE_H
#define RC_BASE_SOURCE_H

#include <recompute/arena.h>
#include <recompute/doc.h>

/* A copy of the input, NUL-terminated, and a cursor that turns byte offsets into positions. The
 * cursor makes a run of rising offsets cost one pass over the bytes, whatever the line length. */
typedef struct rc_source {
    const char *path;
    const char *bytes;
    size_t n_bytes;
    /* cursor: an offset, where its line begins, and that line's number from 1 */
    size_t at;
    size_t line_start;
    int line;
} rc_source;

/* Copies the bytes and refuses what no text format may hold: a NUL, or bytes that are no UTF-8.
 * A UTF-8 byte-order mark is skipped by the readers (`rc_source_start`). */
RC_MUST_CHECK
rc_code rc_source_open(const char *path, const char *bytes, size_t n_bytes, rc_arena *mem,
                       rc_source *out, rc_error *err);
/* The same for logs, which nobody can correct: such bytes become question marks. */
RC_MUST_CHECK
rc_code rc_source_open_log(const char *path, const char *bytes, size_t n_bytes, rc_arena *mem,
                           rc_source *out, rc_error *err);
/* 3 when the bytes begin with a UTF-8 byte-order mark, else 0. */
size_t rc_source_start(const rc_source *source);
/* The position of the bytes at `offset`; lines end at LF. */
rc_where rc_source_where(rc_source *source, size_t offset, size_t n_cols);

#endif
