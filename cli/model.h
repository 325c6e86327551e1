/* model.h — the road from a command line to a schedule, shared by the commands that need one. */
#ifndef RC_CLI_MODEL_H
#define RC_CLI_MODEL_H

#include "cli.h"

#include <recompute/config.h>
#include <recompute/cost.h>

/* Every noun on the way, made in order; NULL where the road stopped before. */
typedef struct rc_model {
    rc_config *cfg;
    rc_graph *graph;
    rc_setting setting;
    rc_policy *policy;
    rc_schedule *schedule;
    rc_cost *cost;
} rc_model;

/* Words of a command line: config files and key=value overrides, later ones winning.
 * errors  RC_E_INPUT without a file and without overrides, for unknown keys, and for settings that
 *         Megatron refuses */
RC_MUST_CHECK
rc_code rc_model_read(const rc_args *args, rc_arena *mem, rc_model *out, rc_error *err);

/* From out->cfg to out->cost, in the engine profile. Prints to standard output what `dump` names
 * ("graph,policy,schedule,cost"; NULL nothing) as each noun is made, and to standard
 * error which labels of the setting act on no layer. */
RC_MUST_CHECK
rc_code rc_model_make(rc_model *out, const char *dump, rc_arena *mem, rc_error *err);

#define RC_DUMP_OPTION                                                                         \
    {                                                                                          \
        "--dump", "NOUN,...", "print nouns on the way: config, graph, policy, schedule, cost", \
            false                                                                              \
    }

#endif
