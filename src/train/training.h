/* training.h — what an opened training holds. */
#ifndef RC_TRAIN_TRAINING_H
#define RC_TRAIN_TRAINING_H

#include <recompute/train.h>

#include "train/checkpoint.h"
#include "train/dataset.h"
#include "train/lr.h"
#include "train/settings.h"

#include <recompute/exec.h>
#include <recompute/passes.h>

struct rc_training {
    const rc_config *cfg;
    rc_arena *mem;
    rc_train_settings set;
    rc_lr lr;

    rc_passes passes;
    /* 0 without one */
    int64_t budget_bytes;

    rc_corpus *corpus;
    rc_dataset *train;
    /* NULL: nothing is evaluated */
    rc_dataset *valid;
    /* samples of the whole run */
    int64_t n_train_wanted, n_valid_wanted;

    /* by a file beside the weights that it starts from */
    bool is_function_told;
    /* from the first step on */
    rc_run *run;
    rc_weight *weights, *moments;
    size_t n_weights, n_moments;
    rc_state state;
    /* The checkpoint of this run that checkpoint.save holds: its iteration, -1 without one. */
    int64_t saved_at;
    const char *saved_path;
    /* on that folder; -1 without one */
    int save_lock;
    /* [b*s] of one micro-batch */
    int32_t *tokens, *targets;
};

/* Puts the data in order for the rest of the run, from the state on. */
RC_MUST_CHECK
rc_code rc_training_order(rc_training *training, rc_error *err);
/* What that takes at most, known before. */
int64_t rc_training_order_bytes(const rc_training *training);

/* The settings that a checkpoint must share with this run. */
RC_MUST_CHECK
rc_code rc_training_identity(rc_training *training, rc_error *err);

/* --- keep.c: between memory and disk --- */

/* Fills `weights` and `moments` from the opened run. */
RC_MUST_CHECK
rc_code rc_training_list_weights(rc_training *training, rc_error *err);

/**
 * Makes checkpoint.save ready: the folder is there, ours alone, free of what killed saves left, and
 * can be written to. So that this is known before the first step, not after hours.
 */
RC_MUST_CHECK
rc_code rc_training_open_folder(rc_training *training, rc_error *err);

/**
 * Weights come from the newest checkpoint of checkpoint.load; else, as in Megatron when that folder
 * holds none, from checkpoint.pretrained_checkpoint; else from the seed.
 *
 * gives   *origin  in words
 */
RC_MUST_CHECK
rc_code rc_training_place_weights(rc_training *training, const char **origin, rc_error *err);

/* errors  RC_E_RANGE when a weight or moment is not finite, naming it; loop.c adds the step */
RC_MUST_CHECK
rc_code rc_training_check_weights(const rc_training *training, rc_error *err);

/* Writes a checkpoint of the present state, which is checked before. */
RC_MUST_CHECK
rc_code rc_training_save(rc_training *training, rc_error *err);

/* What is left after an error: reads the last checkpoint back and says whether it can be resumed. */
enum { RC_LEFT_BYTES = 200 };
const char *rc_training_tell_left(const rc_training *training, char buf[RC_LEFT_BYTES]);

#endif
