/* chunk.h — a model chunk as segments in a row, and what it takes of one micro-batch. */
#ifndef RC_ESTIMATE_CHUNK_H
#define RC_ESTIMATE_CHUNK_H

#include "estimate/segment.h"

/* So many of one segment in a row. */
typedef struct rc_piece {
    int segment, n;
} rc_piece;

/* Where in a chunk the most is alive. */
typedef struct rc_chunk_peak {
    int64_t bytes;
    /* of them, what the pieces before retain */
    int64_t before_bytes;
    /* which piece; its last one in forward and backward alike, as what is before it adds up */
    int piece;
} rc_chunk_peak;

typedef struct rc_chunk_cost {
    const rc_chunk *chunk;
    rc_piece *pieces;
    int n_pieces;
    size_t n_room;
    int64_t retained_bytes;
    rc_chunk_peak fwd, bwd;
} rc_chunk_cost;

/* A chunk under a setting: its layers one by one, or in the groups of full recompute.
 *
 * takes   segments  of the same config; grows
 *         setting   of the job
 * errors  RC_E_RANGE when a sum passes 2^63-1; those of rc_segment_find */
RC_MUST_CHECK
rc_code rc_chunk_price(rc_segments *segments, const rc_setting *setting, const rc_chunk *chunk,
                       rc_arena *mem, rc_chunk_cost *out, rc_error *err);

#endif
