/* cmd_snapshot.c — `recompute snapshot`: what a CUDA memory snapshot says. */
#include "cli.h"

#include <recompute/snapshot.h>

#include "base/num.h"

#include <string.h>

typedef struct job {
    const rc_args *args;
    const char *paths[2];
    rc_snapshot_view view;
    rc_arena *mem;
} job;

static rc_code run_overview(const job *j, rc_error *err)
{
    rc_snapshot *snapshot;
    rc_report report = {0};
    RC_TRY(rc_snapshot_make(j->paths[0], NULL, NULL, j->mem, &snapshot, NULL, err));
    RC_TRY(rc_snapshot_overview(snapshot, &j->view, &report, err));
    return rc_report_write(&report, j->args->format, stdout, err);
}

static rc_code run_peak(const job *j, rc_error *err)
{
    rc_snapshot *snapshot;
    rc_report report = {0};
    RC_TRY(rc_snapshot_make(j->paths[0], NULL, NULL, j->mem, &snapshot, NULL, err));
    RC_TRY(rc_snapshot_live_report(snapshot, RC_LIVE_PEAK, &j->view, &report, err));
    return rc_report_write(&report, j->args->format, stdout, err);
}

static rc_code run_at(const job *j, rc_error *err)
{
    rc_snapshot *snapshot;
    rc_report report = {0};
    rc_moment moment;
    if (!rc_moment_parse(j->args->words[1], &moment))
        return RC_FAIL(err, RC_E_INPUT, RC_NOWHERE,
                       "%s is no moment; write #EVENT, a Unix time in microseconds, a time since "
                       "the start such as 2.5s or 300ms, or end",
                       j->args->words[1]);
    RC_TRY(rc_snapshot_make(j->paths[0], &moment, NULL, j->mem, &snapshot, NULL, err));
    RC_TRY(rc_snapshot_live_report(snapshot, RC_LIVE_MOMENT, &j->view, &report, err));
    return rc_report_write(&report, j->args->format, stdout, err);
}

static const struct action {
    const char *name;
    size_t n_words; /* after the name, with the files */
    size_t n_files; /* at the end */
    rc_code (*run)(const job *j, rc_error *err);
} actions[] = {
    {"overview", 1, 1, run_overview},
    {"peak", 1, 1, run_peak},
    {"at", 2, 1, run_at},
};

static rc_code read_view(const rc_args *args, rc_snapshot_view *view, rc_error *err)
{
    const char *device = rc_args_find(args, "--device"), *top = rc_args_find(args, "--top");
    int64_t number = -1;
    *view = (rc_snapshot_view){.device = -1, .is_brief = args->format != RC_FORMAT_JSON};
    if (device && (!rc_parse_int(device, &number) || number < 0 || number > 1023))
        return RC_FAIL(err, RC_E_INPUT, RC_NOWHERE, "--device is %s; it must be a device number",
                       device);
    view->device = (int)number;
    view->n_top = view->is_brief ? 15 : 0;
    if (top && (!rc_parse_int(top, &view->n_top) || view->n_top < 0))
        return RC_FAIL(err, RC_E_INPUT, RC_NOWHERE, "--top is %s; it must be a number of rows",
                       top);
    return RC_OK;
}

static rc_code run(const rc_args *args, rc_arena *mem, int *status, rc_error *err)
{
    (void)status;
    job j = {.args = args, .mem = mem};
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++) {
        const struct action *action = &actions[i];
        if (args->n_words == 0 || strcmp(args->words[0], action->name) != 0)
            continue;
        if (args->n_words != 1 + action->n_words)
            return RC_FAIL(err, RC_E_INPUT, RC_NOWHERE,
                           "snapshot %s takes %zu word(s) after its name; see `recompute snapshot "
                           "--help`",
                           action->name, action->n_words);
        for (size_t k = 0; k < action->n_files; k++)
            j.paths[k] = args->words[args->n_words - action->n_files + k];
        RC_TRY(read_view(args, &j.view, err));
        return action->run(&j, err);
    }
    return RC_FAIL(err, RC_E_INPUT, RC_NOWHERE,
                   "name what to show: overview, peak, at, compare, timeline, steps, regions or "
                   "export; see `recompute snapshot --help`");
}

static const rc_option options[] = {
    {"--device", "N", "this device only", false},
    {"--top", "N", "rows of each list of holders; 0 all (text: 15, JSON: all)", false},
};

const rc_command rc_command_snapshot = {
    .name = "snapshot",
    .usage = "recompute snapshot overview|peak|at TIME|... FILE [options]",
    .about =
        "Reads a CUDA memory snapshot of PyTorch 2.0 and later without running it.",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .run = run,
};
