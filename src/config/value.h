/* value.h — setting one field of an rc_config from one node. */
#ifndef RC_CONFIG_VALUE_H
#define RC_CONFIG_VALUE_H

#include <recompute/arena.h>
#include <recompute/config.h>

/* Sets the field and its origin. `shown` names the setting in messages: as the user wrote it.
 * errors  RC_E_INPUT at the node when it is not of the field's type; RC_E_RANGE */
RC_MUST_CHECK
rc_code rc_value_set(rc_config *cfg, rc_field field, const rc_doc *node, rc_origin_kind kind,
                     const char *shown, rc_arena *mem, rc_error *err);

/* Sets the field to the default of its row. */
RC_MUST_CHECK
rc_code rc_value_set_default(rc_config *cfg, rc_field field, rc_arena *mem, rc_error *err);

/* The value of an INT field. */
int64_t rc_value_int(const rc_config *cfg, rc_field field);

/* A scalar, enumeration, function or dtype as one word; NULL for lists and other maps. */
const char *rc_value_text(const rc_doc *node);

#endif
