/* attention.h — what forward and backward of fused attention share. */
#ifndef RC_EXEC_CPU_ATTENTION_H
#define RC_EXEC_CPU_ATTENTION_H

#include "base/random.h"
#include "exec/cpu/operand.h"
#include "op/scratch.h"

#include <string.h>

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

/* Asks for a block of rows that is worked on next. Rows of one head lie a whole token apart, each
 * on a page of its own, where the hardware's prefetch does not follow. */
RC_INLINE void rc_attention_prefetch(const float *rows, int64_t ld, int64_t n_rows, int64_t d)
{
    for (int64_t i = 0; i < n_rows; i++)
        for (int64_t at = 0; at < d; at += RC_VEC)
            RC_PREFETCH(rows + i * ld + at);
}

/* A block of rows close together: to[row, dim], rows pad16 d apart. Where a token's width is near a
 * power of two, the rows of one head fall into few sets of the cache and push each other out of
 * it; a block that is read more than once is copied first. */
RC_INLINE void rc_attention_copy(float *to, const float *from, int64_t ld, int64_t n_rows,
                                 int64_t d)
{
    const size_t bytes = (size_t)d * sizeof *to;
    for (int64_t i = 0; i < n_rows; i++)
        memcpy(to + i * rc_pad16(d), from + i * ld, bytes);
}

/* to[dim, row] = by * from[row, dim], zeros in rows n_rows..RC_BLOCK */
void rc_attention_transpose(float *to, const float *from, int64_t ld, int64_t n_rows, int64_t d,
                            float by);

#endif
