/* rules_unknown.c — keys of the input that are no setting, and values that only the job will know.
 *
 * A saved file of Bridge has hundreds of keys that are none of ours. So a key is reported only when
 * it is one we know, misspelt: in the same section, with the same digits (fp8 is not fp4 misspelt), and
 * few letters apart for its length. The arguments of Megatron-LM are all known (flags.def), but a
 * trainer may add some of its own.
 */
#include "check/layers.h"

#include "base/text.h"

#include <string.h>

/* The names that a key may misspell, shortest first: by_length[n] is the first that has n letters. */
enum { MOST_LETTERS = 64, MOST_WRONG = 3 };

typedef struct near_name {
    const char *name;
    uint64_t letters;
    bool is_recompute;
} near_name;

typedef struct near_names {
    near_name at[RC_FIELD_COUNT];
    size_t by_length[MOST_LETTERS + 1];
} near_names;

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

static bool is_about_recompute(const char *name)
{
    return strncmp(name, "recompute_", 10) == 0;
}

/* Recompute is our subject: there a name may be farther off, and in the wrong section. */
static size_t most_wrong(size_t n, bool is_recompute)
{
    return is_recompute ? MOST_WRONG : n >= 12 ? 2 : n >= 8 ? 1 : 0;
}

static bool is_misspelt(const char *path, const char *nearest)
{
    const char *typed = rc_text_last_part(path), *name = rc_text_last_part(nearest);
    bool is_recompute = is_about_recompute(name);
    size_t n_section = (size_t)(typed - path), distance = rc_text_distance(typed, name);
    bool is_at_home = strncmp(path, nearest, n_section) == 0;
    if (distance == 0)
        return is_recompute && !is_at_home;
    return is_at_home && has_same_digits(typed, name) &&
           distance <= most_wrong(strlen(typed), is_recompute);
}

/* One bit per letter that occurs. A wrong letter changes two of them at most, so that hundreds of keys are
 * told from hundreds of names without comparing them letter by letter. */
static uint64_t letters_of(const char *name)
{
    uint64_t letters = 0;
    for (; *name; name++)
        letters |= (uint64_t)1 << ((unsigned char)*name & 63);
    return letters;
}

/* Sums of neighbours: of bits, of pairs, of fours, and then of all bytes by one product. */
static size_t count_bits(uint64_t x)
{
    x -= x >> 1 & 0x5555555555555555u;
    x = (x & 0x3333333333333333u) + (x >> 2 & 0x3333333333333333u);
    x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0fu;
    return (size_t)(x * 0x0101010101010101u >> 56);
}

static bool may_be_near(const near_names *names, const char *typed)
{
    size_t n = strlen(typed);
    uint64_t letters = letters_of(typed);
    if (n + MOST_WRONG >= MOST_LETTERS)
        return false;
    size_t first = n > MOST_WRONG ? names->by_length[n - MOST_WRONG] : 0;
    for (size_t i = first; i < names->by_length[n + MOST_WRONG + 1]; i++) {
        const near_name *near = &names->at[i];
        size_t most = most_wrong(n, near->is_recompute);
        if (count_bits(letters ^ near->letters) <= 2 * most &&
            rc_text_distance_within(typed, near->name, most) <= most)
            return true;
    }
    return false;
}

static void unknown_key(rc_checking *checking, const near_names *names,
                        const rc_unknown_key *key)
{
    static const rc_rule of_arguments[] = {
        [RC_KEY_NOT_LISTED] = RC_RULE_argument_not_listed,
        [RC_KEY_GONE] = RC_RULE_argument_gone,
        [RC_KEY_NO_CHOICE] = RC_RULE_argument_choice,
    };
    if (key->fault == RC_KEY_LISTED || key->fault == RC_KEY_CLASS)
        return;
    if (key->fault == RC_KEY_NO_FIELD && key->instead) { /* a section */
        rc_checking_warn_key(checking, RC_RULE_unknown_key, key);
        return;
    }
    if (key->fault != RC_KEY_NO_FIELD) {
        bool is_misspelt = key->fault == RC_KEY_NOT_LISTED && key->instead;
        rc_checking_warn_key(checking,
                             is_misspelt ? RC_RULE_unknown_key : of_arguments[key->fault], key);
        return;
    }
    if (!may_be_near(names, rc_text_last_part(key->path)))
        return;
    const char *nearest = rc_field_nearest(key->path);
    if (nearest && is_misspelt(key->path, nearest))
        rc_checking_warn_key(checking, RC_RULE_unknown_key, key);
}

static const char *name_of(rc_field field)
{
    return rc_text_last_part(rc_field_key(field));
}

/* A counting sort. Names of MOST_LETTERS and more stand at the end. */
static void sort_names(near_names *names)
{
    size_t n_before[MOST_LETTERS + 2] = {0};
    for (int i = 0; i < RC_FIELD_COUNT; i++) {
        size_t n = strlen(name_of((rc_field)i));
        n_before[1 + (n < MOST_LETTERS ? n : MOST_LETTERS)]++;
    }
    for (size_t n = 0; n <= MOST_LETTERS; n++) {
        n_before[n + 1] += n_before[n];
        names->by_length[n] = n_before[n];
    }
    for (int i = 0; i < RC_FIELD_COUNT; i++) {
        const char *name = name_of((rc_field)i);
        size_t n = strlen(name);
        names->at[n_before[n < MOST_LETTERS ? n : MOST_LETTERS]++] =
            (near_name){name, letters_of(name), is_about_recompute(name)};
    }
}

/* Paths and names are known to the job alone as a rule, and no rule asks for them. */
static bool is_judged(rc_field field)
{
    const rc_field_facts *facts = rc_field_find(field);
    bool is_text = facts->type == RC_FIELD_TYPE_STR || facts->type == RC_FIELD_TYPE_LIST;
    return !is_text || rc_checked_find_name(facts->name) != RC_CHECKED_COUNT;
}

void rc_check_unknown(rc_checking *checking, const rc_config *cfg)
{
    near_names names;
    sort_names(&names);
    for (size_t i = 0; i < cfg->n_unknown; i++)
        if (!cfg->unknown[i].is_value)
            unknown_key(checking, &names, &cfg->unknown[i]);
        else if (is_judged(cfg->unknown[i].field))
            rc_checking_warn_key(checking, RC_RULE_value_known_at_run_time, &cfg->unknown[i]);
}
