/* gemm.h — matrix products of the math library: oneDNN's dnnl_sgemm, or any CBLAS.
 *
 * Everything is row-major with leading dimensions. Inside an OpenMP region a product runs on the
 * calling thread alone.
 */
#ifndef RC_EXEC_CPU_GEMM_H
#define RC_EXEC_CPU_GEMM_H

#include <recompute/error.h>

typedef struct rc_gemm {
    bool is_a_transposed, is_b_transposed; /* a is stored [k,m], b is stored [n,k] */
    int64_t m, n, k;
    float alpha, beta; /* c = alpha a b + beta c; beta 0 does not read c */
    const float *a;
    int64_t lda;
    const float *b;
    int64_t ldb;
    float *c;
    int64_t ldc;
} rc_gemm;

/* Loads the library; before the first product. Any number of calls.
 * errors  RC_E_UNSUPPORTED when it is not installed */
RC_MUST_CHECK
rc_code rc_gemm_open(rc_error *err);

void rc_gemm_run(const rc_gemm *gemm, int n_threads);

/* The calling thread takes no signal from now on; for threads that the library may run on. */
void rc_gemm_block_signals(void);

/* The library's name, for reports. */
const char *rc_gemm_name(void);

#endif
