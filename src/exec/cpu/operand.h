/* operand.h — how CPU kernels reach their operands.
 *
 * Every kernel is f32 today; a kernel for another dtype branches where it calls rc_f32.
 */
#ifndef RC_EXEC_CPU_OPERAND_H
#define RC_EXEC_CPU_OPERAND_H

#include "base/simd.h"
#include "exec/kernel.h"

RC_INLINE float *rc_f32(const rc_operand *x)
{
    RC_ASSERT(!x->at || x->dtype == RC_F32);
    return x->at;
}

RC_INLINE float *rc_f32_row(const rc_operand *x, int64_t row)
{
    return rc_f32(x) + row * x->ld;
}

RC_INLINE const int32_t *rc_i32(const rc_operand *x)
{
    RC_ASSERT(x->dtype == RC_I32);
    return x->at;
}

/* Adds to a gradient or overwrites it; `is_added` is the same for a whole loop, which the
 * compiler then splits in two. */
RC_INLINE void rc_put(float *to, float value, bool is_added)
{
    *to = is_added ? *to + value : value;
}

RC_INLINE int64_t rc_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

RC_INLINE int64_t rc_ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

#endif
