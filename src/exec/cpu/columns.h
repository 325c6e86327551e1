/* columns.h — the sum over rows of a matrix: a bias gradient. */
#ifndef RC_EXEC_CPU_COLUMNS_H
#define RC_EXEC_CPU_COLUMNS_H

#include "exec/kernel.h"

/* to[c] (+)= sum over rows of x[row, c], c < width. Strips of columns are shared among threads
 * and each adds its rows in order: the same bits on any number of threads. */
void rc_cpu_column_sums(const rc_operand *to, const rc_operand *x, int64_t n_rows,
                        int64_t width, int n_threads);

#endif
