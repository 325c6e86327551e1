/* study/rounds.c — which rows the next round of a study runs, in which order, and when there is none. */
#include "study/compare.h"

#include "base/random.h"

#include <math.h>

const char *rc_study_end_name(rc_study_end end)
{
    static const char *const names[RC_STUDY_END_COUNT] = {"rounds", "narrow", "time-limit"};
    return names[end];
}

rc_code rc_study_add_round(rc_study *study, rc_arena *mem, rc_error *err)
{
    size_t n = study->n_rounds, n_room = study->n_rounds_room;
    for (size_t r = 0; r < study->n_rows; r++) {
        rc_study_row *row = &study->rows[r];
        n_room = study->n_rounds_room;
        RC_TRY(RC_GROW(mem, &row->rounds, n, &n_room, n + 1, err));
        row->rounds[n] = (rc_study_sample){{(double)NAN, (double)NAN}, 0};
    }
    study->n_rounds_room = n_room;
    study->n_rounds++;
    return RC_OK;
}

/* Fisher and Yates' shuffle of the rows between the controls; a pair of rounds shares its draws. */
static void shuffle(size_t round, size_t *order, size_t n)
{
    rc_random random = {.seed = 0, .draw = round / 2};
    for (size_t i = n; round >= 2 && i > 1; i--) {
        size_t k = rc_random_bits(&random, i) % i, kept = order[i - 1];
        order[i - 1] = order[k];
        order[k] = kept;
    }
    for (size_t i = 0; round % 2 == 1 && i < n / 2; i++) {
        size_t kept = order[i];
        order[i] = order[n - 1 - i];
        order[n - 1 - i] = kept;
    }
}

/* On a busy machine the clock that will decide; else wall time gets the chance to become narrow. */
static bool is_done(const rc_study *study, const rc_study_row *row)
{
    rc_study_clock clock = study->is_busy ? study->clock : RC_CLOCK_WALL;
    return (int64_t)study->n_rounds >= study->rules.n_least &&
           rc_interval_half_width(&row->ratio[clock]) <= study->rules.target_ratio;
}

/* RC_STUDY_END_COUNT: there is a further round. */
static rc_study_end end_of(const rc_study *study, double seconds, size_t n_passing,
                           size_t n_open)
{
    bool is_sure = (int64_t)study->n_rounds < study->rules.n_least;
    double each = seconds / (double)study->n_rounds;
    if (is_sure && (n_passing > 0 || study->n_rows == 2))
        return RC_STUDY_END_COUNT;
    if (n_passing > 0 && n_open == 0)
        return RC_STUDY_END_NARROW;
    if (n_open == 0 || study->rules.limit_seconds <= 0 ||
        study->n_rounds >= RC_STUDY_MAX_ROUNDS)
        return RC_STUDY_END_ROUNDS;
    return seconds + each > study->rules.limit_seconds ? RC_STUDY_END_LIMIT
                                                       : RC_STUDY_END_COUNT;
}

rc_code rc_study_next_round(rc_study *study, double seconds, rc_arena *tmp, size_t *order,
                            size_t *n, rc_error *err)
{
    size_t last = study->n_rows - 1, n_passing = 0, n_open = 0;
    RC_TRY(rc_study_compare(study, tmp, err));
    order[0] = 0;
    for (size_t r = 1; r < last; r++)
        order[r] = r;
    shuffle(study->n_rounds, order + 1, last - 1);
    for (size_t i = 1; i < last; i++) {
        const rc_study_row *row = &study->rows[order[i]];
        n_passing += row->is_pass;
        if (row->is_pass && !is_done(study, row))
            order[1 + n_open++] = order[i];
    }
    *n = 1 + n_open;
    if (study->rows[last].is_pass)
        order[(*n)++] = last;
    study->end = end_of(study, seconds, n_passing, n_open);
    if (study->end != RC_STUDY_END_COUNT)
        *n = 0;
    return RC_OK;
}
