/* report.h — printing rc_table and rc_report: the only stage that knows output formats. */
#ifndef RECOMPUTE_REPORT_H
#define RECOMPUTE_REPORT_H

#include <recompute/table.h>

#include <stdio.h>

RC_EXTERN_C_BEGIN

/* How text may look; `rc_style_of` asks the stream. */
typedef struct rc_style {
    /* a terminal, and NO_COLOR is unset */
    bool has_colour;
    /* columns; 0 is unlimited */
    int width;
} rc_style;

/* The style of a stream: a terminal's width and colours; without either where it is none. */
RC_API rc_style rc_style_of(FILE *to);

/* By the name in its row of src/defs/formats.def; false, and *format is left, when unknown. */
RC_API bool rc_format_find(const char *name, rc_format *format);
/* What its row says: "json", and one line for --help. */
RC_API const char *rc_format_name(rc_format format);
RC_API const char *rc_format_help(rc_format format);

/**
 * Writes a report, or one table. JSON is one object: facts as objects under their name (without a
 * name: as members of the report itself), other tables as lists of objects; numbers unrounded, units
 * in the column names. CSV holds the last table that is not facts, or the last facts when there is
 * none. Untrusted text is escaped in every format: no control byte reaches a terminal, no markup a
 * page, no formula a spreadsheet. Numbers that JSON cannot hold (NaN, infinities) are null there, and
 * empty in CSV.
 *
 * takes   format  a row of formats.def
 * errors  RC_E_IO when the stream fails, RC_E_MEMORY
 * memory  scratch in the arena of the report's tables, given back before the return
 */
RC_MUST_CHECK
RC_API rc_code rc_report_write(const rc_report *report, rc_format format, FILE *to,
                               rc_error *err);
RC_MUST_CHECK
RC_API rc_code rc_table_write(const rc_table *table, rc_format format, FILE *to, rc_error *err);

RC_EXTERN_C_END

#endif
