/* rules_graph.c — CUDA graphs with experts, recompute, dropout and offloading. Names are today's:
 * rules_graph_names.c came before. */
#include "check/layers.h"
#include "check/model.h"

#include <string.h>

static bool is_te(const rc_checking *checking)
{
    return IS(cuda_graph_impl, "transformer_engine");
}

static bool is_local(const rc_checking *checking)
{
    return IS(cuda_graph_impl, "local");
}

/* Until 0.17 the full iteration was a scope of impl local. */
static bool is_full_iteration(rc_checking *checking)
{
    if (SINCE(0_18))
        return IS(cuda_graph_impl, "full_iteration");
    return SINCE(0_16) && is_local(checking) && IN(cuda_graph_modules, "full_iteration");
}

static bool is_per_layer(rc_checking *checking)
{
    return (is_te(checking) || is_local(checking)) && !is_full_iteration(checking);
}

/* A part is captured by its name, or with the whole layer, or with the iteration. */
bool rc_checking_need_captured(rc_checking *checking, const char *module)
{
    return is_full_iteration(checking) ||
           (is_per_layer(checking) &&
            (!ON(cuda_graph_modules) || IN(cuda_graph_modules, module)));
}

static void router_pair(rc_checking *checking)
{
    bool has_router = IN(cuda_graph_modules, "moe_router");
    if (has_router == IN(cuda_graph_modules, "moe_preprocess"))
        return;
    rc_doc *list = rc_checking_new_list(checking);
    for (const rc_doc *item = checking->at[RC_CHECKED_cuda_graph_modules]->child; item;
         item = item->next)
        rc_checking_list_add(checking, list, item->text);
    rc_checking_list_add(checking, list, has_router ? "moe_preprocess" : "moe_router");
    if (list)
        rc_checking_set(checking, RC_CHECKED_cuda_graph_modules, list,
                        RC_RULE_set_local_graph_router_pair);
}

/* More than one expert. */
static void captured_experts(rc_checking *checking)
{
    bool has_capacity = !IS_NULL(moe_expert_capacity_factor);
    if (rc_model_is_every_layer_moe(checking) && IN(cuda_graph_modules, "mlp"))
        RAISE(graph_mlp_needs_dense_layer);
    if (has_capacity && ON(moe_pad_expert_input_to_capacity))
        return;
    if (IN(cuda_graph_modules, "moe"))
        RAISE(graph_moe_needs_drop_and_pad);
    if (IS(moe_token_dispatcher_type, "alltoall") && IN(cuda_graph_modules, "moe_preprocess") &&
        (has_capacity || ON(moe_router_padding_for_fp8)))
        RAISE(graph_moe_preprocess_excludes_host_sync);
}

static void per_layer(rc_checking *checking)
{
    bool has_moe = IN(cuda_graph_modules, "moe");
    if (is_local(checking))
        router_pair(checking);
    bool has_router = IN(cuda_graph_modules, "moe_router");
    if (is_te(checking) && IN(cuda_graph_modules, "full_iteration"))
        RAISE(full_iteration_scope_needs_local); /* 0.16 and 0.17 */
    if (has_moe && has_router)
        RAISE(graph_moe_excludes_moe_router);
    if (is_te(checking) && IN(cuda_graph_modules, "moe_preprocess") && !has_router)
        RAISE(graph_moe_preprocess_needs_moe_router);
    if (!IS_NULL(num_moe_experts) && ABOVE(num_moe_experts, 1))
        captured_experts(checking);
    else if (has_moe || has_router)
        RAISE(graph_moe_needs_moe_model);
}

void rc_core_graphs(rc_checking *checking)
{
    if (IS(cuda_graph_impl, "full_iteration") && ON(cuda_graph_modules))
        RAISE(full_iteration_graph_forbids_modules);
    bool is_graphed = is_te(checking) || is_local(checking);
    bool is_old = !SINCE(0_15) && ON(enable_cuda_graph);
    if (ON(cpu_offloading) && (is_graphed || is_old))
        RAISE(graph_excludes_cpu_offload);
    if (ON(recompute_granularity) && is_old)
        RAISE(graphs_exclude_recompute);
    if (is_per_layer(checking) && SINCE(0_16))
        per_layer(checking);
}

/* Release 0.15 only. */
static void graphs_0_15(rc_checking *checking)
{
    bool is_attn = IS(cuda_graph_modules, "attn");
    if (SINCE(0_16) || !SINCE(0_15) || IS(cuda_graph_impl, "none") ||
        IS_NULL(recompute_granularity))
        return;
    if (!rc_checking_is_selective(checking) || !is_te(checking) || !is_attn ||
        RECOMPUTES(core_attn) || RECOMPUTES(mla_up_proj))
        RAISE(graph_recompute_0_15);
    else if (RECOMPUTES(layernorm))
        WARN_ITEM(warn_attn_graph_keeps_norm_0_15, "layernorm");
}

static void captured_dropout(rc_checking *checking)
{
    if (RECOMPUTES(core_attn) && rc_checking_need_captured(checking, "attn") &&
        !rc_checking_is_number(checking, RC_CHECKED_attention_dropout, 0.0))
        RAISE(graphed_core_attn_recompute_excludes_attention_dropout);
    bool has_dropout = !rc_checking_is_number(checking, RC_CHECKED_hidden_dropout, 0.0);
    if (has_dropout && RECOMPUTES(mlp) && rc_checking_need_captured(checking, "mlp"))
        RAISE_ITEM(graphed_mlp_or_moe_recompute_excludes_hidden_dropout, "mlp");
    if (has_dropout && RECOMPUTES(moe) && rc_checking_need_captured(checking, "moe"))
        RAISE_ITEM(graphed_mlp_or_moe_recompute_excludes_hidden_dropout, "moe");
    if (RECOMPUTES(moe) && rc_checking_need_captured(checking, "moe") &&
        !IS_NULL(moe_input_jitter_eps))
        RAISE(graphed_moe_recompute_excludes_input_jitter);
}

static void captured_weight_shards(rc_checking *checking)
{
    bool is_moe_captured = rc_checking_need_captured(checking, "moe") ||
                           rc_checking_need_captured(checking, "moe_router");
    if (SINCE(0_19) && ABOVE(gtp_weight_remat_size, 1) && is_local(checking) &&
        (!IS_NULL(fp8) || !IS_NULL(fp4)) && !IS_NULL(moe_shared_expert_intermediate_size) &&
        !ON(moe_shared_expert_overlap) && is_moe_captured && RECOMPUTES(shared_experts))
        RAISE(gtp_local_graph_excludes_shared_experts_recompute);
}

void rc_core_graph_recompute(rc_checking *checking)
{
    if (IS(recompute_granularity, "full") && is_per_layer(checking))
        RAISE(full_recompute_needs_full_iteration_graph);
    graphs_0_15(checking);
    if (!SINCE(0_16) || !rc_checking_is_selective(checking) || IS(cuda_graph_impl, "none"))
        return;
    if (RECOMPUTES(moe) && is_te(checking) && IN(cuda_graph_modules, "moe_router"))
        RAISE(moe_recompute_excludes_te_graph_moe_router);
    captured_dropout(checking);
    captured_weight_shards(checking);
}

static void local_offload(rc_checking *checking)
{
    for (const rc_doc *item = checking->at[RC_CHECKED_offload_modules]->child; item;
         item = item->next)
        if (item->kind != RC_DOC_STRING ||
            (strcmp(item->text, "expert_fc1") != 0 && strcmp(item->text, "moe_act") != 0 &&
             strcmp(item->text, "fused_group_mlp") != 0))
            RAISE_ITEM(local_graph_offload_module_unsupported, item->text);
    if (!ON(cuda_graph_modules))
        RAISE(local_graph_offload_needs_partial_graph);
    if (IN(cuda_graph_modules, "moe"))
        RAISE(local_graph_moe_excludes_fine_grained_offload);
}

void rc_core_graph_offload(rc_checking *checking)
{
    if (!ON(fine_grained_activation_offloading) || IS(cuda_graph_impl, "none"))
        return;
    if (is_local(checking))
        RAISE(local_graph_excludes_offload_0_18);
    if (is_local(checking))
        local_offload(checking);
    if (is_te(checking) && IN(cuda_graph_modules, "moe"))
        RAISE(graph_moe_excludes_fine_grained_offload);
    if (SINCE(0_18) && !ABOVE(cuda_graph_warmup_steps, 0))
        RAISE(graph_offload_needs_warmup);
    if (IS(cuda_graph_impl, "full_iteration") &&
        (IS_NULL(fine_grained_offloading_max_inflight_offloads) ||
         BELOW(fine_grained_offloading_max_inflight_offloads, 0)))
        RAISE(full_iteration_graph_offload_needs_inflight_cap);
}
