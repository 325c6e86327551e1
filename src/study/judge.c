/* judge.c — what the measured rows of a study mean.
 *
 * takes  rows with peaks, step times, replayed FLOPs and losses
 * gives  a verdict per row, in words
 * next   table.c
 */
#include <recompute/study.h>

#include "base/num.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int compare_doubles(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static double quantile(const double *sorted, size_t n, double p)
{
    double at = p * (double)(n - 1);
    size_t below = (size_t)at;
    if (below + 1 >= n)
        return sorted[n - 1];
    return sorted[below] + (at - (double)below) * (sorted[below + 1] - sorted[below]);
}

rc_spread rc_spread_of(double *values, size_t n)
{
    if (n == 0)
        return (rc_spread){.median = (double)NAN, .low = (double)NAN, .high = (double)NAN};
    qsort(values, n, sizeof *values, compare_doubles);
    return (rc_spread){.median = quantile(values, n, 0.5),
                       .low = quantile(values, n, 0.25),
                       .high = quantile(values, n, 0.75),
                       .n = n};
}

const char *rc_verdict_name(rc_verdict verdict)
{
    static const char *const names[RC_VERDICT_COUNT] = {"control",   "failed",    "other-loss",
                                                        "no-effect", "no-saving", "harmful",
                                                        "dominated", "saves"};
    return names[verdict];
}

/* Half of the spread, as a share of the median. */
static double half_spread(const rc_spread *s)
{
    return s->n && s->median > 0 ? (s->high - s->low) / 2 / s->median : 0;
}

/* Differences below this are the machine's, not the setting's: the larger of how far the two
 * controls are apart and how far the control's steps spread (and what seems_faster finds). */
static double control_noise(const rc_study *study)
{
    const rc_study_row *first = &study->rows[0], *last = &study->rows[study->n_rows - 1];
    double noise = half_spread(&first->step_seconds);
    if (last->is_pass && last->step_seconds.n && first->step_seconds.median > 0) {
        noise = fmax(noise, half_spread(&last->step_seconds));
        noise = fmax(noise, fabs(last->step_seconds.median / first->step_seconds.median - 1));
    }
    return noise;
}

static double control_seconds(const rc_study *study)
{
    const rc_study_row *first = &study->rows[0], *last = &study->rows[study->n_rows - 1];
    if (!last->is_pass || !last->step_seconds.n)
        return first->step_seconds.median;
    return (first->step_seconds.median + last->step_seconds.median) / 2;
}

/* Bit for bit: a NAN equals itself here, and 0.0 is not -0.0. */
static bool is_same_bits(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

/* The largest relative difference of two rows' losses over the steps both know; 0 only when they
 * are the same bits. */
static double loss_distance(const rc_study_row *a, const rc_study_row *b)
{
    size_t n = a->n_losses < b->n_losses ? a->n_losses : b->n_losses;
    double most = 0;
    for (size_t i = 0; i < n; i++) {
        if (is_same_bits(a->losses[i], b->losses[i]))
            continue;
        double apart = fabs(a->losses[i] - b->losses[i]) / fabs(a->losses[i]);
        most = fmax(most, isfinite(apart) && apart > 0 ? apart : 1);
    }
    return n > 0 ? most : 1;
}

/* A trainer whose two controls differ is not deterministic: then a row may differ from the control
 * by a few times what the controls differ by. */
static bool has_same_loss(const rc_study *study, const rc_study_row *row)
{
    enum { FEW = 4 };
    return loss_distance(&study->rows[0], row) <= FEW * study->loss_noise_ratio;
}

/* -1, 0, 1: less memory, the same, more. What the two controls differ by means nothing. */
static int compare_peaks(const rc_study *study, const rc_study_row *a, const rc_study_row *b)
{
    double apart = (double)(a->peak_bytes - b->peak_bytes);
    double noise = study->peak_noise_ratio * (double)b->peak_bytes;
    return fabs(apart) <= noise ? 0 : apart < 0 ? -1 : 1;
}

static void measure_noise(rc_study *study)
{
    const rc_study_row *first = &study->rows[0], *last = &study->rows[study->n_rows - 1];
    study->noise_ratio = control_noise(study);
    study->loss_noise_ratio = last->is_pass ? loss_distance(first, last) : 0;
    study->peak_noise_ratio = 0;
    if (last->is_pass && last->peak_bytes >= 0 && first->peak_bytes > 0)
        study->peak_noise_ratio =
            fabs((double)last->peak_bytes / (double)first->peak_bytes - 1);
}

static void compare_with_control(const rc_study *study, rc_study_row *row)
{
    const rc_study_row *control = &study->rows[0];
    double seconds = control_seconds(study);
    bool has_peaks = row->peak_bytes >= 0 && control->peak_bytes > 0;
    row->saved_ratio = (double)NAN;
    row->time_ratio = (double)NAN;
    row->is_same_loss = row->is_pass && has_same_loss(study, row);
    if (row->is_pass && has_peaks)
        row->saved_ratio = 1 - (double)row->peak_bytes / (double)control->peak_bytes;
    if (row->is_pass && row->step_seconds.n && seconds > 0)
        row->time_ratio = row->step_seconds.median / seconds;
}

/* A row whose replay is counted does all of the control's work and its replay on top. Where it seems
 * faster all the same, times here are off by at least that much. */
static double seems_faster(const rc_study *study)
{
    double most = 0;
    for (size_t i = 1; i + 1 < study->n_rows; i++) {
        const rc_study_row *row = &study->rows[i];
        if (row->is_same_loss && row->replay_flops >= 0 && !isnan(row->time_ratio))
            most = fmax(most, 1 - row->time_ratio);
    }
    return most;
}

static double row_noise(const rc_study *study, const rc_study_row *row)
{
    return fmax(study->noise_ratio, half_spread(&row->step_seconds));
}

/* Is `other` at least as good in memory and time, and clearly better in one? Times are compared
 * beyond noise. Where both replays are known to the FLOP, a row that replays no more and is not
 * clearly slower counts as no slower. */
static bool is_dominated_by(const rc_study *study, const rc_study_row *row,
                            const rc_study_row *other)
{
    if (!other->is_pass || !other->is_same_loss || isnan(other->time_ratio) ||
        isnan(row->time_ratio) || other->peak_bytes < 0 || compare_peaks(study, other, row) > 0)
        return false;
    double noise = fmax(row_noise(study, row), row_noise(study, other));
    bool is_faster = other->time_ratio < row->time_ratio - noise;
    bool is_not_slower = other->time_ratio <= row->time_ratio;
    if (row->replay_flops >= 0 && other->replay_flops >= 0)
        is_not_slower = is_faster || (other->replay_flops <= row->replay_flops &&
                                      other->time_ratio <= row->time_ratio + noise);
    return compare_peaks(study, other, row) < 0 ? is_not_slower : is_faster;
}

/* The fastest of the rows that dominate, or NULL. */
static const rc_study_row *find_dominating(const rc_study *study, const rc_study_row *row)
{
    const rc_study_row *best = NULL;
    for (size_t i = 1; i + 1 < study->n_rows; i++) {
        const rc_study_row *other = &study->rows[i];
        if (other == row || !is_dominated_by(study, row, other))
            continue;
        if (!best || other->time_ratio < best->time_ratio)
            best = other;
    }
    return best;
}

static rc_verdict verdict_of(const rc_study *study, const rc_study_row *row)
{
    const rc_study_row *control = &study->rows[0];
    bool is_replaying = row->replay_flops > 0;
    if (row->is_control)
        return row->is_pass ? RC_VERDICT_CONTROL : RC_VERDICT_FAILED;
    if (!row->is_pass)
        return RC_VERDICT_FAILED;
    if (!row->is_same_loss)
        return RC_VERDICT_OTHER_LOSS;
    int order = compare_peaks(study, row, control);
    if (order > 0)
        return RC_VERDICT_HARMFUL;
    if (order < 0)
        return find_dominating(study, row) ? RC_VERDICT_DOMINATED : RC_VERDICT_SAVES;
    /* The same peak. Without a count of FLOPs only a time beyond noise shows a replay. */
    bool is_slower = !isnan(row->time_ratio) && row->time_ratio > 1 + row_noise(study, row);
    if (is_replaying || (row->replay_flops < 0 && is_slower))
        return RC_VERDICT_NO_SAVING;
    return RC_VERDICT_NO_EFFECT;
}

/* " for +2.1 %", or ", cost within noise (2.3 %)": there neither the number nor its sign means a thing. */
static const char *cost_words(const rc_study *study, const rc_study_row *row, char buf[64])
{
    double ratio = row->time_ratio - 1, noise = row_noise(study, row);
    if (isnan(ratio))
        snprintf(buf, 64, " for an unknown time");
    else if (fabs(ratio) <= noise)
        snprintf(buf, 64, ", cost within noise (%.1f %%)", noise * 100);
    else
        snprintf(buf, 64, " for %+.1f %%", ratio * 100);
    return buf;
}

/* The same peak to the byte, or as far as the controls' peaks tell. */
static rc_code say_no_effect(const rc_study *study, rc_study_row *row, rc_arena *mem,
                             rc_error *err)
{
    if (row->peak_bytes == study->rows[0].peak_bytes)
        return rc_arena_printf(mem, &row->says, err, "no effect here");
    return rc_arena_printf(mem, &row->says, err,
                           "no effect: its peak is within noise (%.2f %%)",
                           study->peak_noise_ratio * 100);
}

static rc_code say(const rc_study *study, rc_study_row *row, rc_arena *mem, rc_error *err)
{
    char time[64];
    const char *cost = cost_words(study, row, time);
    const char *after_comma = cost + (*cost == ',');
    double saved = row->saved_ratio * 100;
    switch (row->verdict) {
    case RC_VERDICT_CONTROL:
        return rc_arena_printf(mem, &row->says, err, "control, %s",
                               row == &study->rows[0] ? "first" : "last");
    case RC_VERDICT_FAILED:
        return rc_arena_printf(mem, &row->says, err, "failed: %s",
                               row->failure ? row->failure : "unknown");
    case RC_VERDICT_OTHER_LOSS:
        return rc_arena_printf(mem, &row->says, err,
                               "not comparable: its loss is not the control's");
    case RC_VERDICT_NO_EFFECT:
        return say_no_effect(study, row, mem, err);
    case RC_VERDICT_NO_SAVING:
        return rc_arena_printf(mem, &row->says, err, "saves nothing,%s", after_comma);
    case RC_VERDICT_HARMFUL:
        return rc_arena_printf(mem, &row->says, err, "harmful: %.1f %% more memory,%s", -saved,
                               after_comma);
    case RC_VERDICT_DOMINATED:
        return rc_arena_printf(mem, &row->says, err, "saves %.1f %%%s, dominated by %s", saved,
                               cost, find_dominating(study, row)->setting);
    case RC_VERDICT_SAVES:
        return rc_arena_printf(mem, &row->says, err, "saves %.1f %%%s", saved, cost);
    case RC_VERDICT_COUNT:
        break;
    }
    return RC_FAIL(err, RC_E_BUG, RC_NOWHERE, "a row of a study has no verdict");
}

rc_code rc_study_judge(rc_study *study, rc_arena *mem, rc_error *err)
{
    RC_ASSERT(study->n_rows >= 2);
    const rc_study_row *control = &study->rows[0];
    if (!control->is_pass)
        return RC_FAIL(err, RC_E_RANGE, RC_NOWHERE,
                       "the control failed (%s), so there is nothing to compare with; take a "
                       "model, sequence or batch that fits without recompute",
                       control->failure ? control->failure : "unknown");
    measure_noise(study);
    for (size_t i = 0; i < study->n_rows; i++)
        compare_with_control(study, &study->rows[i]);
    study->noise_ratio = fmax(study->noise_ratio, seems_faster(study));
    for (size_t i = 0; i < study->n_rows; i++) {
        study->rows[i].verdict = verdict_of(study, &study->rows[i]);
        RC_TRY(say(study, &study->rows[i], mem, err));
    }
    return RC_OK;
}
