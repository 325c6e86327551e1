/* test_random.c — Philox against the published vectors, and what is built on it. */
#include "base/random.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* Random123's kat_vectors, rows "philox4x32 10". */
static void philox_matches_published_vectors(void **state)
{
    static const struct {
        uint32_t counter[4], key[2], out[4];
    } rows[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint32_t out[4];
        rc_philox(rows[i].counter, rows[i].key, out);
        assert_memory_equal(out, rows[i].out, sizeof out);
    }
}

static const rc_random stream = {
    .seed = 0x299f31d0a4093822u, .draw = 0x123456789abcu, .id = 0x13198a2e};

static void element_is_a_word_of_its_counter(void **state)
{
    const uint64_t e = 0x2345600000017u;
    const uint32_t key[2] = {0xa4093822u, 0x299f31d0u};
    const uint32_t counter[4] = {(uint32_t)(e / 4), (uint32_t)(e / 4 >> 32) | 0x12340000u,
                                 0x13198a2e, 0x56789abcu};
    uint32_t out[4];
    (void)state;
    rc_philox(counter, key, out);
    assert_int_equal(rc_random_bits(&stream, e), out[3]);
}

static void lanes_equal_single_elements(void **state)
{
    uint32_t out[4][RC_RANDOM_LANES];
    (void)state;
    /* the counters pass 2^32 on the way */
    rc_random_lanes(&stream, 0xffffffe0u, 3, RC_RANDOM_LANES, out);
    for (uint64_t i = 0; i < RC_RANDOM_LANES; i++)
        for (uint64_t w = 0; w < 4; w++)
            assert_int_equal(out[w][i], rc_random_bits(&stream, (0xffffffe0u + 3 * i) * 4 + w));
}

static void keep_starts_anywhere(void **state)
{
    const uint32_t threshold = rc_random_threshold(0.25);
    float keep[700];
    (void)state;
    for (uint64_t first = 0; first < 5; first++)
        for (int64_t n = 0; n < 700; n += 97) {
            rc_random_keep(&stream, first, n, 0.25, keep);
            for (int64_t i = 0; i < n; i++) {
                bool is_kept = rc_random_bits(&stream, first + (uint64_t)i) >= threshold;
                assert_true(keep[i] == (is_kept ? (float)(1 / 0.75) : 0.0f));
            }
        }
}

static void keep_drops_its_share(void **state)
{
    enum { N = 40000 };
    static float keep[N];
    int n_dropped = 0;
    (void)state;
    rc_random_keep(&stream, 0, N, 0.1, keep);
    for (int i = 0; i < N; i++)
        n_dropped += keep[i] == 0.0f;
    assert_in_range(n_dropped, 3760, 4240); /* four deviations of 60 */
}

static void threshold_is_the_probability_in_32_bits(void **state)
{
    (void)state;
    assert_int_equal(rc_random_threshold(0), 0);
    assert_int_equal(rc_random_threshold(0.5), 0x80000000u);
    assert_int_equal(rc_random_threshold(1), 0xffffffffu);
}

static void normal_has_mean_and_deviation(void **state)
{
    enum { N = 50000 };
    static float x[N];
    double sum = 0, square = 0;
    (void)state;
    rc_random_normal(&stream, 0, N, 3, 0.5, x);
    for (int i = 0; i < N; i++) {
        sum += (double)x[i];
        square += ((double)x[i] - 3) * ((double)x[i] - 3);
    }
    assert_true(fabs(sum / N - 3) < 4 * 0.5 / sqrt(N));
    assert_true(fabs(sqrt(square / N) - 0.5) < 4 * 0.5 / sqrt(2.0 * N));
}

static void values_do_not_depend_on_the_cut(void **state)
{
    float whole[101], part[101];
    (void)state;
    rc_random_normal(&stream, 0, 101, 0, 1, whole);
    rc_random_normal(&stream, 0, 40, 0, 1, part);
    rc_random_normal(&stream, 40, 61, 0, 1, part + 40);
    assert_memory_equal(whole, part, sizeof whole);
    rc_random_uniform(&stream, 0, 101, -1, 1, whole);
    rc_random_uniform(&stream, 0, 33, -1, 1, part);
    rc_random_uniform(&stream, 33, 68, -1, 1, part + 33);
    assert_memory_equal(whole, part, sizeof whole);
    for (int i = 0; i < 101; i++)
        assert_true(whole[i] >= -1 && whole[i] <= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(philox_matches_published_vectors),
        cmocka_unit_test(element_is_a_word_of_its_counter),
        cmocka_unit_test(lanes_equal_single_elements),
        cmocka_unit_test(keep_starts_anywhere),
        cmocka_unit_test(keep_drops_its_share),
        cmocka_unit_test(threshold_is_the_probability_in_32_bits),
        cmocka_unit_test(normal_has_mean_and_deviation),
        cmocka_unit_test(values_do_not_depend_on_the_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
