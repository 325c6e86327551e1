/* columns.h — the sum over rows of a matrix: a bias gradient. */
#ifndef RC_EXEC_CPU_COLUMNS_H
#define RC_EXEC_CPU_COLUMNS_H

#include "exec/kernel.h"

enum { RC_COLUMN_STRIP = 64, RC_COLUMN_ROWS = 64 };

/* sum[c] += sum over rows of x[row, c], for n_rows <= RC_COLUMN_ROWS and n <= RC_COLUMN_STRIP. The
 * rows are summed apart and then added, which keeps the rounding error of long columns small. */
void rc_cpu_column_part(float *sum, const float *x, int64_t ld, int64_t n_rows, int64_t n);

/* to[c] (+)= sum over rows of x[row, c], c < width. Strips of columns are shared among threads
 * and each adds its rows in order: the same bits on any number of threads. */
void rc_cpu_column_sums(const rc_operand *to, const rc_operand *x, int64_t n_rows,
                        int64_t width, int n_threads);

#endif
