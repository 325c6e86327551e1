/* say.h — a firing of a rule as a finding: position, values, what to write instead.
 *
 * above  checking.h
 */
#ifndef RC_CHECK_SAY_H
#define RC_CHECK_SAY_H

#include "check/checking.h"

/* The rule's level; a warning where a fragment of a config leaves unset what the rule reads. */
rc_level rc_say_level(const rc_checking *checking, const rc_hit *hit);
/* Does the input set any of the rule's fields? */
bool rc_say_is_given(const rc_checking *checking, rc_rule rule);
RC_MUST_CHECK
rc_code rc_say_finding(const rc_checking *checking, const rc_hit *hit, rc_finding *out,
                       const rc_doc **fix, rc_error *err);

#endif
