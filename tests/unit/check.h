/* check.h — what every unit test needs: cmocka in its order, an arena, printed text as a string. */
#ifndef RC_TESTS_CHECK_H
#define RC_TESTS_CHECK_H

#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif

/* cmocka.h wants these four before it, in this order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <recompute/arena.h>

#include <stdio.h>
#include <stdlib.h>

#define assert_ok(call) assert_int_equal((call), RC_OK)

/* Text printed on a stream: open, print to `.to`, then check_close gives the string (free it). */
typedef struct check_text {
    char *at;
    size_t n;
    FILE *to;
} check_text;

static inline void check_open(check_text *text)
{
    text->to = open_memstream(&text->at, &text->n);
    assert_non_null(text->to);
}

static inline char *check_close(check_text *text)
{
    fclose(text->to);
    return text->at;
}

#endif
