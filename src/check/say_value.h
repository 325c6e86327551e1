/* say_value.h — a value in words.
 *
 * above  nothing of this folder
 */
#ifndef RC_CHECK_SAY_VALUE_H
#define RC_CHECK_SAY_VALUE_H

#include "base/text.h"

#include <recompute/doc.h>

/* A value as one writes it: null, 4, [a, b]. */
RC_MUST_CHECK
rc_code rc_say_value(rc_text *text, const rc_doc *value, rc_error *err);

#endif
