/* cmd_estimate.c — `recompute estimate`: the memory of a run to the byte, before it runs. */
#include "estimate_job.h"
#include "model.h"

#include "base/file.h"

#include <recompute/picture.h>
#include <recompute/plan.h>

#include <string.h>

static const rc_option options[] = {
    {"--for", "WHAT",
     "engine, megatron-lm or bridge: whose memory; engine is what `recompute train` takes",
     false},
    RC_GPU_OPTION,
    RC_BUDGET_OPTION,
    {"--settings", NULL, "price every recompute setting of this model, cheapest first", false},
    {"--timeline", NULL, "live bytes at every instruction of the step", false},
    {"--svg", "FILE", "draw the timeline: memory over the step, stacked by category", false},
    RC_TE_OPTION,
    RC_IMBALANCE_OPTION,
    RC_MODEL_OPTION,
    RC_DUMP_OPTION,
};

static rc_code write_picture(const rc_cost *cost, const char *path, rc_arena *mem,
                             rc_error *err)
{
    rc_table *timeline;
    rc_out_file file;
    RC_TRY(rc_cost_timeline(cost, mem, &timeline, err));
    rc_chart chart = {.kind = RC_CHART_STACKED,
                      .table = timeline,
                      .x = 0,
                      .label = RC_CHART_NO_COLUMN,
                      .series = {3, 4, 5, 7, 8, 9, 10},
                      .n_series = 7,
                      .is_x_integer = true,
                      .title = "memory over one step"};
    RC_TRY(rc_out_file_open(path, &file, err));
    rc_code code = rc_chart_write(&chart, file.to, err);
    return rc_out_file_end(&file, code, err);
}

/* The budget is the config's; over it the answer still prints, and says so by its exit status. */
static rc_code check_budget(const rc_model *model, rc_arena *mem, int *status, rc_error *err)
{
    int64_t budget = model->cfg->memory_budget;
    rc_error over = {0};
    if (budget == RC_NULL_INT)
        return RC_OK;
    rc_code code = rc_plan_refuse_over_budget(model->passes.schedule, budget,
                                              model->cfg->origin[RC_FIELD_memory_budget].where,
                                              mem, &over);
    if (code == RC_OK)
        return RC_OK;
    if (code != RC_E_INPUT)
        return RC_FAIL(err, code, over.where, "%s", over.msg);
    *status = 1;
    rc_error_print(&over, false, stderr);
    return RC_OK;
}

/* Megatron's jobs are of 16 bits, and people ask for their memory; what is trained here is not. */
static void note_precision(const rc_config *cfg)
{
    if (cfg->bf16 || cfg->fp16)
        fprintf(stderr,
                "note: these are the figures of %s; `recompute train` computes in float32 "
                "(%s=false)\n",
                cfg->bf16 ? "bfloat16" : "float16", cfg->bf16 ? "model.bf16" : "model.fp16");
}

/* Options that only the other answer has. */
static rc_code refuse_options(const rc_args *args, const char *whose, const char *const *names,
                              size_t n, rc_error *err)
{
    for (size_t i = 0; i < n; i++)
        if (rc_args_find(args, names[i]))
            return RC_FAIL(err, RC_E_INPUT, RC_NOWHERE, "%s is an option of --for %s", names[i],
                           whose);
    return RC_OK;
}

static rc_code run_engine(const rc_args *args, rc_arena *mem, int *status, rc_error *err)
{
    rc_model model = {0};
    rc_report report = {.n = 0};
    rc_table *table;
    RC_TRY(rc_model_read(args, mem, &model, err));
    RC_TRY(rc_model_make(&model, rc_args_find(args, "--dump"), mem, err));
    rc_model_note_passed_over(model.cfg);
    note_precision(model.cfg);
    if (rc_args_find(args, "--settings")) {
        rc_plan *plan;
        int64_t budget = model.cfg->memory_budget;
        RC_TRY(rc_plan_make(model.passes.graph, model.passes.schedule->n_threads,
                            budget == RC_NULL_INT ? 0 : budget, mem, &plan, err));
        RC_TRY(rc_plan_table(plan, mem, &table, err));
        rc_report_add(&report, table, false);
    } else {
        RC_TRY(rc_cost_report(model.passes.cost, mem, &report, err));
    }
    if (rc_args_find(args, "--timeline")) {
        RC_TRY(rc_cost_timeline(model.passes.cost, mem, &table, err));
        rc_report_add(&report, table, false);
    }
    if (rc_args_find(args, "--svg"))
        RC_TRY(write_picture(model.passes.cost, rc_args_find(args, "--svg"), mem, err));
    RC_TRY(rc_report_write(&report, args->format, stdout, err));
    return check_budget(&model, mem, status, err);
}

static rc_code run(const rc_args *args, rc_arena *mem, int *status, rc_error *err)
{
    static const char *const of_job[] = {"--gpu", "--budget", "--te", "--imbalance"},
                             *const of_engine[] = {"--settings", "--timeline", "--svg"};
    const char *what = rc_args_find(args, "--for");
    if (!what || strcmp(what, "engine") == 0) {
        RC_TRY(refuse_options(args, "megatron-lm and bridge", of_job, 4, err));
        return run_engine(args, mem, status, err);
    }
    if (strcmp(what, "megatron-lm") != 0 && strcmp(what, "bridge") != 0)
        return RC_FAIL(err, RC_E_INPUT, RC_NOWHERE,
                       "--for %s is not known; it is engine, megatron-lm or bridge", what);
    RC_TRY(refuse_options(args, "engine", of_engine, 3, err));
    return rc_estimate_job(args, mem, status, err);
}

const rc_command rc_command_estimate = {
    .name = "estimate",
    .usage =
        "recompute estimate [CONFIG] [--model NAME] [key=value ...] [--megatron-flag ...] [options]",
    .about =
        "Tells what `recompute train` of this config will take, to the byte, without "
        "running it:\n"
        "the peak, in which phase, layer and op it is, what is alive there by category "
        "and label,\n"
        "model state, and what recompute adds in FLOPs. CONFIG is Megatron Bridge's YAML, "
        "Megatron-LM's\n"
        "arguments or script, or Hugging Face's config.json. Arguments that mean nothing here "
        "(logging,\n"
        "checkpoint formats) are passed over with a note; what the engine does not model "
        "(experts,\n"
        "parallel sizes above 1) is refused by name.\n"
        "\n"
        "  recompute estimate gpt.yaml model.recompute_granularity=full \\\n"
        "      model.recompute_method=uniform model.recompute_num_layers=1\n"
        "  recompute estimate --model llama3-8b model.seq_length=2048 train.micro_batch_size=1\n"
        "  recompute estimate gpt.yaml --settings          which setting is cheapest\n"
        "  recompute estimate gpt.yaml --svg memory.svg    a picture of the step\n"
        "\n"
        "With --for megatron-lm or bridge it tells the memory of every rank of a Megatron job instead: "
        "weights, gradients,\n"
        "optimizer, activations of micro-batches in flight, and the moment of the peak, in the first "
        "step and in later\n"
        "ones; with --gpu or --budget whether the hottest rank fits.\n"
        "\n"
        "  recompute estimate train.sh --for megatron-lm --gpu h100-80gb\n"
        "\n"
        "exit status: 0; 1 when engine.memory_budget is set and not met; 2 bad input; 4 not modelled here.",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .takes_foreign_flags = true,
    .run = run,
};
