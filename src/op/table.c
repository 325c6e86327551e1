/* op/table.c — the facts of every row of ops.def. */
#include "op/facts.h"

static const rc_op_facts *const table[RC_OP_COUNT] = {
#define RC_OP(name, help) [RC_OP_##name] = &rc_op_##name,
#include "defs/ops.def"
#undef RC_OP
};

const rc_op_facts *rc_op_find(rc_op_kind kind)
{
    return table[kind];
}
