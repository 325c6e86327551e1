/* stand_ins.c — the tensors that Transformer Engine hands autograd where its product added the gradient itself.
 *
 * takes  the weights of a rank's segments
 * gives  bytes of one tensor for every shape of weight: they are made once and kept
 * next   rank.c
 *
 * source  transformer_engine/pytorch/module/base.py, get_dummy_wgrad: a cache by shape and dtype; of experts since 2.10
 */
#include "estimate/state.h"

#include "base/num.h"

typedef struct shape {
    int64_t rows, ld;
} shape;

typedef struct shapes {
    shape *at;
    size_t n, n_room;
    int64_t bytes;
} shapes;

/* Experts are weights of their own, though they lie in one tensor here. */
static rc_code add_shape(shapes *of, const rc_tensor *weight, int64_t n_experts, rc_arena *mem,
                         rc_error *err)
{
    const int64_t n = weight->is_expert && n_experts > 0 ? n_experts : 1;
    const shape own = {weight->rows / n, weight->ld};
    for (size_t i = 0; i < of->n; i++)
        if (of->at[i].rows == own.rows && of->at[i].ld == own.ld)
            return RC_OK;
    RC_TRY(RC_GROW(mem, &of->at, of->n, &of->n_room, of->n + 1, err));
    of->at[of->n++] = own;
    return rc_add(of->bytes, weight->bytes / n, &of->bytes)
               ? RC_OK
               : RC_FAIL(err, RC_E_RANGE, RC_NOWHERE,
                         "the weights of a rank pass 2^63-1 bytes");
}

static rc_code add_graph(const rc_segments *segments, const rc_graph *graph, shapes *of,
                         rc_arena *mem, rc_error *err)
{
    for (int i = 0; i < graph->n_ops; i++) {
        const rc_op op = rc_graph_op(graph, i);
        for (int k = 0; k < op.n_in; k++) {
            if (op.in[k] < 0 || !rc_segment_has_stand_in(segments, graph, &op, k))
                continue;
            const rc_tensor weight = rc_graph_tensor(graph, op.in[k]);
            RC_TRY(add_shape(of, &weight, graph->dims.el, mem, err));
        }
    }
    return RC_OK;
}

rc_code rc_stand_ins_count(const rc_segments *segments, const rc_chunk_cost *chunks,
                           int n_chunks, rc_arena *mem, int64_t *bytes, rc_error *err)
{
    shapes of = {.n = 0};
    for (int c = 0; c < n_chunks; c++)
        for (int p = 0; p < chunks[c].n_pieces; p++)
            RC_TRY(add_graph(segments, segments->at[chunks[c].pieces[p].segment].graph, &of,
                             mem, err));
    *bytes = of.bytes;
    return RC_OK;
}
