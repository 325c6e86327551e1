/* live.c — first and last use of every buffer, and the bytes alive at every instruction.
 *
 * takes  instructions in their final order (emit.c)
 * gives  buffers[i].first and .last; live_bytes of every instruction; the lower bound of any arena
 * next   place.c turns ranges into offsets
 */
#include "schedule/passes.h"

#include "base/num.h"

#include <limits.h>

int64_t rc_buffer_room(const rc_buffer *buffer)
{
    return rc_round_up(buffer->bytes, RC_ALIGN);
}

static void touch(rc_schedule *schedule, int buffer, int at)
{
    if (buffer < 0)
        return;
    rc_buffer *b = &schedule->buffers[buffer];
    if (b->first > at)
        b->first = at;
    if (b->last < at)
        b->last = at;
}

static void touch_operands(rc_schedule *schedule, int at)
{
    const rc_instr *instr = &schedule->instrs[at];
    /* A DISCARD marks an end that liveness finds by itself; it must not extend the range. */
    if (instr->kind == RC_INSTR_DISCARD)
        return;
    const rc_ref *refs = rc_instr_in(schedule, instr);
    for (int k = 0; k < 2 * instr->n_in + instr->n_out; k++)
        touch(schedule, refs[k].buffer, at);
    touch(schedule, instr->d_out.buffer, at);
    touch(schedule, instr->scratch, at);
}

rc_code rc_schedule_live(rc_schedule *schedule, rc_arena *mem, rc_error *err)
{
    int n = schedule->n_instrs;
    int64_t *change; /* of live bytes on entering instruction i */
    RC_TRY(RC_NEW(mem, &change, n + 1, err));
    for (int i = 0; i < schedule->n_buffers; i++) {
        rc_buffer *b = &schedule->buffers[i];
        b->first = b->is_persistent ? 0 : INT_MAX;
        b->last = b->is_persistent ? n - 1 : -1;
    }
    for (int i = 0; i < n; i++)
        touch_operands(schedule, i);
    schedule->retained_bytes = 0;
    for (int i = 0; i < schedule->n_buffers; i++) {
        const rc_buffer *b = &schedule->buffers[i];
        if (b->last < 0)
            continue;
        change[b->first] += rc_buffer_room(b);
        change[b->last + 1] -= rc_buffer_room(b);
        if (!b->is_persistent && b->first <= schedule->forward_last &&
            b->last > schedule->forward_last)
            schedule->retained_bytes += rc_buffer_room(b);
    }
    int64_t live = 0;
    schedule->bound_bytes = 0;
    for (int i = 0; i < n; i++) {
        live += change[i];
        schedule->instrs[i].live_bytes = live;
        if (live > schedule->bound_bytes) {
            schedule->bound_bytes = live;
            schedule->peak_instr = i;
        }
    }
    return RC_OK;
}
