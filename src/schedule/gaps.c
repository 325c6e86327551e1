/* gaps.c — the lowest gap for a rectangle of bytes x time.
 *
 * takes  rectangles, one after another
 * gives  each one's offset
 * next   place.c tries orders with it
 *
 * Two structures. `slots` has what is placed by offset, in chunks, so that an insertion moves one
 * chunk and a search passes over those that end too low or live at another time. `full` has for
 * every time a height below which all bytes are taken then: a rectangle cannot start below the
 * largest of its times, so the search starts there. On models nearly all lies stacked without gaps,
 * and nearly every search ends where it starts. `full` may be too low (it does not see what a
 * filled gap joins), never too high.
 */
#include "schedule/gaps.h"

#include <string.h>

enum { CHUNK = 64, GROUP = 64 };

typedef struct slot {
    int64_t offset, end;
    int first, last;
} slot;

typedef struct chunk {
    int n;
    int first, last;     /* of all in it */
    int64_t lowest, end; /* the least offset, the largest end */
    slot *slots;         /* [CHUNK] by offset */
} chunk;

/* Largest and least of a range of times; where they are equal the nodes below may be stale. */
typedef struct node {
    int64_t most, least;
} node;

struct rc_gaps {
    chunk *chunks; /* by offset */
    int n_chunks;
    int64_t *group_ends; /* the largest end of chunks [GROUP * i, GROUP * (i + 1)) */
    slot *slots;         /* the chunks' */
    node *full;          /* [2 * n_leaves] a heap: node i has the children 2i and 2i+1 */
    int n_leaves;
};

rc_code rc_gaps_open(int n_items, int n_times, rc_arena *mem, rc_gaps **out, rc_error *err)
{
    /* a chunk that is full is halved, so all but the first hold CHUNK/2 or more */
    int n_chunks = n_items / (CHUNK / 2) + 2;
    RC_TRY(RC_NEW(mem, out, 1, err));
    rc_gaps *gaps = *out;
    gaps->n_leaves = 1;
    while (gaps->n_leaves < n_times)
        gaps->n_leaves *= 2;
    RC_TRY(RC_NEW(mem, &gaps->chunks, n_chunks, err));
    RC_TRY(RC_NEW(mem, &gaps->group_ends, n_chunks / GROUP + 1, err));
    RC_TRY(RC_NEW(mem, &gaps->slots, (size_t)n_chunks * CHUNK, err));
    return RC_NEW(mem, &gaps->full, 2 * (size_t)gaps->n_leaves, err);
}

void rc_gaps_clear(rc_gaps *gaps)
{
    gaps->n_chunks = 0;
    gaps->full[1] = (node){0, 0};
}

/* ---- full ---- */

static void push(node *full, int at)
{
    if (full[at].most == full[at].least)
        full[2 * at] = full[2 * at + 1] = full[at];
}

/* The largest in [first, last]; node `at` covers [from, from + n - 1]. */
static int64_t most_of(node *full, int at, int from, int n, int first, int last)
{
    if (last < from || first > from + n - 1)
        return 0;
    if (full[at].most == full[at].least || (first <= from && from + n - 1 <= last))
        return full[at].most;
    int64_t a = most_of(full, 2 * at, from, n / 2, first, last);
    int64_t b = most_of(full, 2 * at + 1, from + n / 2, n / 2, first, last);
    return a > b ? a : b;
}

typedef struct rise {
    int first, last;
    int64_t offset, end;
} rise;

/* Where all bytes below the new rectangle are taken, they now are up to its end. */
static void raise(node *full, int at, int from, int n, const rise *r)
{
    if (r->last < from || r->first > from + n - 1 || full[at].most < r->offset)
        return;
    bool is_inside = r->first <= from && from + n - 1 <= r->last;
    if (is_inside && full[at].most == full[at].least) {
        full[at] = (node){r->end, r->end};
        return;
    }
    push(full, at);
    raise(full, 2 * at, from, n / 2, r);
    raise(full, 2 * at + 1, from + n / 2, n / 2, r);
    const node *a = &full[2 * at], *b = &full[2 * at + 1];
    full[at].most = a->most > b->most ? a->most : b->most;
    full[at].least = a->least < b->least ? a->least : b->least;
}

/* ---- slots ---- */

static int64_t lowest_gap(const rc_gaps *gaps, int64_t offset, int first, int last,
                          int64_t room)
{
    for (int c = 0; c < gaps->n_chunks; c++) {
        const chunk *in = &gaps->chunks[c];
        if (c % GROUP == 0 && gaps->group_ends[c / GROUP] <= offset) {
            c += GROUP - 1;
            continue;
        }
        if (in->lowest >= offset + room)
            break; /* the gap before it fits, and all others lie higher */
        if (in->end <= offset || in->last < first || in->first > last)
            continue;
        for (int i = 0; i < in->n; i++) {
            const slot *other = &in->slots[i];
            if (other->offset >= offset + room)
                return offset;
            if (other->first <= last && first <= other->last && other->end > offset)
                offset = other->end;
        }
    }
    return offset;
}

static void measure(chunk *in)
{
    in->lowest = in->slots[0].offset;
    in->first = in->slots[0].first;
    in->last = in->slots[0].last;
    in->end = in->slots[0].end;
    for (int i = 1; i < in->n; i++) {
        const slot *at = &in->slots[i];
        in->first = at->first < in->first ? at->first : in->first;
        in->last = at->last > in->last ? at->last : in->last;
        in->end = at->end > in->end ? at->end : in->end;
    }
}

static void measure_groups(rc_gaps *gaps, int first)
{
    for (int c = first / GROUP * GROUP; c < gaps->n_chunks; c++) {
        int64_t *end = &gaps->group_ends[c / GROUP];
        *end = c % GROUP == 0 || gaps->chunks[c].end > *end ? gaps->chunks[c].end : *end;
    }
}

/* The last chunk that starts at or below `offset`; the first where none does. */
static int find_chunk(const rc_gaps *gaps, int64_t offset)
{
    int low = 0, high = gaps->n_chunks; /* the answer is in [low, high) */
    while (high - low > 1) {
        int middle = low + (high - low) / 2;
        if (gaps->chunks[middle].lowest <= offset)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* The chunk for `offset`, halved where it is full. */
static int chunk_for(rc_gaps *gaps, int64_t offset)
{
    if (gaps->n_chunks == 0)
        gaps->chunks[gaps->n_chunks++] = (chunk){.slots = gaps->slots};
    int c = find_chunk(gaps, offset);
    chunk *lower = &gaps->chunks[c], *upper = lower + 1;
    if (lower->n < CHUNK)
        return c;
    memmove(upper + 1, upper, (size_t)(gaps->n_chunks - c - 1) * sizeof *upper);
    *upper = (chunk){.slots = gaps->slots + (size_t)gaps->n_chunks * CHUNK, .n = CHUNK / 2};
    lower->n -= upper->n;
    memcpy(upper->slots, lower->slots + lower->n, (size_t)upper->n * sizeof *upper->slots);
    gaps->n_chunks++;
    measure(lower);
    measure(upper);
    measure_groups(gaps, c);
    return offset >= upper->lowest ? c + 1 : c;
}

static void insert(rc_gaps *gaps, const slot *new)
{
    int c = chunk_for(gaps, new->offset);
    chunk *in = &gaps->chunks[c];
    int at = in->n;
    while (at > 0 && in->slots[at - 1].offset > new->offset)
        at--;
    memmove(in->slots + at + 1, in->slots + at, (size_t)(in->n - at) * sizeof *new);
    in->slots[at] = *new;
    if (in->n++ == 0) {
        measure(in);
        gaps->group_ends[0] = in->end;
        return;
    }
    in->lowest = in->slots[0].offset;
    in->first = new->first < in->first ? new->first : in->first;
    in->last = new->last > in->last ? new->last : in->last;
    in->end = new->end > in->end ? new->end : in->end;
    int64_t *end = &gaps->group_ends[c / GROUP];
    *end = new->end > *end ? new->end : *end;
}

int64_t rc_gaps_put(rc_gaps *gaps, int first, int last, int64_t room)
{
    int64_t offset = most_of(gaps->full, 1, 0, gaps->n_leaves, first, last);
    offset = lowest_gap(gaps, offset, first, last, room);
    insert(gaps, &(slot){offset, offset + room, first, last});
    raise(gaps->full, 1, 0, gaps->n_leaves, &(rise){first, last, offset, offset + room});
    return offset;
}
