/* tile.h — products of blocks that fit the first-level cache, for fused attention. */
#ifndef RC_EXEC_CPU_TILE_H
#define RC_EXEC_CPU_TILE_H

#include <stdbool.h>
#include <stdint.h>

/* c[i, 16 v] (=, +=) sum over t < k of a[i * a_row + t * a_step] * b[t, 16 v], i < m, v < n_vec.
 * Single elements of a are broadcast, so any strides do; rows of b and c are whole vectors at any
 * address. The order of the sum over t is fixed. */
typedef struct rc_tile {
    int64_t m, n_vec, k;
    const float *a;
    int64_t a_row, a_step;
    const float *b;
    int64_t ldb;
    float *c;
    int64_t ldc;
    bool is_added;
} rc_tile;

void rc_cpu_tile(const rc_tile *tile);

/* to[c, r] (=, +=) by * from[r, c], r < rows, c < cols */
typedef struct rc_transpose {
    int64_t rows, cols;
    const float *from;
    int64_t ld_from;
    float *to;
    int64_t ld_to;
    float by;
    bool is_added;
} rc_transpose;

void rc_cpu_transpose(const rc_transpose *transpose);

#endif
