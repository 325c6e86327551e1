/* weights.h — parameters to and from files of safetensors. */
#ifndef RC_TRAIN_WEIGHTS_H
#define RC_TRAIN_WEIGHTS_H

#include "read/safetensors.h"

#include <recompute/config.h>
#include <recompute/graph.h>

enum { RC_WEIGHT_MAX_DIMS = 4 };

/* One named array in memory: a parameter, or a moment of its optimizer. */
typedef struct rc_weight {
    const char *name; /* Megatron's: "decoder.layers.0.mlp.linear_fc1.weight" */
    rc_dtype dtype;
    int n_dims;
    int64_t dims[RC_WEIGHT_MAX_DIMS];
    void *at;
    int64_t n_padding; /* elements at the end that only pad: 0, and no part of the model */
} rc_weight;

/* Writes them under their names. errors  RC_E_IO, RC_E_MEMORY */
RC_MUST_CHECK
rc_code rc_weights_save(const char *path, const rc_weight *weights, size_t n,
                        const rc_pair *metadata, rc_arena *tmp, rc_error *err);

/**
 * Reads back what rc_weights_save wrote: the same names, types and shapes, nothing else.
 *
 * errors  RC_E_INPUT naming the first that differs; weights before it are then overwritten
 */
RC_MUST_CHECK
rc_code rc_weights_load(const char *path, const rc_weight *weights, size_t n, rc_arena *tmp,
                        rc_error *err);

/**
 * Starts from weights made elsewhere: a Hugging Face folder (model.safetensors, or
 * model.safetensors.index.json and its parts), one .safetensors file, or a file of ours.
 *
 * takes   path     GPT-2's names or the Llama family's (weights.def), or Megatron's as we write them
 *         weights  all of the model's; values are converted from F32, BF16 or F16
 * gives   rows of the padded vocabulary that the file lacks are 0; of position embeddings the
 *         first s rows are taken
 * errors  RC_E_INPUT naming the tensor that is missing, has another shape or fits nowhere
 */
RC_MUST_CHECK
rc_code rc_weights_start_from(const char *path, const rc_weight *weights, size_t n,
                              rc_arena *tmp, rc_error *err);

#endif
