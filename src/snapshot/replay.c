/* replay.c — one pass over the events, with exact peaks and who held them.
 *
 * takes  events in the file's order
 * gives  per trace: counters, the peak, and the allocations live at the peak, at the last OOM and at
 *        a moment of the caller's choice
 *
 * The live set at a moment is found without copying it at each new maximum, which is quadratic when
 * memory rises. A marker remembers the number of its event; from then on, an allocation that
 * is freed and is older than the marker goes to the marker's list. A new maximum empties the list.
 * At the end the set is that list and what is still live and older than the marker.
 */
#include "snapshot/replay.h"

#include <inttypes.h>
#include <string.h>

static const int64_t MOST_BYTES = (int64_t)1 << 61;

static rc_code open_trace(rc_replay *replay, uint32_t number, rc_error *err)
{
    RC_TRY(RC_GROW(replay->mem, &replay->traces, replay->n_traces, &replay->n_room,
                   (size_t)number + 1, err));
    if (number >= replay->n_traces)
        replay->n_traces = number + 1;
    rc_trace_replay *trace;
    RC_TRY(RC_NEW(replay->mem, &trace, 1, err));
    trace->peak_reserved_index = trace->peak.event_index = -1;
    trace->is_moment_due = replay->moment && replay->moment->kind != RC_MOMENT_NONE;
    trace->peak.is_set = true;
    replay->traces[number] = trace;
    return rc_live_make(replay->mem, &trace->live, err);
}

static void set_marker(const rc_trace_replay *trace, rc_marker *marker, int64_t index,
                       const rc_snapshot_event *event)
{
    marker->is_set = true;
    marker->event_index = index;
    marker->number = (uint32_t)(index + 1);
    marker->n_freed = 0;
    marker->time_us = event ? event->time_us : trace->last_us;
    marker->has_time = event ? event->has_time : trace->has_time;
    marker->net_bytes = trace->net_bytes;
    marker->reserved_net_bytes = trace->reserved_net_bytes;
    marker->unmatched_bytes = trace->unmatched_bytes;
}

static rc_code keep_freed(rc_arena *mem, rc_marker *marker, const rc_live_entry *entry,
                          rc_error *err)
{
    if (!marker->is_set || entry->number > marker->number)
        return RC_OK;
    RC_TRY(RC_GROW(mem, &marker->freed, marker->n_freed, &marker->n_room, marker->n_freed + 1,
                   err));
    marker->freed[marker->n_freed++] = *entry;
    return RC_OK;
}

static rc_code remove_entry(rc_replay *replay, rc_trace_replay *trace,
                            const rc_live_entry *entry, rc_error *err)
{
    RC_TRY(keep_freed(replay->mem, &trace->peak, entry, err));
    RC_TRY(keep_freed(replay->mem, &trace->moment, entry, err));
    return keep_freed(replay->mem, &trace->oom, entry, err);
}

static rc_code overflow(rc_error *err)
{
    return RC_FAIL(
        err, RC_E_INPUT, RC_NOWHERE,
        "refused (BAD_VALUE): the sizes of the trace add up to more than 2^61 bytes");
}

static rc_code add_alloc(rc_replay *replay, rc_trace_replay *trace,
                         const rc_snapshot_event *event, rc_change *change, rc_error *err)
{
    rc_live_entry entry = {event->addr, event->size_bytes, event->stack,
                           (uint32_t)(change->index + 1)};
    rc_live_entry old;
    RC_TRY(rc_live_put(&trace->live, &entry, &old, err));
    if (old.number) { /* its free was lost */
        trace->n_double_allocs++;
        RC_TRY(remove_entry(replay, trace, &old, err));
    }
    rc_stack_facts facts = replay->book->stacks[event->stack];
    trace->net_bytes += event->size_bytes;
    trace->alloc_bytes += event->size_bytes;
    trace->traffic[facts.label].bytes += event->size_bytes;
    trace->traffic[facts.label].count++;
    change->label = facts.label;
    change->phase = (rc_snapshot_phase)facts.phase;
    change->delta_bytes = event->size_bytes;
    change->is_alloc = true;
    if (trace->alloc_bytes > MOST_BYTES)
        return overflow(err);
    if (trace->net_bytes > trace->peak.net_bytes)
        set_marker(trace, &trace->peak, change->index, event);
    return RC_OK;
}

static rc_code add_free(rc_replay *replay, rc_trace_replay *trace,
                        const rc_snapshot_event *event, rc_change *change, rc_error *err)
{
    rc_live_entry entry;
    trace->net_bytes -= event->size_bytes;
    change->delta_bytes = -event->size_bytes;
    if (trace->net_bytes < -MOST_BYTES)
        return overflow(err);
    if (rc_live_take(&trace->live, event->addr, &entry)) {
        change->label = replay->book->stacks[entry.stack].label;
        return remove_entry(replay, trace, &entry, err);
    }
    trace->n_unmatched_frees++;
    trace->unmatched_bytes += event->size_bytes;
    change->label = RC_SNAPSHOT_LABEL_COUNT - 1; /* before_recording */
    return RC_OK;
}

static rc_code add_segment(rc_trace_replay *trace, const rc_snapshot_event *event, int sign,
                           rc_change *change, rc_error *err)
{
    trace->reserved_net_bytes += sign * event->size_bytes;
    change->reserved_delta_bytes = sign * event->size_bytes;
    if (trace->reserved_net_bytes > MOST_BYTES || trace->reserved_net_bytes < -MOST_BYTES)
        return overflow(err);
    if (trace->reserved_net_bytes > trace->peak_reserved_net_bytes) {
        trace->peak_reserved_net_bytes = trace->reserved_net_bytes;
        trace->peak_reserved_index = change->index;
    }
    return RC_OK;
}

static void add_oom(rc_replay *replay, rc_trace_replay *trace, uint32_t number,
                    const rc_snapshot_event *event, int64_t index)
{
    replay->ooms[replay->n_ooms++ % RC_OOMS_KEPT] =
        (rc_oom_event){.trace = number,
                       .event = *event,
                       .event_index = index,
                       .net_bytes = trace->net_bytes,
                       .reserved_net_bytes = trace->reserved_net_bytes,
                       .burst_bytes = trace->burst_bytes};
    set_marker(trace, &trace->oom, index, event);
}

/* Marks the wanted moment when this event lies behind it. */
static void check_moment(rc_trace_replay *trace, const rc_moment *moment, int64_t index,
                         const rc_snapshot_event *event)
{
    bool is_past = false;
    if (moment->kind == RC_MOMENT_INDEX)
        is_past = index > moment->value;
    else if (moment->kind == RC_MOMENT_TIME_US)
        is_past = event->has_time && event->time_us > moment->value;
    else if (moment->kind == RC_MOMENT_SINCE_US)
        is_past = event->has_time && event->time_us - trace->first_us > moment->value;
    if (!is_past)
        return;
    set_marker(trace, &trace->moment, index - 1, NULL);
    trace->is_moment_due = false;
}

static void note_time(rc_trace_replay *trace, const rc_snapshot_event *event)
{
    if (!event->has_time)
        return;
    if (!trace->has_time)
        trace->first_us = event->time_us;
    else if (event->time_us < trace->last_us)
        trace->n_backward_times++;
    trace->has_time = true;
}

static rc_code apply(rc_replay *replay, rc_trace_replay *trace, uint32_t number,
                     const rc_snapshot_event *event, rc_change *change, rc_error *err)
{
    switch (event->action) {
    case RC_ACTION_ALLOC:
        return add_alloc(replay, trace, event, change, err);
    case RC_ACTION_FREE_COMPLETED:
    case RC_ACTION_FREE:
        return add_free(replay, trace, event, change, err);
    case RC_ACTION_SEGMENT_ALLOC:
    case RC_ACTION_SEGMENT_MAP:
        return add_segment(trace, event, 1, change, err);
    case RC_ACTION_SEGMENT_FREE:
    case RC_ACTION_SEGMENT_UNMAP:
        return add_segment(trace, event, -1, change, err);
    case RC_ACTION_OOM:
        add_oom(replay, trace, number, event, change->index);
        return RC_OK;
    case RC_ACTION_FREE_REQUESTED:
    case RC_ACTION_SNAPSHOT:
    case RC_ACTION_USER_DEFINED:
    case RC_ACTION_ANNOTATE:
    case RC_ACTION_OTHER:
    case RC_ACTION_COUNT:
        break;
    }
    return RC_OK;
}

rc_code rc_replay_event(void *state, const rc_snapshot_names *names, uint32_t number,
                        const rc_snapshot_event *event, rc_error *err)
{
    rc_replay *replay = state;
    if (number >= replay->n_traces || !replay->traces[number])
        RC_TRY(open_trace(replay, number, err));
    rc_trace_replay *trace = replay->traces[number];
    if (event->stack >= replay->book->n_stacks)
        RC_TRY(rc_frame_book_reach(replay->book, names, event->stack, err));
    rc_change change = {.index = trace->n_events,
                        .time_us = event->time_us,
                        .has_time = event->has_time,
                        .phase = RC_SNAPSHOT_NO_FRAMES};
    if (change.index >= UINT32_MAX - 1)
        return RC_FAIL(err, RC_E_RANGE, RC_NOWHERE, "a trace of more than %" PRIu32 " events",
                       UINT32_MAX - 1);
    note_time(trace, event);
    if (trace->is_moment_due)
        check_moment(trace, replay->moment, change.index, event);
    trace->n_events++;
    trace->n_actions[event->action]++;
    RC_TRY(apply(replay, trace, number, event, &change, err));
    if (event->has_time)
        trace->last_us = event->time_us;
    bool is_given_back =
        event->action == RC_ACTION_SEGMENT_FREE || event->action == RC_ACTION_SEGMENT_UNMAP;
    trace->burst_bytes = is_given_back ? trace->burst_bytes + event->size_bytes : 0;
    return replay->watch ? replay->watch->change(replay->watch->state, number, &change, err)
                         : RC_OK;
}

void rc_replay_finish(rc_trace_replay *trace, const rc_moment *moment)
{
    if (!trace->is_moment_due)
        return;
    /* a time in a trace without times names no moment */
    bool is_time = moment->kind == RC_MOMENT_TIME_US || moment->kind == RC_MOMENT_SINCE_US;
    if (!is_time || trace->has_time)
        set_marker(trace, &trace->moment, trace->n_events - 1, NULL);
}

rc_code rc_replay_collect(const rc_trace_replay *trace, const rc_marker *marker, rc_arena *mem,
                          rc_live_set *out, rc_error *err)
{
    *out = (rc_live_set){.is_set = marker->is_set,
                         .event_index = marker->event_index,
                         .time_us = marker->time_us,
                         .has_time = marker->has_time && marker->event_index >= 0,
                         .net_bytes = marker->net_bytes};
    if (!marker->is_set)
        return RC_OK;
    size_t n = marker->n_freed;
    for (size_t i = 0; i < trace->live.n_used; i++)
        n += trace->live.at[i].number && trace->live.at[i].number <= marker->number;
    RC_TRY(RC_NEW(mem, &out->at, n, err));
    if (marker->n_freed)
        memcpy(out->at, marker->freed, marker->n_freed * sizeof *out->at);
    out->n = marker->n_freed;
    for (size_t i = 0; i < trace->live.n_used; i++)
        if (trace->live.at[i].number && trace->live.at[i].number <= marker->number)
            out->at[out->n++] = trace->live.at[i];
    for (size_t i = 0; i < out->n; i++)
        out->traced_bytes += out->at[i].size_bytes;
    return RC_OK;
}
