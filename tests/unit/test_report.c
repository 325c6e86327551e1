/* test_report.c — one report in every format, exactly; untrusted text harmless in each. */
#include "check.h"

#include <recompute/report.h>

#include <jansson.h>
#include <math.h>
#include <string.h>

static const rc_column facts_columns[] = {{"model", "Model", RC_UNIT_TEXT},
                                          {"peak_bytes", "Peak", RC_UNIT_BYTES},
                                          {"is_exact", "Exact", RC_UNIT_BOOL}};
static const rc_column row_columns[] = {
    {"setting", "Setting", RC_UNIT_TEXT},      {"n_layers", "Layers", RC_UNIT_COUNT},
    {"peak_bytes", "Peak", RC_UNIT_BYTES},     {"replay_flops", "Replay", RC_UNIT_FLOPS},
    {"step_seconds", "Step", RC_UNIT_SECONDS}, {"loss", "Loss", RC_UNIT_REAL},
    {"time_ratio", "Time", RC_UNIT_RATIO}};
enum { N_ROW_COLUMNS = sizeof row_columns / sizeof *row_columns };

typedef struct sample_row {
    const char *setting;
    int64_t n_layers, peak_bytes, replay_flops;
    double step_seconds, loss, time_ratio;
} sample_row;

static void add_row(rc_table *table, const sample_row *from)
{
    rc_cell *row;
    assert_ok(rc_table_add_row(table, &row, NULL));
    row[0] = rc_cell_text(from->setting);
    row[1] = rc_cell_int(from->n_layers);
    row[2] = rc_cell_int(from->peak_bytes);
    row[3] = rc_cell_int(from->replay_flops);
    row[4] = rc_cell_real(from->step_seconds);
    row[5] = rc_cell_real(from->loss);
    row[6] = rc_cell_real(from->time_ratio);
}

static rc_report sample(rc_arena *mem)
{
    rc_report report = {.n = 0};
    rc_table *facts, *rows;
    rc_cell *row;
    assert_ok(rc_table_make(mem, "facts", NULL, facts_columns, 3, &facts, NULL));
    assert_ok(rc_table_add_row(facts, &row, NULL));
    row[0] = rc_cell_text("gpt, \"small\"");
    row[1] = rc_cell_int(1342177280);
    row[2] = rc_cell_int(1);
    assert_ok(rc_table_make(mem, "rows", "Settings", row_columns, N_ROW_COLUMNS, &rows, NULL));
    add_row(rows, &(sample_row){"[]", 12, 1048576, 0, 0.0125, 2.5, 1});
    add_row(rows, &(sample_row){"full/block/4", 1200, 9007199254740993, 3210000000000, 75, 0.1,
                                1.0213});
    assert_ok(rc_table_add_row(rows, &row, NULL)); /* all null but the name */
    row[0] = rc_cell_text("caf\xc3\xa9 \xe6\x97\xa5");
    rc_report_add(&report, facts, true);
    rc_report_add(&report, rows, false);
    return report;
}

static char *written(const rc_report *report, rc_format format)
{
    check_text text;
    check_open(&text);
    assert_ok(rc_report_write(report, format, text.to, NULL));
    return check_close(&text);
}

static void check_written(rc_format format, const char *expected)
{
    rc_arena *mem = rc_arena_open();
    rc_report report = sample(mem);
    size_t used = rc_arena_used_bytes(mem);
    char *text = written(&report, format);
    assert_string_equal(text, expected);
    assert_int_equal(rc_arena_used_bytes(mem), used); /* scratch was given back */
    free(text);
    rc_arena_close(mem);
}

static void text_is_aligned_with_units(void **state)
{
    (void)state;
    check_written(RC_FORMAT_TEXT,
                  "Model: gpt, \"small\"\n"
                  "Peak:  1.25 GiB (1,342,177,280 bytes)\n"
                  "Exact: yes\n"
                  "\n"
                  "Settings\n"
                  "Setting       Layers      Peak      Replay     Step  Loss     Time\n"
                  "------------  ------  --------  ----------  -------  ----  -------\n"
                  "[]                12  1.00 MiB      0 FLOP  12.5 ms   2.5  100.0 %\n"
                  "full/block/4   1,200  8.00 PiB  3.21 TFLOP    1m15s   0.1  102.1 %\n"
                  "caf\xc3\xa9 \xe6\x97\xa5            -         -           -        -     -"
                  "        -\n");
}

static void json_is_exact(void **state)
{
    (void)state;
    check_written(
        RC_FORMAT_JSON,
        "{\n"
        "\"facts\": {\"model\": \"gpt, \\\"small\\\"\", \"peak_bytes\": 1342177280, "
        "\"is_exact\": true},\n"
        "\"rows\": [\n"
        "  {\"setting\": \"[]\", \"n_layers\": 12, \"peak_bytes\": 1048576, \"replay_flops\": "
        "0, "
        "\"step_seconds\": 0.0125, \"loss\": 2.5, \"time_ratio\": 1},\n"
        "  {\"setting\": \"full/block/4\", \"n_layers\": 1200, \"peak_bytes\": "
        "9007199254740993, "
        "\"replay_flops\": 3210000000000, \"step_seconds\": 75, \"loss\": 0.1, \"time_ratio\": "
        "1.0213},\n"
        "  {\"setting\": \"caf\xc3\xa9 \xe6\x97\xa5\", \"n_layers\": null, \"peak_bytes\": "
        "null, "
        "\"replay_flops\": null, \"step_seconds\": null, \"loss\": null, \"time_ratio\": "
        "null}\n"
        "]\n"
        "}\n");
}

static void csv_holds_the_last_table(void **state)
{
    (void)state;
    check_written(RC_FORMAT_CSV,
                  "setting,n_layers,peak_bytes,replay_flops,step_seconds,loss,time_ratio\n"
                  "[],12,1048576,0,0.0125,2.5,1\n"
                  "full/block/4,1200,9007199254740993,3210000000000,75,0.1,1.0213\n"
                  "caf\xc3\xa9 \xe6\x97\xa5,,,,,,\n");
}

static void markdown_has_tables(void **state)
{
    (void)state;
    check_written(RC_FORMAT_MD,
                  "- **Model**: gpt, \"small\"\n"
                  "- **Peak**: 1.25 GiB\n"
                  "- **Exact**: yes\n"
                  "\n"
                  "### Settings\n"
                  "\n"
                  "| Setting | Layers | Peak | Replay | Step | Loss | Time |\n"
                  "| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n"
                  "| \\[\\] | 12 | 1.00 MiB | 0 FLOP | 12.5 ms | 2.5 | 100.0 % |\n"
                  "| full/block/4 | 1,200 | 8.00 PiB | 3.21 TFLOP | 1m15s | 0.1 | 102.1 % |\n"
                  "| caf\xc3\xa9 \xe6\x97\xa5 | - | - | - | - | - | - |\n");
}

static void html_holds_every_table(void **state)
{
    (void)state;
    rc_arena *mem = rc_arena_open();
    rc_report report = sample(mem);
    char *text = written(&report, RC_FORMAT_HTML);
    assert_non_null(strstr(text, "<tr><th>Model</th><td>gpt, &quot;small&quot;</td></tr>"));
    assert_non_null(strstr(text, "<td class=\"n\">3.21 TFLOP</td>"));
    assert_null(strstr(text, "http")); /* nothing is fetched */
    free(text);
    rc_arena_close(mem);
}

/* One cell of hostile text, written in `format`. */
static char *hostile(rc_arena *mem, const char *bytes, rc_format format)
{
    static const rc_column columns[] = {{"text", NULL, RC_UNIT_TEXT}};
    rc_table *table;
    rc_cell *row;
    check_text text;
    assert_ok(rc_table_make(mem, "t", NULL, columns, 1, &table, NULL));
    assert_ok(rc_table_add_row(table, &row, NULL));
    row[0] = rc_cell_text(bytes);
    check_open(&text);
    assert_ok(rc_table_write(table, format, text.to, NULL));
    return check_close(&text);
}

static void untrusted_text_is_harmless_in_every_format(void **state)
{
    (void)state;
    static const struct {
        rc_format format;
        const char *bytes, *present, *absent;
    } cases[] = {
        {RC_FORMAT_TEXT, "\x1b[31mred", "\\x1B[31mred", "\x1b"},
        {RC_FORMAT_TEXT, "a\nb", "a\\x0Ab", "a\nb"},
        {RC_FORMAT_JSON, "q\"\\\n\x01\x7f", "\"q\\\"\\\\\\n\\u0001\\u007f\"", "\x01"},
        {RC_FORMAT_JSON, "\xff\xc2\x9b", "\\ufffd\\ufffd\\ufffd", "\xff"},
        {RC_FORMAT_CSV, "a,\"b\"", "\"a,\"\"b\"\"\"", "a,\"b\"\n"},
        {RC_FORMAT_CSV, "=HYPERLINK(1)", "'=HYPERLINK(1)", "\n=HYPERLINK"},
        {RC_FORMAT_CSV, "-2+cmd|'x'!A0", "'-2+cmd|", "\n-2"},
        {RC_FORMAT_CSV, "--num-layers", "\n--num-layers\n", "'"},
        {RC_FORMAT_MD, "a|b<i>`c`", "a\\|b&lt;i>\\`c\\`", "<i>"},
        {RC_FORMAT_MD, "core_attn _x_", "core_attn \\_x\\_", "core\\_attn"},
        {RC_FORMAT_HTML, "<script>'&", "&lt;script&gt;&#39;&amp;", "<script>"},
        {RC_FORMAT_HTML, "\x07", "\\x07", "\x07"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rc_arena *mem = rc_arena_open();
        char *text = hostile(mem, cases[i].bytes, cases[i].format);
        if (!strstr(text, cases[i].present) || strstr(text, cases[i].absent))
            fail_msg("case %zu gave: %s", i, text);
        free(text);
        rc_arena_close(mem);
    }
}

/* Another program's parser reads the same values back, for numbers at the edges. */
static void json_numbers_read_back_exactly(void **state)
{
    (void)state;
    static const rc_column columns[] = {{"f", NULL, RC_UNIT_REAL}, {"i", NULL, RC_UNIT_COUNT}};
    static const double reals[] = {0.1,    1.0 / 3, 1e-300,  5e-324,
                                   0x1p53, -0.0,    1.5e308, 123456.789};
    rc_arena *mem = rc_arena_open();
    rc_table *table;
    rc_cell *row;
    assert_ok(rc_table_make(mem, "t", NULL, columns, 2, &table, NULL));
    for (size_t i = 0; i < 8; i++) {
        assert_ok(rc_table_add_row(table, &row, NULL));
        row[0] = rc_cell_real(reals[i]);
        row[1] = rc_cell_int(i % 2 ? INT64_MAX : INT64_MIN);
    }
    check_text text;
    check_open(&text);
    assert_ok(rc_table_write(table, RC_FORMAT_JSON, text.to, NULL));
    char *printed = check_close(&text);
    json_t *root = json_loads(printed, 0, NULL);
    assert_non_null(root);
    json_t *rows = json_object_get(root, "t");
    assert_int_equal(json_array_size(rows), 8);
    for (size_t i = 0; i < 8; i++) {
        json_t *object = json_array_get(rows, i);
        double f = json_number_value(json_object_get(object, "f"));
        assert_memory_equal(&f, &reals[i], sizeof f);
        assert_int_equal(json_integer_value(json_object_get(object, "i")),
                         i % 2 ? INT64_MAX : INT64_MIN);
    }
    json_decref(root);
    free(printed);
    rc_arena_close(mem);
}

static void numbers_that_json_cannot_hold_are_null(void **state)
{
    (void)state;
    static const rc_column columns[] = {{"f", NULL, RC_UNIT_REAL}};
    rc_arena *mem = rc_arena_open();
    rc_table *table;
    rc_cell *row;
    assert_ok(rc_table_make(mem, "t", NULL, columns, 1, &table, NULL));
    assert_ok(rc_table_add_row(table, &row, NULL));
    row[0] = rc_cell_real(NAN);
    assert_ok(rc_table_add_row(table, &row, NULL));
    row[0] = rc_cell_real(-INFINITY);
    check_text text;
    check_open(&text);
    assert_ok(rc_table_write(table, RC_FORMAT_JSON, text.to, NULL));
    char *printed = check_close(&text);
    assert_string_equal(printed, "{\n\"t\": [\n  {\"f\": null},\n  {\"f\": null}\n]\n}\n");
    free(printed);
    rc_arena_close(mem);
}

static void empty_reports_and_tables_are_valid(void **state)
{
    (void)state;
    rc_arena *mem = rc_arena_open();
    rc_report empty = {.n = 0};
    for (int format = 0; format < RC_FORMAT_COUNT; format++)
        free(written(&empty, (rc_format)format));
    rc_table *table;
    rc_report report = {.n = 0};
    assert_ok(rc_table_make(mem, "t", NULL, row_columns, N_ROW_COLUMNS, &table, NULL));
    rc_report_add(&report, table, true); /* facts without a row print as a table */
    char *text = written(&report, RC_FORMAT_TEXT);
    assert_string_equal(text, "(none)\n");
    free(text);
    text = written(&report, RC_FORMAT_JSON);
    assert_string_equal(text, "{\n\"t\": []\n}\n");
    free(text);
    rc_arena_close(mem);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    for (int format = 0; format < RC_FORMAT_COUNT; format++) {
        rc_code code = RC_E_MEMORY;
        for (int64_t n = 0; code != RC_OK; n++) {
            assert_true(n < 1000);
            rc_arena *mem = rc_arena_open();
            rc_report report = sample(mem);
            rc_error err = {0};
            check_text text;
            check_open(&text);
            rc_arena_fail_after(mem, n);
            code = rc_report_write(&report, (rc_format)format, text.to, &err);
            assert_true(code == RC_OK || code == RC_E_MEMORY);
            assert_int_equal(err.code, code);
            free(check_close(&text));
            rc_arena_close(mem);
        }
    }
}

static void full_device_is_an_error(void **state)
{
    (void)state;
    FILE *full = fopen("/dev/full", "w");
    if (!full) {
        print_message("skipped: there is no /dev/full\n");
        skip();
    }
    setvbuf(full, NULL, _IONBF, 0);
    rc_arena *mem = rc_arena_open();
    rc_report report = sample(mem);
    rc_error err = {0};
    assert_int_equal(rc_report_write(&report, RC_FORMAT_JSON, full, &err), RC_E_IO);
    assert_int_equal(err.code, RC_E_IO);
    fclose(full);
    rc_arena_close(mem);
}

static void formats_are_found_by_name(void **state)
{
    (void)state;
    rc_format format = RC_FORMAT_TEXT;
    assert_true(rc_format_find("csv", &format));
    assert_int_equal(format, RC_FORMAT_CSV);
    assert_string_equal(rc_format_name(RC_FORMAT_JSON), "json");
    assert_false(rc_format_find("xml", &format));
}

static void files_have_no_colour_and_no_width(void **state)
{
    (void)state;
    FILE *file = tmpfile();
    assert_non_null(file);
    rc_style style = rc_style_of(file);
    assert_false(style.has_colour);
    assert_int_equal(style.width, 0);
    fclose(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_aligned_with_units),
        cmocka_unit_test(json_is_exact),
        cmocka_unit_test(csv_holds_the_last_table),
        cmocka_unit_test(markdown_has_tables),
        cmocka_unit_test(html_holds_every_table),
        cmocka_unit_test(untrusted_text_is_harmless_in_every_format),
        cmocka_unit_test(json_numbers_read_back_exactly),
        cmocka_unit_test(numbers_that_json_cannot_hold_are_null),
        cmocka_unit_test(empty_reports_and_tables_are_valid),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(full_device_is_an_error),
        cmocka_unit_test(formats_are_found_by_name),
        cmocka_unit_test(files_have_no_colour_and_no_width),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
