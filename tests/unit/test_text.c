/* test_text.c — growing strings, near names, and untrusted bytes made harmless. */
#include "check.h"

#include "base/text.h"

#include <string.h>

static void text_grows_and_stays_terminated(void **state)
{
    (void)state;
    rc_arena *mem = rc_arena_open();
    rc_text text = {.mem = mem};
    for (int i = 0; i < 500; i++)
        assert_ok(rc_text_printf(&text, NULL, "%03d,", i));
    assert_int_equal(text.n, 2000);
    assert_int_equal(strlen(text.at), 2000);
    assert_memory_equal(text.at + 4 * 123, "123,", 4);
    assert_ok(rc_text_add(&text, "xyz", 2, NULL));
    assert_string_equal(text.at + 2000, "xy");
    rc_arena_close(mem);
}

static void failed_add_leaves_what_was_there(void **state)
{
    (void)state;
    rc_arena *mem = rc_arena_open();
    rc_text text = {.mem = mem};
    assert_ok(rc_text_add(&text, "abc", 3, NULL));
    rc_arena_fail_after(mem, 0);
    char longer[1000] = {0};
    assert_int_equal(rc_text_add(&text, longer, sizeof longer, NULL), RC_E_MEMORY);
    assert_string_equal(text.at, "abc");
    assert_int_equal(text.n, 3);
    rc_arena_close(mem);
}

static void distance_counts_edits_and_swaps(void **state)
{
    (void)state;
    assert_int_equal(rc_text_distance("", ""), 0);
    assert_int_equal(rc_text_distance("", "abc"), 3);
    assert_int_equal(rc_text_distance("kitten", "sitting"), 3);
    assert_int_equal(rc_text_distance("core_attn", "core_atnt"), 1);
    assert_int_equal(rc_text_distance("mlp", "mpl"), 1);
    assert_int_equal(rc_text_distance("moe", "mlp"), 2);
}

static void nearest_name_is_suggested_only_when_near(void **state)
{
    (void)state;
    static const char *const names[] = {"core_attn", "layernorm", "mlp", "moe_act"};
    assert_string_equal(rc_text_nearest("core_atn", names, 4), "core_attn");
    assert_string_equal(rc_text_nearest("layer_norm", names, 4), "layernorm");
    assert_null(rc_text_nearest("zzzzzz", names, 4));
    assert_null(rc_text_nearest("x", names, 0));
}

static const char *printable(const char *bytes, size_t n)
{
    static char buf[128];
    return rc_text_printable(bytes, n, buf, sizeof buf);
}

static void control_bytes_and_bad_utf8_become_hex(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t n;
        const char *text;
    } cases[] = {{"plain", 5, "plain"},
                 {"\x1b[2J", 4, "\\x1B[2J"},
                 {"a\nb\tc", 5, "a\\x0Ab\\x09c"},
                 {"nul\0x", 5, "nul\\x00x"},
                 {"\x7f", 1, "\\x7F"},
                 {"\xc3\xa9", 2, "\xc3\xa9"},                     /* e acute */
                 {"\xf0\x9f\x98\x80", 4, "\xf0\x9f\x98\x80"},     /* an emoji */
                 {"\xc2\x9b", 2, "\\xC2\\x9B"},                   /* C1: CSI */
                 {"\xc0\xaf", 2, "\\xC0\\xAF"},                   /* overlong */
                 {"\xed\xa0\x80", 3, "\\xED\\xA0\\x80"},          /* a surrogate */
                 {"\xf4\x90\x80\x80", 4, "\\xF4\\x90\\x80\\x80"}, /* past U+10FFFF */
                 {"\xc3", 1, "\\xC3"},                            /* cut short */
                 {"\xe2\x82"
                  "a",
                  3,
                  "\\xE2\\x82"
                  "a"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(printable(cases[i].bytes, cases[i].n), cases[i].text);
}

static void printable_text_stops_at_whole_characters(void **state)
{
    (void)state;
    char buf[6];
    assert_string_equal(rc_text_printable("abcdefgh", 8, buf, sizeof buf), "abcde");
    assert_string_equal(rc_text_printable("abc\x01", 4, buf, sizeof buf), "abc");
    assert_string_equal(rc_text_printable("abcd\xc3\xa9", 6, buf, sizeof buf), "abcd");
    assert_string_equal(rc_text_printable("abc", 3, buf, 1), "");
}

static void width_counts_columns_not_bytes(void **state)
{
    (void)state;
    assert_int_equal(rc_text_width(""), 0);
    assert_int_equal(rc_text_width("abc"), 3);
    assert_int_equal(rc_text_width("\xc3\xa9t\xc3\xa9"), 3);
    assert_int_equal(rc_text_width("e\xcc\x81"), 1); /* e and a combining acute */
    assert_int_equal(rc_text_width("\xe6\x97\xa5\xe6\x9c\xac"), 4); /* two kanji */
    assert_int_equal(rc_text_width("\xf0\x9f\x98\x80"), 2);
}

static void distance_within_is_the_distance_or_more_than_asked(void **state)
{
    static const char *const words[] = {
        "",    "a",      "ab",       "ba",        "recompute_modules",
        "abc", "acb",    "xabcabcx", "abcabcab",  "recompute_modulse",
        "bca", "aaaaaa", "aabaa",    "recompute", "modules"};
    (void)state;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        for (size_t k = 0; k < sizeof words / sizeof *words; k++)
            for (size_t most = 0; most < 20; most++) {
                size_t exact = rc_text_distance(words[i], words[k]);
                size_t within = rc_text_distance_within(words[i], words[k], most);
                if (exact <= most)
                    assert_int_equal(within, exact);
                else
                    assert_true(within > most);
            }
    assert_int_equal(rc_text_distance("recompute_modules", "recompute_modulse"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distance_within_is_the_distance_or_more_than_asked),
        cmocka_unit_test(text_grows_and_stays_terminated),
        cmocka_unit_test(failed_add_leaves_what_was_there),
        cmocka_unit_test(distance_counts_edits_and_swaps),
        cmocka_unit_test(nearest_name_is_suggested_only_when_near),
        cmocka_unit_test(control_bytes_and_bad_utf8_become_hex),
        cmocka_unit_test(printable_text_stops_at_whole_characters),
        cmocka_unit_test(width_counts_columns_not_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
