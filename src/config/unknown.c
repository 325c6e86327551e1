/* config/unknown.c — keys that are no field, and the field that was probably meant.
 *
 * A file of Bridge has hundreds of keys that are none of ours, so the search for the nearest name
 * must be cheap: lengths and letters rule out nearly all before an edit distance is computed.
 */
#include "base/text.h"
#include "config/make.h"

#include <stdio.h>
#include <string.h>

static const char *last_part(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot ? dot + 1 : path;
}

static uint64_t letters_of(const char *name)
{
    uint64_t set = 0;
    for (; *name; name++)
        set |= (uint64_t)1 << ((unsigned char)*name & 63);
    return set;
}

static size_t count_bits(uint64_t set)
{
    size_t n = 0;
    for (; set; set &= set - 1)
        n++;
    return n;
}

/* A slip of one to three keys, by the length of the name. */
static size_t most_slips(size_t n)
{
    return n <= 4 ? 1 : n <= 8 ? 2 : 3;
}

/* 0 is the same name (in another section); larger is farther; SIZE_MAX is not alike. */
static size_t distance_to(const char *typed, uint64_t letters, const char *key)
{
    const char *name = last_part(key);
    size_t n = strlen(typed), n_name = strlen(name), most = most_slips(n);
    size_t n_apart = n > n_name ? n - n_name : n_name - n;
    if (n_apart > most || count_bits(letters ^ letters_of(name)) > 2 * most)
        return SIZE_MAX;
    size_t distance = rc_text_distance(typed, name);
    return distance <= most ? distance : SIZE_MAX;
}

static const char *find_nearest(const char *path)
{
    const char *typed = last_part(path), *best = NULL;
    uint64_t letters = letters_of(typed);
    size_t n_section = (size_t)(typed - path), best_distance = SIZE_MAX;
    for (int i = 0; i < RC_FIELD_COUNT; i++) {
        const char *key = rc_field_find((rc_field)i)->key;
        size_t distance =
            distance_to(typed, letters, *key ? key : rc_field_find((rc_field)i)->name);
        if (distance == SIZE_MAX)
            continue;
        bool is_same_section = strncmp(key, path, n_section) == 0;
        distance = 2 * distance + !is_same_section;
        if (distance < best_distance) {
            best_distance = distance;
            best = *key ? key : rc_field_find((rc_field)i)->name;
        }
    }
    return best;
}

static rc_code add_unknown(rc_maker *maker, const char *path, rc_unknown_key unknown,
                           rc_error *err)
{
    rc_config *cfg = maker->cfg;
    if (cfg->n_unknown == maker->n_unknown_room) {
        size_t n_room = maker->n_unknown_room ? maker->n_unknown_room * 2 : 64;
        rc_unknown_key *larger;
        RC_TRY(RC_NEW(maker->mem, &larger, n_room, err));
        if (cfg->n_unknown)
            memcpy(larger, cfg->unknown, cfg->n_unknown * sizeof *larger);
        cfg->unknown = larger;
        maker->n_unknown_room = n_room;
    }
    RC_TRY(rc_arena_copy(maker->mem, path, strlen(path), &unknown.path, err));
    cfg->unknown[cfg->n_unknown++] = unknown;
    return RC_OK;
}

rc_code rc_maker_note_unknown(rc_maker *maker, const char *path, rc_where where, rc_error *err)
{
    rc_unknown_key unknown = {.where = where, .nearest = find_nearest(path)};
    return add_unknown(maker, path, unknown, err);
}

rc_code rc_maker_note_value(rc_maker *maker, const char *path, rc_where where, rc_error *err)
{
    return add_unknown(maker, path, (rc_unknown_key){.where = where, .is_value = true}, err);
}

rc_code rc_config_refuse_unknown(const rc_config *cfg, rc_error *err)
{
    if (cfg->n_unknown == 0)
        return RC_OK;
    const rc_unknown_key *unknown = &cfg->unknown[0];
    char path[160];
    rc_text_printable(unknown->path, strlen(unknown->path), path, sizeof path);
    if (unknown->is_value)
        return RC_FAIL(err, RC_E_INPUT, unknown->where,
                       "the value of %s is known only when the job starts; give it as an "
                       "override",
                       path);
    if (!unknown->nearest)
        return RC_FAIL(err, RC_E_INPUT, unknown->where,
                       "unknown key %s; `recompute list fields` shows all", path);
    if (strcmp(last_part(unknown->nearest), last_part(unknown->path)) == 0)
        return RC_FAIL(err, RC_E_INPUT, unknown->where,
                       "unknown key %s; %s stands in another section: %s", path,
                       last_part(unknown->nearest), unknown->nearest);
    return RC_FAIL(err, RC_E_INPUT, unknown->where, "unknown key %s, did you mean %s?", path,
                   unknown->nearest);
}
