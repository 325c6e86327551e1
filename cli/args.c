/* args.c — command lines by table: words, options, help. */
#include "cli.h"

#include "base/text.h"

#include <recompute/config.h>

#include <string.h>

static const rc_option common_options[] = {
#define RC_FORMAT(name, NAME, help) {"--" #name, NULL, "print " help, false},
#include "defs/formats.def"
#undef RC_FORMAT
    {"--help", NULL, "print this text", false},
    {"--trace", NULL, "with an error, print the place in our source that raised it", false},
};
enum { N_COMMON = sizeof common_options / sizeof *common_options };

const char *rc_args_find(const rc_args *args, const char *name)
{
    for (size_t i = args->n_options; i-- > 0;)
        if (strcmp(args->names[i], name) == 0)
            return args->values[i];
    return NULL;
}

const char *rc_args_find_nth(const rc_args *args, const char *name, size_t k)
{
    for (size_t i = 0; i < args->n_options; i++)
        if (strcmp(args->names[i], name) == 0 && k-- == 0)
            return args->values[i];
    return NULL;
}

static bool is_option_named(const rc_option *option, const char *word)
{
    size_t n = strlen(option->name);
    return strncmp(option->name, word, n) == 0 && (word[n] == '\0' || word[n] == '=');
}

static const rc_option *find_option(const rc_command *command, const char *word)
{
    for (size_t i = 0; i < command->n_options; i++)
        if (is_option_named(&command->options[i], word))
            return &command->options[i];
    for (size_t i = 0; i < N_COMMON; i++)
        if (is_option_named(&common_options[i], word))
            return &common_options[i];
    return NULL;
}

static rc_code unknown_option(const rc_command *command, const char *word, rc_error *err)
{
    const char *names[64];
    size_t n = 0;
    for (size_t i = 0; i < command->n_options && n < 64; i++)
        names[n++] = command->options[i].name;
    for (size_t i = 0; i < N_COMMON && n < 64; i++)
        names[n++] = common_options[i].name;
    char typed[128];
    rc_text_printable(word, strcspn(word, "="), typed, sizeof typed);
    const char *nearest = rc_text_nearest(typed, names, n);
    return RC_FAIL(err, RC_E_INPUT, RC_NOWHERE,
                   "unknown option %s%s%s; `recompute %s --help` lists them", typed,
                   nearest ? ", did you mean " : "", nearest ? nearest : "", command->name);
}

/* Adds one option, taking its value from "--x=v" or the next word. */
static rc_code add_option(rc_args *args, const rc_option *option, int argc, char **argv,
                          int *at, rc_error *err)
{
    const char *equals = strchr(argv[*at], '=');
    const char *value = "";
    if (!option->value && equals)
        return RC_FAIL(err, RC_E_INPUT, RC_NOWHERE, "%s takes no value", option->name);
    if (option->value && equals) {
        value = equals + 1;
    } else if (option->value) {
        if (*at + 1 >= argc)
            return RC_FAIL(err, RC_E_INPUT, RC_NOWHERE, "%s needs a value: %s %s", option->name,
                           option->name, option->value);
        value = argv[++*at];
    }
    if (option->value && !*value) /* as an unset variable of a script leaves it */
        return RC_FAIL(err, RC_E_INPUT, RC_NOWHERE, "the value of %s is empty: %s %s",
                       option->name, option->name, option->value);
    args->names[args->n_options] = option->name;
    args->values[args->n_options++] = value;
    return RC_OK;
}

rc_code rc_args_parse(int argc, char **argv, const rc_command *command, rc_arena *mem,
                      rc_args *out, rc_error *err)
{
    *out = (rc_args){.format = RC_FORMAT_TEXT, .command = command};
    RC_TRY(RC_NEW(mem, &out->words, argc + 1, err));
    RC_TRY(RC_NEW(mem, &out->names, argc + 1, err));
    RC_TRY(RC_NEW(mem, &out->values, argc + 1, err));
    bool is_only_words = false;
    for (int i = 0; i < argc; i++) {
        bool is_flag = !is_only_words && strncmp(argv[i], "--", 2) == 0;
        if (is_flag && argv[i][2] == '\0') {
            is_only_words = true;
            continue;
        }
        const rc_option *option = is_flag ? find_option(command, argv[i]) : NULL;
        if (option)
            RC_TRY(add_option(out, option, argc, argv, &i, err));
        else if (is_flag && !command->takes_foreign_flags)
            return unknown_option(command, argv[i], err);
        else
            out->words[out->n_words++] = argv[i];
    }
    for (size_t i = 0; i < out->n_options; i++)
        rc_format_find(out->names[i] + 2, &out->format);
    return RC_OK;
}

/* Is it a misspelling of one of our own options? A third of its letters may be wrong. */
static bool is_typo_of(const char *word, const char *option)
{
    size_t most = (strlen(option) - 2) / 3;
    return rc_text_distance(word, option) <= most;
}

/* Arguments of the trainer are not listed in full here, so an unknown one passes, unless it looks
 * like an option of this command. */
rc_code rc_args_refuse_typos(const rc_args *args, rc_error *err)
{
    char safe[80];
    for (size_t i = 0; i < args->n_words; i++) {
        const char *word = args->words[i];
        bool is_flag = strncmp(word, "--", 2) == 0;
        for (int k = 0; is_flag && k < RC_FIELD_COUNT; k++)
            is_flag = strcmp(rc_field_find((rc_field)k)->flag, word) != 0;
        for (size_t k = 0; is_flag && k < args->command->n_options; k++)
            if (is_typo_of(word, args->command->options[k].name))
                return RC_FAIL(err, RC_E_INPUT, RC_NOWHERE,
                               "unknown option %s, did you mean %s?",
                               rc_text_printable(word, strlen(word), safe, sizeof safe),
                               args->command->options[k].name);
    }
    return RC_OK;
}

static void print_options(const rc_option *options, size_t n, FILE *to)
{
    for (size_t i = 0; i < n; i++) {
        char left[64];
        snprintf(left, sizeof left, "%s%s%s", options[i].name, options[i].value ? " " : "",
                 options[i].value ? options[i].value : "");
        fprintf(to, "  %-28s %s\n", left, options[i].help);
    }
}

void rc_command_print_help(const rc_command *command, FILE *to)
{
    fprintf(to, "usage: %s\n\n%s\n\noptions:\n", command->usage, command->about);
    print_options(command->options, command->n_options, to);
    print_options(common_options, N_COMMON, to);
}

void rc_error_print(const rc_error *err, bool has_trace, FILE *to)
{
    const rc_where *where = &err->where;
    char safe[4096];
    const char *file =
        where->file ? rc_text_printable(where->file, strlen(where->file), safe, sizeof safe)
                    : NULL;
    if (file && where->line)
        fprintf(to, "%s:%d:%d: ", file, where->line, where->col);
    else if (file)
        fprintf(to, "%s: ", file);
    else
        fprintf(to, "recompute: ");
    fprintf(to, "%s\n", rc_text_printable(err->msg, strlen(err->msg), safe, sizeof safe));
    rc_line_print(where, to);
    if (has_trace && err->raised_at)
        fprintf(to, "raised at %s\n", err->raised_at);
}
