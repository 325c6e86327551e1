/* passes.h — the passes of a schedule, in their order: emit, live, place. */
#ifndef RC_SCHEDULE_PASSES_H
#define RC_SCHEDULE_PASSES_H

#include <recompute/schedule.h>

/* emit.c: instructions and the buffers they name. */
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
/* The one of a policy and rc_policy_keep_last_layer of it that a run takes, by their bounds: with the
 * last layer kept nothing is replayed for nothing, unless that raises the bound. */
static inline bool rc_schedule_keeps_last_layer(int64_t bound_bytes, int64_t kept_bound_bytes)
{
    return kept_bound_bytes <= bound_bytes;
}
/* Emit and live of that one. */
RC_MUST_CHECK
rc_code rc_schedule_choose(const rc_policy *policy, int n_threads, rc_arena *mem,
                           rc_schedule **out, rc_error *err);
/* rc_schedule_make for a caller who knows the choice (outline.h). */
RC_MUST_CHECK
rc_code rc_schedule_make_as(const rc_policy *policy, bool is_last_layer_kept, int n_threads,
                            rc_arena *mem, rc_schedule **out, rc_error *err);

#endif
