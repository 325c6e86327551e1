/* cmd_layout.c — `recompute layout`: who holds which layers of a Megatron job. */
#include "model.h"

#include <recompute/pipeline.h>

#include "base/text.h"

#include <string.h>

static const rc_option options[] = {
    RC_MODEL_OPTION,
    {"--dump", "NOUN,...", "print nouns on the way: config, layout, pipeline", false},
};

static rc_code check_dump(const char *dump, rc_error *err)
{
    static const char *const nouns[] = {"config", "layout", "pipeline"};
    for (const char *at = dump; at && *at; at += strcspn(at, ","), at += *at == ',') {
        const size_t n = strcspn(at, ",");
        size_t i = 0;
        char safe[64];
        while (i < 3 && (strlen(nouns[i]) != n || strncmp(nouns[i], at, n) != 0))
            i++;
        if (i == 3)
            return RC_FAIL(err, RC_E_INPUT, RC_NOWHERE,
                           "--dump knows no %s; it prints config, layout, pipeline",
                           rc_text_printable(at, n, safe, sizeof safe));
    }
    return RC_OK;
}

static rc_code print_pipelines(const rc_layout *layout, rc_arena *mem, rc_error *err)
{
    for (int64_t stage = 0; stage < layout->sizes.pp; stage++) {
        rc_pipeline *pipeline;
        RC_TRY(rc_pipeline_make(layout, stage, mem, &pipeline, err));
        rc_pipeline_print(pipeline, stdout);
    }
    return RC_OK;
}

static rc_code run(const rc_args *args, rc_arena *mem, int *status, rc_error *err)
{
    const char *dump = rc_args_find(args, "--dump");
    rc_report report = {.n = 0};
    rc_config *cfg;
    rc_layout *layout;
    rc_table *table;
    (void)status;
    RC_TRY(check_dump(dump, err));
    RC_TRY(rc_model_read_config(args, mem, &cfg, err));
    rc_model_note_passed_over(cfg);
    if (rc_dump_wants(dump, "config"))
        rc_config_print(cfg, stdout);
    RC_TRY(rc_layout_make(cfg, 0, mem, &layout, err));
    if (rc_dump_wants(dump, "layout"))
        rc_layout_print(layout, stdout);
    if (rc_dump_wants(dump, "pipeline"))
        RC_TRY(print_pipelines(layout, mem, err));
    RC_TRY(rc_layout_facts(layout, mem, &table, err));
    rc_report_add(&report, table, true);
    if (layout->n_micro_batches > 0) {
        RC_TRY(rc_pipeline_in_flight_table(layout, mem, &table, err));
        rc_report_add(&report, table, false);
    }
    RC_TRY(rc_layout_table(layout, mem, &table, err));
    rc_report_add(&report, table, false);
    return rc_report_write(&report, args->format, stdout, err);
}

const rc_command rc_command_layout = {
    .name = "layout",
    .usage = "recompute layout [CONFIG] [--model NAME] [key=value ...] [--megatron-flag ...] "
             "[options]",
    .about =
        "Tells who holds what in a Megatron job: the parallel sizes and those that follow from them,\n"
        "the micro-batches of a step, and the layers of every chunk of every pipeline stage by kind,\n"
        "with embedding, multi-token prediction, final norm and loss; with a micro-batch size also how\n"
        "many micro-batches each stage holds at once. CONFIG is Megatron Bridge's YAML, Megatron-LM's\n"
        "arguments or script, or Hugging Face's config.json. What does not divide is refused where it\n"
        "stands.\n"
        "\n"
        "  recompute layout --model deepseek-v3 model.pipeline_model_parallel_size=16 \\\n"
        "      model.num_layers_in_first_pipeline_stage=3 model.num_layers_in_last_pipeline_stage=2\n"
        "  recompute layout train.sh --json\n"
        "  recompute layout train.sh --dump pipeline       the order of every stage\n"
        "\n"
        "exit status: 0; 2 bad input; 4 a setting that places layers otherwise than is known here.",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .takes_foreign_flags = true,
    .run = run,
};
