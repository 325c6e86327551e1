/* test_gaps.c — the lowest gap, against a plain search through everything that was placed. */
#include "check.h"

#include "base/random.h"
#include "schedule/gaps.h"

typedef struct rectangle {
    int first, last;
    int64_t room, offset;
} rectangle;

enum { MOST = 1500 };

static bool is_free(const rectangle *placed, int n, const rectangle *new, int64_t offset)
{
    for (int i = 0; i < n; i++)
        if (placed[i].first <= new->last &&new->first <= placed[i].last &&
            placed[i].offset < offset + new->room &&offset < placed[i].offset + placed[i].room)
            return false;
    return true;
}

/* The lowest place is 0 or on top of something. */
static int64_t plain_lowest(const rectangle *placed, int n, const rectangle *new)
{
    int64_t lowest = INT64_MAX;
    if (is_free(placed, n, new, 0))
        return 0;
    for (int i = 0; i < n; i++) {
        int64_t top = placed[i].offset + placed[i].room;
        if (top < lowest && is_free(placed, n, new, top))
            lowest = top;
    }
    return lowest;
}

/* Random lives and rooms: short and long ones, and stacks as a model's layers make them. */
static rectangle draw(const rc_random *random, int at, int n, int n_times)
{
    uint32_t bits[4];
    for (uint64_t k = 0; k < 4; k++)
        bits[k] = rc_random_bits(random, 4 * (uint64_t)at + k);
    uint32_t shape = bits[0] % 3;
    rectangle r = {.room = 64 * (1 + (int64_t)(bits[1] % 40))};
    r.first = (int)(bits[2] % (uint32_t)n_times);
    r.last = r.first + (int)(bits[3] % (shape == 0 ? 3 : 200));
    if (shape == 2) { /* nested: forward of a layer to its backward */
        r.first = at * n_times / 2 / n;
        r.last = n_times - 1 - r.first;
    }
    if (r.last >= n_times)
        r.last = n_times - 1;
    return r;
}

static void every_rectangle_takes_the_lowest_gap(void **state)
{
    (void)state;
    static rectangle placed[MOST];
    static const struct {
        int n, n_times;
    } planes[] = {{1, 1}, {2, 1}, {60, 7}, {300, 100}, {300, 1000}, {MOST, 500}, {MOST, 4097}};
    rc_error err = {0};
    rc_arena *mem = rc_arena_open();
    for (size_t p = 0; p < sizeof planes / sizeof *planes; p++) {
        rc_gaps *gaps;
        assert_ok(rc_gaps_open(planes[p].n, planes[p].n_times, mem, &gaps, &err));
        for (uint64_t round = 0; round < 2; round++) { /* a cleared plane is an empty one */
            rc_random random = {.seed = p, .draw = round};
            rc_gaps_clear(gaps);
            for (int i = 0; i < planes[p].n; i++) {
                placed[i] = draw(&random, i, planes[p].n, planes[p].n_times);
                placed[i].offset =
                    rc_gaps_put(gaps, placed[i].first, placed[i].last, placed[i].room);
                assert_int_equal(placed[i].offset, plain_lowest(placed, i, &placed[i]));
            }
        }
    }
    rc_arena_close(mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_rectangle_takes_the_lowest_gap)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
