/* live.c — the table of live allocations.
 *
 * Entries lie in the order they came, free ones in a list; the table has of each 32 bits of its
 * address's hash and its index. So what is probed is a third of the whole, most probes end at the hash,
 * and the table grows without looking at the entries. Linear probing with removal by shifting
 * back: no tombstones, so a trace of any length needs room for its live allocations only. The hash is
 * seeded by where the first table lay, so no file can be made of addresses that collide; the order of
 * neither reaches a result.
 */
#include "snapshot/live.h"

#include <string.h>

static uint32_t hash_of(const rc_live *live, uint64_t addr)
{
    uint64_t h = (addr ^ live->seed) * 0x9E3779B97F4A7C15u;
    return (uint32_t)((h ^ h >> 32) * 0xC4CEB9FE1A85EC53u >> 32);
}

static size_t home_of(const rc_live *live, uint32_t hash)
{
    return hash >> live->shift;
}

/* Where an address is, or the free place where it would be. */
static size_t find(const rc_live *live, uint64_t addr, uint32_t hash)
{
    size_t at = home_of(live, hash);
    while (live->slots[at].index &&
           (live->slots[at].hash != hash || live->at[live->slots[at].index].addr != addr))
        at = (at + 1) & (live->n_slots - 1);
    return at;
}

const rc_live_entry *rc_live_find(const rc_live *live, uint64_t addr)
{
    uint32_t index = live->slots[find(live, addr, hash_of(live, addr))].index;
    return index ? &live->at[index] : NULL;
}

static rc_code grow_slots(rc_live *live, int log2_slots, rc_error *err)
{
    const rc_live_slot *old = live->slots;
    size_t n_old = live->n_slots, n = (size_t)1 << log2_slots;
    RC_TRY(RC_NEW(live->mem, &live->slots, n, err));
    live->n_slots = n;
    live->shift = 32 - log2_slots;
    for (size_t i = 0; i < n_old; i++) {
        if (!old[i].index)
            continue;
        size_t at = home_of(live, old[i].hash);
        while (live->slots[at].index)
            at = (at + 1) & (n - 1);
        live->slots[at] = old[i];
    }
    return RC_OK;
}

static rc_code grow_entries(rc_live *live, rc_error *err)
{
    return RC_GROW(live->mem, &live->at, live->n_used, &live->n_room, live->n_room + 1, err);
}

rc_code rc_live_make(rc_arena *mem, rc_live *live, rc_error *err)
{
    *live = (rc_live){.mem = mem};
    RC_TRY(grow_slots(live, 8, err));
    live->seed = (uint64_t)(uintptr_t)live->slots;
    RC_TRY(grow_entries(live, err));
    live->n_used = 1; /* index 0 is none */
    return RC_OK;
}

rc_code rc_live_put(rc_live *live, const rc_live_entry *entry, rc_live_entry *old,
                    rc_error *err)
{
    uint32_t hash = hash_of(live, entry->addr);
    old->number = 0;
    if (live->n * 4 >= live->n_slots * 3) {
        if (live->shift == 0)
            return RC_FAIL(err, RC_E_RANGE, RC_NOWHERE, "more than 2^31 live allocations");
        RC_TRY(grow_slots(live, 32 - live->shift + 1, err));
    }
    rc_live_slot *slot = &live->slots[find(live, entry->addr, hash)];
    if (slot->index) {
        *old = live->at[slot->index];
        live->at[slot->index] = *entry;
        return RC_OK;
    }
    uint32_t index = live->first_free;
    if (index)
        live->first_free = live->at[index].stack;
    else if (live->n_used == live->n_room)
        RC_TRY(grow_entries(live, err));
    if (!index)
        index = (uint32_t)live->n_used++;
    live->at[index] = *entry;
    *slot = (rc_live_slot){hash, index};
    live->n++;
    return RC_OK;
}

bool rc_live_take(rc_live *live, uint64_t addr, rc_live_entry *out)
{
    size_t mask = live->n_slots - 1, at = find(live, addr, hash_of(live, addr));
    uint32_t index = live->slots[at].index;
    if (!index)
        return false;
    *out = live->at[index];
    live->at[index] = (rc_live_entry){.stack = live->first_free}; /* number 0: free */
    live->first_free = index;
    /* what follows moves back unless it already sits at or behind its home */
    for (size_t next = (at + 1) & mask; live->slots[next].index; next = (next + 1) & mask) {
        size_t home = home_of(live, live->slots[next].hash);
        if (((next - home) & mask) >= ((next - at) & mask)) {
            live->slots[at] = live->slots[next];
            at = next;
        }
    }
    live->slots[at].index = 0;
    live->n--;
    return true;
}
