/* rules_advice_layers.c — how many layers are recomputed, and how many wait in the pipeline. */
#include "check/advice.h"
#include "check/model.h"

#include <math.h>
#include <string.h>

/* Layers of a model chunk, or 0 when they are not known or not even. Embedding and loss that count as
 * layers leave no even split but for two chunks, which have a layer less each. */
static double chunk_layers(rc_checking *checking)
{
    double n_chunks = NUMBER(pipeline_model_parallel_size);
    if (!IS_NULL(virtual_pipeline_model_parallel_size))
        n_chunks *= NUMBER(virtual_pipeline_model_parallel_size);
    if (rc_model_has_own_split(checking) || n_chunks < 1.0 ||
        fmod(NUMBER(num_layers), n_chunks) > 0.0)
        return 0.0;
    return NUMBER(num_layers) / n_chunks;
}

/* The inputs that the first stage keeps of its groups, and one group come back whole. */
static double peak_of_groups(rc_checking *checking, const rc_sizes *sizes, double group)
{
    double n_layers = fmin(group, sizes->chunk);
    return sizes->n_held * sizes->v * ceil(sizes->chunk / group) *
               rc_sizes_input(checking, sizes) +
           n_layers * rc_sizes_whole_layer(checking, sizes);
}

/* What backward's transients add is the same for all groups and not counted: within a twentieth two
 * groups are alike. Where many micro-batches wait, even one group for all may be the best. */
static void uniform_groups(rc_checking *checking, const rc_sizes *sizes, double n_layers,
                           double group)
{
    double peak = peak_of_groups(checking, sizes, group),
           least = peak_of_groups(checking, sizes, 1.0);
    bool is_known = rc_sizes_whole_layer(checking, sizes) > 0.0 && sizes->chunk > 0.0;
    char buf[32], least_buf[32];
    if (group >= n_layers && is_known && peak > least)
        WARN_HERE(uniform_group_covers_stage, NULL,
                  "activations peak at about %s %s, with groups of 1 at %s",
                  rc_sizes_say(peak, buf), rc_sizes_say_stage(sizes),
                  rc_sizes_say(least, least_buf));
    else if (group >= n_layers && !is_known)
        WARN(uniform_group_covers_stage);
    else if (group > 1.0 && group < n_layers && is_known && peak > 1.05 * least)
        WARN_HERE(uniform_group_raises_peak, NULL,
                  "groups of %g peak at about %s %s, groups of 1 at %s", group,
                  rc_sizes_say(peak, buf), rc_sizes_say_stage(sizes),
                  rc_sizes_say(least, least_buf));
    if (group >= 1.0 && group < n_layers &&
        rc_checking_need_rest(checking, n_layers, group, RC_RULE_python_zero_division))
        WARN(uniform_group_does_not_divide);
}

static void counts_in_chunks(rc_checking *checking, const rc_sizes *sizes, double group)
{
    double n_done = fmin(group, sizes->chunk) * sizes->v;
    if (IS_NULL(virtual_pipeline_model_parallel_size) || !(group > 1.0))
        return;
    if (IS(recompute_method, "block") && sizes->chunk > 0.0)
        WARN_HERE(layer_count_per_chunk, NULL, "%g of the %g layers of a stage are recomputed",
                  n_done, sizes->chunk * sizes->v);
    else
        WARN(layer_count_per_chunk);
}

static void layer_counts(rc_checking *checking, const rc_sizes *sizes)
{
    if (!rc_checking_is_full(checking) || IS_NULL(recompute_num_layers))
        return;
    double n_layers = chunk_layers(checking), group = NUMBER(recompute_num_layers);
    counts_in_chunks(checking, sizes, group);
    if (IS(recompute_method, "uniform") && n_layers >= 2.0)
        uniform_groups(checking, sizes, n_layers, group);
}

/* The first layers of a chunk are recomputed; the rest is what waits in the pipeline. */
static void block_tail(rc_checking *checking, const rc_sizes *sizes, double n_layers)
{
    double n_left = n_layers - NUMBER(recompute_num_layers);
    double kept = n_left * sizes->v * sizes->n_held * rc_sizes_whole_layer(checking, sizes);
    char buf[32];
    if (kept > 0.0)
        WARN_HERE(block_leaves_tail, NULL,
                  "%g of %g layers of a chunk are left: %s of activations on the first stage",
                  n_left, n_layers, rc_sizes_say(kept, buf));
    else
        WARN(block_leaves_tail);
}

static void block_layers(rc_checking *checking, const rc_sizes *sizes)
{
    double n_layers = chunk_layers(checking);
    if (!rc_checking_is_full(checking) || !IS(recompute_method, "block") ||
        IS_NULL(recompute_num_layers) || !ABOVE(recompute_num_layers, 0) || !(n_layers > 0.0))
        return;
    if (ABOVE(recompute_num_layers, n_layers))
        WARN_HERE(block_covers_chunk, NULL, "%g layers", n_layers);
    if (BELOW(recompute_num_layers, n_layers) && ABOVE(pipeline_model_parallel_size, 1))
        block_tail(checking, sizes, n_layers);
}

/* A quarter more than plain 1F1B: less is what people pay for a smaller bubble, knowing it. */
static void interleaving(rc_checking *checking, const rc_sizes *sizes)
{
    if (!(sizes->n_held >= 1.25 * sizes->n_plain))
        return;
    double stage = sizes->first * rc_sizes_layer(checking, sizes);
    double more = (sizes->n_held - sizes->n_plain) * stage;
    char buf[32];
    if (!rc_sizes_is_much(more))
        return;
    WARN_HERE(interleaving_holds_more, NULL,
              "%g chunks, as much as %.3g micro-batches, where %g would wait without: %s more",
              sizes->n_held * sizes->v, sizes->n_held, sizes->n_plain, rc_sizes_say(more, buf));
}

/* "M-M*-": attention, MLP, experts and mixers are a layer each; other letters split stages. */
static void hybrid_symbols(rc_checking *checking)
{
    const rc_doc *pattern =
        checking->at[IS_NULL(hybrid_layer_pattern) ? RC_CHECKED_hybrid_override_pattern
                                                   : RC_CHECKED_hybrid_layer_pattern];
    if (!rc_checking_is_full(checking) || pattern->kind != RC_DOC_STRING ||
        IS_NULL(recompute_num_layers) ||
        !(IS(recompute_method, "block") || ABOVE(recompute_num_layers, 1)))
        return;
    size_t n_symbols = 0, n_attention = 0;
    for (const char *at = pattern->text; *at && *at != '/'; at++) {
        n_symbols += strchr("M*-EGDL", *at) != NULL;
        n_attention += *at == '*';
    }
    WARN_HERE(hybrid_symbols_are_layers, NULL, "%zu layers, %zu of them attention", n_symbols,
              n_attention);
}

void rc_advice_layers(rc_checking *checking, const rc_sizes *sizes)
{
    layer_counts(checking, sizes);
    block_layers(checking, sizes);
    interleaving(checking, sizes);
    hybrid_symbols(checking);
}
