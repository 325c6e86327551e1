/* rules_advice_mlp.c — what MLPs, experts and their routing keep. */
#include "check/advice.h"

static bool are_experts_replayed(rc_checking *checking)
{
    return rc_checking_is_full(checking) || RECOMPUTES(moe);
}

/* The gate's activation, the other half and, with experts, the product before its weight. */
static double unfused_parts(rc_checking *checking, const rc_sizes *sizes)
{
    double dense = 4.0 * sizes->n_tokens * sizes->f / sizes->t;
    double routed = 6.0 * rc_sizes_rows(sizes) * sizes->fe / sizes->et;
    double shared = 4.0 * sizes->n_tokens * sizes->fs / sizes->t, moe = 0.0;
    if (!RECOMPUTES(moe) && !RECOMPUTES(moe_act))
        moe += routed;
    if (!RECOMPUTES(moe) && !RECOMPUTES(shared_experts))
        moe += shared;
    return (RECOMPUTES(mlp) ? 0.0 : (1.0 - sizes->moe_share) * dense) +
           (sizes->moe_share > 0.0 ? sizes->moe_share * moe : 0.0);
}

static void unfused_activation(rc_checking *checking, const rc_sizes *sizes)
{
    bool is_gated =
        ON(gated_linear_unit) && (IS(activation_func, "silu") || IS(activation_func, "gelu") ||
                                  IS(activation_func, "quick_gelu"));
    if (!checking->is_given[RC_CHECKED_bias_activation_fusion] || ON(bias_activation_fusion) ||
        !is_gated || ON(use_te_activation_func) || rc_checking_is_full(checking))
        return;
    double more = unfused_parts(checking, sizes);
    WARN_LAYER(unfused_activation_keeps_more, more);
}

static void stored_input(rc_checking *checking)
{
    bool is_unfused =
        checking->is_given[RC_CHECKED_bias_activation_fusion] && !ON(bias_activation_fusion);
    if (ON(activation_func_fp8_input_store) && (is_unfused || ON(use_te_activation_func)))
        WARN(fp8_input_store_unused);
}

/* As much as a label is worth (shared_experts frees 1/37 of a layer of DeepSeek-V3), and much in
 * sum: where experts are many and narrow. */
static void permutation_map(rc_checking *checking, const rc_sizes *sizes)
{
    if (!ON(moe_permute_fusion) || !IS(moe_token_dispatcher_type, "alltoall") ||
        are_experts_replayed(checking))
        return;
    double map = sizes->n_outer * rc_sizes_row_map(checking, sizes) * sizes->moe_share;
    char buf[32];
    if (map >= sizes->moe_share * rc_sizes_experts(checking, sizes, false) / 37.0 &&
        rc_sizes_is_much(rc_sizes_on_stage(sizes, map)))
        WARN_HERE(permutation_map_grows_with_experts, NULL,
                  "%g bytes a token where the top %g experts need %g: %s %s",
                  rc_sizes_row_map(checking, sizes), sizes->k, 16.0 * sizes->k,
                  rc_sizes_say(rc_sizes_on_stage(sizes, map), buf), rc_sizes_say_stage(sizes));
}

/* One micro-batch's of every layer, whatever is recomputed: attributes of the dispatcher hold them. */
static void kept_maps(rc_checking *checking, const rc_sizes *sizes)
{
    if (!are_experts_replayed(checking))
        return;
    double maps = sizes->n_outer * (5.0 * sizes->experts + rc_sizes_row_map(checking, sizes)) *
                  sizes->moe_share * sizes->first;
    char buf[32];
    if (rc_sizes_is_much(maps))
        WARN_HERE(dispatcher_keeps_maps, NULL, "%s %s, at all times", rc_sizes_say(maps, buf),
                  rc_sizes_say_stage(sizes));
}

static bool has_no_balance(const rc_checking *checking)
{
    rc_checked_field coeff = RC_CHECKED_moe_aux_loss_coeff;
    bool is_loss = IS(moe_router_load_balancing_type, "aux_loss") ||
                   IS(moe_router_load_balancing_type, "seq_aux_loss") ||
                   IS(moe_router_load_balancing_type, "global_aux_loss");
    bool is_zero =
        (checking->is_given[coeff] || checking->framework == RC_FRAMEWORK_MEGATRON_LM) &&
        !rc_checking_is_on(checking, coeff);
    if (checking->cfg->moe_router_enable_expert_bias ||
        checking->cfg->moe_router_force_load_balancing)
        return false;
    return IS(moe_router_load_balancing_type, "none") || (is_loss && is_zero);
}

/* Rows are dropped only above a capacity. */
static void imbalance(rc_checking *checking, const rc_sizes *sizes)
{
    bool is_dropping =
        !IS_NULL(moe_expert_capacity_factor) || !IS_NULL(moe_expert_rank_capacity_factor);
    if (is_dropping || !has_no_balance(checking))
        return;
    double balanced = rc_sizes_experts(checking, sizes, true);
    char mean[32], most[32];
    if (rc_sizes_is_much(balanced * (sizes->ep - 1.0)))
        WARN_HERE(experts_without_balance, NULL,
                  "the experts of one layer take %s balanced and up to %s on one rank",
                  rc_sizes_say(balanced, mean), rc_sizes_say(balanced * sizes->ep, most));
}

static void overlapped_experts(rc_checking *checking, const rc_sizes *sizes)
{
    if (!ON(moe_shared_expert_overlap) || !ON(sequence_parallel) ||
        IS_NULL(moe_shared_expert_intermediate_size) || are_experts_replayed(checking))
        return;
    double more = 2.0 * sizes->n_tokens * sizes->h * sizes->moe_share;
    WARN_LAYER(shared_expert_overlap_keeps_input, more);
}

void rc_advice_mlp(rc_checking *checking, const rc_sizes *sizes)
{
    unfused_activation(checking, sizes);
    stored_input(checking);
    permutation_map(checking, sizes);
    kept_maps(checking, sizes);
    imbalance(checking, sizes);
    overlapped_experts(checking, sizes);
}
