/* config/unknown.c — keys that are no field, and the field that was probably meant. */
#include "base/text.h"
#include "config/make.h"

#include <string.h>

/* A typo of one to three letters, by the length of the name. */
static size_t most_typos(size_t n)
{
    return n <= 4 ? 1 : n <= 8 ? 2 : 3;
}

/* 0 is the same name (in another section); larger is farther; SIZE_MAX is not alike. */
static size_t distance_to(const char *typed, const char *key)
{
    const char *name = rc_text_last_part(key);
    size_t n = strlen(typed), n_name = strlen(name), most = most_typos(n);
    size_t n_apart = n > n_name ? n - n_name : n_name - n;
    size_t distance = n_apart > most ? SIZE_MAX : rc_text_distance_within(typed, name, most);
    return distance <= most ? distance : SIZE_MAX;
}

const char *rc_field_nearest(const char *path)
{
    const char *typed = rc_text_last_part(path), *best = NULL;
    size_t n_section = (size_t)(typed - path), best_distance = SIZE_MAX;
    for (int i = 0; i < RC_FIELD_COUNT; i++) {
        const char *key = rc_field_key((rc_field)i);
        size_t distance = distance_to(typed, key);
        if (distance == SIZE_MAX)
            continue;
        distance = 2 * distance + (strncmp(key, path, n_section) != 0);
        if (distance < best_distance) {
            best_distance = distance;
            best = key;
        }
    }
    return best;
}

rc_code rc_maker_note(rc_maker *maker, rc_unknown_key unknown, rc_error *err)
{
    rc_config *cfg = maker->cfg;
    RC_TRY(RC_GROW(maker->mem, &cfg->unknown, cfg->n_unknown, &maker->n_unknown_room,
                   cfg->n_unknown + 1, err));
    RC_TRY(rc_arena_copy(maker->mem, unknown.path, strlen(unknown.path), &unknown.path, err));
    cfg->unknown[cfg->n_unknown++] = unknown;
    return RC_OK;
}

rc_code rc_maker_note_unknown(rc_maker *maker, const char *path, const rc_doc *node,
                              rc_error *err)
{
    rc_unknown_key unknown = {
        .path = path, .where = node->key_where, .field = RC_FIELD_COUNT, .node = node};
    return rc_maker_note(maker, unknown, err);
}

rc_code rc_maker_note_value(rc_maker *maker, rc_field field, const char *path, rc_where where,
                            rc_error *err)
{
    rc_unknown_key unknown = {.path = path, .where = where, .is_value = true, .field = field};
    maker->n_late_values++;
    return rc_maker_note(maker, unknown, err);
}

void rc_maker_forget_value(rc_maker *maker, rc_field field)
{
    rc_config *cfg = maker->cfg;
    size_t n = 0;
    for (size_t i = 0; i < cfg->n_unknown; i++)
        if (!cfg->unknown[i].is_value || cfg->unknown[i].field != field)
            cfg->unknown[n++] = cfg->unknown[i];
    maker->n_late_values -= cfg->n_unknown - n;
    cfg->n_unknown = n;
}

rc_code rc_config_refuse_key(const rc_unknown_key *unknown, rc_error *err)
{
    char path[160];
    rc_text_printable(unknown->path, strlen(unknown->path), path, sizeof path);
    if (unknown->is_value)
        return RC_FAIL(err, RC_E_INPUT, unknown->where,
                       "the value of %s is known only when the job starts; give it as an "
                       "override",
                       path);
    const char *nearest = unknown->instead ? unknown->instead : rc_field_nearest(unknown->path);
    if (!nearest)
        return RC_FAIL(err, RC_E_INPUT, unknown->where,
                       "unknown key %s; `recompute list fields` shows all", path);
    if (strcmp(rc_text_last_part(nearest), rc_text_last_part(unknown->path)) == 0)
        return RC_FAIL(err, RC_E_INPUT, unknown->where,
                       "unknown key %s; %s stands in another section: %s", path,
                       rc_text_last_part(nearest), nearest);
    return RC_FAIL(err, RC_E_INPUT, unknown->where, "unknown key %s, did you mean %s?", path,
                   nearest);
}
