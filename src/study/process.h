/* process.h — one child process: its output in a file, its life within a limit. */
#ifndef RC_STUDY_PROCESS_H
#define RC_STUDY_PROCESS_H

#include <recompute/error.h>

typedef enum rc_process_end {
    RC_PROCESS_EXITED, /* by itself; `status` is its exit status, or 128 + the signal's number */
    RC_PROCESS_TIMEOUT, /* stopped by us at the limit */
    RC_PROCESS_STOPPED  /* stopped by us because we were asked to stop */
} rc_process_end;

typedef struct rc_process_result {
    rc_process_end end;
    int status;
    double seconds;
    /* of all its processes that were waited for; NAN unknown */
    double cpu_seconds;
} rc_process_result;

/**
 * Runs `sh -c COMMAND` in a process group of its own and waits for it.
 *
 * takes   log_path         standard output and standard error, overwritten; input is empty
 *         timeout_seconds  0 is no limit
 * gives   *result          at the limit and on SIGINT, SIGTERM or SIGHUP to us, the whole group gets
 *                          SIGTERM and, 10 seconds later, SIGKILL
 * errors  RC_E_IO when it cannot be started
 * cost    sleeps; SIGINT, SIGTERM, SIGHUP and SIGCHLD are blocked meanwhile, so the caller has one thread
 */
RC_MUST_CHECK
rc_code rc_process_run(const char *command, const char *log_path, double timeout_seconds,
                       rc_process_result *result, rc_error *err);

#endif
