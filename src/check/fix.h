/* fix.h — the machine part of a rule's fix: which settings to change to which values.
 *
 * above  checking.h
 */
#ifndef RC_CHECK_FIX_H
#define RC_CHECK_FIX_H

#include "check/checking.h"

/* A map from a setting to its new value, in the order of the rule's changes; NULL where it has none. */
RC_MUST_CHECK
rc_code rc_fix_make(const rc_checking *checking, const rc_hit *hit, const rc_doc **out,
                    rc_error *err);

/* The words behind them, or NULL. */
const char *rc_fix_words(const rc_checking *checking, rc_rule rule);

#endif
