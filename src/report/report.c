/* report.c — chooses the writer of a format. */
#include <recompute/report.h>

rc_code rc_report_write(const rc_report *report, rc_format format, FILE *to, rc_error *err)
{
    (void)report;
    (void)format;
    (void)to;
    return RC_FAIL(err, RC_E_UNSUPPORTED, RC_NOWHERE, "no writer yet");
}

rc_code rc_table_write(const rc_table *table, rc_format format, FILE *to, rc_error *err)
{
    (void)table;
    return rc_report_write(NULL, format, to, err);
}
