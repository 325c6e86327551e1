/* axis.c — a linear scale with round ticks. */
#include "report/axis.h"

#include "base/num.h"

#include <math.h>
#include <stdio.h>

/* The smallest of 1, 2, 5 times a power of ten, for bytes of powers of two, not below `raw`. */
static double round_step(double raw, rc_unit unit)
{
    if (unit == RC_UNIT_BYTES)
        return exp2(ceil(log2(raw)));
    double power = pow(10, floor(log10(raw)));
    double lead = raw / power;
    return power * (lead <= 1 ? 1 : lead <= 2 ? 2 : lead <= 5 ? 5 : 10);
}

rc_axis rc_axis_make(double low, double high, rc_unit unit, bool is_integer, int n_ticks)
{
    if (!(high > low)) {
        double widen = fabs(low) > 0 ? fabs(low) * 0.5 : 1;
        low = low >= 0 && low - widen < 0 ? 0 : low - widen;
        high += widen;
    }
    double step = round_step((high - low) / n_ticks, unit);
    bool is_whole = is_integer || unit == RC_UNIT_COUNT || unit == RC_UNIT_BYTES;
    if (is_whole && step < 1)
        step = 1;
    return (rc_axis){.low = floor(low / step + 1e-9) * step,
                     .high = ceil(high / step - 1e-9) * step,
                     .step = step,
                     .unit = unit};
}

double rc_axis_at(const rc_axis *axis, double value)
{
    return axis->from +
           (value - axis->low) / (axis->high - axis->low) * (axis->to - axis->from);
}

int rc_axis_count(const rc_axis *axis)
{
    return (int)lround((axis->high - axis->low) / axis->step) + 1;
}

/* The unit in which the axis' largest value reads best. */
static rc_scale axis_scale(const rc_axis *axis)
{
    static const rc_scale seconds[] = {{"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};
    const rc_scale *rows = rc_si_units;
    size_t n = RC_N_SI;
    double most = fmax(fabs(axis->low), fabs(axis->high));
    if (axis->unit == RC_UNIT_RATIO)
        return (rc_scale){"%", 0.01};
    if (axis->unit == RC_UNIT_BYTES) {
        rows = rc_binary_units;
        n = RC_N_BINARY;
    }
    if (axis->unit == RC_UNIT_SECONDS) {
        rows = seconds;
        n = 3;
    }
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        if (most >= rows[i].factor * (rows == rc_si_units ? 10 : 1))
            best = i;
    return rows[best];
}

const char *rc_axis_label(const rc_axis *axis, int k, char buf[48])
{
    rc_scale unit = axis_scale(axis);
    double value = (axis->low + k * axis->step) / unit.factor;
    if (fabs(value) < axis->step / unit.factor * 1e-6)
        value = 0;
    snprintf(buf, 48, "%.6g%s%s", value, *unit.name ? " " : "", unit.name);
    return buf;
}
