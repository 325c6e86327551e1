/* rank.h — the most that a rank holds over a step. */
#ifndef RC_ESTIMATE_RANK_H
#define RC_ESTIMATE_RANK_H

#include "estimate/chunk.h"
#include "estimate/state.h"

#include <recompute/estimate.h>
#include <recompute/pipeline.h>

typedef struct rc_rank_parts {
    const rc_segments *segments;
    /* of the stage */
    const rc_pipeline *pipeline;
    /* [v] of the stage, by vp */
    const rc_chunk_cost *chunks;
    const rc_model_state *state;
    int64_t stand_in_bytes, workspace_bytes;
} rc_rank_parts;

/* The moments of rc_estimate_rank.
 *
 * errors  RC_E_RANGE when a sum passes 2^63-1, RC_E_MEMORY */
RC_MUST_CHECK
rc_code rc_rank_price(const rc_rank_parts *parts, rc_estimate_rank *rank, rc_arena *mem,
                      rc_error *err);

#endif
