/* graph/router.c — which experts a token goes to, and how much each weighs.
 *
 *   x [n,h] -> logits [n,E] -> z loss -> scores -> the k largest -> weights [n,k] -> [n,E], 0 elsewhere
 *            -> room of the experts -> losses that balance them
 *
 * Three ways to weights: softmax of the chosen; of all before the choice; sigmoids, divided by their sum where there are
 * several. Transformer Engine has all of it as one kernel, which keeps scores and the map of what was chosen.
 *
 * source  Megatron-LM megatron/core/transformer/moe/router.py, moe_utils.py (topk_routing_with_score_function,
 *         compute_routing_scores_for_aux_loss, apply_router_token_dropping); TransformerEngine pytorch/router.py
 */
#include "graph/router.h"

#include <string.h>

typedef struct chosen {
    int values, indices;
} chosen;

static bool is_sigmoid(const rc_builder *b)
{
    return strcmp(b->cfg->moe_router_score_function, "sigmoid") == 0;
}

static bool is_fused(const rc_builder *b)
{
    return b->graph->profile == RC_PROFILE_MEGATRON_TE && b->cfg->moe_router_fusion;
}

static int build_gate(rc_builder *b, const char *part, int x, const char *shape)
{
    int y = rc_build_tensor(b, part, RC_TENSOR_ACTIVATION, RC_F32, shape);
    rc_op_parts op = {
        .kind = RC_OP_gate, .part = part, .in = RC_OPERANDS(x), .out = RC_OPERANDS(y)};
    rc_build_op(b, &op);
    return y;
}

static int build_normalized(rc_builder *b, const char *part, int x, const char *shape)
{
    int y = rc_build_tensor(b, part, RC_TENSOR_ACTIVATION, RC_F32, shape);
    int sum = rc_build_tensor(b, rc_build_name(b, part, "sum"), RC_TENSOR_STATS, RC_F32, "[n]");
    rc_op_parts op = {.kind = RC_OP_normalize_rows,
                      .part = part,
                      .in = RC_OPERANDS(x),
                      .out = RC_OPERANDS(y, sum)};
    rc_build_op(b, &op);
    return y;
}

/* --- logits */

static int build_logits(rc_builder *b, int x, rc_dtype dtype)
{
    return rc_build_linear(b, &(rc_linear_parts){.part = "mlp.router",
                                                 .x = x,
                                                 .weight_shape = "[E, h]",
                                                 .out_shape = "[n, E]",
                                                 .n = b->graph->dims.n,
                                                 .is_f32 = dtype == RC_F32});
}

static int build_z_loss(rc_builder *b, int logits)
{
    if (b->cfg->origin[RC_FIELD_moe_z_loss_coeff].is_null)
        return logits;
    int y = rc_build_overwrite(b, "mlp.router.z_loss", logits);
    int lse = rc_build_tensor(b, "mlp.router.z_loss.lse", RC_TENSOR_STATS, RC_F32, "[n]");
    int loss = rc_build_tensor(b, "mlp.router.z_loss.value", RC_TENSOR_STATS, RC_F32, "[1]");
    rc_op_parts op = {.kind = RC_OP_z_loss,
                      .part = "mlp.router.z_loss",
                      .in = RC_OPERANDS(logits),
                      .out = RC_OPERANDS(y, lse, loss)};
    rc_build_op(b, &op);
    return y;
}

/* --- weights */

/* Of groups some are chosen first, and the scores of the others masked. With a bias of the experts (which sigmoids have)
 * scores are gathered by indices, so that no gradient goes through the mask. */
static bool is_masked(const rc_builder *b)
{
    return b->cfg->moe_router_group_topk != RC_NULL_INT &&
           !(is_sigmoid(b) && b->cfg->moe_router_enable_expert_bias);
}

static chosen build_topk(rc_builder *b, int x, rc_dtype dtype)
{
    static const char part[] = "mlp.router.topk";
    chosen at = {
        rc_build_tensor(b, part, RC_TENSOR_ACTIVATION, dtype, "[n, k]"),
        rc_build_tensor(b, "mlp.router.topk.indices", RC_TENSOR_STATS, RC_I64, "[n, k]")};
    int mask = is_masked(b)
                   ? rc_build_tensor(b, "mlp.router.topk.mask", RC_TENSOR_MASK, RC_U8, "[n, E]")
                   : RC_ABSENT;
    rc_op_parts op = {.kind = RC_OP_topk,
                      .part = part,
                      .in = RC_OPERANDS(x),
                      .out = RC_OPERANDS(at.values, at.indices, mask)};
    rc_build_op(b, &op);
    return at;
}

static chosen build_weights(rc_builder *b, int logits, rc_dtype dtype)
{
    if (!is_sigmoid(b) && !b->cfg->moe_router_pre_softmax) {
        chosen at = build_topk(b, logits, dtype);
        at.values = build_gate(b, "mlp.router.weights", at.values, "[n, k]");
        return at;
    }
    chosen at = build_topk(b, build_gate(b, "mlp.router.scores", logits, "[n, E]"), RC_F32);
    if (is_sigmoid(b) && b->graph->dims.k > 1)
        at.values = build_normalized(b, "mlp.router.weights", at.values, "[n, k]");
    return at;
}

static int build_probs(rc_builder *b, int logits, rc_dtype dtype)
{
    const chosen at = build_weights(b, logits, dtype);
    int y = rc_build_tensor(b, "mlp.router.probs", RC_TENSOR_ACTIVATION, dtype, "[n, E]");
    rc_op_parts op = {.kind = RC_OP_scatter_probs,
                      .part = "mlp.router.probs",
                      .in = RC_OPERANDS(at.values, at.indices),
                      .out = RC_OPERANDS(y)};
    rc_build_op(b, &op);
    return y;
}

static int build_fused_probs(rc_builder *b, int logits, rc_dtype dtype)
{
    int y = rc_build_tensor(b, "mlp.router.probs", RC_TENSOR_ACTIVATION, dtype, "[n, E]");
    int scores =
        rc_build_tensor(b, "mlp.router.scores", RC_TENSOR_ACTIVATION, RC_F32, "[n, E]");
    int map = rc_build_tensor(b, "mlp.router.map", RC_TENSOR_MASK, RC_U8, "[n, E]");
    rc_op_parts op = {.kind = RC_OP_fused_router,
                      .part = "mlp.router.probs",
                      .in = RC_OPERANDS(logits),
                      .out = RC_OPERANDS(y, scores, map)};
    rc_build_op(b, &op);
    return y;
}

/* What experts have no room for goes. */
static int build_dropped(rc_builder *b, int probs, rc_dtype dtype)
{
    if (b->cfg->origin[RC_FIELD_moe_expert_capacity_factor].is_null)
        return probs;
    int y = rc_build_tensor(b, "mlp.router.kept", RC_TENSOR_ACTIVATION, dtype, "[n, E]");
    int mask = rc_build_tensor(b, "mlp.router.kept.mask", RC_TENSOR_MASK, RC_U8, "[n, E]");
    rc_op_parts op = {.kind = RC_OP_mask_probs,
                      .part = "mlp.router.kept",
                      .in = RC_OPERANDS(probs),
                      .out = RC_OPERANDS(y, mask)};
    rc_build_op(b, &op);
    return y;
}

/* --- losses that balance experts */

static bool is_positive(const rc_doc *node)
{
    return node && (node->kind == RC_DOC_INT || node->kind == RC_DOC_FLOAT) && node->f > 0;
}

/* One type and one weight, or a list of each. */
static const rc_doc *first_of(const rc_doc *node)
{
    return node && node->kind == RC_DOC_LIST ? node->child : node;
}

/* A value alone has neighbours too: the settings that stand beside it. */
static const rc_doc *next_of(const rc_doc *value, const rc_doc *node)
{
    return value && value->kind == RC_DOC_LIST && node ? node->next : NULL;
}

static rc_code need_type(const rc_builder *b, const rc_doc *type)
{
    static const char *const known[] = {"aux_loss", "seq_aux_loss", "global_aux_loss", "none"};
    const char *text = type && type->text ? type->text : "null";
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(text, known[i]) == 0)
            return RC_OK;
    return RC_FAIL(b->err, RC_E_UNSUPPORTED,
                   b->cfg->origin[RC_FIELD_moe_router_load_balancing_type].where,
                   "moe_router_load_balancing_type is %s; known here are: aux_loss, "
                   "seq_aux_loss, global_aux_loss, none",
                   text);
}

/* How many losses have a weight. */
static int count_losses(rc_builder *b)
{
    const rc_doc *types = b->cfg->moe_router_load_balancing_type;
    const rc_doc *weights = b->cfg->moe_aux_loss_coeff, *weight = first_of(weights);
    int n = 0;
    for (const rc_doc *type = first_of(types); type && b->code == RC_OK;
         type = next_of(types, type)) {
        b->code = need_type(b, type);
        n += b->code == RC_OK && strcmp(type->text, "none") != 0 && is_positive(weight);
        weight = next_of(weights, weight);
    }
    return n;
}

/* Of a loss backward reads the scores of all experts, and how many tokens each has. */
static int build_aux_loss(rc_builder *b, int probs, int scores)
{
    static const char part[] = "mlp.router.aux_loss";
    int y = rc_build_overwrite(b, part, probs);
    int counts =
        rc_build_tensor(b, "mlp.router.aux_loss.counts", RC_TENSOR_STATS, RC_I64, "[E]");
    int loss = rc_build_tensor(b, "mlp.router.aux_loss.value", RC_TENSOR_STATS, RC_F32, "[1]");
    rc_op_parts op = {.kind = RC_OP_aux_loss,
                      .part = part,
                      .in = RC_OPERANDS(probs, scores),
                      .out = RC_OPERANDS(y, counts, loss)};
    rc_build_op(b, &op);
    return y;
}

static int build_losses(rc_builder *b, int probs, int logits)
{
    const int n = count_losses(b);
    if (n == 0)
        return probs;
    int scores = build_gate(b, "mlp.router.aux_scores", logits, "[n, E]");
    if (is_sigmoid(b) && !is_fused(b))
        scores = build_normalized(b, "mlp.router.aux_scores.share", scores, "[n, E]");
    for (int i = 0; i < n; i++)
        probs = build_aux_loss(b, probs, scores);
    return probs;
}

int rc_build_router(rc_builder *b, int x)
{
    const char *wanted = b->cfg->moe_router_dtype;
    const rc_dtype dtype = wanted && strcmp(wanted, "fp32") == 0 ? RC_F32 : b->graph->dtype;
    int logits = build_z_loss(b, build_logits(b, x, dtype));
    int probs =
        is_fused(b) ? build_fused_probs(b, logits, dtype) : build_probs(b, logits, dtype);
    probs = build_dropped(b, probs, dtype);
    return build_losses(b, probs, logits);
}
