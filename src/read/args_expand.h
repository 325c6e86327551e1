/* args_expand.h — words of a shell text: quotes, escapes, and what $ stands for. */
#ifndef RC_READ_ARGS_EXPAND_H
#define RC_READ_ARGS_EXPAND_H

#include "read/args_shell.h"

enum { RC_SHELL_BUCKETS = 256 };

typedef struct rc_shell_reader {
    rc_source *source;
    rc_arena *mem;
    rc_shell *shell;
    rc_shell_variable *buckets[RC_SHELL_BUCKETS];
    size_t n_work;       /* bytes expanded and names compared so far: bounds hostile scripts */
    size_t last_at;      /* offset of the byte added last, for messages */
    size_t n_branches;   /* if, case and loops that are open */
    bool is_conditional; /* behind && or || */
    int depth;           /* of ${a:-${b:-...}} */
} rc_shell_reader;

/* A text being read; `from` maps its bytes to offsets in the source, NULL is the source itself. */
typedef struct rc_shell_text {
    const char *bytes;
    const int32_t *from;
    size_t at;
} rc_shell_text;

/* May a variable's name hold this byte, may it begin with it? */
bool rc_shell_is_name(char c);
bool rc_shell_is_name_start(char c);

/* Puts the variables the shell has already into the buckets. */
RC_MUST_CHECK
rc_code rc_shell_reader_open(rc_shell_reader *r, rc_error *err);
rc_where rc_shell_where(rc_shell_reader *r, const rc_shell_text *text, size_t at,
                        size_t n_cols);

/* Reads one word at the cursor; expansions may make several or none of it when `is_split`. */
RC_MUST_CHECK
rc_code rc_shell_read_next(rc_shell_reader *r, rc_shell_text *text, bool is_split,
                           rc_shell_words *out, rc_error *err);

rc_shell_variable *rc_shell_variable_find(rc_shell_reader *r, const char *name, size_t n);
/* The variable of that name, made when it is new. */
RC_MUST_CHECK
rc_code rc_shell_variable_take(rc_shell_reader *r, const char *name, size_t n,
                               rc_shell_variable **out, rc_error *err);
RC_MUST_CHECK
rc_code rc_shell_push(rc_shell_reader *r, rc_shell_words *words, const rc_shell_word *word,
                      rc_error *err);
/* *word becomes its text followed by that of `more`. */
RC_MUST_CHECK
rc_code rc_shell_join(rc_shell_reader *r, rc_shell_word *word, const rc_shell_word *more,
                      rc_error *err);
RC_MUST_CHECK
rc_code rc_shell_add_command(rc_shell_reader *r, rc_shell_words words, rc_error *err);

/* $((...)): whole numbers, + - * / %, brackets, and variables that hold such numbers. */
bool rc_shell_arithmetic(rc_shell_reader *r, const char *text, size_t n, int64_t *out);

#endif
