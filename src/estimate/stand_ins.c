/* stand_ins.c — the tensors that Transformer Engine hands autograd where its product added the gradient itself.
 *
 * takes  the weights of a rank's segments
 * gives  bytes of one tensor for every shape of weight: they are made once and kept
 * next   rank.c
 *
 * source  transformer_engine/pytorch/module/base.py, get_dummy_wgrad: a cache by shape and dtype
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

static rc_code add_shape(shapes *of, const rc_tensor *weight, rc_arena *mem, rc_error *err)
{
    for (size_t i = 0; i < of->n; i++)
        if (of->at[i].rows == weight->rows && of->at[i].ld == weight->ld)
            return RC_OK;
    RC_TRY(RC_GROW(mem, &of->at, of->n, &of->n_room, of->n + 1, err));
    of->at[of->n++] = (shape){weight->rows, weight->ld};
    return rc_add(of->bytes, weight->bytes, &of->bytes)
               ? RC_OK
               : RC_FAIL(err, RC_E_RANGE, RC_NOWHERE,
                         "the weights of a rank pass 2^63-1 bytes");
}

static rc_code add_graph(const rc_config *cfg, const rc_graph *graph, shapes *of, rc_arena *mem,
                         rc_error *err)
{
    for (int i = 0; i < graph->n_ops; i++) {
        const rc_op op = rc_graph_op(graph, i);
        for (int k = 0; k < op.n_in; k++) {
            if (op.in[k] < 0 || !rc_segment_adds_grad(cfg, graph, &op, k))
                continue;
            const rc_tensor weight = rc_graph_tensor(graph, op.in[k]);
            RC_TRY(add_shape(of, &weight, mem, err));
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
            RC_TRY(add_graph(segments->cfg, segments->at[chunks[c].pieces[p].segment].graph,
                             &of, mem, err));
    *bytes = of.bytes;
    return RC_OK;
}
