/* checkpoint.h — a run on disk: weights, optimizer and the place in the data.
 *
 *   FOLDER/latest_checkpointed_iteration.txt     "100": read first, written last
 *   FOLDER/iter_0000100/model.safetensors        parameters under Megatron's names
 *   FOLDER/iter_0000100/optimizer.safetensors    exp_avg.NAME and exp_avg_sq.NAME
 *   FOLDER/iter_0000100/state.json               iteration, samples consumed, settings
 */
#ifndef RC_TRAIN_CHECKPOINT_H
#define RC_TRAIN_CHECKPOINT_H

#include "train/weights.h"

typedef struct rc_state {
    int64_t iteration;
    int64_t n_train_samples, n_valid_samples; /* consumed */
    /* Settings that the rest of the run depends on, as text; compared one by one on resume. */
    const rc_pair *identity;
    size_t n_identity;
    /* Settings that may change, and with them the order of sums: a difference is told. */
    const rc_pair *order;
    size_t n_order;
    const char *differs; /* "engine.threads was 2 and is 1"; NULL where nothing does */
} rc_state;

/* What a checkpoint carries. */
typedef struct rc_checkpoint {
    const rc_weight *weights, *moments;
    size_t n_weights, n_moments;
} rc_checkpoint;

/**
 * Writes FOLDER/iter_NNNNNNN and then points latest_checkpointed_iteration.txt at it. A crash at
 * any moment leaves the last complete checkpoint in place.
 *
 * errors  RC_E_IO, RC_E_MEMORY
 */
RC_MUST_CHECK
rc_code rc_checkpoint_save(const char *folder, const rc_state *state,
                           const rc_checkpoint *checkpoint, rc_arena *tmp, rc_error *err);

/**
 * The newest checkpoint of a folder.
 *
 * gives   *path  its directory, or NULL when the folder holds none (as at a first start)
 * errors  RC_E_INPUT when latest_checkpointed_iteration.txt is no number
 */
RC_MUST_CHECK
rc_code rc_checkpoint_find(const char *folder, rc_arena *mem, const char **path, rc_error *err);

/**
 * Reads a checkpoint back.
 *
 * takes   state  identity and order set: what this run has
 * gives   *state iteration, samples, differs; the arrays of `checkpoint` are filled
 * errors  RC_E_INPUT naming the first setting or tensor that differs
 */
RC_MUST_CHECK
rc_code rc_checkpoint_load(const char *path, const rc_checkpoint *checkpoint, rc_state *state,
                           rc_arena *mem, rc_error *err);

#endif
