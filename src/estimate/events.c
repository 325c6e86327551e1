/* events.c — the pipeline's schedule of one stage: forwards to warm up, one forward and one backward in turn, the
 * backwards that are left.
 *
 * takes  a layout and the stage
 * gives  its events one by one
 * next   rank.c counts what is alive at each
 */
#include "estimate/events.h"

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

void rc_events_open(rc_events *events, const rc_layout *layout, int64_t pp,
                    int64_t micro_batches, bool has_overlap)
{
    const rc_parallel *sizes = &layout->sizes;
    const int64_t behind = sizes->pp - pp - 1;
    *events =
        (rc_events){.v = sizes->vp, .m = micro_batches, .group = layout->micro_batch_group};
    const int64_t n = events->v * events->m;
    if (sizes->pp == 1)
        events->n_warmup = 0;
    else if (!sizes->is_interleaved)
        events->n_warmup = behind;
    else
        events->n_warmup = 2 * behind + (events->v - 1) * events->group + has_overlap;
    events->n_warmup = least(events->n_warmup, n);
    if (events->group < 1)
        events->group = events->m;
}

/* The k-th of the table: a group of micro-batches runs through chunk 0, then chunk 1, ...; the last may be smaller. */
static rc_event event_at(const rc_events *events, int64_t k, bool is_backward)
{
    const int64_t of_group = events->group * events->v, start = k / of_group * events->group;
    const int64_t size = least(events->group, events->m - start), at = k % of_group;
    const int64_t vp = at / size;
    return (rc_event){is_backward, is_backward ? events->v - 1 - vp : vp, start + at % size};
}

bool rc_events_next(rc_events *events, rc_event *out)
{
    const int64_t n = events->v * events->m;
    const bool is_forward_due =
        events->n_fwd < n && events->n_fwd <= events->n_bwd + events->n_warmup;
    if (is_forward_due)
        *out = event_at(events, events->n_fwd++, false);
    else if (events->n_bwd < n)
        *out = event_at(events, events->n_bwd++, true);
    else
        return false;
    return true;
}
