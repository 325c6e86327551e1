/* workspace.h — what libraries and Megatron keep beside weights and activations. */
#ifndef RC_ESTIMATE_WORKSPACE_H
#define RC_ESTIMATE_WORKSPACE_H

#include "estimate/chunk.h"

/* Of a rank's chunks, on a GPU of that compute capability (its first number: 9 is Hopper). */
int64_t rc_workspace_bytes(const rc_segments *segments, const rc_chunk_cost *chunks,
                           int n_chunks, int sm);

#endif
