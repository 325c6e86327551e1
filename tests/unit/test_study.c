/* test_study.c — medians and spread, verdicts, and child processes within their limits. */
#define _XOPEN_SOURCE 700 /* symlink */
#include "check.h"

#include <recompute/study.h>

#include "study/machine.h"
#include "study/process.h"
#include "study/state.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
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

/* A row to measure: peak in MiB, replay in GFLOP, what a step takes in ms (kept where the judge puts the
 * median). */
static rc_study_row row(const char *setting, int64_t mib, int64_t gflop, double ms)
{
    static const double losses[] = {5.5, 5.25};
    return (rc_study_row){.setting = setting,
                          .is_pass = true,
                          .predicted_bytes = mib << 20,
                          .peak_bytes = mib << 20,
                          .peak_rank = RC_STUDY_UNKNOWN,
                          .replay_flops = gflop < 0 ? gflop : gflop * 1000000000,
                          .step_seconds = {{.median = ms / 1e3}, {.median = ms / 500}},
                          .losses = losses,
                          .n_losses = 2,
                          .loss = 5.25};
}

/* Measured times are off by up to `noise` to each side, in a pattern that no two rows share; processor
 * time, of two threads, by a tenth of it. */
static double off(size_t r, size_t round, double noise)
{
    return 1 + noise * ((double)((r * 7 + round * 5 + r * round) % 11) - 5) / 5;
}

static void measure(rc_study *study, size_t n_rounds, double noise, rc_arena *mem)
{
    study->rules = (rc_study_rules){.n_least = (int64_t)n_rounds, .target_ratio = 0.015};
    study->rows[0].is_control = study->rows[study->n_rows - 1].is_control = true;
    for (size_t k = 0; k < n_rounds; k++) {
        assert_ok(rc_study_add_round(study, mem, NULL));
        for (size_t r = 0; r < study->n_rows; r++) {
            rc_study_row *at = &study->rows[r];
            rc_study_sample *sample = &at->rounds[k];
            if (!at->is_pass)
                continue;
            sample->at = (double)r / (double)(study->n_rows - 1);
            for (int c = 0; c < RC_CLOCK_COUNT; c++)
                sample->seconds[c] = at->step_seconds[c].median *
                                     off(r, k, c == RC_CLOCK_CPU ? noise / 10 : noise);
        }
    }
}

static void check_says(rc_study *study, const char *const *says, rc_arena *mem)
{
    assert_ok(rc_study_judge(study, mem, NULL));
    for (size_t i = 0; i < study->n_rows; i++)
        assert_string_equal(study->rows[i].says, says[i]);
}

static void check_judged(rc_study_row *rows, size_t n, const char *const *says)
{
    rc_arena *mem = rc_arena_open();
    rc_study study = {.title = "t", .rows = rows, .n_rows = n};
    measure(&study, 9, 0.0002, mem);
    check_says(&study, says, mem);
    assert_int_equal(study.clock, RC_CLOCK_WALL);
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
        row("[z]", 690, 5, 104.02),        /* intervals overlap: nobody dominates */
        row("[w]", 690, 5, 106),           /* the same memory for clearly more time */
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
        "saves 31.0 % for +4.0 %",
        "saves 31.0 % for +6.0 %, dominated by [core_attn]",
        "control, last",
    };
    check_judged(rows, sizeof rows / sizeof *rows, says);
    assert_int_equal(rows[2].verdict, RC_VERDICT_NO_EFFECT);
    assert_int_equal(rows[4].verdict, RC_VERDICT_DOMINATED);
    assert_true(fabs(rows[1].saved_ratio - 0.31) < 1e-12);
    assert_true(fabs(rows[1].ratio[RC_CLOCK_WALL].center - 1.04) < 2e-3);
}

/* One row against a control that always takes 1 s, in six rounds or fewer. */
static void check_cost(const double *seconds, size_t n, const char *says)
{
    rc_arena *mem = rc_arena_open();
    rc_study_row rows[] = {row("[]", 1000, 0, 1000), row("[mlp]", 800, 5, 1000),
                           row("[]", 1000, 0, 1000)};
    rc_study study = {.rows = rows, .n_rows = 3};
    measure(&study, n, 0, mem);
    for (size_t k = 0; k < n; k++)
        rows[1].rounds[k].seconds[RC_CLOCK_WALL] = seconds[k];
    assert_ok(rc_study_judge(&study, mem, NULL));
    assert_string_equal(rows[1].says, says);
    rc_arena_close(mem);
}

static void a_cost_says_what_its_interval_carries(void **state)
{
    (void)state;
    const double narrow[] = {1.05, 1.04, 1.03, 1.04, 1.035, 1.045};
    const double wide[] = {1.02, 1.10, 1.05, 1.06, 1.03, 1.07};
    const double no_cost[] = {0.999, 1.004, 1, 1.001, 1.002, 0.998};
    const double lost[] = {0.95, 1.3, 1, 1.1, 1.2, 0.97};
    const double faster[] = {0.97, 0.975, 0.965, 0.97, 0.972, 0.968};
    check_cost(narrow, 6, "saves 20.0 % for +4.0 %");
    check_cost(wide, 6, "saves 20.0 % for +2.0 to +10.0 %");
    check_cost(no_cost, 6, "saves 20.0 %, cost at most +0.4 %");
    check_cost(lost, 6, "saves 20.0 %, cost not resolved (-5.0 to +30.0 %)");
    check_cost(narrow, 5, "saves 20.0 %, cost not resolved (5 rounds; an interval takes 6)");
    check_cost(faster, 6,
               "saves 20.0 % for -3.0 % (faster with more work: its memory's doing, or this "
               "machine's)");
}

/* Wall times as noisy as two other programs make them: each row recomputes what the one before does and
 * more, and seems faster. None dominates, no sign is told; processor time knows better. */
static void a_superset_whose_interval_overlaps_dominates_nothing(void **state)
{
    (void)state;
    rc_arena *mem = rc_arena_open();
    rc_study_row rows[] = {row("[]", 1000, 0, 100), row("[core_attn]", 900, 1, 104),
                           row("[core_attn,layernorm]", 850, 2, 101),
                           row("[core_attn,layernorm,mlp]", 700, 9, 98),
                           row("[]", 1000, 0, 96)};
    rc_study study = {.rows = rows, .n_rows = 5, .is_cpu_fair = false};
    measure(&study, 9, 0.3, mem);
    assert_ok(rc_study_judge(&study, mem, NULL));
    assert_int_equal(study.clock, RC_CLOCK_WALL);
    for (size_t i = 1; i < 4; i++) {
        assert_int_equal(rows[i].verdict, RC_VERDICT_SAVES);
        assert_non_null(strstr(rows[i].says, ", cost not resolved ("));
    }
    assert_non_null(strstr(study.machine, "unsteady"));
    study.is_cpu_fair = true;
    const double cpu[] = {100, 104, 106, 112, 100};
    for (size_t i = 0; i < 5; i++)
        for (size_t k = 0; k < 9; k++)
            rows[i].rounds[k].seconds[RC_CLOCK_CPU] = cpu[i] * off(i, k, 0.001);
    static const char *const says[] = {"control, first", "saves 10.0 % for +4.0 % CPU time",
                                       "saves 15.0 % for +6.0 % CPU time",
                                       "saves 30.0 % for +12.0 % CPU time", "control, last"};
    check_says(&study, says, mem);
    assert_non_null(strstr(study.machine, "so costs are read from processor time"));
    rc_arena_close(mem);
}

/* Processor time that says "less" is not believed against wall time that surely says "more". */
static void clocks_that_contradict_each_other_give_no_dominance(void **state)
{
    (void)state;
    rc_arena *mem = rc_arena_open();
    rc_study_row rows[] = {row("[]", 1000, 0, 100), row("[a]", 900, 5, 110),
                           row("[b]", 800, 5, 120), row("[]", 1000, 0, 100)};
    rc_study study = {.rows = rows, .n_rows = 4, .is_cpu_fair = true};
    rows[1].step_seconds[RC_CLOCK_CPU].median = 0.220;
    rows[2].step_seconds[RC_CLOCK_CPU].median = 0.210;
    measure(&study, 9, 0.01, mem);
    study.load = (rc_study_load){.own = 10, .waited = 5};
    assert_ok(rc_study_judge(&study, mem, NULL));
    assert_int_equal(study.clock, RC_CLOCK_CPU);
    assert_int_equal(rows[1].verdict, RC_VERDICT_SAVES);
    for (size_t k = 0; k < 9; k++) /* without the contradiction [b] is better than [a] */
        rows[2].rounds[k].seconds[RC_CLOCK_WALL] = 0.105;
    assert_ok(rc_study_judge(&study, mem, NULL));
    assert_string_equal(rows[1].says, "saves 10.0 % for +10.0 % CPU time, dominated by [b]");
    rows[2].replay_flops *= 2;
    assert_ok(rc_study_judge(&study, mem, NULL));
    assert_string_equal(rows[1].says, "saves 10.0 % for +10.0 % CPU time, dominated by [b] "
                                      "(measured, though it recomputes more)");
    rc_arena_close(mem);
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
    rc_study_row rows[] = {row("[]", 10000, -1, 100),  row("[a]", 10004, -1, 100),
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
    measure(&study, 9, 0.01, mem);
    assert_ok(rc_study_judge(&study, mem, NULL));
    assert_ok(rc_study_table(&study, false, mem, &full, NULL));
    assert_true(cell_of(full, 1, "predicted_peak_bytes").is_null);
    assert_true(cell_of(full, 1, "recomputed_flops").is_null);
    assert_int_equal(cell_of(full, 1, "peak_bytes").i, 900 << 20);
    assert_true(cell_of(full, 0, "time_ratio").is_null);
    assert_true(fabs(cell_of(full, 1, "time_low_ratio").f - rows[1].ratio[0].low) < 1e-12);
    assert_true(fabs(cell_of(full, 1, "cpu_high_ratio").f - rows[1].ratio[1].high) < 1e-12);
    assert_int_equal(cell_of(full, 1, "n_rounds").i, 9);
    assert_false(has_column(full, "time"));
    assert_string_equal(cell_of(full, 1, "verdict").text, "saves");
    assert_ok(rc_study_table(&study, true, mem, &brief, NULL));
    assert_false(has_column(brief, "predicted_peak_bytes"));
    assert_false(has_column(brief, "verdict"));
    assert_false(has_column(brief, "time_low_ratio"));
    assert_false(has_column(brief, "cpu")); /* not fair: nothing for people */
    char interval[64];
    snprintf(interval, sizeof interval, "%+.1f to %+.1f %%", (rows[1].ratio[0].low - 1) * 100,
             (rows[1].ratio[0].high - 1) * 100);
    assert_string_equal(cell_of(brief, 1, "time").text, interval);
    assert_string_equal(cell_of(brief, 0, "says").text, "control, first");
    assert_ok(rc_study_facts(&study, false, mem, &facts, NULL));
    assert_false(has_column(facts, "is_prediction_exact"));
    assert_true(fabs(cell_of(facts, 0, "confidence_ratio").f - 0.95) < 1e-12);
    assert_string_equal(cell_of(facts, 0, "ended_by").text, "rounds");
    assert_string_equal(cell_of(facts, 0, "decided_by").text, "wall time");
    assert_true(cell_of(facts, 0, "is_machine_busy").i == 0);
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

static void process_time_is_counted(void **state)
{
    (void)state;
    rc_process_result result = run("i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done", 0);
    assert_true(result.cpu_seconds > 0);
    read_log();
}

/* What this process burns is its own; counters that the system has are read. */
static void machine_tells_own_from_others(void **state)
{
    (void)state;
    rc_machine_look before, now;
    rc_study_load load;
    rc_machine_look_now(&before);
    do
        rc_machine_look_now(&now);
    while (now.own < before.own + 0.05);
    rc_machine_load_since(&before, false, &load);
    assert_true(load.own >= 0.05 && load.seconds > 0);
    assert_true(isnan(load.waited) == (access("/proc/self/schedstat", R_OK) != 0));
    assert_true(isnan(load.other) == (access("/proc/stat", R_OK) != 0));
    assert_true(isnan(load.other) || (load.other >= 0 && load.n_cores >= 1));
    rc_machine_load_since(&before, true, &load);
    assert_true(isnan(load.waited));
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

/* --- state.jsonl --- */

/* A new study would be written over it. A link to itself stands for all that is there and cannot be
 * looked at. */
static void a_state_that_cannot_be_looked_at_is_an_error(void **state)
{
    static const rc_launch_row rows[] = {{"none", ""}};
    char folder[] = "/tmp/recompute-state-XXXXXX", path[64], target[64];
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/state.jsonl", folder);
    assert_int_equal(symlink("state.jsonl", path), 0);
    rc_launch launch = {.command = "true", .rows = rows, .n_rows = 1, .folder = folder};
    rc_arena *mem = rc_arena_open();
    rc_error err = {0};
    rc_study_state study;
    assert_int_equal(rc_study_state_open(&launch, 1, mem, &study, &err), RC_E_IO);
    assert_non_null(strstr(err.msg, "cannot look at it"));
    assert_int_equal(readlink(path, target, sizeof target), strlen("state.jsonl"));
    rc_arena_close(mem);
    assert_int_equal(remove(path), 0);
    assert_int_equal(remove(folder), 0);
}

static void a_state_that_cannot_be_written_says_why(void **state)
{
    static const rc_process_result result = {.seconds = 1};
    rc_study_run run;
    rc_study_state study = {.path = "/dev/full", .runs = &run, .n_runs = 1};
    rc_error err = {0};
    (void)state;
    assert_int_equal(rc_study_state_add(&study, 0, &result, &err), RC_E_IO);
    assert_non_null(strstr(err.msg, "cannot write: No space left on device"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spread_is_median_and_quartiles),
        cmocka_unit_test(verdicts_of_a_deterministic_trainer),
        cmocka_unit_test(a_cost_says_what_its_interval_carries),
        cmocka_unit_test(a_superset_whose_interval_overlaps_dominates_nothing),
        cmocka_unit_test(clocks_that_contradict_each_other_give_no_dominance),
        cmocka_unit_test(other_losses_and_failures_are_not_compared),
        cmocka_unit_test(a_launched_row_may_be_faster),
        cmocka_unit_test(verdicts_of_a_launched_trainer_allow_for_its_noise),
        cmocka_unit_test(failed_control_ends_the_study),
        cmocka_unit_test(table_leaves_unknowns_empty_or_out),
        cmocka_unit_test(process_output_and_status_are_kept),
        cmocka_unit_test(process_time_is_counted),
        cmocka_unit_test(machine_tells_own_from_others),
        cmocka_unit_test(process_is_stopped_at_its_limit_with_its_children),
        cmocka_unit_test(process_is_stopped_when_we_are_asked_to_stop),
        cmocka_unit_test(log_that_cannot_be_written_is_an_error),
        cmocka_unit_test(a_state_that_cannot_be_looked_at_is_an_error),
        cmocka_unit_test(a_state_that_cannot_be_written_says_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
