/* config/index.c — a small open-addressing hash table from borrowed names to numbers. */
#include "config/index.h"

#include <string.h>

static size_t hash(const char *name)
{
    uint64_t h = 0xcbf29ce484222325u; /* FNV-1a */
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 0x100000001b3u;
    return (size_t)(h ^ h >> 29);
}

rc_code rc_names_make(rc_names *names, size_t n_most, rc_arena *mem, rc_error *err)
{
    names->n_room = 16;
    while (names->n_room < 2 * n_most)
        names->n_room *= 2;
    void *slots;
    RC_TRY(rc_arena_take(mem, names->n_room, sizeof *names->slots, &slots, err));
    names->slots = slots;
    return RC_OK;
}

static size_t find_slot(const rc_names *names, const char *name)
{
    size_t at = hash(name) & (names->n_room - 1);
    while (names->slots[at].name && strcmp(names->slots[at].name, name) != 0)
        at = (at + 1) & (names->n_room - 1);
    return at;
}

void rc_names_add(rc_names *names, const char *name, int value)
{
    size_t at = find_slot(names, name);
    if (names->slots[at].name)
        return;
    names->slots[at].name = name;
    names->slots[at].value = value;
}

int rc_names_find(const rc_names *names, const char *name)
{
    size_t at = find_slot(names, name);
    return names->slots[at].name ? names->slots[at].value : -1;
}
