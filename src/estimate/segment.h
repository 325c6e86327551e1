/* segment.h — what one stretch of a chunk takes, forward and backward: a layer, a group of layers that are recomputed
 * together, or an end of the model.
 */
#ifndef RC_ESTIMATE_SEGMENT_H
#define RC_ESTIMATE_SEGMENT_H

#include <recompute/graph.h>
#include <recompute/policy.h>
#include <recompute/schedule.h>

/* Bytes are of one micro-batch, and of activations alone: what lives across steps is state.h's. */
typedef struct rc_segment {
    /* its layers, and which ends of the model it is: all of its key beside is_full */
    rc_chunk chunk;
    /* recomputed whole */
    bool is_full;

    const rc_graph *graph;
    const rc_schedule *schedule;
    /* from forward to backward: what comes in, if it stays, and not what is handed on */
    int64_t retained_bytes;
    /* the most that is alive at once, what comes in and is handed on included; and the instructions where */
    int64_t fwd_peak_bytes, bwd_peak_bytes;
    int fwd_peak, bwd_peak;
} rc_segment;

/* The graphs of stretches of layers: whatever is recomputed, a stretch has one. */
typedef struct rc_graphs {
    struct rc_graph_of {
        rc_chunk chunk;
        const rc_graph *graph;
    } * at;
    int n;
    size_t n_room;
    /* where they live: longer than the segments of one setting */
    rc_arena *mem;
} rc_graphs;

/* The segments of a job, each made once: layers of one kind are alike wherever they stand. */
typedef struct rc_segments {
    const rc_config *cfg;
    rc_profile profile;
    int te_version;
    double imbalance;
    /* of this config and profile; grows. NULL: every segment makes its own */
    rc_graphs *graphs;
    /* of layers that are not recomputed whole */
    const rc_setting *setting;
    rc_segment *at;
    int n;
    size_t n_room;
} rc_segments;

/* Whether a gather's rows lie in Megatron's global buffer (workspace.c): those of its own linears do. */
bool rc_segment_gathers_in_buffer(const rc_graph *graph, const rc_op *op);

/* Whether the product's kernel adds the gradient of in[k] of an op, and one tensor of its shape stands in for it:
 * Transformer Engine's linears do, in layers and where gradient_accumulation_fusion is on; those of experts before 2.10
 * made one for every expert and every time. The gradient of another weight stands alone for a moment.
 * source  transformer_engine/pytorch/module/linear.py, grouped_linear.py (fuse_wgrad_accumulation), commit d2945c6a */
bool rc_segment_has_stand_in(const rc_segments *segments, const rc_graph *graph,
                             const rc_op *op, int k);

/* Finds or makes one.
 *
 * takes   chunk  copied, its runs too
 * gives   *out   its index
 * errors  those of rc_graph_make, rc_policy_make and of a schedule */
RC_MUST_CHECK
rc_code rc_segment_find(rc_segments *segments, const rc_chunk *chunk, bool is_full,
                        rc_arena *mem, int *out, rc_error *err);

#endif
