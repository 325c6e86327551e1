/* picture.h — charts of an rc_table as self-contained SVG, and reports as one HTML page.
 *
 * Nothing in the output is fetched: no script, no font, no link. Colours follow the reader's
 * light or dark scheme; series colours are those of Okabe and Ito (2008), told apart by people
 * with any colour vision.
 */
#ifndef RECOMPUTE_PICTURE_H
#define RECOMPUTE_PICTURE_H

#include <recompute/table.h>

#include <stdio.h>

RC_EXTERN_C_BEGIN

typedef enum rc_chart_kind {
    RC_CHART_LINES,   /* one line per series over x */
    RC_CHART_STACKED, /* areas on top of each other over x, in the order of `series` */
    RC_CHART_BARS,    /* a group of bars for each row, named by the x column */
    RC_CHART_POINTS   /* one point per row; `label` names it */
} rc_chart_kind;

enum { RC_CHART_MAX_SERIES = 16, RC_CHART_NO_COLUMN = -1 };

typedef struct rc_chart {
    rc_chart_kind kind;
    const rc_table *table;
    /* column; numbers, for BARS any unit */
    int x;
    /* POINTS: column of names, or RC_CHART_NO_COLUMN */
    int label;
    /* columns of numbers, all of one unit */
    int series[RC_CHART_MAX_SERIES];
    int n_series;
    /* x ticks only at whole numbers: steps, instructions */
    bool is_x_integer;
    /* the x axis starts at 0, not at the least value */
    bool has_zero_x;
    /* NULL uses the table's */
    const char *title;
    /* pixels; 0 takes 960 x 480 */
    int width, height;
} rc_chart;

/**
 * One chart as an SVG picture.
 *
 * takes   chart   rows with a null or not finite number are left out of lines, areas and points
 * errors  RC_E_BUG when a column is missing or holds no number; RC_E_RANGE when no row is left;
 *         RC_E_IO when the stream fails
 * memory  scratch in the table's arena, given back
 * cost    one pass over the rows per series
 */
RC_MUST_CHECK
RC_API rc_code rc_chart_write(const rc_chart *chart, FILE *to, rc_error *err);

/**
 * One HTML page: the report's tables in order, then the charts.
 *
 * takes   title   of the page; escaped
 *         report  may be empty
 *         charts  n_charts of them; NULL only where that is 0
 * errors  as rc_chart_write
 * memory  scratch in the arena of the report's first table, given back
 */
RC_MUST_CHECK
RC_API rc_code rc_page_write(const char *title, const rc_report *report, const rc_chart *charts,
                             size_t n_charts, FILE *to, rc_error *err);

RC_EXTERN_C_END

#endif
