/* state.h — which runs of a launched study are finished: a file of JSON lines beside the logs.
 *
 * The first line is the study's command and rows; each further line a run that ended. What
 * a run measured is in its log and is read again, so the two cannot disagree.
 */
#ifndef RC_STUDY_STATE_H
#define RC_STUDY_STATE_H

#include "study/process.h"

#include <recompute/study.h>

typedef struct rc_study_run {
    bool is_done;
    rc_process_result result;
} rc_study_run;

typedef struct rc_study_state {
    const char *path;
    /* [n_runs], in the order they are run */
    rc_study_run *runs;
    size_t n_runs;
} rc_study_state;

/**
 * Opens the state of `launch->folder`, making the folder and the file when they are not there.
 *
 * errors  RC_E_INPUT when the file belongs to another command or other rows; a torn
 *         last line (the machine died while it was written) counts as not written
 */
RC_MUST_CHECK
rc_code rc_study_state_open(const rc_launch *launch, size_t n_runs, rc_arena *mem,
                            rc_study_state *state, rc_error *err);
/* Marks a run as ended, in memory and in the file. */
RC_MUST_CHECK
rc_code rc_study_state_add(rc_study_state *state, size_t run, const rc_process_result *result,
                           rc_error *err);

#endif
