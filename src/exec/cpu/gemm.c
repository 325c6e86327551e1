/* gemm.c — the one door to the math library. */
#include "exec/cpu/gemm.h"

#include <omp.h>

#if defined(RC_GEMM_DNNL)
#include <dnnl.h>

static void product(const rc_gemm *g)
{
    dnnl_sgemm(g->is_a_transposed ? 'T' : 'N', g->is_b_transposed ? 'T' : 'N', g->m, g->n, g->k,
               g->alpha, g->a, g->lda, g->b, g->ldb, g->beta, g->c, g->ldc);
}

const char *rc_gemm_name(void)
{
    return "oneDNN";
}
#else
#include <cblas.h>

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

void rc_gemm_run(const rc_gemm *gemm, int n_threads)
{
    /* The library asks OpenMP how many threads there are. */
    const int before = omp_get_max_threads();
    const bool is_set = !omp_in_parallel() && before != n_threads;
    if (is_set)
        omp_set_num_threads(n_threads);
    product(gemm);
    if (is_set)
        omp_set_num_threads(before);
}
