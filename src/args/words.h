/* words.h — Megatron-LM arguments out of words, for callers that meet them between other words. */
#ifndef RC_ARGS_WORDS_H
#define RC_ARGS_WORDS_H

#include "base/nodes.h"

typedef struct rc_args_word {
    const char *text;
    size_t n_bytes;
    rc_where where;
    /* part of it is known only when a script runs */
    bool is_unknown;
    /* all of it: "$@", $(date); it may be several words, or none */
    bool is_outside;
} rc_args_word;

/* Adds `--name value ...` words to a map, names with underscores; a flag without a value is true,
 * several values are a list, an unknown value is a string with tag "?". What stands before the
 * first flag is left out.
 * errors  RC_E_INPUT where Megatron-LM's parser would stop at a value of a flag it knows: too few,
 *         too many, or no number */
RC_MUST_CHECK
rc_code rc_args_add(rc_nodes *nodes, rc_doc *map, const rc_args_word *words, size_t n_words,
                    rc_error *err);

/* "num-layers" as "num_layers". */
RC_MUST_CHECK
rc_code rc_args_name(rc_nodes *nodes, const char *flag, size_t n, const char **out,
                     rc_error *err);
/* Hangs a value under its name, in place of an earlier one.
 * errors  RC_E_RANGE past the number of arguments any trainer has */
RC_MUST_CHECK
rc_code rc_args_put(rc_doc *map, const char *key, rc_where where, rc_doc *node, rc_error *err);

/* Do the bytes look like an argument line or a script; like a log with an argument dump? */
bool rc_args_is(const char *bytes);
bool rc_dump_is(const char *bytes);

#endif
