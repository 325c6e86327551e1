/* estimate_job.h — `recompute estimate --for megatron-lm | bridge`. */
#ifndef RC_CLI_ESTIMATE_JOB_H
#define RC_CLI_ESTIMATE_JOB_H

#include "cli.h"

#include <recompute/estimate.h>

/* What --gpu, --budget and --te say of a job, and its config.
 *
 * gives   *request  cfg, profile, gpu and te_version
 *         *room     bytes that its allocator may hand out; 0: no limit is given
 * errors  those of the config; RC_E_INPUT for an unknown GPU, budget or version */
RC_MUST_CHECK
rc_code rc_job_request_read(const rc_args *args, rc_arena *mem, rc_estimate_request *request,
                            int64_t *room, rc_error *err);

#define RC_GPU_OPTION                                                                          \
    {                                                                                          \
        "--gpu", "NAME", "the GPU that it is to fit; `recompute list gpus`", false             \
    }
#define RC_BUDGET_OPTION                                                                       \
    {                                                                                          \
        "--budget", "BYTES", "what the allocator of a rank may hand out, as 72GiB", false      \
    }
#define RC_IMBALANCE_OPTION                                                                    \
    {                                                                                          \
        "--imbalance", "FACTOR",                                                               \
            "rows that the experts of the hottest rank receive, times the mean; else 1", false \
    }
#define RC_TE_OPTION                                                                           \
    {                                                                                          \
        "--te", "VERSION", "of Transformer Engine, such as 2.17; else new enough for all",     \
            false                                                                              \
    }

/* The answer for a Megatron job.
 *
 * gives   *status  1 where a budget or a GPU is given and the hottest rank does not fit, or may not
 * errors  those of the config and of rc_estimate_make; RC_E_INPUT for an unknown GPU or budget */
RC_MUST_CHECK
rc_code rc_estimate_job(const rc_args *args, rc_arena *mem, int *status, rc_error *err);

#endif
