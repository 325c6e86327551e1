/* test_study_noise.c — a study on machines of every kind of noise, with costs that are known: how often
 * its intervals hold the truth, how often a verdict is false, and that the true ones are given on a quiet
 * machine. Times are drawn, not taken: the same numbers on every machine. */
#include "check.h"

#include <recompute/study.h>

#include "base/random.h"

#include <math.h>
#include <string.h>

/* --- intervals and rounds */

/* P(B < k), B binomial(n, 1/2), by Pascal's rule. */
static double below(size_t n, size_t k)
{
    double p[128] = {1}, sum = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = i + 2; j-- > 0;)
            p[j] = (p[j] + (j ? p[j - 1] : 0)) / 2;
    for (size_t j = 0; j < k; j++)
        sum += p[j];
    return sum;
}

static void interval_is_the_sign_tests(void **state)
{
    (void)state;
    for (size_t n = 1; n <= 100; n++) {
        double values[100];
        for (size_t i = 0; i < n; i++)
            values[i] =
                (double)((i * 37 + 11) % n + 1); /* 1 to n, when 37 and n share no factor */
        if (n % 37 == 0)
            continue;
        rc_interval got = rc_interval_of(values, n);
        assert_int_equal(got.n, n);
        assert_true(fabs(got.center - (double)(n + 1) / 2) < 1e-9);
        assert_true(isnan(got.low) == (n < RC_INTERVAL_LEAST));
        if (isnan(got.low))
            continue;
        size_t k = (size_t)got.low;
        assert_true(fabs(got.high - (double)(n + 1 - k)) < 1e-9);
        double most = n == 6 ? 1.0 / 64 : 1.0 / 80;
        assert_true(below(n, k) <= most && below(n, k + 1) > most);
        assert_true(1 - 2 * below(n, k) >= RC_STUDY_CONFIDENCE);
    }
    assert_true(isnan(rc_interval_of(NULL, 0).center));
}

enum { N_ROWS = 10, MAX_TRIED = 40 };

static rc_study make_study(rc_study_row *rows, size_t n)
{
    static const double losses[] = {1};
    for (size_t r = 0; r < n; r++)
        rows[r] = (rc_study_row){.setting = "[]",
                                 .is_control = r == 0 || r + 1 == n,
                                 .is_pass = true,
                                 .predicted_bytes = RC_STUDY_UNKNOWN,
                                 .peak_bytes = 1000,
                                 .peak_rank = RC_STUDY_UNKNOWN,
                                 .losses = losses,
                                 .n_losses = 1};
    return (rc_study){.rows = rows,
                      .n_rows = n,
                      .rules = {.n_least = 6, .target_ratio = 0.015, .limit_seconds = 30},
                      .is_cpu_fair = true};
}

static void rounds_go_there_and_back(void **state)
{
    (void)state;
    rc_arena *mem = rc_arena_open();
    rc_study_row rows[N_ROWS];
    rc_study study = make_study(rows, N_ROWS);
    size_t there[N_ROWS], back[N_ROWS], n, n_moved = 0;
    for (int pair = 0; pair < 3; pair++) {
        assert_ok(rc_study_next_round(&study, 0, mem, there, &n, NULL));
        assert_int_equal(n, N_ROWS);
        assert_ok(rc_study_add_round(&study, mem, NULL));
        assert_ok(rc_study_next_round(&study, 0, mem, back, &n, NULL));
        assert_ok(rc_study_add_round(&study, mem, NULL));
        assert_true(there[0] == 0 && there[N_ROWS - 1] == N_ROWS - 1);
        unsigned seen = 0;
        for (size_t i = 0; i < N_ROWS; i++)
            seen |= 1u << there[i];
        assert_int_equal(seen, (1u << N_ROWS) - 1);
        for (size_t i = 1; i + 1 < N_ROWS; i++) {
            assert_int_equal(there[i], back[N_ROWS - 1 - i]);
            n_moved += there[i] != i;
        }
    }
    assert_true(n_moved > 8);
    rc_arena_close(mem);
}

/* All rows take as long as the control, but row 1, which is off by `wobble`. */
static void add_round(rc_study *study, double wobble, rc_arena *mem)
{
    assert_ok(rc_study_add_round(study, mem, NULL));
    size_t round = study->n_rounds - 1;
    for (size_t r = 0; r < study->n_rows; r++) {
        double seconds = 1 + (r == 1 && round % 2 ? wobble : 0);
        study->rows[r].rounds[round] = (rc_study_sample){{seconds, seconds}, 0.25};
    }
}

/* The machine becomes half as fast in the middle of every round. */
static void rows_are_compared_with_the_nearer_control(void **state)
{
    (void)state;
    rc_arena *mem = rc_arena_open();
    rc_study_row rows[5];
    rc_study study = make_study(rows, 5);
    const double seconds[] = {1, 1, 1.5, 2, 2}, at[] = {0, 0.25, 0.5, 0.75, 1};
    for (size_t k = 0; k < 6; k++) {
        assert_ok(rc_study_add_round(&study, mem, NULL));
        for (size_t r = 0; r < 5; r++)
            rows[r].rounds[k] = (rc_study_sample){{seconds[r], seconds[r]}, at[r]};
    }
    assert_ok(rc_study_judge(&study, mem, NULL));
    assert_true(isnan(rows[0].ratio[RC_CLOCK_WALL].center));
    assert_true(rows[1].ratio[RC_CLOCK_WALL].low == 1 &&
                rows[1].ratio[RC_CLOCK_WALL].high == 1);
    assert_true(rows[3].ratio[RC_CLOCK_WALL].low == 1 &&
                rows[3].ratio[RC_CLOCK_WALL].high == 1);
    /* as near to both: the first and the last by turns */
    assert_true(rows[2].ratio[RC_CLOCK_WALL].low == 0.75);
    assert_true(rows[2].ratio[RC_CLOCK_WALL].high == 1.5);
    assert_true(rows[4].ratio[RC_CLOCK_WALL].center == 2);
    for (size_t k = 0; k < 6; k++) /* the last control failed */
        rows[4].rounds[k].seconds[RC_CLOCK_WALL] = (double)NAN;
    assert_ok(rc_study_judge(&study, mem, NULL));
    assert_true(rows[3].ratio[RC_CLOCK_WALL].center == 2);
    rc_arena_close(mem);
}

static void rounds_end_for_a_reason(void **state)
{
    (void)state;
    rc_arena *mem = rc_arena_open();
    rc_study_row rows[4];
    rc_study study = make_study(rows, 4);
    size_t order[4], n;
    rows[2].is_pass = false;
    for (int k = 0; k < 6; k++) {
        assert_ok(
            rc_study_next_round(&study, 1000, mem, order, &n, NULL)); /* sure, however long */
        assert_int_equal(n, 3); /* without the row that failed */
        add_round(&study, 0.1, mem);
    }
    rows[2].is_pass = true;
    for (size_t k = 0; k < 6; k++) /* narrow, unlike row 1 */
        rows[2].rounds[k].seconds[RC_CLOCK_WALL] = 1.2;
    assert_ok(rc_study_next_round(&study, 24, mem, order, &n, NULL));
    assert_true(n == 3 && order[1] == 1 && study.end == RC_STUDY_END_COUNT);
    assert_ok(rc_study_next_round(&study, 26, mem, order, &n, NULL)); /* 26 + 26/6 > 30 */
    assert_true(n == 0 && study.end == RC_STUDY_END_LIMIT);
    study.rules.limit_seconds = 0;
    assert_ok(rc_study_next_round(&study, 6, mem, order, &n, NULL));
    assert_true(n == 0 && study.end == RC_STUDY_END_ROUNDS);
    study.rules.target_ratio = 0.06;
    assert_ok(rc_study_next_round(&study, 6, mem, order, &n, NULL));
    assert_true(n == 0 && study.end == RC_STUDY_END_NARROW);
    study.rules.target_ratio = 0.015;
    study.rules.limit_seconds = 30;
    study.rules.n_least = 7;
    assert_ok(
        rc_study_next_round(&study, 1000, mem, order, &n, NULL)); /* all, the narrow one too */
    assert_true(n == 4 && study.end == RC_STUDY_END_COUNT);
    rows[1].is_pass = rows[2].is_pass = false;
    study.rules.n_least = 20;
    assert_ok(
        rc_study_next_round(&study, 6, mem, order, &n, NULL)); /* nothing left to measure */
    assert_true(n == 0 && study.end == RC_STUDY_END_ROUNDS);
    rc_arena_close(mem);
}

/* --- the machine's load */

static void check_load(rc_study_load load, bool is_busy, const char *says)
{
    rc_arena *mem = rc_arena_open();
    rc_study_row rows[3];
    rc_study study = make_study(rows, 3);
    for (int k = 0; k < 6; k++)
        add_round(&study, 0, mem);
    study.load = load;
    assert_ok(rc_study_judge(&study, mem, NULL));
    if (study.is_busy != is_busy)
        fail_msg("is_busy is %d: %s", study.is_busy, study.machine);
    assert_string_equal(study.machine, says);
    rc_arena_close(mem);
}

static void busy_is_what_kept_the_study_waiting(void **state)
{
    (void)state;
    const double unknown = (double)NAN;
    rc_study_load quiet = {
        .seconds = 10, .n_cores = 2, .own = 19, .other = 0.2, .waited = 0.15};
    rc_study_load waited = quiet, others = quiet, stolen = quiet, held = quiet, blind = quiet;
    check_load(
        quiet, false,
        "quiet: threads waited 0.8 % of their time for a core, other programs used 0.0 of "
        "2 cores");
    waited.own = 10, waited.waited = 5, waited.other = 9;
    check_load(
        waited, true,
        "busy: threads waited 33.3 % of their time for a core, other programs used 0.9 of "
        "2 cores; end other programs, or give --time-limit more seconds");
    others.n_cores = 64, others.other = 300; /* many, and still a core for each */
    check_load(
        others, false,
        "quiet: threads waited 0.8 % of their time for a core, other programs used 30.0 of "
        "64 cores");
    others.waited = unknown; /* a launched trainer */
    check_load(others, false, "quiet: other programs used 30.0 of 64 cores");
    others.other = 600;
    check_load(others, true,
               "busy: other programs used 60.0 of 64 cores; end other programs, or give "
               "--time-limit more seconds");
    stolen.stolen = 1;
    check_load(
        stolen, true,
        "busy: threads waited 0.8 % of their time for a core, other programs used 0.0 of 2 "
        "cores, the host took 5.0 % of the cores; end other programs, or give --time-limit "
        "more seconds");
    held.throttled = 2;
    check_load(
        held, true,
        "busy: threads waited 0.8 % of their time for a core, other programs used 0.0 of 2 "
        "cores, a limit held the study back 20.0 % of the time; end other programs, or give "
        "--time-limit more seconds");
    blind.waited = blind.other = blind.stolen = blind.throttled = unknown;
    check_load(blind, false, "this system does not tell what else ran");
}

/* --- many studies of a known truth */

/* A machine; each number is a share of a step's time. */
typedef struct machine {
    const char *name;
    double wall, cpu;   /* noise of a run */
    bool is_one_sided;  /* it only adds */
    double drift;       /* how much slower the machine is after 40 rounds */
    double outlier;     /* of a whole round, once in ten */
    double single;      /* of one run, */
    double single_rate; /* that often */
    int job_from;       /* round from which another program runs; 0 never */
    double waited;      /* share of its time that a thread waited for a core */
    bool is_cpu_fair;
    bool is_quiet; /* the true verdicts are expected */
} machine;

static const machine machines[] = {
    {.name = "quiet", .wall = 0.004, .cpu = 0.003, .is_cpu_fair = true, .is_quiet = true},
    {.name = "quiet, drifting", .wall = 0.004, .cpu = 0.003, .drift = 0.2, .is_quiet = true},
    {.name = "quiet, outliers",
     .wall = 0.004,
     .cpu = 0.003,
     .outlier = 2,
     .single = 1,
     .single_rate = 0.1,
     .is_cpu_fair = true,
     .is_quiet = true},
    {.name = "2 %", .wall = 0.02, .cpu = 0.02, .is_cpu_fair = true},
    {.name = "30 %",
     .wall = 0.3,
     .cpu = 0.06,
     .is_one_sided = true,
     .waited = 0.3,
     .is_cpu_fair = true},
    {.name = "30 %, no processor time", .wall = 0.3, .is_one_sided = true, .waited = 0.3},
    {.name = "50 % and drift",
     .wall = 0.5,
     .cpu = 0.1,
     .is_one_sided = true,
     .drift = 0.5,
     .waited = 0.5,
     .is_cpu_fair = true},
    {.name = "a job from the middle",
     .wall = 0.01,
     .cpu = 0.008,
     .job_from = 4,
     .waited = 0.2,
     .is_cpu_fair = true},
    {.name = "spikes in a third",
     .wall = 0.01,
     .cpu = 0.01,
     .is_one_sided = true,
     .single = 0.3,
     .single_rate = 0.35,
     .is_cpu_fair = true},
};

/* Costs and memory of the rows: pairs that are equal, supersets that need more of one and less of the
 * other, rows that are worse in both. */
static const struct {
    double cost;
    int64_t bytes, replay_flops;
} truth[N_ROWS] = {{0, 1000, 0},    {0, 950, 0},      {0.02, 900, 10}, {0.05, 800, 20},
                   {0.05, 800, 20}, {0.065, 800, 30}, {0.09, 850, 40}, {0.15, 600, 60},
                   {0.25, 600, 90}, {0, 1000, 0}};

typedef struct draws {
    rc_random random;
    uint64_t n;
} draws;

static double draw(draws *d) /* in (0, 1) */
{
    return ((double)rc_random_bits(&d->random, d->n++) + 0.5) / 4294967296.0;
}

static double draw_normal(draws *d)
{
    double u = draw(d), v = draw(d);
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

/* What noise makes of 1 second in a run of some round; `is_bad` is the round's own outlier. */
static double disturb(const machine *m, double share, size_t round, bool is_bad, double at,
                      draws *d)
{
    double z = share * draw_normal(d), time = (double)round + at;
    double factor = exp(m->is_one_sided ? fabs(z) : z) * (1 + m->drift * time / MAX_TRIED);
    bool has_job = m->job_from && round >= (size_t)m->job_from;
    if (is_bad)
        factor *= 1 + m->outlier * draw(d);
    if (draw(d) < m->single_rate)
        factor *= 1 + m->single * draw(d);
    return has_job ? factor * (1 + share * 30 * draw(d)) : factor;
}

typedef struct tally {
    int n_rows;   /* judged */
    int n_missed; /* the interval does not hold the true cost */
    int n_wrong;  /* the interval is all on the wrong side of 0 */
    int n_false;  /* dominated by a row that is not better */
    int n_narrow, n_dominated, n_to_dominate, n_rounds;
} tally;

static const char *const names[N_ROWS] = {"[]", "a1", "a2", "a3", "a4",
                                          "a5", "a6", "a7", "a8", "[]"};

/* Is k better than r in truth: no more memory and less time? */
static bool is_better(size_t k, size_t r)
{
    return truth[k].bytes <= truth[r].bytes && truth[k].cost < truth[r].cost;
}

static void count_row(const rc_study *study, size_t r, tally *all)
{
    const rc_study_row *row = &study->rows[r];
    const rc_interval *ratio = &row->ratio[study->clock];
    const char *by = strstr(row->says, "dominated by ");
    double cost = truth[r].cost;
    bool is_to_dominate = false;
    all->n_rows++;
    all->n_missed += 1 + cost < ratio->low || 1 + cost > ratio->high;
    all->n_wrong +=
        (cost > 0 && ratio->high < 1) || (cost <= 0 && (ratio->low > 1 || ratio->high < 1));
    all->n_narrow += ratio->high - ratio->low <= 2 * study->rules.target_ratio;
    assert_true((row->verdict == RC_VERDICT_DOMINATED) == (by != NULL));
    for (size_t k = 1; k + 1 < N_ROWS; k++) {
        bool is_named = by && strncmp(by + strlen("dominated by "), names[k], 2) == 0;
        all->n_false += is_named && !is_better(k, r);
        is_to_dominate = is_to_dominate || (is_better(k, r) && cost - truth[k].cost >= 0.035);
    }
    all->n_to_dominate += is_to_dominate;
    all->n_dominated += is_to_dominate && by;
}

static void run_study(const machine *m, uint64_t seed, tally *all)
{
    rc_arena *mem = rc_arena_open();
    rc_study_row rows[N_ROWS];
    rc_study study = make_study(rows, N_ROWS);
    draws d = {.random = {.seed = seed, .draw = 1}};
    size_t order[N_ROWS], n;
    study.is_cpu_fair = m->is_cpu_fair;
    study.load = (rc_study_load){.own = 1 - m->waited, .waited = m->waited};
    for (size_t r = 0; r < N_ROWS; r++) {
        rows[r].setting = names[r];
        rows[r].peak_bytes = truth[r].bytes;
        rows[r].replay_flops = truth[r].replay_flops;
    }
    for (;;) {
        double seconds = 30.0 * (double)study.n_rounds / MAX_TRIED;
        assert_ok(rc_study_next_round(&study, seconds, mem, order, &n, NULL));
        if (n == 0)
            break;
        assert_ok(rc_study_add_round(&study, mem, NULL));
        size_t round = study.n_rounds - 1;
        bool is_bad = m->outlier > 0 && draw(&d) < 0.1;
        for (size_t i = 0; i < n; i++) {
            rc_study_sample *sample = &rows[order[i]].rounds[round];
            double step = 1 + truth[order[i]].cost;
            sample->at = (double)i / (double)(n - 1);
            sample->seconds[RC_CLOCK_WALL] =
                step * disturb(m, m->wall, round, is_bad, sample->at, &d);
            sample->seconds[RC_CLOCK_CPU] =
                2 * step * disturb(m, m->cpu, round, is_bad, sample->at, &d);
        }
    }
    assert_ok(rc_study_judge(&study, mem, NULL));
    for (size_t r = 1; r + 1 < N_ROWS; r++)
        count_row(&study, r, all);
    all->n_rounds += (int)study.n_rounds;
    rc_arena_close(mem);
}

/* At RC_STUDY_CONFIDENCE, whatever the noise; and where it is small, the true verdicts are given. */
static void verdicts_are_as_sure_as_stated(void **state)
{
    (void)state;
    enum { N_STUDIES = 120 };
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++) {
        const machine *m = &machines[i];
        tally all = {.n_rows = 0};
        for (uint64_t seed = 1; seed <= N_STUDIES; seed++)
            run_study(m, seed, &all);
        double n = all.n_rows;
        print_message(
            "%-24s rounds %4.1f, missed %.2f %%, wrong sign %.2f %%, falsely dominated "
            "%.2f %%, narrow %.0f %%, dominated %d of %d\n",
            m->name, (double)all.n_rounds / N_STUDIES, all.n_missed / n * 100,
            all.n_wrong / n * 100, all.n_false / n * 100, all.n_narrow / n * 100,
            all.n_dominated, all.n_to_dominate);
        assert_true(all.n_missed <= (1 - RC_STUDY_CONFIDENCE) * n);
        assert_true(all.n_wrong <= (1 - RC_STUDY_CONFIDENCE) * n);
        assert_true(all.n_false <= (1 - RC_STUDY_CONFIDENCE) / 10 * n);
        if (!m->is_quiet)
            continue;
        assert_true(all.n_narrow >= 0.99 * n);
        assert_true(all.n_dominated >= 0.95 * all.n_to_dominate);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(interval_is_the_sign_tests),
        cmocka_unit_test(rounds_go_there_and_back),
        cmocka_unit_test(rows_are_compared_with_the_nearer_control),
        cmocka_unit_test(rounds_end_for_a_reason),
        cmocka_unit_test(busy_is_what_kept_the_study_waiting),
        cmocka_unit_test(verdicts_are_as_sure_as_stated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
