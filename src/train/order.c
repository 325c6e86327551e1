/* order.c — numpy's shuffle of 0, 1, ..., n-1, of which a run reads only the first samples.
 *
 * takes  the twister, n, how many entries are kept
 * gives  these entries
 *
 * The shuffle swaps entry i with entry j(i) <= i, for i from n-1 down to 1. To know entry k of
 * the result one goes back in time: where was it before the swap of 1, before that of 2, ...
 * before that of n-1? There, at the start, place p held p. Going back, all that is followed
 * lies below i when i's turn comes, so the swap moves no more than what lies at j(i), to i:
 *
 *   place of k:   k -> ... -> p          swap of i:   p == j(i)  ->  i
 *
 * That takes a table of the places of the entries kept, and j(i) for rising i. The twister
 * gives them falling, and cannot be run backwards, since draws that are too large are thrown
 * away. So it runs twice: once to note its state before every block of draws, then block by
 * block from the last.
 */
#include "train/order.h"

#include "base/random.h"

enum {
    ENTRY_BYTES = 8,
    LEAST_BLOCK = 1 << 14, /* draws */
    MOST_BLOCKS = 1 << 12, /* states of 2.5 KB */
    SLOTS_AN_ENTRY = 4,    /* most look-ups find nothing, and shall find so at once */
    N_ROUNDS = 6 /* 4 make a permutation that nobody without the key tells from a random one */
};

/* --- what it takes --- */

static int64_t block_of(int64_t n)
{
    int64_t block = LEAST_BLOCK;
    while (n / block > MOST_BLOCKS)
        block *= 2;
    return block;
}

static int64_t slots_of(int64_t n_kept)
{
    int64_t slots = 16;
    while (slots < SLOTS_AN_ENTRY * n_kept)
        slots *= 2;
    return slots;
}

static int64_t traced_bytes(int64_t n, int64_t n_kept)
{
    int64_t block = block_of(n);
    return n_kept * (ENTRY_BYTES + (int64_t)sizeof(uint32_t)) +
           slots_of(n_kept) * (int64_t)sizeof(uint32_t) + block * ENTRY_BYTES +
           (n / block + 1) * (int64_t)sizeof(rc_twister);
}

/* In doubt the plain way: it draws once. */
static bool is_traced(int64_t n, int64_t n_kept)
{
    return n_kept < UINT32_MAX / SLOTS_AN_ENTRY / 2 &&
           traced_bytes(n, n_kept) < n / 2 * ENTRY_BYTES;
}

int64_t rc_order_count_bytes(int64_t n, int64_t n_kept)
{
    return is_traced(n, n_kept) ? traced_bytes(n, n_kept) : n * ENTRY_BYTES;
}

/* --- places of the entries kept --- */

typedef struct places {
    int64_t *of; /* [n_kept] */
    int64_t n_kept;
    uint32_t *slots; /* entry + 1 by its place, 0 for none; linear probing */
    uint64_t mask;
} places;

static uint64_t slot_of(const places *all, int64_t place)
{
    return ((uint64_t)place * UINT64_C(0x9e3779b97f4a7c15) >> 32) & all->mask;
}

static void insert(places *all, uint32_t entry)
{
    uint64_t slot = slot_of(all, all->of[entry]);
    while (all->slots[slot])
        slot = (slot + 1) & all->mask;
    all->slots[slot] = entry + 1;
}

/* Closes the gap at `slot`: what lies behind it and belongs before it moves up. */
static void close_gap(places *all, uint64_t slot)
{
    for (uint64_t next = (slot + 1) & all->mask; all->slots[next];
         next = (next + 1) & all->mask) {
        uint64_t home = slot_of(all, all->of[all->slots[next] - 1]);
        bool is_between = ((next - home) & all->mask) < ((next - slot) & all->mask);
        if (is_between)
            continue;
        all->slots[slot] = all->slots[next];
        slot = next;
    }
    all->slots[slot] = 0;
}

/* What lies at `from`, if anything, lies at `to` from here on, where nothing does. */
static void move(places *all, int64_t from, int64_t to)
{
    for (uint64_t slot = slot_of(all, from); all->slots[slot]; slot = (slot + 1) & all->mask) {
        uint32_t entry = all->slots[slot] - 1;
        if (all->of[entry] != from)
            continue;
        close_gap(all, slot);
        all->of[entry] = to;
        insert(all, entry);
        return;
    }
}

/* --- going back in time --- */

typedef struct trace {
    int64_t n, block;
    rc_twister *states; /* before each block of draws */
    int64_t *draws;     /* of one block: j of falling i */
    uint32_t *entries;  /* [n_kept] by place, while all lie below n_kept */
    places places;
} trace;

static rc_code take_trace(trace *t, rc_arena *mem, rc_error *err)
{
    int64_t n_kept = t->places.n_kept, n_slots = slots_of(n_kept);
    t->block = block_of(t->n);
    t->places.mask = (uint64_t)n_slots - 1;
    RC_TRY(RC_NEW(mem, &t->states, t->n / t->block + 1, err));
    RC_TRY(RC_NEW(mem, &t->draws, t->block, err));
    RC_TRY(RC_NEW(mem, &t->entries, n_kept, err));
    RC_TRY(RC_NEW(mem, &t->places.slots, n_slots, err));
    for (int64_t k = 0; k < n_kept; k++)
        t->entries[k] = (uint32_t)k;
    return RC_OK;
}

/* Leaves the twister where numpy would. */
static void note_states(trace *t, rc_twister *twister)
{
    for (int64_t i = t->n - 1; i > 0; i--) {
        if ((t->n - 1 - i) % t->block == 0)
            t->states[(t->n - 1 - i) / t->block] = *twister;
        (void)rc_twister_draw(twister, (uint64_t)i);
    }
}

static void start_places(trace *t)
{
    places *all = &t->places;
    for (int64_t place = 0; place < all->n_kept; place++)
        all->of[t->entries[place]] = place;
    for (int64_t k = 0; k < all->n_kept; k++)
        insert(all, (uint32_t)k);
}

static void undo_swap(trace *t, int64_t i, int64_t j)
{
    if (i == t->places.n_kept)
        start_places(t);
    if (i >= t->places.n_kept) {
        move(&t->places, j, i);
        return;
    }
    uint32_t kept = t->entries[i];
    t->entries[i] = t->entries[j];
    t->entries[j] = kept;
}

static void undo_all(trace *t)
{
    for (int64_t b = (t->n - 2) / t->block; b >= 0; b--) {
        int64_t first = t->n - 1 - b * t->block; /* the largest i of the block */
        int64_t n_here = first < t->block ? first : t->block;
        rc_twister twister = t->states[b];
        for (int64_t k = 0; k < n_here; k++)
            t->draws[k] = (int64_t)rc_twister_draw(&twister, (uint64_t)(first - k));
        for (int64_t k = n_here - 1; k >= 0; k--)
            undo_swap(t, first - k, t->draws[k]);
    }
}

static rc_code make_traced(rc_twister *twister, rc_order *out, rc_arena *mem, rc_error *err)
{
    trace t = {.n = out->n, .places = {.n_kept = out->n_kept}};
    RC_TRY(RC_NEW(mem, &out->at, out->n_kept, err));
    rc_mark mark = rc_arena_mark(mem);
    t.places.of = out->at;
    RC_TRY(take_trace(&t, mem, err));
    note_states(&t, twister);
    undo_all(&t);
    rc_arena_rewind(mem, mark);
    return RC_OK;
}

rc_code rc_order_make(rc_twister *twister, int64_t n, int64_t n_kept, rc_arena *mem,
                      rc_order *out, rc_error *err)
{
    *out = (rc_order){.n = n, .n_kept = n_kept};
    if (is_traced(n, n_kept))
        return make_traced(twister, out, mem, err);
    RC_TRY(RC_NEW(mem, &out->at, n, err));
    for (int64_t i = 0; i < n; i++)
        out->at[i] = i;
    rc_twister_shuffle(twister, out->at, n);
    return RC_OK;
}

/* --- by key --- */

rc_order rc_order_of_key(int64_t n, const uint32_t key[2])
{
    return (rc_order){.n = n, .n_kept = n, .is_keyed = true, .key = {key[0], key[1]}};
}

/* A Feistel network over the least even number of bits that holds all entries. What it takes
 * outside of them it takes on, until it is back inside (at most three in four are outside). */
static int64_t permute(const rc_order *order, int64_t i)
{
    uint64_t value = (uint64_t)i, n = (uint64_t)order->n;
    int half = 1;
    while (half < 32 && (n - 1) >> (2 * half))
        half++;
    const uint64_t mask = (UINT64_C(1) << half) - 1;
    do {
        uint64_t left = value >> half, right = value & mask;
        for (uint32_t round = 0; round < N_ROUNDS; round++) {
            uint32_t counter[4] = {(uint32_t)right, round, 0, 0}, bits[4];
            rc_philox(counter, order->key, bits);
            uint64_t mixed = left ^ (bits[0] & mask);
            left = right;
            right = mixed;
        }
        value = left << half | right;
    } while (value >= n);
    return (int64_t)value;
}

int64_t rc_order_at(const rc_order *order, int64_t i)
{
    RC_ASSERT(i >= 0 && i < order->n_kept);
    return order->is_keyed ? permute(order, i) : order->at[i];
}
