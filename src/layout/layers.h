/* layers.h — what every layer of the model is made of, before anything is dealt out (layout). */
#ifndef RC_LAYOUT_LAYERS_H
#define RC_LAYOUT_LAYERS_H

#include <recompute/layout.h>

typedef struct rc_model_layers {
    /* [n] */
    rc_layer_kind *kinds;
    int n;
    /* [n_in_depth] layers of one depth of multi-token prediction, and depths */
    rc_layer_kind *mtp;
    int n_in_depth, n_mtp;
    /* known before the rest is read */
    bool is_mtp_shared;
    /* what a depth has instead where it stands in a chunk without layers */
    rc_layer_kind mtp_alone;

    /* a pattern of letters: [n_segments + 1] where its stages begin; no more than one where it has no `|` */
    bool is_hybrid;
    int *segment_starts;
    int n_segments;
} rc_model_layers;

/* Of a config without a pattern (gpt.c), and of one with (hybrid.c).
 *
 * takes   n_experts  as rc_parallel_read_experts gives it
 * gives   *out       all of it; the rest of it is zero
 * errors  as rc_layout_make */
RC_MUST_CHECK
rc_code rc_gpt_layers_read(const rc_config *cfg, int64_t n_experts, rc_arena *mem,
                           rc_model_layers *out, rc_error *err);
RC_MUST_CHECK
rc_code rc_hybrid_layers_read(const rc_config *cfg, int64_t n_experts, rc_arena *mem,
                              rc_model_layers *out, rc_error *err);

/* The layers of a model, at least 1.
 * errors  RC_E_RANGE above 65,536 */
RC_MUST_CHECK
rc_code rc_layers_need_number(const rc_config *cfg, rc_field field, int64_t n, rc_error *err);

/* Layers in a row that are alike.
 *
 * gives   *runs  [*n_runs] */
RC_MUST_CHECK
rc_code rc_layer_runs_make(const rc_layer_kind *kinds, int n, rc_arena *mem,
                           const rc_layer_run **runs, int *n_runs, rc_error *err);

#endif
