/* words.c — sentences with names in them, from diagnoses' and steps' tables.
 *
 * takes  "{request} asked[, {free} free]"
 * gives  the text with values in place of names; brackets vanish with what is not known in them
 */
#include "diagnose/diag.h"

#include "base/text.h"

#include <string.h>

rc_code diag_safe(rc_arena *mem, const char *text, size_t most, const char **out, rc_error *err)
{
    enum { LONGEST = 250 };
    char safe[4 * LONGEST + 1]; /* a byte becomes four: \\xNN */
    size_t n = strlen(text);
    n = n < most ? n : most;
    rc_text_printable(text, n < LONGEST ? n : LONGEST, safe, sizeof safe);
    return rc_arena_copy(mem, safe, strlen(safe), out, err);
}

rc_code diag_verify_words(const char *sentence, rc_error *err)
{
    for (const char *at = strchr(sentence, '{'); at; at = strchr(at, '{')) {
        if (at[1] == '{') { /* a brace of the line itself */
            at += 2;
            continue;
        }
        size_t n = strcspn(at + 1, "}");
        if (!diag_field_find(at + 1, n))
            return RC_FAIL(err, RC_E_BUG, RC_NOWHERE, "no such name: %.*s in \"%s\"", (int)n,
                           at + 1, sentence);
        at += n;
    }
    return RC_OK;
}

/* Fills sentence[0..n) without brackets; *is_known false when a name in it is not known. */
static rc_code fill_part(const diag *d, const char *sentence, size_t n, rc_text *to,
                         bool *is_known, rc_error *err)
{
    *is_known = true;
    for (size_t i = 0; i < n; i++) {
        char c = sentence[i];
        bool is_doubled = i + 1 < n && (c == '{' || c == '}') && sentence[i + 1] == c;
        if (is_doubled)
            i++;
        if (c != '{' || is_doubled) {
            RC_TRY(rc_text_add(to, &c, 1, err));
            continue;
        }
        const char *end = memchr(sentence + i, '}', n - i);
        if (!end)
            return RC_FAIL(err, RC_E_BUG, RC_NOWHERE, "a name without its brace: %s", sentence);
        char buf[64];
        const diag_field *field =
            diag_field_find(sentence + i + 1, (size_t)(end - sentence) - i - 1);
        const char *value = field ? diag_show(d, field, buf) : NULL;
        if (!value) {
            *is_known = false;
            return RC_OK;
        }
        RC_TRY(rc_text_add(to, value, strlen(value), err));
        i = (size_t)(end - sentence);
    }
    return RC_OK;
}

rc_code diag_fill(const diag *d, const char *sentence, const char **out, rc_error *err)
{
    rc_text text = {.mem = d->mem};
    *out = NULL;
    RC_TRY(rc_text_add(&text, "", 0, err));
    const char *at = sentence;
    while (*at) {
        /* `[` after `=` belongs to a line to paste, as in modules=[mlp]. */
        size_t n = 0;
        while (at[n] &&
               !(at[n] == '[' && (n == 0 ? at == sentence || at[-1] != '=' : at[n - 1] != '=')))
            n++;
        bool is_known;
        RC_TRY(fill_part(d, at, n, &text, &is_known, err));
        if (!is_known)
            return RC_OK;
        at += n;
        if (*at != '[')
            continue;
        const char *end = strchr(at, ']');
        if (!end)
            return RC_FAIL(err, RC_E_BUG, RC_NOWHERE, "a bracket is open: %s", sentence);
        rc_text part = {.mem = d->mem};
        RC_TRY(rc_text_add(&part, "", 0, err));
        RC_TRY(fill_part(d, at + 1, (size_t)(end - at) - 1, &part, &is_known, err));
        if (is_known)
            RC_TRY(rc_text_add(&text, part.at, part.n, err));
        at = end + 1;
    }
    *out = text.at;
    return RC_OK;
}
