/* rules_unknown.c — keys of the input that are no setting, and values that only the job will know.
 *
 * A saved file of Bridge has hundreds of keys that are none of ours, and the trainer has arguments
 * that no list here holds. So a key is reported only when it is a slip of one we know: in the same
 * section, with the same digits (fp8 is no slip of fp4), and few letters apart for its length.
 */
#include "check/core.h"

#include "base/text.h"

#include <string.h>

typedef struct field_letters {
    const char *name;
    size_t n;
    uint64_t letters;
} field_letters;

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

/* One bit per letter that occurs. A slip changes two of them at most, so that hundreds of keys are
 * told from hundreds of fields without comparing them letter by letter. */
static uint64_t letters_of(const char *name)
{
    uint64_t letters = 0;
    for (; *name; name++)
        letters |= (uint64_t)1 << ((unsigned char)*name & 63);
    return letters;
}

enum { MOST_SLIPS = 3 };

static bool may_be_near(const field_letters *fields, const char *typed)
{
    size_t n = strlen(typed);
    uint64_t letters = letters_of(typed);
    for (size_t i = 0; i < RC_FIELD_COUNT; i++) {
        const field_letters *field = &fields[i];
        size_t n_apart = n > field->n ? n - field->n : field->n - n;
        int n_other = 0;
        if (n_apart > MOST_SLIPS)
            continue;
        for (uint64_t other = letters ^ field->letters; other && n_other <= 2 * MOST_SLIPS;
             other &= other - 1)
            n_other++;
        if (n_other <= 2 * MOST_SLIPS &&
            rc_text_distance_within(typed, field->name, MOST_SLIPS) <= MOST_SLIPS)
            return true;
    }
    return false;
}

static void unknown_key(rc_core *core, const field_letters *fields, const rc_unknown_key *key)
{
    if (!may_be_near(fields, last_part(key->path)))
        return;
    const char *nearest = rc_field_nearest(key->path);
    if (nearest && is_slip(key->path, nearest))
        rc_core_warn_key(core, RC_RULE_unknown_key, key);
}

void rc_core_unknown(rc_core *core, const rc_config *cfg)
{
    field_letters fields[RC_FIELD_COUNT];
    for (size_t i = 0; i < RC_FIELD_COUNT; i++) {
        const rc_field_facts *facts = rc_field_find((rc_field)i);
        const char *name = last_part(*facts->key ? facts->key : facts->name);
        fields[i] = (field_letters){name, strlen(name), letters_of(name)};
    }
    for (size_t i = 0; i < cfg->n_unknown; i++)
        if (cfg->unknown[i].is_value)
            rc_core_warn_key(core, RC_RULE_value_known_at_run_time, &cfg->unknown[i]);
        else
            unknown_key(core, fields, &cfg->unknown[i]);
}
