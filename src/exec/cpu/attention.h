/* attention.h — what forward and backward of fused attention share. */
#ifndef RC_EXEC_CPU_ATTENTION_H
#define RC_EXEC_CPU_ATTENTION_H

#include "base/random.h"
#include "exec/cpu/operand.h"
#include "op/scratch.h"

enum { RC_BLOCK = RC_ATTENTION_BLOCK, RC_BLOCK_VECS = RC_ATTENTION_BLOCK / RC_VEC };

/* Counter of the draw for query i, key 0 of a head: rows of the dropout mask are padded to whole
 * counters of 4 keys, so where s % 4 == 0 element (b, a, i, j) has its flat index in [b,a,s,s] and
 * the unfused dropout op draws the same mask. */
RC_INLINE uint64_t rc_attention_counter(const rc_op_attr *attr, int64_t seq, int64_t head,
                                        int64_t i)
{
    return (uint64_t)(((seq * attr->a + head) * attr->s + i) * rc_ceil_div(attr->s, 4));
}

/* Rows first.. of one head of a token-major operand. */
RC_INLINE float *rc_attention_head(const rc_operand *x, const rc_op_attr *attr, int64_t seq,
                                   int64_t head, int64_t first)
{
    return rc_f32_row(x, seq * attr->s + first) + head * attr->d;
}

/* to[dim, row] = by * from[row, dim], zeros in rows n_rows..RC_BLOCK */
void rc_attention_transpose(float *to, const float *from, int64_t ld, int64_t n_rows, int64_t d,
                            float by);

#endif
