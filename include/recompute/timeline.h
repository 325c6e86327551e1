/* timeline.h — memory over time as stacked areas: a picture, or a page that zooms.
 *
 * The page opens offline: one file, no links, nothing fetched (a content security policy says so);
 * its script draws numbers only, every text in it is escaped HTML.
 */
#ifndef RECOMPUTE_TIMELINE_H
#define RECOMPUTE_TIMELINE_H

#include <recompute/error.h>

#include <stdio.h>

RC_EXTERN_C_BEGIN

enum { RC_TIMELINE_RUNS = 2 };

typedef struct rc_timeline_run {
    const char *name;
    /* in seconds or events */
    double column_width;
    size_t n_columns;
    /* [n_layers][n_columns] at the moment of each column's highest total */
    const int64_t *bytes;
    /* [n_columns] drawn as a line, such as reserved memory; or NULL */
    const int64_t *line_bytes;
    int64_t peak_bytes;
} rc_timeline_run;

typedef struct rc_timeline {
    const char *title;
    /* columns are seconds, else events */
    bool is_time;
    /* [n_layers] from the bottom up */
    const char *const *layers;
    size_t n_layers;
    /* of line_bytes */
    const char *line_name;
    rc_timeline_run runs[RC_TIMELINE_RUNS];
    /* 1 or 2, drawn below each other on one scale */
    size_t n_runs;
} rc_timeline;

/* A picture, or a page that zooms and opens offline.
 *
 * takes   timeline  1 or 2 runs; names are escaped
 * errors  RC_E_INPUT when there is nothing to draw, RC_E_IO when the stream fails */
RC_MUST_CHECK
RC_API rc_code rc_timeline_write_svg(const rc_timeline *timeline, FILE *to, rc_error *err);
RC_MUST_CHECK
RC_API rc_code rc_timeline_write_html(const rc_timeline *timeline, FILE *to, rc_error *err);

RC_EXTERN_C_END

#endif
