/* op.h — what an operation is: its operands, attributes, and the facts every stage agrees on.
 *
 * Rows of src/defs/ops.def. Symbols (docs/shapes.md): s sequence, b micro-batch, n = b*s tokens,
 * h hidden, a query heads, g KV groups, d head dim, f FFN width, V vocabulary. Token-major
 * layout: row i_b * s + i_s.
 */
#ifndef RECOMPUTE_OP_H
#define RECOMPUTE_OP_H

#include <recompute/error.h>

RC_EXTERN_C_BEGIN

typedef enum rc_dtype {
    RC_F32,
    RC_BF16,
    RC_F16,
    RC_U8,
    RC_I32,
    RC_I64,
    RC_DTYPE_COUNT
} rc_dtype;

/* Bytes of an element, and "f32", "bf16", ...; `dtype` is below RC_DTYPE_COUNT. */
RC_API int64_t rc_dtype_bytes(rc_dtype dtype);
RC_API const char *rc_dtype_name(rc_dtype dtype);

typedef enum rc_op_kind {
#define RC_OP(name, help) RC_OP_##name,
#include "defs/ops.def" /* installed beside this header */
#undef RC_OP
    RC_OP_COUNT,
    /* a caller's own, with facts of its own: no backend has a kernel for it */
    RC_OP_OTHER = RC_OP_COUNT
} rc_op_kind;

/* source  Hendrycks and Gimpel 2016 (GELU and its tanh form), Elfwing et al. 2018 (SiLU), So et al. 2021
 *         (squared ReLU) */
typedef enum rc_act {
    RC_ACT_GELU_TANH, /* 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) */
    RC_ACT_GELU,      /* 0.5 x (1 + erf(x / sqrt 2)) */
    RC_ACT_SILU,
    RC_ACT_RELU,
    RC_ACT_SQUARED_RELU
} rc_act;

/* How the turning rates of rope are scaled for sequences longer than the model was trained on. Dynamic
 * scaling is none of these: it chooses another rotary_base for the length.
 * source  transformers modeling_rope_utils.py; Peng et al. 2023 (YARN) */
typedef enum rc_rope_kind {
    RC_ROPE_PLAIN,
    RC_ROPE_LINEAR,
    RC_ROPE_LLAMA3,
    RC_ROPE_YARN
} rc_rope_kind;

typedef struct rc_rope_scaling {
    rc_rope_kind kind;
    /* new length by old length; not of PLAIN, as the rest */
    double factor;
    /* LLAMA3, YARN: positions it was trained on */
    double old_length;
    /* Turns within old_length from which on a rate stays (most) and below which it is divided by
     * the factor (least): LLAMA3's high and low frequency factors, YARN's beta_fast and beta_slow. */
    double least_turns, most_turns;
    /* YARN: the ramp between them begins and ends at whole pairs */
    bool is_rounded;
    /* YARN: cos and sin are multiplied by it */
    double amplitude;
} rc_rope_scaling;

/* The ranks that exchange with each other. ORDER of the names in src/op/op.c.
 * source  megatron/core/parallel_state.py */
typedef enum rc_comm_group {
    RC_GROUP_NONE,
    RC_GROUP_TP,
    RC_GROUP_CP,
    RC_GROUP_EP,
    RC_GROUP_ETP,
    RC_GROUP_DP,
    RC_GROUP_PP,
    /* ep and etp together: all ranks that share out the experts of a layer */
    RC_GROUP_EP_ETP,
    RC_GROUP_COUNT
} rc_comm_group;

/* "tp", "cp", ...; "none" */
RC_API const char *rc_comm_group_name(rc_comm_group group);

/* ORDER of the names in src/op/op.c. */
typedef enum rc_comm_kind {
    RC_COMM_NONE,
    RC_COMM_ALL_REDUCE,
    RC_COMM_ALL_GATHER,
    RC_COMM_REDUCE_SCATTER,
    RC_COMM_SEND,
    RC_COMM_RECV,
    RC_COMM_ALL_TO_ALL,
    RC_COMM_COUNT
} rc_comm_kind;

/* "all-reduce", "all-gather", ...; "none" */
RC_API const char *rc_comm_kind_name(rc_comm_kind kind);

/* Operand slots, in this order. "[]" optional. A gradient has its operand's shape.
 *
 *   op                in                                     out                     grads of in
 *   embedding         tokens i32 [n], w_token [V,h],         y [n,h]                 1, 2
 *                     [w_position [max s,h]]
 *   layernorm         x [n,h], w [h], b [h]                  y, mean [n], rstd [n]   0, 1, 2
 *   rmsnorm           x [n,groups,d], w [d]                  y, rstd [n,groups]      0, 1
 *   linear            x [n,in], w [out,in], [b [out]]        y [n,out]               0, 1, 2
 *   rope              x [n,groups,d] (in place)              y                       0
 *   attention         q [n,a,d], k, v [n,g,d]                o [n,a,d], lse [b,a,s]  0, 1, 2
 *   attn_scores       q [n,a,d], k [n,g,d]                   scores [b,a,s,s]        0, 1
 *   softmax           scores (in place)                      p [b,a,s,s]             0
 *   dropout           x                                      y                       0
 *   attn_context      p [b,a,s,s], v [n,g,d]                 o [n,a,d]               0, 1
 *   bias_dropout_add  x [n,h], residual [n,h], [b [h]]       y [n,h]                 0, 1, 2
 *   activation        x [n,f] or [n,2f] (gate | up)          y [n,f]                 0
 *   cross_entropy     logits [n,V], targets i32 [n]          loss f32 [1], lse [n]   0
 *   contiguous        x [n,h] (a view)                       y [n,h]                 0
 *   ring_attention    q [n,a,d], k, v [n,g,d]                o [n,a,d], kv [n,2g,d], 0, 1, 2
 *                                                            lse [b,a,s], [kvs, os]
 *   all_gather        x [n,h]                                y [N,h]                 0
 *   reduce_scatter    x [N,h]                                y [n,h]                 0
 *   all_reduce        x [n,h] (in place)                     y                       0
 *   gather_rows       x [n,h]                                y [N,h]                 0
 *   gather_columns    x [N,h/t]                              y [N,h]                 0
 *   scatter_rows      x [N,h] (in place)                     y [n,h]                 0
 *   all_to_all        x [n,h]                                y [m,h]                 0
 *   multiply          x, z [n,h]                             y [n,h]                 0, 1
 *   scale_rows        x [n,h], w [n]                         y [n,h]                 0, 1
 *   gate              x [n,E]                                y [n,E]                 0
 *   normalize_rows    x [n,k]                                y [n,k], sum [n]        0
 *   topk              x [n,E]                                y [n,k], indices i64,   0
 *                                                            [mask u8 [n,E]]
 *   scatter_probs     x [n,k], indices i64 [n,k]             y [n,E]                 0
 *   mask_probs        x [n,E]                                y [n,E], mask u8 [n,E]  0
 *   fused_router      logits [n,E]                           y [n,E], scores f32,    0
 *                                                            map u8 [n,E]
 *   z_loss            logits [n,E] (in place)                y, lse [n], loss [1]    0
 *   aux_loss          probs [n,E] (in place), scores [n,E]   y, counts i64 [E],      0, 1
 *                                                            loss [1]
 *   permute           x [n,h], [order]                       y [m,h], [order]        0
 *   permute_probs     x [n,E] or [m], [order]                y [m], [order]          0
 *   unpermute         x [m,h], [order]                       y [n,h]                 0
 *   weighted_activation  x [n,f] or [n,2f], w [n]            y [n,f]                 0, 1
 *   concat_heads      x [n,a,d], z [n,a,dr] or [n,dr]        y [n,a,d+dr]            0, 1
 *   resize_heads      x [n,a,d]                              y [n,a,dv]              0
 *   send              x [n,h]                                                        0
 *   recv                                                     y [n,h]
 */
enum { RC_OP_MAX_IN = 8, RC_OP_MAX_OUT = 8 };

/* Also agreed on:
 *   - one-row operands ([n], [b,a,s], [b,a,s,s], dropout's x) are contiguous; their ld is not read
 *   - the gradient of w_position has rows 0..s; rows beyond are not touched
 *   - dropout of attention decides on query i and key j of head t of sequence r by element
 *     ((r * a + t) * s + i) * (s rounded up to 4) + j of its stream, so where s is a multiple of 4
 *     the dropout op draws the same mask over [b,a,s,s]
 *   - a target below 0 is masked: no loss, no gradient, not counted in the mean
 *
 * Attributes; only those an op's row names are set, the others are 0. */
typedef struct rc_op_attr {
    /* n = b*s */
    int64_t s, b, n;
    /* width of a row: of a norm (per group), embedding, bias_dropout_add */
    int64_t h;
    /* norms over heads, rope: groups per token; else 1 */
    int64_t groups;
    /* linear */
    int64_t in, out;
    /* attention family, rope */
    int64_t a, g, d;
    /* attention: width of a head of values; 0: d */
    int64_t dv;
    /* activation: width of y */
    int64_t f;
    /* embedding, cross_entropy */
    int64_t V;
    /* dropout: elements */
    int64_t n_elem;
    /* rope: leading elements of each head that rotate */
    int64_t rotary_dim;
    /* rope */
    double rotary_base;
    rc_rope_scaling rope_scaling;
    /* attention, ring_attention: context-parallel ranks, over which the keys lie; 0 as 1 */
    int64_t n_ranks;
    /* who exchanges: of the ops that do, and of linear's backward, which sums the gradient of x; else NONE */
    rc_comm_group group;
    bool is_rotary_interleaved;
    bool is_causal;
    /* activation */
    bool is_gated;
    rc_act act;
    /* norms */
    double eps;
    /* norms: y = u (w + w_shift); 1 where weights are stored around 0 */
    double w_shift;
    /* attention scores */
    double scale;
    /* dropout probability */
    double p;
    /* cross_entropy backward: dlogits *= loss_scale (1 / micro-batches) */
    double loss_scale;
    /* which stream of draws: unique per (layer, op) of the model */
    uint32_t random_id;
} rc_op_attr;

typedef struct rc_op_facts {
    const char *name;
    /* at most; optional operands may be absent */
    int n_in, n_out;
    /* bit i: backward reads in[i] */
    uint32_t needs_in;
    /* bit i: backward reads out[i] */
    uint32_t needs_out;
    /* bit i: backward writes the gradient of in[i] */
    uint32_t grads;
    /* bit i: out[i] may stand in the storage of in[i] */
    uint32_t in_place;
    /* bit i: the gradient of in[i] may stand in the storage of the gradient of out[0], where nothing
     * else reads in[i]; rope and softmax transform it in place */
    uint32_t grad_in_place;
    /* Bit i: the gradient of in[i] is that of out[0], unchanged, and may be the same bytes though
     * others add to it later: who else reads in[i] does so before what computes the other operands, so
     * backward comes to it after them. The second holds where attr.p is 0. */
    uint32_t passes_grad, passes_undropped_grad;
    /* bit i: the gradient of in[i] may stand in the storage of in[i] itself, which nobody reads again */
    uint32_t grad_over_input;
    /* backward begins here: it needs the gradient of no output */
    bool seeds_grad;
    /* bit i: the kernel itself may add the gradient of the weight in[i] to what is there, so that none stands alone */
    uint32_t adds_grad;
    /* Out[0] goes after forward whatever the setting, and backward has it computed again: it is the module
     * that reads it who does so. */
    bool drops_output;
    /* what is sent over attr.group, where that is one */
    rc_comm_kind fwd_comm, bwd_comm;
    int64_t (*fwd_flops)(const rc_op_attr *attr);
    /* incl. scores a fused backward redoes */
    int64_t (*bwd_flops)(const rc_op_attr *attr);
    /* Scratch bytes of a kernel at a thread count; NULL is none. */
    int64_t (*fwd_scratch_bytes)(const rc_op_attr *attr, rc_dtype dtype, int n_threads);
    int64_t (*bwd_scratch_bytes)(const rc_op_attr *attr, rc_dtype dtype, int n_threads);
    /* Bytes at most that the math library works in during one call, behind the kernel's own scratch;
     * NULL is none. Measured of the library, not promised by it: exec counts what it asks for. */
    int64_t (*library_bytes)(const rc_op_attr *attr, int n_threads);
    /* relative, of the kernel in f32 against the naive double version */
    double tolerance;
} rc_op_facts;

/* The facts of a row of ops.def; `kind` is below RC_OP_COUNT. */
RC_API const rc_op_facts *rc_op_find(rc_op_kind kind);

typedef struct rc_op_scratch {
    int64_t own_bytes, library_bytes;
} rc_op_scratch;

/* The scratch of one call at a thread count: the kernel's own, rounded up to RC_ALIGN, and behind it the
 * math library's, which is measured, not promised by it. */
RC_API rc_op_scratch rc_op_scratch_of(const rc_op_facts *facts, const rc_op_attr *attr,
                                      rc_dtype dtype, int n_threads, bool is_backward);

RC_EXTERN_C_END

#endif
