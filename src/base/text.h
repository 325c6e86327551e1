/* text.h — growing strings in an arena, and comparing names people typed. */
#ifndef RC_BASE_TEXT_H
#define RC_BASE_TEXT_H

#include <recompute/arena.h>

#include <stdio.h>

/* A growing string. Zero-initialise with `mem` set; `at` is NUL-terminated once anything was
 * added (NULL before). A failed add leaves what was there. */
typedef struct rc_text {
    rc_arena *mem;
    char *at;
    size_t n, n_room;
} rc_text;

RC_MUST_CHECK
rc_code rc_text_add(rc_text *text, const char *bytes, size_t n, rc_error *err);
RC_MUST_CHECK
rc_code rc_text_printf(rc_text *text, rc_error *err, const char *fmt, ...) RC_PRINTF(3, 4);

/* Behind the last dot of a path; all of it where there is none. */
const char *rc_text_last_part(const char *path);

/* Edit distance (insert, delete, replace, swap neighbours), for "did you mean". */
size_t rc_text_distance(const char *a, const char *b);
/* The same where it is at most `most`, else some number above `most`; many times faster. */
size_t rc_text_distance_within(const char *a, const char *b, size_t most);

/* The name nearest to `typed` among `n` names, or NULL when none is near enough to suggest. */
const char *rc_text_nearest(const char *typed, const char *const *names, size_t n);

/* Copies at most `room`-1 bytes of `bytes` to `buf`, each control or non-UTF-8 byte as \xNN, so
 * that untrusted text cannot drive a terminal. Returns buf. */
const char *rc_text_printable(const char *bytes, size_t n, char *buf, size_t room);

/* Length of the well-formed UTF-8 sequence at `at` (RFC 3629), or 0. */
size_t rc_text_utf8_length(const unsigned char *at, size_t n);
/* The same, but 0 for control characters too (C0, DEL, C1). */
size_t rc_text_printable_length(const unsigned char *at, size_t n);

/* Columns that printable UTF-8 text takes on a terminal: 0 for combining marks, 2 for wide East
 * Asian characters and emoji, else 1. */
size_t rc_text_width(const char *text);

/* `text` as a JSON string. Bytes that are no UTF-8 become U+FFFD, so the output is always valid; C1
 * controls too, since JSON is read on terminals. */
void rc_json_write_string(const char *text, FILE *to);

#endif
