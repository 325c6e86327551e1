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

/* Parts of the room. */
typedef struct parts {
    double *signs;   /* [n] */
    double *br;      /* [k] b r */
    double *before;  /* [m] beta c0 r, then also alpha a b r */
    double *scale;   /* [m] */
    double *squares; /* [m] of a's columns, where a is transposed */
    double *norm;    /* [1] |b| */
} parts;

static parts split(const rc_gemm *g, double *room)
{
    return (parts){.signs = room,
                   .br = room + g->n,
                   .before = room + g->n + g->k,
                   .scale = room + g->n + g->k + g->m,
                   .squares = room + g->n + g->k + 2 * g->m,
                   .norm = room + g->n + g->k + 3 * g->m};
}

int64_t rc_gemm_check_room(int64_t m, int64_t n, int64_t k)
{
    return n + k + 3 * m + 1;
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

/* to += by x; square += x^2 */
RC_CLONES static void add_row(double *to, double *square, double by, const float *x, int64_t n)
{
#pragma omp simd
    for (int64_t j = 0; j < n; j++) {
        to[j] += by * (double)x[j];
        square[j] += (double)x[j] * (double)x[j];
    }
}

RC_CLONES static double add_row_norm(double *to, double by, const float *x, int64_t n)
{
    double square = 0;
#pragma omp simd reduction(+ : square)
    for (int64_t j = 0; j < n; j++) {
        to[j] += by * (double)x[j];
        square += (double)x[j] * (double)x[j];
    }
    return square;
}

void rc_gemm_check_begin(const rc_gemm *g, double *room)
{
    parts p = split(g, room);
    double square = 0;
    for (int64_t j = 0; j < g->n; j++)
        p.signs[j] = sign_of(j);
    for (int64_t t = 0; t < g->k; t++)
        p.br[t] = 0;
    for (int64_t j = 0; j < g->n && g->is_b_transposed; j++)
        square += add_row_norm(p.br, p.signs[j], g->b + j * g->ldb, g->k);
    for (int64_t t = 0; t < g->k && !g->is_b_transposed; t++) {
        dot d = dot_row(g->b + t * g->ldb, p.signs, g->n);
        p.br[t] = d.product;
        square += d.square;
    }
    *p.norm = sqrt(square);
    for (int64_t i = 0; i < g->m; i++) {
        p.before[i] = p.scale[i] = p.squares[i] = 0;
        if (g->beta == 0)
            continue;
        dot d = dot_row(g->c + i * g->ldc, p.signs, g->n);
        p.before[i] = (double)g->beta * d.product;
        p.scale[i] = fabs((double)g->beta) * sqrt(d.square);
    }
}

/* before += alpha a (b r), scale += |alpha| |a_i| |b| */
static void add_product(const rc_gemm *g, const parts *p)
{
    const double alpha = (double)g->alpha;
    if (!g->is_a_transposed) {
        for (int64_t i = 0; i < g->m; i++) {
            dot d = dot_row(g->a + i * g->lda, p->br, g->k);
            p->before[i] += alpha * d.product;
            p->scale[i] += fabs(alpha) * sqrt(d.square) * *p->norm;
        }
        return;
    }
    for (int64_t t = 0; t < g->k; t++)
        add_row(p->before, p->squares, alpha * p->br[t], g->a + t * g->lda, g->m);
    for (int64_t i = 0; i < g->m; i++)
        p->scale[i] += fabs(alpha) * sqrt(p->squares[i]) * *p->norm;
}

bool rc_gemm_check_end(const rc_gemm *g, double *room)
{
    parts p = split(g, room);
    const double limit = tolerance(g->k);
    add_product(g, &p);
    for (int64_t i = 0; i < g->m; i++) {
        if (!(p.scale[i] < (double)FLT_MAX))
            continue; /* infinite operands, or results: the loss tells */
        dot d = dot_row(g->c + i * g->ldc, p.signs, g->n);
        if (!(fabs(d.product - p.before[i]) <= limit * p.scale[i] + (double)FLT_MIN))
            return false;
    }
    return true;
}
