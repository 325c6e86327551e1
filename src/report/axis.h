/* axis.h — a linear scale with round ticks. */
#ifndef RC_REPORT_AXIS_H
#define RC_REPORT_AXIS_H

#include <recompute/table.h>

typedef struct rc_axis {
    /* what the axis spans, both ends at ticks */
    double low, high;
    /* between ticks */
    double step;
    /* pixels of low and high */
    double from, to;
    rc_unit unit;
} rc_axis;

/* takes  low, high  of the data; equal ones are widened
 *        is_integer steps of whole numbers only */
rc_axis rc_axis_make(double low, double high, rc_unit unit, bool is_integer, int n_ticks);
double rc_axis_at(const rc_axis *axis, double value); /* in pixels */
int rc_axis_count(const rc_axis *axis);               /* of ticks */
/* The k-th tick's label; all ticks of an axis share their unit. */
const char *rc_axis_label(const rc_axis *axis, int k, char buf[48]);

#endif
