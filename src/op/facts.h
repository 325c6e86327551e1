/* facts.h — the facts of each op, rc_op_NAME in src/op/NAME.c, and what they share. */
#ifndef RC_OP_FACTS_H
#define RC_OP_FACTS_H

#include <recompute/op.h>

#define RC_OP(name, help) extern const rc_op_facts rc_op_##name;
#include "defs/ops.def"
#undef RC_OP

#define RC_BIT(i) (UINT32_C(1) << (i))

/* FLOPs count matrix products only, 2 m n k each, as Korthikanti et al. 2022 (appendix A) and
 * Narayanan et al. 2021 do: element-wise ops cost bytes, not FLOPs. */
int64_t rc_op_no_flops(const rc_op_attr *attr);

/* a * b for a, b >= 0, or INT64_MAX where that does not hold it. */
int64_t rc_op_times(int64_t a, int64_t b);

/* Bytes at most that oneDNN 2.6 works in during a dnnl_sgemm of an m x n result over k terms: a packed
 * copy of the right-hand block, and a thread's of the left one. A fit from above to 5,742 products (m, n, k
 * of 1 to 8192, all forms, 1, 2 and 4 threads) on an AVX-512 machine and 21,000 on one with AMX;
 * tests/ops/check_library.c measures it again, and a run counts what it does not hold. */
int64_t rc_op_gemm_library_bytes(int64_t m, int64_t n, int64_t k, int n_threads);

/* attn_scores.c: both products of unfused attention run over the whole square, so they cost alike. */
int64_t rc_op_square_fwd_flops(const rc_op_attr *attr);
int64_t rc_op_square_bwd_flops(const rc_op_attr *attr);
int64_t rc_op_square_library_bytes(const rc_op_attr *attr, int n_threads);

#endif
