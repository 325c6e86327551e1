/* shell.h — a shell script as data: its commands' words after quoting and expansion. */
#ifndef RC_ARGS_SHELL_H
#define RC_ARGS_SHELL_H

#include "base/source.h"

/* Text whose every byte knows where in the source it was written. */
typedef struct rc_shell_word {
    /* NUL-terminated */
    const char *text;
    /* ~offset for a byte that is known only when the script runs */
    const int32_t *from;
    size_t n_bytes;
    /* has such bytes; they stand as written, or as one branch sets them */
    bool is_unknown;
} rc_shell_word;

/* The offset in the source, of a byte of either kind. */
static inline int32_t rc_shell_offset(int32_t from)
{
    return from < 0 ? ~from : from;
}

/* $2, $(date): is nothing of it known? */
bool rc_shell_is_outside(const rc_shell_word *word);

typedef struct rc_shell_words {
    rc_shell_word *at;
    size_t n, n_room;
} rc_shell_words;

typedef struct rc_shell_variable {
    const char *name;
    /* one for a plain variable */
    rc_shell_words words;
    bool is_array, is_exported;
    /* in its hash bucket */
    struct rc_shell_variable *next_alike;
} rc_shell_variable;

typedef struct rc_shell {
    /* in order; words of redirections and assignments are left out */
    rc_shell_words *commands;
    size_t n_commands, n_commands_room;
    /* in order of first assignment */
    rc_shell_variable **variables;
    size_t n_variables;
} rc_shell;

/* Nothing is executed: substitutions of commands, and variables nobody set, stay unknown.
 * errors  RC_E_INPUT for a quote or bracket that is not closed; RC_E_RANGE past a limit */
RC_MUST_CHECK
rc_code rc_shell_read(rc_source *source, rc_arena *mem, rc_shell *out, rc_error *err);
/* The same over the text of one word, as in bash -c "..."; variables are shared. */
RC_MUST_CHECK
rc_code rc_shell_read_word(rc_source *source, const rc_shell_word *word, rc_arena *mem,
                           rc_shell *shell, rc_error *err);

#endif
