/* report.c — chooses the writer of a format.
 *
 * takes  rc_report or rc_table, whoever made it
 * gives  bytes on a stream
 */
#include <recompute/report.h>

#include "base/file.h"
#include "report/cell.h"

#include <string.h>

typedef struct format_row {
    const char *name, *help;
    rc_writer *write;
} format_row;

static const format_row rows[RC_FORMAT_COUNT] = {
#define RC_FORMAT(name, NAME, help) {#name, help, rc_report_write_##name},
#include "defs/formats.def"
#undef RC_FORMAT
};

bool rc_format_find(const char *name, rc_format *format)
{
    for (size_t i = 0; i < RC_FORMAT_COUNT; i++) {
        if (strcmp(name, rows[i].name) == 0) {
            *format = (rc_format)i;
            return true;
        }
    }
    return false;
}

const char *rc_format_name(rc_format format)
{
    return rows[format].name;
}

const char *rc_format_help(rc_format format)
{
    return rows[format].help;
}

rc_code rc_report_write(const rc_report *report, rc_format format, FILE *to, rc_error *err)
{
    RC_ASSERT(format < RC_FORMAT_COUNT);
    rc_arena *tmp = report->n ? report->at[0]->mem : NULL;
    rc_mark mark = tmp ? rc_arena_mark(tmp) : (rc_mark){0};
    rc_code code = rows[format].write(report, tmp, to, err);
    if (tmp)
        rc_arena_rewind(tmp, mark);
    if (code == RC_OK && ferror(to))
        return RC_FAIL(err, RC_E_IO, RC_NOWHERE, "the report could not be written: %s",
                       strerror(rc_stream_flush(to)));
    return code;
}

rc_code rc_table_write(const rc_table *table, rc_format format, FILE *to, rc_error *err)
{
    rc_table borrowed =
        *table; /* a report holds tables that may still grow; this one does not */
    rc_report report = {.n = 0};
    rc_report_add(&report, &borrowed, false);
    return rc_report_write(&report, format, to, err);
}
