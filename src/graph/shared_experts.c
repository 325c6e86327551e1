/* shared_experts.c — the experts that every token goes to: one MLP, with a gate or without.
 *
 *   x [n,h] -> fc1 [N,2fs/t] -> act [N,fs/t] -> fc2 [n,h] -> times sigmoid(x w)
 *
 * Before the routed experts, or step by step while their rows travel. Then the gather of x is an op of its own, and
 * what it gathers stays; and label shared_experts does not act.
 *
 * source  Megatron-LM megatron/core/transformer/moe/shared_experts.py
 */
#include "graph/shared_experts.h"

static int build_score(rc_builder *b, int x)
{
    if (!b->cfg->moe_shared_expert_gate)
        return RC_ABSENT;
    int logits = rc_build_linear(b, &(rc_linear_parts){.part = "mlp.shared_experts.gate",
                                                       .x = x,
                                                       .weight_shape = "[1, h]",
                                                       .out_shape = "[n, 1]",
                                                       .n = b->graph->dims.n});
    int score = rc_build_tensor(b, "mlp.shared_experts.gate_score", RC_TENSOR_ACTIVATION,
                                b->graph->dtype, "[n, 1]");
    rc_op_parts op = {.kind = RC_OP_gate,
                      .part = "mlp.shared_experts.gate_score",
                      .in = RC_OPERANDS(logits),
                      .out = RC_OPERANDS(score)};
    rc_build_op(b, &op);
    return score;
}

static int build_scaled(rc_builder *b, int x, int score)
{
    if (score == RC_ABSENT)
        return x;
    int y = rc_build_tensor(b, "mlp.shared_experts.gated", RC_TENSOR_ACTIVATION,
                            b->graph->dtype, "[n, h]");
    rc_op_parts op = {.kind = RC_OP_scale_rows,
                      .part = "mlp.shared_experts.gated",
                      .in = RC_OPERANDS(x, score),
                      .out = RC_OPERANDS(y)};
    rc_build_op(b, &op);
    return y;
}

static int build_up(rc_builder *b, int x)
{
    const rc_dims *dims = &b->graph->dims;
    const bool is_gated = b->cfg->gated_linear_unit;
    int y = rc_build_linear(
        b, &(rc_linear_parts){.part = "mlp.shared_experts.linear_fc1",
                              .x = x,
                              .weight_shape = is_gated ? "[2fs/t, h]" : "[fs/t, h]",
                              .out_shape = is_gated ? "[N, 2fs/t]" : "[N, fs/t]"});
    return rc_build_activation(b,
                               &(rc_activation_parts){.part = "mlp.shared_experts.activation",
                                                      .x = y,
                                                      .weights = RC_ABSENT,
                                                      .n = dims->N,
                                                      .f = dims->fs / dims->t,
                                                      .shape = "[N, fs/t]"});
}

static int build_down(rc_builder *b, int x)
{
    int y = rc_build_linear(b, &(rc_linear_parts){.part = "mlp.shared_experts.linear_fc2",
                                                  .x = x,
                                                  .weight_shape = "[h, fs/t]",
                                                  .out_shape = rc_build_product_shape(b),
                                                  .init_std = rc_build_scaled_init_std(b)});
    return rc_build_leave_tp(b, "mlp.shared_experts.linear_fc2.reduced", y);
}

rc_shared rc_build_shared(rc_builder *b, int x)
{
    rc_shared shared = {.x = x, .at = RC_ABSENT, .score = RC_ABSENT};
    if (b->graph->dims.fs == 0)
        return shared;
    shared.is_overlapped = b->cfg->moe_shared_expert_overlap;
    if (shared.is_overlapped)
        return shared;
    const int first = rc_build_count_ops(b);
    int y = rc_build_enter_tp(b, "mlp.shared_experts.linear_fc1.gathered", x);
    y = build_down(b, build_up(b, y));
    shared.at = build_scaled(b, y, build_score(b, x));
    rc_build_region(b, RC_LABEL_shared_experts, first, rc_build_count_ops(b) - 1);
    return shared;
}

void rc_build_shared_start(rc_builder *b, rc_shared *shared)
{
    if (!shared->is_overlapped)
        return;
    shared->score = build_score(b, shared->x);
    shared->at = rc_build_gather_rows(b, "mlp.shared_experts.gathered", shared->x, "[N, h]");
}

void rc_build_shared_up(rc_builder *b, rc_shared *shared)
{
    if (shared->is_overlapped)
        shared->at = build_up(b, shared->at);
}

void rc_build_shared_down(rc_builder *b, rc_shared *shared)
{
    if (shared->is_overlapped)
        shared->at = build_down(b, shared->at);
}

int rc_build_shared_add(rc_builder *b, int y, const rc_shared *shared)
{
    if (shared->at == RC_ABSENT)
        return y;
    int more = shared->is_overlapped ? build_scaled(b, shared->at, shared->score) : shared->at;
    int sum = rc_build_tensor(b, "mlp.output", RC_TENSOR_ACTIVATION, b->graph->dtype, "[n, h]");
    rc_op_parts op = {.kind = RC_OP_bias_dropout_add,
                      .part = "mlp.output",
                      .attr = {.n = b->graph->dims.n, .h = b->graph->dims.h},
                      .in = RC_OPERANDS(y, more, RC_ABSENT),
                      .out = RC_OPERANDS(sum)};
    rc_build_op(b, &op);
    return sum;
}
