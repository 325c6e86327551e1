/* optimizer.c — AdamW and the gradient's norm. */
#include "exec/cpu/optimizer.h"

#include "exec/cpu/operand.h"
#include "op/scratch.h"

#include <math.h>

enum { BLOCK = 4096 };

/* 8 lanes of double, then blocks in order: the order of the sum never depends on the threads. */
RC_CLONES static double block_squares(const float *x, int64_t n)
{
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)x[i];
    return sum;
}

int64_t rc_cpu_sum_squares_scratch_bytes(void)
{
    return RC_N_CHUNKS * (int64_t)sizeof(double);
}

double rc_cpu_sum_squares(const float *x, int64_t n, void *scratch, int n_threads)
{
    double *sums = scratch, total = 0;
    const int64_t step = rc_ceil_div(rc_ceil_div(n, RC_N_CHUNKS), BLOCK) * BLOCK;
#pragma omp parallel for num_threads(n_threads) schedule(static)
    for (int64_t chunk = 0; chunk < RC_N_CHUNKS; chunk++) {
        double sum = 0;
        int64_t end = rc_min(n, (chunk + 1) * step);
        for (int64_t i = chunk * step; i < end; i += BLOCK)
            sum += block_squares(x + i, rc_min(BLOCK, end - i));
        sums[chunk] = sum;
    }
    for (int64_t chunk = 0; chunk < RC_N_CHUNKS; chunk++)
        total += sums[chunk];
    return total;
}

/* The numbers of a step, rounded once. */
typedef struct adamw_step {
    float g_scale, decay, beta1, rest1, beta2, rest2, rate, inverse2, eps;
} adamw_step;

RC_CLONES static void adamw_range(const rc_adamw *arg, const adamw_step *step, int64_t first,
                                  int64_t n)
{
    float *p = arg->p + first, *m = arg->m + first, *v = arg->v + first;
    const float *g = arg->g + first;
    const adamw_step k = *step;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        float grad = g[i] * k.g_scale;
        m[i] = k.beta1 * m[i] + k.rest1 * grad;
        v[i] = k.beta2 * v[i] + k.rest2 * (grad * grad);
        p[i] = p[i] * k.decay - k.rate * m[i] / (sqrtf(v[i] * k.inverse2) + k.eps);
    }
}

void rc_cpu_adamw(const rc_adamw *arg, int n_threads)
{
    const double left1 = 1.0 - pow(arg->beta1, (double)arg->step);
    const double left2 = 1.0 - pow(arg->beta2, (double)arg->step);
    const adamw_step step = {.g_scale = (float)arg->g_scale,
                             .decay = (float)(1.0 - arg->lr * arg->weight_decay),
                             .beta1 = (float)arg->beta1,
                             .rest1 = (float)(1.0 - arg->beta1),
                             .beta2 = (float)arg->beta2,
                             .rest2 = (float)(1.0 - arg->beta2),
                             .rate = (float)(arg->lr / left1),
                             .inverse2 = (float)(1.0 / left2),
                             .eps = (float)arg->eps};
#pragma omp parallel for num_threads(n_threads) schedule(static)
    for (int64_t i = 0; i < arg->n; i += BLOCK)
        adamw_range(arg, &step, i, rc_min(BLOCK, arg->n - i));
}

void rc_cpu_scale(float *x, int64_t n, float by, int n_threads)
{
#pragma omp parallel for num_threads(n_threads) schedule(static)
    for (int64_t i = 0; i < n; i++)
        x[i] *= by;
}

void rc_cpu_fill(float *x, int64_t n, float value, int n_threads)
{
#pragma omp parallel for num_threads(n_threads) schedule(static)
    for (int64_t i = 0; i < n; i++)
        x[i] = value;
}
