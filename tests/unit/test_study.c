/* test_study.c — medians and spread, verdicts, and child processes within their limits. */
#include "check.h"

#include <recompute/study.h>

#include "study/process.h"

#include <math.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void spread_is_median_and_quartiles(void **state)
{
    (void)state;
    double odd[] = {5, 1, 3, 2, 4}, even[] = {4, 1, 3, 2}, one[] = {7};
    rc_spread s = rc_spread_of(odd, 5);
    assert_true(s.median == 3 && s.low == 2 && s.high == 4 && s.n == 5);
    s = rc_spread_of(even, 4);
    assert_true(s.median == 2.5 && s.low == 1.75 && s.high == 3.25);
    s = rc_spread_of(one, 1);
    assert_true(s.median == 7 && s.low == 7 && s.high == 7);
    assert_true(isnan(rc_spread_of(NULL, 0).median));
}

/* A row as a study measures it: peak in MiB, replay in GFLOP, step in ms with 1 % to each side. */
static rc_study_row row(const char *setting, int64_t mib, int64_t gflop, double ms)
{
    static const double losses[] = {5.5, 5.25};
    return (rc_study_row){.setting = setting,
                          .is_pass = true,
                          .predicted_bytes = mib << 20,
                          .peak_bytes = mib << 20,
                          .peak_rank = RC_STUDY_UNKNOWN,
                          .replay_flops = gflop < 0 ? gflop : gflop * 1000000000,
                          .step_seconds = {.median = ms / 1e3,
                                           .low = ms * 0.99 / 1e3,
                                           .high = ms * 1.01 / 1e3,
                                           .n = 9},
                          .losses = losses,
                          .n_losses = 2,
                          .loss = 5.25};
}

static void check_judged(rc_study_row *rows, size_t n, const char *const *says)
{
    rc_arena *mem = rc_arena_open();
    rc_study study = {.title = "t", .rows = rows, .n_rows = n, .n_repeats = 3};
    rows[0].is_control = rows[n - 1].is_control = true;
    assert_ok(rc_study_judge(&study, mem, NULL));
    for (size_t i = 0; i < n; i++)
        assert_string_equal(rows[i].says, says[i]);
    rc_arena_close(mem);
}

static void verdicts_of_a_deterministic_trainer(void **state)
{
    (void)state;
    rc_study_row rows[] = {
        row("[]", 1000, 0, 100),           row("[core_attn]", 690, 5, 104),
        row("[moe]", 1000, 0, 100.4),      /* same peak, no replay */
        row("[x]", 1000, 7, 110),          /* same peak, replay */
        row("full/block/2", 700, 9, 108),  /* core_attn needs less of both */
        row("full/block/4", 500, 20, 120), /* cheapest at its peak */
        row("[y]", 1100, 3, 103),          /* more memory */
        row("[z]", 690, 5, 104.5),         /* equal within noise: nobody dominates */
        row("[]", 1000, 0, 100),
    };
    static const char *const says[] = {
        "control, first",
        "saves 31.0 % for +4.0 %",
        "no effect here",
        "saves nothing, for +10.0 %",
        "saves 30.0 % for +8.0 %, dominated by [core_attn]",
        "saves 50.0 % for +20.0 %",
        "harmful: 10.0 % more memory, for +3.0 %",
        "saves 31.0 % for +4.5 %",
        "control, last",
    };
    check_judged(rows, sizeof rows / sizeof *rows, says);
    assert_int_equal(rows[2].verdict, RC_VERDICT_NO_EFFECT);
    assert_int_equal(rows[4].verdict, RC_VERDICT_DOMINATED);
    assert_true(fabs(rows[1].saved_ratio - 0.31) < 1e-12);
    assert_true(fabs(rows[1].time_ratio - 1.04) < 1e-12);
}

static void controls_that_drift_make_noise(void **state)
{
    (void)state;
    rc_study_row rows[] = {row("[]", 1000, 0, 100), row("[mlp]", 800, 5, 104),
                           row("[]", 1000, 0, 110)};
    static const char *const says[] = {
        "control, first", "saves 20.0 %, cost within noise (10.0 %)", "control, last"};
    check_judged(rows, 3, says);
}

/* A row that replays cannot be 7.6 % faster: so much is noise in this study, and +6 % is none to tell. */
static void a_replay_that_seems_faster_is_noise(void **state)
{
    (void)state;
    rc_study_row rows[] = {row("[]", 1000, 0, 100),           row("[layernorm]", 998, 1, 92.4),
                           row("[mlp]", 800, 5, 106),         row("[x]", 1000, 1, 96),
                           row("full/block/4", 500, 20, 120), row("[]", 1000, 0, 100)};
    static const char *const says[] = {"control, first",
                                       "saves 0.2 %, cost within noise (7.6 %)",
                                       "saves 20.0 %, cost within noise (7.6 %)",
                                       "saves nothing, cost within noise (7.6 %)",
                                       "saves 50.0 % for +20.0 %",
                                       "control, last"};
    check_judged(rows, 6, says);
}

/* A change of another kind may well be faster: its replay is not known. */
static void a_launched_row_may_be_faster(void **state)
{
    (void)state;
    rc_study_row rows[] = {row("[]", 1000, -1, 100), row("flash", 900, -1, 80),
                           row("[]", 1000, -1, 100)};
    static const char *const says[] = {"control, first", "saves 10.0 % for -20.0 %",
                                       "control, last"};
    check_judged(rows, 3, says);
}

static void other_losses_and_failures_are_not_compared(void **state)
{
    (void)state;
    static const double other[] = {5.5, 5.2500000000000009};
    rc_study_row rows[] = {row("[]", 1000, 0, 100), row("[a]", 500, 5, 90),
                           row("[b]", 500, 5, 90), row("[c]", 600, 6, 120),
                           row("[]", 1000, 0, 100)};
    rows[1].losses = other;
    rows[2].is_pass = false;
    rows[2].failure = "out of memory in optimizer-init";
    static const char *const says[] = {
        "control, first", "not comparable: its loss is not the control's",
        "failed: out of memory in optimizer-init",
        "saves 40.0 % for +20.0 %", /* neither of the two may dominate it */
        "control, last"};
    check_judged(rows, 5, says);
    assert_false(rows[1].is_same_loss);
    assert_true(isnan(rows[2].saved_ratio));
}

/* Launched trainers: no FLOPs, memory in rounded units, losses that differ between equal runs. */
static void verdicts_of_a_launched_trainer_allow_for_its_noise(void **state)
{
    (void)state;
    static const double wobble[] = {5.5, 5.2501};
    rc_study_row rows[] = {row("[]", 10000, -1, 100),  row("[a]", 10004, -1, 100.5),
                           row("[b]", 8000, -1, 105),  row("[c]", 8500, -1, 107),
                           row("[d]", 10001, -1, 150), row("[]", 10005, -1, 100)};
    rows[2].losses = wobble;
    rows[5].losses = wobble;
    static const char *const says[] = {"control, first",
                                       "no effect: its peak is within noise (0.05 %)",
                                       "saves 20.0 % for +5.0 %",
                                       "saves 15.0 % for +7.0 %, dominated by [b]",
                                       "saves nothing, for +50.0 %",
                                       "control, last"};
    check_judged(rows, 6, says);
    assert_true(rows[2].is_same_loss);
}

static void failed_control_ends_the_study(void **state)
{
    (void)state;
    rc_arena *mem = rc_arena_open();
    rc_study_row rows[] = {row("[]", 1, 0, 1), row("[]", 1, 0, 1)};
    rows[0].is_pass = false;
    rows[0].failure = "out of memory in forward";
    rc_study study = {.rows = rows, .n_rows = 2};
    rc_error err = {0};
    assert_int_equal(rc_study_judge(&study, mem, &err), RC_E_RANGE);
    assert_non_null(strstr(err.msg, "out of memory in forward"));
    rc_arena_close(mem);
}

static bool has_column(const rc_table *table, const char *column)
{
    for (size_t i = 0; i < table->n_columns; i++)
        if (strcmp(table->columns[i].name, column) == 0)
            return true;
    return false;
}

static rc_cell cell_of(const rc_table *table, size_t r, const char *column)
{
    for (size_t i = 0; i < table->n_columns; i++)
        if (strcmp(table->columns[i].name, column) == 0)
            return table->cells[r * table->n_columns + i];
    fail_msg("no column %s", column);
    return (rc_cell){.is_null = true};
}

static void table_leaves_unknowns_empty_or_out(void **state)
{
    (void)state;
    rc_arena *mem = rc_arena_open();
    rc_study_row rows[] = {row("[]", 1000, -1, 100), row("[mlp]", 900, -1, 100),
                           row("[]", 1000, -1, 100)};
    for (int i = 0; i < 3; i++)
        rows[i].predicted_bytes = RC_STUDY_UNKNOWN;
    rows[0].is_control = rows[2].is_control = true;
    rc_study study = {.name = "s", .title = "t", .rows = rows, .n_rows = 3};
    rc_table *full, *brief, *facts, *chart;
    assert_ok(rc_study_judge(&study, mem, NULL));
    assert_ok(rc_study_table(&study, false, mem, &full, NULL));
    assert_true(cell_of(full, 1, "predicted_peak_bytes").is_null);
    assert_true(cell_of(full, 1, "recomputed_flops").is_null);
    assert_int_equal(cell_of(full, 1, "peak_bytes").i, 900 << 20);
    assert_true(fabs(cell_of(full, 1, "step_spread_ratio").f - 0.01) < 1e-12);
    assert_string_equal(cell_of(full, 1, "verdict").text, "saves");
    assert_ok(rc_study_table(&study, true, mem, &brief, NULL));
    assert_false(has_column(brief, "predicted_peak_bytes"));
    assert_false(has_column(brief, "verdict"));
    assert_string_equal(cell_of(brief, 0, "says").text, "control, first");
    assert_ok(rc_study_facts(&study, mem, &facts, NULL));
    assert_false(has_column(facts, "is_prediction_exact"));
    rows[1].is_pass = false;
    assert_ok(rc_study_chart(&study, mem, &chart, NULL));
    assert_int_equal(chart->n_rows, 2);
    rc_arena_close(mem);
}

/* --- processes */

static char log_path[128];

static rc_process_result run(const char *command, double timeout_seconds)
{
    rc_process_result result;
    snprintf(log_path, sizeof log_path, "/tmp/recompute-study-%ld.log", (long)getpid());
    assert_ok(rc_process_run(command, log_path, timeout_seconds, &result, NULL));
    return result;
}

static char *read_log(void)
{
    static char text[4096];
    FILE *from = fopen(log_path, "r");
    assert_non_null(from);
    text[fread(text, 1, sizeof text - 1, from)] = '\0';
    fclose(from);
    unlink(log_path);
    return text;
}

static void process_output_and_status_are_kept(void **state)
{
    (void)state;
    rc_process_result result = run("echo out; echo err >&2; cat; exit 3", 0);
    assert_int_equal(result.end, RC_PROCESS_EXITED);
    assert_int_equal(result.status, 3);
    assert_string_equal(read_log(), "out\nerr\n");
    result = run("kill -KILL $$", 0);
    assert_int_equal(result.status, 128 + SIGKILL);
    read_log();
    result = run("no_such_command_anywhere", 0);
    assert_int_equal(result.status, 127);
    read_log();
}

/* A zombie runs no more. */
static bool is_running(pid_t pid)
{
    char path[64], word[256] = "";
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    FILE *from = fopen(path, "r");
    if (!from)
        return false;
    if (!fgets(word, sizeof word, from))
        word[0] = '\0';
    fclose(from);
    return word[0] && !strstr(word, ") Z ");
}

static void process_is_stopped_at_its_limit_with_its_children(void **state)
{
    (void)state;
    rc_process_result result = run("sleep 1000 & echo $!; wait", 0.2);
    assert_int_equal(result.end, RC_PROCESS_TIMEOUT);
    pid_t grandchild = (pid_t)atol(read_log());
    assert_true(grandchild > 1);
    /* A killed process needs a moment to go; only one that lives on makes this wait for long. */
    for (int i = 0; i < 3000 && is_running(grandchild); i++)
        nanosleep(&(struct timespec){.tv_nsec = 10 * 1000 * 1000}, NULL);
    assert_false(is_running(grandchild));
}

static void process_is_stopped_when_we_are_asked_to_stop(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "kill -TERM %ld; sleep 1000", (long)getpid());
    rc_process_result result = run(command, 0);
    assert_int_equal(result.end, RC_PROCESS_STOPPED);
    read_log();
}

static void log_that_cannot_be_written_is_an_error(void **state)
{
    (void)state;
    rc_process_result result;
    rc_error err = {0};
    if (getenv("RC_VALGRIND")) {
        print_message(
            "skipped: valgrind forks where posix_spawn shares memory with its child, and "
            "the child's error is lost\n");
        skip();
    }
    assert_int_equal(rc_process_run("true", "/nonexistent/log", 0, &result, &err), RC_E_IO);
    assert_int_equal(err.code, RC_E_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spread_is_median_and_quartiles),
        cmocka_unit_test(verdicts_of_a_deterministic_trainer),
        cmocka_unit_test(controls_that_drift_make_noise),
        cmocka_unit_test(other_losses_and_failures_are_not_compared),
        cmocka_unit_test(a_replay_that_seems_faster_is_noise),
        cmocka_unit_test(a_launched_row_may_be_faster),
        cmocka_unit_test(verdicts_of_a_launched_trainer_allow_for_its_noise),
        cmocka_unit_test(failed_control_ends_the_study),
        cmocka_unit_test(table_leaves_unknowns_empty_or_out),
        cmocka_unit_test(process_output_and_status_are_kept),
        cmocka_unit_test(process_is_stopped_at_its_limit_with_its_children),
        cmocka_unit_test(process_is_stopped_when_we_are_asked_to_stop),
        cmocka_unit_test(log_that_cannot_be_written_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
