/* cmd_check.c — `recompute check`: the framework's verdict on configurations.
 *
 * takes  configurations, as cli/check_inputs.c gathers them from the command line
 * gives  findings, for people or as JSON or SARIF; the exit status says whether any of them counts
 *
 * above  check_inputs.c, check_fix.c and one file for each form of output; all stand on check_subject.c
 */
#include "check.h"
#include "model.h"

#include "base/text.h"

#include <recompute/read.h>

#include <stdlib.h>
#include <string.h>

typedef struct job {
    const rc_args *args;
    rc_check_options options;
    bool has_target;
    rc_check_plan plan;
    rc_check_show show;
    rc_subject *subjects;
    rc_arena *mem;
} job;

/* --- checking */

static rc_code check_one(job *work, const char *path, const rc_check_inputs *inputs,
                         rc_subject *subject, rc_error *err)
{
    *subject =
        (rc_subject){.path = path, .options = work->options, .has_target = work->has_target};
    return rc_check_run(inputs, NULL, work->mem, subject, err);
}

static rc_code keep_unreadable(job *work, const char *path, const rc_error *why,
                               rc_subject *subject, rc_error *err)
{
    *subject = (rc_subject){.path = path, .options = work->options, .where = why->where};
    return rc_arena_printf(work->mem, &subject->unreadable, err, "%s", why->msg);
}

/* Leaves the subject as it is with the fix, so that the exit status says what is left. */
static rc_code print_fix(job *work, const rc_check_inputs *inputs, rc_subject *subject,
                         rc_error *err)
{
    const rc_doc *fix;
    const char *text;
    rc_subject after;
    rc_level level = work->show.is_strict ? RC_LEVEL_WARNING : RC_LEVEL_ERROR;
    RC_TRY(rc_check_fix(inputs, subject, level, work->mem, &fix, &after, err));
    if (rc_args_find(work->args, "--write") && fix->child && inputs->file)
        RC_TRY(rc_check_write_yaml(subject, inputs->file, fix, work->mem, err));
    RC_TRY(rc_say_patch(fix, subject->cfg, work->mem, &text, err));
    fputs(text, stdout);
    if (!after.check->is_accepted)
        fprintf(stderr, "%s: %s still needs a hand: %s\n", subject->path,
                after.check->findings.at[after.check->first].rule,
                after.check->findings.at[after.check->first].reason);
    subject->check = after.check;
    return RC_OK;
}

static void print_dumps(const char *dump, const rc_subject *subject, FILE *to)
{
    if (rc_dump_wants(dump, "config"))
        rc_config_print(subject->cfg, to);
    if (rc_dump_wants(dump, "check"))
        rc_check_print(subject->check, to);
}

static rc_code read_one(job *work, const char *path, size_t i, rc_error *err)
{
    rc_check_inputs inputs;
    rc_subject *subject = &work->subjects[i];
    RC_TRY(rc_check_plan_read(&work->plan, path, work->mem, &inputs, err));
    RC_TRY(check_one(work, path, &inputs, subject, err));
    print_dumps(rc_args_find(work->args, "--dump"), subject, stdout);
    bool is_fixing = rc_args_find(work->args, "--fix") || rc_args_find(work->args, "--write");
    return is_fixing ? print_fix(work, &inputs, subject, err) : RC_OK;
}

/* Results of people's form are printed as they come; each file's memory goes back after it. */
static rc_code check_all(job *work, bool is_streamed, int *status, rc_error *err)
{
    bool is_fixing = rc_args_find(work->args, "--fix") || rc_args_find(work->args, "--write");
    RC_TRY(RC_NEW(work->mem, &work->subjects, is_streamed ? 1 : work->plan.n_paths, err));
    for (size_t i = 0; i < work->plan.n_paths; i++) {
        size_t k = is_streamed ? 0 : i;
        rc_error why = {0};
        rc_mark mark = rc_arena_mark(work->mem);
        rc_code code = read_one(work, work->plan.paths[i], k, &why);
        if (code == RC_E_INPUT || code == RC_E_IO || code == RC_E_RANGE) {
            RC_TRY(keep_unreadable(work, work->plan.paths[i], &why, &work->subjects[k], err));
        } else if (code == RC_E_UNSUPPORTED && is_fixing) {
            rc_error_print(&why, false, stderr); /* the other files may go */
        } else if (code != RC_OK) {
            *err = why;
            return code;
        }
        int one = rc_subject_status(&work->subjects[k], &work->show);
        *status = one > *status ? one : *status;
        if (!is_streamed)
            continue;
        if (!is_fixing || work->subjects[k].unreadable)
            rc_check_write_people(&work->subjects[k], &work->show, stdout);
        rc_arena_rewind(work->mem, mark);
    }
    return RC_OK;
}

static rc_code set_target(job *work, const char *name, rc_error *err)
{
    char safe[80];
    work->has_target = name && rc_check_target_find(name, &work->options.target);
    if (!name || work->has_target)
        return RC_OK;
    return RC_FAIL(err, RC_E_INPUT, RC_NOWHERE, "--for %s: write core, megatron-lm or bridge",
                   rc_text_printable(name, strlen(name), safe, sizeof safe));
}

static rc_code run(const rc_args *args, rc_arena *mem, int *status, rc_error *err)
{
    job work = {.args = args, .mem = mem, .options = {.has_advice = true}};
    const char *lines = rc_args_find(args, "--jsonl"), *rule = rc_args_find(args, "--explain");
    bool is_sarif = rc_args_find(args, "--sarif") != NULL,
         is_json = args->format == RC_FORMAT_JSON;
    work.options.megatron = rc_args_find(args, "--megatron");
    work.options.transformer_engine = rc_args_find(args, "--te");
    if (rule)
        return rc_check_explain(rule, is_json, stdout, err);
    RC_TRY(set_target(&work, rc_args_find(args, "--for"), err));
    if (lines)
        return rc_check_jsonl(lines, &work.options, stdout, status, err);
    work.show = (rc_check_show){.has_notes = rc_args_find(args, "--notes") != NULL,
                                .is_strict = rc_args_find(args, "--strict") != NULL,
                                .has_origins = rc_args_find(args, "--origins") != NULL,
                                .has_colour = rc_style_of(stdout).has_colour};
    RC_TRY(rc_check_plan_make(args, mem, &work.plan, err));
    bool is_fixing = rc_args_find(args, "--fix") || rc_args_find(args, "--write");
    bool is_text = !is_sarif && args->format == RC_FORMAT_TEXT;
    if (is_fixing && !is_text)
        return RC_FAIL(
            err, RC_E_INPUT, RC_NOWHERE,
            "--fix and --write print settings; in --json they stand with each finding");
    if (is_sarif && args->format != RC_FORMAT_TEXT)
        return RC_FAIL(err, RC_E_INPUT, RC_NOWHERE, "--sarif is a form of its own; choose one");
    RC_TRY(check_all(&work, is_fixing || is_text, status, err));
    if (is_fixing || is_text)
        return RC_OK;
    if (is_sarif)
        return rc_check_write_sarif(work.subjects, work.plan.n_paths, mem, stdout, err);
    if (is_json)
        rc_check_write_json(work.subjects, work.plan.n_paths, &work.show, stdout);
    else
        return rc_check_write_table(work.subjects, work.plan.n_paths, &work.show, args->format,
                                    mem, err);
    return RC_OK;
}

static const rc_option options[] = {
    {"--for", "TARGET", "core, megatron-lm or bridge; else the kind of input decides", false},
    {"--megatron", "RELEASE", "of Megatron Core: 0.9 to 0.19, or main (the default)", false},
    {"--te", "VERSION", "of Transformer Engine, such as 2.9.0; else new enough for everything",
     false},
    {"--with", "FILE", "combined with every file named, over its settings; may be repeated",
     true},
    RC_MODEL_OPTION,
    {"--origins", NULL, "print every value that is set, and where it came from", false},
    {"--dump", "NOUN,...", "print nouns on the way: config, check", false},
    {"--strict", NULL, "warnings count: exit status 1, and --fix fixes them too", false},
    {"--notes", NULL, "print notes too", false},
    {"--fix", NULL, "print the settings that fix the config, and edit nothing", false},
    {"--write", NULL, "--fix, and edit the YAML file in place; comments and layout stay",
     false},
    {"--sarif", NULL, "print SARIF 2.1.0, for code review", false},
    {"--jsonl", "FILE", "one config a line in ({\"config\": {...}}), one verdict a line out",
     false},
    {"--explain", "RULE", "teach one rule with an example", false},
};

const rc_command rc_command_check = {
    .name = "check",
    .usage =
        "recompute check [FILE|FOLDER|- ...] [--model NAME] [key=value ...] [--megatron-flag ...]",
    .about =
        "Says what the training framework will refuse, warn about or silently ignore, with the\n"
        "position, the reason and what to write instead. Reads Megatron Bridge's YAML, Megatron-LM's\n"
        "arguments and scripts, Hugging Face's config.json, built-in models, arguments of Megatron-LM\n"
        "given here, and key=value overrides. Each file is a configuration of its own; combined with\n"
        "it are, later ones winning: --model, the file, --with, arguments and overrides.\n"
        "\n"
        "  recompute check run_config.yaml\n"
        "  recompute check pretrain.sh --megatron 0.16 --te 2.9.0\n"
        "  recompute check config.yaml model.recompute_modules=[core_attn,moe_act]\n"
        "  recompute check --model llama3-70b model.recompute_granularity=full\n"
        "  recompute check --num-layers 32 --recompute-granularity full\n"
        "  recompute check run.yaml --with cluster.yaml --origins\n"
        "  recompute check configs/ --strict --json\n"
        "  recompute check --explain full-recompute-needs-method\n"
        "\n"
        "Exit status: 0 clean, 1 a finding of level error (with --strict, of level warning), 2 an\n"
        "input that cannot be read; with --fix, that of what is left.",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .takes_foreign_flags = true,
    .run = run,
};
