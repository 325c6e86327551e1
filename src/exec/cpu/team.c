/* team.c — the OpenMP threads that kernels run on. */
#define _POSIX_C_SOURCE 200809L
#include "exec/cpu/team.h"

#include "base/num.h"
#include "exec/cpu/gemm.h"

#include <omp.h>
#include <pthread.h>
#include <recompute/exec.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

/* Denormals become zero in the calling thread; gives its mode before. */
static unsigned flush_denormals(void)
{
#if defined(__SSE__)
    enum { FLUSH_TO_ZERO = 0x8000, DENORMALS_ARE_ZERO = 0x0040 };
    unsigned before = _mm_getcsr();
    _mm_setcsr(before | FLUSH_TO_ZERO | DENORMALS_ARE_ZERO);
    return before;
#elif defined(__aarch64__) && defined(__GNUC__)
    uint64_t before;
    __asm__ volatile("mrs %0, fpcr" : "=r"(before));
    __asm__ volatile("msr fpcr, %0" : : "r"(before | (uint64_t)1 << 24));
    return (unsigned)before;
#else
    return 0;
#endif
}

static void set_float_mode(unsigned mode)
{
#if defined(__SSE__)
    _mm_setcsr(mode);
#elif defined(__aarch64__) && defined(__GNUC__)
    __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)mode));
#else
    (void)mode;
#endif
}

rc_team_mode rc_team_enter(void)
{
    rc_team_mode before = {omp_get_dynamic(), omp_get_max_active_levels(), flush_denormals()};
    omp_set_dynamic(0);
    if (before.n_levels < 1)
        omp_set_max_active_levels(1);
    return before;
}

void rc_team_leave(const rc_team_mode *before)
{
    omp_set_dynamic(before->is_dynamic);
    omp_set_max_active_levels(before->n_levels);
    set_float_mode(before->float_mode);
}

int rc_run_most_threads(void)
{
    return omp_get_thread_limit();
}

/* "512M" as OpenMP reads a size: K without a letter. 0 for what is none. */
static int64_t parse_stack(const char *text)
{
    static const char letters[] = "BKMG";
    char digits[20];
    int64_t n;
    text += strspn(text, " \t");
    const size_t n_digits = strspn(text, "0123456789");
    if (n_digits == 0 || n_digits >= sizeof digits)
        return 0;
    memcpy(digits, text, n_digits);
    digits[n_digits] = '\0';
    const char unit = (char)(text[n_digits] & ~0x20); /* either case */
    const char *at = unit ? strchr(letters, unit) : &letters[1];
    if (!at || !rc_parse_int(digits, &n))
        return 0;
    return rc_mul(n, (int64_t)1 << 10 * (at - letters), &n) ? n : INT64_MAX;
}

int64_t rc_run_stack_bytes(void)
{
    enum { UNLIMITED_STACK_BYTES = 2 << 20 }; /* what libc takes then, on x86-64 */
    static const char *const names[] = {"OMP_STACKSIZE", "GOMP_STACKSIZE"};
    struct rlimit limit;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *text = getenv(names[i]);
        const int64_t bytes = text ? parse_stack(text) : 0;
        if (bytes > 0)
            return bytes;
    }
    if (getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        limit.rlim_cur < INT32_MAX)
        return (int64_t)limit.rlim_cur;
    return UNLIMITED_STACK_BYTES;
}

/* ---- starting it ---- */

typedef struct gate {
    pthread_mutex_t lock;
    pthread_cond_t opened;
    bool is_open;
} gate;

static void *wait_at(void *at)
{
    gate *g = at;
    pthread_mutex_lock(&g->lock);
    while (!g->is_open)
        pthread_cond_wait(&g->opened, &g->lock);
    pthread_mutex_unlock(&g->lock);
    return NULL;
}

/* Threads that the host starts beside this one, up to n. OpenMP's runtime ends the process where one
 * is refused, so they are started by us first. */
static int count_startable(int n)
{
    enum { MOST = 1024 };
    pthread_t threads[MOST];
    gate g = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
    int n_started = 0;
    pthread_attr_t attr;
    if (pthread_attr_init(&attr) != 0)
        return 0;
    /* a size that is refused is ignored, as OpenMP does */
    (void)pthread_attr_setstacksize(&attr, (size_t)rc_run_stack_bytes());
    while (n_started < n && n_started < MOST &&
           pthread_create(&threads[n_started], &attr, wait_at, &g) == 0)
        n_started++;
    pthread_attr_destroy(&attr);
    pthread_mutex_lock(&g.lock);
    g.is_open = true;
    pthread_cond_broadcast(&g.opened);
    pthread_mutex_unlock(&g.lock);
    for (int i = 0; i < n_started; i++)
        pthread_join(threads[i], NULL);
    return n_started;
}

static int prepare(int n_threads)
{
    int n_given = 1;
#pragma omp parallel num_threads(n_threads)
    {
        flush_denormals();
        if (omp_get_thread_num() != 0)
            rc_gemm_block_signals();
        else
            n_given = omp_get_num_threads();
    }
    return n_given;
}

rc_code rc_team_open(int n_threads, rc_error *err)
{
    if (n_threads > omp_get_thread_limit())
        return RC_FAIL(err, RC_E_INPUT, RC_NOWHERE,
                       "%d threads are asked for and OMP_THREAD_LIMIT allows %d; set "
                       "engine.threads to that, or the variable to more",
                       n_threads, omp_get_thread_limit());
    const int n_startable = omp_in_parallel() ? n_threads : 1 + count_startable(n_threads - 1);
    if (n_startable < n_threads)
        return RC_FAIL(
            err, RC_E_MEMORY, RC_NOWHERE,
            "the host starts %d threads of the %d asked for; set engine.threads=%d, or "
            "raise its limits on memory and processes (ulimit -v, -u), or take smaller stacks "
            "(OMP_STACKSIZE)",
            n_startable, n_threads, n_startable);
    const rc_team_mode before = rc_team_enter();
    const int n_given = prepare(n_threads);
    rc_team_leave(&before);
    if (n_given < n_threads && !omp_in_parallel())
        return RC_FAIL(err, RC_E_MEMORY, RC_NOWHERE,
                       "OpenMP gives %d threads of the %d asked for; set engine.threads=%d",
                       n_given, n_threads, n_given);
    return RC_OK;
}
