/* read.h — untrusted bytes in, rc_doc out. Nothing in an input is ever executed, fetched or
 * opened as a path; hostile bytes give a clear error with a position.
 *
 * All readers copy what they keep into `mem`, so the caller's bytes may go. A file past a limit of
 * doc.h is refused with its position. Command lines and scripts: args.h.
 */
#ifndef RECOMPUTE_READ_H
#define RECOMPUTE_READ_H

#include <recompute/arena.h>
#include <recompute/args.h>
#include <recompute/doc.h>
#include <recompute/error.h>

RC_EXTERN_C_BEGIN

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

RC_EXTERN_C_END

#endif
