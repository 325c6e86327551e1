/* text.c — a report for people: aligned columns, units, colour on a terminal only.
 *
 * Numbers stand to the right, text to the left. On a terminal that is too narrow the last column
 * of text is wrapped at words; everything else keeps its line.
 */
#include <recompute/report.h>

#include "base/num.h"
#include "base/text.h"
#include "report/cell.h"

#include <string.h>

enum { GAP = 2, LEAST_WRAP = 24 };

typedef struct page {
    FILE *to;
    rc_style style;
    rc_arena *tmp;
} page;

typedef struct grid {
    const rc_table *table;
    const char **text; /* [n_rows + 1][n_columns], the first row holds the titles */
    size_t *width;     /* [n_columns] */
    size_t n_columns, n_rows;
} grid;

/* Titles may hold an untrusted file name. */
static void put_styled(const page *p, const char *code, const char *text)
{
    char safe[1024];
    rc_text_printable(text, strlen(text), safe, sizeof safe);
    if (p->style.has_colour)
        fprintf(p->to, "\033[%sm%s\033[0m", code, safe);
    else
        fputs(safe, p->to);
}

static void put_spaces(const page *p, size_t n)
{
    fprintf(p->to, "%*s", (int)n, "");
}

static rc_code grid_make(const page *p, const rc_table *table, grid *out, rc_error *err)
{
    *out = (grid){.table = table, .n_columns = table->n_columns, .n_rows = table->n_rows};
    RC_TRY(RC_NEW(p->tmp, &out->text, (table->n_rows + 1) * table->n_columns, err));
    RC_TRY(RC_NEW(p->tmp, &out->width, table->n_columns, err));
    for (size_t i = 0; i < table->n_columns; i++)
        out->text[i] = rc_column_title(&table->columns[i]);
    for (size_t r = 0; r < table->n_rows; r++)
        for (size_t i = 0; i < table->n_columns; i++)
            RC_TRY(rc_cell_format(&rc_table_row(table, r)[i], table->columns[i].unit, p->tmp,
                                  &out->text[(r + 1) * table->n_columns + i], err));
    for (size_t at = 0; at < (table->n_rows + 1) * table->n_columns; at++) {
        size_t width = rc_text_width(out->text[at]);
        if (width > out->width[at % table->n_columns])
            out->width[at % table->n_columns] = width;
    }
    return RC_OK;
}

/* Narrows the last column to the terminal when it is text and enough room is left for it. */
static void fit_last_column(const page *p, grid *g)
{
    size_t last = g->n_columns - 1, others = 0;
    if (p->style.width <= 0 || g->table->columns[last].unit != RC_UNIT_TEXT)
        return;
    for (size_t i = 0; i < last; i++)
        others += g->width[i] + GAP;
    size_t room = (size_t)p->style.width;
    if (others + LEAST_WRAP <= room && others + g->width[last] > room)
        g->width[last] = room - others;
}

/* Bytes of `text` that fit `width` columns, ending at a word where there is one. */
static size_t line_bytes(const char *text, size_t width)
{
    char head[1024];
    size_t best = 0, n = strlen(text);
    if (rc_text_width(text) <= width)
        return n;
    for (size_t i = 1; i < n && i < sizeof head; i++) {
        if (text[i] != ' ')
            continue;
        memcpy(head, text, i);
        head[i] = '\0';
        if (rc_text_width(head) > width)
            break;
        best = i;
    }
    return best ? best : strcspn(text, " "); /* a word wider than the column keeps its line */
}

static void put_last(const page *p, const grid *g, const char *text)
{
    size_t indent = 0, last = g->n_columns - 1;
    for (size_t i = 0; i < last; i++)
        indent += g->width[i] + GAP;
    for (;;) {
        size_t n = line_bytes(text, g->width[last]);
        fwrite(text, 1, n, p->to);
        text += n;
        text += strspn(text, " ");
        if (!*text)
            return;
        fputc('\n', p->to);
        put_spaces(p, indent);
    }
}

static void put_row(const page *p, const grid *g, size_t r)
{
    for (size_t i = 0; i < g->n_columns; i++) {
        const char *text = g->text[r * g->n_columns + i];
        size_t pad = g->width[i] -
                     (rc_text_width(text) < g->width[i] ? rc_text_width(text) : g->width[i]);
        bool is_last = i + 1 == g->n_columns;
        bool is_right = rc_unit_is_number(g->table->columns[i].unit);
        if (is_right)
            put_spaces(p, pad);
        if (r == 0)
            put_styled(p, "1", text);
        else if (is_last && !is_right)
            put_last(p, g, text);
        else
            fputs(text, p->to);
        if (!is_last)
            put_spaces(p, (is_right ? 0 : pad) + GAP);
    }
    fputc('\n', p->to);
}

static void put_rule(const page *p, const grid *g)
{
    for (size_t i = 0; i < g->n_columns; i++) {
        for (size_t n = 0; n < g->width[i]; n++)
            fputc('-', p->to);
        if (i + 1 < g->n_columns)
            put_spaces(p, GAP);
    }
    fputc('\n', p->to);
}

static rc_code write_rows(const page *p, const rc_table *table, rc_error *err)
{
    grid g;
    if (table->n_rows == 0) {
        fputs("(none)\n", p->to);
        return RC_OK;
    }
    RC_TRY(grid_make(p, table, &g, err));
    fit_last_column(p, &g);
    put_row(p, &g, 0);
    put_rule(p, &g);
    for (size_t r = 1; r <= g.n_rows; r++)
        put_row(p, &g, r);
    return RC_OK;
}

/* Facts have room for what a column has not: the exact bytes beside the rounded ones. */
static rc_code write_facts(const page *p, const rc_table *table, rc_error *err)
{
    size_t widest = 0;
    for (size_t i = 0; i < table->n_columns; i++) {
        size_t width = rc_text_width(rc_column_title(&table->columns[i]));
        widest = width > widest ? width : widest;
    }
    for (size_t i = 0; i < table->n_columns; i++) {
        const rc_column *column = &table->columns[i];
        const rc_cell *cell = &rc_table_row(table, 0)[i];
        const char *text;
        char exact[32];
        RC_TRY(rc_cell_format(cell, column->unit, p->tmp, &text, err));
        put_styled(p, "1", rc_column_title(column));
        fputc(':', p->to);
        put_spaces(p, widest - rc_text_width(rc_column_title(column)) + 1);
        fputs(text, p->to);
        if (column->unit == RC_UNIT_BYTES && !cell->is_null && cell->i >= 1024)
            fprintf(p->to, " (%s bytes)", rc_format_count(cell->i, exact));
        fputc('\n', p->to);
    }
    return RC_OK;
}

rc_code rc_report_write_text(const rc_report *report, rc_arena *tmp, FILE *to, rc_error *err)
{
    page out = {.to = to, .style = rc_style_of(to), .tmp = tmp};
    for (size_t t = 0; t < report->n; t++) {
        const rc_table *table = report->at[t];
        if (t)
            fputc('\n', to);
        if (table->title) {
            put_styled(&out, "1;4", table->title);
            fputc('\n', to);
        }
        bool is_facts = report->is_facts[t] && table->n_rows == 1;
        RC_TRY(is_facts ? write_facts(&out, table, err) : write_rows(&out, table, err));
    }
    return RC_OK;
}
