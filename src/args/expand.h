/* expand.h — words of a shell text: quotes, escapes, and what $ stands for. */
#ifndef RC_ARGS_EXPAND_H
#define RC_ARGS_EXPAND_H

#include "args/shell.h"

enum { RC_SHELL_BUCKETS = 256, RC_SHELL_BRANCHES = 64, RC_SHELL_HERE = 4 };

typedef enum rc_shell_truth { RC_SHELL_NO, RC_SHELL_MAYBE, RC_SHELL_YES } rc_shell_truth;

/* An if, case or loop that is open. */
typedef struct rc_shell_branch {
    /* i, c or l */
    char kind;
    /* the arm that is read */
    rc_shell_truth runs;
    /* one before it */
    rc_shell_truth earlier;
    /* of a case */
    rc_shell_word subject;
    bool awaits_pattern;
} rc_shell_branch;

/* A here-document whose lines follow. */
typedef struct rc_shell_here {
    rc_shell_word end;
    /* <<'END', <<-END */
    bool is_literal, strips_tabs;
} rc_shell_here;

typedef struct rc_shell_reader {
    rc_source *source;
    rc_arena *mem;
    rc_shell *shell;
    rc_shell_variable *buckets[RC_SHELL_BUCKETS];
    /* bytes expanded and names compared so far: bounds hostile scripts */
    size_t n_work;
    /* offset of the byte added last, for messages */
    size_t last_at;
    rc_shell_branch branches[RC_SHELL_BRANCHES];
    /* open; only the outermost are remembered */
    size_t n_branches;
    /* of the list of commands so far */
    rc_shell_truth truth;
    /* & or | in front of the command being read: && or ||; else 0 */
    char op;
    /* behind ! */
    bool is_negated;
    /* between [[ and ]] */
    bool is_in_test;
    /* of ${a:-${b:-...}} */
    int depth;
    rc_shell_here here[RC_SHELL_HERE];
    /* begun on this line */
    size_t n_here;
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

/* The bytes up to `end`, which are a here-document's, as one word. */
RC_MUST_CHECK
rc_code rc_shell_read_body(rc_shell_reader *r, rc_shell_text *text, size_t end, bool is_literal,
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

/* Does the place that is read run? */
rc_shell_truth rc_shell_runs(const rc_shell_reader *r);
/* Words of the grammar that open or close a branch, and words that leave the next one in the place
 * of a command. True when the word is dropped. */
bool rc_shell_take_keyword(rc_shell_reader *r, const char *word);
/* A command ends: what it means for && and ||, and for the branch it is the condition of. */
void rc_shell_note_command(rc_shell_reader *r, const rc_shell_words *words, bool is_assignment);
/* `case subject in`, its `pattern)` and its `;;` (false: no case is open). */
void rc_shell_open_case(rc_shell_reader *r, const rc_shell_word *subject);
bool rc_shell_awaits_pattern(rc_shell_reader *r);
void rc_shell_enter_case_arm(rc_shell_reader *r, const rc_shell_words *patterns);
bool rc_shell_end_arm(rc_shell_reader *r);
/* Is it one of the words, which NULL ends? */
bool rc_shell_is_among(const char *word, const char *const *words);

/* $((...)): whole numbers, + - * / %, brackets, and variables that hold such numbers. */
bool rc_shell_arithmetic(rc_shell_reader *r, const char *text, size_t n, int64_t *out);

#endif
