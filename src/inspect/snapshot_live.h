/* snapshot_live.h — live allocations by address. */
#ifndef RC_INSPECT_SNAPSHOT_LIVE_H
#define RC_INSPECT_SNAPSHOT_LIVE_H

#include <recompute/snapshot.h>

/* Open-addressed; an entry whose number is 0 is free. */
typedef struct rc_live {
    rc_arena *mem;
    rc_live_entry *at;
    size_t n, n_room;
    int shift; /* 64 - log2(n_room) */
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
