/* dispatch.c — rows of tokens to the ranks and experts that they go to, and back.
 *
 *   alltoall   x [n,hl] -> rows expert by expert [Q,hl] -> all-to-all (ep) -> gather (etp) -> by local expert [R,hl]
 *   allgather  x -> all ranks' tokens [n ep et,hl] -> rows of the local experts [R,hl]
 *   flex       x -> each token once to each rank that it goes to [U,hl] (ep and etp) -> by local expert [R,hl]
 *
 * and the same steps back, where the rows of a token are added up. The probability of a row goes the same way, to be
 * multiplied inside the expert. What backward reads is the order of rows: int64 indices, or Transformer Engine's map of
 * int32 with 2E + 1 a token.
 *
 * source  Megatron-LM megatron/core/transformer/moe/token_dispatcher.py, moe_utils.py (permute, unpermute,
 *         sort_chunks_by_idxs), fused_a2a.py; TransformerEngine pytorch/permutation.py
 */
#include "graph/dispatch.h"

#include <string.h>

typedef enum dispatcher { ALLTOALL, ALLGATHER, DEEPEP, HYBRIDEP } dispatcher;

static dispatcher dispatcher_of(const rc_builder *b)
{
    if (strcmp(b->cfg->moe_token_dispatcher_type, "alltoall") == 0)
        return ALLTOALL;
    if (strcmp(b->cfg->moe_token_dispatcher_type, "flex") != 0)
        return ALLGATHER;
    return strcmp(b->cfg->moe_flex_dispatcher_backend, "hybridep") == 0 ? HYBRIDEP : DEEPEP;
}

static bool is_fused(const rc_builder *b)
{
    return b->graph->profile == RC_PROFILE_MEGATRON_TE && b->cfg->moe_permute_fusion;
}

/* --- steps */

/* A tensor in the dtype of rows, or of their probabilities. */
static int build_like(rc_builder *b, const char *part, int x, const char *shape)
{
    const rc_dtype dtype = b->code == RC_OK ? rc_build_row(b, x)->dtype : RC_F32;
    return rc_build_tensor(b, part, RC_TENSOR_ACTIVATION, dtype, shape);
}

/* x in the new order, which stands in `order`, or is made and kept as int32 or int64 of a shape; or NULL: not kept. */
typedef struct order_parts {
    rc_op_kind kind;
    const char *part;
    int x, order;
    const char *shape, *order_shape;
    rc_dtype dtype;
} order_parts;

static int build_order(rc_builder *b, const order_parts *parts, int *order)
{
    int y = build_like(b, parts->part, parts->x, parts->shape);
    int made = parts->order_shape
                   ? rc_build_tensor(b, rc_build_name(b, parts->part, "order"), RC_TENSOR_STATS,
                                     parts->dtype, parts->order_shape)
                   : RC_ABSENT;
    rc_op_parts op = {.kind = parts->kind,
                      .part = parts->part,
                      .in = RC_OPERANDS(parts->x, parts->order),
                      .out = RC_OPERANDS(y, made)};
    rc_build_op(b, &op);
    if (order)
        *order = made >= 0 ? made : parts->order;
    return y;
}

static int build_exchange(rc_builder *b, rc_op_kind kind, rc_comm_group group, const char *part,
                          int x, const char *shape)
{
    int y = build_like(b, part, x, shape);
    rc_op_parts op = {.kind = kind, .part = part, .in = RC_OPERANDS(x), .out = RC_OPERANDS(y)};
    return rc_build_exchange(b, &op, group);
}

static int build_unpermute(rc_builder *b, const char *part, int x, int order, const char *shape)
{
    int y = build_like(b, part, x, shape);
    rc_op_parts op = {.kind = RC_OP_unpermute,
                      .part = part,
                      .in = RC_OPERANDS(x, order),
                      .out = RC_OPERANDS(y)};
    rc_build_op(b, &op);
    return y;
}

/* Rows of one rank after another become rows of one expert after another, in one kernel that keeps its map, or by
 * copies that keep nothing; and back, with the same map. */
static int build_by_expert(rc_builder *b, const order_parts *parts, int *order)
{
    if (b->graph->dims.el == 1 || b->code != RC_OK)
        return parts->x;
    if (is_fused(b) && !b->cfg->moe_pad_expert_input_to_capacity)
        return build_order(b, parts, order);
    order_parts copy = *parts;
    copy.order = RC_ABSENT;
    copy.order_shape = NULL;
    return build_order(b, &copy, order);
}

/* --- all to all */

static void build_sent(rc_builder *b, int x, int probs, rc_dispatch *way)
{
    const bool is_padded = b->cfg->moe_pad_expert_input_to_capacity;
    order_parts rows = {
        RC_OP_permute, "mlp.dispatch.permuted", x, RC_ABSENT, "[Q, hl]", "[n, 2E+1]", RC_I32};
    order_parts weights = {RC_OP_permute_probs,
                           "mlp.dispatch.permuted_probs",
                           probs,
                           RC_ABSENT,
                           "[Q]",
                           NULL,
                           RC_I64};
    if (!is_fused(b)) {
        rows.order_shape = "[Q]";
        rows.dtype = RC_I64;
        /* a slice of where all of the [E,n] were sorted to */
        weights.order_shape = is_padded ? "[Q]" : "[E, n]";
    }
    way->rows = build_order(b, &rows, &way->sent_order);
    if (is_fused(b))
        weights.order = way->sent_order;
    way->probs = build_order(b, &weights, NULL);
}

static rc_dispatch build_all_to_all(rc_builder *b, int x, int probs, rc_shared *shared)
{
    const rc_dims *dims = &b->graph->dims;
    rc_dispatch way = {.received_order = RC_ABSENT, .expert_order = RC_ABSENT};
    rc_build_shared_start(b, shared);
    build_sent(b, x, probs, &way);
    if (dims->ep > 1) {
        way.rows = build_exchange(b, RC_OP_all_to_all, RC_GROUP_EP, "mlp.dispatch.rows",
                                  way.rows, "[R/et, hl]");
        way.probs = build_exchange(b, RC_OP_all_to_all, RC_GROUP_EP, "mlp.dispatch.probs",
                                   way.probs, "[R/et]");
    }
    rc_build_shared_up(b, shared);
    if (dims->et > 1) {
        way.rows = build_exchange(b, RC_OP_gather_rows, RC_GROUP_ETP, "mlp.dispatch.gathered",
                                  way.rows, "[R, hl]");
        way.probs = build_exchange(b, RC_OP_gather_rows, RC_GROUP_ETP,
                                   "mlp.dispatch.gathered_probs", way.probs, "[R]");
    }
    const order_parts rows = {
        RC_OP_permute, "mlp.dispatch.by_expert", way.rows, RC_ABSENT, "[R, hl]", "[R]", RC_I32};
    way.rows = build_by_expert(b, &rows, &way.expert_order);
    const order_parts weights = {RC_OP_permute_probs,
                                 "mlp.dispatch.probs_by_expert",
                                 way.probs,
                                 way.expert_order,
                                 "[R]",
                                 NULL,
                                 RC_I32};
    way.probs = build_by_expert(b, &weights, NULL);
    return way;
}

static int build_all_to_all_back(rc_builder *b, int rows, const rc_dispatch *way,
                                 rc_shared *shared)
{
    const rc_dims *dims = &b->graph->dims;
    const order_parts by_rank = {
        RC_OP_permute, "mlp.combine.by_rank", rows, way->expert_order, "[R, hl]", NULL, RC_I32};
    rows = build_by_expert(b, &by_rank, NULL);
    if (dims->et > 1)
        rows = build_exchange(b, RC_OP_reduce_scatter, RC_GROUP_ETP, "mlp.combine.reduced",
                              rows, "[R/et, hl]");
    if (dims->ep > 1)
        rows = build_exchange(b, RC_OP_all_to_all, RC_GROUP_EP, "mlp.combine.rows", rows,
                              "[Q, hl]");
    rc_build_shared_down(b, shared);
    return build_unpermute(b, "mlp.combine", rows, way->sent_order, "[n, hl]");
}

/* --- all gather */

/* Probabilities of the local experts are written apart, expert by expert, and those of rows chosen by a mask: of such a
 * choice both are kept. */
static int build_chosen(rc_builder *b, int probs)
{
    int local = build_like(b, "mlp.dispatch.local_probs", probs, "[el, nepet]");
    rc_op_parts op = {.kind = RC_OP_contiguous,
                      .part = "mlp.dispatch.local_probs",
                      .in = RC_OPERANDS(probs),
                      .out = RC_OPERANDS(local)};
    rc_build_op(b, &op);
    const order_parts chosen = {.kind = RC_OP_permute_probs,
                                .part = "mlp.dispatch.probs_by_expert",
                                .x = local,
                                .order = RC_ABSENT,
                                .shape = "[R]",
                                .order_shape = "[el, nepet]",
                                .dtype = RC_U8};
    int y = build_order(b, &chosen, NULL);
    if (b->code == RC_OK)
        rc_build_op_row(b, rc_build_count_ops(b) - 1)->needs_in |= 1u;
    return y;
}

/* The map itself is gathered too, and has no gradient. */
static rc_dispatch build_gathered(rc_builder *b, int x, int probs)
{
    const rc_dims *dims = &b->graph->dims;
    rc_dispatch way = {.sent_order = RC_ABSENT, .expert_order = RC_ABSENT};
    if (dims->ep * dims->et > 1) {
        x = build_exchange(b, RC_OP_gather_rows, RC_GROUP_EP_ETP, "mlp.dispatch.gathered", x,
                           "[nepet, hl]");
        probs = build_exchange(b, RC_OP_gather_rows, RC_GROUP_EP_ETP,
                               "mlp.dispatch.gathered_probs", probs, "[nepet, E]");
    }
    const order_parts rows = {RC_OP_permute,
                              "mlp.dispatch.by_expert",
                              x,
                              RC_ABSENT,
                              "[R, hl]",
                              is_fused(b) ? "[nepet, 2el+1]" : "[R]",
                              is_fused(b) ? RC_I32 : RC_I64};
    way.rows = build_order(b, &rows, &way.received_order);
    way.probs = build_chosen(b, probs);
    return way;
}

static int build_gathered_back(rc_builder *b, int rows, const rc_dispatch *way)
{
    const rc_dims *dims = &b->graph->dims;
    const bool is_shared_out = dims->ep * dims->et > 1;
    rows = build_unpermute(b, "mlp.combine", rows, way->received_order, "[nepet, hl]");
    return is_shared_out ? build_exchange(b, RC_OP_reduce_scatter, RC_GROUP_EP_ETP,
                                          "mlp.combine.reduced", rows, "[n, hl]")
                         : rows;
}

/* --- flex */

static int build_flex_exchange(rc_builder *b, const char *part, int x, const char *shape)
{
    return build_exchange(b, RC_OP_all_to_all, RC_GROUP_EP_ETP, part, x, shape);
}

/* HybridEP has probabilities in float32 and hands them on as they are. */
static int build_sent_probs(rc_builder *b, int probs)
{
    int y = rc_build_tensor(b, "mlp.dispatch.probs", RC_TENSOR_ACTIVATION, RC_F32, "[U, el]");
    rc_op_parts op = {.kind = RC_OP_all_to_all,
                      .part = "mlp.dispatch.probs",
                      .in = RC_OPERANDS(probs),
                      .out = RC_OPERANDS(y)};
    return rc_build_exchange(b, &op, RC_GROUP_EP_ETP);
}

/* DeepEP sends a token's k largest probabilities; where it arrives they become those of the local experts. */
static int build_flex_probs(rc_builder *b, int probs)
{
    int values =
        rc_build_tensor(b, "mlp.dispatch.topk", RC_TENSOR_ACTIVATION, RC_F32, "[n, ket]");
    int indices =
        rc_build_tensor(b, "mlp.dispatch.topk.indices", RC_TENSOR_STATS, RC_I64, "[n, ket]");
    rc_op_parts op = {.kind = RC_OP_topk,
                      .part = "mlp.dispatch.topk",
                      .in = RC_OPERANDS(probs),
                      .out = RC_OPERANDS(values, indices)};
    rc_build_op(b, &op);
    probs = build_flex_exchange(b, "mlp.dispatch.probs", values, "[U, ket]");
    order_parts chosen = {RC_OP_permute_probs,
                          "mlp.dispatch.local_probs",
                          probs,
                          RC_ABSENT,
                          "[R]",
                          "[U, ket]",
                          RC_U8};
    probs = build_order(b, &chosen, NULL);
    order_parts placed = {RC_OP_permute_probs,
                          "mlp.dispatch.multihot_probs",
                          probs,
                          RC_ABSENT,
                          "[U, el]",
                          "[2, R]",
                          RC_I64};
    return build_order(b, &placed, NULL);
}

static rc_dispatch build_flex(rc_builder *b, int x, int probs, rc_shared *shared)
{
    rc_dispatch way = {.sent_order = RC_ABSENT, .expert_order = RC_ABSENT};
    const bool keeps_order = dispatcher_of(b) == DEEPEP;
    probs = keeps_order ? build_flex_probs(b, probs) : build_sent_probs(b, probs);
    x = build_flex_exchange(b, "mlp.dispatch.tokens", x, "[U, hl]");
    rc_build_shared_start(b, shared);
    rc_build_shared_up(b, shared);
    order_parts rows = {RC_OP_permute,
                        "mlp.dispatch.by_expert",
                        x,
                        RC_ABSENT,
                        "[R, hl]",
                        is_fused(b) ? "[U, 2el+1]" : "[R]",
                        is_fused(b) ? RC_I32 : RC_I64};
    order_parts weights = {RC_OP_permute_probs,
                           "mlp.dispatch.probs_by_expert",
                           probs,
                           RC_ABSENT,
                           "[R]",
                           is_fused(b) ? NULL : "[el, U]",
                           RC_I64};
    if (!keeps_order) /* the library has it */
        rows.order_shape = weights.order_shape = NULL;
    way.rows = build_order(b, &rows, &way.received_order);
    if (keeps_order && is_fused(b))
        weights.order = way.received_order;
    way.probs = build_order(b, &weights, NULL);
    return way;
}

static int build_flex_back(rc_builder *b, int rows, const rc_dispatch *way, rc_shared *shared)
{
    rows = build_unpermute(b, "mlp.combine.tokens", rows, way->received_order, "[U, hl]");
    rows = build_flex_exchange(b, "mlp.combine", rows, "[n, hl]");
    rc_build_shared_down(b, shared);
    return rows;
}

/* --- both ways */

rc_dispatch rc_build_dispatch(rc_builder *b, int x, int probs, rc_shared *shared)
{
    switch (dispatcher_of(b)) {
    case ALLTOALL:
        return build_all_to_all(b, x, probs, shared);
    case ALLGATHER: /* nothing to overlap with */
        rc_build_shared_start(b, shared);
        rc_build_shared_up(b, shared);
        rc_build_shared_down(b, shared);
        return build_gathered(b, x, probs);
    case DEEPEP:
    case HYBRIDEP:
        break;
    }
    return build_flex(b, x, probs, shared);
}

int rc_build_combine(rc_builder *b, int rows, const rc_dispatch *way, rc_shared *shared)
{
    switch (dispatcher_of(b)) {
    case ALLTOALL:
        return build_all_to_all_back(b, rows, way, shared);
    case ALLGATHER:
        return build_gathered_back(b, rows, way);
    case DEEPEP:
    case HYBRIDEP:
        break;
    }
    return build_flex_back(b, rows, way, shared);
}
