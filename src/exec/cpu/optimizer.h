/* optimizer.h — kernels of the optimizer step. */
#ifndef RC_EXEC_CPU_OPTIMIZER_H
#define RC_EXEC_CPU_OPTIMIZER_H

#include <stdint.h>

/* Sum of squares of n elements, in double and in an order that depends on n alone.
 * scratch   rc_cpu_sum_squares_scratch_bytes() */
double rc_cpu_sum_squares(const float *x, int64_t n, void *scratch, int n_threads);
int64_t rc_cpu_sum_squares_scratch_bytes(void);

/* AdamW with decoupled weight decay (Loshchilov and Hutter 2019), as torch.optim.AdamW:
 *   p -= lr weight_decay p
 *   m = beta1 m + (1 - beta1) g                v = beta2 v + (1 - beta2) g^2
 *   p -= lr (m / (1 - beta1^step)) / (sqrt(v / (1 - beta2^step)) + eps) */
typedef struct rc_adamw {
    float *p, *m, *v; /* [n] */
    const float *g;   /* [n] */
    int64_t n;
    double g_scale; /* every gradient is multiplied by it first: clipping */
    double lr, weight_decay, beta1, beta2, eps;
    int64_t step; /* from 1 */
} rc_adamw;

void rc_cpu_adamw(const rc_adamw *arg, int n_threads);

void rc_cpu_scale(float *x, int64_t n, float by, int n_threads);
void rc_cpu_fill(float *x, int64_t n, float value, int n_threads);

#endif
