/* attention_unfused.c — attention as separate ops that store the s x s matrices: what a model
 * without a fused kernel does, and what core_attn's recompute saves there.
 *
 * One product per (sequence, head), each on one thread. The keys' and values' gradients sum
 * over the query heads of their group in order, so a thread takes a whole group.
 */
#include "exec/cpu/kernels.h"

#include "exec/cpu/fmath.h"
#include "exec/cpu/gemm.h"
#include "exec/cpu/operand.h"

/* One head of a token-major operand, and one square of a [b,a,s,s] operand. */
static float *head_at(const rc_operand *x, const rc_op_attr *attr, int64_t seq, int64_t head)
{
    return x->at ? rc_f32_row(x, seq * attr->s) + head * attr->d : NULL;
}

static float *square_at(const rc_operand *x, const rc_op_attr *attr, int64_t seq, int64_t head)
{
    return x->at ? rc_f32(x) + (seq * attr->a + head) * attr->s * attr->s : NULL;
}

void rc_cpu_attn_scores_fwd(const rc_call *call)
{
    const rc_op_attr *attr = call->attr;
    const int64_t per_group = attr->a / attr->g;
#pragma omp parallel for num_threads(call->n_threads) schedule(static)
    for (int64_t unit = 0; unit < attr->b * attr->a; unit++) {
        int64_t seq = unit / attr->a, head = unit % attr->a;
        rc_gemm gemm = {.is_b_transposed = true,
                        .m = attr->s,
                        .n = attr->s,
                        .k = attr->d,
                        .alpha = (float)attr->scale,
                        .a = head_at(&call->in[0], attr, seq, head),
                        .lda = call->in[0].ld,
                        .b = head_at(&call->in[1], attr, seq, head / per_group),
                        .ldb = call->in[1].ld,
                        .c = square_at(&call->out[0], attr, seq, head),
                        .ldc = attr->s};
        rc_gemm_call(call, &gemm, 1);
    }
}

/* dq = scale dscores k */
static void scores_dq(const rc_call *call, int64_t seq, int64_t head)
{
    const rc_op_attr *attr = call->attr;
    rc_gemm gemm = {.m = attr->s,
                    .n = attr->d,
                    .k = attr->s,
                    .alpha = (float)attr->scale,
                    .beta = call->d_in[0].is_added ? 1.0f : 0.0f,
                    .a = square_at(&call->d_out, attr, seq, head),
                    .lda = attr->s,
                    .b = head_at(&call->in[1], attr, seq, head / (attr->a / attr->g)),
                    .ldb = call->in[1].ld,
                    .c = head_at(&call->d_in[0], attr, seq, head),
                    .ldc = call->d_in[0].ld};
    rc_gemm_call(call, &gemm, 1);
}

/* dk or dv of one group (+)= sum over its heads of alpha square^T x, in order of the heads */
typedef struct group_sum {
    const rc_operand *to, *square, *x;
    float alpha;
} group_sum;

static void group_add(const rc_call *call, const group_sum *sum, int64_t seq, int64_t group)
{
    const rc_op_attr *attr = call->attr;
    const int64_t per_group = attr->a / attr->g;
    for (int64_t i = 0; i < per_group; i++) {
        int64_t head = group * per_group + i;
        rc_gemm gemm = {.is_a_transposed = true,
                        .m = attr->s,
                        .n = attr->d,
                        .k = attr->s,
                        .alpha = sum->alpha,
                        .beta = i > 0 || sum->to->is_added ? 1.0f : 0.0f,
                        .a = square_at(sum->square, attr, seq, head),
                        .lda = attr->s,
                        .b = head_at(sum->x, attr, seq, head),
                        .ldb = sum->x->ld,
                        .c = head_at(sum->to, attr, seq, group),
                        .ldc = sum->to->ld};
        rc_gemm_call(call, &gemm, 1);
    }
}

void rc_cpu_attn_scores_bwd(const rc_call *call)
{
    const rc_op_attr *attr = call->attr;
    const group_sum dk = {&call->d_in[1], &call->d_out, &call->in[0], (float)attr->scale};
    if (call->d_in[0].at) {
#pragma omp parallel for num_threads(call->n_threads) schedule(static)
        for (int64_t unit = 0; unit < attr->b * attr->a; unit++)
            scores_dq(call, unit / attr->a, unit % attr->a);
    }
    if (call->d_in[1].at) {
#pragma omp parallel for num_threads(call->n_threads) schedule(static)
        for (int64_t unit = 0; unit < attr->b * attr->g; unit++)
            group_add(call, &dk, unit / attr->g, unit % attr->g);
    }
}

/* Row of n scores, of which the first `seen` count; the rest become exact zeros. */
RC_CLONES static void softmax_row(float *p, const float *x, int64_t seen, int64_t n)
{
    float most = x[0], sum = 0;
#pragma omp simd reduction(max : most)
    for (int64_t i = 0; i < seen; i++)
        most = x[i] > most ? x[i] : most;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < seen; i++) {
        p[i] = rc_exp(x[i] - most);
        sum += p[i];
    }
    const float scale = 1.0f / sum;
#pragma omp simd
    for (int64_t i = 0; i < seen; i++)
        p[i] *= scale;
    for (int64_t i = seen; i < n; i++)
        p[i] = 0;
}

typedef struct softmax_grad {
    float *dx;
    const float *p, *dp;
    bool is_added;
} softmax_grad;

RC_CLONES static void softmax_grad_row(const softmax_grad *g, int64_t seen, int64_t n)
{
    const float *p = g->p, *dp = g->dp;
    float *dx = g->dx;
    float dot = 0;
#pragma omp simd reduction(+ : dot)
    for (int64_t i = 0; i < seen; i++)
        dot += p[i] * dp[i];
#pragma omp simd
    for (int64_t i = 0; i < seen; i++)
        rc_put(&dx[i], p[i] * (dp[i] - dot), g->is_added);
    for (int64_t i = seen; i < n && !g->is_added; i++)
        dx[i] = 0;
}

void rc_cpu_softmax_fwd(const rc_call *call)
{
    const rc_op_attr *attr = call->attr;
    const int64_t s = attr->s;
    const float *x = rc_f32(&call->in[0]);
    float *p = rc_f32(&call->out[0]);
#pragma omp parallel for num_threads(call->n_threads) schedule(static)
    for (int64_t r = 0; r < attr->b * attr->a * s; r++)
        softmax_row(p + r * s, x + r * s, attr->is_causal ? r % s + 1 : s, s);
}

void rc_cpu_softmax_bwd(const rc_call *call)
{
    const rc_op_attr *attr = call->attr;
    const int64_t s = attr->s;
    if (!call->d_in[0].at)
        return;
#pragma omp parallel for num_threads(call->n_threads) schedule(static)
    for (int64_t r = 0; r < attr->b * attr->a * s; r++) {
        softmax_grad g = {.dx = rc_f32(&call->d_in[0]) + r * s,
                          .p = rc_f32(&call->out[0]) + r * s,
                          .dp = rc_f32(&call->d_out) + r * s,
                          .is_added = call->d_in[0].is_added};
        softmax_grad_row(&g, attr->is_causal ? r % s + 1 : s, s);
    }
}

static void context_head(const rc_call *call, int64_t seq, int64_t head)
{
    const rc_op_attr *attr = call->attr;
    rc_gemm gemm = {.m = attr->s,
                    .n = attr->d,
                    .k = attr->s,
                    .alpha = 1,
                    .a = square_at(&call->in[0], attr, seq, head),
                    .lda = attr->s,
                    .b = head_at(&call->in[1], attr, seq, head / (attr->a / attr->g)),
                    .ldb = call->in[1].ld,
                    .c = head_at(&call->out[0], attr, seq, head),
                    .ldc = call->out[0].ld};
    rc_gemm_call(call, &gemm, 1);
}

/* dp = do v^T */
static void context_dp(const rc_call *call, int64_t seq, int64_t head)
{
    const rc_op_attr *attr = call->attr;
    rc_gemm gemm = {.is_b_transposed = true,
                    .m = attr->s,
                    .n = attr->s,
                    .k = attr->d,
                    .alpha = 1,
                    .beta = call->d_in[0].is_added ? 1.0f : 0.0f,
                    .a = head_at(&call->d_out, attr, seq, head),
                    .lda = call->d_out.ld,
                    .b = head_at(&call->in[1], attr, seq, head / (attr->a / attr->g)),
                    .ldb = call->in[1].ld,
                    .c = square_at(&call->d_in[0], attr, seq, head),
                    .ldc = attr->s};
    rc_gemm_call(call, &gemm, 1);
}

void rc_cpu_attn_context_fwd(const rc_call *call)
{
    const rc_op_attr *attr = call->attr;
#pragma omp parallel for num_threads(call->n_threads) schedule(static)
    for (int64_t unit = 0; unit < attr->b * attr->a; unit++)
        context_head(call, unit / attr->a, unit % attr->a);
}

void rc_cpu_attn_context_bwd(const rc_call *call)
{
    const rc_op_attr *attr = call->attr;
    const group_sum dv = {&call->d_in[1], &call->in[0], &call->d_out, 1};
    if (call->d_in[0].at) {
#pragma omp parallel for num_threads(call->n_threads) schedule(static)
        for (int64_t unit = 0; unit < attr->b * attr->a; unit++)
            context_dp(call, unit / attr->a, unit % attr->a);
    }
    if (call->d_in[1].at) {
#pragma omp parallel for num_threads(call->n_threads) schedule(static)
        for (int64_t unit = 0; unit < attr->b * attr->g; unit++)
            group_add(call, &dv, unit / attr->g, unit % attr->g);
    }
}
