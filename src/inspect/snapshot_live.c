/* snapshot_live.c — the table of live allocations.
 *
 * Linear probing with removal by shifting back: no tombstones, so a trace of any length needs
 * room for its live allocations only. The hash is seeded by where the table lies, so no file can be
 * made of addresses that collide; the order of the table reaches no result.
 */
#include "inspect/snapshot_live.h"

static size_t home_of(const rc_live *live, uint64_t addr)
{
    uint64_t h = (addr ^ (uint64_t)(uintptr_t)live->at) * 0x9E3779B97F4A7C15u;
    return (size_t)((h ^ h >> 32) * 0xC4CEB9FE1A85EC53u >> live->shift);
}

/* Where an address is, or the free place where it would be. */
static size_t find(const rc_live *live, uint64_t addr)
{
    size_t at = home_of(live, addr);
    while (live->at[at].number && live->at[at].addr != addr)
        at = (at + 1) & (live->n_room - 1);
    return at;
}

const rc_live_entry *rc_live_find(const rc_live *live, uint64_t addr)
{
    const rc_live_entry *entry = &live->at[find(live, addr)];
    return entry->number ? entry : NULL;
}

static rc_code grow(rc_live *live, int log2_room, rc_error *err)
{
    rc_live larger = {.mem = live->mem,
                      .n = live->n,
                      .n_room = (size_t)1 << log2_room,
                      .shift = 64 - log2_room};
    RC_TRY(RC_NEW(live->mem, &larger.at, larger.n_room, err));
    for (size_t i = 0; i < live->n_room; i++) {
        if (!live->at[i].number)
            continue;
        size_t at = home_of(&larger, live->at[i].addr);
        while (larger.at[at].number)
            at = (at + 1) & (larger.n_room - 1);
        larger.at[at] = live->at[i];
    }
    *live = larger;
    return RC_OK;
}

rc_code rc_live_make(rc_arena *mem, rc_live *live, rc_error *err)
{
    *live = (rc_live){.mem = mem};
    return grow(live, 8, err);
}

rc_code rc_live_put(rc_live *live, const rc_live_entry *entry, rc_live_entry *old,
                    rc_error *err)
{
    old->number = 0;
    if (live->n * 4 >= live->n_room * 3)
        RC_TRY(grow(live, 64 - live->shift + 1, err));
    size_t at = find(live, entry->addr);
    if (live->at[at].number)
        *old = live->at[at];
    else
        live->n++;
    live->at[at] = *entry;
    return RC_OK;
}

bool rc_live_take(rc_live *live, uint64_t addr, rc_live_entry *out)
{
    size_t mask = live->n_room - 1, at = find(live, addr);
    if (!live->at[at].number)
        return false;
    *out = live->at[at];
    /* what follows moves back unless it already sits at or behind its home */
    for (size_t next = (at + 1) & mask; live->at[next].number; next = (next + 1) & mask) {
        size_t home = home_of(live, live->at[next].addr);
        if (((next - home) & mask) >= ((next - at) & mask)) {
            live->at[at] = live->at[next];
            at = next;
        }
    }
    live->at[at].number = 0;
    live->n--;
    return true;
}
