/* cmd_snapshot.c — `recompute snapshot`: what a CUDA memory snapshot says. */
#include "cli.h"

#include <recompute/snapshot.h>
#include <recompute/timeline.h>

#include "base/file.h"
#include "base/num.h"

#include <stdlib.h>
#include <string.h>

typedef struct job {
    const rc_args *args;
    const char *paths[2];
    size_t n_paths;
    const char *html_to, *svg_to; /* a word that ends so is where the timeline goes */
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
        return RC_FAIL(
            err, RC_E_INPUT, RC_NOWHERE,
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

typedef struct layer {
    size_t label;
    int64_t steady_bytes, high_bytes;
} layer;

/* What never goes away lies at the bottom, so that what comes and goes does not lift it. */
static int by_steadiness(const void *a, const void *b)
{
    const layer *x = a, *y = b;
    if (x->steady_bytes != y->steady_bytes)
        return x->steady_bytes > y->steady_bytes ? -1 : 1;
    return x->label > y->label ? -1 : x->label < y->label;
}

/* Least of the later half (the first steps still build the model), and most of all. */
static layer measure_layer(const rc_snapshot_timeline *const *from, size_t n, size_t label)
{
    layer out = {.label = label};
    for (size_t r = 0; r < n; r++) {
        size_t n_columns = from[r]->n_columns;
        const int64_t *bytes = from[r]->bytes + label * n_columns;
        int64_t least = bytes[n_columns - 1];
        for (size_t c = 0; c < n_columns; c++) {
            out.high_bytes = bytes[c] > out.high_bytes ? bytes[c] : out.high_bytes;
            least = c >= n_columns / 2 && bytes[c] < least ? bytes[c] : least;
        }
        out.steady_bytes += least;
    }
    return out;
}

/* The layers that hold anything in one of the runs. */
static rc_code make_layers(const rc_snapshot_timeline *const *from, size_t n, rc_arena *mem,
                           rc_timeline *out, rc_error *err)
{
    layer used[RC_SNAPSHOT_LABEL_COUNT];
    const char **names;
    RC_TRY(RC_NEW(mem, &names, RC_SNAPSHOT_LABEL_COUNT, err));
    for (size_t k = 0; k < RC_SNAPSHOT_LABEL_COUNT; k++) {
        used[out->n_layers] = measure_layer(from, n, k);
        out->n_layers += used[out->n_layers].high_bytes > 0;
    }
    qsort(used, out->n_layers, sizeof *used, by_steadiness);
    for (size_t k = 0; k < out->n_layers; k++)
        names[k] = rc_snapshot_label_name((int)used[k].label);
    out->layers = names;
    for (size_t r = 0; r < n; r++) {
        int64_t *bytes;
        size_t n_columns = from[r]->n_columns;
        RC_TRY(RC_NEW(mem, &bytes, n_columns * out->n_layers, err));
        for (size_t k = 0; k < out->n_layers; k++)
            memcpy(bytes + k * n_columns, from[r]->bytes + used[k].label * n_columns,
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
    return rc_out_file_end(&file, code, err);
}

static rc_code make_timelines(const job *j, const rc_snapshot_timeline **out, rc_error *err)
{
    bool by_events = rc_args_find(j->args, "--events") != NULL;
    for (size_t r = 0; r < j->n_paths; r++) {
        rc_snapshot_timeline *timeline;
        RC_TRY(rc_snapshot_timeline_make(j->paths[r], by_events, j->view.device, j->mem,
                                         &timeline, err));
        out[r] = timeline;
        if (out[r]->is_time != out[0]->is_time)
            return RC_FAIL(err, RC_E_INPUT, (rc_where){.file = j->paths[r]},
                           "only one of the two files has times; add --events to draw both by "
                           "event");
    }
    return RC_OK;
}

static rc_code make_picture(const job *j, const rc_snapshot_timeline *const *from,
                            rc_timeline *timeline, rc_error *err)
{
    *timeline = (rc_timeline){.title = "Memory requested, by label",
                              .is_time = from[0]->is_time,
                              .line_name = "reserved",
                              .n_runs = j->n_paths};
    for (size_t r = 0; r < j->n_paths; r++) {
        char peak[32];
        rc_timeline_run *run = &timeline->runs[r];
        run->column_width = from[r]->column_width;
        run->n_columns = from[r]->n_columns;
        run->line_bytes = from[r]->reserved_bytes;
        run->peak_bytes = from[r]->peak_bytes;
        RC_TRY(rc_arena_printf(j->mem, &run->name, err, "%s, device %d, peak %s", j->paths[r],
                               from[r]->device, rc_format_bytes(run->peak_bytes, peak)));
    }
    return make_layers(from, j->n_paths, j->mem, timeline, err);
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
                                        {"columns", NULL, RC_UNIT_COUNT}};
    rc_table *table;
    rc_cell *row;
    RC_TRY(rc_table_make(j->mem, "drawn", NULL, columns, 4, &table, err));
    for (size_t r = 0; r < j->n_paths; r++) {
        RC_TRY(rc_table_add_row(table, &row, err));
        row[0] = rc_cell_text(j->paths[r]);
        row[1] = rc_cell_int(from[r]->device);
        row[2] = rc_cell_int(from[r]->peak_bytes);
        row[3] = rc_cell_int((int64_t)from[r]->n_columns);
    }
    bool is_json = j->args->format == RC_FORMAT_JSON;
    return rc_table_write(table, is_json ? RC_FORMAT_JSON : RC_FORMAT_TEXT, stdout, err);
}

static rc_code run_timeline(const job *j, rc_error *err)
{
    const rc_snapshot_timeline *timelines[2] = {NULL, NULL};
    bool is_html = rc_args_find(j->args, "--html") != NULL;
    bool is_svg = rc_args_find(j->args, "--svg") != NULL;
    rc_timeline picture;
    RC_TRY(make_timelines(j, timelines, err));
    if (!j->html_to && !j->svg_to && !is_html && !is_svg)
        return print_timelines(j, timelines, err);
    RC_TRY(make_picture(j, timelines, &picture, err));
    if (j->svg_to)
        RC_TRY(write_picture(j->svg_to, &picture, rc_timeline_write_svg, err));
    if (j->html_to)
        RC_TRY(write_picture(j->html_to, &picture, rc_timeline_write_html, err));
    if (j->svg_to || j->html_to)
        return print_drawn(j, timelines, err);
    return is_svg ? rc_timeline_write_svg(&picture, stdout, err)
                  : rc_timeline_write_html(&picture, stdout, err);
}

static rc_code run_steps(const job *j, rc_error *err)
{
    rc_report report = {0};
    RC_TRY(rc_snapshot_steps(j->paths[0], &j->view, j->mem, &report, err));
    return rc_report_write(&report, j->args->format, stdout, err);
}

static rc_code run_regions(const job *j, rc_error *err)
{
    rc_report report = {0};
    RC_TRY(rc_snapshot_regions(j->paths[0], &j->view, j->mem, &report, err));
    return rc_report_write(&report, j->args->format, stdout, err);
}

static rc_code run_export(const job *j, rc_error *err)
{
    bool is_csv = rc_args_find(j->args, "--csv") != NULL;
    bool is_sqlite = rc_args_find(j->args, "--sqlite") != NULL;
    rc_report report = {0};
    if (is_csv == is_sqlite)
        return RC_FAIL(err, RC_E_INPUT, RC_NOWHERE,
                       "write snapshot export FILE --csv FOLDER, or --sqlite DATABASE");
    /* the target may also stand first; it need not be there yet, the snapshot must */
    bool is_swapped = !rc_path_exists(j->paths[0]) && rc_path_exists(j->paths[1]);
    const char *from = j->paths[is_swapped], *to = j->paths[!is_swapped];
    RC_TRY(is_csv ? rc_snapshot_export_csv(from, to, j->mem, &report, err)
                  : rc_snapshot_export_sqlite(from, to, j->mem, &report, err));
    bool is_json = j->args->format == RC_FORMAT_JSON;
    return rc_report_write(&report, is_json ? RC_FORMAT_JSON : RC_FORMAT_TEXT, stdout, err);
}

/* ---- the actions ---- */

static const struct action {
    const char *name, *takes;
    size_t n_words; /* between the name and the files */
    size_t n_files, n_files_most;
    rc_code (*run)(const job *j, rc_error *err);
} actions[] = {
    {"overview", "one FILE", 0, 1, 1, run_overview},
    {"peak", "one FILE", 0, 1, 1, run_peak},
    {"at", "a TIME and one FILE", 1, 1, 1, run_at},
    {"compare", "two files, A and B", 0, 2, 2, run_compare},
    {"timeline", "one FILE or two", 0, 1, 2, run_timeline},
    {"steps", "one FILE", 0, 1, 1, run_steps},
    {"regions", "one FILE", 0, 1, 1, run_regions},
    {"export", "one FILE and where to write", 0, 2, 2, run_export},
};

static rc_code read_view(const rc_args *args, rc_snapshot_view *view, rc_error *err)
{
    const char *device = rc_args_find(args, "--device"), *top = rc_args_find(args, "--top");
    int64_t number = -1;
    *view = (rc_snapshot_view){.device = -1, .is_brief = args->format != RC_FORMAT_JSON};
    if (device && (!rc_parse_int(device, &number) || number < 0 || number > 1023))
        return RC_FAIL(err, RC_E_INPUT, RC_NOWHERE,
                       "--device is %s; it must be a device number", device);
    view->device = (int)number;
    view->n_top = view->is_brief ? 15 : 0;
    if (top && (!rc_parse_int(top, &view->n_top) || view->n_top < 0))
        return RC_FAIL(err, RC_E_INPUT, RC_NOWHERE, "--top is %s; it must be a number of rows",
                       top);
    return RC_OK;
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), n_end = strlen(end);
    return n > n_end && strcmp(text + n - n_end, end) == 0;
}

static rc_code read_paths(const rc_args *args, const struct action *action, job *j,
                          rc_error *err)
{
    bool is_timeline = action->run == run_timeline;
    size_t n = 0;
    for (size_t i = 1 + action->n_words; i < args->n_words; i++) {
        const char *word = args->words[i];
        if (is_timeline && ends_with(word, ".html"))
            j->html_to = word;
        else if (is_timeline && ends_with(word, ".svg"))
            j->svg_to = word;
        else if (n++ < 2)
            j->paths[n - 1] = word;
    }
    j->n_paths = n;
    if (n < action->n_files || n > action->n_files_most)
        return RC_FAIL(err, RC_E_INPUT, RC_NOWHERE,
                       "snapshot %s takes %s; see `recompute snapshot --help`", action->name,
                       action->takes);
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
        RC_TRY(read_paths(args, action, &j, err));
        RC_TRY(read_view(args, &j.view, err));
        return action->run(&j, err);
    }
    return RC_FAIL(
        err, RC_E_INPUT, RC_NOWHERE,
        "name what to show: overview, peak, at, compare, timeline, steps, regions or "
        "export; see `recompute snapshot --help`");
}

static const rc_option options[] = {
    {"--device", "N", "this device only", false},
    {"--top", "N", "rows of each list of holders; 0 all (text: 15, JSON: all)", false},
    {"--events", NULL, "timeline: columns of events although the file has times", false},
    {"--svg", NULL, "timeline: a picture (--html: a page that zooms, opens offline)", false},
    {"--sqlite", NULL, "export: one SQLite database (--csv: a folder of CSV files)", false},
};

const rc_command rc_command_snapshot = {
    .name = "snapshot",
    .usage = "recompute snapshot ACTION FILE [FILE] [options]",
    .about =
        "Reads a CUDA memory snapshot of PyTorch 2.0 or later (plain, .gz or .zst, - is standard\n"
        "input) and says what held the memory. Nothing in the file is executed: it is a pickle, and\n"
        "opcodes that could run code are refused.\n"
        "\n"
        "  overview FILE            peaks and who holds them, pools, fragmentation, OOM events\n"
        "  peak FILE                the peak alone: by label, phase and source, largest allocations\n"
        "  at TIME FILE             the same at another moment: #EVENT, microseconds of Unix time,\n"
        "                           a time since the start (2.5s, 300ms), or end\n"
        "  compare A B              which labels, phases, files and sources make the peaks differ\n"
        "  timeline A [B] [OUT.html] [OUT.svg]\n"
        "                           memory over time by label; one axis for two runs\n"
        "  steps FILE               each training step: its peak and what it left behind\n"
        "  regions FILE             the same for regions marked with record_function\n"
        "  export FILE --csv FOLDER | --sqlite DATABASE\n"
        "                           events, stacks, frames, segments, blocks, annotations\n"
        "\n"
        "Requested bytes are what the program asked for, exact from the trace; rounded bytes are\n"
        "what the allocator set aside. A label is what the memory is for (the recompute modules of\n"
        "Megatron where there is one), a phase when it was allocated: build, forward, recompute,\n"
        "backward, optimizer. A source is the innermost frame of the program itself.\n"
        "\n"
        "  recompute snapshot overview BASE_oom_rank_0.pickle\n"
        "  recompute snapshot compare before.pickle after.pickle\n"
        "  recompute snapshot timeline run.pickle.zst run.html",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .run = run,
};
