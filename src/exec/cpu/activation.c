/* activation.c — y = act(x), or act(gate) * up where x is [n, 2f] = gate | up. */
#include "exec/cpu/kernels.h"

#include "exec/cpu/fmath.h"
#include "exec/cpu/operand.h"

static const float gelu_a = 0.79788456f; /* sqrt(2 / pi) */
static const float gelu_b = 0.044715f;

/* gelu_tanh: 0.5 (1 + tanh u) = sigmoid(2 u), which keeps the small values of the left tail. */
RC_INLINE float act_value(rc_act act, float x)
{
    switch (act) {
    case RC_ACT_GELU_TANH:
        return x * rc_sigmoid(2.0f * gelu_a * (x + gelu_b * x * x * x));
    case RC_ACT_GELU:
        return x * rc_normal_cdf(x);
    case RC_ACT_SILU:
        return x * rc_sigmoid(x);
    case RC_ACT_RELU:
        return x > 0 ? x : 0;
    case RC_ACT_SQUARED_RELU:
        return x > 0 ? x * x : 0;
    }
    return 0;
}

RC_INLINE float act_slope(rc_act act, float x)
{
    float s;
    switch (act) {
    case RC_ACT_GELU_TANH:
        s = rc_sigmoid(2.0f * gelu_a * (x + gelu_b * x * x * x));
        return s + x * s * (1.0f - s) * 2.0f * gelu_a * (1.0f + 3.0f * gelu_b * x * x);
    case RC_ACT_GELU:
        return rc_normal_cdf(x) + x * 0.39894228f * rc_exp(-0.5f * x * x);
    case RC_ACT_SILU:
        s = rc_sigmoid(x);
        return s * (1.0f + x * (1.0f - s));
    case RC_ACT_RELU:
        return x > 0 ? 1.0f : 0;
    case RC_ACT_SQUARED_RELU:
        return x > 0 ? 2.0f * x : 0;
    }
    return 0;
}

RC_INLINE void fwd_row(rc_act act, float *y, const float *x, const float *up, int64_t f)
{
    if (up) {
#pragma omp simd
        for (int64_t i = 0; i < f; i++)
            y[i] = act_value(act, x[i]) * up[i];
    } else {
#pragma omp simd
        for (int64_t i = 0; i < f; i++)
            y[i] = act_value(act, x[i]);
    }
}

typedef struct act_grad {
    float *dx, *dup;
    const float *x, *up; /* up NULL: not gated */
    const float *dy;
    bool is_added;
} act_grad;

/* act and is_added are constants at every call: with a branch inside, loops of this length would
 * not vectorise. */
RC_INLINE void bwd_row(rc_act act, bool is_added, const act_grad *g, int64_t f)
{
    float *dx = g->dx, *dup = g->dup;
    const float *x = g->x, *up = g->up, *dy = g->dy;
    if (up) {
#pragma omp simd
        for (int64_t i = 0; i < f; i++) {
            float value = dy[i] * act_value(act, x[i]);
            rc_put(&dx[i], dy[i] * up[i] * act_slope(act, x[i]), is_added);
            rc_put(&dup[i], value, is_added);
        }
    } else {
#pragma omp simd
        for (int64_t i = 0; i < f; i++)
            rc_put(&dx[i], dy[i] * act_slope(act, x[i]), is_added);
    }
}

RC_INLINE void bwd_rows(rc_act act, const act_grad *g, int64_t f)
{
    if (g->is_added)
        bwd_row(act, true, g, f);
    else
        bwd_row(act, false, g, f);
}

/* One loop per function, each with the kind known to the compiler. */
RC_CLONES static void fwd_any(rc_act act, float *y, const float *x, const float *up, int64_t f)
{
    switch (act) {
    case RC_ACT_GELU_TANH:
        fwd_row(RC_ACT_GELU_TANH, y, x, up, f);
        break;
    case RC_ACT_GELU:
        fwd_row(RC_ACT_GELU, y, x, up, f);
        break;
    case RC_ACT_SILU:
        fwd_row(RC_ACT_SILU, y, x, up, f);
        break;
    case RC_ACT_RELU:
        fwd_row(RC_ACT_RELU, y, x, up, f);
        break;
    case RC_ACT_SQUARED_RELU:
        fwd_row(RC_ACT_SQUARED_RELU, y, x, up, f);
        break;
    }
}

RC_CLONES static void bwd_any(rc_act act, const act_grad *g, int64_t f)
{
    switch (act) {
    case RC_ACT_GELU_TANH:
        bwd_rows(RC_ACT_GELU_TANH, g, f);
        break;
    case RC_ACT_GELU:
        bwd_rows(RC_ACT_GELU, g, f);
        break;
    case RC_ACT_SILU:
        bwd_rows(RC_ACT_SILU, g, f);
        break;
    case RC_ACT_RELU:
        bwd_rows(RC_ACT_RELU, g, f);
        break;
    case RC_ACT_SQUARED_RELU:
        bwd_rows(RC_ACT_SQUARED_RELU, g, f);
        break;
    }
}

void rc_cpu_activation_fwd(const rc_call *call)
{
    const rc_op_attr *attr = call->attr;
#pragma omp parallel for num_threads(call->n_threads) schedule(static)
    for (int64_t r = 0; r < attr->n; r++) {
        const float *x = rc_f32_row(&call->in[0], r);
        fwd_any(attr->act, rc_f32_row(&call->out[0], r), x, attr->is_gated ? x + attr->f : NULL,
                attr->f);
    }
}

void rc_cpu_activation_bwd(const rc_call *call)
{
    const rc_op_attr *attr = call->attr;
    if (!call->d_in[0].at)
        return;
#pragma omp parallel for num_threads(call->n_threads) schedule(static)
    for (int64_t r = 0; r < attr->n; r++) {
        const float *x = rc_f32_row(&call->in[0], r);
        float *dx = rc_f32_row(&call->d_in[0], r);
        act_grad g = {.dx = dx,
                      .dup = dx + attr->f,
                      .x = x,
                      .up = attr->is_gated ? x + attr->f : NULL,
                      .dy = rc_f32_row(&call->d_out, r),
                      .is_added = call->d_in[0].is_added};
        bwd_any(attr->act, &g, attr->f);
    }
}
