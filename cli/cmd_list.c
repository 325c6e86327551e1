/* cmd_list.c — `recompute list`: prints the tables the program runs on. */
#include "cli.h"

#include <recompute/check.h>
#include <recompute/config.h>
#include <recompute/diagnose.h>
#include <recompute/estimate.h>
#include <recompute/graph.h>
#include <recompute/label.h>
#include <recompute/op.h>
#include <recompute/study.h>
#include <recompute/train.h>

#include "base/text.h"

#include <string.h>

/* --- one function per list: a row of the .def file is a row of the table */

static rc_code list_fields(rc_arena *mem, rc_table **out, rc_error *err)
{
    static const char *const types[] = {"int", "bytes", "real", "bool", "str", "list", "any"};
    const size_t n_types = sizeof types / sizeof *types;
    static const rc_column columns[] = {
        {"field", NULL, RC_UNIT_TEXT}, {"key", NULL, RC_UNIT_TEXT},
        {"type", NULL, RC_UNIT_TEXT},  {"default", NULL, RC_UNIT_TEXT},
        {"flag", NULL, RC_UNIT_TEXT},  {"help", NULL, RC_UNIT_TEXT}};
    RC_TRY(rc_table_make(mem, "fields", "Settings", columns, 6, out, err));
    for (int i = 0; i < RC_FIELD_COUNT; i++) {
        const rc_field_facts *field = rc_field_find((rc_field)i);
        rc_cell *row;
        RC_TRY(rc_table_add_row(*out, &row, err));
        row[0] = rc_cell_text(field->name);
        row[1] = rc_cell_text(field->key);
        row[2] = rc_cell_text(field->type < n_types ? types[field->type] : NULL);
        row[3] = rc_cell_text(field->dflt);
        row[4] = rc_cell_text(field->flag);
        row[5] = rc_cell_text(field->help);
    }
    return RC_OK;
}

/* Two columns of text, which most lists are. */
static rc_code add_pair(rc_table *table, const char *name, const char *about, rc_error *err)
{
    rc_cell *row;
    RC_TRY(rc_table_add_row(table, &row, err));
    row[0] = rc_cell_text(name);
    row[1] = rc_cell_text(about);
    return RC_OK;
}

static rc_code list_commands(rc_arena *mem, rc_table **out, rc_error *err)
{
    static const rc_column columns[] = {{"command", NULL, RC_UNIT_TEXT},
                                        {"about", NULL, RC_UNIT_TEXT}};
    RC_TRY(rc_table_make(mem, "commands", "Commands", columns, 2, out, err));
#define RC_COMMAND(name, summary) RC_TRY(add_pair(*out, #name, summary, err));
#include "defs/commands.def"
#undef RC_COMMAND
    return RC_OK;
}

static rc_code list_formats(rc_arena *mem, rc_table **out, rc_error *err)
{
    static const rc_column columns[] = {{"format", NULL, RC_UNIT_TEXT},
                                        {"prints", NULL, RC_UNIT_TEXT}};
    RC_TRY(rc_table_make(mem, "formats", "Output formats", columns, 2, out, err));
    for (int i = 0; i < RC_FORMAT_COUNT; i++)
        RC_TRY(add_pair(*out, rc_format_name((rc_format)i), rc_format_help((rc_format)i), err));
    return RC_OK;
}

static rc_code list_ops(rc_arena *mem, rc_table **out, rc_error *err)
{
    static const rc_column columns[] = {{"op", NULL, RC_UNIT_TEXT},
                                        {"formula", NULL, RC_UNIT_TEXT}};
    RC_TRY(rc_table_make(mem, "ops", "Operations", columns, 2, out, err));
#define RC_OP(name, help) RC_TRY(add_pair(*out, #name, help, err));
#include "defs/ops.def"
#undef RC_OP
    return RC_OK;
}

static rc_code list_labels(rc_arena *mem, rc_table **out, rc_error *err)
{
    static const rc_column columns[] = {{"label", NULL, RC_UNIT_TEXT},
                                        {"mechanism", NULL, RC_UNIT_TEXT},
                                        {"since", NULL, RC_UNIT_TEXT},
                                        {"needs", NULL, RC_UNIT_TEXT},
                                        {"region", NULL, RC_UNIT_TEXT}};
    RC_TRY(rc_table_make(mem, "labels", "Recompute labels", columns, 5, out, err));
    for (int i = 0; i < RC_LABEL_COUNT; i++) {
        const rc_label_facts *label = rc_label_find_facts((rc_label)i);
        rc_cell *row;
        RC_TRY(rc_table_add_row(*out, &row, err));
        row[0] = rc_cell_text(label->name);
        row[1] = rc_cell_text(label->mechanism == RC_MECHANISM_DISCARD ? "output discard"
                                                                       : "checkpoint");
        row[2] = rc_cell_text(rc_release_name(label->since));
        row[3] = rc_cell_text(rc_label_need_words(label->needs));
        row[4] = rc_cell_text(label->help);
    }
    return RC_OK;
}

static rc_code list_models(rc_arena *mem, rc_table **out, rc_error *err)
{
    static const rc_column columns[] = {{"model", NULL, RC_UNIT_TEXT},
                                        {"family", NULL, RC_UNIT_TEXT},
                                        {"source", NULL, RC_UNIT_TEXT},
                                        {"settings", NULL, RC_UNIT_TEXT}};
    size_t n;
    const rc_preset *presets = rc_preset_list(&n);
    RC_TRY(rc_table_make(mem, "models", "Built-in models: --model NAME", columns, 4, out, err));
    for (size_t i = 0; i < n; i++) {
        rc_cell *row;
        RC_TRY(rc_table_add_row(*out, &row, err));
        row[0] = rc_cell_text(presets[i].name);
        row[1] = rc_cell_text(presets[i].family);
        row[2] = rc_cell_text(presets[i].source);
        row[3] = rc_cell_text(presets[i].settings);
    }
    return RC_OK;
}

static rc_code list_readers(rc_arena *mem, rc_table **out, rc_error *err)
{
    static const rc_column columns[] = {{"reader", NULL, RC_UNIT_TEXT},
                                        {"extensions", NULL, RC_UNIT_TEXT},
                                        {"reads", NULL, RC_UNIT_TEXT}};
    rc_cell *row;
    RC_TRY(rc_table_make(mem, "readers", "Formats of configurations", columns, 3, out, err));
#define RC_READER(name, extensions, read, help)                                                \
    RC_TRY(rc_table_add_row(*out, &row, err));                                                 \
    row[0] = rc_cell_text(#name);                                                              \
    row[1] = rc_cell_text(extensions);                                                         \
    row[2] = rc_cell_text(help);
#include "defs/readers.def"
#undef RC_READER
    return RC_OK;
}

static rc_code list_backends(rc_arena *mem, rc_table **out, rc_error *err)
{
    static const rc_column columns[] = {{"backend", NULL, RC_UNIT_TEXT},
                                        {"about", "computes with", RC_UNIT_TEXT}};
    RC_TRY(rc_table_make(mem, "backends", "Backends", columns, 2, out, err));
#define RC_BACKEND(name, help) RC_TRY(add_pair(*out, #name, help, err));
#include "defs/backends.def"
#undef RC_BACKEND
    return RC_OK;
}

static rc_code list_studies(rc_arena *mem, rc_table **out, rc_error *err)
{
    static const rc_column columns[] = {{"model", NULL, RC_UNIT_TEXT},
                                        {"settings", NULL, RC_UNIT_TEXT}};
    const rc_study_model *model;
    RC_TRY(rc_table_make(mem, "studies", "Models of `recompute study`", columns, 2, out, err));
    for (size_t k = 0; (model = rc_study_model_find(k)); k++)
        RC_TRY(add_pair(*out, model->name, model->settings, err));
    return RC_OK;
}

static rc_code list_log_lines(rc_arena *mem, rc_table **out, rc_error *err)
{
    static const rc_column columns[] = {{"pattern", "a line that says", RC_UNIT_TEXT},
                                        {"meaning", "means", RC_UNIT_TEXT}};
    RC_TRY(rc_table_make(mem, "log_lines", "Lines of a log that `recompute diagnose` knows",
                         columns, 2, out, err));
#define RC_LOG_PATTERN(kind, handler, needle, also, meaning)                                   \
    RC_TRY(add_pair(*out, needle, meaning, err));
#include "defs/log_patterns.def"
#undef RC_LOG_PATTERN
    return RC_OK;
}

/* --- the lists */

typedef struct list_row {
    const char *name, *about;
    rc_code (*make)(rc_arena *mem, rc_table **out, rc_error *err);
} list_row;

static const list_row lists[] = {
    {"allowances", "what a rank takes beside what its allocator hands out",
     rc_allowances_table},
    {"backends", "who computes", list_backends},
    {"commands", "what the program can do", list_commands},
    {"components", "what the memory of a rank of a Megatron job is made of",
     rc_components_table},
    {"diagnoses", "the decision table of `recompute diagnose`", rc_diagnosis_table},
    {"efficiencies", "what of a GPU's peak a kernel reaches", rc_efficiencies_table},
    {"fates", "what training does with every setting of Bridge and Megatron-LM",
     rc_fates_table},
    {"fields", "every setting: its key, type, default, Megatron-LM flag", list_fields},
    {"formats", "how a report can be printed", list_formats},
    {"gpus", "GPUs for `recompute estimate --gpu`, and the room they leave a job",
     rc_gpus_table},
    {"labels", "every recompute label and what it discards", list_labels},
    {"lacks", "what the graph of each profile builds, and what it refuses",
     rc_graph_lacks_table},
    {"layouts", "what the buffers of a parameter hold, by profile and precision",
     rc_graph_layouts_table},
    {"models", "every built-in model for --model", list_models},
    {"log_lines", "what `recompute diagnose` looks for in a log", list_log_lines},
    {"ops", "every operation a graph can hold", list_ops},
    {"optimizers", "how many moments an optimizer of Megatron keeps",
     rc_graph_optimizers_table},
    {"readers", "the formats of a configuration", list_readers},
    {"studies", "the models that `recompute study` compares by itself", list_studies},
    {"symbols", "the symbols that shapes are written in", rc_graph_symbols_table},
    {"rules", "every rule of `recompute check`, in the order it would fire", rc_rule_table},
};
enum { N_LISTS = sizeof lists / sizeof *lists };

static rc_code list_lists(rc_arena *mem, rc_table **out, rc_error *err)
{
    static const rc_column columns[] = {{"list", NULL, RC_UNIT_TEXT},
                                        {"about", NULL, RC_UNIT_TEXT}};
    RC_TRY(rc_table_make(mem, "lists", "Lists: recompute list NAME", columns, 2, out, err));
    for (size_t i = 0; i < N_LISTS; i++)
        RC_TRY(add_pair(*out, lists[i].name, lists[i].about, err));
    return RC_OK;
}

static rc_code unknown_list(const char *typed, rc_error *err)
{
    const char *names[N_LISTS];
    char safe[80];
    for (size_t i = 0; i < N_LISTS; i++)
        names[i] = lists[i].name;
    const char *nearest = rc_text_nearest(typed, names, N_LISTS);
    return RC_FAIL(err, RC_E_INPUT, RC_NOWHERE,
                   "no list is called %s%s%s; `recompute list` names them all",
                   rc_text_printable(typed, strlen(typed), safe, sizeof safe),
                   nearest ? ", did you mean " : "", nearest ? nearest : "");
}

static rc_code run(const rc_args *args, rc_arena *mem, int *status, rc_error *err)
{
    (void)status;
    rc_table *table;
    if (args->n_words > 1)
        return RC_FAIL(err, RC_E_INPUT, RC_NOWHERE, "name one list at a time");
    if (args->n_words == 0) {
        RC_TRY(list_lists(mem, &table, err));
        return rc_table_write(table, args->format, stdout, err);
    }
    for (size_t i = 0; i < N_LISTS; i++) {
        if (strcmp(args->words[0], lists[i].name) != 0)
            continue;
        RC_TRY(lists[i].make(mem, &table, err));
        return rc_table_write(table, args->format, stdout, err);
    }
    return unknown_list(args->words[0], err);
}

const rc_command rc_command_list = {
    .name = "list",
    .usage = "recompute list [NAME]",
    .about =
        "Prints one of the tables the program itself runs on; without a name, which there "
        "are.\nWhat is listed is what the program does: help, checks and tests read the same "
        "rows.\n\nExample: recompute list fields --csv",
    .run = run,
};
