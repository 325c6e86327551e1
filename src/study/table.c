/* table.c — judged studies as tables: every column for programs, the telling ones for people. */
#include <recompute/study.h>

#include <math.h>
#include <string.h>

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
    TIME_LOW,
    TIME_HIGH,
    TIME_WORDS,
    CPU,
    CPU_RATIO,
    CPU_LOW,
    CPU_HIGH,
    CPU_WORDS,
    ROUNDS,
    ITERATIONS,
    LOSS,
    SAME_LOSS,
    KIND,
    SAYS,
    N_COLUMNS
};

/* The verdict says what was saved and what it cost; its kind is for programs. People get an interval
 * in one column. */
typedef enum audience { ALL, PROGRAMS, PEOPLE } audience;

typedef struct study_column {
    rc_column column;
    audience audience;
} study_column;

static const study_column columns[N_COLUMNS] = {
    [SETTING] = {{"setting", "Setting", RC_UNIT_TEXT}, ALL},
    [PREDICTED] = {{"predicted_peak_bytes", "Predicted", RC_UNIT_BYTES}, ALL},
    [PEAK] = {{"peak_bytes", "Measured", RC_UNIT_BYTES}, ALL},
    [RANK] = {{"peak_rank", "Rank", RC_UNIT_COUNT}, ALL},
    [SAVED] = {{"saved_ratio", "Saved", RC_UNIT_RATIO}, PROGRAMS},
    [REPLAY] = {{"recomputed_flops", "Recomputed", RC_UNIT_FLOPS}, ALL},
    [STEP] = {{"step_seconds", "Step", RC_UNIT_SECONDS}, ALL},
    [SPREAD] = {{"step_spread_ratio", "+-", RC_UNIT_RATIO}, PROGRAMS},
    [TIME] = {{"time_ratio", "Time", RC_UNIT_RATIO}, PROGRAMS},
    [TIME_LOW] = {{"time_low_ratio", "Time, from", RC_UNIT_RATIO}, PROGRAMS},
    [TIME_HIGH] = {{"time_high_ratio", "Time, to", RC_UNIT_RATIO}, PROGRAMS},
    [TIME_WORDS] = {{"time", "Time", RC_UNIT_TEXT}, PEOPLE},
    [CPU] = {{"step_cpu_seconds", "CPU", RC_UNIT_SECONDS}, PROGRAMS},
    [CPU_RATIO] = {{"cpu_ratio", "CPU", RC_UNIT_RATIO}, PROGRAMS},
    [CPU_LOW] = {{"cpu_low_ratio", "CPU, from", RC_UNIT_RATIO}, PROGRAMS},
    [CPU_HIGH] = {{"cpu_high_ratio", "CPU, to", RC_UNIT_RATIO}, PROGRAMS},
    [CPU_WORDS] = {{"cpu", "CPU time", RC_UNIT_TEXT}, PEOPLE},
    [ROUNDS] = {{"n_rounds", "Rounds", RC_UNIT_COUNT}, PROGRAMS},
    [ITERATIONS] = {{"n_iterations", "Steps", RC_UNIT_COUNT}, PROGRAMS},
    [LOSS] = {{"loss", "Loss", RC_UNIT_REAL}, PROGRAMS},
    [SAME_LOSS] = {{"is_same_loss", "Same loss", RC_UNIT_BOOL}, ALL},
    [KIND] = {{"verdict", "Kind", RC_UNIT_TEXT}, PROGRAMS},
    [SAYS] = {{"says", "Verdict", RC_UNIT_TEXT}, ALL},
};

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

/* "+4.1 to +5.3 %"; the measured ratio alone where there are too few rounds for an interval. */
static rc_code interval_words(const rc_interval *ratio, rc_arena *mem, rc_cell *cell,
                              rc_error *err)
{
    const char *words;
    *cell = (rc_cell){.is_null = true};
    if (isnan(ratio->center))
        return RC_OK;
    if (isnan(ratio->low))
        RC_TRY(rc_arena_printf(mem, &words, err, "%+.1f %%?", (ratio->center - 1) * 100));
    else
        RC_TRY(rc_arena_printf(mem, &words, err, "%+.1f to %+.1f %%", (ratio->low - 1) * 100,
                               (ratio->high - 1) * 100));
    *cell = rc_cell_text(words);
    return RC_OK;
}

static rc_code fill(const rc_study_row *row, rc_arena *mem, rc_cell *cells, rc_error *err)
{
    const rc_spread *step = &row->step_seconds[RC_CLOCK_WALL];
    const rc_interval *time = &row->ratio[RC_CLOCK_WALL], *cpu = &row->ratio[RC_CLOCK_CPU];
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
    cells[TIME] = known_real(time->center);
    cells[TIME_LOW] = known_real(time->low);
    cells[TIME_HIGH] = known_real(time->high);
    cells[CPU] = known_real(row->step_seconds[RC_CLOCK_CPU].median);
    cells[CPU_RATIO] = known_real(cpu->center);
    cells[CPU_LOW] = known_real(cpu->low);
    cells[CPU_HIGH] = known_real(cpu->high);
    cells[ROUNDS] = rc_cell_int((int64_t)step->n);
    cells[ITERATIONS] = known_int(row->n_iterations);
    cells[LOSS] = known_real(row->loss);
    cells[SAME_LOSS] = rc_cell_int(row->is_same_loss);
    cells[SAME_LOSS].is_null = !row->is_pass;
    cells[KIND] = rc_cell_text(rc_verdict_name(row->verdict));
    cells[SAYS] = rc_cell_text(row->says);
    RC_TRY(interval_words(time, mem, &cells[TIME_WORDS], err));
    return interval_words(cpu, mem, &cells[CPU_WORDS], err);
}

/* People are spared a column that no row knows (a launched trainer's FLOPs) and times that say nothing. */
static bool is_shown(const rc_study *study, int column, bool is_brief, const rc_cell *cells)
{
    bool is_known = !is_brief;
    if (column == CPU_WORDS && !study->is_cpu_fair)
        return false;
    for (size_t i = 0; i < study->n_rows; i++)
        is_known = is_known || !cells[i * N_COLUMNS + (size_t)column].is_null;
    return is_known && columns[column].audience != (is_brief ? PROGRAMS : PEOPLE);
}

rc_code rc_study_table(const rc_study *study, bool is_brief, rc_arena *mem, rc_table **out,
                       rc_error *err)
{
    rc_column *chosen;
    rc_cell *all; /* [n_rows][N_COLUMNS] */
    int from[N_COLUMNS];
    size_t n = 0;
    RC_TRY(RC_NEW(mem, &chosen, N_COLUMNS, err));
    RC_TRY(RC_NEW(mem, &all, study->n_rows * N_COLUMNS, err));
    for (size_t i = 0; i < study->n_rows; i++)
        RC_TRY(fill(&study->rows[i], mem, all + i * N_COLUMNS, err));
    for (int i = 0; i < N_COLUMNS; i++) {
        if (!is_shown(study, i, is_brief, all))
            continue;
        chosen[n] = columns[i].column;
        from[n++] = i;
    }
    RC_TRY(rc_table_make(mem, study->name, study->title, chosen, n, out, err));
    for (size_t i = 0; i < study->n_rows; i++) {
        rc_cell *cells;
        RC_TRY(rc_table_add_row(*out, &cells, err));
        for (size_t k = 0; k < n; k++)
            cells[k] = all[i * N_COLUMNS + (size_t)from[k]];
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
        if (!row->is_pass || row->peak_bytes < 0 ||
            isnan(row->step_seconds[RC_CLOCK_WALL].median))
            continue;
        RC_TRY(rc_table_add_row(*out, &cells, err));
        cells[RC_STUDY_CHART_SETTING] = rc_cell_text(row->setting);
        cells[RC_STUDY_CHART_STEP] = rc_cell_real(row->step_seconds[RC_CLOCK_WALL].median);
        cells[RC_STUDY_CHART_PEAK] = rc_cell_int(row->peak_bytes);
    }
    return RC_OK;
}

/* --- facts of a whole study */

enum {
    STUDY,
    N_ROUNDS,
    ENDED,
    CONFIDENCE,
    TARGET,
    CLOCK,
    MACHINE,
    IS_BUSY,
    WAITED,
    OTHERS,
    NOISE,
    LOSS_NOISE,
    IS_EXACT,
    BESIDE,
    N_FACTS
};

static const study_column facts[N_FACTS] = {
    [STUDY] = {{"study", "Study", RC_UNIT_TEXT}, ALL},
    [N_ROUNDS] = {{"n_rounds", "Rounds", RC_UNIT_COUNT}, ALL},
    [ENDED] = {{"ended_by", "Ended by", RC_UNIT_TEXT}, PROGRAMS},
    [CONFIDENCE] = {{"confidence_ratio", "Confidence of intervals", RC_UNIT_RATIO}, ALL},
    [TARGET] = {{"target_ratio", "Narrow is, to each side", RC_UNIT_RATIO}, PROGRAMS},
    [CLOCK] = {{"decided_by", "Costs read from", RC_UNIT_TEXT}, ALL},
    [MACHINE] = {{"machine", "Machine", RC_UNIT_TEXT}, ALL},
    [IS_BUSY] = {{"is_machine_busy", "Machine busy", RC_UNIT_BOOL}, PROGRAMS},
    [WAITED] = {{"waited_ratio", "Threads waited for a core", RC_UNIT_RATIO}, PROGRAMS},
    [OTHERS] = {{"other_cores", "Cores used by other programs", RC_UNIT_REAL}, PROGRAMS},
    [NOISE] = {{"noise_ratio", "Noise of step times", RC_UNIT_RATIO}, ALL},
    [LOSS_NOISE] = {{"loss_noise_ratio", "Noise of losses", RC_UNIT_RATIO}, ALL},
    [IS_EXACT] = {{"is_prediction_exact", "Predicted peak = measured peak, every row",
                   RC_UNIT_BOOL},
                  ALL},
    [BESIDE] = {{"beside_bytes", "Taken beside the account, at most", RC_UNIT_BYTES}, ALL},
};

/* NULL where no row has a prediction. */
static rc_cell exactness(const rc_study *study)
{
    rc_cell cell = {.is_null = true, .i = 1};
    for (size_t i = 0; i < study->n_rows; i++) {
        const rc_study_row *row = &study->rows[i];
        if (!row->is_pass || row->predicted_bytes < 0)
            continue;
        cell.is_null = false;
        cell.i = cell.i && row->predicted_bytes == row->peak_bytes;
    }
    return cell;
}

static void fill_facts(const rc_study *study, rc_cell cells[N_FACTS])
{
    const rc_study_load *load = &study->load;
    cells[STUDY] = rc_cell_text(study->title);
    cells[N_ROUNDS] = rc_cell_int((int64_t)study->n_rounds);
    cells[ENDED] = rc_cell_text(rc_study_end_name(study->end));
    cells[CONFIDENCE] = rc_cell_real(RC_STUDY_CONFIDENCE);
    cells[TARGET] = rc_cell_real(study->rules.target_ratio);
    cells[CLOCK] = rc_cell_text(study->clock == RC_CLOCK_CPU ? "CPU time" : "wall time");
    cells[MACHINE] = rc_cell_text(study->machine);
    cells[IS_BUSY] = rc_cell_int(study->is_busy);
    cells[WAITED] = known_real(load->waited / (load->waited + load->own));
    cells[OTHERS] = known_real(load->other / load->seconds);
    cells[NOISE] = rc_cell_real(study->noise_ratio);
    cells[LOSS_NOISE] = rc_cell_real(study->loss_noise_ratio);
    cells[IS_EXACT] = exactness(study);
    cells[BESIDE] = rc_cell_int(study->beside_bytes);
    cells[BESIDE].is_null = study->beside_bytes == 0;
}

rc_code rc_study_facts(const rc_study *study, bool is_brief, rc_arena *mem, rc_table **out,
                       rc_error *err)
{
    rc_column *chosen;
    rc_cell all[N_FACTS], *cells;
    const char *name;
    size_t n = 0;
    RC_TRY(RC_NEW(mem, &chosen, N_FACTS, err));
    fill_facts(study, all);
    for (size_t i = 0; i < N_FACTS; i++) {
        bool is_shown_fact = !is_brief || facts[i].audience != PROGRAMS;
        if (!is_shown_fact || ((i == IS_EXACT || i == BESIDE) && all[i].is_null))
            continue;
        all[n] = all[i];
        chosen[n++] = facts[i].column;
    }
    RC_TRY(rc_arena_printf(mem, &name, err, "%s_facts", study->name));
    RC_TRY(rc_table_make(mem, name, NULL, chosen, n, out, err));
    RC_TRY(rc_table_add_row(*out, &cells, err));
    memcpy(cells, all, n * sizeof *cells);
    return RC_OK;
}
