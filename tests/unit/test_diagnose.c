/* test_diagnose.c — the decision table: complete, consistent, and never led by the hint. */
#include "check.h"

#include "diagnose/diag.h"

#include <recompute/diagnose.h>

#include <math.h>
#include <string.h>

typedef struct answer {
    rc_arena *mem;
    rc_diagnosis *diagnosis;
} answer;

static answer ask(const char *text)
{
    answer out = {.mem = rc_arena_open()};
    rc_log *log;
    rc_log_reader *reader;
    assert_non_null(out.mem);
    assert_ok(rc_log_make(out.mem, &log, NULL));
    assert_ok(rc_log_open("t.log", RC_LOG_UNKNOWN, log, &reader, NULL));
    assert_ok(rc_log_feed(reader, text, strlen(text), NULL));
    assert_ok(rc_log_finish(reader, NULL));
    rc_job job = {.log = log};
    assert_ok(rc_diagnosis_make(&job, out.mem, &out.diagnosis, NULL));
    assert_ok(rc_diagnosis_verify(out.diagnosis, NULL));
    return out;
}

#define HINT                                                                                                        \
    " If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to " \
    "avoid fragmentation."

/* Sizes in hundredths of a GiB on a card of 80 GiB. */
static void message(char *text, size_t room, int request, int free_, int idle, bool has_hint)
{
    int allocated = 8000 - free_ - idle - 150;
    snprintf(
        text, room,
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate %d.%02d GiB. GPU 0 has a total capacity of 80.00 "
        "GiB of which %d.%02d GiB is free. Including non-PyTorch memory, this process has %d.%02d GiB memory in use. Of "
        "the allocated memory %d.%02d GiB is allocated by PyTorch, and %d.%02d GiB is reserved by PyTorch but "
        "unallocated.%s\n",
        request / 100, request % 100, free_ / 100, free_ % 100, (8000 - free_) / 100,
        (8000 - free_) % 100, allocated / 100, allocated % 100, idle / 100, idle % 100,
        has_hint ? HINT : "");
}

/* The hint changes nothing, whatever the sizes. */
static void diagnose_ignores_the_hint(void **state)
{
    (void)state;
    for (int request = 10; request < 3000; request += 290)
        for (int idle = 0; idle < 2400; idle += 190) {
            char with[800], without[800];
            message(with, sizeof with, request, 100, idle, true);
            message(without, sizeof without, request, 100, idle, false);
            answer a = ask(with), b = ask(without);
            assert_int_equal(a.diagnosis->cause, b.diagnosis->cause);
            assert_string_equal(a.diagnosis->row, b.diagnosis->row);
            rc_arena_close(a.mem);
            rc_arena_close(b.mem);
        }
}

/* Fragmentation needs idle cache of 5 % of the card and a request that free and idle would hold. */
static void diagnose_fragmentation_needs_both(void **state)
{
    (void)state;
    static const struct {
        int request, free_, idle;
        bool is_fragmented;
    } cases[] = {
        {200, 100, 2000, true}, {2100, 100, 2000, true}, {2200, 100, 2000, false},
        {200, 100, 410, true},  {200, 100, 390, false},  {200, 100, 50, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[800];
        message(text, sizeof text, cases[i].request, cases[i].free_, cases[i].idle, true);
        answer got = ask(text);
        bool is = got.diagnosis->cause == RC_CAUSE_FRAGMENTATION;
        if (is != cases[i].is_fragmented)
            fail_msg("case %zu is %s", i, rc_cause_name(got.diagnosis->cause));
        rc_arena_close(got.mem);
    }
}

static double number(const rc_diagnosis *diagnosis, const char *name)
{
    for (size_t i = 0; i < diagnosis->n_numbers; i++)
        if (strcmp(diagnosis->numbers[i].name, name) == 0)
            return diagnosis->numbers[i].value;
    return (double)NAN;
}

static void diagnose_numbers_follow_from_the_message(void **state)
{
    (void)state;
    char text[800];
    message(text, sizeof text, 250, 75, 125, true);
    answer got = ask(text);
    static const struct {
        const char *name;
        double value;
    } wanted[] = {
        {"requested_gib", 2.5},  {"free_gib", 0.75},      {"reserved_unallocated_gib", 1.25},
        {"capacity_gib", 80.0},  {"process_gib", 79.25},  {"non_pytorch_gib", 1.5},
        {"allocated_gib", 76.5}, {"reserved_gib", 77.75}, {"gpu", 0}};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        if (!(fabs(number(got.diagnosis, wanted[i].name) - wanted[i].value) < 1e-6))
            fail_msg("%s is %g", wanted[i].name, number(got.diagnosis, wanted[i].name));
    rc_arena_close(got.mem);
}

static void diagnose_says_what_to_bring_when_it_knows_nothing(void **state)
{
    (void)state;
    answer got = ask("hello\n");
    assert_int_equal(got.diagnosis->cause, RC_CAUSE_INSUFFICIENT_DATA);
    assert_int_equal(got.diagnosis->phase, RC_JOB_UNKNOWN);
    assert_string_equal(got.diagnosis->steps[0].name, "bring_message");
    rc_arena_close(got.mem);
}

/* Untrusted control bytes never reach the text. */
static void diagnose_text_is_safe(void **state)
{
    (void)state;
    answer got = ask("ValueError: \x1b]0;owned\x07 \x01recompute_granularity must be\x7f\n");
    check_text text;
    check_open(&text);
    rc_diagnosis_print(got.diagnosis, text.to);
    char *printed = check_close(&text);
    for (const char *at = printed; *at; at++)
        assert_false(((unsigned char)*at < 0x20 && *at != '\n') || *at == 0x7f);
    free(printed);
    rc_arena_close(got.mem);
}

/* Every row of the table is reachable in principle: has a name of its own, clues, steps, a source. */
static void diagnose_table_is_whole(void **state)
{
    (void)state;
    rc_arena *mem = rc_arena_open();
    rc_table *table;
    assert_non_null(mem);
    assert_ok(rc_diagnosis_table(mem, &table, NULL));
    assert_true(table->n_rows > 40);
    for (size_t i = 0; i < table->n_rows; i++) {
        const rc_cell *row = &table->cells[i * table->n_columns];
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(row[0].text, table->cells[k * table->n_columns].text);
        assert_true(strlen(row[1].text) > 0 && strlen(row[4].text) > 0 &&
                    strlen(row[5].text) > 0);
    }
    assert_string_equal(table->cells[(table->n_rows - 1) * table->n_columns + 1].text,
                        "anything else");
    rc_arena_close(mem);
}

/* 3 in the member that the field names. */
static void set_three(diag *d, const diag_field *field)
{
    char *at = (char *)d + field->offset;
    const int64_t whole = 3;
    const double real = 3;
    const char *text = "three";
    if (field->kind == DIAG_TEXT)
        memcpy(at, &text, sizeof text);
    else if (field->kind == DIAG_REAL)
        memcpy(at, &real, sizeof real);
    else
        memcpy(at, &whole, sizeof whole);
}

/* One row is all of a field: forgotten it is told nowhere, set it is told and counted. */
static void diagnose_a_field_is_one_row(void **state)
{
    (void)state;
    char text[64];
    const diag_field *field;
    static diag d;
    for (size_t i = 0; (field = diag_field_at(i)) != NULL; i++) {
        assert_ptr_equal(diag_field_find(field->name, strlen(field->name)), field);
        assert_int_equal(field->number[0] != '\0', field->when != DIAG_NONE);
        set_three(&d, field);
        const char *shown = diag_show(&d, field, text);
        double number = diag_number(&d, field);
        if (field->kind == DIAG_TEXT) {
            assert_string_equal(shown, "three");
            assert_true(isnan(number));
        } else if (field->kind == DIAG_SIZE || field->kind == DIAG_REPORTED_SIZE) {
            assert_string_equal(shown, "3 bytes");
            assert_true(number == 3.0 / 1073741824);
        } else {
            assert_string_equal(shown, "3");
            assert_true(number == 3);
        }
    }
    diag_forget(&d);
    for (size_t i = 0; (field = diag_field_at(i)) != NULL; i++) {
        assert_null(diag_show(&d, field, text));
        assert_true(isnan(diag_number(&d, field)));
    }
    assert_null(diag_field_find("no_such_field", strlen("no_such_field")));
}

/* In a log that counts in GB only what the job printed is told in GB; an exit code may be negative. */
static void diagnose_a_kind_tells_its_unit(void **state)
{
    (void)state;
    char text[64];
    static diag d;
    diag_forget(&d);
    d.is_decimal = true;
    d.request = d.worst = 3000000000;
    d.exit = -9;
    assert_string_equal(diag_show(&d, diag_field_find("request", 7), text), "2.79 GiB");
    assert_string_equal(diag_show(&d, diag_field_find("worst", 5), text), "3.00 GB (2.79 GiB)");
    assert_string_equal(diag_show(&d, diag_field_find("exit", 4), text), "-9");
    assert_true(diag_number(&d, diag_field_find("exit", 4)) == -9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(diagnose_ignores_the_hint),
        cmocka_unit_test(diagnose_fragmentation_needs_both),
        cmocka_unit_test(diagnose_numbers_follow_from_the_message),
        cmocka_unit_test(diagnose_says_what_to_bring_when_it_knows_nothing),
        cmocka_unit_test(diagnose_text_is_safe),
        cmocka_unit_test(diagnose_table_is_whole),
        cmocka_unit_test(diagnose_a_field_is_one_row),
        cmocka_unit_test(diagnose_a_kind_tells_its_unit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
