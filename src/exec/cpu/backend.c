/* backend.c — the CPU backend's table. */
#include "exec/cpu/kernels.h"

const rc_backend rc_backend_cpu = {
    .name = "cpu",
#define RC_OP_PRICED(name, help) /* no kernel */
#define RC_OP(name, help)                                                                      \
    .fwd[RC_OP_##name] = rc_cpu_##name##_fwd, .bwd[RC_OP_##name] = rc_cpu_##name##_bwd,
#include "defs/ops.def"
#undef RC_OP
};
