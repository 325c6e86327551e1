/* embedding.c — rows of a table by token, plus rows by position; backward adds rows back.
 *
 * Tokens repeat, so threads share columns and not tokens: each strip of columns is added in token
 * order, without atomics and with the same bits on any number of threads.
 */
#include "exec/cpu/kernels.h"

#include "exec/cpu/operand.h"

#include <string.h>

enum { STRIP = 64 };

RC_CLONES static void add_rows(float *y, const float *a, const float *b, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        y[i] = a[i] + b[i];
}

RC_CLONES static void add_to(float *y, const float *x, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        y[i] += x[i];
}

void rc_cpu_embedding_fwd(const rc_call *call)
{
    const rc_op_attr *attr = call->attr;
    const int32_t *tokens = rc_i32(&call->in[0]);
#pragma omp parallel for num_threads(call->n_threads) schedule(static)
    for (int64_t r = 0; r < attr->n; r++) {
        float *y = rc_f32_row(&call->out[0], r);
        const float *w = rc_f32_row(&call->in[1], tokens[r]);
        if (call->in[2].at)
            add_rows(y, w, rc_f32_row(&call->in[2], r % attr->s), attr->h);
        else
            memcpy(y, w, (size_t)attr->h * sizeof *y);
    }
}

static void token_strip(const rc_call *call, int64_t first)
{
    const rc_op_attr *attr = call->attr;
    const rc_operand *dw = &call->d_in[1];
    const int32_t *tokens = rc_i32(&call->in[0]);
    const int64_t n = rc_min(STRIP, attr->h - first);
    if (!dw->is_added)
        for (int64_t v = 0; v < attr->V; v++)
            memset(rc_f32_row(dw, v) + first, 0, (size_t)n * sizeof(float));
    for (int64_t r = 0; r < attr->n; r++)
        add_to(rc_f32_row(dw, tokens[r]) + first, rc_f32_row(&call->d_out, r) + first, n);
}

static void position_row(const rc_call *call, int64_t position)
{
    const rc_op_attr *attr = call->attr;
    const rc_operand *dw = &call->d_in[2];
    float *to = rc_f32_row(dw, position);
    if (!dw->is_added)
        memset(to, 0, (size_t)attr->h * sizeof *to);
    for (int64_t r = position; r < attr->n; r += attr->s)
        add_to(to, rc_f32_row(&call->d_out, r), attr->h);
}

void rc_cpu_embedding_bwd(const rc_call *call)
{
    const rc_op_attr *attr = call->attr;
    if (call->d_in[1].at) {
#pragma omp parallel for num_threads(call->n_threads) schedule(static)
        for (int64_t first = 0; first < attr->h; first += STRIP)
            token_strip(call, first);
    }
    if (call->d_in[2].at) {
#pragma omp parallel for num_threads(call->n_threads) schedule(static)
        for (int64_t position = 0; position < attr->s; position++)
            position_row(call, position);
    }
}
