/* cmd_check.c — `recompute check`: the framework's verdict on a configuration. */
#include "check.h"
#include "cli.h"

#include <string.h>

static rc_code run(const rc_args *args, rc_arena *mem, int *status, rc_error *err)
{
    rc_check_options options = {.target = RC_CHECK_CORE};
    (void)mem;
    options.megatron = rc_args_find(args, "--megatron");
    options.transformer_engine = rc_args_find(args, "--te");
    const char *path = rc_args_find(args, "--jsonl");
    if (path)
        return rc_check_jsonl(path, &options, stdout, status, err);
    return RC_FAIL(err, RC_E_UNSUPPORTED, RC_NOWHERE, "not yet");
}

static const rc_option options[] = {
    {"--for", "TARGET", "core, megatron-lm or bridge; the input's kind decides otherwise",
     false},
    {"--megatron", "RELEASE", "of Megatron Core, 0.9 to 0.19 or main (default)", false},
    {"--te", "VERSION", "of Transformer Engine; new enough for everything otherwise", false},
    {"--jsonl", "FILE", "one configuration a line in, one verdict a line out", false},
};

const rc_command rc_command_check = {
    .name = "check",
    .usage = "recompute check CONFIG.yaml ... [key=value ...]",
    .about = "Says what the training framework will refuse or silently ignore.",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .run = run,
};
