/* linear.c — y = x w^T + b; dx = dy w; dw = dy^T x; db = sum over rows of dy. */
#include "exec/cpu/kernels.h"

#include "exec/cpu/columns.h"
#include "exec/cpu/gemm.h"
#include "exec/cpu/operand.h"

RC_CLONES static void add_bias(float *y, const float *b, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        y[i] += b[i];
}

void rc_cpu_linear_fwd(const rc_call *call)
{
    const rc_op_attr *attr = call->attr;
    const rc_operand *x = &call->in[0], *w = &call->in[1], *y = &call->out[0];
    const float *b = rc_f32(&call->in[2]);
    rc_gemm gemm = {.is_b_transposed = true,
                    .m = attr->n,
                    .n = attr->out,
                    .k = attr->in,
                    .alpha = 1,
                    .a = rc_f32(x),
                    .lda = x->ld,
                    .b = rc_f32(w),
                    .ldb = w->ld,
                    .c = rc_f32(y),
                    .ldc = y->ld};
    rc_gemm_call(call, &gemm, call->n_threads);
    if (!b)
        return;
#pragma omp parallel for num_threads(call->n_threads) schedule(static)
    for (int64_t r = 0; r < attr->n; r++)
        add_bias(rc_f32_row(y, r), b, attr->out);
}

void rc_cpu_linear_bwd(const rc_call *call)
{
    const rc_op_attr *attr = call->attr;
    const rc_operand *x = &call->in[0], *w = &call->in[1], *dy = &call->d_out;
    const rc_operand *dx = &call->d_in[0], *dw = &call->d_in[1];
    if (dx->at) {
        rc_gemm gemm = {.m = attr->n,
                        .n = attr->in,
                        .k = attr->out,
                        .alpha = 1,
                        .beta = dx->is_added ? 1.0f : 0.0f,
                        .a = rc_f32(dy),
                        .lda = dy->ld,
                        .b = rc_f32(w),
                        .ldb = w->ld,
                        .c = rc_f32(dx),
                        .ldc = dx->ld};
        rc_gemm_call(call, &gemm, call->n_threads);
    }
    if (dw->at) {
        rc_gemm gemm = {.is_a_transposed = true,
                        .m = attr->out,
                        .n = attr->in,
                        .k = attr->n,
                        .alpha = 1,
                        .beta = dw->is_added ? 1.0f : 0.0f,
                        .a = rc_f32(dy),
                        .lda = dy->ld,
                        .b = rc_f32(x),
                        .ldb = x->ld,
                        .c = rc_f32(dw),
                        .ldc = dw->ld};
        rc_gemm_call(call, &gemm, call->n_threads);
    }
    rc_cpu_column_sums(&call->d_in[2], dy, attr->n, attr->out, call->n_threads);
}
