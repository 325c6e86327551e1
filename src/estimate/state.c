/* state.c — parameters, gradients and optimizer state of a rank, with the padding of Megatron's buffers.
 *
 * takes  the weights of a rank's segments, their layout of dtypes, how many ranks share the optimizer
 * gives  bytes by role
 * next   rank.c adds activations
 *
 * A distributed optimizer lays all weights of one kind (dense, experts) in one buffer, in reverse order, each from a
 * multiple of 64 elements on, and ends a bucket at a multiple of what the shards divide; every rank owns its share
 * of every bucket. source  megatron/core/distributed/param_and_grad_buffer.py (_pad_start_of_param_if_needed,
 * _pad_end_of_bucket_if_needed), megatron/core/distributed/distributed_data_parallel.py (bucket_size)
 */
#include "estimate/state.h"

#include "base/num.h"

#include <string.h>

enum { PARAM_ALIGN = 64, SHARD_ALIGN = 128, BUSBW_ALIGN = 1 << 16 };
/* source  distributed_data_parallel.py: max(40000000, 1000000 * ranks) */
static const int64_t least_bucket = 40000000, bucket_of_rank = 1000000;

/* One buffer of a chunk: of dense weights, or of experts'. */
typedef struct buffer {
    int64_t n_shards;
    /* elements after which a bucket ends; 0: there is one */
    int64_t bucket;
    /* a bucket's length is a multiple of it; 1 where nothing is shared */
    int64_t align;
    /* elements with padding, and without; where the present bucket began */
    int64_t end, n_elem, bucket_start;
    /* of the weights in it, by role */
    int64_t bytes[RC_PARAM_ROLE_COUNT];
} buffer;

static int64_t round_to(int64_t n, int64_t step)
{
    return (n + step - 1) / step * step;
}

static int64_t common_multiple(int64_t a, int64_t b)
{
    int64_t x = a, y = b;
    while (y) {
        const int64_t rest = x % y;
        x = y;
        y = rest;
    }
    return a / x * b;
}

static void end_bucket(buffer *b)
{
    b->end = round_to(b->end, b->align);
    b->bucket_start = b->end;
}

static void add_weight(buffer *b, int64_t n)
{
    if (b->n_shards == 1) {
        b->end += n;
        return;
    }
    b->end = round_to(b->end, PARAM_ALIGN) + n;
    if (b->bucket > 0 && b->end - b->bucket_start >= b->bucket)
        end_bucket(b);
}

static void open_buffer(const rc_state_request *request, int64_t n_shards, buffer *b)
{
    const rc_config *cfg = request->cfg;
    const int64_t asked = cfg->ddp_bucket_size;
    int64_t bucket = asked != RC_NULL_INT ? asked : n_shards * bucket_of_rank;
    if (asked == RC_NULL_INT && bucket < least_bucket)
        bucket = least_bucket;
    *b = (buffer){.n_shards = n_shards,
                  .bucket = request->is_first_stage && cfg->overlap_grad_reduce ? bucket : 0,
                  .align = n_shards == 1 ? 1 : common_multiple(n_shards, SHARD_ALIGN)};
    if (n_shards > 1 && cfg->pad_buckets_for_high_nccl_busbw)
        b->align = common_multiple(b->align, BUSBW_ALIGN);
}

/* A chunk that embeds has the table once: for multi-token prediction, and for the output layer of a tied model. */
static bool is_held(const rc_config *cfg, const rc_chunk *chunk, const rc_tensor *tensor)
{
    if (tensor->kind != RC_TENSOR_WEIGHT)
        return false;
    if (!chunk->has_embedding)
        return true;
    if (strcmp(tensor->part, "mtp.word_embeddings.weight") == 0)
        return false;
    return !cfg->share_embeddings_and_output_weights ||
           strcmp(tensor->part, "output_layer.weight") != 0;
}

/* Every sum is below 2^63: a graph's parameters are, 32 bytes of each too, and a chunk has at most 2^16 layers. */
static void add_weights(const rc_graph *graph, const rc_config *cfg, const rc_chunk *chunk,
                        buffer *dense_and_experts)
{
    for (int i = graph->n_tensors - 1; i >= 0; i--) {
        const rc_tensor tensor = rc_graph_tensor(graph, i);
        if (!is_held(cfg, chunk, &tensor))
            continue;
        buffer *b = &dense_and_experts[tensor.is_expert];
        add_weight(b, tensor.n_elem);
        b->n_elem += tensor.n_elem;
        for (int role = 0; role < RC_PARAM_ROLE_COUNT; role++) {
            rc_dtype dtype;
            if (rc_graph_param_dtype(graph, &tensor, (rc_param_role)role, &dtype))
                b->bytes[role] += tensor.n_elem * rc_dtype_bytes(dtype);
        }
    }
}

/* Weights and gradients lie whole on every rank, padding included; of the rest it has a share. */
static void close_buffer(buffer *b, const rc_param_layout *layout, rc_model_state *out)
{
    if (b->n_shards > 1)
        end_bucket(b);
    out->n_parameters += b->n_elem;
    for (int role = 0; role < RC_PARAM_ROLE_COUNT; role++) {
        if (layout->dtype[role] == RC_DTYPE_COUNT || b->bytes[role] == 0)
            continue;
        const int64_t padding = (b->end - b->n_elem) * rc_dtype_bytes(layout->dtype[role]);
        const bool is_shared = role >= RC_PARAM_MASTER;
        out->bytes[role] += (b->bytes[role] + padding) / (is_shared ? b->n_shards : 1);
    }
    /* An optimizer that reads float32 copies gradients of fewer bits; the precision-aware one reads them as they are. */
    if (layout->dtype[RC_PARAM_MASTER] == RC_F32 && layout->dtype[RC_PARAM_GRAD] != RC_F32)
        out->step_bytes += b->end / b->n_shards * rc_dtype_bytes(RC_F32);
}

void rc_state_count(const rc_state_request *request, const rc_segments *segments,
                    const rc_chunk_cost *chunks, int n_chunks, rc_model_state *out)
{
    *out = (rc_model_state){0};
    for (int c = 0; c < n_chunks; c++) {
        buffer buffers[2];
        const rc_chunk_cost *chunk = &chunks[c];
        open_buffer(request, request->n_shards, &buffers[0]);
        open_buffer(request, request->n_expert_shards, &buffers[1]);
        for (int p = chunk->n_pieces - 1; p >= 0; p--)
            for (int n = 0; n < chunk->pieces[p].n; n++)
                add_weights(segments->at[chunk->pieces[p].segment].graph, request->cfg,
                            chunk->chunk, buffers);
        for (int k = 0; k < 2; k++)
            close_buffer(&buffers[k], &segments->at[0].graph->layout, out);
    }
}
