/* team.h — the OpenMP threads that kernels run on: how many there really are, and their mode. */
#ifndef RC_EXEC_CPU_TEAM_H
#define RC_EXEC_CPU_TEAM_H

#include <recompute/error.h>

/**
 * Starts the team and prepares it: denormals become zero, and the workers take no signals, since the
 * math library may run on them (gemm.c). Once before the first kernel.
 *
 * errors  RC_E_MEMORY when the host does not start n_threads; RC_E_INPUT when OMP_THREAD_LIMIT
 *         forbids them
 */
RC_MUST_CHECK
rc_code rc_team_open(int n_threads, rc_error *err);

/* What the calling thread has set for itself, kept while kernels run on it. */
typedef struct rc_team_mode {
    int is_dynamic, n_levels;
    unsigned float_mode;
} rc_team_mode;

/* Between the two a region gets the threads it asks for, whatever OMP_DYNAMIC and
 * OMP_MAX_ACTIVE_LEVELS say, and the calling thread flushes denormals. */
rc_team_mode rc_team_enter(void);
void rc_team_leave(const rc_team_mode *before);

#endif
