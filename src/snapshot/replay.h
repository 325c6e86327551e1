/* replay.h — replays the traces of a snapshot, event by event. */
#ifndef RC_SNAPSHOT_REPLAY_H
#define RC_SNAPSHOT_REPLAY_H

#include "snapshot/frames.h"
#include "snapshot/live.h"

/* A moment whose live set is wanted at the end: allocations up to `number` that had not been freed
 * then. Those freed since are kept here; the rest is still in the live table. */
typedef struct rc_marker {
    bool is_set;
    uint32_t number;
    int64_t event_index, time_us;
    bool has_time;
    int64_t net_bytes, reserved_net_bytes, unmatched_bytes;
    rc_live_entry *freed;
    size_t n_freed, n_room;
} rc_marker;

typedef struct rc_trace_replay {
    rc_live live;
    int64_t n_events, n_actions[RC_ACTION_COUNT];
    bool has_time, is_moment_due;
    int64_t first_us, last_us;
    /* requested: allocated less freed since the start */
    int64_t net_bytes;
    /* segments made less segments given back */
    int64_t reserved_net_bytes;
    int64_t peak_reserved_net_bytes, peak_reserved_index;
    int64_t alloc_bytes;
    rc_label_traffic traffic[RC_SNAPSHOT_LABEL_COUNT];
    int64_t n_unmatched_frees, unmatched_bytes, n_double_allocs, n_backward_times;
    /* segments given back since the last other event: the cache before an OOM */
    int64_t burst_bytes;
    rc_marker peak, moment, oom;
} rc_trace_replay;

typedef struct rc_oom_event {
    uint32_t trace;
    rc_snapshot_event event;
    int64_t event_index, net_bytes, reserved_net_bytes, burst_bytes;
} rc_oom_event;

enum { RC_OOMS_KEPT = 256 };

typedef struct rc_replay {
    rc_arena *mem;
    rc_frame_book *book;
    /* may be NULL */
    const rc_moment *moment;
    /* may be NULL */
    const rc_snapshot_watch *watch;
    /* by trace number */
    rc_trace_replay **traces;
    size_t n_traces, n_room;
    /* a ring: event k of the file at k mod RC_OOMS_KEPT */
    rc_oom_event ooms[RC_OOMS_KEPT];
    int64_t n_ooms;
} rc_replay;

/* A sink's `event`; `state` is a rc_replay. */
rc_code rc_replay_event(void *state, const rc_snapshot_names *names, uint32_t number,
                        const rc_snapshot_event *event, rc_error *err);
/* The live set of a marker, once the trace has ended. */
RC_MUST_CHECK
rc_code rc_replay_collect(const rc_trace_replay *trace, const rc_marker *marker, rc_arena *mem,
                          rc_live_set *out, rc_error *err);
/* Marks the end of the trace when the wanted moment had not come. */
void rc_replay_finish(rc_trace_replay *trace, const rc_moment *moment);

#endif
