/* stages.h — how many layers stand in every chunk of the pipeline (layout). */
#ifndef RC_LAYOUT_STAGES_H
#define RC_LAYOUT_STAGES_H

#include "layout/layers.h"

/* What a chunk has. */
typedef struct rc_stage_share {
    int n_layers, n_mtp;
} rc_stage_share;

/* Deals the model's layers out.
 *
 * takes   sizes   their `pp`
 * gives   sizes   vp and is_interleaved
 *         *out    [vp * pp] in the order of the model
 * errors  as rc_layout_make */
RC_MUST_CHECK
rc_code rc_stages_deal(const rc_config *cfg, const rc_model_layers *layers, rc_parallel *sizes,
                       rc_arena *mem, rc_stage_share **out, rc_error *err);

#endif
