/* test_order.c — the part of numpy's shuffle that is read, without the rest. */
#include "check.h"

#include "train/order.h"

#include <string.h>

/* Small enough to be shuffled plainly beside it, and large enough to be traced: several blocks of draws,
 * ends of blocks, one entry, none, the most that is traced. */
static void what_is_read_of_an_order_is_numpys(void **state)
{
    static const struct {
        int64_t n, n_kept;
        bool is_traced; /* less memory than the plain way takes */
    } cases[] = {
        {1, 1, false},
        {2, 1, false},
        {1000, 3, false},
        {1000, 1000, false},
        {60000, 1, true},
        {60000, 0, true},
        {60000, 2, true},
        {16384 * 4, 500, true},
        {16384 * 4 + 1, 500, true},
        {16384 * 4 + 2, 501, true},
        {300000, 20000, true},
        {300000, 150000, false},
        {1000003, 16384, true},
        {1000003, 65537, true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (uint32_t seed = 0; seed < 3; seed++) {
            rc_arena *mem = rc_arena_open();
            rc_twister plain, traced;
            rc_order order;
            int64_t *right, n = cases[i].n, n_kept = cases[i].n_kept;
            assert_ok(RC_NEW(mem, &right, n, NULL));
            for (int64_t k = 0; k < n; k++)
                right[k] = k;
            rc_twister_make(seed, &plain);
            rc_twister_make(seed, &traced);
            rc_twister_shuffle(&plain, right, n);
            assert_ok(rc_order_make(&traced, n, n_kept, mem, &order, NULL));
            assert_int_equal(rc_order_count_bytes(n, n_kept) < n * 8 / 2, cases[i].is_traced);
            for (int64_t k = 0; k < n_kept; k++)
                if (rc_order_at(&order, k) != right[k])
                    fail_msg("%lld of %lld, seed %u: entry %lld is %lld and numpy's %lld",
                             (long long)n_kept, (long long)n, seed, (long long)k,
                             (long long)rc_order_at(&order, k), (long long)right[k]);
            for (int k = 0; k < 700; k++) /* what is shuffled next is numpy's too */
                assert_int_equal(rc_twister_next(&traced), rc_twister_next(&plain));
            rc_arena_close(mem);
        }
    }
}

/* 100,000 samples of 2^28: Megatron's array of them takes 2 GiB. */
static void memory_goes_by_what_is_read(void **state)
{
    (void)state;
    assert_true(rc_order_count_bytes(INT64_C(1) << 28, 100000) < 16 << 20);
    assert_true(rc_order_count_bytes(INT64_C(1) << 34, 100000) < 64 << 20);
    assert_int_equal(rc_order_count_bytes(1 << 20, 1 << 20), 8 << 20);
}

static void an_order_by_key_has_every_entry_once(void **state)
{
    static const int64_t sizes[] = {1, 2, 3, 4, 5, 15, 16, 17, 1000, 4095, 4096, 4097, 100003};
    static const uint32_t keys[][2] = {{0, 0}, {1234, 0}, {1234, 1}};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (size_t k = 0; k < 3; k++) {
            static unsigned char seen[100003];
            int64_t n_in_place = 0;
            rc_order order = rc_order_of_key(sizes[i], keys[k]);
            memset(seen, 0, sizeof seen);
            for (int64_t e = 0; e < sizes[i]; e++) {
                int64_t at = rc_order_at(&order, e);
                assert_true(at >= 0 && at < sizes[i] && !seen[at]);
                seen[at] = 1;
                n_in_place += at == e;
            }
            assert_true(sizes[i] < 1000 || n_in_place < 10); /* a random order keeps one */
        }
    }
    /* another key, another order; and the largest there can be */
    rc_order one = rc_order_of_key(INT64_MAX, keys[1]),
             other = rc_order_of_key(INT64_MAX, keys[2]);
    int n_same = 0;
    for (int64_t e = 0; e < 100; e++) {
        assert_in_range(rc_order_at(&one, e), 0, INT64_MAX - 1);
        n_same += rc_order_at(&one, e) == rc_order_at(&other, e);
    }
    assert_int_equal(n_same, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_read_of_an_order_is_numpys),
        cmocka_unit_test(memory_goes_by_what_is_read),
        cmocka_unit_test(an_order_by_key_has_every_entry_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
