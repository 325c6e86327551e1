/* say.h — a firing of a rule as a finding: position, values, what to write instead. */
#ifndef RC_CHECK_SAY_H
#define RC_CHECK_SAY_H

#include "check/core.h"

RC_MUST_CHECK
rc_code rc_say_finding(const rc_core *core, const rc_hit *hit, rc_finding *out, rc_error *err);

#endif
