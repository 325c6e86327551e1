/* workspace.c — what libraries and Megatron keep beside weights and activations, from the first product on.
 *
 * takes  the segments of a rank
 * gives  bytes that PyTorch's allocator counts at every moment
 * next   rank.c
 *
 * source  transformer_engine/pytorch/cpp_extensions/gemm.py, get_cublas_workspace_size_bytes: one for all products;
 *         PyTorch aten/src/ATen/cuda/CublasHandlePool.cpp, parseChosenWorkspaceSize: one for every handle, and the
 *         threads of forward and of backward have one each; megatron/core/utils.py, GlobalMemoryBuffer, with its
 *         callers core/tensor_parallel/layers.py (gathered input) and core/transformer/dot_product_attention.py
 *         (what scores are added to): one buffer, as large as the largest request
 */
#include "estimate/workspace.h"

enum { MIB = 1024 * 1024, KIB = 1024, HOPPER = 9, N_THREADS_OF_TORCH = 2 };

static int64_t engine_workspace(int sm)
{
    return sm >= HOPPER ? 32 * MIB + KIB : 4 * MIB;
}

static int64_t torch_workspace(int sm)
{
    return N_THREADS_OF_TORCH *
           (int64_t)(sm >= HOPPER ? 4096 * 8 * KIB : 4096 * 2 * KIB + 16 * 8 * KIB);
}

/* Is it a product of PyTorch's own, and not of a Transformer Engine module? */
static bool is_torch_product(const rc_graph *graph, const rc_op *op)
{
    const bool is_in_layer = op->layer >= 0 && op->layer < graph->dims.L;
    return op->fwd_flops > 0 && !(graph->profile == RC_PROFILE_MEGATRON_TE && is_in_layer);
}

/* What the op asks of the global buffer. */
static int64_t buffer_bytes(const rc_graph *graph, const rc_op *op)
{
    const bool has_scores =
        op->kind == RC_OP_attn_scores && graph->profile == RC_PROFILE_MEGATRON_LOCAL;
    const bool asks = has_scores || rc_segment_gathers_in_buffer(graph, op);
    return asks ? rc_graph_tensor(graph, op->out[0]).bytes : 0;
}

int64_t rc_workspace_bytes(const rc_segments *segments, const rc_chunk_cost *chunks,
                           int n_chunks, int sm)
{
    const bool is_engine = segments->profile == RC_PROFILE_MEGATRON_TE;
    int64_t buffer = 0;
    bool has_torch = false;
    for (int c = 0; c < n_chunks; c++)
        for (int p = 0; p < chunks[c].n_pieces; p++) {
            const rc_graph *graph = segments->at[chunks[c].pieces[p].segment].graph;
            for (int i = 0; i < graph->n_ops; i++) {
                const rc_op op = rc_graph_op(graph, i);
                const int64_t bytes = buffer_bytes(graph, &op);
                has_torch = has_torch || is_torch_product(graph, &op);
                buffer = bytes > buffer ? bytes : buffer;
            }
        }
    return buffer + (is_engine ? engine_workspace(sm) : 0) +
           (has_torch ? torch_workspace(sm) : 0);
}
