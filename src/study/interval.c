/* study/interval.c — what several measurements of one number say about it. */
#include <recompute/study.h>

#include <math.h>
#include <stdlib.h>

static int compare_doubles(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static double quantile(const double *sorted, size_t n, double p)
{
    double at = p * (double)(n - 1);
    size_t below = (size_t)at;
    if (below + 1 >= n)
        return sorted[n - 1];
    return sorted[below] + (at - (double)below) * (sorted[below + 1] - sorted[below]);
}

rc_spread rc_spread_of(double *values, size_t n)
{
    if (n == 0)
        return (rc_spread){.median = (double)NAN, .low = (double)NAN, .high = (double)NAN};
    qsort(values, n, sizeof *values, compare_doubles);
    return (rc_spread){.median = quantile(values, n, 0.5),
                       .low = quantile(values, n, 0.25),
                       .high = quantile(values, n, 0.75),
                       .n = n};
}

/* The largest k with P(B < k) <= 1/80 for B binomial(n, 1/2): that many of the smallest and of the largest
 * values may be passed over, and 97.5 % are left. 0 when even the extremes are not sure enough; those of
 * six values, 1/64 to each side, are. */
static size_t count_outside(size_t n)
{
    double tail = 0,
           log_term = -(double)n * log(2.0); /* of P(B = 0); as a number it may be 0 */
    double most = n == RC_INTERVAL_LEAST ? 1.0 / 64 : 1.0 / 80;
    size_t k = 0;
    for (; k < n; k++) {
        tail += exp(log_term);
        if (tail > most * (1 + 1e-9))
            break;
        log_term += log((double)(n - k) / (double)(k + 1));
    }
    return k;
}

rc_interval rc_interval_of(double *values, size_t n)
{
    rc_interval out = {.center = (double)NAN, .low = (double)NAN, .high = (double)NAN, .n = n};
    if (n == 0)
        return out;
    qsort(values, n, sizeof *values, compare_doubles);
    out.center = quantile(values, n, 0.5);
    size_t k = count_outside(n);
    if (k == 0)
        return out;
    out.low = values[k - 1];
    out.high = values[n - k];
    return out;
}
