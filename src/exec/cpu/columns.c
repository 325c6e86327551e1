/* columns.c — the sum over rows of a matrix. */
#include "exec/cpu/columns.h"

#include "exec/cpu/operand.h"

RC_CLONES void rc_cpu_column_part(float *sum, const float *x, int64_t ld, int64_t n_rows,
                                  int64_t n)
{
    float part[RC_COLUMN_STRIP] = {0};
    if (n == RC_COLUMN_STRIP) { /* a constant width stays in registers */
        for (int64_t r = 0; r < n_rows; r++)
            for (int64_t c = 0; c < RC_COLUMN_STRIP; c++)
                part[c] += x[r * ld + c];
    } else {
        for (int64_t r = 0; r < n_rows; r++)
            for (int64_t c = 0; c < n; c++)
                part[c] += x[r * ld + c];
    }
    for (int64_t c = 0; c < n; c++)
        sum[c] += part[c];
}

void rc_cpu_column_sums(const rc_operand *to, const rc_operand *x, int64_t n_rows,
                        int64_t width, int n_threads)
{
    float *total = rc_f32(to);
    if (!total)
        return;
#pragma omp parallel for num_threads(n_threads) schedule(static)
    for (int64_t first = 0; first < width; first += RC_COLUMN_STRIP) {
        float sum[RC_COLUMN_STRIP] = {0};
        const int64_t n = rc_min(RC_COLUMN_STRIP, width - first);
        for (int64_t r = 0; r < n_rows; r += RC_COLUMN_ROWS)
            rc_cpu_column_part(sum, rc_f32_row(x, r) + first, x->ld,
                               rc_min(RC_COLUMN_ROWS, n_rows - r), n);
        for (int64_t c = 0; c < n; c++)
            rc_put(&total[first + c], sum[c], to->is_added);
    }
}
