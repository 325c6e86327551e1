/* ring_attention.c — attention over a ring of context-parallel ranks: each has its own queries, and keys and values go
 * round. Backward sends them round again from the pair that came last, so its own are not needed.
 *
 * source  transformer_engine/pytorch/attention/dot_product_attention/context_parallel.py, AttnFuncWithCPAndKVP2P
 */
#include "op/facts.h"

static int64_t fwd_flops(const rc_op_attr *attr)
{
    return rc_op_attention.fwd_flops(attr);
}

static int64_t bwd_flops(const rc_op_attr *attr)
{
    return rc_op_attention.bwd_flops(attr);
}

/* Out: o, the pair that came last, log-sum-exp; then what is alive until it returns: every pair that came, and the output
 * of every step. */
const rc_op_facts rc_op_ring_attention = {
    .name = "ring_attention",
    .n_in = 3,
    .n_out = 5,
    .needs_in = RC_BIT(0),
    .needs_out = RC_BIT(0) | RC_BIT(1) | RC_BIT(2),
    .grads = RC_BIT(0) | RC_BIT(1) | RC_BIT(2),
    .fwd_comm = RC_COMM_SEND,
    .bwd_comm = RC_COMM_SEND,
    .fwd_flops = fwd_flops,
    .bwd_flops = bwd_flops,
};
