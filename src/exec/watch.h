/* watch.h — what kernels really write, looked at in the first micro-batch of a run. */
#ifndef RC_EXEC_WATCH_H
#define RC_EXEC_WATCH_H

#include "exec/run.h"

/* Room for the checks of the products; before the first watched instruction. */
RC_MUST_CHECK
rc_code rc_watch_open(rc_run *run, rc_error *err);

/* Marks every element that an instruction must write. */
void rc_watch_before(rc_run *run, const rc_instr *instr);

/* Looks for the marks, and moves the run's touched_bytes.
 * errors  RC_E_BUG when elements were left unwritten: a kernel that was skipped or did a part */
RC_MUST_CHECK
rc_code rc_watch_after(rc_run *run, const rc_instr *instr, rc_error *err);

/* Counts scratch that was worked in; RC_NO_BUFFER is none. */
void rc_watch_scratch(rc_run *run, int buffer);

#endif
