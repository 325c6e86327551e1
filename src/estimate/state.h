/* state.h — what a rank holds across steps: weights, gradients, and the optimizer's share. */
#ifndef RC_ESTIMATE_STATE_H
#define RC_ESTIMATE_STATE_H

#include "estimate/chunk.h"

typedef struct rc_model_state {
    /* on this rank, experts included, before any of it is shared out */
    int64_t n_parameters;
    int64_t bytes[RC_PARAM_ROLE_COUNT];
    /* held while the optimizer runs: gradients that it copies to float32 */
    int64_t step_bytes;
} rc_model_state;

/* How a step's state is shared out. */
typedef struct rc_state_request {
    const rc_config *cfg;
    /* ranks that share the optimizer state of dense weights and of experts; 1 where none do */
    int64_t n_shards, n_expert_shards;
    /* the first stage alone has buckets: the others reduce all of a buffer at once */
    bool is_first_stage;
} rc_state_request;

/* The state of the weights of some chunks: [n_chunks] of one rank, priced. */
void rc_state_count(const rc_state_request *request, const rc_segments *segments,
                    const rc_chunk_cost *chunks, int n_chunks, rc_model_state *out);

/* Bytes of the stand-ins for gradients that products add themselves (stand_ins.c).
 * errors  RC_E_RANGE, RC_E_MEMORY */
RC_MUST_CHECK
rc_code rc_stand_ins_count(const rc_segments *segments, const rc_chunk_cost *chunks,
                           int n_chunks, rc_arena *mem, int64_t *bytes, rc_error *err);

#endif
