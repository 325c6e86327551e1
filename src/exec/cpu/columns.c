/* columns.c — the sum over rows of a matrix. */
#include "exec/cpu/columns.h"

#include "exec/cpu/operand.h"

enum { STRIP = 64, ROWS = 64 };

/* Blocks of ROWS are summed apart and then added, which keeps the rounding error of long
 * columns small. */
RC_CLONES static void strip_sum(float *sum, const float *x, int64_t ld, int64_t n_rows, int64_t n)
{
    for (int64_t c = 0; c < n; c++)
        sum[c] = 0;
    for (int64_t first = 0; first < n_rows; first += ROWS) {
        float part[STRIP] = {0};
        int64_t end = first + ROWS < n_rows ? first + ROWS : n_rows;
        if (n == STRIP) {
            for (int64_t r = first; r < end; r++)
                for (int64_t c = 0; c < STRIP; c++)
                    part[c] += x[r * ld + c];
        } else {
            for (int64_t r = first; r < end; r++)
                for (int64_t c = 0; c < n; c++)
                    part[c] += x[r * ld + c];
        }
        for (int64_t c = 0; c < n; c++)
            sum[c] += part[c];
    }
}

void rc_cpu_column_sums(const rc_operand *to, const rc_operand *x, int64_t n_rows,
                        int64_t width, int n_threads)
{
    float *total = rc_f32(to);
    if (!total)
        return;
#pragma omp parallel for num_threads(n_threads) schedule(static)
    for (int64_t first = 0; first < width; first += STRIP) {
        float sum[STRIP];
        int64_t n = rc_min(STRIP, width - first);
        strip_sum(sum, rc_f32(x) + first, x->ld, n_rows, n);
        for (int64_t c = 0; c < n; c++)
            rc_put(&total[first + c], sum[c], to->is_added);
    }
}
