/* dropout.c — dropout, and the end of a residual branch: y = residual + dropout(x + b).
 *
 * The mask is never stored: backward draws the same Philox numbers again. Element e of the op is
 * row * width + column.
 */
#include "exec/cpu/kernels.h"

#include "base/random.h"
#include "exec/cpu/columns.h"
#include "exec/cpu/operand.h"

enum { CHUNK = 1024 };

static rc_random call_random(const rc_call *call)
{
    return (rc_random){.seed = call->seed, .draw = call->draw, .id = call->attr->random_id};
}

RC_CLONES static void scale_range(float *y, const float *x, const float *keep, int64_t n,
                                  bool is_added)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        rc_put(&y[i], x[i] * keep[i], is_added);
}

static void copy_range(float *y, const float *x, int64_t n, bool is_added)
{
    if (y == x)
        return;
    for (int64_t i = 0; i < n; i++)
        rc_put(&y[i], x[i], is_added);
}

/* y (+)= x * keep / (1 - p), forward and backward alike */
static void dropout(const rc_call *call, const rc_operand *to, const rc_operand *from)
{
    const rc_random random = call_random(call);
    const int64_t n = call->attr->n_elem;
    const double p = call->attr->p;
    float *y = rc_f32(to);
    const float *x = rc_f32(from);
    if (!y)
        return;
#pragma omp parallel for num_threads(call->n_threads) schedule(static)
    for (int64_t first = 0; first < n; first += CHUNK) {
        float keep[CHUNK];
        int64_t m = rc_min(CHUNK, n - first);
        if (p > 0) {
            rc_random_keep(&random, (uint64_t)first, m, p, keep);
            scale_range(y + first, x + first, keep, m, to->is_added);
        } else {
            copy_range(y + first, x + first, m, to->is_added);
        }
    }
}

void rc_cpu_dropout_fwd(const rc_call *call)
{
    rc_operand to = call->out[0];
    to.is_added = false;
    dropout(call, &to, &call->in[0]);
}

void rc_cpu_dropout_bwd(const rc_call *call)
{
    dropout(call, &call->d_in[0], &call->d_out);
}

RC_CLONES static void residual_range(float *y, const float *x, const float *residual,
                                     const float *b, int64_t n)
{
    if (b) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            y[i] = residual[i] + (x[i] + b[i]);
    } else {
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            y[i] = residual[i] + x[i];
    }
}

typedef struct residual_part {
    float *y;
    const float *x, *residual, *b; /* b may be NULL */
} residual_part;

RC_CLONES static void residual_keep_range(const residual_part *part, const float *keep,
                                          int64_t n)
{
    float *y = part->y;
    const float *x = part->x, *residual = part->residual, *b = part->b;
    if (b) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            y[i] = residual[i] + (x[i] + b[i]) * keep[i];
    } else {
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            y[i] = residual[i] + x[i] * keep[i];
    }
}

static void residual_row(const rc_call *call, int64_t row)
{
    const rc_op_attr *attr = call->attr;
    const rc_random random = call_random(call);
    const float *b = rc_f32(&call->in[2]);
    for (int64_t first = 0; first < attr->h; first += CHUNK) {
        float keep[CHUNK];
        int64_t m = rc_min(CHUNK, attr->h - first);
        residual_part part = {.y = rc_f32_row(&call->out[0], row) + first,
                              .x = rc_f32_row(&call->in[0], row) + first,
                              .residual = rc_f32_row(&call->in[1], row) + first,
                              .b = b ? b + first : NULL};
        if (attr->p > 0) {
            rc_random_keep(&random, (uint64_t)(row * attr->h + first), m, attr->p, keep);
            residual_keep_range(&part, keep, m);
        } else {
            residual_range(part.y, part.x, part.residual, part.b, m);
        }
    }
}

void rc_cpu_bias_dropout_add_fwd(const rc_call *call)
{
#pragma omp parallel for num_threads(call->n_threads) schedule(static)
    for (int64_t row = 0; row < call->attr->n; row++)
        residual_row(call, row);
}

/* db where dx is not kept apart: the masked gradient again, block by block, summed in the order of
 * rc_cpu_column_sums. */
static void masked_bias_strip(const rc_call *call, int64_t first)
{
    const rc_op_attr *attr = call->attr;
    const rc_random random = call_random(call);
    const int64_t m = rc_min(RC_COLUMN_STRIP, attr->h - first);
    float *db = rc_f32(&call->d_in[2]) + first;
    float sum[RC_COLUMN_STRIP] = {0}, block[RC_COLUMN_ROWS][RC_COLUMN_STRIP];
    for (int64_t at = 0; at < attr->n; at += RC_COLUMN_ROWS) {
        const int64_t n_rows = rc_min(RC_COLUMN_ROWS, attr->n - at);
        for (int64_t i = 0; i < n_rows; i++) {
            float keep[RC_COLUMN_STRIP];
            rc_random_keep(&random, (uint64_t)((at + i) * attr->h + first), m, attr->p, keep);
            scale_range(block[i], rc_f32_row(&call->d_out, at + i) + first, keep, m, false);
        }
        rc_cpu_column_part(sum, block[0], RC_COLUMN_STRIP, n_rows, m);
    }
    for (int64_t i = 0; i < m; i++)
        rc_put(&db[i], sum[i], call->d_in[2].is_added);
}

static void bias_bwd(const rc_call *call)
{
    const rc_op_attr *attr = call->attr;
    const bool has_dx = call->d_in[0].at && !call->d_in[0].is_added;
    if (!call->d_in[2].at)
        return;
    if (attr->p == 0 || has_dx) {
        rc_cpu_column_sums(&call->d_in[2], attr->p == 0 ? &call->d_out : &call->d_in[0],
                           attr->n, attr->h, call->n_threads);
        return;
    }
#pragma omp parallel for num_threads(call->n_threads) schedule(static)
    for (int64_t first = 0; first < attr->h; first += RC_COLUMN_STRIP)
        masked_bias_strip(call, first);
}

static void residual_bwd_row(const rc_call *call, int64_t row)
{
    const rc_op_attr *attr = call->attr;
    const rc_random random = call_random(call);
    const float *dy = rc_f32_row(&call->d_out, row);
    if (call->d_in[1].at)
        copy_range(rc_f32_row(&call->d_in[1], row), dy, attr->h, call->d_in[1].is_added);
    if (!call->d_in[0].at)
        return;
    float *dx = rc_f32_row(&call->d_in[0], row);
    if (attr->p == 0) {
        copy_range(dx, dy, attr->h, call->d_in[0].is_added);
        return;
    }
    for (int64_t first = 0; first < attr->h; first += CHUNK) {
        float keep[CHUNK];
        int64_t m = rc_min(CHUNK, attr->h - first);
        rc_random_keep(&random, (uint64_t)(row * attr->h + first), m, attr->p, keep);
        scale_range(dx + first, dy + first, keep, m, call->d_in[0].is_added);
    }
}

void rc_cpu_bias_dropout_add_bwd(const rc_call *call)
{
#pragma omp parallel for num_threads(call->n_threads) schedule(static)
    for (int64_t row = 0; row < call->attr->n; row++)
        residual_bwd_row(call, row);
    bias_bwd(call);
}
