/* test_error.c — failures are passed up unchanged, and the first one wins. */
#include "check.h"

#include <string.h>

static rc_code fails(rc_error *err)
{
    rc_where where = {.file = "a.yaml", .line = 3, .col = 7};
    return RC_FAIL(err, RC_E_INPUT, where, "num_layers is %d; it must be at least %d", 0, 1);
}

static rc_code passes_up(rc_error *err)
{
    RC_TRY(fails(err));
    return RC_FAIL(err, RC_E_BUG, RC_NOWHERE, "never reached");
}

static void failure_carries_code_place_and_text(void **state)
{
    (void)state;
    rc_error err = {0};
    assert_int_equal(passes_up(&err), RC_E_INPUT);
    assert_int_equal(err.code, RC_E_INPUT);
    assert_string_equal(err.msg, "num_layers is 0; it must be at least 1");
    assert_string_equal(err.where.file, "a.yaml");
    assert_int_equal(err.where.line, 3);
    assert_int_equal(err.where.col, 7);
    assert_non_null(strstr(err.raised_at, "test_error.c:"));
}

static void first_failure_wins(void **state)
{
    (void)state;
    rc_error err = {0};
    assert_int_equal(fails(&err), RC_E_INPUT);
    assert_int_equal(RC_FAIL(&err, RC_E_IO, RC_NOWHERE, "later"), RC_E_IO);
    assert_int_equal(err.code, RC_E_INPUT);
    assert_string_equal(err.msg, "num_layers is 0; it must be at least 1");
}

static void error_may_be_null(void **state)
{
    (void)state;
    assert_int_equal(passes_up(NULL), RC_E_INPUT);
}

static void long_message_is_cut_and_terminated(void **state)
{
    (void)state;
    char longer[2000];
    rc_error err = {0};
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    assert_int_equal(RC_FAIL(&err, RC_E_IO, RC_NOWHERE, "%s", longer), RC_E_IO);
    assert_int_equal(strlen(err.msg), sizeof err.msg - 1);
}

static void exit_status_of_every_code(void **state)
{
    (void)state;
    static const struct {
        rc_code code;
        int status;
    } cases[] = {{RC_OK, 0},       {RC_E_INPUT, 2},       {RC_E_RANGE, 2}, {RC_E_IO, 3},
                 {RC_E_MEMORY, 3}, {RC_E_UNSUPPORTED, 4}, {RC_E_BUG, 70},  {RC_E_STOPPED, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(rc_code_exit_status(cases[i].code), cases[i].status);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failure_carries_code_place_and_text),
        cmocka_unit_test(first_failure_wins),
        cmocka_unit_test(error_may_be_null),
        cmocka_unit_test(long_message_is_cut_and_terminated),
        cmocka_unit_test(exit_status_of_every_code),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
