/* cmd_study.c — `recompute study`: the matched comparison of recompute settings, of our trainer
 * or of one that is launched. */
#define _POSIX_C_SOURCE 200809L
#include "cli.h"

#include "base/file.h"
#include "base/num.h"
#include "base/text.h"

#include <recompute/check.h>
#include <recompute/picture.h>
#include <recompute/policy.h>
#include <recompute/read.h>
#include <recompute/study.h>
#include <recompute/train.h>

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { MAX_STUDIES = 8, MAX_SETTINGS = 64 };

static const rc_option options[] = {
    {"--settings", "'S S ...'",
     "what to compare, apart from the control: [core_attn,mlp] full/block/4 full/uniform/1 ...",
     false},
    {"--repeats", "N",
     "rounds at least, each with one run of every setting (6: fewer give no interval)", false},
    {"--target", "PERCENT",
     "go on for settings whose cost is not known to within this to each side (1.5)", false},
    {"--time-limit", "SECONDS",
     "begin no round beyond --repeats that would end later (20; 0, none at all, with --repeats "
     "or --launch)",
     false},
    {"--steps", "N", "steps of a run, warm-up included (5)", false},
    {"--warmup", "N", "steps at the start of a run that are not timed (1)", false},
    {"--out", "FOLDER", "write study.json, study.md, study.html and NAME.csv, NAME.svg there",
     false},
    {"--launch", "COMMAND",
     "compare a trainer of yours: a shell command that holds {overrides}", false},
    {"--style", "STYLE",
     "with --launch, how settings are written: bridge (default) or megatron-lm", false},
    {"--row", "NAME=OVERRIDES", "with --launch, one more row: any change of your own", true},
    {"--steady", "N", "with --launch, iterations after the second that make a pass (5)", false},
    {"--timeout", "SECONDS", "with --launch, the longest a run may take; 0 has no limit (0)",
     false},
};

/* --- progress and stopping */

typedef struct listener {
    bool is_terminal;
    sigset_t signals;
} listener;

static void on_progress(void *user, const rc_study_progress *progress)
{
    const listener *l = user;
    char eta[32] = "?", line[256];
    if (isfinite(progress->seconds_left))
        rc_format_seconds(progress->seconds_left, eta);
    snprintf(line, sizeof line, "%s: run %zu of %zu, %s, ETA %s", progress->name,
             progress->n_done + 1, progress->n_runs, progress->setting, eta);
    if (l->is_terminal)
        fprintf(stderr, "\r\033[K%.*s", 79, line);
    else
        fprintf(stderr, "%s\n", line);
    fflush(stderr);
}

/* SIGINT and SIGTERM are blocked while a study runs, and looked for between steps. */
static bool on_stop(void *user)
{
    const listener *l = user;
    struct timespec none = {0};
    return sigtimedwait(&l->signals, NULL, &none) > 0;
}

static void clear_progress(const listener *l)
{
    if (l->is_terminal)
        fputs("\r\033[K", stderr);
}

/* --- options */

static rc_code number(const rc_args *args, const char *name, int64_t dflt, int64_t least,
                      int64_t *out, rc_error *err)
{
    const char *text = rc_args_find(args, name);
    *out = dflt;
    if (text && (!rc_parse_int(text, out) || *out < least || *out > 1000000))
        return RC_FAIL(err, RC_E_INPUT, RC_NOWHERE,
                       "%s must be a whole number from %" PRId64 " to 1000000", name, least);
    return RC_OK;
}

static rc_code read_rules(const rc_args *args, int64_t limit_seconds, rc_study_rules *out,
                          rc_error *err)
{
    const char *text = rc_args_find(args, "--target");
    double percent = 1.5;
    RC_TRY(number(args, "--repeats", RC_INTERVAL_LEAST, 1, &out->n_least, err));
    if (out->n_least > RC_STUDY_MAX_ROUNDS)
        return RC_FAIL(err, RC_E_INPUT, RC_NOWHERE,
                       "--repeats must be a whole number from 1 to %d", RC_STUDY_MAX_ROUNDS);
    if (text && (!rc_parse_real(text, &percent) || !(percent > 0 && percent <= 100)))
        return RC_FAIL(err, RC_E_INPUT, RC_NOWHERE,
                       "--target must be percent, above 0 and at most 100: 1.5");
    if (rc_args_find(args, "--repeats"))
        limit_seconds = 0;
    RC_TRY(number(args, "--time-limit", limit_seconds, 0, &limit_seconds, err));
    out->target_ratio = percent / 100;
    out->limit_seconds = (double)limit_seconds;
    return RC_OK;
}

/* Longer spins than ours (cli/main.c) while a thread waits for the others count as its work.
 * Who set them wanted them, so only processor time is not believed. LLVM's OpenMP knows no
 * GOMP_SPINCOUNT and spins for long unless it is told to be passive. */
static bool is_spinning(void)
{
    const char *policy = getenv("OMP_WAIT_POLICY");
#ifndef __clang__
    const char *spins = getenv("GOMP_SPINCOUNT");
    int64_t n;
    if (spins)
        return !rc_parse_int(spins, &n) || n > RC_SPINS;
#endif
    return !policy || strcasecmp(policy, "passive") != 0;
}

/* Words apart by white space. */
static rc_code split(const char *text, rc_arena *mem, const char **words, size_t *n,
                     rc_error *err)
{
    *n = 0;
    for (text += strspn(text, " \t\n"); *text; text += strspn(text, " \t\n")) {
        size_t length = strcspn(text, " \t\n");
        if (*n == MAX_SETTINGS)
            return RC_FAIL(err, RC_E_INPUT, RC_NOWHERE, "more than %d words", MAX_SETTINGS);
        RC_TRY(rc_arena_copy(mem, text, length, &words[(*n)++], err));
        text += length;
    }
    return RC_OK;
}

/* --- the studies of one call */

typedef struct studies {
    const rc_args *args;
    rc_arena *mem;
    listener listener;
    rc_study_watch watch;
    rc_study *at[MAX_STUDIES];
    size_t n;
} studies;

/* What is worth comparing in any model of L layers. */
static rc_code default_settings(int64_t layers, rc_arena *mem, const char **settings, size_t *n,
                                rc_error *err)
{
    static const char *const fixed[] = {"[core_attn]", "[layernorm]", "[mlp]",
                                        "[core_attn,layernorm,mlp]"};
    *n = 0;
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
        settings[(*n)++] = fixed[i];
    if (layers > 1)
        RC_TRY(rc_arena_printf(mem, &settings[(*n)++], err, "full/block/%" PRId64, layers / 2));
    RC_TRY(rc_arena_printf(mem, &settings[(*n)++], err, "full/block/%" PRId64, layers));
    settings[(*n)++] = "full/uniform/1";
    if (layers > 1)
        settings[(*n)++] = "full/uniform/2";
    return RC_OK;
}

/* Refuses a row that Megatron would refuse for this model, before anything runs. */
static rc_code check_row(const char *setting_name, const rc_input *inputs, size_t n_inputs,
                         rc_arena *mem, rc_error *err)
{
    char overrides[400];
    const char *words[8];
    size_t n_words;
    rc_setting setting;
    rc_input *all;
    rc_doc *doc;
    rc_config *cfg;
    if (!rc_setting_parse(setting_name, &setting))
        return RC_OK; /* rc_study_make says what is wrong with it */
    RC_TRY(split(rc_setting_overrides(&setting, overrides), mem, words, &n_words, err));
    for (size_t i = 0; i < n_words; i++) { /* the quotes are the shell's */
        size_t n = strlen(words[i]);
        if (words[i][0] == '\'')
            RC_TRY(rc_arena_copy(mem, words[i] + 1, n - 2, &words[i], err));
    }
    RC_TRY(rc_override_read(words, n_words, mem, &doc, err));
    RC_TRY(RC_NEW(mem, &all, n_inputs + 1, err));
    memcpy(all, inputs, n_inputs * sizeof *all);
    all[n_inputs] = (rc_input){doc, RC_FROM_OVERRIDE};
    RC_TRY(rc_config_make(all, n_inputs + 1, mem, &cfg, err));
    rc_error refused = {0};
    if (rc_check_refuse_errors(cfg, mem, &refused) == RC_OK)
        return RC_OK;
    return RC_FAIL(err, refused.code, RC_NOWHERE, "setting %s: %s", setting_name, refused.msg);
}

/* Signals are blocked only while somebody looks for them. Before, they end the wait for a
 * config that comes through a pipe. */
static rc_code measure(studies *all, const rc_study_plan *plan, rc_error *err)
{
    sigset_t before;
    sigprocmask(SIG_BLOCK, &all->listener.signals, &before);
    rc_code code = rc_study_make(plan, &all->watch, all->mem, &all->at[all->n], err);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return code;
}

static rc_code study_model(studies *all, const char *name, const char *title,
                           const rc_input *inputs, size_t n_inputs, rc_error *err)
{
    const char *settings[MAX_SETTINGS];
    const char *asked = rc_args_find(all->args, "--settings");
    rc_study_plan plan = {.name = name,
                          .title = title,
                          .inputs = inputs,
                          .n_inputs = n_inputs,
                          .is_spinning = is_spinning()};
    rc_config *cfg;
    if (all->n == MAX_STUDIES)
        return RC_FAIL(err, RC_E_INPUT, RC_NOWHERE, "at most %d models at a time", MAX_STUDIES);
    RC_TRY(read_rules(all->args, 20, &plan.rules, err));
    RC_TRY(number(all->args, "--steps", 5, 1, &plan.n_steps, err));
    RC_TRY(number(all->args, "--warmup", 1, 0, &plan.n_warmup, err));
    RC_TRY(rc_config_make(inputs, n_inputs, all->mem, &cfg, err));
    RC_TRY(rc_train_refuse_unknown(cfg, err));
    RC_TRY(rc_graph_check_sizes(cfg, err));
    if (asked)
        RC_TRY(split(asked, all->mem, settings, &plan.n_settings, err));
    else
        RC_TRY(default_settings(cfg->num_layers > 0 ? cfg->num_layers : 1, all->mem, settings,
                                &plan.n_settings, err));
    plan.settings = settings;
    for (size_t i = 0; i < plan.n_settings; i++)
        RC_TRY(check_row(settings[i], inputs, n_inputs, all->mem, err));
    RC_TRY(measure(all, &plan, err));
    all->n++;
    return RC_OK;
}

/* The texts of licences that every Debian machine has: real, and known to everyone. */
static const char default_data[] =
    "dataset.data_path=[/usr/share/common-licenses/GPL-2,/usr/share/common-licenses/GPL-3,"
    "/usr/share/common-licenses/LGPL-2.1,/usr/share/common-licenses/MPL-2.0,"
    "/usr/share/common-licenses/Apache-2.0] dataset.split='100,0,0'";

/* Built-in settings below, what was asked for on top. */
static rc_code study_built_in(studies *all, const rc_study_model *model, const rc_input *asked,
                              size_t n_asked, rc_error *err)
{
    const char *words[MAX_SETTINGS], *data[4];
    size_t n_words, n_data;
    rc_input *inputs;
    rc_doc *doc;
    RC_TRY(split(model->settings, all->mem, words, &n_words, err));
    RC_TRY(split(default_data, all->mem, data, &n_data, err));
    for (size_t i = 0; i < n_data; i++)
        words[n_words++] = data[i];
    RC_TRY(rc_override_read(words, n_words, all->mem, &doc, err));
    RC_TRY(RC_NEW(all->mem, &inputs, n_asked + 1, err));
    inputs[0] = (rc_input){doc, RC_FROM_PRESET};
    memcpy(inputs + 1, asked, n_asked * sizeof *inputs);
    return study_model(all, model->name, model->title, inputs, n_asked + 1, err);
}

static const rc_study_model *find_built_in(const char *name)
{
    const rc_study_model *model;
    for (size_t k = 0; (model = rc_study_model_find(k)); k++)
        if (strcmp(model->name, name) == 0)
            return model;
    return NULL;
}

/* Sorts the words: names of built-in models, key=value, files. */
static rc_code study_words(studies *all, rc_error *err)
{
    const rc_args *args = all->args;
    const rc_study_model *built_in[MAX_STUDIES], *model;
    const char **overrides;
    rc_input *inputs;
    size_t n_built_in = 0, n_overrides = 0, n_inputs = 0;
    RC_TRY(RC_NEW(all->mem, &overrides, args->n_words + 1, err));
    RC_TRY(RC_NEW(all->mem, &inputs, args->n_words + 1, err));
    for (size_t i = 0; i < args->n_words; i++) {
        rc_doc *doc;
        if ((model = find_built_in(args->words[i])) && n_built_in < MAX_STUDIES) {
            built_in[n_built_in++] = model;
        } else if (strchr(args->words[i], '=') || args->words[i][0] == '~') {
            overrides[n_overrides++] = args->words[i];
        } else {
            RC_TRY(rc_doc_read(args->words[i], all->mem, &doc, err));
            inputs[n_inputs++] = (rc_input){doc, RC_FROM_FILE};
        }
    }
    bool has_file = n_inputs > 0;
    if (n_overrides > 0) {
        rc_doc *doc;
        RC_TRY(rc_override_read(overrides, n_overrides, all->mem, &doc, err));
        inputs[n_inputs++] = (rc_input){doc, RC_FROM_OVERRIDE};
    }
    if (has_file)
        RC_TRY(study_model(all, "study", "recompute settings of the model", inputs, n_inputs,
                           err));
    for (size_t k = 0; !has_file && n_built_in == 0 && (model = rc_study_model_find(k)); k++)
        RC_TRY(study_built_in(all, model, inputs, n_inputs, err));
    for (size_t i = 0; i < n_built_in; i++)
        RC_TRY(study_built_in(all, built_in[i], inputs, n_inputs, err));
    return RC_OK;
}

/* --- a launched trainer */

static rc_code add_own_rows(const rc_args *args, rc_launch *launch, rc_arena *mem,
                            rc_error *err)
{
    rc_launch_row *rows;
    size_t n = 0;
    while (rc_args_find_nth(args, "--row", n))
        n++;
    RC_TRY(RC_NEW(mem, &rows, launch->n_rows + n, err));
    memcpy(rows, launch->rows, launch->n_rows * sizeof *rows);
    for (size_t i = 0; i < n; i++) {
        const char *text = rc_args_find_nth(args, "--row", i), *equals = strchr(text, '=');
        if (!equals || equals == text)
            return RC_FAIL(err, RC_E_INPUT, RC_NOWHERE,
                           "--row needs a name and overrides: --row 'offload=model.x=true'");
        rc_launch_row *row = &rows[launch->n_rows++];
        RC_TRY(rc_arena_copy(mem, text, (size_t)(equals - text), &row->setting, err));
        row->overrides = equals + 1;
    }
    launch->rows = rows;
    return RC_OK;
}

static rc_code study_launched(studies *all, rc_error *err)
{
    const rc_args *args = all->args;
    const char *settings[MAX_SETTINGS], *style = rc_args_find(args, "--style");
    const char *asked = rc_args_find(args, "--settings"), *folder = rc_args_find(args, "--out");
    bool is_megatron = style && strcmp(style, "megatron-lm") == 0;
    size_t n_settings = 0;
    int64_t timeout;
    rc_launch_row *rows;
    rc_launch launch = {.name = "study",
                        .title = "recompute settings of a launched trainer",
                        .command = rc_args_find(args, "--launch"),
                        .folder = folder ? folder : "study"};
    if (style && !is_megatron && strcmp(style, "bridge") != 0)
        return RC_FAIL(err, RC_E_INPUT, RC_NOWHERE, "--style is bridge or megatron-lm");
    if (args->n_words > 0)
        return RC_FAIL(err, RC_E_INPUT, RC_NOWHERE,
                       "with --launch the config is the command's own; nothing else is read");
    if (!asked && !rc_args_find(args, "--row"))
        return RC_FAIL(
            err, RC_E_INPUT, RC_NOWHERE,
            "--launch needs --settings '[core_attn] full/block/4' or --row: only you "
            "know which labels act in that model (`recompute list labels` has them all)");
    RC_TRY(read_rules(args, 0, &launch.rules, err));
    RC_TRY(number(args, "--steady", 5, 1, &launch.n_steady, err));
    RC_TRY(number(args, "--timeout", 0, 0, &timeout, err));
    launch.timeout_seconds = (double)timeout;
    if (asked)
        RC_TRY(split(asked, all->mem, settings, &n_settings, err));
    RC_TRY(rc_launch_rows_make(settings, n_settings,
                               is_megatron ? RC_LAUNCH_MEGATRON_LM : RC_LAUNCH_BRIDGE, all->mem,
                               &rows, &launch.n_rows, err));
    launch.rows = rows;
    RC_TRY(add_own_rows(args, &launch, all->mem, err));
    RC_TRY(rc_study_launch(&launch, &all->watch, all->mem, &all->at[0], err));
    all->n = 1;
    return RC_OK;
}

/* --- the evidence */

static rc_code make_report(const studies *all, bool is_brief, rc_report *report, rc_error *err)
{
    *report = (rc_report){.n = 0};
    for (size_t i = 0; i < all->n; i++) {
        rc_table *facts, *rows;
        RC_TRY(rc_study_facts(all->at[i], is_brief, all->mem, &facts, err));
        RC_TRY(rc_study_table(all->at[i], is_brief, all->mem, &rows, err));
        rc_report_add(report, facts, true);
        rc_report_add(report, rows, false);
    }
    return RC_OK;
}

static rc_code make_chart(const rc_study *study, rc_arena *mem, rc_chart *chart, rc_error *err)
{
    rc_table *table;
    RC_TRY(rc_study_chart(study, mem, &table, err));
    *chart = (rc_chart){.kind = RC_CHART_POINTS,
                        .table = table,
                        .x = RC_STUDY_CHART_STEP,
                        .label = RC_STUDY_CHART_SETTING,
                        .series = {RC_STUDY_CHART_PEAK},
                        .n_series = 1};
    return RC_OK;
}

/* One file of the evidence: a report in a format, a picture, or the page with all of it. */
typedef struct evidence {
    const rc_report *report;
    rc_format format;
    const rc_chart *charts;
    size_t n_charts;
} evidence;

static rc_code write_evidence(const evidence *what, FILE *to, rc_error *err)
{
    if (what->report && what->n_charts)
        return rc_page_write("recompute study", what->report, what->charts, what->n_charts, to,
                             err);
    if (what->report)
        return rc_report_write(what->report, what->format, to, err);
    return rc_chart_write(what->charts, to, err);
}

static rc_code write_file(const char *folder, const char *name, const char *ending,
                          const evidence *what, rc_error *err)
{
    char path[4096];
    rc_out_file file;
    snprintf(path, sizeof path, "%s/%s%s", folder, name, ending);
    RC_TRY(rc_out_file_open(path, &file, err));
    rc_code code = write_evidence(what, file.to, err);
    RC_TRY(rc_out_file_end(&file, code, err));
    fprintf(stderr, "wrote %s\n", path);
    return RC_OK;
}

static rc_code write_all(const studies *all, const char *folder, rc_error *err)
{
    rc_report full, brief;
    rc_chart charts[MAX_STUDIES];
    RC_TRY(rc_path_make_directory(folder, err));
    RC_TRY(make_report(all, false, &full, err));
    RC_TRY(make_report(all, true, &brief, err));
    for (size_t i = 0; i < all->n; i++)
        RC_TRY(make_chart(all->at[i], all->mem, &charts[i], err));
    RC_TRY(
        write_file(folder, "study", ".json", &(evidence){&full, RC_FORMAT_JSON, NULL, 0}, err));
    RC_TRY(write_file(folder, "study", ".md", &(evidence){&brief, RC_FORMAT_MD, NULL, 0}, err));
    RC_TRY(write_file(folder, "study", ".html",
                      &(evidence){&brief, RC_FORMAT_HTML, charts, all->n}, err));
    for (size_t i = 0; i < all->n; i++) {
        rc_report rows = {.at = {full.at[2 * i + 1]}, .n = 1};
        RC_TRY(write_file(folder, all->at[i]->name, ".csv",
                          &(evidence){&rows, RC_FORMAT_CSV, NULL, 0}, err));
        RC_TRY(write_file(folder, all->at[i]->name, ".svg",
                          &(evidence){NULL, RC_FORMAT_TEXT, &charts[i], 1}, err));
    }
    return RC_OK;
}

static rc_code run_studies(studies *all, rc_error *err)
{
    return rc_args_find(all->args, "--launch") ? study_launched(all, err)
                                               : study_words(all, err);
}

static rc_code run(const rc_args *args, rc_arena *mem, int *status, rc_error *err)
{
    studies all = {.args = args, .mem = mem};
    rc_report report;
    const char *folder = rc_args_find(args, "--out");
    bool is_for_people = args->format != RC_FORMAT_JSON && args->format != RC_FORMAT_CSV;
    (void)status;
    sigemptyset(&all.listener.signals);
    sigaddset(&all.listener.signals, SIGINT);
    sigaddset(&all.listener.signals, SIGTERM);
    all.listener.is_terminal = isatty(STDERR_FILENO) == 1;
    all.watch = (rc_study_watch){on_progress, on_stop, &all.listener};
    rc_code code = run_studies(&all, err);
    clear_progress(&all.listener);
    RC_TRY(code);
    RC_TRY(make_report(&all, is_for_people, &report, err));
    RC_TRY(rc_report_write(&report, args->format, stdout, err));
    if (folder || rc_args_find(args, "--launch"))
        return write_all(&all, folder ? folder : "study", err);
    return RC_OK;
}

const rc_command rc_command_study = {
    .name = "study",
    .usage = "recompute study [MODEL|CONFIG.yaml] [key=value ...] [options]\n"
             "       recompute study --launch 'COMMAND {overrides}' --settings '...' [options]",
    .about =
        "Compares recompute settings: same model, data and seed, one change a row. A round runs the\n"
        "control [], every setting in an order that changes, and the control again; a cost is to the\n"
        "control of the same round. Rounds go on until every cost is known to within --target or\n"
        "--time-limit has passed. For every setting: the peak predicted and measured, the FLOPs\n"
        "recomputed, the time of a step, the interval in which its cost lies (95 % confidence) by wall\n"
        "and by processor time, whether the losses are those of the control bit for bit, and a\n"
        "verdict that the interval carries. Where the machine was busy, the page says so.\n"
        "\n"
        "  recompute study                                  two small models on licence texts\n"
        "  recompute study llama model.num_layers=12        one of them, larger\n"
        "  recompute study dataset.data_path=[book.txt]     on a text of yours\n"
        "  recompute study my.yaml --settings '[mlp] full/block/4' --out results\n"
        "\n"
        "With --launch it drives a trainer of yours, run by the shell once per setting and round:\n"
        "\n"
        "  recompute study --launch 'torchrun pretrain.py --config c.yaml {overrides}' \\\n"
        "      --settings '[core_attn] [moe_act] full/uniform/1' --timeout 1800 --out study\n"
        "\n"
        "Peaks per rank, step times and what went wrong are read from each run's log (Megatron's\n"
        "lines and similar ones). A run passes when it finished the optimizer's first step and --steady\n"
        "iterations after the second, with finite losses; otherwise the row says in which stage it\n"
        "failed. Interrupted, the same command goes on where it stopped.\n"
        "\n"
        "exit status: 0; 2 bad input, or a control that failed; 3 the machine.",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .has_threads = true,
    .run = run,
};
