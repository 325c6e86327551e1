/* operands.h — the operands of one op's case, in guarded memory, for the tests of all ops. */
#ifndef TESTS_OPS_OPERANDS_H
#define TESTS_OPS_OPERANDS_H

#include "exec/kernel.h"

#include <recompute/arena.h>

typedef struct op_case {
    const char *name;
    rc_op_kind kind;
    rc_op_attr attr;
    int64_t gap;      /* elements between rows of a matrix: a view of a wider buffer */
    uint32_t absent;  /* bit i: in[i] is not given */
    bool avoids_zero; /* inputs stay off the kink of relu */
    double magnitude; /* of the inputs; 0 means 1 */
} op_case;

/* The cases of all ops; those of one op stand together. */
extern const op_case op_cases[];
extern const int n_op_cases;

/* One operand with guards before, behind and between its rows. */
typedef struct box {
    rc_operand op;
    int64_t rows, width;
    float *store;
    int64_t n_store;
    char name[16];
} box;

/* Everything a call of the case touches. */
typedef struct op_set {
    const op_case *at;
    box in[RC_OP_MAX_IN], out[RC_OP_MAX_OUT], d_in[RC_OP_MAX_IN], d_out;
    unsigned char *scratch;
    int64_t scratch_bytes;
} op_set;

/* All operands of a case with the case's own pseudo-random values; the same for the same case. */
op_set set_make(const op_case *at, rc_arena *mem);
/* A deep copy of the values of `from`; shapes must agree. */
void set_copy(op_set *to, const op_set *from);
/* Gradients add to what is there, or overwrite it. */
void set_is_added(op_set *set, bool is_added);

void run_fwd(const rc_backend *backend, op_set *set, int n_threads);
void run_bwd(const rc_backend *backend, op_set *set, int n_threads);

/* True when guards of all operands and of the scratch hold what they were filled with. */
bool set_guards_hold(const op_set *set);
/* Largest |a - b|, relative to the largest |b|. */
double box_difference(const box *a, const box *b);
bool box_same_bits(const box *a, const box *b);
double box_get(const box *a, int64_t i); /* i-th element, row by row */
void box_add(box *a, int64_t i, double x);
int64_t box_count(const box *a);

#endif
