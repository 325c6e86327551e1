/* words.c — sentences with names in them, from diagnoses' and steps' tables.
 *
 * takes  "{request} asked[, {free} free]"
 * gives  the text with values in place of names; brackets vanish with what is not known in them
 */
#include "diagnose/diag.h"

#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef enum word_kind { SIZE, REPORTED_SIZE, COUNT, REAL, TEXT } word_kind;

static const struct {
    const char *name;
    word_kind kind;
    size_t offset;
} words[] = {
#define WORD(name, kind, field)                                                                \
    {                                                                                          \
#name, kind, offsetof(diag, field)                                                     \
    }
    WORD(request, SIZE, request),
    WORD(capacity, SIZE, capacity),
    WORD(free, SIZE, free_bytes),
    WORD(allocated, SIZE, allocated),
    WORD(idle, SIZE, idle),
    WORD(reserved, SIZE, reserved),
    WORD(own, SIZE, own),
    WORD(other, SIZE, other),
    WORD(outside, SIZE, outside),
    WORD(limit, SIZE, limit),
    WORD(room, SIZE, room),
    WORD(private, SIZE, private_bytes),
    WORD(state, SIZE, state),
    WORD(largest_block, SIZE, largest_block),
    WORD(unaccounted, SIZE, unaccounted),
    WORD(worst, REPORTED_SIZE, worst),
    WORD(best, REPORTED_SIZE, best),
    WORD(before, REPORTED_SIZE, before),
    WORD(after, REPORTED_SIZE, after),
    WORD(peak, REPORTED_SIZE, peak),
    WORD(peak_reserved, REPORTED_SIZE, peak_reserved),
    WORD(live, REPORTED_SIZE, live),
    WORD(grown, REPORTED_SIZE, grown),
    WORD(grown_from, REPORTED_SIZE, grown_from),
    WORD(grown_to, REPORTED_SIZE, grown_to),
    WORD(grown_rank, COUNT, grown_rank),
    WORD(grown_steps, COUNT, grown_steps),
    WORD(pid, COUNT, pid),
    WORD(rank, COUNT, rank),
    WORD(worst_rank, COUNT, worst_rank),
    WORD(best_rank, COUNT, best_rank),
    WORD(position, COUNT, position),
    WORD(n_saved, COUNT, n_saved),
    WORD(n_replayed, COUNT, n_replayed),
    WORD(n_lines, COUNT, n_lines),
    WORD(iteration, COUNT, iteration),
    WORD(mbs, COUNT, mbs),
    WORD(mbs_half, COUNT, mbs_half),
    WORD(tp_double, COUNT, tp_double),
    WORD(cp_double, COUNT, cp_double),
    WORD(layers_heavy, COUNT, layers_heavy),
    WORD(layers_quarter, COUNT, layers_quarter),
    WORD(layers_more, COUNT, layers_more),
    WORD(tokens_half, COUNT, tokens_half),
    WORD(idle_percent, REAL, idle_percent),
    WORD(spread_percent, REAL, spread_percent),
    WORD(host_percent, REAL, host_percent),
    WORD(host_used, REAL, host_used),
    WORD(grad_norm, REAL, grad_norm),
    WORD(loss, REAL, loss),
    WORD(step_before, REAL, step_before),
    WORD(step_after, REAL, step_after),
    WORD(tensor, TEXT, tensor),
    WORD(frame, TEXT, frame),
    WORD(saved_dtype, TEXT, saved_dtype),
    WORD(replayed_dtype, TEXT, replayed_dtype),
    WORD(saved_shape, TEXT, saved_shape),
    WORD(replayed_shape, TEXT, replayed_shape),
    WORD(refused_text, TEXT, refused_text),
    WORD(engine_text, TEXT, engine_text),
    WORD(error_text, TEXT, error_text),
    WORD(nan_text, TEXT, nan_text),
    WORD(rule_text, TEXT, rule_text),
    WORD(fix_text, TEXT, fix_text),
    WORD(fix_line, TEXT, fix_line),
    WORD(not_applied, TEXT, not_applied),
    WORD(metric, TEXT, metric),
    WORD(change, TEXT, change),
    WORD(library, TEXT, library),
    WORD(refused_host, TEXT, refused_host),
    WORD(stage_text, TEXT, stage_text),
    WORD(layers_text, TEXT, layers_text),
    WORD(modules, TEXT, modules),
    WORD(modules_words, TEXT, modules_words),
    WORD(alloc_variable, TEXT, alloc_variable),
    WORD(graph_register, TEXT, graph_register),
    WORD(settings_path, TEXT, settings_path),
    WORD(heavy_end, TEXT, heavy_end),
    WORD(grown_metric, TEXT, grown_metric),
#undef WORD
};

rc_code diag_safe(rc_arena *mem, const char *text, size_t most, const char **out, rc_error *err)
{
    enum { LONGEST = 250 };
    char safe[4 * LONGEST + 1]; /* a byte becomes four: \\xNN */
    size_t n = strlen(text);
    n = n < most ? n : most;
    rc_text_printable(text, n < LONGEST ? n : LONGEST, safe, sizeof safe);
    return rc_arena_copy(mem, safe, strlen(safe), out, err);
}

const char *diag_size(int64_t bytes, bool is_decimal, char buf[64])
{
    const double gib = 1073741824, mib = 1048576;
    double n = (double)bytes;
    if (is_decimal)
        snprintf(buf, 64, "%.2f GB (%.2f GiB)", n / 1e9, n / gib);
    else if (n >= gib / 10)
        snprintf(buf, 64, "%.2f GiB", n / gib);
    else if (n >= mib / 10)
        snprintf(buf, 64, "%.2f MiB", n / mib);
    else
        snprintf(buf, 64, "%" PRId64 " bytes", bytes);
    return buf;
}

/* The value of a field, in `buf` or borrowed; NULL when it is not known. */
static const char *show_value(const diag *d, word_kind kind, size_t offset, char buf[64])
{
    const char *at = (const char *)d + offset;
    int64_t count;
    double real;
    const char *text;
    if (kind == TEXT) {
        memcpy(&text, at, sizeof text);
        return text;
    }
    if (kind == REAL) {
        memcpy(&real, at, sizeof real);
        snprintf(buf, 64, "%.4g", real);
        return isnan(real) ? NULL : buf;
    }
    memcpy(&count, at, sizeof count);
    if (count < 0)
        return NULL;
    if (kind != COUNT)
        return diag_size(count, d->is_decimal && kind == REPORTED_SIZE, buf);
    snprintf(buf, 64, "%" PRId64, count);
    return buf;
}

static const char *value_of(const diag *d, const char *name, size_t n, char buf[64])
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i].name) == n && memcmp(words[i].name, name, n) == 0)
            return show_value(d, words[i].kind, words[i].offset, buf);
    if (n == 4 && memcmp(name, "exit", 4) == 0 && d->exit != RC_LOG_NO_EXIT) {
        snprintf(buf, 64, "%" PRId64, d->exit);
        return buf;
    }
    return NULL;
}

rc_code diag_verify_words(const char *sentence, rc_error *err)
{
    for (const char *at = strchr(sentence, '{'); at; at = strchr(at, '{')) {
        if (at[1] == '{') { /* a brace of the line itself */
            at += 2;
            continue;
        }
        size_t n = strcspn(at + 1, "}");
        bool is_known = n == 4 && memcmp(at + 1, "exit", 4) == 0;
        for (size_t i = 0; i < sizeof words / sizeof *words && !is_known; i++)
            is_known = strlen(words[i].name) == n && memcmp(words[i].name, at + 1, n) == 0;
        if (!is_known)
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
        const char *value =
            value_of(d, sentence + i + 1, (size_t)(end - sentence) - i - 1, buf);
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
