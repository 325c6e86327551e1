/* cli.h — what a subcommand is, and what it is handed. One row in src/defs/commands.def and one
 * file cli/cmd_NAME.c per subcommand. */
#ifndef RC_CLI_H
#define RC_CLI_H

#include <recompute/arena.h>
#include <recompute/error.h>
#include <recompute/report.h>
#include <recompute/table.h>

/* An option of a command; the table also writes the help. */
typedef struct rc_option {
    /* "--json" */
    const char *name;
    /* what it takes: "FILE"; NULL for a switch */
    const char *value;
    const char *help;
    /* may be given several times */
    bool is_repeated;
} rc_option;

enum {
    RC_ARGS_MAX = 4096,
    RC_SPINS = 2000 /* GOMP_SPINCOUNT of who sets none: main.c */
};

/* A parsed command line: words in order, options in order. */
typedef struct rc_args {
    const char **words;
    size_t n_words;
    /* of the options given */
    const char **names;
    const char **values;
    size_t n_options;
    /* a row of src/defs/formats.def: --json --csv ...; text otherwise */
    rc_format format;
    const struct rc_command *command;
} rc_args;

typedef struct rc_command {
    const char *name;
    /* "recompute train CONFIG.yaml [key=value ...]" */
    const char *usage;
    /* what it does, what it answers, an example: shown by --help */
    const char *about;
    const rc_option *options;
    size_t n_options;
    /* true: it runs kernels on a pool of threads (main.c sets how they wait). */
    bool has_threads;
    /* true: unknown --options are left among the words (Megatron-LM flags). */
    bool takes_foreign_flags;
    /* Runs; fills err on failure. *status is the exit status when the result is RC_OK (0 or 1). */
    rc_code (*run)(const rc_args *args, rc_arena *mem, int *status, rc_error *err);
} rc_command;

/* The last value given for an option, or NULL; "" for a switch that was given. */
const char *rc_args_find(const rc_args *args, const char *name);
/* The k-th value of a repeated option, or NULL. */
const char *rc_args_find_nth(const rc_args *args, const char *name, size_t k);

/* Every command knows --help, --trace and one option per row of src/defs/formats.def. */
RC_MUST_CHECK
rc_code rc_args_parse(int argc, char **argv, const rc_command *command, rc_arena *mem,
                      rc_args *out, rc_error *err);

/* Among the words, of a command that takes foreign flags: refuses what looks like an option of its own. */
RC_MUST_CHECK
rc_code rc_args_refuse_typos(const rc_args *args, rc_error *err);

/* Prints the source line and carets under what is meant; nothing where the line is unknown. */
void rc_line_print(const rc_where *where, FILE *to);
/* Prints an error as "file:line:col: message", the source line and a caret. */
void rc_error_print(const rc_error *err, bool has_trace, FILE *to);
/* From here on a mapped file that is cut off ends the program with an error that names it, status 3. */
void rc_catch_bus_errors(void);
void rc_command_print_help(const rc_command *command, FILE *to);

#define RC_COMMAND(name, summary) extern const rc_command rc_command_##name;
#include "defs/commands.def"
#undef RC_COMMAND

#endif
