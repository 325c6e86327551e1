/* passes.c — the pipeline: config, graph, policy, schedule, cost.
 *
 * takes  rc_config, or a graph and a setting
 * gives  every noun up to the one that is asked for
 * next   exec/ runs the schedule, report/ prints the cost, plan/ compares settings
 */
#include <recompute/passes.h>

#include "schedule/passes.h"

#include <recompute/read.h>

#include <string.h>

static const char *const names[RC_NOUN_COUNT] = {
    [RC_NOUN_CONFIG] = "config",     [RC_NOUN_GRAPH] = "graph", [RC_NOUN_POLICY] = "policy",
    [RC_NOUN_SCHEDULE] = "schedule", [RC_NOUN_COST] = "cost",
};

const char *rc_noun_name(rc_noun noun)
{
    return names[noun];
}

bool rc_noun_find(const char *name, size_t n, rc_noun *out)
{
    for (int i = 0; i < RC_NOUN_COUNT; i++) {
        if (strlen(names[i]) != n || strncmp(names[i], name, n) != 0)
            continue;
        *out = (rc_noun)i;
        return true;
    }
    return false;
}

static rc_code make_graph(rc_passes *passes, rc_arena *mem, rc_error *err)
{
    const rc_graph_request request = {
        .cfg = passes->cfg,
        .profile = passes->profile,
        .n_words = passes->profile == RC_PROFILE_ENGINE ? RC_TEXT_VOCAB : 0,
        .chunk = passes->chunk};
    rc_graph *graph;
    if (passes->graph)
        return RC_OK;
    RC_TRY(rc_graph_make(&request, mem, &graph, err));
    passes->graph = graph;
    return RC_OK;
}

static rc_code make_policy(rc_passes *passes, rc_arena *mem, rc_error *err)
{
    if (passes->policy)
        return RC_OK;
    return rc_policy_make(passes->graph, passes->setting, mem, &passes->policy, err);
}

static rc_code make_schedule(rc_passes *passes, rc_arena *mem, rc_error *err)
{
    if (passes->schedule)
        return RC_OK;
    if (passes->is_last_layer_kept)
        return rc_schedule_make_as(passes->policy, *passes->is_last_layer_kept,
                                   passes->n_threads, mem, &passes->schedule, err);
    return rc_schedule_make(passes->policy, passes->n_threads, mem, &passes->schedule, err);
}

static rc_code make_cost(rc_passes *passes, rc_arena *mem, rc_error *err)
{
    if (passes->cost)
        return RC_OK;
    return rc_cost_make(passes->schedule, mem, &passes->cost, err);
}

/* A setting that cannot be read is told before a graph is made: it stands in the same file, and is the
 * smaller thing to put right. */
static rc_code find_setting(rc_passes *passes, rc_error *err)
{
    if (passes->setting)
        return RC_OK;
    RC_TRY(rc_setting_make(passes->cfg, &passes->config_setting, err));
    passes->setting = &passes->config_setting;
    return RC_OK;
}

rc_code rc_passes_make(rc_passes *passes, rc_noun last, rc_arena *mem, rc_error *err)
{
    static rc_code (*const makers[RC_NOUN_COUNT])(rc_passes *, rc_arena *, rc_error *) = {
        [RC_NOUN_GRAPH] = make_graph,
        [RC_NOUN_POLICY] = make_policy,
        [RC_NOUN_SCHEDULE] = make_schedule,
        [RC_NOUN_COST] = make_cost,
    };
    if (last > RC_NOUN_CONFIG)
        RC_TRY(find_setting(passes, err));
    for (int noun = RC_NOUN_GRAPH; noun <= (int)last; noun++)
        RC_TRY(makers[noun](passes, mem, err));
    return RC_OK;
}

void rc_passes_print(const rc_passes *passes, rc_noun noun, FILE *to)
{
    if (noun == RC_NOUN_CONFIG && passes->cfg)
        rc_config_print(passes->cfg, to);
    if (noun == RC_NOUN_GRAPH && passes->graph)
        rc_graph_print(passes->graph, to);
    if (noun == RC_NOUN_POLICY && passes->policy)
        rc_policy_print(passes->policy, to);
    if (noun == RC_NOUN_SCHEDULE && passes->schedule)
        rc_schedule_print(passes->schedule, to);
    if (noun == RC_NOUN_COST && passes->cost)
        rc_cost_print(passes->cost, to);
}
