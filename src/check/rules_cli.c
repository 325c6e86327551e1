/* rules_cli.c — what Megatron-LM's argument checks refuse, repair or derive, in their order. */
#include "check/core.h"

#include <string.h>

static void activations_switches(rc_core *core)
{
    if (ON(checkpoint_activations))
        RAISE(cli_checkpoint_activations_gone);
    if (!ON(recompute_activations))
        return;
    if (!IS_NULL(recompute_granularity) && !rc_core_is_selective(core))
        WARN(cli_recompute_activations);
    if (!core->is_given[RC_CORE_recompute_granularity])
        core->given[RC_CORE_recompute_granularity] = core->given[RC_CORE_recompute_activations];
    core->is_given[RC_CORE_recompute_granularity] = true;
    rc_core_give_text(core, RC_CORE_recompute_granularity, "selective");
}

static void graph_names(rc_core *core)
{
    bool is_old = ON(enable_cuda_graph) || ON(external_cuda_graph);
    if (is_old &&
        (!IS(cuda_graph_impl, "none") || (ON(enable_cuda_graph) && ON(external_cuda_graph)))) {
        RAISE(cli_legacy_graph_flags);
        core->is_told[RC_RULE_legacy_graph_flags_exclude_graph_impl] = true;
        core->is_told[RC_RULE_legacy_graph_flags_exclusive] = true;
    }
    bool has_modules = core->is_given[RC_CORE_cuda_graph_modules] && ON(cuda_graph_modules);
    if (!IS_NULL(cuda_graph_scope) && has_modules) {
        RAISE(cli_graph_scope_alias);
        core->is_told[RC_RULE_graph_scope_alias_excludes_graph_modules] = true;
    }
    rc_core_field list =
        IS_NULL(cuda_graph_scope) ? RC_CORE_cuda_graph_modules : RC_CORE_cuda_graph_scope;
    if (core->is_given[list] && !rc_core_is_null(core, list) &&
        (rc_core_has(core, list, "full") || rc_core_has(core, list, "full_iteration") ||
         rc_core_has(core, list, "full_iteration_inference")))
        WARN(cli_graph_scope_normalised);
}

static void even_split(rc_core *core)
{
    double n_stages = NUMBER(pipeline_model_parallel_size);
    double n_layers = NUMBER(num_layers) + ON(account_for_embedding_in_pipeline_split) +
                      ON(account_for_loss_in_pipeline_split);
    if (rc_core_has_own_split(core) || !core->is_given[RC_CORE_num_layers] || n_stages < 1.0)
        return;
    bool is_uneven =
        rc_core_has_rest(core, n_layers, n_stages, RC_RULE_pipeline_size_zero_crash);
    if (!is_uneven && !IS_NULL(num_layers_per_virtual_pipeline_stage))
        is_uneven = rc_core_has_rest(core, n_layers / n_stages,
                                     NUMBER(num_layers_per_virtual_pipeline_stage),
                                     RC_RULE_python_zero_division);
    if (!is_uneven)
        return;
    RAISE(cli_even_pipeline_split);
    core->is_told[RC_RULE_split_accounting_layers_divisible_by_pp] = true;
    core->is_told[RC_RULE_build_even_split] = true;
}

static void virtual_stages(rc_core *core)
{
    int n_ways = !IS_NULL(pipeline_model_parallel_layout) +
                 !IS_NULL(num_layers_per_virtual_pipeline_stage) +
                 !IS_NULL(num_virtual_stages_per_pipeline_rank);
    bool is_virtual = !IS_NULL(num_layers_per_virtual_pipeline_stage) ||
                      !IS_NULL(num_virtual_stages_per_pipeline_rank);
    if (n_ways > 1)
        RAISE(cli_layout_stage_count);
    if (is_virtual &&
        !ABOVE(pipeline_model_parallel_size, ON(overlap_p2p_communication) ? 1 : 2))
        RAISE(cli_vpp_needs_pipeline);
}

static void graph_settings(rc_core *core)
{
    bool is_full_iteration = IS(cuda_graph_impl, "full_iteration");
    if (is_full_iteration && ON(check_for_nan_in_loss))
        RAISE(cli_full_iteration_no_nan_check);
    if (IS(inference_cuda_graph_scope, "block") && ON(fp8) &&
        (!IS(transformer_impl, "inference_optimized") || !IS(fp8_recipe, "mxfp8")))
        RAISE(cli_inference_block_fp8);
    if (IS(cuda_graph_impl, "local") && !ABOVE(inference_dynamic_batching_num_cuda_graphs, 0) &&
        !rc_core_is_number(core, RC_CORE_inference_dynamic_batching_num_cuda_graphs, -1))
        RAISE(cli_local_graph_count);
}

static void recompute(rc_core *core)
{
    if (ON(distribute_saved_activations)) {
        if (!ABOVE(tensor_model_parallel_size, 1))
            RAISE(cli_distribute_saved_needs_tensor_parallel);
        if (!IS(recompute_granularity, "full"))
            RAISE(cli_distribute_saved_needs_full);
        if (IS_NULL(recompute_method))
            RAISE(cli_distribute_saved_needs_method);
    }
    if (rc_core_is_selective(core) && !IS_NULL(recompute_method)) {
        RAISE(cli_selective_forbids_method);
        core->is_told[RC_RULE_selective_ignores_method] = true;
    }
}

static void parallel(rc_core *core)
{
    if (ON(sequence_parallel) &&
        rc_core_is_number(core, RC_CORE_tensor_model_parallel_size, 1)) {
        WARN(cli_sequence_parallel_off_without_tp);
        rc_core_give_bool(core, RC_CORE_sequence_parallel, false);
    }
    if (ON(hybrid_context_parallel) && ON(enable_cuda_graph))
        RAISE(cli_hybrid_cp_no_graph);
    if (ON(overlap_moe_expert_parallel_comm) && IS(cuda_device_max_connections, "1") &&
        (ABOVE(tensor_model_parallel_size, 1) || ABOVE(context_parallel_size, 1)))
        WARN(cli_ep_overlap_connections);
}

static void weight_rematerialisation(rc_core *core)
{
    bool is_on =
        ABOVE(gtp_weight_remat_size, 1) ||
        (!IS_NULL(tensor_parallel_num_weight_shards) &&
         NUMBER(tensor_parallel_num_weight_shards) > NUMBER(tensor_model_parallel_size));
    if (is_on && rc_core_has_graphs(core) && !IS(cuda_graphs_use_node_priority, "1"))
        WARN(cli_gtp_graph_env);
    if (is_on && ON(fp4) && !ON(fp4_param))
        RAISE(cli_gtp_fp4_param_gather);
}

/* Attention is captured by name or with the whole layer; the router matters where shared experts
 * run right behind it. */
static bool captures(rc_core *core, const char *module)
{
    bool is_named = ON(cuda_graph_modules) && !IS(cuda_graph_modules, "full");
    return rc_core_has_graphs(core) && (!is_named || HAS(cuda_graph_modules, module));
}

static bool is_capturable(rc_core *core, bool is_attn)
{
    bool has_bias = ON(add_bias_linear) || ON(add_qkv_bias);
    return !rc_te_is_below(&core->te, "2.12.0") && ON(gradient_accumulation_fusion) &&
           !(is_attn && has_bias);
}

static void delayed_gradients(rc_core *core)
{
    bool has_shared =
        !IS_NULL(moe_shared_expert_intermediate_size) && !ON(moe_shared_expert_overlap);
    bool is_attn = captures(core, "attn");
    bool is_captured = is_attn || (has_shared && captures(core, "moe_router"));
    if (!ON(delay_wgrad_compute))
        return;
    if (!IS(transformer_impl, "transformer_engine") ||
        (ON(overlap_grad_reduce) && rc_te_is_below(&core->te, "2.8.0")) ||
        (!ON(gradient_accumulation_fusion) && rc_te_is_below(&core->te, "2.7.0")) ||
        (is_captured && !is_capturable(core, is_attn)))
        RAISE(cli_delay_wgrad_graphs);
}

static void offload(rc_core *core)
{
    bool is_new = !rc_te_is_below(&core->te, "2.10.0");
    if (ON(fine_grained_activation_offloading)) {
        bool is_off = !IS_NULL(nvte_cpu_offload_v1) && !IS(nvte_cpu_offload_v1, "1");
        if (!IS(transformer_impl, "transformer_engine") || (is_new && is_off))
            RAISE(cli_fine_grained_offload_te);
        else if (is_new && IS_NULL(nvte_cpu_offload_v1))
            WARN(cli_fine_grained_offload_env);
    }
    if (ABOVE(cpu_offloading_num_layers, 0)) {
        WARN(cli_cpu_offload_derived);
        rc_core_give_bool(core, RC_CORE_cpu_offloading, true);
    }
}

static void graph_environment(rc_core *core)
{
    if (rc_core_has_graphs(core) && IS(transformer_impl, "transformer_engine") &&
        !ON(use_te_rng_tracker))
        WARN(cli_graph_te_rng_tracker);
    if ((IS(cuda_graph_impl, "transformer_engine") || ON(external_cuda_graph)) &&
        rc_core_has_expandable_segments(core) && !IS(nccl_graph_register, "0"))
        RAISE(cli_te_graph_allocator_env);
    if (IS(cuda_graph_impl, "full_iteration") && ON(cuda_graph_modules) &&
        !IS(cuda_graph_modules, "full")) {
        RAISE(cli_full_iteration_forbids_modules);
        core->is_told[RC_RULE_full_iteration_graph_forbids_modules] = true;
    }
}

void rc_core_cli(rc_core *core)
{
    activations_switches(core);
    graph_names(core);
    even_split(core);
    virtual_stages(core);
    graph_settings(core);
    recompute(core);
    parallel(core);
    weight_rematerialisation(core);
    delayed_gradients(core);
    offload(core);
    graph_environment(core);
}
