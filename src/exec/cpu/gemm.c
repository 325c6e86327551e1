/* gemm.c — the one door to the math library. */
#define _DEFAULT_SOURCE /* mmap of memory without a file */
#include "exec/cpu/gemm.h"

#include "exec/cpu/gemm_check.h"
#include "exec/cpu/workspace.h"
#include "op/facts.h"

#include <recompute/exec.h>

#include <math.h>
#include <omp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Can the host give so much now? The library crashes where it is refused memory for the code it makes
 * in its first products, so that is asked for, and given back, beforehand. */
static rc_code need_room(size_t bytes, const char *for_what, rc_error *err)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return RC_FAIL(
            err, RC_E_MEMORY, RC_NOWHERE,
            "the host refuses the %d MiB that the math library's %s needs beside the "
            "step arena; raise its limit on memory (ulimit -v), or take a setting "
            "that needs less (recompute estimate --settings)",
            (int)(bytes >> 20), for_what);
    munmap(at, bytes);
    return RC_OK;
}

#if defined(RC_GEMM_DNNL)
#include <dlfcn.h>
#include <dnnl.h>

/* oneDNN is 40 MB and brings libstdc++ and an OpenCL loader: linked in, it costs every command that
 * multiplies nothing 4 of the 5 milliseconds it takes. So it is loaded by the first run. The pointer
 * is set once and to the same value whoever sets it. */
typedef dnnl_status_t (*sgemm_function)(char, char, dnnl_dim_t, dnnl_dim_t, dnnl_dim_t, float,
                                        const float *, dnnl_dim_t, const float *, dnnl_dim_t,
                                        float, float *, dnnl_dim_t);
static _Atomic(sgemm_function) sgemm;
static _Atomic bool has_workspace;

/* What it and the libraries it brings are mapped to. */
static const size_t LIBRARY_BYTES = (size_t)64 << 20;

static rc_code load_library(rc_error *err)
{
    if (sgemm)
        return RC_OK;
    void *library = dlopen(RC_DNNL_FILE, RTLD_NOW | RTLD_LOCAL);
    void *symbol = library ? dlsym(library, "dnnl_sgemm") : NULL;
    if (!symbol) {
        const char *why = dlerror();
        const bool is_missing = why && strstr(why, "No such file");
        RC_TRY(need_room(LIBRARY_BYTES, "code", err));
        return RC_FAIL(err, is_missing ? RC_E_UNSUPPORTED : RC_E_IO, RC_NOWHERE,
                       "the math library cannot be loaded: %s%s",
                       why ? why : "the loader does not say why",
                       is_missing ? "; install oneDNN (Debian: libdnnl2)" : "");
    }
    sgemm_function function;
    memcpy(&function, &symbol, sizeof function); /* POSIX's way from data to function pointer */
    has_workspace = rc_workspace_install(symbol);
    sgemm = function;
    return RC_OK;
}

static rc_fault_kind product(const rc_gemm *g)
{
    sgemm_function run = sgemm;
    RC_ASSERT(run);
    const dnnl_status_t status =
        run(g->is_a_transposed ? 'T' : 'N', g->is_b_transposed ? 'T' : 'N', g->m, g->n, g->k,
            g->alpha, g->a, g->lda, g->b, g->ldb, g->beta, g->c, g->ldc);
    if (status == dnnl_success)
        return RC_FAULT_NONE;
    return status == dnnl_out_of_memory ? RC_FAULT_LIBRARY_MEMORY : RC_FAULT_LIBRARY;
}

bool rc_gemm_has_workspace(void)
{
    return has_workspace;
}

const char *rc_gemm_name(void)
{
    return "oneDNN";
}
#else
#include <cblas.h>

static rc_code load_library(rc_error *err)
{
    (void)err; /* linked in */
    return RC_OK;
}

static rc_fault_kind product(const rc_gemm *g)
{
    cblas_sgemm(CblasRowMajor, g->is_a_transposed ? CblasTrans : CblasNoTrans,
                g->is_b_transposed ? CblasTrans : CblasNoTrans, (int)g->m, (int)g->n, (int)g->k,
                g->alpha, g->a, (int)g->lda, g->b, (int)g->ldb, g->beta, g->c, (int)g->ldc);
    return RC_FAULT_NONE; /* CBLAS reports nothing: the checks are all there is */
}

bool rc_gemm_has_workspace(void)
{
    return false;
}

const char *rc_gemm_name(void)
{
    return "CBLAS";
}
#endif

/* oneDNN's kernels move the stack pointer into a buffer on the heap that has no room below it. A
 * signal handler that runs then writes its frame, some kilobytes, over whatever lies there. So no
 * handler runs on a thread inside a product: the calling one blocks signals meanwhile, and those
 * of the pool always do (rc_gemm_block_signals). A signal waits at most for one product. */
static sigset_t all_that_return(void)
{
    /* A thread's own faults: their handlers end the process, and blocked they would do so unheard. */
    static const int faults[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL};
    sigset_t set;
    sigfillset(&set);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        sigdelset(&set, faults[i]);
    return set;
}

void rc_gemm_block_signals(void)
{
    const sigset_t set = all_that_return();
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL); /* fails for a wrong first argument only */
}

rc_fault_kind rc_gemm_run(const rc_gemm *gemm, int n_threads)
{
    const sigset_t set = all_that_return();
    sigset_t mask;
    (void)pthread_sigmask(SIG_BLOCK, &set, &mask);
    /* The library asks OpenMP how many threads there are, and shares out the product among so many
     * whether it gets them or not: rc_team_enter sees to it that it does. */
    const int before = omp_get_max_threads();
    const bool is_set = !omp_in_parallel() && before != n_threads;
    if (is_set)
        omp_set_num_threads(n_threads);
    const rc_fault_kind fault = product(gemm);
    if (is_set)
        omp_set_num_threads(before);
    (void)pthread_sigmask(SIG_SETMASK, &mask, NULL);
    return fault;
}

void rc_gemm_call(const rc_call *call, const rc_gemm *gemm, int n_threads)
{
    double *room = NULL;
    if (call->check) {
        const bool is_in_kernels_region = omp_get_level() > call->level;
        room =
            call->check + (is_in_kernels_region ? omp_get_thread_num() : 0) * call->check_room;
        rc_gemm_check_begin(gemm, room, n_threads);
    }
    const rc_fault_kind fault = rc_gemm_run(gemm, n_threads);
    if (fault != RC_FAULT_NONE)
        rc_fault_note(call->fault, fault);
    else if (room && !rc_gemm_check_end(gemm, room, n_threads))
        rc_fault_note(call->fault, RC_FAULT_PRODUCT);
}

/* ---- the test at the start ---- */

/* Of the library's ways to a product: into place, over packed copies, a vector alone. */
static const rc_gemm trials[] = {
    {.is_b_transposed = true, .m = 47, .n = 33, .k = 29, .alpha = 1},
    {.m = 64, .n = 40, .k = 96, .alpha = 0.5f, .beta = 1},
    {.is_a_transposed = true, .m = 33, .n = 65, .k = 70, .alpha = 1, .beta = 1},
    {.is_b_transposed = true, .m = 17, .n = 300, .k = 3, .alpha = 1},
    {.is_a_transposed = true, .m = 17, .n = 4096, .k = 1, .alpha = 1, .beta = 1},
    {.m = 1, .n = 50, .k = 60, .alpha = 1},
};
enum { TRIAL_ELEMENTS = 17 * 4096 };

static float filling(int64_t i)
{
    return (float)((i * 37 + 11) % 64 - 32) / 32; /* sums of these are exact in f32 */
}

/* An operand's element [row, column], `ld` apart, stored the other way round where transposed. */
static double element(const float *x, bool is_transposed, int64_t ld, int64_t row, int64_t col)
{
    return (double)(is_transposed ? x[col * ld + row] : x[row * ld + col]);
}

static bool is_right(const rc_gemm *g, const float *before)
{
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = 0; j < g->n; j++) {
            double sum = 0;
            for (int64_t t = 0; t < g->k; t++)
                sum += element(g->a, g->is_a_transposed, g->lda, i, t) *
                       element(g->b, g->is_b_transposed, g->ldb, t, j);
            double c0 = g->beta == 0 ? 0 : (double)g->beta * (double)before[i * g->n + j];
            if ((double)g->c[i * g->ldc + j] != (double)g->alpha * sum + c0)
                return false;
        }
    return true;
}

/* room: a, b, c and c before, TRIAL_ELEMENTS each */
static rc_code try_product(rc_gemm g, float *room, int n_threads, rc_error *err)
{
    float *c = room + 2 * TRIAL_ELEMENTS, *before = room + 3 * TRIAL_ELEMENTS;
    for (int64_t i = 0; i < TRIAL_ELEMENTS; i++) {
        room[i] = filling(i);
        room[TRIAL_ELEMENTS + i] = filling(3 * i + 1);
        c[i] = before[i] = g.beta == 0 ? NAN : filling(7 * i + 5);
    }
    g.a = room;
    g.lda = g.is_a_transposed ? g.m : g.k;
    g.b = room + TRIAL_ELEMENTS;
    g.ldb = g.is_b_transposed ? g.k : g.n;
    g.c = c;
    g.ldc = g.n;
    const rc_fault_kind fault = rc_gemm_run(&g, n_threads);
    if (fault == RC_FAULT_NONE && is_right(&g, before))
        return RC_OK;
    return RC_FAIL(
        err, fault == RC_FAULT_LIBRARY_MEMORY ? RC_E_MEMORY : RC_E_UNSUPPORTED, RC_NOWHERE,
        "%s %s for a product of %d x %d x %d on %d threads; try engine.threads=1, or "
        "another version of the library",
        rc_gemm_name(),
        fault == RC_FAULT_NONE ? "gives wrong numbers on this host" : rc_fault_text(fault),
        (int)g.m, (int)g.n, (int)g.k, n_threads);
}

int64_t rc_run_beside_bytes(int n_threads)
{
    return ((int64_t)40 << 20) + n_threads * ((int64_t)2 << 20);
}

static _Atomic int n_threads_tried;

static rc_code try_library(int n_threads, rc_error *err)
{
    if (n_threads_tried == n_threads)
        return RC_OK;
    const int64_t bytes = rc_op_gemm_library_bytes(64, 4096, 96, n_threads);
    RC_TRY(need_room((size_t)rc_run_beside_bytes(n_threads), "start", err));
    float *room = malloc(4 * TRIAL_ELEMENTS * sizeof *room + (size_t)bytes);
    rc_workspace *workspace = calloc(1, sizeof *workspace);
    rc_code code = RC_OK;
    if (!room || !workspace)
        code = RC_FAIL(err, RC_E_MEMORY, RC_NOWHERE, "the host is out of memory");
    for (size_t i = 0; i < sizeof trials / sizeof *trials && code == RC_OK; i++) {
        workspace->at = (char *)(room + 4 * TRIAL_ELEMENTS);
        workspace->bytes = bytes;
        rc_workspace_enter(workspace);
        code = try_product(trials[i], room, n_threads, err);
        if (!rc_workspace_leave(workspace) && code == RC_OK)
            code = RC_FAIL(err, RC_E_UNSUPPORTED, RC_NOWHERE, "%s %s", rc_gemm_name(),
                           rc_fault_text(RC_FAULT_LIBRARY_KEEPS));
    }
    free(workspace);
    free(room);
    if (code == RC_OK)
        n_threads_tried = n_threads;
    return code;
}

rc_code rc_gemm_open(int n_threads, rc_error *err)
{
    RC_TRY(load_library(err));
    return try_library(n_threads, err);
}
