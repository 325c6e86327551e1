/* gemm_check.h — is a product right? In far fewer operations than the product itself.
 *
 * Freivalds 1977 ("Probabilistic machines can use less running time"): for a vector r of signs,
 * c = alpha a b + beta c0 gives c r = alpha a (b r) + beta (c0 r), which costs one pass over each
 * matrix. A row of c that is wrong, or was never written, differs from its value by about the norm of
 * what is wrong in it, whatever the shape. Rounding is random and stays far below (tolerance, in gemm_check.c).
 */
#ifndef RC_EXEC_CPU_GEMM_CHECK_H
#define RC_EXEC_CPU_GEMM_CHECK_H

#include "exec/cpu/gemm.h"

/* Doubles of workspace that the check of one product needs. */
int64_t rc_gemm_check_room(int64_t m, int64_t n, int64_t k);

/* Before the product: b r, and what c0 adds. `room` as above, kept until rc_gemm_check_end. */
void rc_gemm_check_begin(const rc_gemm *gemm, double *room, int n_threads);
/* After it: does every row of c hold the product? */
bool rc_gemm_check_end(const rc_gemm *gemm, double *room, int n_threads);

#endif
