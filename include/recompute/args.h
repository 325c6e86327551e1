/* args.h — words of a command line in, rc_doc out: arguments of Megatron-LM, Hydra's overrides,
 * the arguments that Megatron prints into its log. A script is read as data and never run; the limits
 * of doc.h hold.
 */
#ifndef RECOMPUTE_ARGS_H
#define RECOMPUTE_ARGS_H

#include <recompute/arena.h>
#include <recompute/doc.h>
#include <recompute/error.h>

RC_EXTERN_C_BEGIN

/**
 * Overrides as the shell left them: words such as `model.recompute_modules=[core_attn,moe_act]`.
 *
 * takes   words   Hydra's grammar: `+`, `++` and `~` in front; lists, maps, quotes, escapes
 * gives   *out    a map of nested maps, later words winning; a deleted key (`~a.b`) is null
 * errors  RC_E_INPUT, RC_E_RANGE past a limit; the position's file is "command line", its line the
 *         word's number from 1, its column in the word, its text the word
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
