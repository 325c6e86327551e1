/* passes.h — the passes of a schedule, in their order: emit, live, place. */
#ifndef RC_SCHEDULE_PASSES_H
#define RC_SCHEDULE_PASSES_H

#include <recompute/schedule.h>

/* emit.c: instructions and the buffers they name; is_discarded may differ from the policy's. */
RC_MUST_CHECK
rc_code rc_schedule_emit(const rc_policy *policy, rc_schedule *schedule, rc_arena *mem,
                         rc_error *err);
/* live.c: first and last use of every buffer; live_bytes, bound_bytes, peak_instr, retained_bytes. */
RC_MUST_CHECK
rc_code rc_schedule_live(rc_schedule *schedule, rc_arena *mem, rc_error *err);
/* place.c: offsets; persistent_bytes, step_bytes, arena_bytes. */
RC_MUST_CHECK
rc_code rc_schedule_place(rc_schedule *schedule, rc_arena *mem, rc_error *err);

/* Bytes a buffer takes in the arena. */
int64_t rc_buffer_room(const rc_buffer *buffer);

#endif
