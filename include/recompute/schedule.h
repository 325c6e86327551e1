/* schedule.h — rc_schedule: every instruction of one optimizer step of one rank, the buffers it
 * touches, and each buffer's place in one arena.
 *
 * The step is: zero the gradients; for every micro-batch the instructions [micro_first, micro_last];
 * norm of the gradients; update. Recompute is a rewriting of the list: discarded values get a DISCARD
 * after their last forward use and a RECOMPUTE before the first backward instruction that reads
 * them. Kernels know nothing of it. `cost` prices the list and `exec` runs it, so what is predicted
 * is what is used.
 */
#ifndef RECOMPUTE_SCHEDULE_H
#define RECOMPUTE_SCHEDULE_H

#include <recompute/policy.h>

RC_EXTERN_C_BEGIN

typedef enum rc_instr_kind {
    RC_INSTR_ZERO, /* weight gradients = 0 */
    RC_INSTR_FORWARD,
    RC_INSTR_DISCARD,   /* `tensor`'s storage goes */
    RC_INSTR_RECOMPUTE, /* a forward op again */
    RC_INSTR_BACKWARD,
    RC_INSTR_NORM,  /* global norm of the gradients */
    RC_INSTR_UPDATE /* clip and AdamW */
} rc_instr_kind;

typedef enum rc_category {
    RC_CATEGORY_WEIGHTS,
    RC_CATEGORY_GRADIENTS, /* of weights */
    RC_CATEGORY_OPTIMIZER, /* master weights and moments */
    RC_CATEGORY_INPUTS,    /* tokens, targets, the loss */
    RC_CATEGORY_ACTIVATIONS,
    RC_CATEGORY_RECOMPUTED,
    RC_CATEGORY_ACTIVATION_GRADIENTS,
    RC_CATEGORY_SCRATCH,
    RC_CATEGORY_COUNT
} rc_category;

/* "weights", "activation gradients", ... */
RC_API const char *rc_category_name(rc_category category);

/* One live range of one storage. A discarded tensor has two buffers: forward, and recompute to
 * backward. */
typedef struct rc_buffer {
    rc_category category;
    /* whose storage or gradient; RC_NO_TENSOR for scratch */
    int tensor;
    /* of its elements; RC_U8 for scratch */
    rc_dtype dtype;
    /* instructions that touch it first and last */
    int first, last;
    /* lives across steps */
    bool is_persistent;
    /* what kernels may touch, not rounded */
    int64_t bytes;
    /* bytes from the arena's start, a multiple of RC_ALIGN */
    int64_t offset;
} rc_buffer;

enum { RC_NO_BUFFER = -1, RC_NO_TENSOR = -1 };
/* Partial sums of the gradients' norm; the kernel asserts that they fit. */
enum { RC_NORM_SCRATCH_BYTES = 1024 };

/* An operand: where in which buffer. */
typedef struct rc_ref {
    /* RC_NO_BUFFER: absent */
    int buffer;
    /* elements from the buffer's start */
    int64_t offset;
    int64_t ld;
    rc_dtype dtype;
    /* a gradient that is added to */
    bool is_added;
} rc_ref;

typedef struct rc_instr {
    rc_instr_kind kind;
    /* FORWARD RECOMPUTE BACKWARD */
    int op;
    /* DISCARD */
    int tensor;
    /* of `op`; 0 of the instructions without one */
    int n_in, n_out;
    /* of its operands in the schedule's refs: in [n_in], out [n_out], gradients of in [n_in] */
    int first_ref;
    /* the gradient of out[0] */
    rc_ref d_out;
    /* buffer or RC_NO_BUFFER */
    int scratch;
    int64_t flops;
    /* alive while it runs, persistent included, each rounded up to RC_ALIGN */
    int64_t live_bytes;
} rc_instr;

/* The buffers of one weight. */
typedef struct rc_param {
    int tensor;
    /* by role; RC_NO_BUFFER where the graph's layout has none */
    int buffer[RC_PARAM_ROLE_COUNT];
} rc_param;

typedef struct rc_schedule {
    const rc_policy *policy;
    const rc_graph *graph;
    int n_threads;
    rc_instr *instrs;
    int n_instrs;
    size_t n_instrs_room;
    rc_ref *refs;
    int n_refs;
    size_t n_refs_room;
    /* repeated for every micro-batch */
    int micro_first, micro_last;
    /* the loss; what is alive after it is what forward retains */
    int forward_last;
    rc_buffer *buffers;
    int n_buffers;
    size_t n_buffers_room;
    rc_param *params;
    int n_params;
    /* buffers */
    int tokens, targets, loss;

    /* weights, gradients, optimizer state, inputs */
    int64_t persistent_bytes;
    /* the rest of the arena, as placed */
    int64_t step_bytes;
    /* persistent + step: what a run takes, and the predicted peak */
    int64_t arena_bytes;
    /* no placement can take less: the largest live_bytes */
    int64_t bound_bytes;
    /* alive from forward to backward, persistent excluded */
    int64_t retained_bytes;
    /* where live_bytes is largest */
    int peak_instr;
    /* of one micro-batch */
    int64_t fwd_flops, bwd_flops, recompute_flops;
    int64_t recompute_moved_bytes;
} rc_schedule;

/* Bytes that a buffer takes in the arena: its own, rounded up to RC_ALIGN. */
RC_API int64_t rc_buffer_room(const rc_buffer *buffer);

/* The operands of an instruction: [n_in], [n_out], and the gradients of the first, [n_in]. */
static inline const rc_ref *rc_instr_in(const rc_schedule *schedule, const rc_instr *instr)
{
    return schedule->refs + instr->first_ref;
}

static inline const rc_ref *rc_instr_out(const rc_schedule *schedule, const rc_instr *instr)
{
    return rc_instr_in(schedule, instr) + instr->n_in;
}

static inline const rc_ref *rc_instr_d_in(const rc_schedule *schedule, const rc_instr *instr)
{
    return rc_instr_out(schedule, instr) + instr->n_out;
}

/**
 * The instruction list of a policy, with every buffer placed.
 *
 * takes   n_threads  kernels' scratch depends on it
 * gives   *out       arena_bytes is within a few percent of bound_bytes; both are reported
 * errors  RC_E_RANGE when the arena passes 2^63-1 bytes
 */
RC_MUST_CHECK
RC_API rc_code rc_schedule_make(const rc_policy *policy, int n_threads, rc_arena *mem,
                                rc_schedule **out, rc_error *err);

/* Its invariants: no two buffers alive at one instruction share a byte; every operand is alive and was
 * written.
 * errors  RC_E_BUG naming the instruction, RC_E_MEMORY */
RC_MUST_CHECK
RC_API rc_code rc_schedule_verify(const rc_schedule *schedule, rc_arena *mem, rc_error *err);
/* One stable text form, for --dump and tests. */
RC_API void rc_schedule_print(const rc_schedule *schedule, FILE *to);

/* For people and programs.
 *
 * gives   *out  a row per instruction
 * errors  RC_E_MEMORY */
RC_MUST_CHECK
RC_API rc_code rc_schedule_table(const rc_schedule *schedule, rc_arena *mem, rc_table **out,
                                 rc_error *err);
/* "forward", "recompute", ... */
RC_API const char *rc_instr_kind_name(rc_instr_kind kind);

RC_EXTERN_C_END

#endif
