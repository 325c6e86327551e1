/* lr.h — the learning rate of every step, as Megatron's scheduler gives it. */
#ifndef RC_TRAIN_LR_H
#define RC_TRAIN_LR_H

#include <recompute/config.h>

typedef enum rc_lr_style {
    RC_LR_CONSTANT,
    RC_LR_LINEAR,
    RC_LR_COSINE,
    RC_LR_INVERSE_SQUARE_ROOT,
    RC_LR_WSD
} rc_lr_style;

typedef enum rc_wsd_style {
    RC_WSD_LINEAR,
    RC_WSD_COSINE,
    RC_WSD_EXPONENTIAL,
    RC_WSD_MINUS_SQRT
} rc_wsd_style;

/* Lengths are in samples, as Megatron counts them: steps times the global batch size. */
typedef struct rc_lr {
    double init, max, min;
    /* a fraction of the decay may give a half sample */
    double n_warmup_samples;
    /* from the first step on, warm-up included */
    int64_t n_decay_samples;
    /* the last phase of WSD */
    int64_t n_wsd_samples;
    rc_lr_style style;
    rc_wsd_style wsd_style;
} rc_lr;

/**
 * The schedule that a config describes.
 *
 * takes   cfg   optimizer.lr, min_lr, train.train_iters and section scheduler
 *         n_global_batch  samples of a step
 * errors  RC_E_INPUT with the position where Megatron would refuse
 * source  Megatron-LM megatron/core/optimizer_param_scheduler.py, __init__;
 *         megatron/training/training.py, get_optimizer_param_scheduler
 */
RC_MUST_CHECK
rc_code rc_lr_make(const rc_config *cfg, int64_t n_global_batch, rc_lr *out, rc_error *err);

/**
 * The rate of the step taken after `n_samples` samples were consumed: 0 for the first.
 *
 * source  Megatron-LM megatron/core/optimizer_param_scheduler.py, get_lr
 */
double rc_lr_at(const rc_lr *lr, int64_t n_samples);

#endif
