/* predict.c — what our own estimate says about one rank of a Megatron job.
 *
 * takes  the settings and a rank
 * gives  its predicted peak, to be set beside what the log reports; false where there is none
 *
 * This is the one place where per-rank estimates of the megatron profiles enter the diagnosis.
 * They do not exist yet, so every job is told so by the absence of the line.
 */
#include "inspect/diag.h"

bool diag_predict_rank(const rc_config *cfg, int64_t rank, int64_t *peak_bytes)
{
    (void)cfg;
    (void)rank;
    *peak_bytes = RC_LOG_UNKNOWN;
    return false;
}
