/* say.h — a firing of a rule as a finding: position, values, what to write instead. */
#ifndef RC_CHECK_SAY_H
#define RC_CHECK_SAY_H

#include "base/text.h"
#include "check/checking.h"

/* The rule's level; a warning where a fragment of a config leaves unset what the rule reads. */
rc_level rc_say_level(const rc_checking *checking, const rc_hit *hit);
/* Does the input set any of the rule's fields? */
bool rc_say_is_given(const rc_checking *checking, rc_rule rule);
/* A value as one writes it: null, 4, [a, b]. */
RC_MUST_CHECK
rc_code rc_say_value(rc_text *text, const rc_doc *value, rc_error *err);
/* The settings of a fix, in the tongue of the framework; `cfg` may be NULL: then no section of Bridge
 * is known to win over a setting's own key. */
RC_MUST_CHECK
rc_code rc_say_settings(const rc_doc *fix, const rc_config *cfg, rc_framework framework,
                        const char *between, rc_text *text, rc_error *err);
RC_MUST_CHECK
rc_code rc_say_finding(const rc_checking *checking, const rc_hit *hit, rc_finding *out,
                       const rc_doc **fix, rc_error *err);

#endif
