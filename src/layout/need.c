/* layout/need.c — refuses a size that is none, and what does not divide. */
#include "layout/need.h"

#include "config/asks.h"

#include <inttypes.h>

rc_code rc_layout_need_size(const rc_config *cfg, rc_field field, int64_t if_null, int64_t *out,
                            rc_error *err)
{
    const rc_where where = cfg->origin[field].where;
    *out = if_null;
    if (!rc_layout_is_set(cfg, field))
        return RC_OK;
    *out = *(const rc_field_INT *)rc_config_value_at(cfg, field);
    if (*out < 1)
        return RC_FAIL(err, RC_E_INPUT, where, "%s is %" PRId64 "; it must be at least 1",
                       rc_field_key(field), *out);
    if (*out > INT32_MAX)
        return RC_FAIL(err, RC_E_RANGE, where, "%s is %" PRId64 "; at most %d can be laid out",
                       rc_field_key(field), *out, INT32_MAX);
    return RC_OK;
}

rc_code rc_layout_need_multiple(const rc_config *cfg, rc_field field, rc_share share,
                                rc_error *err)
{
    if (share.whole % share.part == 0)
        return RC_OK;
    return RC_FAIL(err, RC_E_INPUT, cfg->origin[field].where,
                   "%s: %" PRId64 " is no multiple of %s, %" PRId64, rc_field_key(field),
                   share.whole, share.part_name, share.part);
}

rc_code rc_layout_refuse_pair(const rc_config *cfg, rc_field a, rc_field b, rc_error *err)
{
    if (!rc_layout_is_set(cfg, a) || !rc_layout_is_set(cfg, b))
        return RC_OK;
    return RC_FAIL(err, RC_E_INPUT, cfg->origin[b].where, "%s is not set together with %s",
                   rc_field_key(b), rc_field_key(a));
}

static rc_code note(const rc_config *cfg, const rc_asked *asked, const rc_ask *row,
                    const void *user, rc_error *err)
{
    bool *out = *(bool *const *)user;
    (void)err;
    *out = *out || (row && rc_ask_is_asked(cfg, asked, row));
    return RC_OK;
}

rc_code rc_layout_find_switch(const rc_config *cfg, const char *key, bool *out, rc_error *err)
{
    const rc_ask ask = {key, RC_ASK_IS("false"), ""};
    const rc_asks table = {&ask, 1, sizeof ask};
    *out = false;
    return rc_asks_walk_unknown(&table, cfg, note, (const void *)&out, err);
}
