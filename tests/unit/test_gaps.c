/* test_gaps.c — the lowest gap, against a plain search through everything that was placed. */
#include "check.h"

#include "base/random.h"
#include "schedule/gaps.h"

typedef struct rectangle {
    int first, last;
    int64_t room, offset;
} rectangle;

enum { MOST = 9000 }; /* more than two groups of chunks (gaps.c) */

/* Through all that lies there by offset; keeps `placed` sorted. */
static int64_t plain_put(rectangle *placed, int n, rectangle new)
{
    int at = n;
    new.offset = 0;
    for (int i = 0; i < n && placed[i].offset < new.offset + new.room; i++)
        if (placed[i].first <= new.last &&new.first <= placed[i].last &&
            placed[i].offset + placed[i].room > new.offset)
            new.offset = placed[i].offset + placed[i].room;
    for (; at > 0 && placed[at - 1].offset > new.offset; at--)
        placed[at] = placed[at - 1];
    placed[at] = new;
    return new.offset;
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
                rectangle new = draw(&random, i, planes[p].n, planes[p].n_times);
                int64_t offset = rc_gaps_put(gaps, new.first, new.last, new.room);
                assert_int_equal(offset, plain_put(placed, i, new));
            }
        }
    }
    rc_arena_close(mem);
}

/* Many small ones at other times make whole groups of chunks that end too low to matter, and the busy
 * times' rectangles lie just behind them, at every distance from a group's border. */
static void groups_that_end_too_low_are_passed_over(void **state)
{
    (void)state;
    enum { BUSY = 8, N_BUSY = 150, FEWEST = 1900, MOST_SMALL = 2300 };
    static rectangle placed[MOST];
    rc_error err = {0};
    rc_arena *mem = rc_arena_open();
    rc_gaps *gaps;
    assert_ok(rc_gaps_open(MOST_SMALL + N_BUSY, BUSY + MOST_SMALL, mem, &gaps, &err));
    for (int n_small = FEWEST; n_small <= MOST_SMALL; n_small += 8) {
        rc_random random = {.seed = 7, .draw = (uint64_t)n_small};
        rc_gaps_clear(gaps);
        for (int i = 0; i < n_small + N_BUSY; i++) {
            rectangle new = {.first = BUSY + i, .last = BUSY + i, .room = 64};
            if (i >= n_small) {
                new.first = (int)(rc_random_bits(&random, 3 * (uint64_t)i) % BUSY);
                new.last =
                    new.first + (int)(rc_random_bits(&random, 3 * (uint64_t)i + 1) % BUSY);
                new.last = new.last < BUSY ? new.last : BUSY - 1;
                new.room = 64 * (1 + rc_random_bits(&random, 3 * (uint64_t)i + 2) % 40);
            }
            int64_t offset = rc_gaps_put(gaps, new.first, new.last, new.room);
            assert_int_equal(offset, plain_put(placed, i, new));
        }
    }
    rc_arena_close(mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_rectangle_takes_the_lowest_gap),
        cmocka_unit_test(groups_that_end_too_low_are_passed_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
