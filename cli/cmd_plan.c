/* cmd_plan.c — `recompute plan`: the cheapest recompute setting of a Megatron job that fits. */
#include "check.h"
#include "estimate_job.h"
#include "model.h"

#include "base/num.h"

#include <string.h>

static const rc_option options[] = {
    RC_GPU_OPTION,   RC_BUDGET_OPTION,
    RC_TE_OPTION,    RC_IMBALANCE_OPTION,
    RC_MODEL_OPTION, {"--all", NULL, "every setting, not the front alone", false},
};

/* Would the framework take the job with this setting? It is asked of what the command line says otherwise. */
typedef struct judge {
    rc_check_inputs inputs;
    /* false: the job is refused for something else, so that nothing can be said of settings */
    bool is_of_use;
} judge;

static rc_code add_text(rc_arena *mem, rc_doc *fix, const char *field, const char *text,
                        rc_error *err)
{
    rc_doc *node;
    if (text)
        return rc_doc_add_string(mem, fix, field, RC_NOWHERE, text, strlen(text), &node, err);
    RC_TRY(rc_doc_new(mem, RC_DOC_NULL, RC_NOWHERE, &node, err));
    rc_doc_add(fix, field, RC_NOWHERE, node);
    return RC_OK;
}

static rc_code add_labels(rc_arena *mem, rc_doc *fix, uint32_t labels, rc_error *err)
{
    rc_doc *list, *node;
    RC_TRY(rc_doc_new(mem, RC_DOC_LIST, RC_NOWHERE, &list, err));
    rc_doc_add(fix, "recompute_modules", RC_NOWHERE, list);
    for (int label = 0; label < RC_LABEL_COUNT; label++) {
        const char *name = rc_label_find_facts((rc_label)label)->name;
        if (labels >> label & 1u)
            RC_TRY(
                rc_doc_add_string(mem, list, NULL, RC_NOWHERE, name, strlen(name), &node, err));
    }
    return RC_OK;
}

/* All four fields, so that those of the config do not shine through. */
static rc_code make_fix(const rc_setting *setting, rc_arena *mem, rc_doc **out, rc_error *err)
{
    static const char *const words[] = {NULL, "selective", "full"};
    const bool is_full = setting->granularity == RC_GRANULARITY_FULL;
    rc_doc *node;
    RC_TRY(rc_doc_new(mem, RC_DOC_MAP, RC_NOWHERE, out, err));
    RC_TRY(add_text(mem, *out, "recompute_granularity", words[setting->granularity], err));
    RC_TRY(add_text(mem, *out, "recompute_method",
                    !is_full                             ? NULL
                    : setting->method == RC_METHOD_BLOCK ? "block"
                                                         : "uniform",
                    err));
    if (is_full)
        RC_TRY(rc_doc_add_int(mem, *out, "recompute_num_layers", RC_NOWHERE,
                              setting->num_layers, &node, err));
    else
        RC_TRY(add_text(mem, *out, "recompute_num_layers", NULL, err));
    if (setting->granularity == RC_GRANULARITY_SELECTIVE)
        return add_labels(mem, *out, setting->labels, err);
    return add_text(mem, *out, "recompute_modules", NULL, err);
}

static rc_code is_accepted(const judge *j, const rc_setting *setting, rc_arena *mem, bool *out,
                           rc_error *err)
{
    rc_doc *fix;
    rc_subject subject = {.path = "command line"};
    RC_TRY(make_fix(setting, mem, &fix, err));
    RC_TRY(rc_check_run(&j->inputs, fix, mem, &subject, err));
    *out = subject.check->is_accepted;
    return RC_OK;
}

static rc_code open_judge(const rc_args *args, const rc_choices *choices, rc_arena *mem,
                          judge *out, rc_error *err)
{
    rc_check_plan said;
    *out = (judge){.is_of_use = false};
    RC_TRY(rc_check_plan_make(args, mem, &said, err));
    if (said.n_paths != 1) /* several files are one job here, and several to `check` */
        return RC_OK;
    RC_TRY(rc_check_plan_read(&said, said.paths[0], mem, &out->inputs, err));
    return is_accepted(out, &choices->at[choices->control].setting, mem, &out->is_of_use, err);
}

/* The cheapest that fits and that the framework takes; -1. */
static rc_code find_best(const judge *j, const rc_choices *choices, rc_arena *mem, int *out,
                         rc_error *err)
{
    *out = -1;
    for (int i = 0; i < choices->n && *out < 0; i++) {
        bool is_good = true;
        if (!choices->at[i].is_fitting)
            continue;
        if (j->is_of_use)
            RC_TRY(is_accepted(j, &choices->at[i].setting, mem, &is_good, err));
        if (is_good)
            *out = i;
    }
    return RC_OK;
}

static rc_code keep(rc_arena *mem, const char *text, rc_cell *out, rc_error *err)
{
    const char *copy;
    RC_TRY(rc_arena_printf(mem, &copy, err, "%s", text));
    *out = rc_cell_text(copy);
    return RC_OK;
}

static const char *verdict_of(const rc_choices *choices, int best)
{
    if (choices->without->n_lacks > 0)
        return "unknown: something is not modelled";
    if (choices->room_bytes == 0)
        return "no limit is given: --gpu or --budget";
    return best >= 0 ? "fits" : "nothing fits: what holds least is shown";
}

static rc_code answer_table(const rc_choices *choices, int best, rc_arena *mem, rc_table **out,
                            rc_error *err)
{
    static const rc_column columns[] = {
        {"verdict", "verdict", RC_UNIT_TEXT},
        {"setting", "cheapest setting", RC_UNIT_TEXT},
        {"peak_bytes", "peak of the hottest rank", RC_UNIT_BYTES},
        {"room_bytes", "room of its allocator", RC_UNIT_BYTES},
        {"missing_bytes", "missing", RC_UNIT_BYTES},
        {"added_share", "adds to a step, about", RC_UNIT_RATIO},
        {"control_bytes", "peak without recompute", RC_UNIT_BYTES},
        {"bridge", "for Megatron Bridge", RC_UNIT_TEXT},
        {"megatron_lm", "for Megatron-LM", RC_UNIT_TEXT},
        {"candidates", "settings priced, all there are", RC_UNIT_COUNT}};
    const rc_choice *choice = &choices->at[best >= 0 ? best : choices->smallest];
    const int64_t missing = choice->peak_bytes - choices->room_bytes;
    char buf[400];
    rc_cell *row;
    RC_TRY(rc_table_make(mem, "plan", NULL, columns, 10, out, err));
    RC_TRY(rc_table_add_row(*out, &row, err));
    row[0] = rc_cell_text(verdict_of(choices, best));
    RC_TRY(keep(mem, rc_setting_name(&choice->setting, buf), &row[1], err));
    row[2] = rc_cell_int(choice->peak_bytes);
    if (choices->room_bytes > 0)
        row[3] = rc_cell_int(choices->room_bytes);
    if (best < 0)
        row[4] = rc_cell_int(missing);
    row[5] = rc_cell_real(choice->added_share);
    row[6] = rc_cell_int(choices->at[choices->control].peak_bytes);
    RC_TRY(keep(mem, rc_setting_overrides(&choice->setting, buf), &row[7], err));
    RC_TRY(keep(mem, rc_setting_flags(&choice->setting, buf), &row[8], err));
    row[9] = rc_cell_int(choices->n);
    return RC_OK;
}

/* The front: nothing else holds less and adds less. */
static rc_choices front_of(const rc_choices *choices, rc_choice *at)
{
    rc_choices front = *choices;
    front.at = at;
    front.n = 0;
    for (int i = 0; i < choices->n; i++)
        if (choices->at[i].is_front)
            at[front.n++] = choices->at[i];
    return front;
}

static rc_code run(const rc_args *args, rc_arena *mem, int *status, rc_error *err)
{
    rc_report report = {.n = 0};
    rc_estimate_request request;
    rc_choices *choices;
    rc_choice *at;
    rc_table *table;
    judge j;
    int64_t room;
    int best;
    RC_TRY(rc_job_request_read(args, mem, &request, &room, err));
    RC_TRY(rc_choices_make(&request, room, mem, &choices, err));
    RC_TRY(open_judge(args, choices, mem, &j, err));
    RC_TRY(find_best(&j, choices, mem, &best, err));
    RC_TRY(answer_table(choices, best, mem, &table, err));
    rc_report_add(&report, table, true);
    RC_TRY(rc_estimate_lacks_table(choices->without, mem, &table, err));
    if (choices->without->n_lacks > 0)
        rc_report_add(&report, table, false);
    RC_TRY(RC_NEW(mem, &at, choices->n, err));
    const rc_choices front = front_of(choices, at);
    RC_TRY(rc_choices_table(rc_args_find(args, "--all") ? choices : &front, mem, &table, err));
    rc_report_add(&report, table, false);
    if (best < 0 || choices->without->n_lacks > 0)
        *status = 1;
    return rc_report_write(&report, args->format, stdout, err);
}

const rc_command rc_command_plan = {
    .name = "plan",
    .usage = "recompute plan [CONFIG] [--model NAME] [key=value ...] [--megatron-flag ...] "
             "[options]",
    .about =
        "Prices every recompute setting that Megatron can express for a job, rank by rank, and "
        "tells the\n"
        "cheapest whose hottest rank fits: every set of the labels that act in some layer, full "
        "uniform and\n"
        "full block for every number of layers. So the answer is an optimum of the model, and the "
        "proof is the\n"
        "number of settings. What `recompute check` refuses is passed over. The rest of the table "
        "is the front:\n"
        "nothing else holds less and adds less.\n"
        "\n"
        "What a setting adds to a step is from the roofline of its ops (`recompute list "
        "efficiencies`): an order,\n"
        "not a promise.\n"
        "\n"
        "  recompute plan train.sh --gpu h100-80gb\n"
        "  recompute plan --model llama3-70b model.tensor_model_parallel_size=8 model.bf16=true \\\n"
        "      train.micro_batch_size=1 --budget 60GiB\n"
        "\n"
        "exit status: 0; 1 when nothing fits, or that cannot be said; 2 bad input; 4 not modelled "
        "here.",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .takes_foreign_flags = true,
    .run = run,
};
