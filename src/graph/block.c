/* graph/block.c — layers that are alike are stored once: from rows to indices and back.
 *
 * takes  blocks: rows of one layer, and how often it stands
 * gives  the tensor, op or region of an index in the whole graph
 * next   policy/, schedule/ and cost/ ask by index and see every layer
 *
 * The graph is a chain of blocks: the embedding, runs of layers that are alike, the head. A layer reads three
 * things: what it makes itself, what the layer before hands on (the residual stream; of a block's first
 * layer, the block before), and what the embedding's block holds (tokens, tied words). So a stored operand is
 *
 *     k >= 0             the k-th tensor of the same layer
 *     RC_ROW_ABSENT      none
 *     RC_ROW_INPUT       what the layer before hands on
 *     RC_ROW_FIRST - k   the k-th tensor of the first block
 *
 * and layer j of a block has the indices first_tensor + j * n_tensors + k. A graph with fewer layers is the
 * same rows under smaller counts.
 */
#include "graph/block.h"

#include <string.h>

/* The block that index `at` lies in, by the member of rc_block at `offset`: firsts rise. */
static int find_block(const rc_graph *graph, int at, size_t offset)
{
    int low = 0, high = graph->n_blocks - 1;
    while (low < high) {
        const int middle = (low + high + 1) / 2;
        int first;
        memcpy(&first, (const char *)&graph->blocks[middle] + offset, sizeof first);
        if (first <= at)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* A place in the graph: a block, which of its layers, and the row's number in the layer. */
typedef struct place {
    const rc_block *block;
    int at, layer, row;
} place;

static place place_in(const rc_graph *graph, int at, int block, int first, int n)
{
    const rc_block *b = &graph->blocks[block];
    const int layer = b->n_layers > 1 ? (at - first) / n : 0;
    return (place){b, block, layer, at - first - layer * n};
}

static place place_of_tensor(const rc_graph *graph, int at)
{
    const int block = find_block(graph, at, offsetof(rc_block, first_tensor));
    return place_in(graph, at, block, graph->blocks[block].first_tensor,
                    graph->blocks[block].n_tensors);
}

static place place_of_op(const rc_graph *graph, int at)
{
    const int block = find_block(graph, at, offsetof(rc_block, first_op));
    return place_in(graph, at, block, graph->blocks[block].first_op,
                    graph->blocks[block].n_ops);
}

static int layer_of(const place *p)
{
    return p->block->first_layer + p->layer;
}

static int tensor_index(const place *p, int row)
{
    return p->block->first_tensor + p->layer * p->block->n_tensors + row;
}

static int op_index(const place *p, int row)
{
    return p->block->first_op + p->layer * p->block->n_ops + row;
}

int rc_block_input(const rc_graph *graph, int block)
{
    if (block == 0)
        return -1;
    const rc_block *before = &graph->blocks[block - 1];
    if (before->out < 0)
        return -1;
    return before->first_tensor + (before->n_layers - 1) * before->n_tensors + before->out;
}

static int operand_index(const rc_graph *graph, const place *p, int row)
{
    if (row >= 0)
        return tensor_index(p, row);
    if (row == RC_ROW_ABSENT)
        return -1;
    if (row <= RC_ROW_FIRST)
        return RC_ROW_FIRST - row;
    return p->layer == 0 ? rc_block_input(graph, p->at)
                         : tensor_index(p, p->block->out - p->block->n_tensors);
}

rc_tensor rc_graph_tensor(const rc_graph *graph, int tensor)
{
    const place p = place_of_tensor(graph, tensor);
    rc_tensor t = graph->tensor_rows[p.block->row_tensor + p.row];
    t.layer = layer_of(&p);
    t.storage = tensor_index(&p, t.storage);
    if (t.view_of >= 0)
        t.view_of = tensor_index(&p, t.view_of);
    if (t.producer >= 0)
        t.producer = op_index(&p, t.producer);
    if (p.row == p.block->out && p.layer + 1 < p.block->n_layers)
        t.n_consumers += p.block->n_input_reads;
    else if (p.row == p.block->out && p.at + 1 < graph->n_blocks)
        t.n_consumers += graph->blocks[p.at + 1].n_input_reads;
    return t;
}

rc_op rc_graph_op(const rc_graph *graph, int op)
{
    const place p = place_of_op(graph, op);
    rc_op o = graph->op_rows[p.block->row_op + p.row];
    o.layer = layer_of(&p);
    o.attr.random_id = (uint32_t)op;
    for (int k = 0; k < o.n_in; k++)
        o.in[k] = operand_index(graph, &p, o.in[k]);
    for (int k = 0; k < o.n_out; k++)
        o.out[k] = operand_index(graph, &p, o.out[k]);
    return o;
}

rc_region rc_graph_region(const rc_graph *graph, int region)
{
    const int block = find_block(graph, region, offsetof(rc_block, first_region));
    const place p = place_in(graph, region, block, graph->blocks[block].first_region,
                             graph->blocks[block].n_regions);
    rc_region r = graph->region_rows[p.block->row_region + p.row];
    r.layer = layer_of(&p);
    r.first = op_index(&p, r.first);
    r.last = op_index(&p, r.last);
    return r;
}

static int64_t operand_bytes(const rc_graph *graph, const int *operands, int n)
{
    return n > 0 && operands[0] >= 0 ? rc_graph_tensor(graph, operands[0]).bytes : 0;
}

rc_comm rc_graph_comm(const rc_graph *graph, int op, bool is_backward)
{
    const rc_op o = rc_graph_op(graph, op);
    const rc_comm_kind kind = is_backward ? o.facts->bwd_comm : o.facts->fwd_comm;
    if (o.attr.group == RC_GROUP_NONE || kind == RC_COMM_NONE)
        return (rc_comm){.kind = RC_COMM_NONE};
    /* The gradient of x, which is x's size, or the larger side of what moves whole. */
    const int64_t in = operand_bytes(graph, o.in, o.n_in);
    const int64_t out = operand_bytes(graph, o.out, o.n_out);
    const bool is_own = o.facts->fwd_comm != RC_COMM_NONE;
    return (rc_comm){kind, o.attr.group, is_own && out > in ? out : in};
}

/* The block of a layer that the graph has. */
static const rc_block *block_of_layer(const rc_graph *graph, int layer)
{
    const rc_block *b = graph->blocks;
    while (!b->has_layers || layer >= b->first_layer + b->n_layers)
        b++;
    return b;
}

void rc_graph_layer_ops(const rc_graph *graph, int from, int to, int *first, int *last)
{
    const rc_block *a = block_of_layer(graph, from), *b = block_of_layer(graph, to);
    *first = a->first_op + (from - a->first_layer) * a->n_ops;
    *last = b->first_op + (to - b->first_layer + 1) * b->n_ops - 1;
}

static const char *name(const place *p, int first_layer, const char *prefix, const char *part,
                        char buf[RC_GRAPH_NAME_BYTES])
{
    if (p->block->has_layers)
        snprintf(buf, RC_GRAPH_NAME_BYTES, "%s%d.%s", prefix, first_layer + layer_of(p), part);
    else
        snprintf(buf, RC_GRAPH_NAME_BYTES, "%s%s", prefix, part);
    return buf;
}

const char *rc_graph_tensor_name(const rc_graph *graph, int tensor,
                                 char buf[RC_GRAPH_NAME_BYTES])
{
    const place p = place_of_tensor(graph, tensor);
    const rc_tensor *row = &graph->tensor_rows[p.block->row_tensor + p.row];
    return name(&p, graph->first_layer, row->prefix, row->part, buf);
}

const char *rc_graph_op_name(const rc_graph *graph, int op, char buf[RC_GRAPH_NAME_BYTES])
{
    const place p = place_of_op(graph, op);
    const rc_op *row = &graph->op_rows[p.block->row_op + p.row];
    return name(&p, graph->first_layer, row->prefix, row->part, buf);
}

int rc_graph_count_regions(const rc_graph *graph, rc_label label)
{
    int n = 0;
    for (int i = 0; i < graph->n_blocks; i++) {
        const rc_block *b = &graph->blocks[i];
        for (int k = 0; k < b->n_regions; k++)
            n += graph->region_rows[b->row_region + k].label == label ? b->n_layers : 0;
    }
    return n;
}

void rc_block_count(rc_graph *graph)
{
    graph->n_tensors = graph->n_ops = graph->n_regions = 0;
    int layer = 0;
    for (int i = 0; i < graph->n_blocks; i++) {
        rc_block *b = &graph->blocks[i];
        b->first_layer = b->has_layers || i > 0 ? layer : -1;
        b->first_tensor = graph->n_tensors;
        b->first_op = graph->n_ops;
        b->first_region = graph->n_regions;
        graph->n_tensors += b->n_layers * b->n_tensors;
        graph->n_ops += b->n_layers * b->n_ops;
        graph->n_regions += b->n_layers * b->n_regions;
        layer += b->has_layers ? b->n_layers : 0;
    }
}

const rc_block *rc_graph_only_run(const rc_graph *graph)
{
    const rc_block *found = NULL;
    for (int i = 0; i < graph->n_blocks; i++) {
        if (!graph->blocks[i].has_layers)
            continue;
        if (found)
            return NULL;
        found = &graph->blocks[i];
    }
    return found;
}

rc_code rc_graph_with_layers(const rc_graph *graph, int n, rc_arena *mem, rc_graph **out,
                             rc_error *err)
{
    const rc_block *run = rc_graph_only_run(graph);
    const rc_block *last = &graph->blocks[graph->n_blocks - 1];
    RC_ASSERT(run && n >= 1 && n <= run->n_layers);
    RC_TRY(RC_NEW(mem, out, 1, err));
    **out = *graph;
    RC_TRY(RC_NEW(mem, &(*out)->blocks, graph->n_blocks, err));
    memcpy((*out)->blocks, graph->blocks, (size_t)graph->n_blocks * sizeof *graph->blocks);
    (*out)->blocks[run - graph->blocks].n_layers = n;
    (*out)->dims.L = n;
    rc_block_count(*out);
    if (graph->loss >= 0)
        (*out)->loss =
            (*out)->blocks[graph->n_blocks - 1].first_tensor + graph->loss - last->first_tensor;
    return RC_OK;
}
