/* scratch.h — how kernels lay out their scratch: the facts ask for it, the kernels use it.
 *
 * All sizes are in f32 elements unless their name says bytes, and each part starts on RC_ALIGN.
 */
#ifndef RC_OP_SCRATCH_H
#define RC_OP_SCRATCH_H

#include <stdint.h>

/* Rows of a reduction over tokens are cut into this many chunks whatever the thread count, and
 * the chunks are added in order: the same bits on any number of threads. */
enum { RC_N_CHUNKS = 32 };

/* Queries and keys of one block of fused attention; also the lanes a block is worked on with. */
enum { RC_ATTENTION_BLOCK = 64 };

/* Positions between two angles that rope computes from scratch. */
enum { RC_ROPE_STRIDE = 64 };

static inline int64_t rc_pad16(int64_t n)
{
    return (n + 15) / 16 * 16;
}

/* rope: angles of RC_ROPE_STRIDE positions and of each block's first, cos | sin in f64; then
 * per thread one position's cos | sin in f32. */
static inline int64_t rc_rope_table_rows(int64_t s)
{
    return RC_ROPE_STRIDE + (s + RC_ROPE_STRIDE - 1) / RC_ROPE_STRIDE;
}

/* fused attention, per thread. Forward: query^T, o^T [pad16 d, block], scores [block, block], and
 * four vectors [block]. Backward: key^T, value^T, dkey^T,
 * dvalue^T [pad16 d, block], the key, query, do and dq blocks [block, pad16 d], p, ds and the
 * dropout mask [block, block]. */
static inline int64_t rc_attention_fwd_part(int64_t d)
{
    return (2 * rc_pad16(d) + RC_ATTENTION_BLOCK + 4) * RC_ATTENTION_BLOCK;
}

static inline int64_t rc_attention_bwd_part(int64_t d)
{
    return (8 * rc_pad16(d) + 3 * RC_ATTENTION_BLOCK) * RC_ATTENTION_BLOCK;
}

#endif
