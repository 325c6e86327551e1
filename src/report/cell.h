/* cell.h — one cell as text: for people, or exact for programs. */
#ifndef RC_REPORT_CELL_H
#define RC_REPORT_CELL_H

#include <recompute/table.h>

#include <stdio.h>

/* For people: units, digit groups, "-" for null; untrusted bytes made printable. */
RC_MUST_CHECK
rc_code rc_cell_format(const rc_cell *cell, rc_unit unit, rc_arena *mem, const char **out,
                       rc_error *err);

/* For programs: every digit that is needed to read the same number back; "true"/"false"; NULL
 * for a null, for text, and for numbers that are not finite. */
const char *rc_cell_exact(const rc_cell *cell, rc_unit unit, char buf[40]);

bool rc_unit_is_number(rc_unit unit);
const char *rc_column_title(const rc_column *column);
const rc_cell *rc_table_row(const rc_table *table, size_t row);

/* Text with what HTML and SVG would read as markup written as entities, controls as \xNN. */
void rc_html_escape(const char *text, FILE *to);

/* The writers; ORDER formats: src/defs/formats.def. */
typedef rc_code rc_writer(const rc_report *report, rc_arena *tmp, FILE *to, rc_error *err);
#define RC_FORMAT(name, NAME, help) rc_writer rc_report_write_##name;
#include "defs/formats.def"
#undef RC_FORMAT

#endif
