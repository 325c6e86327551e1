/* agree.h — weights made elsewhere belong to the function that the run computes (src/train/ only). */
#ifndef RC_TRAIN_AGREE_H
#define RC_TRAIN_AGREE_H

#include <recompute/config.h>

/**
 * Holds the run's config against the config.json, or our state.json, beside the weights it starts from.
 *
 * takes   cfg  a run's, of which a graph was made; where it resumes, starts from no weights, or from
 *              some without such a file, all is well
 * gives   *is_told  there is such a file, and it agrees
 * errors  RC_E_INPUT naming the first setting of the function that differs, with both values and
 *         places; RC_E_UNSUPPORTED where that config.json is none the engine computes
 */
RC_MUST_CHECK
rc_code rc_train_agree(const rc_config *cfg, rc_arena *mem, bool *is_told, rc_error *err);

#endif
