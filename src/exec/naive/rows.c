/* rows.c — embedding, linear, activation, dropout, the residual's end, the loss and a copy,
 * plainly. */
#include "base/random.h"
#include "exec/naive/naive.h"

#include <math.h>

double rc_naive_keep(const rc_call *call, int64_t e)
{
    const rc_random random = {
        .seed = call->seed, .draw = call->draw, .id = call->attr->random_id};
    const double p = call->attr->p;
    if (p == 0)
        return 1;
    return rc_random_bits(&random, (uint64_t)e) < rc_random_threshold(p) ? 0 : 1 / (1 - p);
}

void rc_naive_embedding_fwd(const rc_call *call)
{
    const rc_op_attr *attr = call->attr;
    for (int64_t r = 0; r < attr->n; r++)
        for (int64_t i = 0; i < attr->h; i++) {
            double y = rc_get(&call->in[1], rc_get_index(&call->in[0], r), i);
            if (call->in[2].at)
                y += rc_get(&call->in[2], r % attr->s, i);
            rc_set(&call->out[0], r, i, y);
        }
}

void rc_naive_embedding_bwd(const rc_call *call)
{
    const rc_op_attr *attr = call->attr;
    for (int64_t v = 0; v < attr->V; v++)
        for (int64_t i = 0; i < attr->h; i++) {
            double sum = 0;
            for (int64_t r = 0; r < attr->n; r++)
                if (rc_get_index(&call->in[0], r) == v)
                    sum += rc_get(&call->d_out, r, i);
            rc_set(&call->d_in[1], v, i, sum);
        }
    for (int64_t t = 0; t < attr->s; t++)
        for (int64_t i = 0; i < attr->h; i++) {
            double sum = 0;
            for (int64_t r = t; r < attr->n; r += attr->s)
                sum += rc_get(&call->d_out, r, i);
            rc_set(&call->d_in[2], t, i, sum);
        }
}

void rc_naive_linear_fwd(const rc_call *call)
{
    const rc_op_attr *attr = call->attr;
    for (int64_t r = 0; r < attr->n; r++)
        for (int64_t o = 0; o < attr->out; o++) {
            double y = call->in[2].at ? rc_get(&call->in[2], 0, o) : 0;
            for (int64_t i = 0; i < attr->in; i++)
                y += rc_get(&call->in[0], r, i) * rc_get(&call->in[1], o, i);
            rc_set(&call->out[0], r, o, y);
        }
}

void rc_naive_linear_bwd(const rc_call *call)
{
    const rc_op_attr *attr = call->attr;
    const rc_operand *dy = &call->d_out;
    for (int64_t r = 0; r < attr->n; r++)
        for (int64_t i = 0; i < attr->in; i++) {
            double dx = 0;
            for (int64_t o = 0; o < attr->out; o++)
                dx += rc_get(dy, r, o) * rc_get(&call->in[1], o, i);
            rc_set(&call->d_in[0], r, i, dx);
        }
    for (int64_t o = 0; o < attr->out; o++) {
        double db = 0;
        for (int64_t r = 0; r < attr->n; r++)
            db += rc_get(dy, r, o);
        rc_set(&call->d_in[2], 0, o, db);
        for (int64_t i = 0; i < attr->in; i++) {
            double dw = 0;
            for (int64_t r = 0; r < attr->n; r++)
                dw += rc_get(dy, r, o) * rc_get(&call->in[0], r, i);
            rc_set(&call->d_in[1], o, i, dw);
        }
    }
}

static const double gelu_a = 0.7978845608028654; /* sqrt(2 / pi) */
static const double gelu_b = 0.044715;

static double act_value(rc_act act, double x)
{
    switch (act) {
    case RC_ACT_GELU_TANH:
        return 0.5 * x * (1 + tanh(gelu_a * (x + gelu_b * x * x * x)));
    case RC_ACT_GELU:
        return 0.5 * x * (1 + erf(x / sqrt(2)));
    case RC_ACT_SILU:
        return x / (1 + exp(-x));
    case RC_ACT_RELU:
        return x > 0 ? x : 0;
    case RC_ACT_SQUARED_RELU:
        return x > 0 ? x * x : 0;
    }
    return 0;
}

static double act_slope(rc_act act, double x)
{
    const double pi = 3.141592653589793;
    double t;
    switch (act) {
    case RC_ACT_GELU_TANH:
        t = tanh(gelu_a * (x + gelu_b * x * x * x));
        return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * gelu_a * (1 + 3 * gelu_b * x * x);
    case RC_ACT_GELU:
        return 0.5 * (1 + erf(x / sqrt(2))) + x * exp(-x * x / 2) / sqrt(2 * pi);
    case RC_ACT_SILU:
        t = 1 / (1 + exp(-x));
        return t * (1 + x * (1 - t));
    case RC_ACT_RELU:
        return x > 0;
    case RC_ACT_SQUARED_RELU:
        return x > 0 ? 2 * x : 0;
    }
    return 0;
}

void rc_naive_activation_fwd(const rc_call *call)
{
    const rc_op_attr *attr = call->attr;
    for (int64_t r = 0; r < attr->n; r++)
        for (int64_t i = 0; i < attr->f; i++) {
            double y = act_value(attr->act, rc_get(&call->in[0], r, i));
            if (attr->is_gated)
                y *= rc_get(&call->in[0], r, attr->f + i);
            rc_set(&call->out[0], r, i, y);
        }
}

void rc_naive_activation_bwd(const rc_call *call)
{
    const rc_op_attr *attr = call->attr;
    for (int64_t r = 0; r < attr->n; r++)
        for (int64_t i = 0; i < attr->f; i++) {
            double x = rc_get(&call->in[0], r, i), dy = rc_get(&call->d_out, r, i);
            double up = attr->is_gated ? rc_get(&call->in[0], r, attr->f + i) : 1;
            rc_set(&call->d_in[0], r, i, dy * up * act_slope(attr->act, x));
            if (attr->is_gated)
                rc_set(&call->d_in[0], r, attr->f + i, dy * act_value(attr->act, x));
        }
}

void rc_naive_dropout_fwd(const rc_call *call)
{
    for (int64_t e = 0; e < call->attr->n_elem; e++)
        rc_set(&call->out[0], 0, e, rc_get(&call->in[0], 0, e) * rc_naive_keep(call, e));
}

void rc_naive_dropout_bwd(const rc_call *call)
{
    for (int64_t e = 0; e < call->attr->n_elem; e++)
        rc_set(&call->d_in[0], 0, e, rc_get(&call->d_out, 0, e) * rc_naive_keep(call, e));
}

void rc_naive_bias_dropout_add_fwd(const rc_call *call)
{
    const int64_t h = call->attr->h;
    for (int64_t r = 0; r < call->attr->n; r++)
        for (int64_t i = 0; i < h; i++) {
            double x = rc_get(&call->in[0], r, i);
            if (call->in[2].at)
                x += rc_get(&call->in[2], 0, i);
            x = rc_get(&call->in[1], r, i) + x * rc_naive_keep(call, r * h + i);
            rc_set(&call->out[0], r, i, x);
        }
}

void rc_naive_bias_dropout_add_bwd(const rc_call *call)
{
    const int64_t h = call->attr->h;
    const bool is_same = call->d_in[1].at == call->d_out.at;
    for (int64_t i = 0; i < h; i++) {
        double db = 0;
        for (int64_t r = 0; r < call->attr->n; r++) {
            double dy = rc_get(&call->d_out, r, i);
            double dx = dy * rc_naive_keep(call, r * h + i);
            db += dx;
            if (!is_same)
                rc_set(&call->d_in[1], r, i, dy);
            rc_set(&call->d_in[0], r, i, dx);
        }
        rc_set(&call->d_in[2], 0, i, db);
    }
}

static int64_t count_targets(const rc_call *call)
{
    int64_t n = 0;
    for (int64_t r = 0; r < call->attr->n; r++)
        n += rc_get_index(&call->in[1], r) >= 0;
    return n;
}

void rc_naive_cross_entropy_fwd(const rc_call *call)
{
    const int64_t n = count_targets(call);
    double loss = 0;
    for (int64_t r = 0; r < call->attr->n; r++) {
        double most = rc_get(&call->in[0], r, 0), sum = 0;
        for (int64_t i = 0; i < call->attr->V; i++)
            most = fmax(most, rc_get(&call->in[0], r, i));
        for (int64_t i = 0; i < call->attr->V; i++)
            sum += exp(rc_get(&call->in[0], r, i) - most);
        int64_t target = rc_get_index(&call->in[1], r);
        double lse = most + log(sum);
        rc_set(&call->out[1], 0, r, lse);
        if (target >= 0)
            loss += lse - rc_get(&call->in[0], r, target);
    }
    rc_set(&call->out[0], 0, 0, n ? loss / (double)n : 0);
}

void rc_naive_cross_entropy_bwd(const rc_call *call)
{
    const int64_t n = count_targets(call);
    for (int64_t r = 0; r < call->attr->n; r++) {
        int64_t target = rc_get_index(&call->in[1], r);
        double scale = target >= 0 ? call->attr->loss_scale / (double)n : 0;
        for (int64_t i = 0; i < call->attr->V; i++) {
            double p = exp(rc_get(&call->in[0], r, i) - rc_get(&call->out[1], 0, r));
            rc_set(&call->d_in[0], r, i, scale * (p - (i == target)));
        }
    }
}

static void copy(const rc_call *call, const rc_operand *to, const rc_operand *from)
{
    for (int64_t r = 0; r < call->attr->n; r++)
        for (int64_t i = 0; i < call->attr->h; i++)
            rc_set(to, r, i, rc_get(from, r, i));
}

void rc_naive_contiguous_fwd(const rc_call *call)
{
    copy(call, &call->out[0], &call->in[0]);
}

void rc_naive_contiguous_bwd(const rc_call *call)
{
    copy(call, &call->d_in[0], &call->d_out);
}
