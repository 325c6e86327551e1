/* gaps.h — rc_gaps: rectangles of bytes x time, and the lowest gap for the next. */
#ifndef RC_SCHEDULE_GAPS_H
#define RC_SCHEDULE_GAPS_H

#include <recompute/arena.h>

typedef struct rc_gaps rc_gaps;

/**
 * An empty plane.
 *
 * takes   n_items  at most so many rectangles between two clears
 *         n_times  times are 0 .. n_times-1
 * memory  about 50 bytes an item, and 32 a time
 */
RC_MUST_CHECK
rc_code rc_gaps_open(int n_items, int n_times, rc_arena *mem, rc_gaps **out, rc_error *err);
void rc_gaps_clear(rc_gaps *gaps);

/**
 * Puts a rectangle at the lowest offset where it overlaps none that is there.
 *
 * takes   first, last  times it covers, both included
 *         room         bytes, above 0; the rooms of one plane together stay below 2^63
 * gives   its offset
 * cost    the logarithm of what is there, and the gaps too small for it in its time
 */
int64_t rc_gaps_put(rc_gaps *gaps, int first, int last, int64_t room);

#endif
