/* graph/activation.c — what stands between the two projections of an MLP, dense or of experts.
 *
 *   one kernel  keeps what it reads, x, and the weights of the rows
 *   several     keep their own: of gated units act(gate) and the linear half, which is added to an offset and so written
 *               anew, and where rows are weighed the product before it is
 *
 * source  Megatron-LM megatron/core/transformer/mlp.py, moe/experts.py, fusions/fused_bias_swiglu.py
 */
#include "graph/builder.h"

/* Megatron has one kernel unless that is switched off, which our kernels do not know. Of weighed rows it has one of
 * SwiGLU alone. */
static bool is_one_kernel(const rc_builder *b, const rc_activation_parts *parts)
{
    const bool is_off = !b->is_engine && !b->cfg->bias_activation_fusion &&
                        b->cfg->origin[RC_FIELD_bias_activation_fusion].kind != RC_FROM_DEFAULT;
    const bool is_swiglu = b->cfg->gated_linear_unit && b->act == RC_ACT_SILU;
    return !is_off && (parts->weights == RC_ABSENT || is_swiglu);
}

typedef struct step {
    rc_op_kind kind;
    const char *part;
    int x, other;
    /* x holds both halves */
    bool is_gated;
} step;

static int build(rc_builder *b, const rc_activation_parts *of, const step *by)
{
    int y = rc_build_tensor(b, by->part, RC_TENSOR_ACTIVATION, b->graph->dtype, of->shape);
    rc_op_parts op = {.kind = by->kind,
                      .part = by->part,
                      .attr = {.n = of->n, .f = of->f, .act = b->act, .is_gated = by->is_gated},
                      .in = RC_OPERANDS(by->x, by->other),
                      .out = RC_OPERANDS(y)};
    if (by->other == RC_ABSENT)
        op.in.n = 1;
    rc_build_op(b, &op);
    return y;
}

static int build_gated(rc_builder *b, const rc_activation_parts *of, const char *part)
{
    const char *gate = rc_build_name(b, of->part, "gate");
    const char *up = rc_build_name(b, of->part, "linear");
    step act = {RC_OP_activation, gate, .other = RC_ABSENT};
    act.x = rc_build_view(b, rc_build_name(b, gate, "slice"), of->x, of->shape, 0);
    int linear = rc_build_view(b, rc_build_name(b, up, "slice"), of->x, of->shape, of->f);
    step product = {RC_OP_multiply, part, .x = build(b, of, &act)};
    product.other = rc_build_contiguous(b, up, linear, of->shape);
    return build(b, of, &product);
}

int rc_build_activation(rc_builder *b, const rc_activation_parts *parts)
{
    const bool is_weighed = parts->weights != RC_ABSENT, is_gated = b->cfg->gated_linear_unit;
    const step one = {is_weighed ? RC_OP_weighted_activation : RC_OP_activation, parts->part,
                      parts->x, parts->weights, is_gated};
    if (is_one_kernel(b, parts))
        return build(b, parts, &one);
    const char *part = is_weighed ? rc_build_name(b, parts->part, "product") : parts->part;
    const step plain = {RC_OP_activation, part, parts->x, RC_ABSENT, false};
    int y = is_gated ? build_gated(b, parts, part) : build(b, parts, &plain);
    const step scale = {RC_OP_scale_rows, parts->part, y, parts->weights, false};
    return is_weighed ? build(b, parts, &scale) : y;
}
