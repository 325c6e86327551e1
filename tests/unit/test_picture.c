/* test_picture.c — scales with round ticks; charts of tables as SVG. */
#include "check.h"

#include <recompute/picture.h>

#include "report/axis.h"

#include <math.h>
#include <string.h>

static void axis_ends_at_round_ticks(void **state)
{
    (void)state;
    static const struct {
        double low, high;
        rc_unit unit;
        double expect_low, expect_high, expect_step;
    } cases[] = {
        {0, 97, RC_UNIT_REAL, 0, 100, 20},
        {0, 1023 * 0x1p20, RC_UNIT_BYTES, 0, 1024 * 0x1p20, 256 * 0x1p20},
        {0, 3, RC_UNIT_COUNT, 0, 3, 1},
        {-0.3, 0.4, RC_UNIT_REAL, -0.4, 0.4, 0.2},
        {5, 5, RC_UNIT_REAL, 2, 8, 1},
        {0, 0, RC_UNIT_REAL, 0, 1, 0.2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rc_axis axis = rc_axis_make(cases[i].low, cases[i].high, cases[i].unit, false, 5);
        assert_true(axis.low <= cases[i].low && axis.high >= cases[i].high);
        assert_true(fabs(axis.step - cases[i].expect_step) < 1e-9 * cases[i].expect_step);
        if (cases[i].low < cases[i].high) {
            assert_true(fabs(axis.low - cases[i].expect_low) < 1e-9);
            assert_true(fabs(axis.high - cases[i].expect_high) < 1e-9 * axis.high);
        }
    }
}

static void axis_labels_share_a_unit(void **state)
{
    (void)state;
    char label[48];
    rc_axis bytes = rc_axis_make(0, 3 * 0x1p30, RC_UNIT_BYTES, false, 3);
    assert_int_equal(rc_axis_count(&bytes), 4);
    assert_string_equal(rc_axis_label(&bytes, 0, label), "0 GiB");
    assert_string_equal(rc_axis_label(&bytes, 3, label), "3 GiB");
    rc_axis ratio = rc_axis_make(0, 1, RC_UNIT_RATIO, false, 2);
    assert_string_equal(rc_axis_label(&ratio, 1, label), "50 %");
    rc_axis seconds = rc_axis_make(0, 0.05, RC_UNIT_SECONDS, false, 5);
    assert_string_equal(rc_axis_label(&seconds, 5, label), "50 ms");
    bytes.from = 100;
    bytes.to = 400;
    assert_true(rc_axis_at(&bytes, 0x1p30) == 200.0);
}

static const rc_column columns[] = {{"name", "Name", RC_UNIT_TEXT},
                                    {"step", "Step", RC_UNIT_COUNT},
                                    {"a_bytes", "Part A", RC_UNIT_BYTES},
                                    {"b_bytes", "Part <B>", RC_UNIT_BYTES}};

static rc_table *sample(rc_arena *mem)
{
    rc_table *table;
    rc_cell *row;
    assert_ok(rc_table_make(mem, "live", "Live \"bytes\"", columns, 4, &table, NULL));
    for (int i = 0; i < 4; i++) {
        assert_ok(rc_table_add_row(table, &row, NULL));
        row[0] = rc_cell_text(i == 1 ? "<evil>" : "row");
        row[1] = rc_cell_int(i);
        row[2] = rc_cell_int(1024 * i);
        if (i != 2)
            row[3] = rc_cell_int(512);
    }
    return table;
}

static char *drawn(const rc_chart *chart)
{
    check_text text;
    check_open(&text);
    assert_ok(rc_chart_write(chart, text.to, NULL));
    return check_close(&text);
}

static size_t count_of(const char *text, const char *part)
{
    size_t n = 0;
    while ((text = strstr(text, part))) {
        n++;
        text += strlen(part);
    }
    return n;
}

/* y runs over 0 .. 3 KiB at 424 .. 68 px, x over 0 .. 3 at 96 .. 928 px. */
static void lines_break_at_nulls(void **state)
{
    (void)state;
    rc_arena *mem = rc_arena_open();
    rc_chart chart = {
        .kind = RC_CHART_LINES, .table = sample(mem), .x = 1, .series = {2, 3}, .n_series = 2};
    char *svg = drawn(&chart);
    assert_non_null(strstr(svg, "d=\"M96.0 424.0L373.3 305.3L650.7 186.7L928.0 68.0\""));
    assert_non_null(strstr(svg, "d=\"M96.0 364.7L373.3 364.7M928.0 364.7\""));
    assert_non_null(strstr(svg, "<title>Live &quot;bytes&quot;</title>"));
    assert_non_null(strstr(svg, ">Part &lt;B&gt;</text>"));
    assert_non_null(strstr(svg, ">3 KiB</text>"));
    assert_null(strstr(svg, "<B>"));
    free(svg);
    rc_arena_close(mem);
}

static void stacked_areas_stand_on_each_other(void **state)
{
    (void)state;
    rc_arena *mem = rc_arena_open();
    rc_chart chart = {.kind = RC_CHART_STACKED,
                      .table = sample(mem),
                      .x = 1,
                      .series = {2, 3},
                      .n_series = 2};
    char *svg = drawn(&chart);
    /* 0 .. 4 KiB now: A alone, then A+B forward and A back; a null counts as nothing */
    assert_non_null(strstr(svg, "d=\"M96.0 424.0L373.3 335.0L650.7 246.0L928.0 157.0"
                                "L928.0 424.0L650.7 424.0L373.3 424.0L96.0 424.0Z\""));
    assert_non_null(strstr(svg, "d=\"M96.0 379.5L373.3 290.5L650.7 246.0L928.0 112.5"
                                "L928.0 157.0L650.7 246.0L373.3 335.0L96.0 424.0Z\""));
    free(svg);
    rc_arena_close(mem);
}

static void bars_and_points_have_one_mark_per_value(void **state)
{
    (void)state;
    rc_arena *mem = rc_arena_open();
    rc_chart chart = {
        .kind = RC_CHART_BARS, .table = sample(mem), .x = 0, .series = {2, 3}, .n_series = 2};
    char *svg = drawn(&chart);
    assert_int_equal(count_of(svg, "<rect "), 2 + 4 + 3); /* legend, A, B without its null */
    assert_int_equal(count_of(svg, "&lt;evil&gt;"), 1);
    assert_non_null(strstr(svg, "<title>3.00 KiB</title>"));
    free(svg);
    chart.kind = RC_CHART_POINTS;
    chart.x = 1;
    chart.label = 0;
    svg = drawn(&chart);
    assert_int_equal(count_of(svg, "<circle "), 7);
    assert_int_equal(count_of(svg, "&lt;evil&gt;"), 2);
    free(svg);
    rc_arena_close(mem);
}

static void wrong_columns_and_empty_tables_are_refused(void **state)
{
    (void)state;
    rc_arena *mem = rc_arena_open();
    rc_table *empty;
    rc_error err = {0};
    rc_chart chart = {.kind = RC_CHART_LINES, .table = sample(mem), .x = 1, .n_series = 1};
    chart.series[0] = 0; /* text */
    assert_int_equal(rc_chart_write(&chart, stdout, &err), RC_E_BUG);
    chart.series[0] = 9;
    assert_int_equal(rc_chart_write(&chart, stdout, NULL), RC_E_BUG);
    chart.series[0] = 2;
    assert_ok(rc_table_make(mem, "none", NULL, columns, 4, &empty, NULL));
    chart.table = empty;
    err = (rc_error){0};
    assert_int_equal(rc_chart_write(&chart, stdout, &err), RC_E_RANGE);
    assert_non_null(strstr(err.msg, "none"));
    rc_arena_close(mem);
}

static void page_holds_tables_and_charts(void **state)
{
    (void)state;
    rc_arena *mem = rc_arena_open();
    rc_report report = {.n = 0};
    rc_table *table = sample(mem);
    rc_report_add(&report, table, false);
    rc_chart chart = {.kind = RC_CHART_LINES, .table = table, .x = 1, .n_series = 1};
    chart.series[0] = 2;
    check_text text;
    check_open(&text);
    assert_ok(rc_page_write("a <b>", &report, &chart, 1, text.to, NULL));
    char *page = check_close(&text);
    assert_int_equal(strncmp(page, "<!doctype html>", 15), 0);
    assert_non_null(strstr(page, "<title>a &lt;b&gt;</title>"));
    assert_int_equal(count_of(page, "<svg "), 1);
    assert_int_equal(count_of(page, "<tr>"), 5);
    assert_null(strstr(page, "<b>"));
    assert_null(strstr(page, "<script"));
    free(page);
    rc_arena_close(mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(axis_ends_at_round_ticks),
        cmocka_unit_test(axis_labels_share_a_unit),
        cmocka_unit_test(lines_break_at_nulls),
        cmocka_unit_test(stacked_areas_stand_on_each_other),
        cmocka_unit_test(bars_and_points_have_one_mark_per_value),
        cmocka_unit_test(wrong_columns_and_empty_tables_are_refused),
        cmocka_unit_test(page_holds_tables_and_charts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
