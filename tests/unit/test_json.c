/* test_json.c — what read/json.c makes of good and hostile texts. */
#include "read_cases.h"

static void json_reads_every_kind(void **state)
{
    (void)state;
    expect_tree(rc_json_read,
                " {\"a\": 1, \"b\": [true, false, null, -2.5e3, \"x\"], \"c\": {}}\n",
                "{a: 1, b: [T, F, null, -2500f, 'x'], c: {}}");
    expect_tree(rc_json_read, "[2.0, 2, 1e2, NaN, -Infinity]", "[2f, 2, 100f, nanf, -inff]");
    expect_tree(rc_json_read, "[1e999]", "[inff]"); /* as Python's json module */
    expect_tree(rc_json_read, "\"\\u00e9\\ud83d\\ude00\\n\\\"\"",
                "'\xC3\xA9\xF0\x9F\x98\x80\n\"'");
    expect_tree(rc_json_read, "9223372036854775807", "9223372036854775807");
    expect_tree(rc_json_read, "9223372036854775808", "9.22337e+18f");
}

static void json_refuses_with_position(void **state)
{
    (void)state;
    expect_refused(rc_json_read, "{\"a\": 1,\n \"b\": 2,\n \"a\": 3}", 3,
                   /* */ " ^", "key a occurs twice, first at 1:2");
    expect_refused(rc_json_read, "{\"a\": 1,}", 1,
                   /* */ "       ^", "JSON has no comma before }");
    expect_refused(rc_json_read, "{\"a\": 1 // x\n}", 1,
                   /* */ "        ^", "JSON has no comments");
    expect_refused(rc_json_read, "{a: 1}", 1,
                   /* */ " ^", "a key in double quotes");
    expect_refused(rc_json_read, "{\"a\" 1}", 1,
                   /* */ "     ^", "a colon is expected");
    expect_refused(rc_json_read, "[1 2]", 1,
                   /* */ "   ^", "a comma or ] is expected");
    expect_refused(rc_json_read, "[01]", 1,
                   /* */ " ^", "no leading zeros");
    expect_refused(rc_json_read, "[1", 1,
                   /* */ "  ^", "the text ends here");
    expect_refused(rc_json_read, "[\"ab\ncd\"]", 1,
                   /* */ " ^", "no closing quote");
    expect_refused(rc_json_read, "[\"\\x\"]", 1,
                   /* */ "   ^", "an escape is one of");
    expect_refused(rc_json_read, "[\"a\\ud800b\"]", 1,
                   /* */ "   ^", "surrogates come in pairs");
    expect_refused(rc_json_read, "{} {}", 1,
                   /* */ "   ^", "one value is all");
    expect_refused(rc_json_read, "", 1, "^", "a value is expected here");
    expect_refused_bytes(rc_json_read, "[1,\0 2]", 7, 1,
                         /* */ "   ^", "a NUL byte");
}

static void json_bounds_depth(void **state)
{
    (void)state;
    static char deep[100001];
    memset(deep, '[', 100000);
    expect_refused(rc_json_read, deep, 1, "                                                ^",
                   "nested deeper than 48");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_reads_every_kind),
        cmocka_unit_test(json_refuses_with_position),
        cmocka_unit_test(json_bounds_depth),
    };
    return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
