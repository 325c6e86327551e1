/* order.h — numpy's shuffle of 0, 1, ..., n-1, of which a run reads no more than its first samples.
 *
 * Megatron shuffles all samples of its data, and so does every run on it, however short. Here the
 * order is numpy's to the last entry, but its memory goes by what is read of it.
 */
#ifndef RC_TRAIN_ORDER_H
#define RC_TRAIN_ORDER_H

#include "train/random.h"

#include <recompute/arena.h>

typedef struct rc_order {
    /* of what is shuffled */
    int64_t n;
    /* entries that may be asked for: the first ones */
    int64_t n_kept;
    /* NULL by key */
    int64_t *at;
    /* each entry is computed when it is asked for */
    bool is_keyed;
    uint32_t key[2];
} rc_order;

/**
 * The order that `twister` gives next, and moves the twister on as numpy would.
 *
 * takes   n_kept  at most n
 * errors  RC_E_MEMORY
 * memory  rc_order_count_bytes while it is made; of that 8 bytes an entry kept stay, or of all n
 * cost    n draws; where the memory would be more than twice what tracing takes, 2 n draws
 */
RC_MUST_CHECK
rc_code rc_order_make(rc_twister *twister, int64_t n, int64_t n_kept, rc_arena *mem,
                      rc_order *out, rc_error *err);
int64_t rc_order_count_bytes(int64_t n, int64_t n_kept);

/* Another order, computed entry by entry from a key: for so many entries that even to draw them takes
 * too long. It is a permutation too, but not numpy's. */
rc_order rc_order_of_key(int64_t n, const uint32_t key[2]);

/* Entry i, 0 <= i < n_kept. */
int64_t rc_order_at(const rc_order *order, int64_t i);

#endif
