/* rule_lists.c — the columns of rules.def and rule_words.def that are lists. */
#include "check/rule_lists.h"

#include <recompute/check.h>

enum { MOST_CHANGES = 4 };

#define NONE
#define F(name) RC_CHECKED_##name,
#define SET(name, value) {RC_CHECKED_##name, '=', value},
#define ADD(name, item) {RC_CHECKED_##name, '+', item},
#define DROP(name, item) {RC_CHECKED_##name, '-', item},
#define DROP_ITEM(name) {RC_CHECKED_##name, '-', NULL},
/* The end of the list carries the words. */
#define HINT(words) {RC_CHECKED_COUNT, '\0', words},
#define ALSO(words) HINT(words)
#define END                                                                                    \
    {                                                                                          \
        RC_CHECKED_COUNT, '\0', NULL                                                           \
    }

static const rc_checked_field fields_of[RC_RULE_COUNT][RC_RULE_SETTINGS_ROOM] = {
#define RC_RULE(id, layer, level, effect, releases, fields) {fields RC_CHECKED_COUNT},
#include "defs/rules.def"
#undef RC_RULE
};

typedef rc_change changes[MOST_CHANGES + 2];

static const changes changes_of[RC_RULE_COUNT] = {
#define RC_RULE_WORDS(id, where, why, instead) [RC_RULE_##id] = {instead END},
#define RC_RULE_DENSE(id, instead)
#include "defs/rule_words.def"
#undef RC_RULE_WORDS
#undef RC_RULE_DENSE
};

static const struct {
    rc_rule rule;
    changes changes;
} of_dense[] = {
#define RC_RULE_WORDS(id, where, why, instead)
#define RC_RULE_DENSE(id, instead) {RC_RULE_##id, {instead END}},
#include "defs/rule_words.def"
#undef RC_RULE_WORDS
#undef RC_RULE_DENSE
};

const rc_checked_field *rc_rule_fields(rc_rule rule)
{
    return fields_of[rule];
}

const rc_change *rc_rule_changes(rc_rule rule, bool has_experts)
{
    for (size_t i = 0; i < sizeof of_dense / sizeof *of_dense && !has_experts; i++)
        if (of_dense[i].rule == rule)
            return of_dense[i].changes;
    return changes_of[rule];
}

const char *rc_rule_words(rc_rule rule, bool has_experts)
{
    const rc_change *at = rc_rule_changes(rule, has_experts);
    while (at->field != RC_CHECKED_COUNT)
        at++;
    return at->value;
}
