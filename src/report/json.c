/* json.c — a report as one JSON object (RFC 8259), streamed; a row a line. */
#include "base/text.h"
#include "report/cell.h"

#include <string.h>

static void write_members(const rc_table *table, const rc_cell *row, FILE *to)
{
    char buf[40];
    for (size_t i = 0; i < table->n_columns; i++) {
        const rc_column *column = &table->columns[i];
        if (i)
            fputs(", ", to);
        rc_json_write_string(column->name, to);
        fputs(": ", to);
        const char *number = rc_cell_exact(&row[i], column->unit, buf);
        if (column->unit == RC_UNIT_TEXT && !row[i].is_null)
            rc_json_write_string(row[i].text, to);
        else
            fputs(number ? number : "null", to);
    }
}

static void write_row(const rc_table *table, const rc_cell *row, FILE *to)
{
    fputc('{', to);
    write_members(table, row, to);
    fputc('}', to);
}

rc_code rc_report_write_json(const rc_report *report, rc_arena *tmp, FILE *to, rc_error *err)
{
    (void)tmp;
    (void)err;
    fputs("{", to);
    for (size_t t = 0; t < report->n; t++) {
        const rc_table *table = report->at[t];
        fputs(t ? ",\n" : "\n", to);
        if (table->name[0] == '\0' && report->is_facts[t] && table->n_rows == 1) {
            write_members(table, rc_table_row(table, 0), to);
            continue;
        }
        rc_json_write_string(table->name, to);
        fputs(": ", to);
        if (report->is_facts[t] && table->n_rows == 1) {
            write_row(table, rc_table_row(table, 0), to);
            continue;
        }
        fputc('[', to);
        for (size_t r = 0; r < table->n_rows; r++) {
            fputs(r ? ",\n  " : "\n  ", to);
            write_row(table, rc_table_row(table, r), to);
        }
        fputs(table->n_rows ? "\n]" : "]", to);
    }
    fputs("\n}\n", to);
    return RC_OK;
}
