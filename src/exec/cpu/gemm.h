/* gemm.h — matrix products of the math library: oneDNN's dnnl_sgemm, or any CBLAS.
 *
 * Everything is row-major with leading dimensions. Inside an OpenMP region a product runs on the
 * calling thread alone.
 */
#ifndef RC_EXEC_CPU_GEMM_H
#define RC_EXEC_CPU_GEMM_H

#include "exec/kernel.h"

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

/**
 * Loads the library, leads its working memory into the account (workspace.h), and holds some small
 * products on `n_threads` against plain loops; before the first product. Any number of calls.
 *
 * takes   n_threads  of the products that will follow; the team stands (team.h)
 * errors  RC_E_UNSUPPORTED when the library is not installed or computes wrongly here; RC_E_MEMORY
 *         when the host has no room for its code
 */
RC_MUST_CHECK
rc_code rc_gemm_open(int n_threads, rc_error *err);

/* Does the library work inside the scratch it is given? Else it asks the host. */
bool rc_gemm_has_workspace(void);

/* RC_FAULT_NONE, or what the library said: then c holds anything. */
RC_MUST_CHECK
rc_fault_kind rc_gemm_run(const rc_gemm *gemm, int n_threads);

/* A kernel's product: as above, a failure goes to call->fault, and where the call is watched the
 * result is checked (gemm_check.h). */
void rc_gemm_call(const rc_call *call, const rc_gemm *gemm, int n_threads);

/* The calling thread takes no signal but its own faults from now on; for threads that the library may
 * run on. */
void rc_gemm_block_signals(void);

/* The library's name, for reports. */
const char *rc_gemm_name(void);

#endif
