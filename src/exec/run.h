/* run.h — what an opened run holds; shared by exec.c, which walks it, and watch.c. */
#ifndef RC_EXEC_RUN_H
#define RC_EXEC_RUN_H

#include <recompute/exec.h>

#include "base/simd.h"
#include "exec/cpu/workspace.h"
#include "exec/kernel.h"

struct rc_run {
    const rc_schedule *schedule;
    const rc_backend *backend;
    rc_run_options options;
    char *arena;
    rc_arena *mem; /* of the tables below */
    rc_run_param *params;
    double *seconds; /* [n_instrs] */
    rc_workspace *workspace;
    rc_fault fault;
    double *check; /* room of the checks of products, as in rc_call */
    int64_t check_room;
    int64_t touched_bytes;       /* of the arena, from its start: watch.c */
    int64_t library_bytes;       /* most the math library had of its scratch, in one op */
    int64_t library_extra_bytes; /* most it needed beside that */
    int check_at; /* instruction whose products are checked in this micro-batch */
    bool is_training;
    bool is_watched; /* this micro-batch, the first */
    bool was_watched;
};

RC_INLINE void *rc_run_at(const rc_run *run, int buffer)
{
    RC_ASSERT(buffer >= 0);
    return run->arena + run->schedule->buffers[buffer].offset;
}

/* Opens a run on another table of kernels than a backend's: for tests. */
RC_MUST_CHECK
rc_code rc_run_open_on(const rc_backend *backend, const rc_schedule *schedule,
                       const rc_run_options *options, rc_run **out, rc_error *err);

#endif
