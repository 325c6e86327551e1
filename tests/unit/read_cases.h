/* read_cases.h — tests of readers: an input, and either the printed tree or where and how it fails.
 *
 * Positions are drawn: `caret` is a string with one ^ under the expected column of the line that
 * the error names, so that a case shows what a user would see.
 */
#ifndef READ_CASES_H
#define READ_CASES_H

#include <recompute/read.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef rc_code read_fn(const char *path, const char *bytes, size_t n_bytes, rc_arena *mem,
                        rc_doc **out, rc_error *err);

/* Compact form of a tree: {a: 1, b: [x, null]}; strings bare, floats with %g, booleans as T F. */
static inline void show_tree(const rc_doc *doc, char *buf, size_t room)
{
    size_t n = strlen(buf);
#define ADD(...) (n += (size_t)snprintf(buf + n, n < room ? room - n : 0, __VA_ARGS__))
    switch (doc->kind) {
    case RC_DOC_NULL:
        ADD("null");
        return;
    case RC_DOC_BOOL:
        ADD("%s", doc->i ? "T" : "F");
        return;
    case RC_DOC_INT:
        ADD("%lld", (long long)doc->i);
        return;
    case RC_DOC_FLOAT:
        ADD("%gf", doc->f);
        return;
    case RC_DOC_STRING:
        ADD("'%s'", doc->text);
        return;
    case RC_DOC_LIST:
    case RC_DOC_MAP:
        break;
    }
    ADD("%s", doc->kind == RC_DOC_LIST ? "[" : "{");
    for (const rc_doc *child = doc->child; child; child = child->next) {
        if (child->key)
            ADD("%s: ", child->key);
        show_tree(child, buf, room);
        n = strlen(buf);
        if (child->next)
            ADD(", ");
    }
    ADD("%s", doc->kind == RC_DOC_LIST ? "]" : "}");
#undef ADD
}

/* Reads `text` and compares the tree with `expected`. */
static inline void expect_tree(read_fn *read, const char *text, const char *expected)
{
    rc_arena *mem = rc_arena_open();
    rc_error err = {0};
    rc_doc *doc = NULL;
    char shown[8192] = "";
    if (read("x", text, strlen(text), mem, &doc, &err) != RC_OK)
        fail_msg("%s\n  refused at %d:%d: %s", text, err.where.line, err.where.col, err.msg);
    show_tree(doc, shown, sizeof shown);
    assert_string_equal(shown, expected);
    rc_arena_close(mem);
}

/* Reads bytes that must be refused on line `line`, with ^ of `caret` at the column, and with a
 * message that contains `says`. */
static inline void expect_refused_bytes(read_fn *read, const char *bytes, size_t n, int line,
                                        const char *caret, const char *says)
{
    rc_arena *mem = rc_arena_open();
    rc_error err = {0};
    rc_doc *doc = NULL;
    rc_code code = read("x.yaml", bytes, n, mem, &doc, &err);
    if (code != RC_E_INPUT && code != RC_E_RANGE)
        fail_msg("not refused: %.60s", bytes);
    if (!strstr(err.msg, says))
        fail_msg("the message is \"%s\", expected \"%s\"", err.msg, says);
    assert_int_equal(err.where.line, line);
    assert_int_equal(err.where.col, (int)strcspn(caret, "^") + 1);
    assert_string_equal(err.where.file, "x.yaml");
    rc_arena_close(mem);
}

static inline void expect_refused(read_fn *read, const char *text, int line, const char *caret,
                                  const char *says)
{
    expect_refused_bytes(read, text, strlen(text), line, caret, says);
}

#endif
