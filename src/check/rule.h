/* rule.h — the table of rules: rows of rules.def. */
#ifndef RC_CHECK_RULE_H
#define RC_CHECK_RULE_H

#include <recompute/check.h>

/* Position of the fix part behind " | " in a row's `fix`, and helpers for the table's readers. */
typedef enum rc_rule {
#define RC_RULE(id, layer, level, range, fields, raises, reason, fix) RC_RULE_##id,
#include "defs/rules.def"
#undef RC_RULE
    RC_RULE_COUNT
} rc_rule;

const rc_rule_facts *rc_rule_at(rc_rule rule);

#endif
