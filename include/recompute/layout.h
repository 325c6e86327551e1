/* layout.h — who holds what: the layers of a model by kind, and the part of them that a rank has.
 *
 * Names and order of the parallel dimensions: megatron/core/parallel_state.py.
 */
#ifndef RECOMPUTE_LAYOUT_H
#define RECOMPUTE_LAYOUT_H

#include <recompute/config.h>

RC_EXTERN_C_BEGIN

typedef enum rc_mixer {
#define RC_MIXER(name, builder, help) RC_MIXER_##name,
#define RC_MLP(name, builder, help)
#include "defs/layer_kinds.def" /* installed beside this header */
#undef RC_MIXER
#undef RC_MLP
    RC_MIXER_COUNT
} rc_mixer;

typedef enum rc_mlp {
#define RC_MIXER(name, builder, help)
#define RC_MLP(name, builder, help) RC_MLP_##name,
#include "defs/layer_kinds.def"
#undef RC_MIXER
#undef RC_MLP
    RC_MLP_COUNT
} rc_mlp;

/* What a layer is made of. */
typedef struct rc_layer_kind {
    rc_mixer mixer;
    rc_mlp mlp;
} rc_layer_kind;

/* Layers of one kind in a row. */
typedef struct rc_layer_run {
    rc_layer_kind kind;
    int n_layers;
} rc_layer_run;

/* A model chunk: what one rank runs between two exchanges with its neighbours in the pipeline. */
typedef struct rc_chunk {
    /* [n_runs] in order; the caller's */
    const rc_layer_run *runs;
    int n_runs;
    /* the model's number of its first layer */
    int first_layer;
    /* the first chunk embeds, others receive; the last has final norm, output layer and loss, others send */
    bool has_embedding, has_loss;
} rc_chunk;

/* Where a rank stands in each parallel dimension, from 0; vp is which of its chunks. */
typedef struct rc_rank {
    int64_t tp, cp, ep, dp, pp, vp;
} rc_rank;

RC_EXTERN_C_END

#endif
