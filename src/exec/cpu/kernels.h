/* kernels.h — the CPU backend's kernels: rc_cpu_OP_fwd and rc_cpu_OP_bwd for each row of ops.def. */
#ifndef RC_EXEC_CPU_KERNELS_H
#define RC_EXEC_CPU_KERNELS_H

#include "exec/kernel.h"

#define RC_OP_PRICED(name, help) /* no kernel */
#define RC_OP(name, help)                                                                      \
    void rc_cpu_##name##_fwd(const rc_call *call);                                             \
    void rc_cpu_##name##_bwd(const rc_call *call);
#include "defs/ops.def"
#undef RC_OP

#endif
