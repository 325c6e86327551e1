/* launch.c — a study of someone's own trainer: a command line per row, what it did from its log.
 *
 * takes  a command with {overrides}, rows, how many rounds, a folder
 * gives  a judged rc_study; in the folder a log per run and state.jsonl
 *
 * Run k of the folder is row k % n_slots of round k / n_slots, in whatever order a round takes its rows.
 * A row that failed is not run again. What a run measured is always read from its log, finished now or
 * before an interruption, and so are the rounds' decisions: a study that goes on decides as before.
 */
#include <recompute/label.h>
#include <recompute/log.h>
#include <recompute/policy.h>
#include <recompute/study.h>

#include "base/num.h"
#include "base/text.h"
#include "study/machine.h"
#include "study/process.h"
#include "study/state.h"

#include <math.h>
#include <string.h>

enum { N_WARM_ITERATIONS = 2 }; /* the first two start libraries, allocate and compile */

typedef struct launched {
    const rc_launch *launch;
    const rc_study_watch *watch;
    rc_arena *mem;
    rc_study_state state;
    rc_study *study;
    size_t n_slots;      /* rows and the last control */
    double seconds_done; /* of all runs, those before an interruption too */
    size_t n_done;
    rc_machine_look before; /* the first run of this session */
} launched;

/* --- what is run */

/* The slot behind the rows is the control again. */
static size_t row_of(const launched *l, size_t slot)
{
    return slot < l->launch->n_rows ? slot : 0;
}

static const char needle[] = "{overrides}";

static rc_code command_of(const launched *l, size_t slot, const char **out, rc_error *err)
{
    const char *at = l->launch->command, *found;
    const rc_launch_row *row = &l->launch->rows[row_of(l, slot)];
    rc_text text = {.mem = l->mem};
    while ((found = strstr(at, needle))) {
        RC_TRY(rc_text_add(&text, at, (size_t)(found - at), err));
        RC_TRY(rc_text_add(&text, row->overrides, strlen(row->overrides), err));
        at = found + strlen(needle);
    }
    RC_TRY(rc_text_add(&text, at, strlen(at), err));
    *out = text.at;
    return RC_OK;
}

static rc_code log_path_of(const launched *l, size_t run, const char **out, rc_error *err)
{
    return rc_arena_printf(l->mem, out, err, "%s/run-%03zu.log", l->launch->folder, run);
}

/* --- what its log says */

static void take_largest_rank(const rc_log *log, rc_study_row *row)
{
    for (size_t i = 0; i < log->n_ranks; i++) {
        const rc_log_rank *rank = &log->ranks[i];
        if (rank->max_allocated_bytes <= row->peak_bytes)
            continue;
        row->peak_bytes = rank->max_allocated_bytes;
        row->peak_rank = rank->rank;
    }
}

static rc_code say_oom(const rc_log *log, rc_arena *mem, const char **out, rc_error *err)
{
    const rc_oom *oom = &log->ooms[0];
    char bytes[32], rank[32] = "", asked[64] = "";
    rc_job_phase phase = oom->phase == RC_JOB_UNKNOWN ? log->last_phase : oom->phase;
    if (oom->rank >= 0)
        snprintf(rank, sizeof rank, " on rank %d", oom->rank);
    if (oom->requested_bytes > 0)
        snprintf(asked, sizeof asked, ", asking for %s",
                 rc_format_bytes(oom->requested_bytes, bytes));
    return rc_arena_printf(mem, out, err, "out of memory in %s%s%s", rc_job_phase_name(phase),
                           rank, asked);
}

/* Why a run is no pass, or NULL. Evidence first, the exit status last. */
static rc_code failure_of(const launched *l, const rc_log *log, const rc_process_result *result,
                          const char **out, rc_error *err)
{
    const rc_log_train *train = &log->train;
    long long n_needed = N_WARM_ITERATIONS + l->launch->n_steady;
    long long n_reached = train->last_iteration > 0 ? train->last_iteration : 0;
    bool has_phase = log->last_phase != RC_JOB_UNKNOWN && log->last_phase != RC_JOB_NONE;
    char limit[32];
    *out = NULL;
    if (log->n_ooms > 0)
        return say_oom(log, l->mem, out, err);
    if (train->nan > 0 || (train->n_lines > 0 && !isfinite(train->loss)))
        return rc_arena_printf(l->mem, out, err, "a loss that is not finite, by iteration %lld",
                               (long long)train->last_iteration);
    if (train->last_iteration >= n_needed &&
        (result->end == RC_PROCESS_TIMEOUT || result->status == 0))
        return RC_OK;
    if (result->end == RC_PROCESS_TIMEOUT)
        return rc_arena_printf(
            l->mem, out, err, "stopped after %s at iteration %lld; %lld make a pass",
            rc_format_seconds(l->launch->timeout_seconds, limit), n_reached, n_needed);
    if (result->status != 0)
        return rc_arena_printf(l->mem, out, err, "exit status %d after iteration %lld%s%s",
                               result->status, n_reached, has_phase ? ", in " : "",
                               has_phase ? rc_job_phase_name(log->last_phase) : "");
    return rc_arena_printf(
        l->mem, out, err,
        "the log has %lld iterations; %lld make a pass (two to warm up, %lld "
        "steady)",
        n_reached, n_needed, (long long)l->launch->n_steady);
}

/* The median steady iteration; of processor time only the whole run's mean is known. */
static rc_code keep_times(rc_arena *tmp, const rc_log_train *train,
                          const rc_process_result *result, rc_study_sample *sample,
                          rc_error *err)
{
    double *times;
    size_t n = 0;
    RC_TRY(RC_NEW(tmp, &times, train->n_steps, err));
    for (size_t i = 0; i < train->n_steps; i++)
        if (train->steps[i].iteration > N_WARM_ITERATIONS && train->steps[i].ms > 0)
            times[n++] = train->steps[i].ms / 1e3;
    sample->seconds[RC_CLOCK_WALL] = rc_spread_of(times, n).median;
    sample->seconds[RC_CLOCK_CPU] = result->cpu_seconds / (double)train->last_iteration;
    return RC_OK;
}

static rc_code keep_losses(rc_arena *mem, const rc_log_train *train, rc_study_row *row,
                           rc_error *err)
{
    double *losses;
    RC_TRY(RC_NEW(mem, &losses, train->n_steps, err));
    for (size_t i = 0; i < train->n_steps; i++)
        losses[i] = train->steps[i].loss;
    row->losses = losses;
    row->n_losses = train->n_steps;
    row->loss = train->loss;
    return RC_OK;
}

/* What the log of a finished run says, into its row; `log` lives in scratch. */
static rc_code take_log(launched *l, size_t slot, const rc_log *log,
                        const rc_process_result *result, rc_error *err)
{
    rc_study_row *row = &l->study->rows[slot];
    const char *failure;
    RC_TRY(failure_of(l, log, result, &failure, err));
    take_largest_rank(log, row);
    if (log->train.last_iteration < row->n_iterations)
        row->n_iterations = log->train.last_iteration;
    if (failure) {
        row->is_pass = false;
        row->failure = failure;
        return RC_OK;
    }
    if (!row->losses)
        RC_TRY(keep_losses(l->mem, &log->train, row, err));
    return keep_times(log->mem, &log->train, result, &row->rounds[l->study->n_rounds - 1], err);
}

static rc_code take_run(launched *l, size_t run, size_t slot, rc_error *err)
{
    const char *path;
    rc_log *log;
    rc_arena *tmp = rc_arena_open();
    if (!tmp)
        return RC_FAIL(err, RC_E_MEMORY, RC_NOWHERE, "the host is out of memory");
    rc_code code = log_path_of(l, run, &path, err);
    if (code == RC_OK)
        code = rc_log_make(tmp, &log, err);
    if (code == RC_OK)
        code = rc_log_read(path, log, err);
    if (code == RC_OK)
        code = take_log(l, slot, log, &l->state.runs[run].result, err);
    rc_arena_close(tmp);
    return code;
}

/* --- the runs, in order */

static void make_rows(launched *l)
{
    for (size_t slot = 0; slot < l->n_slots; slot++)
        l->study->rows[slot] =
            (rc_study_row){.setting = l->launch->rows[row_of(l, slot)].setting,
                           .is_control = row_of(l, slot) == 0,
                           .is_pass = true,
                           .predicted_bytes = RC_STUDY_UNKNOWN,
                           .peak_bytes = RC_STUDY_UNKNOWN,
                           .peak_rank = RC_STUDY_UNKNOWN,
                           .replay_flops = RC_STUDY_UNKNOWN,
                           .n_iterations = INT64_MAX,
                           .loss = (double)NAN};
}

static void tell(const launched *l, size_t slot, size_t n_left_here)
{
    int64_t n_rounds_left = l->launch->rules.n_least - (int64_t)l->study->n_rounds;
    size_t n_left = n_left_here + (n_rounds_left > 0 ? (size_t)n_rounds_left * l->n_slots : 0);
    if (!l->watch || !l->watch->progress)
        return;
    double each = l->n_done ? l->seconds_done / (double)l->n_done : (double)NAN;
    rc_study_progress progress = {.name = l->study->name,
                                  .setting = l->launch->rows[row_of(l, slot)].setting,
                                  .n_done = l->n_done,
                                  .n_runs = l->n_done + n_left,
                                  .seconds_left = each * (double)n_left};
    l->watch->progress(l->watch->user, &progress);
}

static rc_code run_one(launched *l, size_t run, size_t slot, rc_error *err)
{
    const char *command, *path;
    rc_process_result result;
    RC_TRY(command_of(l, slot, &command, err));
    RC_TRY(log_path_of(l, run, &path, err));
    RC_TRY(rc_process_run(command, path, l->launch->timeout_seconds, &result, err));
    if (result.end == RC_PROCESS_STOPPED)
        return RC_FAIL(err, RC_E_STOPPED, RC_NOWHERE,
                       "stopped as asked after %zu runs; the same command goes on from there "
                       "(state in %s)",
                       l->n_done, l->state.path);
    return rc_study_state_add(&l->state, run, &result, err);
}

/* Rows in `order`, those of a round that an earlier session began included. */
static rc_code run_round(launched *l, const size_t *order, size_t n, rc_error *err)
{
    rc_study *study = l->study;
    RC_TRY(rc_study_add_round(study, l->mem, err));
    for (size_t i = 0; i < n && study->rows[0].is_pass; i++) {
        size_t slot = order[i], run = (study->n_rounds - 1) * l->n_slots + slot;
        study->rows[slot].rounds[study->n_rounds - 1].at =
            n > 1 ? (double)i / (double)(n - 1) : 0;
        if (!l->state.runs[run].is_done) {
            tell(l, slot, n - i);
            RC_TRY(run_one(l, run, slot, err));
        }
        l->seconds_done += l->state.runs[run].result.seconds;
        l->n_done++;
        RC_TRY(take_run(l, run, slot, err));
    }
    return RC_OK;
}

/* A control that failed ends the study at once; rc_study_judge then says why. */
static rc_code run_all(launched *l, rc_error *err)
{
    size_t *order, n;
    RC_TRY(RC_NEW(l->mem, &order, l->n_slots, err));
    rc_machine_look_now(&l->before);
    for (;;) {
        RC_TRY(rc_study_next_round(l->study, l->seconds_done, l->mem, order, &n, err));
        if (n == 0 || !l->study->rows[0].is_pass)
            break;
        RC_TRY(run_round(l, order, n, err));
    }
    rc_machine_load_since(&l->before, true, &l->study->load);
    return RC_OK;
}

rc_code rc_study_launch(const rc_launch *launch, const rc_study_watch *watch, rc_arena *mem,
                        rc_study **out, rc_error *err)
{
    launched l = {.launch = launch, .watch = watch, .mem = mem, .n_slots = launch->n_rows + 1};
    if (launch->n_rows < 1 || launch->rules.n_least < 1)
        return RC_FAIL(err, RC_E_INPUT, RC_NOWHERE, "a study needs a control and a round");
    if (!strstr(launch->command, needle))
        return RC_FAIL(
            err, RC_E_INPUT, RC_NOWHERE,
            "the command has no %s; write it where each run's settings belong, as in "
            "'torchrun train.py %s'",
            needle, needle);
    RC_TRY(RC_NEW(mem, &l.study, 1, err));
    RC_TRY(RC_NEW(mem, &l.study->rows, l.n_slots, err));
    l.study->name = launch->name;
    l.study->title = launch->title;
    l.study->n_rows = l.n_slots;
    l.study->rules = launch->rules;
    make_rows(&l);
    RC_TRY(rc_study_state_open(launch, l.n_slots * RC_STUDY_MAX_ROUNDS, mem, &l.state, err));
    RC_TRY(run_all(&l, err));
    RC_TRY(rc_study_judge(l.study, mem, err));
    *out = l.study;
    return RC_OK;
}
