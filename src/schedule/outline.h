/* outline.h — rc_outline: what a setting replays and the least arena it can take, found without
 * the instruction list of all layers. */
#ifndef RC_SCHEDULE_OUTLINE_H
#define RC_SCHEDULE_OUTLINE_H

#include <recompute/schedule.h>

/* The same numbers as rc_schedule_make would give, without a placement. */
typedef struct rc_outline {
    int64_t bound_bytes;
    int64_t recompute_flops, recompute_moved_bytes;
    bool is_last_kept; /* n_kept_regions is 1 */
} rc_outline;

typedef struct rc_outliner rc_outliner;

/* memory  `mem` is kept and taken from by every outline */
RC_MUST_CHECK
rc_code rc_outliner_open(const rc_graph *graph, int n_threads, rc_arena *mem, rc_outliner **out,
                         rc_error *err);

/**
 * Outlines one setting.
 *
 * cost    a schedule of at most 19 layers the first time, nearly nothing for settings of the same
 *         outline; that of all layers where they are of several kinds
 * errors  RC_E_RANGE when the bound passes 2^63-1
 */
RC_MUST_CHECK
rc_code rc_outline_make(rc_outliner *outliner, const rc_setting *setting, rc_outline *out,
                        rc_error *err);

#endif
