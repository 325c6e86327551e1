/* say_fix.h — what to write instead, as the user of a framework writes it.
 *
 * above  say_value.h
 */
#ifndef RC_CHECK_SAY_FIX_H
#define RC_CHECK_SAY_FIX_H

#include "base/text.h"

#include <recompute/config.h>

/* The settings of a fix; `cfg` may be NULL: then no section of Bridge is known to win over a setting's own
 * key. */
RC_MUST_CHECK
rc_code rc_say_settings(const rc_doc *fix, const rc_config *cfg, rc_framework framework,
                        const char *between, rc_text *text, rc_error *err);

#endif
