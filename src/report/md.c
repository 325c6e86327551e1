/* md.c — a report as Markdown with GitHub's tables. */
#include "report/cell.h"

#include <ctype.h>
#include <string.h>

/* A cell's text as itself. An underscore inside a word is no emphasis in GitHub's Markdown and
 * stays readable; every other mark that could start something is escaped. */
static void write_escaped(const char *text, FILE *to)
{
    for (const char *c = text; *c; c++) {
        bool is_inside =
            c > text && isalnum((unsigned char)c[-1]) && isalnum((unsigned char)c[1]);
        if (*c == '<')
            fputs("&lt;", to);
        else if (*c == '&')
            fputs("&amp;", to);
        else if (strchr("|\\`*[]~", *c) || (*c == '_' && !is_inside))
            fprintf(to, "\\%c", *c);
        else
            fputc(*c, to);
    }
}

static rc_code write_cell(const rc_table *table, const rc_cell *row, size_t i, rc_arena *tmp,
                          FILE *to, rc_error *err)
{
    const char *text;
    RC_TRY(rc_cell_format(&row[i], table->columns[i].unit, tmp, &text, err));
    write_escaped(text, to);
    return RC_OK;
}

static rc_code write_facts(const rc_table *table, rc_arena *tmp, FILE *to, rc_error *err)
{
    for (size_t i = 0; i < table->n_columns; i++) {
        fputs("- **", to);
        write_escaped(rc_column_title(&table->columns[i]), to);
        fputs("**: ", to);
        RC_TRY(write_cell(table, rc_table_row(table, 0), i, tmp, to, err));
        fputc('\n', to);
    }
    return RC_OK;
}

static rc_code write_rows(const rc_table *table, rc_arena *tmp, FILE *to, rc_error *err)
{
    for (size_t i = 0; i < table->n_columns; i++) {
        fputs("| ", to);
        write_escaped(rc_column_title(&table->columns[i]), to);
        fputc(' ', to);
    }
    fputs("|\n", to);
    for (size_t i = 0; i < table->n_columns; i++)
        fputs(rc_unit_is_number(table->columns[i].unit) ? "| ---: " : "| --- ", to);
    fputs("|\n", to);
    for (size_t r = 0; r < table->n_rows; r++) {
        for (size_t i = 0; i < table->n_columns; i++) {
            fputs("| ", to);
            RC_TRY(write_cell(table, rc_table_row(table, r), i, tmp, to, err));
            fputc(' ', to);
        }
        fputs("|\n", to);
    }
    return RC_OK;
}

rc_code rc_report_write_md(const rc_report *report, rc_arena *tmp, FILE *to, rc_error *err)
{
    for (size_t t = 0; t < report->n; t++) {
        const rc_table *table = report->at[t];
        if (t)
            fputc('\n', to);
        if (table->title) {
            fputs("### ", to);
            write_escaped(table->title, to);
            fputs("\n\n", to);
        }
        bool is_facts = report->is_facts[t] && table->n_rows == 1;
        RC_TRY(is_facts ? write_facts(table, tmp, to, err) : write_rows(table, tmp, to, err));
    }
    return RC_OK;
}
