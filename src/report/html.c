/* html.c — a report as one HTML page that opens offline. */
#include <recompute/picture.h>

#include "report/cell.h"

static const char page_style[] =
    "<style>\n"
    ":root { color-scheme: light dark; }\n"
    "body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; "
    "padding: 0 1rem; }\n"
    "table { border-collapse: collapse; margin: 1rem 0; }\n"
    "th, td { padding: .25rem .75rem; border-bottom: 1px solid #8884; text-align: left; "
    "vertical-align: top; }\n"
    "th { border-bottom: 2px solid #8888; }\n"
    ".n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }\n"
    "</style>\n";

static rc_code put_cell(const rc_table *table, const rc_cell *row, size_t i, FILE *to,
                        rc_error *err)
{
    const char *text;
    bool is_number = rc_unit_is_number(table->columns[i].unit);
    RC_TRY(rc_cell_format(&row[i], table->columns[i].unit, table->mem, &text, err));
    fputs(is_number ? "<td class=\"n\">" : "<td>", to);
    rc_html_escape(text, to);
    fputs("</td>", to);
    return RC_OK;
}

static void put_title(const rc_column *column, FILE *to)
{
    fputs(rc_unit_is_number(column->unit) ? "<th class=\"n\">" : "<th>", to);
    rc_html_escape(rc_column_title(column), to);
    fputs("</th>", to);
}

static rc_code put_facts(const rc_table *table, FILE *to, rc_error *err)
{
    for (size_t i = 0; i < table->n_columns; i++) {
        fputs("<tr><th>", to);
        rc_html_escape(rc_column_title(&table->columns[i]), to);
        fputs("</th>", to);
        RC_TRY(put_cell(table, rc_table_row(table, 0), i, to, err));
        fputs("</tr>\n", to);
    }
    return RC_OK;
}

static rc_code put_rows(const rc_table *table, FILE *to, rc_error *err)
{
    fputs("<tr>", to);
    for (size_t i = 0; i < table->n_columns; i++)
        put_title(&table->columns[i], to);
    fputs("</tr>\n", to);
    for (size_t r = 0; r < table->n_rows; r++) {
        fputs("<tr>", to);
        for (size_t i = 0; i < table->n_columns; i++)
            RC_TRY(put_cell(table, rc_table_row(table, r), i, to, err));
        fputs("</tr>\n", to);
    }
    return RC_OK;
}

static rc_code put_table(const rc_table *table, bool is_facts, FILE *to, rc_error *err)
{
    if (table->title) {
        fputs("<h2>", to);
        rc_html_escape(table->title, to);
        fputs("</h2>\n", to);
    }
    fputs("<table>\n", to);
    RC_TRY(is_facts && table->n_rows == 1 ? put_facts(table, to, err)
                                          : put_rows(table, to, err));
    fputs("</table>\n", to);
    return RC_OK;
}

static rc_code put_body(const rc_report *report, const rc_chart *charts, size_t n_charts,
                        FILE *to, rc_error *err)
{
    for (size_t t = 0; t < report->n; t++)
        RC_TRY(put_table(report->at[t], report->is_facts[t], to, err));
    for (size_t i = 0; i < n_charts; i++)
        RC_TRY(rc_chart_write(&charts[i], to, err));
    return RC_OK;
}

rc_code rc_page_write(const char *title, const rc_report *report, const rc_chart *charts,
                      size_t n_charts, FILE *to, rc_error *err)
{
    rc_arena *tmp = report->n ? report->at[0]->mem : NULL;
    rc_mark mark = tmp ? rc_arena_mark(tmp) : (rc_mark){0};
    fputs("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width\">\n<title>",
          to);
    rc_html_escape(title, to);
    fprintf(to, "</title>\n%s</head>\n<body>\n<h1>", page_style);
    rc_html_escape(title, to);
    fputs("</h1>\n", to);
    rc_code code = put_body(report, charts, n_charts, to, err);
    fputs("</body>\n</html>\n", to);
    if (tmp)
        rc_arena_rewind(tmp, mark);
    if (code == RC_OK && ferror(to))
        return RC_FAIL(err, RC_E_IO, RC_NOWHERE, "the page could not be written");
    return code;
}

rc_code rc_report_write_html(const rc_report *report, rc_arena *tmp, FILE *to, rc_error *err)
{
    (void)tmp;
    return rc_page_write("recompute", report, NULL, 0, to, err);
}
