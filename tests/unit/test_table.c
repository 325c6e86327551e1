/* test_table.c — filling tables and reports. */
#include "check.h"

#include <recompute/table.h>

static const rc_column columns[] = {{"setting", "Setting", RC_UNIT_TEXT},
                                    {"peak_bytes", NULL, RC_UNIT_BYTES}};

static void rows_start_null_and_survive_growth(void **state)
{
    (void)state;
    rc_arena *mem = rc_arena_open();
    rc_table *table;
    rc_cell *row;
    assert_ok(rc_table_make(mem, "t", "T", columns, 2, &table, NULL));
    assert_int_equal(table->n_rows, 0);
    for (int i = 0; i < 100; i++) {
        assert_ok(rc_table_add_row(table, &row, NULL));
        assert_true(row[0].is_null);
        assert_true(row[1].is_null);
        row[1] = rc_cell_int(i);
    }
    assert_int_equal(table->n_rows, 100);
    for (int i = 0; i < 100; i++) {
        assert_true(table->cells[2 * i].is_null);
        assert_false(table->cells[2 * i + 1].is_null);
        assert_int_equal(table->cells[2 * i + 1].i, i);
    }
    rc_arena_close(mem);
}

static void failed_growth_keeps_the_rows(void **state)
{
    (void)state;
    rc_arena *mem = rc_arena_open();
    rc_table *table;
    rc_cell *row;
    assert_ok(rc_table_make(mem, "t", NULL, columns, 2, &table, NULL));
    for (int i = 0; i < 16; i++) {
        assert_ok(rc_table_add_row(table, &row, NULL));
        row[1] = rc_cell_int(i);
    }
    rc_arena_fail_after(mem, 0);
    assert_int_equal(rc_table_add_row(table, &row, NULL), RC_E_MEMORY);
    assert_int_equal(table->n_rows, 16);
    assert_int_equal(table->cells[31].i, 15);
    rc_arena_close(mem);
}

static void cells_hold_what_they_were_given(void **state)
{
    (void)state;
    assert_true(rc_cell_text(NULL).is_null);
    assert_string_equal(rc_cell_text("x").text, "x");
    assert_int_equal(rc_cell_int(-3).i, -3);
    assert_true(rc_cell_int(-3).f == -3.0);
    assert_true(rc_cell_real(0.25).f == 0.25);
}

static void reports_keep_order_and_kind(void **state)
{
    (void)state;
    rc_table a = {.name = "a"}, b = {.name = "b"};
    rc_report report = {.n = 0};
    rc_report_add(&report, &a, true);
    rc_report_add(&report, &b, false);
    assert_int_equal(report.n, 2);
    assert_ptr_equal(report.at[0], &a);
    assert_true(report.is_facts[0]);
    assert_ptr_equal(report.at[1], &b);
    assert_false(report.is_facts[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_start_null_and_survive_growth),
        cmocka_unit_test(failed_growth_keeps_the_rows),
        cmocka_unit_test(cells_hold_what_they_were_given),
        cmocka_unit_test(reports_keep_order_and_kind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
