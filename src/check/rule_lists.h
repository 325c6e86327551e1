/* rule_lists.h — the rules by id, and their columns that are lists: the settings at fault, and what to write
 * instead.
 *
 * above  checked.h
 */
#ifndef RC_CHECK_RULE_LISTS_H
#define RC_CHECK_RULE_LISTS_H

#include "check/checked.h"

typedef enum rc_rule {
#define RC_RULE(id, layer, level, effect, releases, fields) RC_RULE_##id,
#include "defs/rules.def"
#undef RC_RULE
    RC_RULE_COUNT
} rc_rule;

/* The settings at fault, most blamed first; RC_CHECKED_COUNT stands behind the last. */
const rc_checked_field *rc_rule_fields(rc_rule rule);

/* One change of a fix. */
typedef struct rc_change {
    rc_checked_field field;
    /* '=' sets the value, '-' takes the item out of the list, '+' adds it */
    char op;
    /* as in YAML; NULL is the list entry at fault */
    const char *value;
} rc_change;

/* What to write instead, to the first whose field is RC_CHECKED_COUNT; of a model with experts, or without. */
const rc_change *rc_rule_changes(rc_rule rule, bool has_experts);
/* Behind the changes, or in their place; NULL where there are none. */
const char *rc_rule_words(rc_rule rule, bool has_experts);

#endif
