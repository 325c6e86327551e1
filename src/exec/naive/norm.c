/* norm.c — layernorm and rmsnorm, plainly. */
#include "exec/naive/naive.h"

#include <math.h>

/* Element i of row r of a norm over groups. */
static double row_get(const rc_operand *x, const rc_op_attr *attr, int64_t r, int64_t i)
{
    return rc_get(x, r / attr->groups, r % attr->groups * attr->h + i);
}

static void row_set(const rc_operand *x, const rc_op_attr *attr, int64_t r, int64_t i, double v)
{
    rc_set(x, r / attr->groups, r % attr->groups * attr->h + i, v);
}

static void norm_fwd(const rc_call *call, bool has_mean)
{
    const rc_op_attr *attr = call->attr;
    const int64_t h = attr->h;
    for (int64_t r = 0; r < attr->n * attr->groups; r++) {
        double mean = 0, square = 0;
        for (int64_t i = 0; has_mean && i < h; i++)
            mean += row_get(&call->in[0], attr, r, i) / (double)h;
        for (int64_t i = 0; i < h; i++)
            square += pow(row_get(&call->in[0], attr, r, i) - mean, 2) / (double)h;
        double rstd = 1 / sqrt(square + attr->eps);
        for (int64_t i = 0; i < h; i++) {
            double y = (row_get(&call->in[0], attr, r, i) - mean) * rstd;
            y *= attr->w_shift + rc_get(&call->in[1], 0, i);
            if (has_mean && call->in[2].at)
                y += rc_get(&call->in[2], 0, i);
            row_set(&call->out[0], attr, r, i, y);
        }
        if (has_mean)
            rc_set(&call->out[1], 0, r, mean);
        rc_set(&call->out[has_mean ? 2 : 1], 0, r, rstd);
    }
}

static void norm_bwd(const rc_call *call, bool has_mean)
{
    const rc_op_attr *attr = call->attr;
    const int64_t h = attr->h, n_rows = attr->n * attr->groups;
    const rc_operand *x = &call->in[0], *w = &call->in[1], *dy = &call->d_out;
    const rc_operand *rstds = &call->out[has_mean ? 2 : 1];
    for (int64_t i = 0; i < h; i++) {
        double dw = 0, db = 0;
        for (int64_t r = 0; r < n_rows; r++) {
            double mean = has_mean ? rc_get(&call->out[1], 0, r) : 0;
            dw +=
                row_get(dy, attr, r, i) * (row_get(x, attr, r, i) - mean) * rc_get(rstds, 0, r);
            db += row_get(dy, attr, r, i);
        }
        rc_set(&call->d_in[1], 0, i, dw);
        if (has_mean)
            rc_set(&call->d_in[2], 0, i, db);
    }
    for (int64_t r = 0; r < n_rows && call->d_in[0].at; r++) {
        double mean = has_mean ? rc_get(&call->out[1], 0, r) : 0, rstd = rc_get(rstds, 0, r);
        double sum = 0, dot = 0;
        for (int64_t i = 0; i < h; i++) {
            double g = row_get(dy, attr, r, i) * (attr->w_shift + rc_get(w, 0, i));
            sum += g / (double)h;
            dot += g * (row_get(x, attr, r, i) - mean) * rstd / (double)h;
        }
        for (int64_t i = 0; i < h; i++) {
            double g = row_get(dy, attr, r, i) * (attr->w_shift + rc_get(w, 0, i));
            double u = (row_get(x, attr, r, i) - mean) * rstd;
            row_set(&call->d_in[0], attr, r, i, rstd * (g - (has_mean ? sum : 0) - u * dot));
        }
    }
}

void rc_naive_layernorm_fwd(const rc_call *call)
{
    norm_fwd(call, true);
}

void rc_naive_layernorm_bwd(const rc_call *call)
{
    norm_bwd(call, true);
}

void rc_naive_rmsnorm_fwd(const rc_call *call)
{
    norm_fwd(call, false);
}

void rc_naive_rmsnorm_bwd(const rc_call *call)
{
    norm_bwd(call, false);
}
