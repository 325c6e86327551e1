/* seconds.h — what ops take on a GPU. */
#ifndef RC_ESTIMATE_SECONDS_H
#define RC_ESTIMATE_SECONDS_H

#include "estimate/chunk.h"

#include <recompute/estimate.h>

/* Of one micro-batch. What modules bring back by themselves is part of backward. */
typedef struct rc_seconds {
    double fwd, bwd, replay;
} rc_seconds;

rc_seconds rc_chunk_seconds(const rc_segments *segments, const rc_chunk_cost *chunk,
                            const rc_gpu *gpu);

#endif
