/* comm.c — the ops that exchange between ranks: what they do to a tensor, and to its gradient.
 *
 * Forward and backward are each other's reverse: a gather's gradient is summed and cut up, a sum's is the same on
 * every rank already. source  Megatron-LM megatron/core/tensor_parallel/mappings.py,
 * megatron/core/pipeline_parallel/p2p_communication.py
 */
#include "op/facts.h"

/* What is gathered is as large as all ranks' shards together, so linears keep their shard and gather again.
 * source  megatron/core/tensor_parallel/layers.py, LinearWithGradAccumulationAndAsyncCommunication */
const rc_op_facts rc_op_all_gather = {
    .name = "all_gather",
    .n_in = 1,
    .n_out = 1,
    .grads = RC_BIT(0),
    .drops_output = true,
    .fwd_comm = RC_COMM_ALL_GATHER,
    .bwd_comm = RC_COMM_REDUCE_SCATTER,
    .fwd_flops = rc_op_no_flops,
    .bwd_flops = rc_op_no_flops,
};

const rc_op_facts rc_op_reduce_scatter = {
    .name = "reduce_scatter",
    .n_in = 1,
    .n_out = 1,
    .grads = RC_BIT(0),
    .fwd_comm = RC_COMM_REDUCE_SCATTER,
    .bwd_comm = RC_COMM_ALL_GATHER,
    .fwd_flops = rc_op_no_flops,
    .bwd_flops = rc_op_no_flops,
};

const rc_op_facts rc_op_all_reduce = {
    .name = "all_reduce",
    .n_in = 1,
    .n_out = 1,
    .grads = RC_BIT(0),
    .in_place = RC_BIT(0),
    .grad_in_place = RC_BIT(0),
    .fwd_comm = RC_COMM_ALL_REDUCE,
    .fwd_flops = rc_op_no_flops,
    .bwd_flops = rc_op_no_flops,
};

const rc_op_facts rc_op_gather_rows = {
    .name = "gather_rows",
    .n_in = 1,
    .n_out = 1,
    .grads = RC_BIT(0),
    .fwd_comm = RC_COMM_ALL_GATHER,
    .bwd_comm = RC_COMM_REDUCE_SCATTER,
    .fwd_flops = rc_op_no_flops,
    .bwd_flops = rc_op_no_flops,
};

const rc_op_facts rc_op_gather_columns = {
    .name = "gather_columns",
    .n_in = 1,
    .n_out = 1,
    .grads = RC_BIT(0),
    .fwd_comm = RC_COMM_ALL_GATHER,
    .fwd_flops = rc_op_no_flops,
    .bwd_flops = rc_op_no_flops,
};

const rc_op_facts rc_op_scatter_rows = {
    .name = "scatter_rows",
    .n_in = 1,
    .n_out = 1,
    .grads = RC_BIT(0),
    .in_place = RC_BIT(0),
    .bwd_comm = RC_COMM_ALL_GATHER,
    .fwd_flops = rc_op_no_flops,
    .bwd_flops = rc_op_no_flops,
};

const rc_op_facts rc_op_all_to_all = {
    .name = "all_to_all",
    .n_in = 1,
    .n_out = 1,
    .grads = RC_BIT(0),
    .fwd_comm = RC_COMM_ALL_TO_ALL,
    .bwd_comm = RC_COMM_ALL_TO_ALL,
    .fwd_flops = rc_op_no_flops,
    .bwd_flops = rc_op_no_flops,
};

const rc_op_facts rc_op_send = {
    .name = "send",
    .n_in = 1,
    .n_out = 0,
    .grads = RC_BIT(0),
    .seeds_grad = true,
    .fwd_comm = RC_COMM_SEND,
    .bwd_comm = RC_COMM_RECV,
    .fwd_flops = rc_op_no_flops,
    .bwd_flops = rc_op_no_flops,
};

const rc_op_facts rc_op_recv = {
    .name = "recv",
    .n_in = 0,
    .n_out = 1,
    .fwd_comm = RC_COMM_RECV,
    .bwd_comm = RC_COMM_SEND,
    .fwd_flops = rc_op_no_flops,
    .bwd_flops = rc_op_no_flops,
};
