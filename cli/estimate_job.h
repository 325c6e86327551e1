/* estimate_job.h — `recompute estimate --for megatron-lm | bridge`. */
#ifndef RC_CLI_ESTIMATE_JOB_H
#define RC_CLI_ESTIMATE_JOB_H

#include "cli.h"

/* The answer for a Megatron job.
 *
 * gives   *status  1 where a budget or a GPU is given and the hottest rank does not fit, or may not
 * errors  those of the config and of rc_estimate_make; RC_E_INPUT for an unknown GPU or budget */
RC_MUST_CHECK
rc_code rc_estimate_job(const rc_args *args, rc_arena *mem, int *status, rc_error *err);

#endif
