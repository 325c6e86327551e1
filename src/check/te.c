/* te.c — which Transformer Engine: a version as numbers that compare. */
#include "check/te.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

enum { EPOCH, PARTS, PHASE = PARTS + 6, PHASE_NUMBER, POST, DEV, LOCAL };
enum { N_PARTS = 6 };
#define LOWEST INT64_MIN
#define HIGHEST INT64_MAX

static bool take_number(const char **at, int64_t *out)
{
    if (!isdigit((unsigned char)**at))
        return false;
    for (*out = 0; isdigit((unsigned char)**at); (*at)++)
        if (*out < INT64_MAX / 16)
            *out = *out * 10 + (**at - '0');
    return true;
}

static void skip_separator(const char **at)
{
    if (**at && strchr(".-_", **at))
        (*at)++;
}

/* A word behind an optional separator, then an optional number (0 when missing). */
static bool take_word(const char **at, const char *const *words, size_t n, int64_t *number)
{
    const char *start = *at;
    skip_separator(&start);
    for (size_t i = 0; i < n; i++) {
        size_t length = strlen(words[i]);
        if (strncasecmp(start, words[i], length) != 0 || isalpha((unsigned char)start[length]))
            continue;
        const char *after = start + length, *digits = after;
        skip_separator(&digits);
        *number = 0;
        *at = take_number(&digits, number) ? digits : after;
        return true;
    }
    return false;
}

static bool take_pre(const char **at, rc_te *te)
{
    static const char *const a[] = {"alpha", "a"}, *const b[] = {"beta", "b"},
                             *const rc[] = {"rc", "c", "preview", "pre"};
    te->key[PHASE] = HIGHEST;
    if (take_word(at, a, 2, &te->key[PHASE_NUMBER]))
        te->key[PHASE] = 0;
    else if (take_word(at, b, 2, &te->key[PHASE_NUMBER]))
        te->key[PHASE] = 1;
    else if (take_word(at, rc, 4, &te->key[PHASE_NUMBER]))
        te->key[PHASE] = 2;
    return te->key[PHASE] != HIGHEST;
}

static bool take_post(const char **at, rc_te *te)
{
    static const char *const post[] = {"post", "rev", "r"};
    te->key[POST] = LOWEST;
    if (take_word(at, post, 3, &te->key[POST]))
        return true;
    if (**at != '-' || !isdigit((unsigned char)(*at)[1]))
        return false;
    (*at)++;
    return take_number(at, &te->key[POST]);
}

static bool take_local(const char *at)
{
    if (*at++ != '+' || !isalnum((unsigned char)*at))
        return false;
    return at[strspn(at,
                     "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_")] ==
           '\0';
}

static bool take_parts(const char **at, rc_te *te)
{
    if (!take_number(at, &te->key[PARTS]))
        return false;
    for (int i = 1; **at == '.' && isdigit((unsigned char)(*at)[1]); i++) {
        int64_t part = 0;
        (*at)++;
        (void)take_number(at, &part);
        if (i < N_PARTS)
            te->key[PARTS + i] = part;
    }
    return true;
}

bool rc_te_find(const char *text, rc_te *out)
{
    static const char *const dev[] = {"dev"};
    const char *at = text;
    memset(out, 0, sizeof *out);
    while (isspace((unsigned char)*at))
        at++;
    at += *at == 'v' || *at == 'V';
    const char *bang = strchr(at, '!');
    if (bang && (!take_number(&at, &out->key[EPOCH]) || *at++ != '!'))
        return false;
    if (!take_parts(&at, out))
        return false;
    bool is_pre = take_pre(&at, out);
    bool is_post = take_post(&at, out);
    out->key[DEV] = HIGHEST;
    bool is_dev = take_word(&at, dev, 1, &out->key[DEV]);
    /* 1.0.dev1 comes before 1.0a1, as packaging.version orders them */
    if (is_dev && !is_pre && !is_post)
        out->key[PHASE] = LOWEST;
    out->key[LOCAL] = *at == '+';
    return *at == '\0' || take_local(at);
}

bool rc_te_is_below(const rc_te *te, const char *text)
{
    rc_te limit;
    if (!rc_te_find(text, &limit))
        return false;
    for (size_t i = 0; i < sizeof te->key / sizeof *te->key; i++)
        if (te->key[i] != limit.key[i])
            return te->key[i] < limit.key[i];
    return false;
}
