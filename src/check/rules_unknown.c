/* rules_unknown.c — keys of the input that are no setting, and values that only the job will know.
 *
 * A saved file of Bridge has hundreds of keys that are none of ours, and the trainer has arguments
 * that no list here holds. So a key is reported only when it is a slip of one we know: in the same
 * section, with the same digits (fp8 is no slip of fp4), and few letters apart for its length.
 */
#include "check/core.h"

#include "base/text.h"

#include <string.h>

static const char *last_part(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot ? dot + 1 : path;
}

static bool has_same_digits(const char *a, const char *b)
{
    for (;; a++, b++) {
        a += strcspn(a, "0123456789");
        b += strcspn(b, "0123456789");
        if (*a != *b)
            return false;
        if (*a == '\0')
            return true;
    }
}

/* Recompute is our subject: there a name may be farther off, and in the wrong section. */
static size_t most_slips(const char *typed, bool is_recompute)
{
    size_t n = strlen(typed);
    return is_recompute ? 3 : n >= 12 ? 2 : n >= 8 ? 1 : 0;
}

static bool is_slip(const char *path, const char *nearest)
{
    const char *typed = last_part(path), *name = last_part(nearest);
    bool is_recompute = strncmp(name, "recompute_", 10) == 0;
    size_t n_section = (size_t)(typed - path), distance = rc_text_distance(typed, name);
    bool is_at_home = strncmp(path, nearest, n_section) == 0;
    if (distance == 0)
        return is_recompute && !is_at_home;
    return is_at_home && has_same_digits(typed, name) &&
           distance <= most_slips(typed, is_recompute);
}

static void unknown_key(rc_core *core, const rc_unknown_key *key)
{
    const char *nearest = rc_field_nearest(key->path);
    if (nearest && is_slip(key->path, nearest))
        rc_core_warn_key(core, RC_RULE_unknown_key, key);
}

void rc_core_unknown(rc_core *core, const rc_config *cfg)
{
    for (size_t i = 0; i < cfg->n_unknown; i++)
        if (cfg->unknown[i].is_value)
            rc_core_warn_key(core, RC_RULE_value_known_at_run_time, &cfg->unknown[i]);
        else
            unknown_key(core, &cfg->unknown[i]);
}
