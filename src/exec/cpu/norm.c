/* norm.c — layernorm and rmsnorm.
 *
 *   layernorm  u = (x - mean) rstd   y = u W + b   dx = rstd (g - mean(g) - u mean(g u)), g = dy W
 *   rmsnorm    u = x rstd            y = u W       dx = rstd (g - u mean(g u))
 *   both       dw = sum over rows of dy u          db = sum over rows of dy
 *
 * W is w + w_shift: 1 + w where weights are stored around 0 (layernorm_zero_centered_gamma).
 *
 * The sums over rows go through RC_N_CHUNKS partial sums in scratch, added in order.
 */
#include "exec/cpu/kernels.h"

#include "exec/cpu/operand.h"
#include "op/scratch.h"

#include <math.h>
#include <string.h>

/* One row of either norm; mean stays NULL for rmsnorm. */
typedef struct norm_row {
    float *y;
    float *mean, *rstd;
    const float *x, *w, *b; /* b may be NULL */
    float eps, w_shift;
} norm_row;

RC_CLONES static void norm_fwd_row(const norm_row *row, int64_t h)
{
    const float *x = row->x, *w = row->w, *b = row->b;
    const float shift = row->w_shift;
    float *y = row->y;
    float mean = 0, square = 0;
    if (row->mean) {
#pragma omp simd reduction(+ : mean)
        for (int64_t i = 0; i < h; i++)
            mean += x[i];
        mean /= (float)h;
        *row->mean = mean;
    }
#pragma omp simd reduction(+ : square)
    for (int64_t i = 0; i < h; i++)
        square += (x[i] - mean) * (x[i] - mean);
    const float rstd = 1.0f / sqrtf(square / (float)h + row->eps);
    *row->rstd = rstd;
    if (b) {
#pragma omp simd
        for (int64_t i = 0; i < h; i++)
            y[i] = (x[i] - mean) * rstd * (w[i] + shift) + b[i];
    } else {
#pragma omp simd
        for (int64_t i = 0; i < h; i++)
            y[i] = (x[i] - mean) * rstd * (w[i] + shift);
    }
}

typedef struct norm_grad {
    float *dx;              /* NULL: not wanted */
    float *dw_sum, *db_sum; /* [h] added to; NULL: not wanted */
    const float *dy, *x, *w;
    float mean, rstd, w_shift;
    bool has_mean, is_added;
} norm_grad;

RC_CLONES static void norm_bwd_dx(const norm_grad *g, int64_t h)
{
    const float *dy = g->dy, *x = g->x, *w = g->w;
    const float mean = g->mean, rstd = g->rstd, shift = g->w_shift;
    float *dx = g->dx;
    const bool is_added = g->is_added;
    float sum = 0, dot = 0;
#pragma omp simd reduction(+ : sum, dot)
    for (int64_t i = 0; i < h; i++) {
        float v = dy[i] * (w[i] + shift);
        sum += v;
        dot += v * ((x[i] - mean) * rstd);
    }
    const float c = g->has_mean ? sum / (float)h : 0.0f;
    dot /= (float)h;
#pragma omp simd
    for (int64_t i = 0; i < h; i++) {
        float u = (x[i] - mean) * rstd;
        rc_put(&dx[i], rstd * (dy[i] * (w[i] + shift) - c - u * dot), is_added);
    }
}

RC_CLONES static void norm_bwd_sums(const norm_grad *g, int64_t h)
{
    const float *dy = g->dy, *x = g->x;
    const float mean = g->mean, rstd = g->rstd;
    float *dw = g->dw_sum, *db = g->db_sum;
    if (dw) {
#pragma omp simd
        for (int64_t i = 0; i < h; i++)
            dw[i] += dy[i] * ((x[i] - mean) * rstd);
    }
    if (db) {
#pragma omp simd
        for (int64_t i = 0; i < h; i++)
            db[i] += dy[i];
    }
}

/* Row r of a norm over groups: token r / groups, its group r % groups. */
static float *group_row(const rc_operand *x, const rc_op_attr *attr, int64_t r)
{
    return rc_f32_row(x, r / attr->groups) + r % attr->groups * attr->h;
}

static void norm_fwd(const rc_call *call, bool has_mean)
{
    const rc_op_attr *attr = call->attr;
    float *mean = has_mean ? rc_f32(&call->out[1]) : NULL;
    float *rstd = rc_f32(&call->out[has_mean ? 2 : 1]);
    const float *w = rc_f32(&call->in[1]), *b = has_mean ? rc_f32(&call->in[2]) : NULL;
#pragma omp parallel for num_threads(call->n_threads) schedule(static)
    for (int64_t r = 0; r < attr->n * attr->groups; r++) {
        norm_row row = {.y = group_row(&call->out[0], attr, r),
                        .mean = mean ? mean + r : NULL,
                        .rstd = rstd + r,
                        .x = group_row(&call->in[0], attr, r),
                        .w = w,
                        .b = b,
                        .eps = (float)attr->eps,
                        .w_shift = (float)attr->w_shift};
        norm_fwd_row(&row, attr->h);
    }
}

static void norm_bwd_chunk(const rc_call *call, bool has_mean, int64_t chunk)
{
    const rc_op_attr *attr = call->attr;
    const int64_t n_rows = attr->n * attr->groups;
    const int64_t step = rc_ceil_div(n_rows, RC_N_CHUNKS), pad = rc_pad16(attr->h);
    const float *mean = has_mean ? rc_f32(&call->out[1]) : NULL;
    const float *rstd = rc_f32(&call->out[has_mean ? 2 : 1]);
    float *sums = (float *)call->scratch + chunk * 2 * pad;
    norm_grad g = {.dw_sum = call->d_in[1].at ? sums : NULL,
                   .db_sum = has_mean && call->d_in[2].at ? sums + pad : NULL,
                   .w = rc_f32(&call->in[1]),
                   .w_shift = (float)attr->w_shift,
                   .has_mean = has_mean,
                   .is_added = call->d_in[0].is_added};
    memset(sums, 0, (size_t)(2 * pad) * sizeof *sums);
    for (int64_t r = chunk * step; r < rc_min(n_rows, (chunk + 1) * step); r++) {
        g.dx = call->d_in[0].at ? group_row(&call->d_in[0], attr, r) : NULL;
        g.dy = group_row(&call->d_out, attr, r);
        g.x = group_row(&call->in[0], attr, r);
        g.mean = mean ? mean[r] : 0.0f;
        g.rstd = rstd[r];
        /* The sums come first: dx may stand where dy does. */
        norm_bwd_sums(&g, attr->h);
        if (g.dx)
            norm_bwd_dx(&g, attr->h);
    }
}

static void norm_bwd_total(const rc_operand *to, const float *sums, int64_t pad, int64_t h)
{
    float *total = rc_f32(to);
    if (!total)
        return;
    for (int64_t i = 0; i < h; i++) {
        float sum = 0;
        for (int64_t chunk = 0; chunk < RC_N_CHUNKS; chunk++)
            sum += sums[chunk * 2 * pad + i];
        rc_put(&total[i], sum, to->is_added);
    }
}

static void norm_bwd(const rc_call *call, bool has_mean)
{
    const int64_t pad = rc_pad16(call->attr->h);
    const float *sums = call->scratch;
#pragma omp parallel for num_threads(call->n_threads) schedule(static)
    for (int64_t chunk = 0; chunk < RC_N_CHUNKS; chunk++)
        norm_bwd_chunk(call, has_mean, chunk);
    norm_bwd_total(&call->d_in[1], sums, pad, call->attr->h);
    if (has_mean)
        norm_bwd_total(&call->d_in[2], sums + pad, pad, call->attr->h);
}

void rc_cpu_layernorm_fwd(const rc_call *call)
{
    norm_fwd(call, true);
}

void rc_cpu_layernorm_bwd(const rc_call *call)
{
    norm_bwd(call, true);
}

void rc_cpu_rmsnorm_fwd(const rc_call *call)
{
    norm_fwd(call, false);
}

void rc_cpu_rmsnorm_bwd(const rc_call *call)
{
    norm_bwd(call, false);
}
