/* tile.c — products of blocks that fit the first-level cache.
 *
 * The accumulators of a tile stay in registers over the whole k loop: 4 rows of 4 vectors (or 8
 * rows of 2) where there are 32 wide registers, else 6 rows of one. Each step loads the vectors of
 * b once and broadcasts one element of a per row: at 4 x 4, 16 multiply-adds for 8 loads.
 */
#include "exec/cpu/tile.h"

#include "base/simd.h"

enum { MOST_ROWS = 8, MOST_VECS = 4 };

/* rows and vecs are constants at every call, so that acc becomes registers. */
RC_INLINE void tile_part(const rc_tile *t, const int rows, const int vecs, int64_t row,
                         int64_t vec)
{
    rc_vec acc[MOST_ROWS][MOST_VECS];
    const float *a = t->a + row * t->a_row, *b = t->b + vec * RC_VEC;
    const int64_t a_row = t->a_row, a_step = t->a_step, ldb = t->ldb;
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
        for (int v = 0; v < vecs; v++)
            acc[i][v] = (rc_vec){0};
    for (int64_t k = 0; k < t->k; k++) {
        rc_vec line[MOST_VECS];
#pragma GCC unroll 4
        for (int v = 0; v < vecs; v++)
            line[v] = *(const rc_vec_at *)(b + v * RC_VEC);
#pragma GCC unroll 8
        for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
            for (int v = 0; v < vecs; v++)
                acc[i][v] += a[i * a_row] * line[v];
        a += a_step;
        b += ldb;
    }
    float *c = t->c + row * t->ldc + vec * RC_VEC;
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
        for (int v = 0; v < vecs; v++) {
            rc_vec_at *to = (rc_vec_at *)(c + i * t->ldc + v * RC_VEC);
            if (t->is_added)
                acc[i][v] += *to;
            *to = acc[i][v];
        }
}

RC_INLINE void tile_panel(const rc_tile *t, const int rows, const int vecs, int64_t vec)
{
    int64_t row = 0;
    for (; row + rows <= t->m; row += rows)
        tile_part(t, rows, vecs, row, vec);
    for (; row < t->m; row++)
        tile_part(t, 1, vecs, row, vec);
}

RC_CLONES static void tile_wide(const rc_tile *t)
{
    int64_t vec = 0;
    for (; vec + 4 <= t->n_vec; vec += 4)
        tile_panel(t, 4, 4, vec);
    if (t->n_vec - vec == 3)
        tile_panel(t, 4, 3, vec);
    else if (t->n_vec - vec == 2)
        tile_panel(t, 8, 2, vec);
    else if (t->n_vec - vec == 1)
        tile_panel(t, 8, 1, vec);
}

RC_CLONES static void tile_narrow(const rc_tile *t)
{
    for (int64_t vec = 0; vec < t->n_vec; vec++)
        tile_panel(t, 6, 1, vec);
}

void rc_cpu_tile(const rc_tile *tile)
{
    if (rc_cpu_is_wide())
        tile_wide(tile);
    else
        tile_narrow(tile);
}

/* Four rounds of interleaving the upper with the lower eight rows transpose 16 x 16: each round
 * moves one bit of the row number into the column number. */
RC_INLINE void transpose_square(const rc_transpose *t, int64_t row, int64_t col)
{
    rc_vec a[RC_VEC], b[RC_VEC];
#pragma GCC unroll 16
    for (int i = 0; i < RC_VEC; i++)
        a[i] = *(const rc_vec_at *)(t->from + (row + i) * t->ld_from + col);
#pragma GCC unroll 4
    for (int round = 0; round < 4; round++) {
#pragma GCC unroll 8
        for (int i = 0; i < RC_VEC / 2; i++) {
            b[2 * i] = RC_INTERLEAVE_LOW(a[i], a[i + RC_VEC / 2]);
            b[2 * i + 1] = RC_INTERLEAVE_HIGH(a[i], a[i + RC_VEC / 2]);
        }
#pragma GCC unroll 16
        for (int i = 0; i < RC_VEC; i++)
            a[i] = b[i];
    }
#pragma GCC unroll 16
    for (int i = 0; i < RC_VEC; i++) {
        rc_vec_at *to = (rc_vec_at *)(t->to + (col + i) * t->ld_to + row);
        rc_vec x = a[i] * t->by;
        if (t->is_added)
            x += *to;
        *to = x;
    }
}

RC_CLONES void rc_cpu_transpose(const rc_transpose *t)
{
    const int64_t whole_rows = t->rows / RC_VEC * RC_VEC,
                  whole_cols = t->cols / RC_VEC * RC_VEC;
    for (int64_t row = 0; row < whole_rows; row += RC_VEC)
        for (int64_t col = 0; col < whole_cols; col += RC_VEC)
            transpose_square(t, row, col);
    for (int64_t row = 0; row < t->rows; row++)
        for (int64_t col = row < whole_rows ? whole_cols : 0; col < t->cols; col++) {
            float x = t->from[row * t->ld_from + col] * t->by;
            float *to = t->to + col * t->ld_to + row;
            *to = t->is_added ? *to + x : x;
        }
}
