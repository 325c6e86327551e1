/* rules_graph.c — CUDA graphs with experts, recompute, dropout and offloading. Names are today's:
 * rules_graph_names.c came before. */
#include "check/core.h"

#include <string.h>

static bool is_te(const rc_core *core)
{
    return IS(cuda_graph_impl, "transformer_engine");
}

static bool is_local(const rc_core *core)
{
    return IS(cuda_graph_impl, "local");
}

/* Until 0.17 the full iteration was a scope of impl local. */
static bool is_full_iteration(rc_core *core)
{
    if (SINCE("0.18"))
        return IS(cuda_graph_impl, "full_iteration");
    return SINCE("0.16") && is_local(core) && HAS(cuda_graph_modules, "full_iteration");
}

static bool is_per_layer(rc_core *core)
{
    return (is_te(core) || is_local(core)) && !is_full_iteration(core);
}

/* A part is captured by its name, or with the whole layer, or with the iteration. */
bool rc_core_captures(rc_core *core, const char *module)
{
    return is_full_iteration(core) ||
           (is_per_layer(core) && (!ON(cuda_graph_modules) || HAS(cuda_graph_modules, module)));
}

static void router_pair(rc_core *core)
{
    bool has_router = HAS(cuda_graph_modules, "moe_router");
    if (has_router == HAS(cuda_graph_modules, "moe_preprocess"))
        return;
    rc_doc *list = rc_core_new_list(core);
    for (const rc_doc *item = core->at[RC_CORE_cuda_graph_modules]->child; item;
         item = item->next)
        rc_core_list_add(core, list, item->text);
    rc_core_list_add(core, list, has_router ? "moe_preprocess" : "moe_router");
    if (list)
        rc_core_set(core, RC_CORE_cuda_graph_modules, list,
                    RC_RULE_set_local_graph_router_pair);
}

/* More than one expert. */
static void captured_experts(rc_core *core)
{
    bool has_capacity = !IS_NULL(moe_expert_capacity_factor);
    if (rc_core_is_every_layer_moe(core) && HAS(cuda_graph_modules, "mlp"))
        RAISE(graph_mlp_needs_dense_layer);
    if (has_capacity && ON(moe_pad_expert_input_to_capacity))
        return;
    if (HAS(cuda_graph_modules, "moe"))
        RAISE(graph_moe_needs_drop_and_pad);
    if (IS(moe_token_dispatcher_type, "alltoall") &&
        HAS(cuda_graph_modules, "moe_preprocess") &&
        (has_capacity || ON(moe_router_padding_for_fp8)))
        RAISE(graph_moe_preprocess_excludes_host_sync);
}

static void per_layer(rc_core *core)
{
    bool has_moe = HAS(cuda_graph_modules, "moe");
    if (is_local(core))
        router_pair(core);
    bool has_router = HAS(cuda_graph_modules, "moe_router");
    if (is_te(core) && HAS(cuda_graph_modules, "full_iteration"))
        RAISE(full_iteration_scope_needs_local); /* 0.16 and 0.17 */
    if (has_moe && has_router)
        RAISE(graph_moe_excludes_moe_router);
    if (is_te(core) && HAS(cuda_graph_modules, "moe_preprocess") && !has_router)
        RAISE(graph_moe_preprocess_needs_moe_router);
    if (!IS_NULL(num_moe_experts) && ABOVE(num_moe_experts, 1))
        captured_experts(core);
    else if (has_moe || has_router)
        RAISE(graph_moe_needs_moe_model);
}

void rc_core_graphs(rc_core *core)
{
    if (IS(cuda_graph_impl, "full_iteration") && ON(cuda_graph_modules))
        RAISE(full_iteration_graph_forbids_modules);
    bool is_graphed = is_te(core) || is_local(core);
    bool is_old = !SINCE("0.15") && ON(enable_cuda_graph);
    if (ON(cpu_offloading) && (is_graphed || is_old))
        RAISE(graph_excludes_cpu_offload);
    if (ON(recompute_granularity) && is_old)
        RAISE(graphs_exclude_recompute);
    if (is_per_layer(core) && SINCE("0.16"))
        per_layer(core);
}

/* Release 0.15 only. */
static void graphs_0_15(rc_core *core)
{
    bool is_attn = IS(cuda_graph_modules, "attn");
    if (SINCE("0.16") || !SINCE("0.15") || IS(cuda_graph_impl, "none") ||
        IS_NULL(recompute_granularity))
        return;
    if (!rc_core_is_selective(core) || !is_te(core) || !is_attn || RECOMPUTES("core_attn") ||
        RECOMPUTES("mla_up_proj"))
        RAISE(graph_recompute_0_15);
    else if (RECOMPUTES("layernorm"))
        WARN_ITEM(warn_attn_graph_keeps_norm_0_15, "layernorm");
}

static void captured_dropout(rc_core *core)
{
    if (RECOMPUTES("core_attn") && rc_core_captures(core, "attn") &&
        !rc_core_is_number(core, RC_CORE_attention_dropout, 0.0))
        RAISE(graphed_core_attn_recompute_excludes_attention_dropout);
    bool has_dropout = !rc_core_is_number(core, RC_CORE_hidden_dropout, 0.0);
    if (has_dropout && RECOMPUTES("mlp") && rc_core_captures(core, "mlp"))
        RAISE_ITEM(graphed_mlp_or_moe_recompute_excludes_hidden_dropout, "mlp");
    if (has_dropout && RECOMPUTES("moe") && rc_core_captures(core, "moe"))
        RAISE_ITEM(graphed_mlp_or_moe_recompute_excludes_hidden_dropout, "moe");
    if (RECOMPUTES("moe") && rc_core_captures(core, "moe") && !IS_NULL(moe_input_jitter_eps))
        RAISE(graphed_moe_recompute_excludes_input_jitter);
}

static void captured_weight_shards(rc_core *core)
{
    bool is_moe_captured =
        rc_core_captures(core, "moe") || rc_core_captures(core, "moe_router");
    if (SINCE("0.19") && ABOVE(gtp_weight_remat_size, 1) && is_local(core) &&
        (!IS_NULL(fp8) || !IS_NULL(fp4)) && !IS_NULL(moe_shared_expert_intermediate_size) &&
        !ON(moe_shared_expert_overlap) && is_moe_captured && RECOMPUTES("shared_experts"))
        RAISE(gtp_local_graph_excludes_shared_experts_recompute);
}

void rc_core_graph_recompute(rc_core *core)
{
    if (IS(recompute_granularity, "full") && is_per_layer(core))
        RAISE(full_recompute_needs_full_iteration_graph);
    graphs_0_15(core);
    if (!SINCE("0.16") || !rc_core_is_selective(core) || IS(cuda_graph_impl, "none"))
        return;
    if (RECOMPUTES("moe") && is_te(core) && HAS(cuda_graph_modules, "moe_router"))
        RAISE(moe_recompute_excludes_te_graph_moe_router);
    captured_dropout(core);
    captured_weight_shards(core);
}

static void local_offload(rc_core *core)
{
    for (const rc_doc *item = core->at[RC_CORE_offload_modules]->child; item; item = item->next)
        if (item->kind != RC_DOC_STRING ||
            (strcmp(item->text, "expert_fc1") != 0 && strcmp(item->text, "moe_act") != 0 &&
             strcmp(item->text, "fused_group_mlp") != 0))
            RAISE_ITEM(local_graph_offload_module_unsupported, item->text);
    if (!ON(cuda_graph_modules))
        RAISE(local_graph_offload_needs_partial_graph);
    if (HAS(cuda_graph_modules, "moe"))
        RAISE(local_graph_moe_excludes_fine_grained_offload);
}

void rc_core_graph_offload(rc_core *core)
{
    if (!ON(fine_grained_activation_offloading) || IS(cuda_graph_impl, "none"))
        return;
    if (is_local(core))
        RAISE(local_graph_excludes_offload_0_18);
    if (is_local(core))
        local_offload(core);
    if (is_te(core) && HAS(cuda_graph_modules, "moe"))
        RAISE(graph_moe_excludes_fine_grained_offload);
    if (SINCE("0.18") && !ABOVE(cuda_graph_warmup_steps, 0))
        RAISE(graph_offload_needs_warmup);
    if (IS(cuda_graph_impl, "full_iteration") &&
        (IS_NULL(fine_grained_offloading_max_inflight_offloads) ||
         BELOW(fine_grained_offloading_max_inflight_offloads, 0)))
        RAISE(full_iteration_graph_offload_needs_inflight_cap);
}
