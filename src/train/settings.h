/* settings.h — what the loop asks of a config before anything is opened. */
#ifndef RC_TRAIN_SETTINGS_H
#define RC_TRAIN_SETTINGS_H

#include <recompute/config.h>

/* The settings of the loop with every null resolved. */
typedef struct rc_train_settings {
    int64_t n_steps;
    /* samples of a micro-batch */
    int64_t b;
    /* samples of a step */
    int64_t n_global;
    /* micro-batches of a step */
    int64_t n_micro;
    int64_t s;
    /* weights and dropout */
    int64_t seed;
    /* order of the data */
    int64_t data_seed;
    /* 0: never */
    int64_t eval_interval, eval_iters;
    /* 0: never */
    int64_t save_interval, exit_interval;
    int64_t log_interval;
    int n_threads;
} rc_train_settings;

/**
 * Checks every field that training reads, except what graph, learning rate and data check.
 *
 * errors  RC_E_INPUT with the position and the range that is right; RC_E_UNSUPPORTED for what the
 *         engine cannot do
 */
RC_MUST_CHECK
rc_code rc_train_settings_make(const rc_config *cfg, rc_train_settings *out, rc_error *err);

#endif
