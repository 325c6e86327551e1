/* reader.h — what the readers of this folder share: checked source text, positions, and nodes. */
#ifndef RC_READ_READER_H
#define RC_READ_READER_H

#include <recompute/arena.h>
#include <recompute/doc.h>
#include <recompute/read.h>

/* A copy of the input, NUL-terminated, and a cursor that turns byte offsets into positions. The
 * cursor makes a run of rising offsets cost one pass over the bytes, whatever the line length. */
typedef struct rc_source {
    const char *path;
    const char *bytes;
    size_t n_bytes;
    size_t at;         /* cursor: an offset, */
    size_t line_start; /* where its line begins, */
    int line;          /* and that line's number from 1 */
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

/* Makes nodes: counts them against RC_READ_MAX_NODES and packs their strings, so that a large
 * file does not pay RC_ALIGN for each. */
typedef struct rc_nodes {
    rc_arena *mem;
    size_t n;
    char *room;
    size_t n_room;
} rc_nodes;

RC_MUST_CHECK
rc_code rc_nodes_text(rc_nodes *nodes, const char *bytes, size_t n, const char **out,
                      rc_error *err);
RC_MUST_CHECK
rc_code rc_nodes_add(rc_nodes *nodes, rc_doc_kind kind, rc_where where, rc_doc **out,
                     rc_error *err);
/* A STRING with its text. */
RC_MUST_CHECK
rc_code rc_nodes_add_string(rc_nodes *nodes, rc_where where, const char *bytes, size_t n,
                            rc_doc **out, rc_error *err);

/* Refuses two children of `map` with one key, naming both places. Sorts, so that no choice of
 * keys makes it slow. */
RC_MUST_CHECK
rc_code rc_doc_check_keys(const rc_doc *map, rc_arena *mem, rc_error *err);

/* A scalar of a command line: null, numbers, true and false; yes, no, on and off are words here,
 * unlike in YAML. */
void rc_doc_resolve_word(rc_doc *node);

/* Takes `node` out of the children of `map`. */
void rc_doc_remove(rc_doc *map, rc_doc *node);

/* Does the path end as a file of configuration does: .yaml, .json, .sh, ...? */
bool rc_reader_is_named(const char *path);

#endif
