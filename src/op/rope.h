/* rope.h — how fast each pair of a head turns: the one formula that facts, kernels and tests share. */
#ifndef RC_OP_ROPE_H
#define RC_OP_ROPE_H

#include <recompute/op.h>

/**
 * Radians by which pair i turns from one position to the next, for 0 <= i < rotary_dim / 2.
 *
 * takes   attr  of a rope op: rotary_dim, rotary_base, rope_scaling
 * source  Su et al. 2021, section 3.4.2: base^(-2i/dim); LINEAR: Chen et al. 2023, equation 4;
 *         LLAMA3: Grattafiori et al. 2024 and the reference code of Llama 3.1 (apply_scaling);
 *         YARN: Peng et al. 2023, section 3.2 (NTK by parts), whose ramp is linear in the pair's
 *         index as in the authors' code, Megatron Core's and transformers'
 */
double rc_rope_rate(const rc_op_attr *attr, int64_t i);

/* What cos and sin are multiplied by: 1 but for YARN (Peng et al. 2023, equation 22). */
double rc_rope_amplitude(const rc_op_attr *attr);

#endif
