/* live.h — live allocations by address. */
#ifndef RC_SNAPSHOT_LIVE_H
#define RC_SNAPSHOT_LIVE_H

#include <recompute/snapshot.h>

typedef struct rc_live_slot {
    /* index 0: free */
    uint32_t hash, index;
} rc_live_slot;

typedef struct rc_live {
    rc_arena *mem;
    /* [1 .. n_used) those whose number is not 0 are live */
    rc_live_entry *at;
    size_t n, n_used, n_room;
    /* entry, 0 for none; the next one is its `stack` */
    uint32_t first_free;
    rc_live_slot *slots;
    size_t n_slots;
    /* 32 - log2(n_slots) */
    int shift;
    uint64_t seed;
} rc_live;

RC_MUST_CHECK
rc_code rc_live_make(rc_arena *mem, rc_live *live, rc_error *err);
/* Puts an allocation in; one at the same address comes out as *old (number 0 when none). */
RC_MUST_CHECK
rc_code rc_live_put(rc_live *live, const rc_live_entry *entry, rc_live_entry *old,
                    rc_error *err);
/* Takes an allocation out; false when the address is not live. */
bool rc_live_take(rc_live *live, uint64_t addr, rc_live_entry *out);
/* NULL when the address is not live; valid until the table changes. */
const rc_live_entry *rc_live_find(const rc_live *live, uint64_t addr);

#endif
