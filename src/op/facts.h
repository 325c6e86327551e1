/* facts.h — the facts of each op, rc_op_NAME in src/op/NAME.c, and what they share. */
#ifndef RC_OP_FACTS_H
#define RC_OP_FACTS_H

#include <recompute/op.h>

#define RC_OP(name, help) extern const rc_op_facts rc_op_##name;
#include "defs/ops.def"
#undef RC_OP

#define RC_BIT(i) (UINT32_C(1) << (i))

/* FLOPs count matrix products only, 2 m n k each, as Korthikanti et al. 2022 (appendix A) and
 * Narayanan et al. 2021 do: element-wise ops cost bytes, not FLOPs. */
int64_t rc_op_no_flops(const rc_op_attr *attr);

#endif
