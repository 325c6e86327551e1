/* builder.c — adds tensors, ops and regions to a graph under construction.
 *
 * takes  calls of the layer builders, in forward order
 * gives  tensors with sizes and storage identity, ops with attributes, FLOPs and bytes moved
 * next   graph.c verifies what came out
 */
#include "graph/builder.h"

#include "base/num.h"
#include "graph/block.h"
#include "graph/shape.h"
#include "op/facts.h"

#include <math.h>
#include <string.h>

/* Room for one more in an array of the graph. */
#define GROW(b, array)                                                                         \
    ((b)->code =                                                                               \
         RC_GROW((b)->mem, &(b)->graph->array, (size_t)(b)->graph->n_##array,                  \
                 &(b)->graph->n_##array##_room, (size_t)(b)->graph->n_##array + 1, (b)->err))

/* What later stages add up of an op: FLOPs of forward and backward and a replay of forward; of a
 * tensor a value, its copy when it is recomputed, a gradient and two moments, and what moves. */
enum { MOST_FLOPS_SHARE = 2, MOST_BYTES_SHARE = 64 };

/* ---- blocks ---- */

static rc_block *block_of(rc_builder *b)
{
    return &b->graph->blocks[b->graph->n_blocks - 1];
}

void rc_build_block(rc_builder *b, const char *prefix, bool has_layers)
{
    rc_graph *graph = b->graph;
    if (b->code != RC_OK || GROW(b, blocks) != RC_OK)
        return;
    graph->blocks[graph->n_blocks++] = (rc_block){.n_layers = 1,
                                                  .has_layers = has_layers,
                                                  .row_op = graph->n_op_rows,
                                                  .row_tensor = graph->n_tensor_rows,
                                                  .row_region = graph->n_region_rows,
                                                  .out = RC_ABSENT};
    rc_block_count(graph);
    b->prefix = prefix;
    b->flops = b->moved_bytes = b->n_parameters = 0;
}

/* Adds `more` so many times; false where the sum would pass `most`. */
static bool add_times(int64_t more, int64_t times, int64_t most, int64_t *sum)
{
    return rc_mul(more, times, &more) && rc_add(*sum, more, sum) && *sum <= most;
}

int rc_build_block_end(rc_builder *b, int n_layers, int out)
{
    rc_graph *graph = b->graph;
    if (b->code != RC_OK)
        return 0;
    rc_block *block = block_of(b);
    if (!add_times(b->flops, n_layers, INT64_MAX / MOST_FLOPS_SHARE, &b->all_flops))
        b->code = RC_FAIL(b->err, RC_E_RANGE, RC_NOWHERE,
                          "one micro-batch takes more than 2^62 FLOP; choose smaller sizes");
    else if (!add_times(b->moved_bytes, n_layers, INT64_MAX / MOST_BYTES_SHARE,
                        &b->all_moved_bytes))
        b->code =
            RC_FAIL(b->err, RC_E_RANGE, RC_NOWHERE,
                    "the tensors of one micro-batch pass 2^57 bytes; choose smaller sizes");
    else if (!add_times(b->n_parameters, n_layers, INT64_MAX, &graph->n_parameters))
        b->code = RC_FAIL(b->err, RC_E_RANGE, RC_NOWHERE, "the model passes 2^63-1 parameters");
    block->n_layers = n_layers;
    block->out = out < 0 ? RC_ABSENT : out - block->first_tensor;
    rc_block_count(graph);
    return rc_block_input(graph, graph->n_blocks);
}

rc_tensor *rc_build_row(rc_builder *b, int tensor)
{
    const rc_block *block = block_of(b);
    RC_ASSERT(tensor >= block->first_tensor);
    return &b->graph->tensor_rows[block->row_tensor + tensor - block->first_tensor];
}

/* How the rows of this block name a tensor: block.c. */
static int row_operand(rc_builder *b, int tensor)
{
    const rc_graph *graph = b->graph;
    const rc_block *block = block_of(b);
    if (tensor < 0)
        return RC_ROW_ABSENT;
    if (tensor >= block->first_tensor)
        return tensor - block->first_tensor;
    if (tensor == rc_block_input(graph, graph->n_blocks - 1))
        return RC_ROW_INPUT;
    RC_ASSERT(tensor < graph->blocks[0].n_tensors);
    return RC_ROW_FIRST - tensor;
}

static void count_reader(rc_builder *b, int tensor)
{
    rc_block *block = block_of(b);
    if (tensor >= block->first_tensor)
        rc_build_row(b, tensor)->n_consumers++;
    else if (row_operand(b, tensor) == RC_ROW_INPUT)
        block->n_input_reads++;
    else
        b->graph->tensor_rows[tensor].n_consumers++;
}

static int add_tensor(rc_builder *b, const char *part, rc_tensor tensor)
{
    rc_graph *graph = b->graph;
    if (b->code != RC_OK)
        return 0;
    if (GROW(b, tensor_rows) != RC_OK)
        return 0;
    tensor.part = part;
    tensor.prefix = b->prefix;
    graph->tensor_rows[graph->n_tensor_rows++] = tensor;
    block_of(b)->n_tensors++;
    return graph->n_tensors++;
}

/* The number that the next tensor will have in its layer. */
static int next_row(rc_builder *b)
{
    return b->code == RC_OK ? block_of(b)->n_tensors : 0;
}

/* Sizes from a shape; rows of the last dimension. */
static bool size_tensor(rc_builder *b, const char *text, rc_dtype dtype, rc_tensor *tensor)
{
    rc_shape shape;
    if (b->code == RC_OK)
        b->code = rc_shape_eval(text, &b->graph->dims, &shape, b->err);
    if (b->code != RC_OK)
        return false;
    tensor->shape = text;
    tensor->dtype = dtype;
    tensor->n_elem = shape.n_elem;
    tensor->ld = shape.dim[shape.n_dims - 1];
    tensor->rows = tensor->ld ? shape.n_elem / tensor->ld : 0;
    tensor->view_of = tensor->producer = RC_ABSENT;
    if (!rc_mul(shape.n_elem, rc_dtype_bytes(dtype), &tensor->bytes))
        b->code = RC_FAIL(b->err, RC_E_RANGE, RC_NOWHERE,
                          "a tensor of shape %s passes 2^63-1 bytes", text);
    return b->code == RC_OK;
}

int rc_build_tensor(rc_builder *b, const char *part, rc_tensor_kind kind, rc_dtype dtype,
                    const char *shape)
{
    rc_tensor tensor = {.kind = kind, .storage = next_row(b)};
    if (!size_tensor(b, shape, dtype, &tensor))
        return 0;
    return add_tensor(b, part, tensor);
}

int rc_build_weight(rc_builder *b, const char *part, const char *shape, rc_init init,
                    double std)
{
    rc_tensor tensor = {.kind = RC_TENSOR_WEIGHT,
                        .storage = next_row(b),
                        .init = init,
                        .init_std = std,
                        .is_expert = b->is_in_experts,
                        .has_weight_decay = strchr(shape, ',') != NULL}; /* matrices only */
    if (!size_tensor(b, shape, b->graph->dtype, &tensor))
        return 0;
    tensor.n_used = tensor.n_elem;
    if (!rc_add(b->n_parameters, tensor.n_elem, &b->n_parameters))
        b->code = RC_FAIL(b->err, RC_E_RANGE, RC_NOWHERE, "the model passes 2^63-1 parameters");
    return add_tensor(b, part, tensor);
}

int rc_build_view(rc_builder *b, const char *part, int base, const char *shape, int64_t offset)
{
    if (b->code != RC_OK)
        return 0;
    const rc_tensor from = *rc_build_row(b, base);
    rc_tensor tensor = {.kind = from.kind};
    if (!size_tensor(b, shape, from.dtype, &tensor))
        return 0;
    tensor.storage = from.storage;
    tensor.offset = from.offset + offset;
    tensor.ld = from.ld;
    tensor.view_of = base - block_of(b)->first_tensor;
    return add_tensor(b, part, tensor);
}

int rc_build_overwrite(rc_builder *b, const char *part, int over)
{
    if (b->code != RC_OK)
        return 0;
    rc_tensor tensor = *rc_build_row(b, over); /* same storage, offset, rows and ld */
    tensor.view_of = tensor.producer = RC_ABSENT;
    tensor.n_consumers = 0;
    return add_tensor(b, part, tensor);
}

/* The first rows of what lies in the storage of `over`. */
static int build_overwrite_as(rc_builder *b, const char *part, int over, const char *shape)
{
    if (b->code != RC_OK)
        return 0;
    const rc_tensor from = *rc_build_row(b, over);
    rc_tensor tensor = {.kind = from.kind, .storage = from.storage, .offset = from.offset};
    if (!size_tensor(b, shape, from.dtype, &tensor))
        return 0;
    return add_tensor(b, part, tensor);
}

/* Nothing is kept of what is not there. */
static uint32_t present(const int *operands, int n, uint32_t needs)
{
    for (int k = 0; k < n; k++)
        if (operands[k] < 0)
            needs &= ~(UINT32_C(1) << k);
    return needs;
}

/* Operands read and written once, and the sums that keep every later one below 2^63. */
static rc_code size_op(rc_builder *b, rc_op *op)
{
    const rc_op_facts *facts = op->facts;
    const int64_t most_bytes = INT64_MAX / MOST_BYTES_SHARE;
    bool is_sound = true;
    for (int i = 0; i < op->n_in && is_sound; i++)
        if (op->in[i] >= 0)
            is_sound = add_times(rc_graph_tensor(b->graph, op->in[i]).bytes, 1, most_bytes,
                                 &op->fwd_bytes);
    for (int i = 0; i < op->n_out && is_sound; i++)
        if (op->out[i] >= 0)
            is_sound = add_times(rc_graph_tensor(b->graph, op->out[i]).bytes, 1, most_bytes,
                                 &op->fwd_bytes);
    if (!is_sound || !add_times(op->fwd_bytes, 1, most_bytes, &b->moved_bytes))
        return RC_FAIL(b->err, RC_E_RANGE, RC_NOWHERE,
                       "the tensors of one micro-batch pass 2^57 bytes at %s; choose smaller "
                       "sizes",
                       op->part);
    op->fwd_flops = facts->fwd_flops(&op->attr);
    op->bwd_flops = facts->bwd_flops(&op->attr);
    if (!add_times(op->fwd_flops, 1, INT64_MAX / MOST_FLOPS_SHARE, &b->flops) ||
        !add_times(op->bwd_flops, 1, INT64_MAX / MOST_FLOPS_SHARE, &b->flops))
        return RC_FAIL(b->err, RC_E_RANGE, RC_NOWHERE,
                       "one micro-batch takes more than 2^62 FLOP at %s; choose smaller sizes",
                       op->part);
    return RC_OK;
}

/* The operands by index, as they are sized, become those of the row. */
static void store_operands(rc_builder *b, rc_op *op)
{
    for (int i = 0; i < op->n_in; i++) {
        if (op->in[i] >= 0)
            count_reader(b, op->in[i]);
        op->in[i] = row_operand(b, op->in[i]);
    }
    for (int i = 0; i < op->n_out; i++) {
        if (op->out[i] >= 0)
            rc_build_row(b, op->out[i])->producer = block_of(b)->n_ops;
        op->out[i] = row_operand(b, op->out[i]);
    }
}

int rc_build_op(rc_builder *b, const rc_op_parts *parts)
{
    rc_graph *graph = b->graph;
    if (b->code != RC_OK)
        return 0;
    if (GROW(b, op_rows) != RC_OK)
        return 0;
    const rc_op_facts *facts = parts->facts ? parts->facts : rc_op_find(parts->kind);
    rc_op op = {.kind = parts->kind,
                .facts = facts,
                .part = parts->part,
                .prefix = b->prefix,
                .n_in = parts->in.n,
                .n_out = parts->out.n,
                .attr = parts->attr,
                .needs_in = facts->needs_in,
                .needs_out = facts->needs_out};
    op.attr.s = graph->dims.S;
    op.attr.b = graph->dims.b;
    memcpy(op.in, parts->in.at, sizeof op.in);
    memcpy(op.out, parts->out.at, sizeof op.out);
    op.is_in_place =
        op.n_in > 0 && op.n_out > 0 &&
        rc_graph_tensor(graph, op.in[0]).storage == rc_graph_tensor(graph, op.out[0]).storage;
    op.needs_in = present(op.in, op.n_in, op.needs_in);
    op.needs_out = present(op.out, op.n_out, op.needs_out);
    b->code = size_op(b, &op);
    if (b->code != RC_OK)
        return 0;
    store_operands(b, &op);
    graph->op_rows[graph->n_op_rows++] = op;
    block_of(b)->n_ops++;
    return graph->n_ops++;
}

rc_op *rc_build_op_row(rc_builder *b, int op)
{
    const rc_block *block = block_of(b);
    return &b->graph->op_rows[block->row_op + op - block->first_op];
}

static int add_region(rc_builder *b, rc_region region)
{
    rc_graph *graph = b->graph;
    if (GROW(b, region_rows) != RC_OK)
        return 0;
    graph->region_rows[graph->n_region_rows++] = region;
    block_of(b)->n_regions++;
    return graph->n_regions++;
}

void rc_build_region(rc_builder *b, rc_label label, int first_op, int last_op)
{
    if (b->code != RC_OK)
        return;
    const int first = block_of(b)->first_op;
    add_region(b, (rc_region){label, 0, first_op - first, last_op - first});
}

int rc_build_count_ops(const rc_builder *b)
{
    return b->graph->n_ops;
}

double rc_build_scaled_init_std(const rc_builder *b)
{
    /* Megatron's scaled_init_method_normal: outputs of residual branches start smaller. */
    return b->cfg->init_method_std / sqrt(2.0 * (double)b->cfg->num_layers);
}

const char *rc_build_name(rc_builder *b, const char *part, const char *suffix)
{
    const char *name = "";
    if (b->code == RC_OK)
        b->code = rc_arena_printf(b->mem, &name, b->err, "%s.%s", part, suffix);
    return name;
}

int rc_build_norm_of(rc_builder *b, const rc_norm_parts *parts)
{
    const char *part = parts->part;
    const bool is_rms = b->is_rms_norm, is_around_0 = b->cfg->layernorm_zero_centered_gamma;
    int bias = RC_ABSENT, mean = RC_ABSENT;
    int w = rc_build_weight(b, rc_build_name(b, part, "weight"), parts->weight_shape,
                            is_around_0 ? RC_INIT_ZERO : RC_INIT_ONE, 0);
    if (!is_rms)
        bias = rc_build_weight(b, rc_build_name(b, part, "bias"), parts->weight_shape,
                               RC_INIT_ZERO, 0);
    int y = rc_build_tensor(b, part, RC_TENSOR_ACTIVATION, b->graph->dtype, parts->out_shape);
    if (!is_rms)
        mean = rc_build_tensor(b, rc_build_name(b, part, "mean"), RC_TENSOR_STATS, RC_F32,
                               parts->stats_shape);
    int rstd = rc_build_tensor(b, rc_build_name(b, part, "rstd"), RC_TENSOR_STATS, RC_F32,
                               parts->stats_shape);
    rc_op_parts op = {.kind = is_rms ? RC_OP_rmsnorm : RC_OP_layernorm,
                      .part = part,
                      .attr = {.n = parts->n,
                               .h = parts->h,
                               .groups = parts->groups,
                               .eps = b->cfg->layernorm_epsilon,
                               .w_shift = is_around_0},
                      .in = RC_OPERANDS(parts->x, w, bias),
                      .out = RC_OPERANDS(y, is_rms ? rstd : mean, is_rms ? RC_ABSENT : rstd)};
    rc_build_op(b, &op);
    return y;
}

int rc_build_norm(rc_builder *b, const char *part, int x)
{
    return rc_build_norm_of(b, &(rc_norm_parts){.part = part,
                                                .x = x,
                                                .weight_shape = "[h]",
                                                .out_shape = "[n, h]",
                                                .stats_shape = "[n]",
                                                .n = b->graph->dims.n,
                                                .h = b->graph->dims.h,
                                                .groups = 1});
}

int rc_build_linear(rc_builder *b, const rc_linear_parts *parts)
{
    rc_graph *graph = b->graph;
    double std = parts->init_std > 0 ? parts->init_std : b->cfg->init_method_std;
    int w = rc_build_weight(b, rc_build_name(b, parts->part, "weight"), parts->weight_shape,
                            RC_INIT_NORMAL, std);
    int bias = RC_ABSENT;
    if (parts->bias_shape)
        bias = rc_build_weight(b, rc_build_name(b, parts->part, "bias"), parts->bias_shape,
                               RC_INIT_ZERO, 0);
    int y = rc_build_tensor(b, parts->part, RC_TENSOR_ACTIVATION,
                            parts->is_f32 ? RC_F32 : graph->dtype, parts->out_shape);
    if (b->code != RC_OK)
        return 0;
    rc_op_parts op = {.kind = RC_OP_linear,
                      .part = parts->part,
                      .attr = {.n = parts->n > 0 ? parts->n : graph->dims.N,
                               .in = rc_build_row(b, w)->ld,
                               .out = rc_build_row(b, y)->ld,
                               .group = parts->grad_group},
                      .in = RC_OPERANDS(parts->x, w, bias),
                      .out = RC_OPERANDS(y)};
    rc_build_op(b, &op);
    return y;
}

int rc_build_contiguous(rc_builder *b, const char *part, int x, const char *shape)
{
    int y = rc_build_tensor(b, part, RC_TENSOR_ACTIVATION, b->graph->dtype, shape);
    if (b->code != RC_OK)
        return 0;
    rc_op_parts op = {.kind = RC_OP_contiguous,
                      .part = part,
                      .attr = {.n = rc_build_row(b, y)->rows, .h = rc_build_row(b, y)->ld},
                      .in = RC_OPERANDS(x),
                      .out = RC_OPERANDS(y)};
    rc_build_op(b, &op);
    return y;
}

static int build_exchange(rc_builder *b, rc_op_kind kind, const char *part, int x, int y)
{
    rc_op_parts op = {.kind = kind,
                      .part = part,
                      .attr = {.group = RC_GROUP_TP},
                      .in = RC_OPERANDS(x),
                      .out = RC_OPERANDS(y)};
    rc_build_op(b, &op);
    return y;
}

int rc_build_exchange(rc_builder *b, const rc_op_parts *parts, rc_comm_group group)
{
    rc_op_parts op = *parts;
    op.attr.group = group;
    rc_build_op(b, &op);
    return op.out.at[0];
}

int rc_build_enter_tp_as(rc_builder *b, const char *part, int x, const char *shape)
{
    const rc_graph *graph = b->graph;
    if (!graph->dims.has_sequence_parallel)
        return x;
    return build_exchange(b, RC_OP_all_gather, part, x,
                          rc_build_tensor(b, part, RC_TENSOR_ACTIVATION, graph->dtype, shape));
}

int rc_build_enter_tp(rc_builder *b, const char *part, int x)
{
    return rc_build_enter_tp_as(b, part, x, "[N, h]");
}

int rc_build_gather_rows(rc_builder *b, const char *part, int x, const char *shape)
{
    if (!b->graph->dims.has_sequence_parallel)
        return x;
    return build_exchange(
        b, RC_OP_gather_rows, part, x,
        rc_build_tensor(b, part, RC_TENSOR_ACTIVATION, b->graph->dtype, shape));
}

int rc_build_gather_columns(rc_builder *b, const char *part, int x, const char *shape)
{
    if (b->graph->dims.t == 1)
        return x;
    return build_exchange(
        b, RC_OP_gather_columns, part, x,
        rc_build_tensor(b, part, RC_TENSOR_ACTIVATION, b->graph->dtype, shape));
}

int rc_build_scatter_rows(rc_builder *b, const char *part, int x, const char *shape)
{
    if (b->code != RC_OK || !b->graph->dims.has_sequence_parallel)
        return x;
    /* The first rows of what lies together are no copy, so all of it stays where they do. */
    const bool is_slice = rc_build_row(b, x)->view_of >= 0;
    int y = is_slice ? rc_build_tensor(b, part, RC_TENSOR_ACTIVATION, b->graph->dtype, shape)
                     : build_overwrite_as(b, part, x, shape);
    return build_exchange(b, RC_OP_scatter_rows, part, x, y);
}

int rc_build_leave_tp(rc_builder *b, const char *part, int x)
{
    const rc_graph *graph = b->graph;
    if (graph->dims.t == 1)
        return x;
    if (!graph->dims.has_sequence_parallel)
        return build_exchange(b, RC_OP_all_reduce, part, x, rc_build_overwrite(b, part, x));
    return build_exchange(
        b, RC_OP_reduce_scatter, part, x,
        rc_build_tensor(b, part, RC_TENSOR_ACTIVATION, graph->dtype, "[n, h]"));
}

const char *rc_build_product_shape(const rc_builder *b)
{
    return b->graph->dims.has_sequence_parallel ? "[N, h]" : "[n, h]";
}

rc_comm_group rc_build_grad_group(const rc_builder *b)
{
    const rc_dims *dims = &b->graph->dims;
    return dims->t > 1 && !dims->has_sequence_parallel ? RC_GROUP_TP : RC_GROUP_NONE;
}

/* Profiles that cannot draw a mask again keep it: one byte an element. */
static void keep_mask(rc_builder *b, const char *part, const char *shape, double p, int *mask)
{
    *mask = RC_ABSENT;
    if (!b->is_engine && p > 0)
        *mask =
            rc_build_tensor(b, rc_build_name(b, part, "mask"), RC_TENSOR_MASK, RC_U8, shape);
}

int rc_build_bias_dropout_add(rc_builder *b, const char *part, int x, int residual, int bias)
{
    rc_graph *graph = b->graph;
    double p = b->cfg->hidden_dropout;
    int mask;
    keep_mask(b, part, "[n, h]", p, &mask);
    /* The branch's last product is read by nobody else, so the sum may stand in its place. */
    int y = b->is_engine
                ? rc_build_overwrite(b, part, x)
                : rc_build_tensor(b, part, RC_TENSOR_ACTIVATION, graph->dtype, "[n, h]");
    rc_op_parts op = {.kind = RC_OP_bias_dropout_add,
                      .part = part,
                      .attr = {.n = graph->dims.n, .h = graph->dims.h, .p = p},
                      .in = RC_OPERANDS(x, residual, bias),
                      .out = RC_OPERANDS(y, mask)};
    int at = rc_build_op(b, &op);
    if (mask >= 0 && b->code == RC_OK)
        rc_build_op_row(b, at)->needs_out |= 1u << 1;
    return y;
}

int rc_build_dropout(rc_builder *b, const char *part, int x, double p)
{
    if (p <= 0 || b->code != RC_OK)
        return x;
    const rc_tensor from = *rc_build_row(b, x);
    int mask;
    keep_mask(b, part, from.shape, p, &mask);
    int y = rc_build_tensor(b, part, RC_TENSOR_ACTIVATION, from.dtype, from.shape);
    rc_op_parts op = {.kind = RC_OP_dropout,
                      .part = part,
                      .attr = {.n = from.rows, .h = from.ld, .n_elem = from.n_elem, .p = p},
                      .in = RC_OPERANDS(x),
                      .out = RC_OPERANDS(y, mask)};
    int at = rc_build_op(b, &op);
    if (mask >= 0 && b->code == RC_OK)
        rc_build_op_row(b, at)->needs_out |= 1u << 1;
    return y;
}

int rc_build_lacking(rc_builder *b, int x)
{
    if (b->code == RC_OK)
        b->code = RC_FAIL(b->err, RC_E_UNSUPPORTED, RC_NOWHERE,
                          "the model has layers of a kind that no graph is built of yet");
    return x;
}
