/* embedding.c — rows of a table by token. Backward adds rows back by token. */
#include "op/facts.h"

const rc_op_facts rc_op_embedding = {
    .name = "embedding",
    .n_in = 3,
    .n_out = 1,
    .needs_in = RC_BIT(0),
    .grads = RC_BIT(1) | RC_BIT(2),
    .fwd_flops = rc_op_no_flops,
    .bwd_flops = rc_op_no_flops,
    .tolerance = 2e-6,
};
