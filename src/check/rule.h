/* rule.h — the table of rules: rows of rules.def, with their words.
 *
 * above  rule_lists.h
 */
#ifndef RC_CHECK_RULE_H
#define RC_CHECK_RULE_H

#include "check/rule_lists.h"

#include <recompute/check.h>

const rc_rule_facts *rc_rule_at(rc_rule rule);

#endif
