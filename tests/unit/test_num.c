/* test_num.c — checked products, and numbers as people read and write them. */
#include "check.h"

#include "base/num.h"

#include <math.h>
#include <string.h>

static void products_and_sums_refuse_overflow_and_negatives(void **state)
{
    (void)state;
    int64_t out = -7;
    assert_true(rc_mul(3037000499, 3037000499, &out)); /* floor(sqrt(2^63)) squared */
    assert_int_equal(out, 9223372030926249001);
    assert_false(rc_mul(3037000500, 3037000500, &out));
    assert_false(rc_mul(-1, 1, &out));
    assert_true(rc_mul(0, INT64_MAX, &out));
    assert_int_equal(out, 0);
    assert_true(rc_add(INT64_MAX - 1, 1, &out));
    assert_int_equal(out, INT64_MAX);
    assert_false(rc_add(INT64_MAX, 1, &out));
    assert_false(rc_add(1, -1, &out));
    assert_int_equal(out, INT64_MAX); /* untouched by a refusal */
}

static void rounding_up_reaches_the_next_multiple(void **state)
{
    (void)state;
    assert_int_equal(rc_round_up(0, 64), 0);
    assert_int_equal(rc_round_up(1, 64), 64);
    assert_int_equal(rc_round_up(64, 64), 64);
    assert_int_equal(rc_round_up(65, 64), 128);
}

static void bytes_print_with_three_digits(void **state)
{
    (void)state;
    static const struct {
        int64_t bytes;
        const char *text;
    } cases[] = {{0, "0 B"},
                 {7, "7 B"},
                 {1023, "1023 B"},
                 {1024, "1.00 KiB"},
                 {10230, "9.99 KiB"},
                 {10236, "10.0 KiB"},
                 {102400, "100 KiB"},
                 {1047552, "1023 KiB"},
                 {1048575, "1.00 MiB"},
                 {1342177280, "1.25 GiB"},
                 {INT64_MAX, "8192 PiB"},
                 {-2048, "-2.00 KiB"}};
    char buf[32];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(rc_format_bytes(cases[i].bytes, buf), cases[i].text);
}

static void counts_print_in_groups_of_three(void **state)
{
    (void)state;
    char buf[32];
    assert_string_equal(rc_format_count(0, buf), "0");
    assert_string_equal(rc_format_count(999, buf), "999");
    assert_string_equal(rc_format_count(1000, buf), "1,000");
    assert_string_equal(rc_format_count(-1234567, buf), "-1,234,567");
    assert_string_equal(rc_format_count(INT64_MIN, buf), "-9,223,372,036,854,775,808");
}

static void si_numbers_print_with_a_prefix(void **state)
{
    (void)state;
    char buf[32];
    assert_string_equal(rc_format_si(3.214e12, buf), "3.21 T");
    assert_string_equal(rc_format_si(45e9, buf), "45.0 G");
    assert_string_equal(rc_format_si(999.7, buf), "1.00 K");
    assert_string_equal(rc_format_si(12, buf), "12 ");
}

static void seconds_print_in_the_unit_that_reads_best(void **state)
{
    (void)state;
    static const struct {
        double seconds;
        const char *text;
    } cases[] = {{0, "0 us"},         {4.2e-6, "4.2 us"},  {4.56e-3, "4.56 ms"},
                 {0.99949, "999 ms"}, {0.9999, "1.0 s"},   {12.34, "12.3 s"},
                 {59.97, "1m00s"},    {200, "3m20s"},      {3599.7, "1h00m"},
                 {3720, "1h02m"},     {-12.34, "-12.3 s"}, {-200, "-3m20s"}};
    char buf[32];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(rc_format_seconds(cases[i].seconds, buf), cases[i].text);
    assert_string_equal(rc_format_seconds(INFINITY, buf), "inf s");
}

/* Whatever unit is printed is read back: one table. */
static void bytes_that_are_printed_are_read(void **state)
{
    (void)state;
    for (int power = 0; power < 60; power += 10) {
        char buf[32];
        int64_t bytes;
        assert_true(rc_parse_bytes(rc_format_bytes((int64_t)3 << power, buf), &bytes));
        assert_int_equal(bytes, (int64_t)3 << power);
    }
}

/* Programs print powers of 1024 whatever they call them. */
static void bytes_units_of_programs_are_binary(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double unit;
        size_t n;
    } cases[] = {{"GiB free", 0x1p30, 3},
                 {"GB", 0x1p30, 2},
                 {"KBs", 0x1p10, 2},
                 {"MiBisfree", 0x1p20, 3},
                 {"TiB", 0x1p40, 3},
                 {"bytes", 1, 5},
                 {"byte.", 1, 4},
                 {"B", 1, 1},
                 {"gib", 0, 0},
                 {"G", 0, 0},
                 {"", 0, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *text = cases[i].text, *end = text;
        assert_true(rc_find_printed_unit(text, text + strlen(text), &end) == cases[i].unit);
        assert_int_equal(end - text, cases[i].n);
    }
}

static void bytes_are_read_with_units(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is_fine;
        int64_t bytes;
    } cases[] = {{"0", true, 0},
                 {"1073741824", true, 1073741824},
                 {"512MiB", true, 536870912},
                 {"512 mib", true, 536870912},
                 {"2.5 GiB", true, 2684354560},
                 {"80GB", true, 80000000000},
                 {"7b", true, 7},
                 {"3KB", true, 3000},
                 {"2 TiB", true, 2199023255552},
                 {"1PiB", true, 1125899906842624},
                 {"1 PB", true, 1000000000000000},
                 {"1 K", false, 0},
                 {"1 iB", false, 0},
                 {"9007199254740993", true, 9007199254740993}, /* 2^53 + 1 */
                 {"9223372036854775807", true, INT64_MAX},
                 {"9223372036854775808", false, 0},
                 {"9000000 TiB", false, 0},
                 {"1e30 GiB", false, 0},
                 {"-1", false, 0},
                 {"", false, 0},
                 {"GiB", false, 0},
                 {"1 GiBs", false, 0},
                 {" 1", false, 0},
                 {"nan", false, 0},
                 {"inf", false, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t bytes = -7;
        assert_int_equal(rc_parse_bytes(cases[i].text, &bytes), cases[i].is_fine);
        assert_int_equal(bytes, cases[i].is_fine ? cases[i].bytes : -7);
    }
}

static void whole_strings_are_read_as_numbers_or_refused(void **state)
{
    (void)state;
    int64_t i = 0;
    double f = 0;
    assert_true(rc_parse_int("-12", &i));
    assert_int_equal(i, -12);
    assert_true(rc_parse_int("9223372036854775807", &i));
    assert_false(rc_parse_int("9223372036854775808", &i));
    assert_false(rc_parse_int("12x", &i));
    assert_false(rc_parse_int(" 12", &i));
    assert_false(rc_parse_int("", &i));
    assert_true(rc_parse_real("1e-5", &f));
    assert_true(f == 1e-5);
    assert_false(rc_parse_real("1e-5 ", &f));
    assert_false(rc_parse_real("", &f));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_and_sums_refuse_overflow_and_negatives),
        cmocka_unit_test(rounding_up_reaches_the_next_multiple),
        cmocka_unit_test(bytes_print_with_three_digits),
        cmocka_unit_test(counts_print_in_groups_of_three),
        cmocka_unit_test(si_numbers_print_with_a_prefix),
        cmocka_unit_test(seconds_print_in_the_unit_that_reads_best),
        cmocka_unit_test(bytes_are_read_with_units),
        cmocka_unit_test(bytes_that_are_printed_are_read),
        cmocka_unit_test(bytes_units_of_programs_are_binary),
        cmocka_unit_test(whole_strings_are_read_as_numbers_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
