/* cmd_diagnose.c — `recompute diagnose`: from a failed job's files to the cause and the next step. */
#include "cli.h"
#include "diagnose.h"

static rc_code run(const rc_args *args, rc_arena *mem, int *status, rc_error *err)
{
    rc_job_files files = {.mem = mem};
    rc_job job = {.log = NULL};
    rc_diagnosis *diagnosis;
    const char *path;
    for (size_t i = 0; i < args->n_words; i++)
        RC_TRY(rc_job_files_add(&files, args->words[i], false, err));
    for (size_t i = 0; (path = rc_args_find_nth(args, "--config", i)); i++)
        RC_TRY(rc_job_files_add(&files, path, false, err));
    for (size_t i = 0; (path = rc_args_find_nth(args, "--snapshot", i)); i++)
        RC_TRY(rc_job_files_add(&files, path, false, err));
    for (size_t i = 0; (path = rc_args_find_nth(args, "--before", i)); i++)
        RC_TRY(rc_job_files_add(&files, path, true, err));
    if (files.n == 0)
        return RC_FAIL(err, RC_E_INPUT, RC_NOWHERE,
                       "name the job's log, or a folder that holds its files: "
                       "`recompute diagnose train.log`");
    RC_TRY(rc_job_read(&files, &job, mem, err));
    RC_TRY(rc_diagnosis_make(&job, mem, &diagnosis, err));
    RC_TRY(rc_diagnosis_verify(diagnosis, err));
    bool has_cause = diagnosis->cause != RC_CAUSE_NOT_MEMORY || diagnosis->phase != RC_JOB_NONE;
    *status = has_cause ? 1 : 0;
    if (args->format == RC_FORMAT_TEXT) {
        rc_diagnosis_print(diagnosis, stdout);
        return RC_OK;
    }
    rc_report report = {.n = 0};
    RC_TRY(rc_diagnosis_report(diagnosis, mem, &report, err));
    return rc_report_write(&report, args->format, stdout, err);
}

static const rc_option options[] = {
    {"--config", "FILE", "settings: Bridge's YAML, a launch script, overrides, config.json",
     true},
    {"--snapshot", "FILE", "a PyTorch memory snapshot of the failure", false},
    {"--before", "FILE", "log of the run before the change, to compare with", true},
};

const rc_command rc_command_diagnose = {
    .name = "diagnose",
    .usage =
        "recompute diagnose LOG|FOLDER ... [--config FILE] [--snapshot FILE] [--before LOG]",
    .about =
        "Says why a training job ran out of memory (or that it did not), in which phase, on which\n"
        "rank, and what to do next, with the line to paste and what the answer rests on.\n"
        "\n"
        "Takes any part of a job's output, of any size, plain or packed: torch's messages of every\n"
        "generation, other devices, NCCL and cuBLAS, kills by the host, Megatron-LM, Bridge, NeMo,\n"
        "DeepSpeed, Transformers, verl. A folder is read by the names of its files: log*, args*,\n"
        "config.yaml, overrides.txt, run_config.yaml, config.json, *.pickle; a pair log_base and\n"
        "log_recompute is compared.\n"
        "\n"
        "  recompute diagnose train.log\n"
        "  recompute diagnose slurm-4711.out --config launch.sh --snapshot oom_rank-3.pickle\n"
        "  recompute diagnose job/ --json\n"
        "\n"
        "Exit status: 0 nothing failed, 1 a cause was found or more data is needed.",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .run = run,
};
