/* training.h — what an opened training holds. */
#ifndef RC_TRAIN_TRAINING_H
#define RC_TRAIN_TRAINING_H

#include <recompute/train.h>

#include "train/checkpoint.h"
#include "train/dataset.h"
#include "train/lr.h"
#include "train/settings.h"

#include <recompute/cost.h>
#include <recompute/exec.h>

struct rc_training {
    const rc_config *cfg;
    rc_arena *mem;
    rc_train_settings set;
    rc_lr lr;

    rc_graph *graph;
    rc_policy *policy;
    rc_schedule *schedule;
    rc_cost *cost;
    int64_t budget_bytes; /* 0 without one */

    rc_corpus *corpus;
    rc_dataset *train;
    rc_dataset *valid; /* NULL: nothing is evaluated */

    bool is_function_told; /* by a file beside the weights that it starts from */
    rc_run *run;           /* from the first step on */
    rc_weight *weights, *moments;
    size_t n_weights, n_moments;
    rc_state state;
    int32_t *tokens, *targets; /* [b*s] of one micro-batch */
};

/* The settings that a checkpoint must share with this run. */
RC_MUST_CHECK
rc_code rc_training_identity(rc_training *training, rc_error *err);

/* Fills `weights` and `moments` from the opened run. */
RC_MUST_CHECK
rc_code rc_training_list_weights(rc_training *training, rc_error *err);

#endif
