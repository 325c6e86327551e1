/* backend.c — the plain backend's table. */
#include "exec/naive/naive.h"

const rc_backend rc_backend_naive = {
    .name = "naive",
#define RC_OP_PRICED(name, help) /* no kernel */
#define RC_OP(name, help)                                                                      \
    .fwd[RC_OP_##name] = rc_naive_##name##_fwd, .bwd[RC_OP_##name] = rc_naive_##name##_bwd,
#include "defs/ops.def"
#undef RC_OP
};
