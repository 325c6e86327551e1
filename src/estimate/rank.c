/* rank.c — runs the pipeline's events of one rank over what its chunks take, and keeps the worst moment.
 *
 * takes  chunks priced, the state across steps, the events in their order
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

typedef struct walk {
    const rc_rank_parts *t;
    /* of micro-batches in flight */
    int64_t bytes, n;
    /* the worst event so far */
    rc_event event;
    int64_t most, in_flight, n_in_flight;
} walk;

static const rc_chunk_peak *peak_of(const walk *w, const rc_event *event)
{
    const rc_chunk_cost *chunk = &w->t->chunks[event->vp];
    return event->is_backward ? &chunk->bwd : &chunk->fwd;
}

static bool run_event(walk *w, const rc_event *event)
{
    const rc_chunk_cost *chunk = &w->t->chunks[event->vp];
    int64_t sum;
    if (event->is_backward) {
        w->bytes -= chunk->retained_bytes;
        w->n--;
    }
    if (!rc_add(w->bytes, peak_of(w, event)->bytes, &sum))
        return false;
    if (sum > w->most) {
        w->most = sum;
        w->event = *event;
        w->in_flight = w->bytes;
        w->n_in_flight = w->n;
    }
    if (event->is_backward)
        return true;
    w->n++;
    return rc_add(w->bytes, chunk->retained_bytes, &w->bytes);
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

static rc_code name_op(const walk *w, const rc_chunk_peak *peak, rc_arena *mem, rc_held *out,
                       rc_error *err)
{
    const rc_chunk_cost *chunk = &w->t->chunks[w->event.vp];
    const rc_segment *s = &w->t->segments->at[chunk->pieces[peak->piece].segment];
    const int at = w->event.is_backward ? s->bwd_peak : s->fwd_peak;
    char name[RC_GRAPH_NAME_BYTES];
    return rc_arena_printf(mem, &out->op, err, "%s",
                           rc_graph_op_name(s->graph, s->schedule->instrs[at].op, name));
}

static rc_code make_moment(const walk *w, bool has_moments, rc_arena *mem, rc_held *out,
                           rc_error *err)
{
    const rc_chunk_peak *peak = peak_of(w, &w->event);
    *out = (rc_held){.phase = w->event.is_backward ? RC_PHASE_BACKWARD : RC_PHASE_FORWARD,
                     .vp = w->event.vp,
                     .micro_batch = w->event.micro_batch,
                     .n_in_flight = w->n_in_flight};
    hold_state(w->t, has_moments, out);
    out->of[RC_COMPONENT_in_flight] = w->in_flight;
    out->of[RC_COMPONENT_retained] = peak->before_bytes;
    out->of[RC_COMPONENT_running] = peak->bytes - peak->before_bytes;
    RC_TRY(name_op(w, peak, mem, out, err));
    return add_up(out, err);
}

rc_code rc_rank_price(const rc_rank_parts *parts, rc_events *events, rc_estimate_rank *rank,
                      rc_arena *mem, rc_error *err)
{
    walk w = {.t = parts};
    rc_held step = {.phase = RC_PHASE_STEP};
    for (rc_event event; rc_events_next(events, &event);)
        if (!run_event(&w, &event))
            return RC_FAIL(err, RC_E_RANGE, RC_NOWHERE,
                           "the activations of a rank pass 2^63-1 bytes");
    RC_ASSERT(w.n == 0 && w.bytes == 0);
    RC_TRY(make_moment(&w, false, mem, &rank->first, err));
    RC_TRY(make_moment(&w, true, mem, &rank->later, err));
    hold_state(parts, true, &step);
    step.of[RC_COMPONENT_step] = parts->state->step_bytes;
    RC_TRY(add_up(&step, err));
    if (step.bytes > rank->first.bytes)
        rank->first = step;
    if (step.bytes > rank->later.bytes)
        rank->later = step;
    return RC_OK;
}
