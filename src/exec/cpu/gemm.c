/* gemm.c — the one door to the math library. */
#define _POSIX_C_SOURCE 200809L
#include "exec/cpu/gemm.h"

#include <omp.h>
#include <signal.h>
#include <string.h>

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

rc_code rc_gemm_open(rc_error *err)
{
    if (sgemm)
        return RC_OK;
    void *library = dlopen(RC_DNNL_FILE, RTLD_NOW | RTLD_LOCAL);
    void *symbol = library ? dlsym(library, "dnnl_sgemm") : NULL;
    if (!symbol)
        return RC_FAIL(
            err, RC_E_UNSUPPORTED, RC_NOWHERE,
            "the math library cannot be loaded: %s; install oneDNN (Debian: libdnnl2)",
            dlerror());
    sgemm_function function;
    memcpy(&function, &symbol, sizeof function); /* POSIX's way from data to function pointer */
    sgemm = function;
    return RC_OK;
}

static void product(const rc_gemm *g)
{
    sgemm_function run = sgemm;
    RC_ASSERT(run);
    run(g->is_a_transposed ? 'T' : 'N', g->is_b_transposed ? 'T' : 'N', g->m, g->n, g->k,
        g->alpha, g->a, g->lda, g->b, g->ldb, g->beta, g->c, g->ldc);
}

const char *rc_gemm_name(void)
{
    return "oneDNN";
}
#else
#include <cblas.h>

rc_code rc_gemm_open(rc_error *err)
{
    (void)err; /* linked in */
    return RC_OK;
}

static void product(const rc_gemm *g)
{
    cblas_sgemm(CblasRowMajor, g->is_a_transposed ? CblasTrans : CblasNoTrans,
                g->is_b_transposed ? CblasTrans : CblasNoTrans, (int)g->m, (int)g->n, (int)g->k,
                g->alpha, g->a, (int)g->lda, g->b, (int)g->ldb, g->beta, g->c, (int)g->ldc);
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
void rc_gemm_block_signals(void)
{
    sigset_t all;
    sigfillset(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, NULL); /* fails for a wrong first argument only */
}

void rc_gemm_run(const rc_gemm *gemm, int n_threads)
{
    sigset_t all, mask;
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &mask);
    /* The library asks OpenMP how many threads there are. */
    const int before = omp_get_max_threads();
    const bool is_set = !omp_in_parallel() && before != n_threads;
    if (is_set)
        omp_set_num_threads(n_threads);
    product(gemm);
    if (is_set)
        omp_set_num_threads(before);
    (void)pthread_sigmask(SIG_SETMASK, &mask, NULL);
}
