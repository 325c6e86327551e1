/* need.h — settings that a layout cannot do without, each refused at its place (layout). */
#ifndef RC_LAYOUT_NEED_H
#define RC_LAYOUT_NEED_H

#include <recompute/config.h>

/* A setting of type INT that is given, else `if_null`.
 * errors  RC_E_INPUT below 1, RC_E_RANGE past 2^31 - 1 */
RC_MUST_CHECK
rc_code rc_layout_need_size(const rc_config *cfg, rc_field field, int64_t if_null, int64_t *out,
                            rc_error *err);

/* One number beside another, with the words that name it. */
typedef struct rc_share {
    int64_t whole, part;
    const char *part_name;
} rc_share;

/* `whole`, which `field` decides, is a multiple of `part`, at least 1.
 * errors  RC_E_INPUT at the field */
RC_MUST_CHECK
rc_code rc_layout_need_multiple(const rc_config *cfg, rc_field field, rc_share share,
                                rc_error *err);

/* Fails: `a` and `b` are not set together.
 * errors  RC_E_INPUT at `b` */
RC_MUST_CHECK
rc_code rc_layout_refuse_pair(const rc_config *cfg, rc_field a, rc_field b, rc_error *err);

/* Is a switch on that is no field of ours? `key` as in graph_lacks.def.
 * errors  RC_E_MEMORY */
RC_MUST_CHECK
rc_code rc_layout_find_switch(const rc_config *cfg, const char *key, bool *out, rc_error *err);

static inline bool rc_layout_is_set(const rc_config *cfg, rc_field field)
{
    return !cfg->origin[field].is_null;
}

#endif
