/* cmd_snapshot.c — `recompute snapshot`: what a CUDA memory snapshot says. */
#include "cli.h"

#include <recompute/snapshot.h>
#include <recompute/timeline.h>

#include "base/file.h"
#include "base/num.h"

#include <string.h>

typedef struct job {
    const rc_args *args;
    const char *paths[2];
    size_t n_paths;
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

static rc_code run_compare(const job *j, rc_error *err)
{
    rc_snapshot *snapshots[2];
    rc_report report = {0};
    for (int i = 0; i < 2; i++)
        RC_TRY(rc_snapshot_make(j->paths[i], NULL, NULL, j->mem, &snapshots[i], NULL, err));
    RC_TRY(rc_snapshot_compare(snapshots[0], snapshots[1], &j->view, j->mem, &report, err));
    return rc_report_write(&report, j->args->format, stdout, err);
}

/* ---- timeline ---- */

/* The layers that hold anything in one of the runs, in the order of the labels. */
static rc_code make_layers(const rc_snapshot_timeline *const *from, size_t n, rc_arena *mem,
                           rc_timeline *out, rc_error *err)
{
    size_t used[RC_SNAPSHOT_LABEL_COUNT];
    const char **names;
    RC_TRY(RC_NEW(mem, &names, RC_SNAPSHOT_LABEL_COUNT, err));
    /* what was there before lies at the bottom */
    for (size_t k = RC_SNAPSHOT_LABEL_COUNT; k-- > 0;) {
        bool is_used = false;
        for (size_t r = 0; r < n; r++)
            for (size_t c = 0; c < from[r]->n_columns && !is_used; c++)
                is_used = from[r]->bytes[k * from[r]->n_columns + c] != 0;
        if (is_used) {
            names[out->n_layers] = rc_snapshot_label_name((int)k);
            used[out->n_layers++] = k;
        }
    }
    out->layers = names;
    for (size_t r = 0; r < n; r++) {
        int64_t *bytes;
        size_t n_columns = from[r]->n_columns;
        RC_TRY(RC_NEW(mem, &bytes, n_columns * out->n_layers, err));
        for (size_t k = 0; k < out->n_layers; k++)
            memcpy(bytes + k * n_columns, from[r]->bytes + used[k] * n_columns,
                   n_columns * sizeof *bytes);
        out->runs[r].bytes = bytes;
    }
    return RC_OK;
}

static rc_code write_picture(const char *path, const rc_timeline *timeline,
                             rc_code (*write)(const rc_timeline *, FILE *, rc_error *),
                             rc_error *err)
{
    rc_out_file file;
    RC_TRY(rc_out_file_open(path, &file, err));
    rc_code code = write(timeline, file.to, err);
    if (code == RC_OK)
        return rc_out_file_commit(&file, err);
    rc_out_file_abort(&file);
    return code;
}

static rc_code make_timelines(const job *j, const rc_snapshot_timeline **out, rc_error *err)
{
    bool by_events = rc_args_find(j->args, "--events") != NULL;
    for (size_t r = 0; r < j->n_paths; r++) {
        rc_snapshot_timeline *timeline;
        RC_TRY(rc_snapshot_timeline_make(j->paths[r], by_events, j->view.device, j->mem, &timeline,
                                         err));
        out[r] = timeline;
        if (out[r]->is_time != out[0]->is_time)
            return RC_FAIL(err, RC_E_INPUT, (rc_where){.file = j->paths[r]},
                           "only one of the two files has times; add --events to draw both by "
                           "event");
    }
    return RC_OK;
}

static rc_code draw_timelines(const job *j, const rc_snapshot_timeline *const *from, rc_error *err)
{
    const char *html = rc_args_find(j->args, "--html"), *svg = rc_args_find(j->args, "--svg");
    rc_timeline timeline = {.title = "Memory requested, by label",
                            .is_time = from[0]->is_time,
                            .line_name = "reserved",
                            .n_runs = j->n_paths};
    for (size_t r = 0; r < j->n_paths; r++) {
        char peak[32];
        rc_timeline_run *run = &timeline.runs[r];
        run->column_width = from[r]->column_width;
        run->n_columns = from[r]->n_columns;
        run->line_bytes = from[r]->reserved_bytes;
        run->peak_bytes = from[r]->peak_bytes;
        RC_TRY(rc_arena_printf(j->mem, &run->name, err, "%s, device %d, peak %s", j->paths[r],
                               from[r]->device, rc_format_bytes(run->peak_bytes, peak)));
    }
    RC_TRY(make_layers(from, j->n_paths, j->mem, &timeline, err));
    if (svg)
        RC_TRY(write_picture(svg, &timeline, rc_timeline_write_svg, err));
    return html ? write_picture(html, &timeline, rc_timeline_write_html, err) : RC_OK;
}

static rc_code print_timelines(const job *j, const rc_snapshot_timeline *const *from,
                               rc_error *err)
{
    static const char *const names[] = {"timeline", "timeline_b"};
    rc_report report = {0};
    for (size_t r = 0; r < j->n_paths; r++) {
        rc_table *table;
        RC_TRY(rc_snapshot_timeline_table(from[r], j->mem, &table, err));
        table->name = names[r];
        rc_report_add(&report, table, false);
    }
    return rc_report_write(&report, j->args->format, stdout, err);
}

static rc_code print_drawn(const job *j, const rc_snapshot_timeline *const *from, rc_error *err)
{
    static const rc_column columns[] = {{"path", "file", RC_UNIT_TEXT},
                                        {"device", NULL, RC_UNIT_COUNT},
                                        {"peak_requested_bytes", "peak", RC_UNIT_BYTES},
                                        {"columns", NULL, RC_UNIT_COUNT},
                                        {"html", NULL, RC_UNIT_TEXT},
                                        {"svg", NULL, RC_UNIT_TEXT}};
    rc_report report = {0};
    rc_table *table;
    rc_cell *row;
    RC_TRY(rc_table_make(j->mem, "drawn", NULL, columns, 6, &table, err));
    for (size_t r = 0; r < j->n_paths; r++) {
        RC_TRY(rc_table_add_row(table, &row, err));
        row[0] = rc_cell_text(j->paths[r]);
        row[1] = rc_cell_int(from[r]->device);
        row[2] = rc_cell_int(from[r]->peak_bytes);
        row[3] = rc_cell_int((int64_t)from[r]->n_columns);
        row[4] = rc_cell_text(rc_args_find(j->args, "--html"));
        row[5] = rc_cell_text(rc_args_find(j->args, "--svg"));
    }
    rc_report_add(&report, table, false);
    return rc_report_write(&report, j->args->format, stdout, err);
}

static rc_code run_timeline(const job *j, rc_error *err)
{
    const rc_snapshot_timeline *timelines[2];
    RC_TRY(make_timelines(j, timelines, err));
    if (!rc_args_find(j->args, "--html") && !rc_args_find(j->args, "--svg"))
        return print_timelines(j, timelines, err);
    RC_TRY(draw_timelines(j, timelines, err));
    return print_drawn(j, timelines, err);
}

/* ---- the actions ---- */

static const struct action {
    const char *name;
    size_t n_words;              /* between the name and the files */
    size_t n_files, n_files_most;
    rc_code (*run)(const job *j, rc_error *err);
} actions[] = {
    {"overview", 0, 1, 1, run_overview}, {"peak", 0, 1, 1, run_peak},
    {"at", 1, 1, 1, run_at},             {"compare", 0, 2, 2, run_compare},
    {"timeline", 0, 1, 2, run_timeline},
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
        size_t n_before = 1 + action->n_words;
        if (args->n_words < n_before + action->n_files ||
            args->n_words > n_before + action->n_files_most)
            return RC_FAIL(err, RC_E_INPUT, RC_NOWHERE,
                           "snapshot %s takes %s%zu file(s); see `recompute snapshot --help`",
                           action->name, action->n_words ? "a moment and " : "", action->n_files);
        j.n_paths = args->n_words - n_before;
        for (size_t k = 0; k < j.n_paths; k++)
            j.paths[k] = args->words[n_before + k];
        RC_TRY(read_view(args, &j.view, err));
        return action->run(&j, err);
    }
    return RC_FAIL(err, RC_E_INPUT, RC_NOWHERE,
                   "name what to show: overview, peak, at, compare, timeline, steps, regions or "
                   "export; see `recompute snapshot --help`");
}

static const rc_option options[] = {
    {"--device", "N", "this device only", false},
    {"--html", "FILE", "timeline: write a page that zooms and opens offline", false},
    {"--svg", "FILE", "timeline: write a picture", false},
    {"--events", NULL, "timeline: columns of events although the file has times", false},
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
