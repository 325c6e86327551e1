/* args/sum.c — $((...)) of a shell script, over whole numbers.
 *
 * Anything else in the brackets, or a result past 2^31, leaves the value unknown.
 */
#include "args/expand.h"

#include "base/num.h"

#include <string.h>

enum { MAX_DEPTH = 16 };
static const int64_t MAX_VALUE = INT64_C(1) << 31;

typedef struct sum {
    rc_shell_reader *r;
    const char *at, *end;
    int depth;
} sum;

static void skip_space(sum *s)
{
    while (s->at < s->end && strchr(" \t\n", *s->at))
        s->at++;
}

static int peek(const sum *s)
{
    return s->at < s->end ? (unsigned char)*s->at : -1;
}

static bool read_sum(sum *s, int64_t *out);

static bool read_brackets(sum *s, int64_t *out)
{
    s->at++;
    bool is_sum = ++s->depth <= MAX_DEPTH && read_sum(s, out);
    s->depth--;
    skip_space(s);
    bool is_closed = is_sum && peek(s) == ')';
    s->at += is_closed;
    return is_closed;
}

static bool is_small(int64_t value)
{
    return value < MAX_VALUE && value > -MAX_VALUE;
}

/* A variable that holds one whole number. */
static bool find_value(sum *s, const char *name, size_t n, int64_t *out)
{
    const rc_shell_variable *variable = rc_shell_variable_find(s->r, name, n);
    if (!variable || variable->words.n != 1 || variable->words.at[0].is_unknown)
        return false;
    return rc_parse_int(variable->words.at[0].text, out) && is_small(*out);
}

/* A number, a variable with or without $ and braces, or a sum in brackets. */
static bool read_atom(sum *s, int64_t *out)
{
    char text[32];
    skip_space(s);
    if (peek(s) == '(')
        return read_brackets(s, out);
    s->at += peek(s) == '$';
    bool has_brace = peek(s) == '{';
    s->at += has_brace;
    size_t n = 0;
    while (s->at + n < s->end && rc_shell_is_name(s->at[n]))
        n++;
    if (n == 0 || n >= sizeof text)
        return false;
    memcpy(text, s->at, n);
    text[n] = '\0';
    s->at += n;
    if (has_brace && peek(s) != '}')
        return false;
    s->at += has_brace;
    return rc_shell_is_name_start(text[0]) ? find_value(s, text, n, out)
                                           : rc_parse_int(text, out) && is_small(*out);
}

static bool read_product(sum *s, int64_t *out)
{
    if (!read_atom(s, out))
        return false;
    for (;;) {
        skip_space(s);
        if (s->at >= s->end || !strchr("*/%", *s->at))
            return true;
        char op = *s->at++;
        int64_t right;
        if (!read_atom(s, &right) || (op != '*' && right == 0))
            return false;
        *out = op == '*' ? *out * right : op == '/' ? *out / right : *out % right;
        if (!is_small(*out))
            return false;
    }
}

static bool read_sum(sum *s, int64_t *out)
{
    if (!read_product(s, out))
        return false;
    for (;;) {
        skip_space(s);
        if (s->at >= s->end || !strchr("+-", *s->at))
            return true;
        char op = *s->at++;
        int64_t right;
        if (!read_product(s, &right))
            return false;
        *out = op == '+' ? *out + right : *out - right;
        if (!is_small(*out))
            return false;
    }
}

bool rc_shell_arithmetic(rc_shell_reader *r, const char *text, size_t n, int64_t *out)
{
    sum s = {.r = r, .at = text, .end = text + n};
    if (!read_sum(&s, out))
        return false;
    skip_space(&s);
    return s.at == s.end;
}
