/* parallel.h — sizes of the parallel dimensions and the micro-batches of a step (layout). */
#ifndef RC_LAYOUT_PARALLEL_H
#define RC_LAYOUT_PARALLEL_H

#include <recompute/layout.h>

/* All but vp and is_interleaved, which stages.c finds.
 * errors  as rc_layout_make */
RC_MUST_CHECK
rc_code rc_parallel_read(const rc_config *cfg, int64_t world_size, rc_parallel *out,
                         rc_error *err);

/* Routed experts of a layer; 0: none.
 * errors  RC_E_INPUT where they do not divide by the expert-parallel size, or there are none to share out */
RC_MUST_CHECK
rc_code rc_parallel_read_experts(const rc_config *cfg, int64_t *out, rc_error *err);

/* out->n_micro_batches and out->micro_batch_group, from the sizes that are there.
 * errors  RC_E_INPUT where they do not divide */
RC_MUST_CHECK
rc_code rc_parallel_read_batch(const rc_config *cfg, rc_layout *out, rc_error *err);

#endif
