/* attention.c — fused attention. Backward reads q, k, v, o and the log-sum-exp of each row, and makes
 * the scores again. */
#include "op/facts.h"
#include "op/scratch.h"

/* Pairs of query and key that count: a causal kernel skips what lies above the diagonal, up to
 * the vectors on it, which are not counted. Of context-parallel ranks each has its share of them, as each is dealt a
 * block of the sequence's beginning and one of its end. */
static int64_t n_pairs(const rc_op_attr *attr)
{
    const int64_t n_ranks = attr->n_ranks > 1 ? attr->n_ranks : 1;
    const int64_t s = rc_op_times(attr->s, n_ranks);
    const int64_t heads = rc_op_times(attr->b, attr->a);
    const int64_t squares = rc_op_times(s, attr->is_causal ? s + 1 : s);
    return rc_op_times(heads, (attr->is_causal ? squares / 2 : squares) / n_ranks);
}

static int64_t value_width(const rc_op_attr *attr)
{
    return attr->dv > 0 ? attr->dv : attr->d;
}

/* scores and output: 2 d each per pair (Dao 2023, FlashAttention-2, section 4.1: 4 s^2 d a, halved
 * for a causal mask), the output as wide as a value */
static int64_t fwd_flops(const rc_op_attr *attr)
{
    return rc_op_times(2 * (attr->d + value_width(attr)), n_pairs(attr));
}

/* five products: the scores again, dk and dq, and as wide as a value dp and dv (Dao 2023, section 4.1: 2.5 times
 * forward) */
static int64_t bwd_flops(const rc_op_attr *attr)
{
    return rc_op_times(2 * (3 * attr->d + 2 * value_width(attr)), n_pairs(attr));
}

static int64_t fwd_scratch_bytes(const rc_op_attr *attr, rc_dtype dtype, int n_threads)
{
    (void)dtype;
    return n_threads * rc_attention_fwd_part(attr->d) * (int64_t)sizeof(float);
}

/* rowsum(do o) of every query, and the blocks of each thread */
static int64_t bwd_scratch_bytes(const rc_op_attr *attr, rc_dtype dtype, int n_threads)
{
    (void)dtype;
    const int64_t delta = rc_pad16(attr->n * attr->a);
    return (delta + n_threads * rc_attention_bwd_part(attr->d)) * (int64_t)sizeof(float);
}

const rc_op_facts rc_op_attention = {
    .name = "attention",
    .n_in = 3,
    .n_out = 2,
    .needs_in = RC_BIT(0) | RC_BIT(1) | RC_BIT(2),
    .needs_out = RC_BIT(0) | RC_BIT(1),
    .grads = RC_BIT(0) | RC_BIT(1) | RC_BIT(2),
    .fwd_flops = fwd_flops,
    .bwd_flops = bwd_flops,
    .fwd_scratch_bytes = fwd_scratch_bytes,
    .bwd_scratch_bytes = bwd_scratch_bytes,
    .tolerance = 1e-5,
};
