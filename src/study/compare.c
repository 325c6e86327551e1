/* study/compare.c — every row's times against the control of the same round.
 *
 * takes  rows with what each run measured
 * gives  intervals of the ratios, by wall time and by processor time, and which decides
 * next   judge.c
 */
#include "study/compare.h"

#include "base/text.h"

#include <math.h>

double rc_interval_half_width(const rc_interval *interval)
{
    return isnan(interval->low) ? (double)INFINITY : (interval->high - interval->low) / 2;
}

/* --- ratios
 *
 * The control runs at both ends of a round, and a row is compared with the nearer one alone.
 * Whatever the noise is like, of two runs it strikes each alike: without a cost the ratio is
 * above 1 as often as below, which is all that the interval asks for. The mean of both
 * controls, or the line between them, is less noisy than one run and looks better, but noise
 * that only ever adds then moves the median: with spikes in a third of the runs the true cost
 * lay outside in 18 of 100 studies of 100 rounds. A drift within a round shifts a row to the
 * one side and, since every other round goes backwards, to the other. */

static double seconds_of(const rc_study_row *row, size_t round, rc_study_clock clock)
{
    double seconds = row->rounds[round].seconds[clock];
    return seconds > 0 ? seconds : (double)NAN;
}

/* Of the control that ran nearer to the row; of the other where that one failed. */
static double control_seconds(const rc_study *study, const rc_study_row *row, size_t round,
                              rc_study_clock clock)
{
    double first = seconds_of(&study->rows[0], round, clock);
    double last = seconds_of(&study->rows[study->n_rows - 1], round, clock);
    double middle = 0.5, at = row->rounds[round].at;
    bool is_last_nearer = at > middle || (at >= middle && round % 2 == 1);
    if (isnan(first) || isnan(last))
        return isnan(last) ? first : last;
    return is_last_nearer ? last : first;
}

/* The first control has nothing to be compared with; the last shows what a round does to times. */
static double ratio_in_round(const rc_study *study, size_t r, size_t round,
                             rc_study_clock clock)
{
    const rc_study_row *row = &study->rows[r];
    double control = r + 1 == study->n_rows ? seconds_of(&study->rows[0], round, clock)
                                            : control_seconds(study, row, round, clock);
    return r == 0 ? (double)NAN : seconds_of(row, round, clock) / control;
}

static void compare_row(rc_study *study, size_t r, rc_study_clock clock, double *tmp)
{
    rc_study_row *row = &study->rows[r];
    size_t n = 0;
    for (size_t k = 0; k < study->n_rounds; k++)
        if (!isnan(seconds_of(row, k, clock)))
            tmp[n++] = seconds_of(row, k, clock);
    row->step_seconds[clock] = rc_spread_of(tmp, n);
    n = 0;
    for (size_t k = 0; k < study->n_rounds; k++)
        if (!isnan(ratio_in_round(study, r, k, clock)))
            tmp[n++] = ratio_in_round(study, r, k, clock);
    row->ratio[clock] = rc_interval_of(tmp, n);
}

/* --- the machine */

/* Shares from which on a machine counts as busy. On a quiet one, two threads on two cores wait
 * for less than 1 % of their time, and nothing is stolen or throttled. */
static const double busy_wait = 0.05, busy_host = 0.02, busy_others = 0.05, busy_all = 0.85;

/* False when the share is not known. */
static bool is_above(double part, double whole, double limit)
{
    return whole > 0 && part / whole > limit;
}

/* That a thread waited for a core is the fact itself. Where the system does not tell it (of a
 * launched trainer's processes), others at work count when they and the study left hardly a
 * core free. */
static bool is_busy(const rc_study_load *load)
{
    double cores = load->n_cores * load->seconds;
    if (is_above(load->waited, load->waited + load->own, busy_wait) ||
        is_above(load->stolen, cores, busy_host) ||
        is_above(load->throttled, load->seconds, busy_host))
        return true;
    return isnan(load->waited) && is_above(load->other, cores, busy_others) &&
           is_above(load->own + load->other, cores, busy_all);
}

rc_code rc_study_typical_width(const rc_study *study, rc_study_clock clock, rc_arena *tmp,
                               double *out, rc_error *err)
{
    double *widths;
    size_t n = 0;
    RC_TRY(RC_NEW(tmp, &widths, study->n_rows, err));
    for (size_t r = 1; r < study->n_rows; r++)
        if (study->rows[r].is_pass && (study->n_rows == 2 || r + 1 < study->n_rows))
            widths[n++] = rc_interval_half_width(&study->rows[r].ratio[clock]);
    *out = n ? rc_spread_of(widths, n).median : (double)INFINITY;
    return RC_OK;
}

static rc_code choose_clock(rc_study *study, rc_arena *tmp, rc_error *err)
{
    double wall, cpu;
    RC_TRY(rc_study_typical_width(study, RC_CLOCK_WALL, tmp, &wall, err));
    RC_TRY(rc_study_typical_width(study, RC_CLOCK_CPU, tmp, &cpu, err));
    bool is_disturbed = study->is_busy || wall > study->rules.target_ratio;
    bool is_cpu = study->is_cpu_fair && is_disturbed && cpu < wall;
    study->clock = is_cpu ? RC_CLOCK_CPU : RC_CLOCK_WALL;
    return RC_OK;
}

static double half_spread(const rc_spread *s)
{
    return s->n && s->median > 0 ? (s->high - s->low) / 2 / s->median : 0;
}

/* How far the controls' steps are spread, and how far the two are apart. */
static double control_noise(const rc_study *study)
{
    const rc_spread *first = &study->rows[0].step_seconds[RC_CLOCK_WALL];
    const rc_spread *last = &study->rows[study->n_rows - 1].step_seconds[RC_CLOCK_WALL];
    double noise = fmax(half_spread(first), half_spread(last));
    if (last->n && first->median > 0)
        noise = fmax(noise, fabs(last->median / first->median - 1));
    return noise;
}

rc_code rc_study_compare(rc_study *study, rc_arena *tmp, rc_error *err)
{
    rc_mark mark = rc_arena_mark(tmp);
    double *values;
    RC_TRY(RC_NEW(tmp, &values, study->n_rounds, err));
    for (size_t r = 0; r < study->n_rows; r++) {
        compare_row(study, r, RC_CLOCK_WALL, values);
        compare_row(study, r, RC_CLOCK_CPU, values);
    }
    study->noise_ratio = control_noise(study);
    study->is_busy = is_busy(&study->load);
    RC_TRY(choose_clock(study, tmp, err));
    rc_arena_rewind(tmp, mark);
    return RC_OK;
}

/* --- its words */

/* ": threads waited 12 % of their time for a core, other programs used 1.4 of 2 cores", of what
 * the system tells. */
static rc_code add_load(const rc_study_load *load, rc_text *text, rc_error *err)
{
    double all = load->waited + load->own, cores = load->n_cores * load->seconds;
    const char *before = ": ";
    if (is_above(load->waited, all, -1)) {
        RC_TRY(rc_text_printf(text, err, "%sthreads waited %.1f %% of their time for a core",
                              before, load->waited / all * 100));
        before = ", ";
    }
    if (is_above(load->other, cores, -1)) {
        RC_TRY(rc_text_printf(text, err, "%sother programs used %.1f of %.0f cores", before,
                              load->other / load->seconds, load->n_cores));
        before = ", ";
    }
    if (is_above(load->stolen, cores, busy_host / 4)) {
        RC_TRY(rc_text_printf(text, err, "%sthe host took %.1f %% of the cores", before,
                              load->stolen / cores * 100));
        before = ", ";
    }
    if (is_above(load->throttled, load->seconds, busy_host / 4))
        RC_TRY(rc_text_printf(text, err, "%sa limit held the study back %.1f %% of the time",
                              before, load->throttled / load->seconds * 100));
    return RC_OK;
}

rc_code rc_study_say_machine(rc_study *study, rc_arena *mem, rc_error *err)
{
    const rc_study_load *load = &study->load;
    rc_text text = {.mem = mem};
    double width;
    RC_TRY(rc_study_typical_width(study, RC_CLOCK_WALL, mem, &width, err));
    bool is_known = !isnan(load->waited) || !isnan(load->other);
    bool is_unsteady = isfinite(width) && width > study->rules.target_ratio;
    RC_TRY(rc_text_printf(&text, err, "%s",
                          study->is_busy ? "busy"
                          : is_unsteady  ? "unsteady"
                          : is_known     ? "quiet"
                                         : "this system does not tell what else ran"));
    RC_TRY(add_load(load, &text, err));
    if (study->clock == RC_CLOCK_CPU)
        RC_TRY(rc_text_printf(&text, err, "; so costs are read from processor time"));
    if (study->is_busy || is_unsteady)
        RC_TRY(rc_text_printf(&text, err,
                              "; end other programs, or give --time-limit more seconds"));
    study->machine = text.at;
    return RC_OK;
}
