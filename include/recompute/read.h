/* read.h — untrusted bytes in, rc_doc out. Nothing in an input is ever executed, fetched or
 * opened as a path; hostile bytes give a clear error with a position.
 *
 * All readers copy what they keep into `mem`, so the caller's bytes may go. Limits (a file past
 * one is refused with its position): RC_READ_MAX_BYTES, RC_READ_MAX_NODES, RC_READ_MAX_DEPTH.
 */
#ifndef RECOMPUTE_READ_H
#define RECOMPUTE_READ_H

#include <recompute/arena.h>
#include <recompute/doc.h>
#include <recompute/error.h>

RC_EXTERN_C_BEGIN

enum {
    RC_READ_MAX_BYTES = 64 * 1024 * 1024,
    RC_READ_MAX_NODES = 500 * 1000, /* values of one document, aliases expanded */
    RC_READ_MAX_DEPTH = 48          /* lists and maps inside each other */
};

/* A text file read as bytes: a token a byte, and one after the last. */
enum { RC_TEXT_EOD = 256, RC_TEXT_VOCAB };

/**
 * One configuration file ("-" is standard input) as a tree.
 *
 * takes   path    read by its extension (readers.def), else by how its bytes look
 * gives   *out    sections as rc_config_make takes them: a Hugging Face config.json stands under
 *                 hf_config, the MODEL_ARGS and ENV_VARS of a functional test of Megatron-LM under
 *                 megatron_args and env; anything else as it is
 * errors  RC_E_IO when the file cannot be read; RC_E_INPUT with line and column when it is not
 *         what it should be; RC_E_RANGE past a limit
 */
RC_MUST_CHECK
RC_API rc_code rc_doc_read(const char *path, rc_arena *mem, rc_doc **out, rc_error *err);

/* One YAML document. Aliases and merge keys are expanded within a budget. An empty file is an empty map.
 *
 * takes   path   names the input in messages; borrowed as long as the tree lives
 *         bytes  n_bytes of them
 * gives   *out   the tree
 * errors  RC_E_INPUT with line and column, also for a duplicate key, a second document, a NUL or a byte
 *         that is no UTF-8; RC_E_RANGE past a limit */
RC_MUST_CHECK
RC_API rc_code rc_yaml_read(const char *path, const char *bytes, size_t n_bytes, rc_arena *mem,
                            rc_doc **out, rc_error *err);

/* One JSON value as RFC 8259 has it, with NaN and Infinity as Python writes them.
 *
 * takes   path, bytes  as rc_yaml_read
 * gives   *out         the tree
 * errors  RC_E_INPUT with line and column, also for a duplicate key; RC_E_RANGE past a limit, or for a
 *         number that does not fit */
RC_MUST_CHECK
RC_API rc_code rc_json_read(const char *path, const char *bytes, size_t n_bytes, rc_arena *mem,
                            rc_doc **out, rc_error *err);

/**
 * Overrides as the shell left them: words such as `model.recompute_modules=[core_attn,moe_act]`.
 *
 * takes   words   Hydra's grammar: `+`, `++` and `~` in front; lists, maps, quotes, escapes
 * gives   *out    a map of nested maps, later words winning; a deleted key (`~a.b`) is null
 * errors  RC_E_INPUT, RC_E_RANGE past a limit; the position's file is "command line", its line the word's number from 1,
 *         its column in the word, its text the word
 */
RC_MUST_CHECK
RC_API rc_code rc_override_read(const char *const *words, size_t n_words, rc_arena *mem,
                                rc_doc **out, rc_error *err);

/**
 * Megatron-LM arguments as data: an argument line, or a shell script that starts the trainer.
 *
 * takes   bytes   flags with values and lists; continuation lines, comments, quotes; variables and
 *                 arrays set in the same script, defaults ${X:-4}, sums $((8 * N))
 * gives   *out    {megatron_args: {name: value}, env: {exported variables}, and the sections of
 *                 Bridge's key=value words}; what only running would tell (a substitution of a
 *                 command, a variable that is set nowhere, one that branches set differently) is a
 *                 string as written with tag "?"
 * errors  RC_E_INPUT when a quote or bracket is not closed, or no argument is found; RC_E_RANGE past
 *         a limit
 */
RC_MUST_CHECK
RC_API rc_code rc_args_read(const char *path, const char *bytes, size_t n_bytes, rc_arena *mem,
                            rc_doc **out, rc_error *err);

/* The arguments Megatron prints into its log, `name ........ value`, behind any launcher's prefix.
 *
 * takes   bytes  of the log; those that are no text are overlooked
 * gives   *out   {megatron_args: {name: value}}
 * errors  RC_E_INPUT when the log holds none; RC_E_RANGE past a limit */
RC_MUST_CHECK
RC_API rc_code rc_dump_read(const char *path, const char *bytes, size_t n_bytes, rc_arena *mem,
                            rc_doc **out, rc_error *err);

RC_EXTERN_C_END

#endif
