/* passes.h — the pipeline, once: from a config to a graph, a policy, a schedule and its cost.
 *
 * Every command, a training run and the tests make their nouns here, in this order, each once. What is
 * there already is taken as it is: a caller may bring a graph or a policy of its own.
 */
#ifndef RECOMPUTE_PASSES_H
#define RECOMPUTE_PASSES_H

#include <recompute/cost.h>

RC_EXTERN_C_BEGIN

typedef enum rc_noun {
    RC_NOUN_CONFIG,
    RC_NOUN_GRAPH,
    RC_NOUN_POLICY,
    RC_NOUN_SCHEDULE,
    RC_NOUN_COST,
    RC_NOUN_COUNT
} rc_noun;

typedef struct rc_passes {
    /* given; may be NULL where a graph and a setting are */
    const rc_config *cfg;
    rc_profile profile;
    /* the part of the model; NULL: all of it */
    const rc_chunk *chunk;
    /* threads of the engine, for its kernels' scratch; at least 1 from the schedule on */
    int n_threads;
    /* instead of the config's; NULL: the config's */
    const rc_setting *setting;
    /* whether the schedule keeps what the last layer makes, for a caller who knows what
     * rc_schedule_make would choose; NULL: it chooses */
    const bool *is_last_layer_kept;

    /* made, or NULL */
    const rc_graph *graph;
    rc_policy *policy;
    rc_schedule *schedule;
    rc_cost *cost;
    /* where `setting` points when it was the config's */
    rc_setting config_setting;
} rc_passes;

/**
 * Makes every noun up to `last` that is not there yet.
 *
 * takes   passes  as above. A model without a vocabulary has that of text read as bytes,
 *                 RC_TEXT_VOCAB, in the profile of the engine, and is refused in the others
 * errors  those of rc_graph_make, rc_setting_make, rc_policy_make, rc_schedule_make, rc_cost_make;
 *         what was made before the failure stands in `passes`
 */
RC_MUST_CHECK
RC_API rc_code rc_passes_make(rc_passes *passes, rc_noun last, rc_arena *mem, rc_error *err);
/* Prints a noun that was made; nothing where it was not. */
RC_API void rc_passes_print(const rc_passes *passes, rc_noun noun, FILE *to);

/* "config", "graph", ... */
RC_API const char *rc_noun_name(rc_noun noun);
/* The noun of a name of `n` letters; false where there is none. */
RC_API bool rc_noun_find(const char *name, size_t n, rc_noun *out);

RC_EXTERN_C_END

#endif
