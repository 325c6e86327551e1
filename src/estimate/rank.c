/* rank.c — puts what the chunks of one rank take into its pipeline, and keeps the worst moment.
 *
 * takes  chunks priced, the state across steps, the order in which they run
 * gives  the largest sum, when, and what it is made of; in the first step and in later ones
 * next   show.c
 *
 * Between events only what micro-batches in flight retain is alive beside the state. During an event that is what
 * the others retain, what its own chunk retains before the layer that runs, and what is alive in that layer. The
 * optimizer's moments come with the first update, so the first step's peak is one without them, or its update.
 */
#include "estimate/rank.h"

#include "base/num.h"

#include <string.h>

static const rc_chunk_peak *peak_of(const rc_rank_parts *t, const rc_pipeline_event *event)
{
    const rc_chunk_cost *chunk = &t->chunks[event->chunk];
    return event->is_backward ? &chunk->bwd : &chunk->fwd;
}

/* What is alive in a layer beside what its chunk retains until backward. */
static rc_code find_heaviest(const rc_rank_parts *t, rc_arena *mem, rc_pipeline_peak *out,
                             rc_error *err)
{
    rc_chunk_weight *weights;
    RC_TRY(RC_NEW(mem, &weights, t->pipeline->n_chunks, err));
    for (int i = 0; i < t->pipeline->n_chunks; i++) {
        const int64_t retained = t->chunks[i].retained_bytes;
        weights[i] = (rc_chunk_weight){.held = retained,
                                       .fwd_extra = t->chunks[i].fwd.bytes - retained,
                                       .bwd_extra = t->chunks[i].bwd.bytes - retained};
    }
    return rc_pipeline_find_peak(t->pipeline, weights, mem, out, err);
}

/* State that is there at every moment; moments only from the first update on. */
static void hold_state(const rc_rank_parts *t, bool has_moments, rc_held *out)
{
    const int64_t *bytes = t->state->bytes;
    out->of[RC_COMPONENT_weights] = bytes[RC_PARAM_WEIGHT];
    out->of[RC_COMPONENT_gradients] = bytes[RC_PARAM_GRAD];
    out->of[RC_COMPONENT_master_weights] = bytes[RC_PARAM_MASTER];
    out->of[RC_COMPONENT_moments] =
        has_moments ? bytes[RC_PARAM_MOMENT1] + bytes[RC_PARAM_MOMENT2] : 0;
    out->of[RC_COMPONENT_grad_stand_ins] = t->stand_in_bytes;
    out->of[RC_COMPONENT_workspace] = t->workspace_bytes;
}

static rc_code add_up(rc_held *moment, rc_error *err)
{
    moment->bytes = 0;
    for (int i = 0; i < RC_COMPONENT_COUNT; i++)
        if (!rc_add(moment->bytes, moment->of[i], &moment->bytes))
            return RC_FAIL(err, RC_E_RANGE, RC_NOWHERE,
                           "what a rank holds passes 2^63-1 bytes");
    return RC_OK;
}

static rc_code name_op(const rc_rank_parts *t, const rc_pipeline_event *event, rc_arena *mem,
                       rc_held *out, rc_error *err)
{
    const rc_chunk_cost *chunk = &t->chunks[event->chunk];
    const rc_segment *s = &t->segments->at[chunk->pieces[peak_of(t, event)->piece].segment];
    const int at = event->is_backward ? s->bwd_peak : s->fwd_peak;
    char name[RC_GRAPH_NAME_BYTES];
    return rc_arena_printf(mem, &out->op, err, "%s",
                           rc_graph_op_name(s->graph, s->schedule->instrs[at].op, name));
}

/* Of what is held, the others' share is in flight; what is alive beyond runs. */
static rc_code make_moment(const rc_rank_parts *t, const rc_pipeline_peak *heaviest,
                           bool has_moments, rc_arena *mem, rc_held *out, rc_error *err)
{
    const rc_pipeline_event *event = &heaviest->event;
    const rc_chunk_peak *peak = peak_of(t, event);
    int64_t in_flight = -t->chunks[event->chunk].retained_bytes, n_in_flight = -1;
    for (int i = 0; i < t->pipeline->n_chunks; i++) {
        in_flight += heaviest->n_held[i] * t->chunks[i].retained_bytes;
        n_in_flight += heaviest->n_held[i];
    }
    *out = (rc_held){.phase = event->is_backward ? RC_PHASE_BACKWARD : RC_PHASE_FORWARD,
                     .vp = event->chunk,
                     .micro_batch = event->micro_batch,
                     .n_in_flight = n_in_flight};
    hold_state(t, has_moments, out);
    out->of[RC_COMPONENT_in_flight] = in_flight;
    out->of[RC_COMPONENT_retained] = peak->before_bytes;
    out->of[RC_COMPONENT_running] = heaviest->weight - in_flight - peak->before_bytes;
    RC_TRY(name_op(t, event, mem, out, err));
    return add_up(out, err);
}

rc_code rc_rank_price(const rc_rank_parts *parts, rc_estimate_rank *rank, rc_arena *mem,
                      rc_error *err)
{
    rc_held step = {.phase = RC_PHASE_STEP};
    rc_pipeline_peak heaviest;
    RC_TRY(find_heaviest(parts, mem, &heaviest, err));
    RC_TRY(make_moment(parts, &heaviest, false, mem, &rank->first, err));
    RC_TRY(make_moment(parts, &heaviest, true, mem, &rank->later, err));
    hold_state(parts, true, &step);
    step.of[RC_COMPONENT_step] = parts->state->step_bytes;
    RC_TRY(add_up(&step, err));
    if (step.bytes > rank->first.bytes)
        rank->first = step;
    if (step.bytes > rank->later.bytes)
        rank->later = step;
    return RC_OK;
}
