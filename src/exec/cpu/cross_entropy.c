/* cross_entropy.c — the loss, and its gradient over the logits.
 *
 *   lse = max + log sum exp(logit - max)       loss = mean of lse - logit[target]
 *   dlogit = (exp(logit - lse) - [target]) * loss_scale / counted tokens
 *
 * A target below 0 is masked: no loss, zero gradient. Without a counted token the loss is 0.
 */
#include "exec/cpu/kernels.h"

#include "exec/cpu/fmath.h"
#include "exec/cpu/operand.h"

#include <math.h>

RC_CLONES static float row_lse(const float *x, int64_t V)
{
    float most = x[0], sum = 0;
#pragma omp simd reduction(max : most)
    for (int64_t i = 0; i < V; i++)
        most = x[i] > most ? x[i] : most;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < V; i++)
        sum += rc_exp(x[i] - most);
    return most + logf(sum);
}

RC_CLONES static void row_grad(float *dx, const float *x, float lse, float scale, int64_t V,
                               bool is_added)
{
#pragma omp simd
    for (int64_t i = 0; i < V; i++)
        rc_put(&dx[i], rc_exp(x[i] - lse) * scale, is_added);
}

static int64_t count_targets(const int32_t *targets, int64_t n)
{
    int64_t n_counted = 0;
    for (int64_t r = 0; r < n; r++)
        n_counted += targets[r] >= 0;
    return n_counted;
}

void rc_cpu_cross_entropy_fwd(const rc_call *call)
{
    const rc_op_attr *attr = call->attr;
    const int32_t *targets = rc_i32(&call->in[1]);
    float *lse = rc_f32(&call->out[1]);
    const int64_t n_counted = count_targets(targets, attr->n);
    double loss = 0;
#pragma omp parallel for num_threads(call->n_threads) schedule(static)
    for (int64_t r = 0; r < attr->n; r++)
        lse[r] = row_lse(rc_f32_row(&call->in[0], r), attr->V);
    for (int64_t r = 0; r < attr->n; r++)
        if (targets[r] >= 0)
            loss += (double)lse[r] - (double)rc_f32_row(&call->in[0], r)[targets[r]];
    *rc_f32(&call->out[0]) = n_counted ? (float)(loss / (double)n_counted) : 0.0f;
}

void rc_cpu_cross_entropy_bwd(const rc_call *call)
{
    const rc_op_attr *attr = call->attr;
    const int32_t *targets = rc_i32(&call->in[1]);
    const float *lse = rc_f32(&call->out[1]);
    const int64_t n_counted = count_targets(targets, attr->n);
    const float scale = n_counted ? (float)(attr->loss_scale / (double)n_counted) : 0.0f;
    if (!call->d_in[0].at)
        return;
#pragma omp parallel for num_threads(call->n_threads) schedule(static)
    for (int64_t r = 0; r < attr->n; r++) {
        float *dx = rc_f32_row(&call->d_in[0], r);
        const float *x = rc_f32_row(&call->in[0], r);
        const bool is_counted = targets[r] >= 0;
        row_grad(dx, x, lse[r], is_counted ? scale : 0.0f, attr->V, call->d_in[0].is_added);
        if (is_counted)
            dx[targets[r]] -= scale;
    }
}
