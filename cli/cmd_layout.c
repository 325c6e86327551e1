/* cmd_layout.c — `recompute layout`: who holds which layers of a Megatron job. */
#include "model.h"

#include <recompute/layout.h>

static const rc_option options[] = {
    RC_MODEL_OPTION,
    {"--dump", "NOUN,...", "print nouns on the way: config, layout", false},
};

static rc_code run(const rc_args *args, rc_arena *mem, int *status, rc_error *err)
{
    const char *dump = rc_args_find(args, "--dump");
    rc_report report = {.n = 0};
    rc_config *cfg;
    rc_layout *layout;
    rc_table *table;
    (void)status;
    RC_TRY(rc_model_read_config(args, mem, &cfg, err));
    rc_model_note_passed_over(cfg);
    if (rc_dump_wants(dump, "config"))
        rc_config_print(cfg, stdout);
    RC_TRY(rc_layout_make(cfg, 0, mem, &layout, err));
    if (rc_dump_wants(dump, "layout"))
        rc_layout_print(layout, stdout);
    RC_TRY(rc_layout_facts(layout, mem, &table, err));
    rc_report_add(&report, table, true);
    RC_TRY(rc_layout_table(layout, mem, &table, err));
    rc_report_add(&report, table, false);
    return rc_report_write(&report, args->format, stdout, err);
}

const rc_command rc_command_layout = {
    .name = "layout",
    .usage = "recompute layout [CONFIG] [--model NAME] [key=value ...] [--megatron-flag ...] "
             "[options]",
    .about =
        "Tells who holds what in a Megatron job: the parallel sizes and those that follow from "
        "them, the\n"
        "micro-batches of a step, and the layers of every chunk of every pipeline stage by kind, "
        "with\n"
        "embedding, multi-token prediction, final norm and loss. CONFIG is Megatron Bridge's "
        "YAML,\n"
        "Megatron-LM's arguments or script, or Hugging Face's config.json. What does not divide "
        "is refused\n"
        "where it stands.\n"
        "\n"
        "  recompute layout --model deepseek-v3 model.pipeline_model_parallel_size=16 \\\n"
        "      model.num_layers_in_first_pipeline_stage=3 "
        "model.num_layers_in_last_pipeline_stage=2\n"
        "  recompute layout train.sh --json\n"
        "\n"
        "exit status: 0; 2 bad input; 4 a setting that places layers otherwise than is known "
        "here.",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .takes_foreign_flags = true,
    .run = run,
};
