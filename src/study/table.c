/* table.c — a judged study as a table. */
#include <recompute/study.h>

#include <math.h>

/* ORDER study_columns: include/recompute/study.h */
static const rc_column columns[RC_STUDY_N_COLUMNS] = {
    [RC_STUDY_SETTING] = {"setting", "Setting", RC_UNIT_TEXT},
    [RC_STUDY_PREDICTED] = {"predicted_peak_bytes", "Predicted", RC_UNIT_BYTES},
    [RC_STUDY_PEAK] = {"peak_bytes", "Measured", RC_UNIT_BYTES},
    [RC_STUDY_SAVED] = {"saved_ratio", "Saved", RC_UNIT_RATIO},
    [RC_STUDY_REPLAY] = {"recomputed_flops", "Recomputed", RC_UNIT_FLOPS},
    [RC_STUDY_STEP] = {"step_seconds", "Step", RC_UNIT_SECONDS},
    [RC_STUDY_STEP_LOW] = {"step_quartile1_seconds", "25 %", RC_UNIT_SECONDS},
    [RC_STUDY_STEP_HIGH] = {"step_quartile3_seconds", "75 %", RC_UNIT_SECONDS},
    [RC_STUDY_TIME] = {"time_ratio", "Time", RC_UNIT_RATIO},
    [RC_STUDY_LOSS] = {"loss", "Loss", RC_UNIT_REAL},
    [RC_STUDY_SAME_LOSS] = {"is_same_loss", "Same", RC_UNIT_BOOL},
    [RC_STUDY_KIND] = {"verdict", "Kind", RC_UNIT_TEXT},
    [RC_STUDY_SAYS] = {"says", "Verdict", RC_UNIT_TEXT},
};

static rc_cell known_int(int64_t value)
{
    return value < 0 ? (rc_cell){.is_null = true} : rc_cell_int(value);
}

static rc_cell known_real(double value)
{
    return isnan(value) ? (rc_cell){.is_null = true} : rc_cell_real(value);
}

rc_code rc_study_table(const rc_study *study, const char *name, rc_arena *mem, rc_table **out,
                       rc_error *err)
{
    RC_TRY(rc_table_make(mem, name, study->title, columns, RC_STUDY_N_COLUMNS, out, err));
    for (size_t i = 0; i < study->n_rows; i++) {
        const rc_study_row *row = &study->rows[i];
        rc_cell *cells;
        RC_TRY(rc_table_add_row(*out, &cells, err));
        cells[RC_STUDY_SETTING] = rc_cell_text(row->setting);
        cells[RC_STUDY_PREDICTED] = known_int(row->predicted_bytes);
        cells[RC_STUDY_PEAK] = known_int(row->peak_bytes);
        cells[RC_STUDY_SAVED] = known_real(row->saved_ratio);
        cells[RC_STUDY_REPLAY] = known_int(row->replay_flops);
        cells[RC_STUDY_STEP] = known_real(row->step_seconds.median);
        cells[RC_STUDY_STEP_LOW] = known_real(row->step_seconds.low);
        cells[RC_STUDY_STEP_HIGH] = known_real(row->step_seconds.high);
        cells[RC_STUDY_TIME] = known_real(row->time_ratio);
        cells[RC_STUDY_LOSS] = known_real(row->loss);
        if (row->is_pass)
            cells[RC_STUDY_SAME_LOSS] = rc_cell_int(row->is_same_loss);
        cells[RC_STUDY_KIND] = rc_cell_text(rc_verdict_name(row->verdict));
        cells[RC_STUDY_SAYS] = rc_cell_text(row->says);
    }
    return RC_OK;
}
