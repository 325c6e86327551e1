/* place.c — an offset in the arena for every buffer.
 *
 * takes  live ranges (live.c)
 * gives  offsets such that no two buffers alive at once overlap; arena_bytes
 *
 * Weights, gradients and optimizer state lie at the bottom for ever, each kind contiguous. Above
 * them the buffers of a step are packed: rectangles of bytes x instructions, which may slide in
 * bytes only (dynamic storage allocation, NP-hard; Wilson et al. 1995 survey the heuristics). Each
 * buffer in turn takes the lowest gap among those already placed that live at the same time (gaps.c).
 * Several orders are tried. In each, what sticks out on top is moved to the front of the order, or
 * changes places with what it stands on, and the packing is repeated. The bound is the largest sum of
 * live bytes, and the search stops as soon as it is met.
 */
#include "schedule/passes.h"

#include "base/num.h"
#include "schedule/gaps.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct item {
    int buffer, first, last;
    int64_t room, offset;
} item;

typedef struct packing {
    item *items; /* [n] in the order they are placed */
    item *best;  /* [n] the best packing so far, with offsets */
    rc_gaps *gaps;
    int n;
    int64_t height, best_height, bound;
} packing;

static void pack(packing *p)
{
    p->height = 0;
    rc_gaps_clear(p->gaps);
    for (int i = 0; i < p->n; i++) {
        item *at = &p->items[i];
        at->offset = rc_gaps_put(p->gaps, at->first, at->last, at->room);
        if (at->offset + at->room > p->height)
            p->height = at->offset + at->room;
    }
    if (p->height < p->best_height) {
        p->best_height = p->height;
        memcpy(p->best, p->items, (size_t)p->n * sizeof *p->best);
    }
}

static int sign(int64_t difference)
{
    return difference < 0 ? -1 : difference > 0;
}

static int by_room(const void *a, const void *b)
{
    const item *x = a, *y = b;
    int order = sign(y->room - x->room);
    return order ? order : sign((int64_t)x->buffer - y->buffer);
}

static int by_life(const void *a, const void *b)
{
    const item *x = a, *y = b;
    int order = sign((int64_t)(y->last - y->first) - (x->last - x->first));
    return order ? order : by_room(a, b);
}

static int by_area(const void *a, const void *b)
{
    const item *x = a, *y = b;
    double area_x = (double)x->room * (x->last - x->first + 1);
    double area_y = (double)y->room * (y->last - y->first + 1);
    return area_x > area_y ? -1 : area_x < area_y ? 1 : by_room(a, b);
}

static int by_first(const void *a, const void *b)
{
    const item *x = a, *y = b;
    int order = sign((int64_t)x->first - y->first);
    return order ? order : by_life(a, b);
}

/* Moves the items that reach the top to the front of the order, as a unit. */
static void lift_top(packing *p, item *spare)
{
    int n_top = 0, n_rest = 0;
    for (int i = 0; i < p->n; i++)
        if (p->items[i].offset + p->items[i].room == p->height)
            spare[n_top++] = p->items[i];
    for (int i = 0; i < p->n; i++)
        if (p->items[i].offset + p->items[i].room != p->height)
            spare[n_top + n_rest++] = p->items[i];
    memcpy(p->items, spare, (size_t)p->n * sizeof *spare);
}

/* Half a percent is below what the next step of the search could earn. */
static bool is_near(const packing *p)
{
    return p->best_height <= p->bound + p->bound / 200;
}

/* Moves an item that reaches the top to the place in the order just before the one it stands on: it
 * takes the lower place, and that one the upper. Where a large scratch follows another with a value
 * handed over between them, this is what makes room. False when nothing it stands on came before. */
static bool duck_top(packing *p)
{
    int top = 0, under = -1;
    while (p->items[top].offset + p->items[top].room != p->height)
        top++;
    const item moved = p->items[top];
    for (int i = 0; i < top; i++) {
        const item *at = &p->items[i];
        const bool meets = at->first <= moved.last && moved.first <= at->last;
        if (meets && at->offset + at->room <= moved.offset &&
            (under < 0 || at->offset > p->items[under].offset))
            under = i;
    }
    if (under < 0)
        return false;
    memmove(&p->items[under + 1], &p->items[under], (size_t)(top - under) * sizeof moved);
    p->items[under] = moved;
    return true;
}

static void search(packing *p, item *spare)
{
    static int (*const orders[])(const void *, const void *) = {by_room, by_area, by_life,
                                                                by_first};
    enum { MOST_LIFTS = 40 };
    for (size_t k = 0; k < sizeof orders / sizeof *orders; k++) {
        qsort(p->items, (size_t)p->n, sizeof *p->items, orders[k]);
        pack(p);
        for (int i = 0; i < MOST_LIFTS && !is_near(p); i++) {
            lift_top(p, spare);
            pack(p);
        }
        if (!is_near(p)) {
            qsort(p->items, (size_t)p->n, sizeof *p->items, orders[k]);
            pack(p);
        }
        for (int i = 0; i < MOST_LIFTS && !is_near(p) && duck_top(p); i++)
            pack(p);
        if (is_near(p))
            return;
    }
}

/* Offsets of persistent buffers, kind by kind. */
static rc_code place_persistent(rc_schedule *schedule, rc_error *err)
{
    int64_t top = 0;
    for (int category = 0; category < RC_CATEGORY_COUNT; category++) {
        for (int i = 0; i < schedule->n_buffers; i++) {
            rc_buffer *b = &schedule->buffers[i];
            if (!b->is_persistent || (int)b->category != category)
                continue;
            b->offset = top;
            if (!rc_add(top, rc_buffer_room(b), &top))
                return RC_FAIL(err, RC_E_RANGE, RC_NOWHERE, "the model passes 2^63-1 bytes");
        }
    }
    schedule->persistent_bytes = top;
    return RC_OK;
}

rc_code rc_schedule_place(rc_schedule *schedule, rc_arena *mem, rc_error *err)
{
    RC_TRY(place_persistent(schedule, err));
    packing p = {.best_height = INT64_MAX,
                 .bound = schedule->bound_bytes - schedule->persistent_bytes};
    item *spare;
    RC_TRY(RC_NEW(mem, &p.items, schedule->n_buffers, err));
    RC_TRY(RC_NEW(mem, &p.best, schedule->n_buffers, err));
    RC_TRY(rc_gaps_open(schedule->n_buffers, schedule->n_instrs, mem, &p.gaps, err));
    RC_TRY(RC_NEW(mem, &spare, schedule->n_buffers, err));
    for (int i = 0; i < schedule->n_buffers; i++) {
        const rc_buffer *b = &schedule->buffers[i];
        if (!b->is_persistent && b->last >= 0)
            p.items[p.n++] = (item){i, b->first, b->last, rc_buffer_room(b), 0};
    }
    search(&p, spare);
    if (p.n == 0)
        p.best_height = 0;
    for (int i = 0; i < p.n; i++)
        schedule->buffers[p.best[i].buffer].offset =
            schedule->persistent_bytes + p.best[i].offset;
    schedule->step_bytes = p.best_height;
    if (!rc_add(schedule->persistent_bytes, schedule->step_bytes, &schedule->arena_bytes))
        return RC_FAIL(err, RC_E_RANGE, RC_NOWHERE, "the arena passes 2^63-1 bytes");
    return RC_OK;
}
