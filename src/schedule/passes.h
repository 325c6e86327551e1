/* passes.h — the passes of a schedule, in their order: emit, live, place. */
#ifndef RC_SCHEDULE_PASSES_H
#define RC_SCHEDULE_PASSES_H

#include <recompute/schedule.h>

/* emit.c: instructions and the buffers they name; is_discarded may differ from the policy's. */
RC_MUST_CHECK
rc_code rc_schedule_emit(const rc_policy *policy, rc_schedule *schedule, rc_arena *mem,
                         rc_error *err);
/* persistent.c: the buffer that a tensor has across steps in that role; false where it has none. What is
 * no weight has the first role alone. */
bool rc_persistent_buffer(const rc_graph *graph, int tensor, rc_param_role role,
                          rc_buffer *out);
/* live.c: first and last use of every buffer; live_bytes, bound_bytes, peak_instr, retained_bytes. */
RC_MUST_CHECK
rc_code rc_schedule_live(rc_schedule *schedule, rc_arena *mem, rc_error *err);
/* place.c: offsets; persistent_bytes, step_bytes, arena_bytes. */
RC_MUST_CHECK
rc_code rc_schedule_place(rc_schedule *schedule, rc_arena *mem, rc_error *err);

/* schedule.c: emit and live. */
RC_MUST_CHECK
rc_code rc_schedule_unplaced(const rc_policy *policy, int n_threads, rc_arena *mem,
                             rc_schedule **out, rc_error *err);
/* The policy with nothing of the last layer discarded; *is_changed is false when it discards
 * nothing there. */
RC_MUST_CHECK
rc_code rc_policy_keep_last_layer(const rc_policy *policy, rc_arena *mem, rc_policy *out,
                                  bool *is_changed, rc_error *err);
/* The one of the two that a run takes: keeping the last layer unless that raises the bound. */
RC_MUST_CHECK
rc_code rc_schedule_choose(const rc_policy *policy, int n_threads, rc_arena *mem,
                           rc_schedule **out, rc_error *err);
/* rc_schedule_make for a caller who knows which it will choose (outline.h). */
RC_MUST_CHECK
rc_code rc_schedule_make_as(const rc_policy *policy, bool is_last_kept, int n_threads,
                            rc_arena *mem, rc_schedule **out, rc_error *err);

/* Bytes a buffer takes in the arena. */
int64_t rc_buffer_room(const rc_buffer *buffer);

#endif
