/* judge.c — what the measured rows of a study mean.
 *
 * takes  rows with peaks, times of every round, replayed FLOPs and losses
 * gives  a verdict per row, in words, that the intervals of the times carry
 * next   table.c
 */
#include "study/compare.h"

#include <math.h>
#include <string.h>

const char *rc_verdict_name(rc_verdict verdict)
{
    static const char *const names[RC_VERDICT_COUNT] = {"control",   "failed",    "other-loss",
                                                        "no-effect", "no-saving", "harmful",
                                                        "dominated", "saves"};
    return names[verdict];
}

/* Bit for bit: a NAN equals itself here, and 0.0 is not -0.0. */
static bool is_same_bits(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

/* The largest relative difference of two rows' losses over the steps both know; 0 only when
 * they are the same bits. */
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

/* A trainer whose two controls differ is not deterministic: then a row may differ from the
 * control by a few times what the controls differ by. */
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
    study->loss_noise_ratio = last->is_pass ? loss_distance(first, last) : 0;
    study->peak_noise_ratio = 0;
    if (last->is_pass && last->peak_bytes >= 0 && first->peak_bytes > 0)
        study->peak_noise_ratio =
            fabs((double)last->peak_bytes / (double)first->peak_bytes - 1);
}

static void compare_with_control(const rc_study *study, rc_study_row *row)
{
    const rc_study_row *control = &study->rows[0];
    bool has_peaks = row->peak_bytes >= 0 && control->peak_bytes > 0;
    row->saved_ratio = (double)NAN;
    row->is_same_loss = row->is_pass && has_same_loss(study, row);
    if (row->is_pass && has_peaks)
        row->saved_ratio = 1 - (double)row->peak_bytes / (double)control->peak_bytes;
}

/* The whole interval of one below the whole of the other; false where one is not known. */
static bool is_below(const rc_interval *a, const rc_interval *b)
{
    return a->high < b->low;
}

/* Needs `other` no more memory and clearly less time? Clearly is: the intervals lie apart,
 * which two intervals of one and the same time do far more seldom than one of them misses it.
 * The other clock may know less, but not say the opposite. */
static bool is_dominated_by(const rc_study *study, const rc_study_row *row,
                            const rc_study_row *other)
{
    rc_study_clock decides = study->clock;
    rc_study_clock besides = decides == RC_CLOCK_WALL ? RC_CLOCK_CPU : RC_CLOCK_WALL;
    if (!other->is_pass || !other->is_same_loss || other->peak_bytes < 0 ||
        compare_peaks(study, other, row) > 0)
        return false;
    bool is_opposite =
        study->is_cpu_fair && is_below(&row->ratio[besides], &other->ratio[besides]);
    return is_below(&other->ratio[decides], &row->ratio[decides]) && !is_opposite;
}

/* The fastest of the rows that dominate, or NULL. */
static const rc_study_row *find_dominating(const rc_study *study, const rc_study_row *row)
{
    const rc_study_row *best = NULL;
    for (size_t i = 1; i + 1 < study->n_rows; i++) {
        const rc_study_row *other = &study->rows[i];
        if (other == row || !is_dominated_by(study, row, other))
            continue;
        if (!best || other->ratio[study->clock].center < best->ratio[study->clock].center)
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
    /* The same peak. Without a count of FLOPs only a surely longer time shows a replay. */
    bool is_slower = row->ratio[study->clock].low > 1;
    if (is_replaying || (row->replay_flops < 0 && is_slower))
        return RC_VERDICT_NO_SAVING;
    return RC_VERDICT_NO_EFFECT;
}

/* " for +2.1 %" where the interval is narrow and all on one side; " for +2.1 to +9.8 %" where
 * it is wide; ", cost at most +0.4 %" where it is narrow and holds 0; else ", cost not
 * resolved": then neither a number nor a sign means a thing. */
static const char *cost_words(const rc_study *study, const rc_study_row *row, char buf[128])
{
    const rc_interval *ratio = &row->ratio[study->clock];
    const char *unit = study->clock == RC_CLOCK_CPU ? "% CPU time" : "%";
    double low = (ratio->low - 1) * 100, high = (ratio->high - 1) * 100;
    bool is_narrow = rc_interval_half_width(ratio) <= study->rules.target_ratio;
    if (isnan(ratio->center))
        snprintf(buf, 128, " for an unknown time");
    else if (isnan(ratio->low))
        snprintf(buf, 128, ", cost not resolved (%zu rounds; an interval takes %d)", ratio->n,
                 RC_INTERVAL_LEAST);
    else if (is_narrow && low * high > 0)
        snprintf(buf, 128, " for %+.1f %s", (ratio->center - 1) * 100, unit);
    else if (low * high > 0)
        snprintf(buf, 128, " for %+.1f to %+.1f %s", low, high, unit);
    else if (is_narrow)
        snprintf(buf, 128, ", cost at most %+.1f %s", fmax(high, 0), unit);
    else
        snprintf(buf, 128, ", cost not resolved (%+.1f to %+.1f %s)", low, high, unit);
    return buf;
}

/* A row whose replay is counted does all of the control's work and its replay on top. Surely
 * faster all the same, it gained elsewhere: by touching less memory, or by luck that lasted
 * over all rounds. */
static const char *faster_words(const rc_study *study, const rc_study_row *row)
{
    bool is_faster = row->replay_flops >= 0 && row->ratio[study->clock].high < 1;
    return is_faster ? " (faster with more work: its memory's doing, or this machine's)" : "";
}

/* The same of two rows. */
static const char *more_work_words(const rc_study_row *row, const rc_study_row *other)
{
    bool is_more = row->replay_flops >= 0 && other->replay_flops > row->replay_flops;
    return is_more ? " (measured, though it recomputes more)" : "";
}

static rc_code say_dominated(const rc_study *study, rc_study_row *row, const char *cost,
                             rc_arena *mem, rc_error *err)
{
    const rc_study_row *other = find_dominating(study, row);
    return rc_arena_printf(mem, &row->says, err, "saves %.1f %%%s%s, dominated by %s%s",
                           row->saved_ratio * 100, cost, faster_words(study, row),
                           other->setting, more_work_words(row, other));
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
    char time[128];
    const char *faster = faster_words(study, row);
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
        return rc_arena_printf(mem, &row->says, err, "saves nothing,%s%s", after_comma, faster);
    case RC_VERDICT_HARMFUL:
        return rc_arena_printf(mem, &row->says, err, "harmful: %.1f %% more memory,%s%s",
                               -saved, after_comma, faster);
    case RC_VERDICT_DOMINATED:
        return say_dominated(study, row, cost, mem, err);
    case RC_VERDICT_SAVES:
        return rc_arena_printf(mem, &row->says, err, "saves %.1f %%%s%s", saved, cost, faster);
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
    RC_TRY(rc_study_compare(study, mem, err));
    RC_TRY(rc_study_say_machine(study, mem, err));
    measure_noise(study);
    for (size_t i = 0; i < study->n_rows; i++)
        compare_with_control(study, &study->rows[i]);
    for (size_t i = 0; i < study->n_rows; i++) {
        study->rows[i].verdict = verdict_of(study, &study->rows[i]);
        RC_TRY(say(study, &study->rows[i], mem, err));
    }
    return RC_OK;
}
