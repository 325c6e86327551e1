/* contiguous.c — a copy out of a wider buffer. Backward copies the gradient back. */
#include "op/facts.h"

const rc_op_facts rc_op_contiguous = {
    .name = "contiguous",
    .n_in = 1,
    .n_out = 1,
    .grads = RC_BIT(0),
    .fwd_flops = rc_op_no_flops,
    .bwd_flops = rc_op_no_flops,
    .tolerance = 0,
};
