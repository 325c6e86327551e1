/* line.c — the line of the source that a message is about, with carets under the bytes meant.
 *
 * A long line is shown around the column. Tabs count as one space; what is wide, of no width or not
 * printable is counted as the terminal shows it.
 */
#include "cli.h"

#include "base/text.h"

#include <string.h>

enum { MAX_LINE = 160, ROOM = 4 * MAX_LINE + 1 };

/* Bytes of the line, as far as anything of it is shown. */
static size_t line_length(const char *text, size_t most)
{
    size_t n = 0;
    while (n < most && text[n] && text[n] != '\n' && text[n] != '\r')
        n++;
    return n;
}

/* Not inside a character. */
static size_t to_boundary(const char *text, size_t at)
{
    while (at > 0 && ((unsigned char)text[at] & 0xC0) == 0x80)
        at--;
    return at;
}

/* The bytes as they are printed. */
static const char *show(const char *text, size_t n, char buf[ROOM])
{
    char spaced[MAX_LINE + 1];
    for (size_t i = 0; i < n; i++)
        spaced[i] = text[i] == '\t' ? ' ' : text[i];
    return rc_text_printable(spaced, n, buf, ROOM);
}

/* What is shown of a line, and what is meant there, in bytes from the line's first. */
typedef struct window {
    size_t start, end, col, n_marked;
    bool is_cut;
} window;

static bool find_window(const rc_where *where, window *out)
{
    size_t col = where->col > 0 ? (size_t)where->col - 1 : 0, start = 0;
    size_t n_marked = where->n_cols > 0 ? (size_t)where->n_cols : 1;
    size_t n = line_length(where->text, col + MAX_LINE);
    if (col > n)
        return false;
    if (col + n_marked > MAX_LINE)
        start = to_boundary(where->text, col > MAX_LINE / 4 ? col - MAX_LINE / 4 : 0);
    size_t end = n - start <= MAX_LINE ? n : to_boundary(where->text, start + MAX_LINE);
    *out = (window){start, end, col, col + n_marked > end ? end - col : n_marked,
                    end < n || line_length(where->text + end, 1) > 0};
    return true;
}

void rc_line_print(const rc_where *where, FILE *to)
{
    char shown[ROOM];
    window w;
    if (!where->text || !where->line || !find_window(where, &w))
        return;
    const char *text = where->text + w.start;
    fprintf(to, "%5d | %s%s%s\n", where->line, w.start ? "..." : "",
            show(text, w.end - w.start, shown), w.is_cut ? "..." : "");
    size_t n_before = rc_text_width(show(text, w.col - w.start, shown)) + (w.start ? 3 : 0);
    size_t n_carets = rc_text_width(show(where->text + w.col, w.n_marked, shown));
    fprintf(to, "      | %*s", (int)n_before, "");
    for (size_t i = 0; i < (n_carets ? n_carets : 1); i++)
        fputc('^', to);
    fputc('\n', to);
}
