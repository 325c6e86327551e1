/* naive.h — the plain backend: the formula of each op in loops, every sum in double. What the fast
 * kernels are tested against; it has no threads, no scratch and no block sizes.
 */
#ifndef RC_EXEC_NAIVE_NAIVE_H
#define RC_EXEC_NAIVE_NAIVE_H

#include "exec/kernel.h"

#define RC_OP_PRICED(name, help) /* no kernel */
#define RC_OP(name, help)                                                                      \
    void rc_naive_##name##_fwd(const rc_call *call);                                           \
    void rc_naive_##name##_bwd(const rc_call *call);
#include "defs/ops.def"
#undef RC_OP

/* Element (row, col) of an f32 operand. */
static inline double rc_get(const rc_operand *x, int64_t row, int64_t col)
{
    return (double)((const float *)x->at)[row * x->ld + col];
}

static inline int64_t rc_get_index(const rc_operand *x, int64_t i)
{
    return ((const int32_t *)x->at)[i];
}

/* Writes an output, or a gradient: adds where the operand says so, does nothing where it is absent. */
static inline void rc_set(const rc_operand *x, int64_t row, int64_t col, double value)
{
    if (!x->at)
        return;
    float *to = (float *)x->at + row * x->ld + col;
    *to = (float)(x->is_added ? (double)*to + value : value);
}

/* keep / (1 - p) of element e of the call's op */
double rc_naive_keep(const rc_call *call, int64_t e);

#endif
