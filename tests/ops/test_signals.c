/* test_signals.c — signal handlers run on a stack of their thread, never inside a matrix product, whose
 * kernels put the stack pointer elsewhere (src/exec/cpu/gemm.c).
 */
#define _GNU_SOURCE /* pthread_getattr_np */
#include "exec/cpu/gemm.h"
#include "exec/cpu/team.h"

#include <omp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { N = 96, MOST_PRODUCTS = 200000, ENOUGH_SIGNALS = 300 };

static pthread_t main_thread;
static char *stack_low, *stack_high;
static volatile sig_atomic_t n_seen, n_elsewhere;

static void on_alarm(int number)
{
    char here;
    (void)number;
    n_seen++;
    if (!pthread_equal(pthread_self(), main_thread) || &here < stack_low || &here > stack_high)
        n_elsewhere++;
}

static void find_stack(void)
{
    pthread_attr_t attr;
    void *low;
    size_t n;
    main_thread = pthread_self();
    assert_int_equal(pthread_getattr_np(main_thread, &attr), 0);
    assert_int_equal(pthread_attr_getstack(&attr, &low, &n), 0);
    pthread_attr_destroy(&attr);
    stack_low = low;
    stack_high = stack_low + n;
}

static void alarm_every(long microseconds)
{
    struct itimerval timer = {.it_interval.tv_usec = microseconds,
                              .it_value.tv_usec = microseconds};
    assert_int_equal(setitimer(ITIMER_REAL, &timer, NULL), 0);
}

/* Signals come five thousand times a second while products run on `n_threads`. */
static void storm(int n_threads)
{
    static float a[N * N], b[N * N], c[N * N];
    rc_gemm gemm = {.m = N,
                    .n = N,
                    .k = N,
                    .alpha = 1,
                    .a = a,
                    .lda = N,
                    .b = b,
                    .ldb = N,
                    .c = c,
                    .ldc = N};
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    sigset_t before, after;
    n_seen = n_elsewhere = 0;
    assert_int_equal(rc_team_open(n_threads, NULL), RC_OK);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &before), 0);
    assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
    alarm_every(200);
    for (int i = 0; i < MOST_PRODUCTS && n_seen < ENOUGH_SIGNALS; i++)
        assert_int_equal(rc_gemm_run(&gemm, n_threads), RC_FAULT_NONE);
    alarm_every(0);
    assert_int_equal(n_elsewhere, 0);
    assert_true(n_seen > 0); /* they are put off, not lost */
    assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &after), 0);
    for (int number = 1; number < NSIG; number++) /* and the caller's mask is as it was */
        assert_int_equal(sigismember(&before, number), sigismember(&after, number));
}

static void no_handler_runs_inside_a_product(void **state)
{
    rc_error err = {0};
    (void)state;
    find_stack();
    assert_int_equal(rc_gemm_open(1, &err), RC_OK);
    for (int n_threads = 1; n_threads <= 3; n_threads++)
        storm(n_threads);
}

enum { HEARD = 42 };

static void on_fault(int number)
{
    (void)number;
    _exit(HEARD);
}

/* A worker that touches a mapped file which lost its end: the program's handler hears of it. */
static void read_past_the_end_on_a_worker(void)
{
    struct sigaction action = {.sa_handler = on_fault};
    FILE *file = tmpfile();
    if (!file || ftruncate(fileno(file), 1 << 20) != 0 || sigaction(SIGBUS, &action, NULL) != 0)
        _exit(1);
    const volatile char *at = mmap(NULL, 1 << 20, PROT_READ, MAP_SHARED, fileno(file), 0);
    if (at == MAP_FAILED || ftruncate(fileno(file), 0) != 0 || rc_team_open(2, NULL) != RC_OK)
        _exit(2);
#pragma omp parallel num_threads(2)
    {
        char value = 0;
        if (omp_get_thread_num() == 1)
            value = at[1 << 19];
        (void)value;
    }
    _exit(3);
}

static void a_workers_own_fault_is_heard(void **state)
{
    int status;
    (void)state;
    pid_t pid = fork();
    if (pid == 0)
        read_past_the_end_on_a_worker();
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), HEARD);
}

int main(void)
{
    /* first: a child of a process with threads has none of them */
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_workers_own_fault_is_heard),
                                       cmocka_unit_test(no_handler_runs_inside_a_product)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
