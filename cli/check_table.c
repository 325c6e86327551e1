/* check_table.c — the findings of all files in one table, for --csv, --html and their like. */
#include "check.h"

#include <string.h>

enum { COL_FILE, COL_LINE, COL_COLUMN, COL_LEVEL, COL_REASON = 6 }; /* ORDER rc_check_table */

static rc_code add_unreadable(const rc_subject *subject, rc_table *table, rc_error *err)
{
    rc_cell *row;
    RC_TRY(rc_table_add_row(table, &row, err));
    row[COL_FILE] = rc_cell_text(subject->path);
    if (subject->where.line) {
        row[COL_LINE] = rc_cell_int(subject->where.line);
        row[COL_COLUMN] = rc_cell_int(subject->where.col);
    }
    row[COL_LEVEL] = rc_cell_text("unreadable");
    row[COL_REASON] = rc_cell_text(subject->unreadable);
    return RC_OK;
}

static rc_code add_rows(const rc_subject *subject, rc_table *one, bool has_notes,
                        rc_table *table, rc_error *err)
{
    for (size_t i = 0; i < one->n_rows; i++) {
        const rc_cell *from = &one->cells[i * one->n_columns];
        rc_cell *row;
        if (subject->check->findings.at[i].level == RC_LEVEL_NOTE && !has_notes)
            continue;
        RC_TRY(rc_table_add_row(table, &row, err));
        memcpy(row, from, one->n_columns * sizeof *row);
        if (row[COL_FILE].is_null)
            row[COL_FILE] = rc_cell_text(subject->path);
    }
    return RC_OK;
}

rc_code rc_check_write_table(const rc_subject *subjects, size_t n, const rc_check_show *show,
                             rc_format format, rc_arena *mem, rc_error *err)
{
    static const rc_findings none;
    rc_check empty = {.findings = none};
    rc_table *table, *one;
    RC_TRY(rc_check_table(&empty, mem, &table, err));
    for (size_t i = 0; i < n; i++) {
        if (subjects[i].unreadable) {
            RC_TRY(add_unreadable(&subjects[i], table, err));
            continue;
        }
        RC_TRY(rc_check_table(subjects[i].check, mem, &one, err));
        RC_TRY(add_rows(&subjects[i], one, show->has_notes, table, err));
    }
    return rc_table_write(table, format, stdout, err);
}
