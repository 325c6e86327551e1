/* process.c — one child process: its output in a file, its life within a limit.
 *
 * Signals are blocked and waited for (sigtimedwait), never handled: so there is no handler, no
 * global flag and no race between a look and a sleep.
 */
#define _POSIX_C_SOURCE 200809L
#include "study/process.h"

#include "base/open.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { GRACE_SECONDS = 10 };

static double now_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Processor time of all children that ended so far. */
static double children_seconds(void)
{
    struct rusage usage;
    if (getrusage(RUSAGE_CHILDREN, &usage) != 0)
        return (double)NAN;
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

static rc_code start_failed(int why, rc_error *err)
{
    return RC_FAIL(err, RC_E_IO, RC_NOWHERE, "the command cannot be started: %s",
                   strerror(why));
}

/* The child: input empty, output to the log, a group of its own, our signals as they were. */
static rc_code start(const char *command, int log, const sigset_t *mask, pid_t *child,
                     rc_error *err)
{
    extern char **environ;
    char shell[] = "sh", flag[] = "-c";
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    const int group_and_mask = POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK;
    int why = posix_spawn_file_actions_init(&files);
    if (why)
        return start_failed(why, err);
    why = posix_spawnattr_init(&attributes);
    if (why) {
        posix_spawn_file_actions_destroy(&files);
        return start_failed(why, err);
    }
    /* posix_spawn's argv is not const, but it copies: the command is not written to. */
    char *argv[] = {shell, flag, (char *)(uintptr_t)command, NULL};
    why = posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    why = why ? why : posix_spawn_file_actions_adddup2(&files, log, 1);
    why = why ? why : posix_spawn_file_actions_adddup2(&files, 1, 2);
    why = why ? why : posix_spawnattr_setflags(&attributes, (short)group_and_mask);
    why = why ? why : posix_spawnattr_setpgroup(&attributes, 0);
    why = why ? why : posix_spawnattr_setsigmask(&attributes, mask);
    why = why ? why : posix_spawn(child, "/bin/sh", &files, &attributes, argv, environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    return why ? start_failed(why, err) : RC_OK;
}

static bool is_over(pid_t child, int *status)
{
    pid_t got;
    do
        got = waitpid(child, status, WNOHANG);
    while (got < 0 && errno == EINTR);
    return got != 0;
}

/* Waits until the child ends, a stop signal comes or `until` passes; 0 or the signal. */
static int wait_for(pid_t child, const sigset_t *signals, double until, int *status)
{
    for (;;) {
        if (is_over(child, status))
            return SIGCHLD;
        double left = until - now_seconds();
        if (left <= 0)
            return 0;
        /* A grandchild's end wakes nobody: look again every second. */
        struct timespec pause = {.tv_sec = left > 1 ? 1 : 0,
                                 .tv_nsec = left > 1 ? 0 : (long)(left * 1e9)};
        int got = sigtimedwait(signals, NULL, &pause);
        if (got > 0 && got != SIGCHLD)
            return got;
    }
}

static void stop(pid_t child, const sigset_t *signals, int *status)
{
    kill(-child, SIGTERM);
    double until = now_seconds() + GRACE_SECONDS;
    while (wait_for(child, signals, until, status) != SIGCHLD)
        if (now_seconds() >= until)
            break;
    kill(-child, SIGKILL); /* also what is left of the group after its leader ended */
    while (!is_over(child, status)) {
        struct timespec pause = {.tv_nsec = 10 * 1000 * 1000};
        nanosleep(&pause, NULL);
    }
}

rc_code rc_process_run(const char *command, const char *log_path, double timeout_seconds,
                       rc_process_result *result, rc_error *err)
{
    sigset_t signals, before;
    pid_t child;
    int status = 0, log;
    RC_TRY(rc_open_writing(log_path, log_path, false, &log, err));
    sigemptyset(&signals);
    sigaddset(&signals, SIGCHLD);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGHUP);
    sigprocmask(SIG_BLOCK, &signals, &before);
    double began = now_seconds(), cpu_before = children_seconds();
    *result = (rc_process_result){.end = RC_PROCESS_EXITED};
    rc_code code = start(command, log, &before, &child, err);
    close(log);
    if (code == RC_OK) {
        double until = timeout_seconds > 0 ? began + timeout_seconds : began + 1e9;
        int got = wait_for(child, &signals, until, &status);
        if (got != SIGCHLD) {
            result->end = got ? RC_PROCESS_STOPPED : RC_PROCESS_TIMEOUT;
            stop(child, &signals, &status);
        }
        result->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    result->seconds = now_seconds() - began;
    result->cpu_seconds = children_seconds() - cpu_before;
    sigprocmask(SIG_SETMASK, &before, NULL);
    return code;
}
