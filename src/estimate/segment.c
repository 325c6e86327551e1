/* segment.c — prices a stretch of layers by scheduling it alone, between what it receives and what it sends.
 *
 * takes  a chunk of few layers, and whether it is recomputed whole
 * gives  what it retains, and the most that is alive in its forward and in its backward
 * next   chunk.c puts stretches in a row, rank.c micro-batches
 *
 * Layers in a row meet at one tensor: what a stretch hands on is what the next takes in, and the gradient goes back
 * the same way. So what is alive while a stretch runs is what the stretches before it retain, and what is alive in
 * it alone. That is counted here, event by event, from the schedule of its graph.
 */
#include "estimate/segment.h"

#include "base/num.h"
#include "schedule/passes.h"

#include <string.h>

/* source  PyTorch c10/cuda/CUDACachingAllocator.cpp, kMinBlockSize: sizes are counted rounded up to it */
enum { ALLOCATOR_ROUND = 512 };

static bool is_same_chunk(const rc_chunk *a, const rc_chunk *b)
{
    return a->has_embedding == b->has_embedding && a->has_loss == b->has_loss &&
           a->n_mtp == b->n_mtp && a->n_runs == b->n_runs &&
           (a->n_runs == 0 ||
            memcmp(a->runs, b->runs, (size_t)a->n_runs * sizeof *a->runs) == 0);
}

bool rc_segment_gathers_in_buffer(const rc_graph *graph, const rc_op *op)
{
    const bool is_in_layer = op->layer >= 0 && op->layer < graph->dims.L;
    return op->facts->drops_output &&
           (graph->profile == RC_PROFILE_MEGATRON_LOCAL || !is_in_layer);
}

/* What kernels work in is our own kernels' measure, so it says nothing of Megatron's. */
static bool is_counted(const rc_schedule *s, const rc_buffer *b)
{
    if (b->is_persistent || b->last < 0 || b->category == RC_CATEGORY_SCRATCH)
        return false;
    const int producer = rc_graph_tensor(s->graph, b->tensor).producer;
    if (producer < 0 || b->category == RC_CATEGORY_ACTIVATION_GRADIENTS)
        return true;
    const rc_op op = rc_graph_op(s->graph, producer);
    return !rc_segment_gathers_in_buffer(s->graph, &op);
}

/* Bytes alive at every instruction; a schedule's own count rounds as our arena does, and has the state in it. */
static rc_code count_live(const rc_schedule *s, rc_arena *mem, int64_t **live, rc_error *err)
{
    RC_TRY(RC_NEW(mem, live, s->n_instrs + 1, err));
    for (int i = 0; i < s->n_buffers; i++) {
        const rc_buffer *b = &s->buffers[i];
        if (!is_counted(s, b))
            continue;
        const int64_t room = rc_round_up(b->bytes, ALLOCATOR_ROUND);
        (*live)[b->first] += room;
        (*live)[b->last + 1] -= room;
    }
    for (int i = 1; i <= s->n_instrs; i++)
        (*live)[i] += (*live)[i - 1];
    return RC_OK;
}

bool rc_segment_has_stand_in(const rc_segments *segments, const rc_graph *graph,
                             const rc_op *op, int k)
{
    const bool is_in_layer = op->layer >= 0 && op->layer < graph->dims.L;
    const bool is_known = segments->te_version == 0 || segments->te_version >= 210 ||
                          !rc_graph_tensor(graph, op->in[k]).is_expert;
    return graph->profile == RC_PROFILE_MEGATRON_TE && is_in_layer && is_known &&
           segments->cfg->gradient_accumulation_fusion && (op->facts->adds_grad >> k & 1u);
}

/* A weight's gradient that stands alone until it is added: autograd's, in the dtype of the model. The hook that adds it
 * runs before the next op's backward. source  megatron/core/distributed/distributed_data_parallel.py */
static void count_weight_gradients(const rc_segments *segments, const rc_schedule *s,
                                   int64_t *live)
{
    for (int i = s->forward_last + 1; i <= s->micro_last; i++) {
        const rc_instr *instr = &s->instrs[i];
        if (instr->kind != RC_INSTR_BACKWARD)
            continue;
        const rc_op op = rc_graph_op(s->graph, instr->op);
        for (int k = 0; k < op.n_in; k++) {
            if (op.in[k] < 0 || !(op.facts->grads >> k & 1u))
                continue;
            const rc_tensor weight = rc_graph_tensor(s->graph, op.in[k]);
            if (weight.kind == RC_TENSOR_WEIGHT &&
                !rc_segment_has_stand_in(segments, s->graph, &op, k))
                live[i] += rc_round_up(weight.bytes, ALLOCATOR_ROUND);
        }
    }
}

/* The first instruction of [from, to] at which most is alive. */
static int find_most(const int64_t *live, int from, int to)
{
    int most = from;
    for (int i = from; i <= to; i++)
        if (live[i] > live[most])
            most = i;
    return most;
}

static rc_code measure(const rc_segments *segments, rc_segment *segment, rc_arena *mem,
                       rc_error *err)
{
    const rc_schedule *s = segment->schedule;
    int64_t *live;
    RC_TRY(count_live(s, mem, &live, err));
    count_weight_gradients(segments, s, live);
    segment->fwd_peak = find_most(live, s->micro_first, s->forward_last);
    segment->bwd_peak = find_most(live, s->forward_last + 1, s->micro_last);
    segment->fwd_peak_bytes = live[segment->fwd_peak];
    segment->bwd_peak_bytes = live[segment->bwd_peak];
    for (int i = 0; i < s->n_buffers; i++) {
        const rc_buffer *b = &s->buffers[i];
        if (is_counted(s, b) && b->first <= s->forward_last && b->last > s->forward_last)
            segment->retained_bytes += rc_round_up(b->bytes, ALLOCATOR_ROUND);
    }
    return RC_OK;
}

/* With runs of its own. */
static rc_code copy_chunk(const rc_chunk *chunk, rc_arena *mem, rc_chunk *out, rc_error *err)
{
    rc_layer_run *runs = NULL;
    *out = *chunk;
    if (chunk->n_runs > 0) {
        RC_TRY(RC_NEW(mem, &runs, chunk->n_runs, err));
        memcpy(runs, chunk->runs, (size_t)chunk->n_runs * sizeof *runs);
    }
    out->runs = runs;
    return RC_OK;
}

static rc_code make_graph(const rc_segments *segments, const rc_chunk *chunk, rc_arena *mem,
                          const rc_graph **out, rc_error *err)
{
    const rc_graph_request request = {.cfg = segments->cfg,
                                      .profile = segments->profile,
                                      .chunk = chunk,
                                      .te_version = segments->te_version,
                                      .imbalance = segments->imbalance};
    rc_graph *graph;
    RC_TRY(rc_graph_make(&request, mem, &graph, err));
    *out = graph;
    return RC_OK;
}

static rc_code find_graph(const rc_segments *segments, const rc_chunk *chunk, rc_arena *mem,
                          const rc_graph **out, rc_error *err)
{
    rc_graphs *graphs = segments->graphs;
    if (!graphs)
        return make_graph(segments, chunk, mem, out, err);
    for (int i = 0; i < graphs->n; i++) {
        *out = graphs->at[i].graph;
        if (is_same_chunk(&graphs->at[i].chunk, chunk))
            return RC_OK;
    }
    struct rc_graph_of more;
    RC_TRY(copy_chunk(chunk, graphs->mem, &more.chunk, err));
    RC_TRY(make_graph(segments, &more.chunk, graphs->mem, &more.graph, err));
    RC_TRY(RC_GROW(graphs->mem, &graphs->at, (size_t)graphs->n, &graphs->n_room,
                   (size_t)graphs->n + 1, err));
    graphs->at[graphs->n++] = more;
    *out = more.graph;
    return RC_OK;
}

static rc_code make(const rc_segments *segments, rc_segment *segment, rc_arena *mem,
                    rc_error *err)
{
    const rc_setting full = {.granularity = RC_GRANULARITY_FULL,
                             .method = RC_METHOD_UNIFORM,
                             .num_layers = INT32_MAX};
    rc_policy *policy;
    rc_schedule *schedule;
    RC_TRY(find_graph(segments, &segment->chunk, mem, &segment->graph, err));
    RC_TRY(rc_policy_make(segment->graph, segment->is_full ? &full : segments->setting, mem,
                          &policy, err));
    /* As Megatron runs it: the last layer is recomputed as the others are. */
    RC_TRY(rc_schedule_unplaced(policy, 1, mem, &schedule, err));
    segment->schedule = schedule;
    return measure(segments, segment, mem, err);
}

rc_code rc_segment_find(rc_segments *segments, const rc_chunk *chunk, bool is_full,
                        rc_arena *mem, int *out, rc_error *err)
{
    for (*out = 0; *out < segments->n; ++*out)
        if (segments->at[*out].is_full == is_full &&
            is_same_chunk(&segments->at[*out].chunk, chunk))
            return RC_OK;
    RC_TRY(RC_GROW(mem, &segments->at, (size_t)segments->n, &segments->n_room,
                   (size_t)segments->n + 1, err));
    rc_segment segment = {.is_full = is_full};
    RC_TRY(copy_chunk(chunk, mem, &segment.chunk, err));
    RC_TRY(make(segments, &segment, mem, err));
    segments->at[segments->n++] = segment;
    return RC_OK;
}
