/* model.h — the road from a command line to a schedule, shared by the commands that need one. */
#ifndef RC_CLI_MODEL_H
#define RC_CLI_MODEL_H

#include "cli.h"

#include <recompute/config.h>
#include <recompute/passes.h>

typedef struct rc_model {
    rc_config *cfg;
    rc_passes passes;
} rc_model;

/* The built-in models of --model, in their order: *out has room for args->n_words inputs more. */
RC_MUST_CHECK
rc_code rc_model_presets(const rc_args *args, rc_arena *mem, rc_input **out, size_t *n,
                         rc_error *err);

/* --model, then the words of a command line: config files, Megatron-LM arguments and key=value
 * overrides, later ones winning.
 * errors  RC_E_INPUT without any */
RC_MUST_CHECK
rc_code rc_model_read_config(const rc_args *args, rc_arena *mem, rc_config **out,
                             rc_error *err);

/* The same, of a model that can be trained here.
 * errors  RC_E_INPUT without any, for unknown keys, and for settings that Megatron refuses;
 *         RC_E_UNSUPPORTED for a model that the engine cannot compute */
RC_MUST_CHECK
rc_code rc_model_read(const rc_args *args, rc_arena *mem, rc_model *out, rc_error *err);

/* The same for commands that compute the model: what a Hugging Face config.json says that the engine does not
 * compute is refused first. */
RC_MUST_CHECK
rc_code rc_model_read_run(const rc_args *args, rc_arena *mem, rc_model *out, rc_error *err);

/* Tells on standard error which arguments of Megatron-LM mean nothing here. */
void rc_model_note_passed_over(const rc_config *cfg);

/* From out->cfg to its cost, in the engine profile. Prints to standard output what `dump` names
 * ("graph,policy,schedule,cost"; NULL nothing) as each noun is made, and to standard
 * error which labels of the setting act on no layer. */
RC_MUST_CHECK
rc_code rc_model_make(rc_model *out, const char *dump, rc_arena *mem, rc_error *err);

/* Does a comma-separated list hold the noun? `dump` may be NULL. */
bool rc_dump_wants(const char *dump, const char *noun);

#define RC_MODEL_OPTION                                                                        \
    {                                                                                          \
        "--model", "NAME", "a built-in model under the settings; `recompute list models`",     \
            false                                                                              \
    }

#define RC_DUMP_OPTION                                                                         \
    {                                                                                          \
        "--dump", "NOUN,...", "print nouns on the way: config, graph, policy, schedule, cost", \
            false                                                                              \
    }

#endif
