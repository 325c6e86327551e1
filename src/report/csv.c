/* csv.c — one table as CSV (RFC 4180, lines ended by \n), numbers exact, nulls empty. */
#include "base/text.h"
#include "report/cell.h"

#include <string.h>

/* A spreadsheet runs a field that begins so and calls something: such a field gets a leading
 * apostrophe, which spreadsheets show as text. */
static bool is_formula(const char *text)
{
    return *text && strchr("=+-@", *text) && strpbrk(text, "(|!");
}

static rc_code write_text(const char *text, rc_arena *tmp, FILE *to, rc_error *err)
{
    rc_cell cell = rc_cell_text(text);
    const char *safe;
    RC_TRY(rc_cell_format(&cell, RC_UNIT_TEXT, tmp, &safe, err));
    if (is_formula(safe))
        fputc('\'', to);
    if (!strpbrk(safe, ",\"")) {
        fputs(safe, to);
        return RC_OK;
    }
    fputc('"', to);
    for (; *safe; safe++) {
        if (*safe == '"')
            fputc('"', to);
        fputc(*safe, to);
    }
    fputc('"', to);
    return RC_OK;
}

static rc_code write_row(const rc_table *table, const rc_cell *row, rc_arena *tmp, FILE *to,
                         rc_error *err)
{
    char buf[40];
    for (size_t i = 0; i < table->n_columns; i++) {
        if (i)
            fputc(',', to);
        const char *number = rc_cell_exact(&row[i], table->columns[i].unit, buf);
        if (number)
            fputs(number, to);
        else if (table->columns[i].unit == RC_UNIT_TEXT && !row[i].is_null)
            RC_TRY(write_text(row[i].text, tmp, to, err));
    }
    fputc('\n', to);
    return RC_OK;
}

/* The last table that is not facts; the last of all when every one is. */
static const rc_table *choose_table(const rc_report *report)
{
    for (size_t t = report->n; t-- > 0;)
        if (!report->is_facts[t])
            return report->at[t];
    return report->n ? report->at[report->n - 1] : NULL;
}

rc_code rc_report_write_csv(const rc_report *report, rc_arena *tmp, FILE *to, rc_error *err)
{
    const rc_table *table = choose_table(report);
    if (!table)
        return RC_OK;
    for (size_t i = 0; i < table->n_columns; i++)
        fprintf(to, "%s%s", i ? "," : "", table->columns[i].name);
    fputc('\n', to);
    for (size_t r = 0; r < table->n_rows; r++) {
        rc_mark mark = rc_arena_mark(tmp);
        rc_code code = write_row(table, rc_table_row(table, r), tmp, to, err);
        rc_arena_rewind(tmp, mark);
        RC_TRY(code);
    }
    return RC_OK;
}
