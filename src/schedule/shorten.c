/* shorten.c — a graph with fewer of its layers.
 *
 * takes  a graph
 * gives  the same graph as if num_layers were smaller
 * next   outline.c schedules it
 *
 * Indices of ops and tensors run through prefix, layer 0, layer 1, ..., suffix. When every layer
 * has as many of both, an index is a place in its layer and the layer's number, and dropping layers
 * is arithmetic.
 */
#include "schedule/outline.h"

#include <string.h>

/* Where the layers lie in one array: indices [start + l * n, start + (l + 1) * n). */
typedef struct span {
    int start, n, n_layers;
} span;

static span op_span(const rc_graph *graph)
{
    return (span){graph->layer_first[0], graph->layer_last[0] - graph->layer_first[0] + 1,
                  (int)graph->dims.L};
}

static span tensor_span(const rc_graph *graph)
{
    span s = {0, 0, (int)graph->dims.L};
    while (s.start < graph->n_tensors && graph->tensors[s.start].layer < 0)
        s.start++;
    while (s.start + s.n < graph->n_tensors && graph->tensors[s.start + s.n].layer == 0)
        s.n++;
    return s;
}

static int span_end(span s)
{
    return s.start + s.n * s.n_layers;
}

/* The layer of an index: -1 before the first, n_layers after the last. */
static int layer_at(span s, int at)
{
    return at < s.start ? -1 : at >= span_end(s) ? s.n_layers : (at - s.start) / s.n;
}

/* Whether `a`, seen from layer 1, is what `b` is seen from `layer`. */
static bool is_same_place(span s, int a, int b, int layer)
{
    if (a < s.start)
        return a == b;
    return a < span_end(s) && b - (layer - 1) * s.n == a && b < span_end(s);
}

static bool is_same_tensor(const rc_graph *graph, span ops, span tensors, int at, int layer)
{
    const rc_tensor *b = &graph->tensors[at];
    const rc_tensor *a = &graph->tensors[at - (layer - 1) * tensors.n];
    return a->kind == b->kind && a->dtype == b->dtype && a->n_elem == b->n_elem &&
           a->rows == b->rows && a->ld == b->ld && a->bytes == b->bytes &&
           a->offset == b->offset &&
           (layer == tensors.n_layers - 1 || a->n_consumers == b->n_consumers) &&
           is_same_place(tensors, a->storage, b->storage, layer) &&
           is_same_place(tensors, a->view_of, b->view_of, layer) &&
           is_same_place(ops, a->producer, b->producer, layer);
}

static int64_t scratch_bytes(const rc_op *op, rc_dtype dtype, int n_threads, bool is_backward)
{
    const rc_op_facts *facts = op->facts;
    int64_t (*bytes)(const rc_op_attr *, rc_dtype, int) =
        is_backward ? facts->bwd_scratch_bytes : facts->fwd_scratch_bytes;
    return bytes ? bytes(&op->attr, dtype, n_threads) : 0;
}

static bool is_same_op(const rc_graph *graph, int n_threads, int at)
{
    span ops = op_span(graph), tensors = tensor_span(graph);
    int layer = layer_at(ops, at);
    const rc_op *b = &graph->ops[at], *a = &graph->ops[at - (layer - 1) * ops.n];
    for (int k = 0; k < a->n_in; k++)
        if (!is_same_place(tensors, a->in[k], b->in[k], layer))
            return false;
    for (int k = 0; k < a->n_out; k++)
        if (!is_same_place(tensors, a->out[k], b->out[k], layer))
            return false;
    for (int backward = 0; backward < 2; backward++)
        if (scratch_bytes(a, graph->dtype, n_threads, backward) !=
            scratch_bytes(b, graph->dtype, n_threads, backward))
            return false;
    return a->kind == b->kind && a->is_in_place == b->is_in_place &&
           a->needs_in == b->needs_in && a->needs_out == b->needs_out &&
           a->fwd_flops == b->fwd_flops && a->fwd_bytes == b->fwd_bytes &&
           a->attr.p == b->attr.p;
}

/* Regions lie layer by layer, those of every layer alike. */
static bool has_periodic_regions(const rc_graph *graph, span ops)
{
    int n = graph->n_regions / ops.n_layers;
    if (n * ops.n_layers != graph->n_regions)
        return false;
    for (int i = 0; i < graph->n_regions; i++) {
        const rc_region *a = &graph->regions[i % n], *b = &graph->regions[i];
        int shift = i / n * ops.n;
        if (b->layer != i / n || a->label != b->label || a->first + shift != b->first ||
            a->last + shift != b->last)
            return false;
    }
    return true;
}

static bool has_periodic_tensors(const rc_graph *graph, span ops, span tensors)
{
    for (int i = 0; i < graph->n_tensors; i++) {
        int layer = layer_at(tensors, i);
        bool is_repeated = layer >= 2 && layer < tensors.n_layers;
        if (graph->tensors[i].layer != layer ||
            (is_repeated && !is_same_tensor(graph, ops, tensors, i, layer)))
            return false;
    }
    return true;
}

/* The suffix reads no layer but the last. */
static bool reads_last_layer_only(const rc_op *op, span tensors)
{
    for (int k = 0; k < op->n_in; k++)
        if (op->in[k] >= tensors.start && layer_at(tensors, op->in[k]) < tensors.n_layers - 1)
            return false;
    return true;
}

static bool has_periodic_ops(const rc_graph *graph, int n_threads, span ops, span tensors)
{
    for (int layer = 0; layer < ops.n_layers; layer++)
        if (graph->layer_first[layer] != ops.start + layer * ops.n ||
            graph->layer_last[layer] != ops.start + (layer + 1) * ops.n - 1)
            return false;
    for (int i = ops.start + 2 * ops.n; i < span_end(ops); i++)
        if (!is_same_op(graph, n_threads, i))
            return false;
    for (int i = span_end(ops); i < graph->n_ops; i++)
        if (!reads_last_layer_only(&graph->ops[i], tensors))
            return false;
    return true;
}

bool rc_graph_is_periodic(const rc_graph *graph, int n_threads)
{
    span ops = op_span(graph), tensors = tensor_span(graph);
    return span_end(ops) <= graph->n_ops && span_end(tensors) <= graph->n_tensors &&
           has_periodic_regions(graph, ops) && has_periodic_tensors(graph, ops, tensors) &&
           has_periodic_ops(graph, n_threads, ops, tensors);
}

/* What is kept, and from where: the new last layer is the old last one, which alone is read by the
 * suffix. */
static int source_of(span s, int n, int to)
{
    return layer_at(s, to) < n - 1 ? to : to + (s.n_layers - n) * s.n;
}

/* An operand of the old index `from`. */
static int moved(span s, int n, int from_layer, int at)
{
    return at < s.start || from_layer < s.n_layers - 1 ? at : at - (s.n_layers - n) * s.n;
}

static void copy_tensors(const rc_graph *from, span ops, span tensors, rc_graph *to)
{
    int n = (int)to->dims.L;
    for (int i = 0; i < to->n_tensors; i++) {
        int source = source_of(tensors, n, i), layer = layer_at(tensors, source);
        rc_tensor *tensor = &to->tensors[i];
        *tensor = from->tensors[source];
        tensor->layer = layer_at((span){tensors.start, tensors.n, n}, i);
        tensor->storage = moved(tensors, n, layer, tensor->storage);
        tensor->view_of = moved(tensors, n, layer, tensor->view_of);
        tensor->producer = moved(ops, n, layer, tensor->producer);
    }
}

static void copy_ops(const rc_graph *from, span ops, span tensors, rc_graph *to)
{
    int n = (int)to->dims.L;
    for (int i = 0; i < to->n_ops; i++) {
        int source = source_of(ops, n, i), layer = layer_at(ops, source);
        rc_op *op = &to->ops[i];
        *op = from->ops[source];
        op->layer = layer_at((span){ops.start, ops.n, n}, i);
        for (int k = 0; k < op->n_in; k++)
            op->in[k] = moved(tensors, n, layer, op->in[k]);
        for (int k = 0; k < op->n_out; k++)
            op->out[k] = moved(tensors, n, layer, op->out[k]);
    }
}

rc_code rc_graph_shorten(const rc_graph *graph, int n, rc_arena *mem, rc_graph **out,
                         rc_error *err)
{
    span ops = op_span(graph), tensors = tensor_span(graph);
    RC_ASSERT(n >= 2 && n <= ops.n_layers);
    RC_TRY(RC_NEW(mem, out, 1, err));
    rc_graph *to = *out;
    *to = *graph; /* layer_first, layer_last too: they begin alike */
    to->dims.L = n;
    to->n_tensors -= (ops.n_layers - n) * tensors.n;
    to->n_ops -= (ops.n_layers - n) * ops.n;
    to->n_regions = graph->n_regions / ops.n_layers * n;
    RC_TRY(RC_NEW(mem, &to->tensors, to->n_tensors, err));
    RC_TRY(RC_NEW(mem, &to->ops, to->n_ops, err));
    copy_tensors(graph, ops, tensors, to);
    copy_ops(graph, ops, tensors, to);
    to->loss = moved(tensors, n, tensors.n_layers, graph->loss);
    return RC_OK;
}
