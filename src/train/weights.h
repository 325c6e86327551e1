/* weights.h — parameters to and from files of safetensors. */
#ifndef RC_TRAIN_WEIGHTS_H
#define RC_TRAIN_WEIGHTS_H

#include "read/safetensors.h"

#include <recompute/config.h>
#include <recompute/graph.h>

enum { RC_WEIGHT_MAX_DIMS = 4 };

/* One named array in memory: a parameter, or a moment of its optimizer. */
typedef struct rc_weight {
    /* Megatron's: "decoder.layers.0.mlp.linear_fc1.weight" */
    const char *name;
    rc_dtype dtype;
    int n_dims;
    int64_t dims[RC_WEIGHT_MAX_DIMS];
    void *at;
    /* elements at the end that only pad: 0, and no part of the model */
    int64_t n_padding;
} rc_weight;

/* How a list of weights is read or written. */
typedef struct rc_weights_io {
    const rc_weight *at;
    size_t n;
    /* first and second moments in turn */
    bool is_moments;
    int n_threads;
} rc_weights_io;

/**
 * Is every value finite, and every second moment 0 or more?
 *
 * errors  RC_E_RANGE naming the first weight where they are not, and how many of its values
 * cost    reads everything once
 */
RC_MUST_CHECK
rc_code rc_weights_check(const rc_weights_io *of, rc_error *err);

/* Writes them under their names. gives  *seal of the file. errors  RC_E_IO, RC_E_MEMORY */
RC_MUST_CHECK
rc_code rc_weights_save(const char *path, const rc_weights_io *of, rc_file_seal *seal,
                        rc_arena *tmp, rc_error *err);

/**
 * Opens what rc_weights_save wrote and verifies it: the same names, types and shapes and nothing
 * else, every checksum, every value finite.
 *
 * takes   seal   what the file must be; NULL where nothing says so
 * gives   *file  to be closed with rc_safetensors_close, unless there is an error
 * errors  RC_E_INPUT naming the first that differs
 */
RC_MUST_CHECK
rc_code rc_weights_open(const char *path, const rc_weights_io *of, const rc_file_seal *seal,
                        rc_safetensors *file, rc_arena *tmp, rc_error *err);
/* Copies the values of a verified file. */
void rc_weights_take(const rc_safetensors *file, const rc_weights_io *to);

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
