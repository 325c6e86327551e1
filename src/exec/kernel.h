/* kernel.h — what the executor hands a kernel, and the table a backend fills.
 *
 * A kernel is a pure function of its call: the same call gives the same bits at the same thread
 * count. Shapes were verified before; only the math library can fail, and says so in call->fault.
 */
#ifndef RC_EXEC_KERNEL_H
#define RC_EXEC_KERNEL_H

#include <recompute/op.h>

/* One operand. Matrices are rows of `ld` elements; a view of a wider buffer has ld > its width
 * (query, key and value inside the QKV product's output). */
typedef struct rc_operand {
    void *at; /* NULL when absent */
    int64_t ld;
    rc_dtype dtype;
    bool is_added; /* a gradient: add to what is there, else overwrite */
} rc_operand;

/* What can go wrong inside a kernel: the math library, and what watching finds (watch.h). */
typedef enum rc_fault_kind {
    RC_FAULT_NONE,
    RC_FAULT_LIBRARY_MEMORY, /* the library found no memory */
    RC_FAULT_LIBRARY,        /* it refused for another reason */
    RC_FAULT_LIBRARY_KEEPS,  /* it did not give its working memory back */
    RC_FAULT_PRODUCT,        /* a product is not the product of its operands */
    RC_FAULT_UNWRITTEN       /* elements of an output were not written */
} rc_fault_kind;

/* The first fault of a run stands; threads of one kernel may note theirs together. */
typedef struct rc_fault {
    _Atomic int kind;
} rc_fault;

void rc_fault_note(rc_fault *fault, rc_fault_kind kind);
/* "finds no memory", after the name of the library */
const char *rc_fault_text(rc_fault_kind kind);

typedef struct rc_call {
    const rc_op_attr *attr;
    rc_operand in[RC_OP_MAX_IN], out[RC_OP_MAX_OUT];
    rc_operand d_in[RC_OP_MAX_IN]; /* backward: gradients to write; at NULL: not wanted */
    rc_operand d_out;              /* backward: gradient of out[0]; absent for cross_entropy */
    void *scratch;                 /* what scratch_bytes asked for, RC_ALIGN aligned */
    int n_threads;
    /* Key of the random draws (Philox4x32-10): element e of op `attr->random_id` in micro-batch
     * `draw` of a run with `seed`. A recompute passes the same numbers again. */
    uint64_t seed;
    uint64_t draw;   /* samples of the run before this micro-batch */
    rc_fault *fault; /* where a kernel notes what went wrong */
    /* Room for the checks of the products; NULL: they are not checked. Where threads have products of
     * their own, check_room doubles are each one's. */
    double *check;
    int64_t check_room;
    int level; /* of OpenMP's regions around the call: a caller may have one of its own */
} rc_call;

typedef void (*rc_kernel)(const rc_call *call);

/* One row per op, in the order of ops.def; NULL where the backend has no kernel. */
typedef struct rc_backend {
    const char *name;
    rc_kernel fwd[RC_OP_COUNT], bwd[RC_OP_COUNT];
} rc_backend;

extern const rc_backend rc_backend_cpu;
extern const rc_backend
    rc_backend_naive; /* plain loops, double accumulation: what tests trust */

#endif
