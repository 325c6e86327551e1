/* gemm_check.c — Freivalds' check of a product, row by row. */
#include "exec/cpu/gemm_check.h"

#include "exec/cpu/operand.h"

#include <float.h>
#include <math.h>

/* Of a row of c, as a share of |a_i| |b| (Frobenius) + |c0_i|: k roundings of unit FLT_EPSILON / 2 add
 * up like sqrt(k) of them. Measured over 3 forms, 1 to 4,096 in each dimension, operands of both
 * signs, positive ones and such with outliers: right products reach at most 0.14 of the limit. One element
 * that is missing in a row of n stands out by 1 / (FLT_EPSILON (16 + 4 sqrt(k)) sqrt(n k)) of it, 150
 * at n = k = 512 and 7 at 4,096; half a row by sqrt(n / 2) times that. */
static double tolerance(int64_t k)
{
    return (double)FLT_EPSILON * (16 + 4 * sqrt((double)k));
}

/* Sign of column j: a bit of a multiplicative hash. */
RC_INLINE double sign_of(int64_t j)
{
    uint64_t x = (uint64_t)j * UINT64_C(0x9E3779B97F4A7C15);
    return (x ^ x >> 31) >> 33 & 1 ? 1.0 : -1.0;
}

int64_t rc_gemm_check_room(int64_t m, int64_t n, int64_t k)
{
    return 1 + n + 2 * k + 6 * m;
}

typedef struct dot {
    double product, square;
} dot;

/* x . r and x . x */
RC_CLONES static dot dot_row(const float *x, const double *r, int64_t n)
{
    double product = 0, square = 0;
#pragma omp simd reduction(+ : product, square)
    for (int64_t j = 0; j < n; j++) {
        product += (double)x[j] * r[j];
        square += (double)x[j] * (double)x[j];
    }
    return (dot){product, square};
}

/* One operand of a product, [rows, columns], stored [columns, rows] where transposed. */
typedef struct matrix {
    const float *x;
    int64_t ld, rows, columns;
    bool is_transposed;
} matrix;

/* A vector, and beside it the squared norms of the rows that made it. */
typedef struct image {
    double *to, *squares;
} image;

static void rows_times(const matrix *m, const double *r, image out, int n_threads)
{
#pragma omp parallel for num_threads(n_threads) schedule(static)
    for (int64_t i = 0; i < m->rows; i++) {
        dot d = dot_row(m->x + i * m->ld, r, m->columns);
        out.to[i] = d.product;
        out.squares[i] = d.square;
    }
}

enum { BLOCK = 512 }; /* rows of a transposed matrix that one thread works on */

RC_CLONES static void add_row(double *to, double *squares, double by, const float *x, int64_t n)
{
#pragma omp simd
    for (int64_t j = 0; j < n; j++) {
        to[j] += by * (double)x[j];
        squares[j] += (double)x[j] * (double)x[j];
    }
}

static void transposed_times(const matrix *m, const double *r, image out, int n_threads)
{
#pragma omp parallel for num_threads(n_threads) schedule(static)
    for (int64_t first = 0; first < m->rows; first += BLOCK) {
        const int64_t n = rc_min(BLOCK, m->rows - first);
        for (int64_t i = first; i < first + n; i++)
            out.to[i] = out.squares[i] = 0;
        for (int64_t j = 0; j < m->columns; j++)
            add_row(out.to + first, out.squares + first, r[j], m->x + j * m->ld + first, n);
    }
}

/* m r, and |m_i|^2 of every row */
static void times(const matrix *m, const double *r, image out, int n_threads)
{
    if (m->is_transposed)
        transposed_times(m, r, out, n_threads);
    else
        rows_times(m, r, out, n_threads);
}

/* Parts of the room. */
typedef struct parts {
    double *norm;             /* [1] |b| */
    double *signs;            /* [n] r */
    image br;                 /* [k] b r */
    image before, abr, after; /* [m] c0 r, a b r, c r */
} parts;

static image take(double **room, int64_t n)
{
    image out = {*room, *room + n};
    *room += 2 * n;
    return out;
}

static parts split(const rc_gemm *g, double *room)
{
    parts p = {.norm = room, .signs = room + 1};
    double *rest = p.signs + g->n;
    p.br = take(&rest, g->k);
    p.before = take(&rest, g->m);
    p.abr = take(&rest, g->m);
    p.after = take(&rest, g->m);
    return p;
}

void rc_gemm_check_begin(const rc_gemm *g, double *room, int n_threads)
{
    const parts p = split(g, room);
    const matrix b = {g->b, g->ldb, g->k, g->n, g->is_b_transposed};
    const matrix c = {g->c, g->ldc, g->m, g->n, false};
    double square = 0;
    for (int64_t j = 0; j < g->n; j++)
        p.signs[j] = sign_of(j);
    times(&b, p.signs, p.br, n_threads);
    for (int64_t t = 0; t < g->k; t++)
        square += p.br.squares[t];
    *p.norm = sqrt(square);
    if (g->beta != 0)
        times(&c, p.signs, p.before, n_threads);
}

bool rc_gemm_check_end(const rc_gemm *g, double *room, int n_threads)
{
    const parts p = split(g, room);
    const matrix a = {g->a, g->lda, g->m, g->k, g->is_a_transposed};
    const matrix c = {g->c, g->ldc, g->m, g->n, false};
    const double alpha = (double)g->alpha, beta = (double)g->beta, limit = tolerance(g->k);
    times(&a, p.br.to, p.abr, n_threads);
    times(&c, p.signs, p.after, n_threads);
    for (int64_t i = 0; i < g->m; i++) {
        double wanted = alpha * p.abr.to[i],
               scale = fabs(alpha) * sqrt(p.abr.squares[i]) * *p.norm;
        if (beta != 0) {
            wanted += beta * p.before.to[i];
            scale += fabs(beta) * sqrt(p.before.squares[i]);
        }
        if (!(scale < (double)FLT_MAX))
            continue; /* infinite operands, or results: the loss tells */
        if (!(fabs(p.after.to[i] - wanted) <= limit * scale + (double)FLT_MIN))
            return false;
    }
    return true;
}
