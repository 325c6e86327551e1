/* cmd_labels.c — `recompute labels`: what each recompute label does in a Megatron job. */
#include "estimate_job.h"
#include "model.h"

static const rc_option options[] = {
    RC_GPU_OPTION,
    RC_TE_OPTION,
    RC_IMBALANCE_OPTION,
    RC_MODEL_OPTION,
};

static rc_code run(const rc_args *args, rc_arena *mem, int *status, rc_error *err)
{
    rc_report report = {.n = 0};
    rc_estimate_request request;
    rc_label_effects *effects;
    rc_table *table;
    int64_t room;
    (void)status;
    RC_TRY(rc_job_request_read(args, mem, &request, &room, err));
    RC_TRY(rc_label_effects_make(&request, mem, &effects, err));
    if (effects->without->n_lacks > 0) {
        RC_TRY(rc_estimate_lacks_table(effects->without, mem, &table, err));
        rc_report_add(&report, table, false);
    }
    RC_TRY(rc_label_effects_table(effects, mem, &table, err));
    rc_report_add(&report, table, false);
    return rc_report_write(&report, args->format, stdout, err);
}

const rc_command rc_command_labels = {
    .name = "labels",
    .usage = "recompute labels [CONFIG] [--model NAME] [key=value ...] [--megatron-flag ...] "
             "[options]",
    .about =
        "Tells what every recompute label does in a Megatron job, alone, beside the job without "
        "recompute: how\n"
        "many layers have what it covers, the bytes it frees of one micro-batch and of the hottest "
        "rank's peak,\n"
        "what is replayed for it, about how much of a step that adds, and a verdict. A label that "
        "frees less than\n"
        "nothing pins more than it drops: its replay starts from tensors that nobody kept before. "
        "Labels nest and\n"
        "overlap, so effects do not add up; `recompute plan` prices sets of them.\n"
        "\n"
        "  recompute labels train.sh --gpu h100-80gb\n"
        "  recompute labels --model deepseek-v3 model.bf16=true train.micro_batch_size=1\n"
        "\n"
        "exit status: 0; 2 bad input; 4 not modelled here.",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .takes_foreign_flags = true,
    .run = run,
};
