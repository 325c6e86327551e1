/* table.c — judged studies as tables: every column for programs, the telling ones for people. */
#include <recompute/study.h>

#include <math.h>

enum {
    SETTING,
    PREDICTED,
    PEAK,
    RANK,
    SAVED,
    REPLAY,
    STEP,
    SPREAD,
    TIME,
    ITERATIONS,
    LOSS,
    SAME_LOSS,
    KIND,
    SAYS,
    N_COLUMNS
};

static const rc_column columns[N_COLUMNS] = {
    [SETTING] = {"setting", "Setting", RC_UNIT_TEXT},
    [PREDICTED] = {"predicted_peak_bytes", "Predicted", RC_UNIT_BYTES},
    [PEAK] = {"peak_bytes", "Measured", RC_UNIT_BYTES},
    [RANK] = {"peak_rank", "Rank", RC_UNIT_COUNT},
    [SAVED] = {"saved_ratio", "Saved", RC_UNIT_RATIO},
    [REPLAY] = {"recomputed_flops", "Recomputed", RC_UNIT_FLOPS},
    [STEP] = {"step_seconds", "Step", RC_UNIT_SECONDS},
    [SPREAD] = {"step_spread_ratio", "+-", RC_UNIT_RATIO},
    [TIME] = {"time_ratio", "Time", RC_UNIT_RATIO},
    [ITERATIONS] = {"n_iterations", "Steps", RC_UNIT_COUNT},
    [LOSS] = {"loss", "Loss", RC_UNIT_REAL},
    [SAME_LOSS] = {"is_same_loss", "Same loss", RC_UNIT_BOOL},
    [KIND] = {"verdict", "Kind", RC_UNIT_TEXT},
    [SAYS] = {"says", "Verdict", RC_UNIT_TEXT},
};

/* The verdict says what was saved and what it cost; its kind is for programs. */
static bool is_for_people(int column)
{
    return column != SAVED && column != TIME && column != ITERATIONS && column != LOSS &&
           column != KIND;
}

static rc_cell known_int(int64_t value)
{
    rc_cell cell = rc_cell_int(value);
    cell.is_null = value < 0;
    return cell;
}

static rc_cell known_real(double value)
{
    rc_cell cell = rc_cell_real(value);
    cell.is_null = isnan(value);
    return cell;
}

static void fill(const rc_study_row *row, rc_cell cells[N_COLUMNS])
{
    const rc_spread *step = &row->step_seconds;
    bool has_time = step->n > 0 && step->median > 0;
    cells[SETTING] = rc_cell_text(row->setting);
    cells[PREDICTED] = known_int(row->predicted_bytes);
    cells[PEAK] = known_int(row->peak_bytes);
    cells[RANK] = known_int(row->peak_rank);
    cells[SAVED] = known_real(row->saved_ratio);
    cells[REPLAY] = known_int(row->replay_flops);
    cells[STEP] = known_real(step->median);
    cells[SPREAD] = rc_cell_real((step->high - step->low) / 2 / step->median);
    cells[SPREAD].is_null = !has_time;
    cells[TIME] = known_real(row->time_ratio);
    cells[ITERATIONS] = known_int(row->n_iterations);
    cells[LOSS] = known_real(row->loss);
    cells[SAME_LOSS] = rc_cell_int(row->is_same_loss);
    cells[SAME_LOSS].is_null = !row->is_pass;
    cells[KIND] = rc_cell_text(rc_verdict_name(row->verdict));
    cells[SAYS] = rc_cell_text(row->says);
}

/* A column that no row knows (a launched trainer's FLOPs) is left out for people. */
static bool is_known(const rc_study *study, int column)
{
    rc_cell cells[N_COLUMNS];
    for (size_t i = 0; i < study->n_rows; i++) {
        fill(&study->rows[i], cells);
        if (!cells[column].is_null)
            return true;
    }
    return false;
}

rc_code rc_study_table(const rc_study *study, bool is_brief, rc_arena *mem, rc_table **out,
                       rc_error *err)
{
    rc_column *chosen;
    int from[N_COLUMNS];
    size_t n = 0;
    RC_TRY(RC_NEW(mem, &chosen, N_COLUMNS, err));
    for (int i = 0; i < N_COLUMNS; i++) {
        if (is_brief && (!is_for_people(i) || !is_known(study, i)))
            continue;
        chosen[n] = columns[i];
        from[n++] = i;
    }
    RC_TRY(rc_table_make(mem, study->name, study->title, chosen, n, out, err));
    for (size_t i = 0; i < study->n_rows; i++) {
        rc_cell all[N_COLUMNS], *cells;
        RC_TRY(rc_table_add_row(*out, &cells, err));
        fill(&study->rows[i], all);
        for (size_t k = 0; k < n; k++)
            cells[k] = all[from[k]];
    }
    return RC_OK;
}

rc_code rc_study_chart(const rc_study *study, rc_arena *mem, rc_table **out, rc_error *err)
{
    static const rc_column chart_columns[] = {
        [RC_STUDY_CHART_SETTING] = {"setting", "Setting", RC_UNIT_TEXT},
        [RC_STUDY_CHART_STEP] = {"step_seconds", "time of a step", RC_UNIT_SECONDS},
        [RC_STUDY_CHART_PEAK] = {"peak_bytes", "peak memory", RC_UNIT_BYTES}};
    RC_TRY(rc_table_make(mem, study->name, study->title, chart_columns, 3, out, err));
    for (size_t i = 0; i < study->n_rows; i++) {
        const rc_study_row *row = &study->rows[i];
        rc_cell *cells;
        if (!row->is_pass || row->peak_bytes < 0 || isnan(row->step_seconds.median))
            continue;
        RC_TRY(rc_table_add_row(*out, &cells, err));
        cells[RC_STUDY_CHART_SETTING] = rc_cell_text(row->setting);
        cells[RC_STUDY_CHART_STEP] = rc_cell_real(row->step_seconds.median);
        cells[RC_STUDY_CHART_PEAK] = rc_cell_int(row->peak_bytes);
    }
    return RC_OK;
}

rc_code rc_study_facts(const rc_study *study, rc_arena *mem, rc_table **out, rc_error *err)
{
    static const rc_column facts[] = {
        {"study", "Study", RC_UNIT_TEXT},
        {"n_repeats", "Repeats, interleaved", RC_UNIT_COUNT},
        {"noise_ratio", "Noise of step times", RC_UNIT_RATIO},
        {"loss_noise_ratio", "Noise of losses", RC_UNIT_RATIO},
        {"is_prediction_exact", "Predicted peak = measured peak, every row", RC_UNIT_BOOL},
    };
    rc_cell *cells;
    const char *name;
    bool is_exact = true, has_prediction = false;
    for (size_t i = 0; i < study->n_rows; i++) {
        const rc_study_row *row = &study->rows[i];
        if (!row->is_pass || row->predicted_bytes < 0)
            continue;
        has_prediction = true;
        is_exact = is_exact && row->predicted_bytes == row->peak_bytes;
    }
    RC_TRY(rc_arena_printf(mem, &name, err, "%s_facts", study->name));
    RC_TRY(rc_table_make(mem, name, NULL, facts, has_prediction ? 5 : 4, out, err));
    RC_TRY(rc_table_add_row(*out, &cells, err));
    cells[0] = rc_cell_text(study->title);
    cells[1] = rc_cell_int(study->n_repeats);
    cells[2] = rc_cell_real(study->noise_ratio);
    cells[3] = rc_cell_real(study->loss_noise_ratio);
    if (has_prediction)
        cells[4] = rc_cell_int(is_exact);
    return RC_OK;
}
