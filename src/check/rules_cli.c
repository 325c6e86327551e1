/* rules_cli.c — what Megatron-LM's argument checks refuse, repair or derive, in their order. */
#include "check/layers.h"
#include "check/model.h"

#include "layout/written.h"

#include <string.h>

static void activations_switches(rc_checking *checking)
{
    if (ON(checkpoint_activations))
        RAISE(cli_checkpoint_activations_gone);
    if (!ON(recompute_activations))
        return;
    if (!IS_NULL(recompute_granularity) && !rc_checking_is_selective(checking))
        WARN(cli_recompute_activations);
    if (!checking->is_given[RC_CHECKED_recompute_granularity])
        checking->given[RC_CHECKED_recompute_granularity] =
            checking->given[RC_CHECKED_recompute_activations];
    checking->is_given[RC_CHECKED_recompute_granularity] = true;
    rc_checking_give_text(checking, RC_CHECKED_recompute_granularity, "selective");
}

/* The launcher settles a switch and says so; what the user gave stays what is blamed. */
static void settle_null(rc_checking *checking, rc_checked_field field)
{
    const rc_doc *given = checking->given[field];
    rc_checking_give_null(checking, field);
    checking->given[field] = given;
}

static bool names_old_graphs(rc_checking *checking, rc_checked_field list)
{
    return checking->is_given[list] && !rc_checking_is_null(checking, list) &&
           (rc_checking_need_item(checking, list, "full") ||
            rc_checking_need_item(checking, list, "full_iteration") ||
            rc_checking_need_item(checking, list, "full_iteration_inference"));
}

/* Names are looked up here first, by the class's own functions, and the old ones are gone. */
static void graph_names(rc_checking *checking)
{
    bool is_old = ON(enable_cuda_graph) || ON(external_cuda_graph);
    if (is_old &&
        (!IS(cuda_graph_impl, "none") || (ON(enable_cuda_graph) && ON(external_cuda_graph)))) {
        RAISE(cli_legacy_graph_flags);
        checking->is_told[RC_RULE_legacy_graph_flags_exclude_graph_impl] = true;
        checking->is_told[RC_RULE_legacy_graph_flags_exclusive] = true;
    }
    bool has_modules =
        checking->is_given[RC_CHECKED_cuda_graph_modules] && ON(cuda_graph_modules);
    if (!IS_NULL(cuda_graph_scope) && has_modules) {
        RAISE(cli_graph_scope_alias);
        checking->is_told[RC_RULE_graph_scope_alias_excludes_graph_modules] = true;
    }
    if (names_old_graphs(checking, IS_NULL(cuda_graph_scope) ? RC_CHECKED_cuda_graph_modules
                                                             : RC_CHECKED_cuda_graph_scope))
        WARN(cli_graph_scope_normalised);
    if (!SINCE(0_18))
        return;
    rc_core_graph_names(checking);
    settle_null(checking, RC_CHECKED_enable_cuda_graph);
    settle_null(checking, RC_CHECKED_external_cuda_graph);
    settle_null(checking, RC_CHECKED_cuda_graph_scope);
}

static void uneven(rc_checking *checking)
{
    RAISE(cli_even_pipeline_split);
    checking->is_told[RC_RULE_split_accounting_layers_divisible_by_pp] = true;
    checking->is_told[RC_RULE_build_even_split] = true;
}

/* Layers with the counted ends over the stages; 0 where they cannot be dealt out. */
static double even_split(rc_checking *checking)
{
    double n_stages = NUMBER(pipeline_model_parallel_size);
    double n_layers = NUMBER(num_layers) + ON(account_for_embedding_in_pipeline_split) +
                      ON(account_for_loss_in_pipeline_split);
    if (!checking->is_given[RC_CHECKED_num_layers] || n_stages < 1.0)
        return 0.0;
    if (!rc_checking_need_rest(checking, n_layers, n_stages, RC_RULE_pipeline_size_zero_crash))
        return n_layers / n_stages;
    uneven(checking);
    return 0.0;
}

static double stages_of_layout(rc_checking *checking)
{
    rc_pipeline_layout stages;
    double n_stages = NUMBER(pipeline_model_parallel_size);
    if (checking->code == RC_OK)
        checking->code =
            rc_pipeline_layout_read(checking->at[RC_CHECKED_pipeline_model_parallel_layout],
                                    checking->mem, &stages, checking->err);
    if (checking->code != RC_OK || n_stages < 1.0)
        return 0.0;
    if (!stages.is_read) {
        RAISE(pp_layout_malformed);
        return 0.0;
    }
    if (!rc_checking_need_rest(checking, (double)stages.n_stages, n_stages,
                               RC_RULE_pipeline_size_zero_crash))
        return (double)stages.n_stages / n_stages;
    RAISE(cli_layout_stage_count);
    checking->is_told[RC_RULE_pp_layout_malformed] =
        true; /* the class would say it once more */
    return 0.0;
}

static double stages_by_layers(rc_checking *checking)
{
    if (!IS_NULL(num_layers_in_first_pipeline_stage) ||
        !IS_NULL(num_layers_in_last_pipeline_stage))
        RAISE(cli_virtual_layers_need_even_stages);
    double n_layers = even_split(checking), n = NUMBER(num_layers_per_virtual_pipeline_stage);
    if (n_layers < 1.0)
        return 0.0;
    if (!rc_checking_need_rest(checking, n_layers, n, RC_RULE_python_zero_division))
        return n_layers / n;
    uneven(checking);
    return 0.0;
}

/* The virtual size has no argument of its own: three others decide it, at most one at a time. */
static void virtual_stages(rc_checking *checking)
{
    bool has_layout = !IS_NULL(pipeline_model_parallel_layout);
    bool has_layers = !IS_NULL(num_layers_per_virtual_pipeline_stage);
    bool has_stages = !IS_NULL(num_virtual_stages_per_pipeline_rank);
    double n_virtual = 0.0;
    if (has_layout + has_layers + has_stages > 1)
        RAISE(cli_layout_stage_count);
    if (has_layout)
        n_virtual = stages_of_layout(checking);
    else if (has_stages)
        n_virtual = NUMBER(num_virtual_stages_per_pipeline_rank);
    else if (has_layers)
        n_virtual = stages_by_layers(checking);
    else if (!rc_model_has_own_split(checking))
        (void)even_split(checking);
    if (n_virtual < 2.0 || n_virtual > 1e6)
        return;
    rc_checking_give_int(checking, RC_CHECKED_virtual_pipeline_model_parallel_size,
                         (int64_t)n_virtual);
    if (!ABOVE(pipeline_model_parallel_size, ON(overlap_p2p_communication) ? 1 : 2))
        RAISE(cli_vpp_needs_pipeline);
}

/* The older switch sets the type behind the check of multi-token prediction. */
static bool is_rope_too_late(const rc_checking *checking)
{
    const rc_where *type = &checking->given[RC_CHECKED_position_embedding_type]->where;
    const rc_where *older = &checking->given[RC_CHECKED_use_rotary_position_embeddings]->where;
    return ON(use_rotary_position_embeddings) && type->line == older->line &&
           type->col == older->col;
}

static void multi_token_prediction(rc_checking *checking)
{
    bool has_type = IS(position_embedding_type, "none") ||
                    (IS(position_embedding_type, "rope") && !is_rope_too_late(checking));
    if (ON(mtp_num_layers) && !has_type)
        RAISE(cli_mtp_position_embedding);
    if (ON(use_rotary_position_embeddings))
        rc_checking_give_text(checking, RC_CHECKED_position_embedding_type, "rope");
}

static void precision(rc_checking *checking)
{
    if (ON(fp4) && ON(fp8))
        RAISE(fp4_fp8_exclusive);
    if (ON(fp4) && rc_te_is_below(&checking->te, "2.7.0.dev0"))
        RAISE(cli_fp4_needs_te_2_7);
    if (ON(fp16)) /* a dynamic loss scale looks for the NaNs itself */
        rc_checking_give_bool(checking, RC_CHECKED_check_for_nan_in_loss, false);
    if (ON(fp16) && ON(bf16)) {
        RAISE(cli_fp16_bf16_exclusive);
        checking->is_told[RC_RULE_fp16_bf16_exclusive] = true;
    }
}

/* Sizes that the trainer divides before any class sees them. */
static void shapes(rc_checking *checking)
{
    bool has_width = checking->is_given[RC_CHECKED_hidden_size] && IS_NULL(kv_channels);
    if (has_width && checking->is_given[RC_CHECKED_num_attention_heads] &&
        rc_checking_need_uneven(checking, RC_CHECKED_hidden_size,
                                RC_CHECKED_num_attention_heads, RC_RULE_python_zero_division))
        RAISE(cli_heads_divide_hidden_size);
    if (!IS_NULL(seq_length) && ABOVE(context_parallel_size, 1) &&
        rc_checking_need_rest(checking, NUMBER(seq_length), 2.0 * NUMBER(context_parallel_size),
                              RC_RULE_python_zero_division))
        RAISE(cli_sequence_divisible_by_context_parallel);
    if (ON(fp32_residual_connection) && !ON(fp16) && !ON(bf16))
        RAISE(cli_fp32_residual_needs_half_precision);
}

/* What the trainer fills in, and does not ask again. */
static void experts(rc_checking *checking)
{
    if (rc_checking_is_number(checking, RC_CHECKED_num_moe_experts, 0))
        rc_checking_give_null(checking, RC_CHECKED_num_moe_experts);
    checking->is_told[RC_RULE_warn_moe_ffn_size_defaulted] = true;
    if (!IS(position_embedding_type, "rope"))
        rc_checking_give_bool(checking, RC_CHECKED_apply_rope_fusion, false);
    if (ON(add_bias_linear))
        rc_checking_give_bool(checking, RC_CHECKED_add_qkv_bias, true);
    if (!ABOVE(expert_model_parallel_size, 1))
        return;
    if (IS_NULL(num_moe_experts) ||
        rc_checking_need_uneven(checking, RC_CHECKED_num_moe_experts,
                                RC_CHECKED_expert_model_parallel_size,
                                RC_RULE_python_zero_division)) {
        RAISE(cli_experts_divisible_by_expert_parallel);
        checking->is_told[RC_RULE_expert_parallel_needs_experts] = true;
    }
}

static void graph_settings(rc_checking *checking)
{
    bool is_full_iteration = IS(cuda_graph_impl, "full_iteration");
    if (is_full_iteration && ON(check_for_nan_in_loss))
        RAISE(cli_full_iteration_no_nan_check);
    if (IS(inference_cuda_graph_scope, "block") && ON(fp8) &&
        (!IS(transformer_impl, "inference_optimized") || !IS(fp8_recipe, "mxfp8")))
        RAISE(cli_inference_block_fp8);
    if (IS(cuda_graph_impl, "local") && !ABOVE(inference_dynamic_batching_num_cuda_graphs, 0) &&
        !rc_checking_is_number(checking, RC_CHECKED_inference_dynamic_batching_num_cuda_graphs,
                               -1))
        RAISE(cli_local_graph_count);
}

static void recompute(rc_checking *checking)
{
    if (ON(distribute_saved_activations)) {
        checking->is_told[RC_RULE_distribute_saved_with_selective] = true;
        checking->is_told[RC_RULE_distribute_saved_without_tp] = true;
        if (!ABOVE(tensor_model_parallel_size, 1))
            RAISE(cli_distribute_saved_needs_tensor_parallel);
        if (!IS(recompute_granularity, "full"))
            RAISE(cli_distribute_saved_needs_full);
        if (IS_NULL(recompute_method))
            RAISE(cli_distribute_saved_needs_method);
    }
    if (rc_checking_is_selective(checking) && !IS_NULL(recompute_method)) {
        RAISE(cli_selective_forbids_method);
        checking->is_told[RC_RULE_selective_ignores_method] = true;
    }
}

static void parallel(rc_checking *checking)
{
    if (ON(sequence_parallel) &&
        rc_checking_is_number(checking, RC_CHECKED_tensor_model_parallel_size, 1)) {
        WARN(cli_sequence_parallel_off_without_tp);
        rc_checking_give_bool(checking, RC_CHECKED_sequence_parallel, false);
    }
    const rc_doc *graph = checking->given[RC_CHECKED_enable_cuda_graph];
    if (ON(hybrid_context_parallel) && graph->kind == RC_DOC_BOOL && graph->i)
        RAISE(cli_hybrid_cp_no_graph);
    if (ON(overlap_moe_expert_parallel_comm) && IS(cuda_device_max_connections, "1") &&
        (ABOVE(tensor_model_parallel_size, 1) || ABOVE(context_parallel_size, 1)))
        WARN(cli_ep_overlap_connections);
}

static void weight_rematerialisation(rc_checking *checking)
{
    bool is_on = ABOVE(gtp_weight_remat_size, 1);
    if (is_on && rc_checking_has_graphs(checking) && !IS(cuda_graphs_use_node_priority, "1"))
        WARN(cli_gtp_graph_env);
    if (is_on && ON(fp4) && !ON(fp4_param))
        RAISE(cli_gtp_fp4_param_gather);
}

static bool has_te(const rc_checking *checking, const char *version)
{
    return !rc_te_is_below(&checking->te, version);
}

/* Only parts that are named count: a whole layer, which holds both, is let through. */
static bool are_captured_gradients_fit(rc_checking *checking)
{
    bool has_shared =
        !IS_NULL(moe_shared_expert_intermediate_size) && !ON(moe_shared_expert_overlap);
    bool is_attn = IN(cuda_graph_modules, "attn");
    if (!is_attn && !(has_shared && IN(cuda_graph_modules, "moe_router")))
        return true;
    return has_te(checking, "2.12.0") && ON(gradient_accumulation_fusion) &&
           !(is_attn && (ON(add_bias_linear) || ON(add_qkv_bias)));
}

static void delayed_gradients(rc_checking *checking)
{
    if (!ON(delay_wgrad_compute))
        return;
    if (!IS(transformer_impl, "transformer_engine") ||
        (ON(overlap_grad_reduce) &&
         (!has_te(checking, "2.8.0") || !are_captured_gradients_fit(checking))) ||
        (!ON(gradient_accumulation_fusion) && !has_te(checking, "2.7.0")))
        RAISE(cli_delay_wgrad_graphs);
}

static void offload(rc_checking *checking)
{
    bool is_new = !rc_te_is_below(&checking->te, "2.10.0");
    if (ON(fine_grained_activation_offloading)) {
        bool is_off = !IS_NULL(nvte_cpu_offload_v1) && !IS(nvte_cpu_offload_v1, "1");
        if (!IS(transformer_impl, "transformer_engine") || (is_new && is_off))
            RAISE(cli_fine_grained_offload_te);
        else if (is_new && IS_NULL(nvte_cpu_offload_v1))
            WARN(cli_fine_grained_offload_env);
    }
    if (ABOVE(cpu_offloading_num_layers, 0)) {
        WARN(cli_cpu_offload_derived);
        rc_checking_give_bool(checking, RC_CHECKED_cpu_offloading, true);
    }
}

static void graph_environment(rc_checking *checking)
{
    if (rc_checking_has_graphs(checking) && IS(transformer_impl, "transformer_engine") &&
        !ON(use_te_rng_tracker))
        WARN(cli_graph_te_rng_tracker);
    if ((IS(cuda_graph_impl, "transformer_engine") || ON(external_cuda_graph)) &&
        rc_checking_need_expandable_segments(checking) && !IS(nccl_graph_register, "0"))
        RAISE(cli_te_graph_allocator_env);
    if (IS(cuda_graph_impl, "full_iteration") && ON(cuda_graph_modules) &&
        !IS(cuda_graph_modules, "full")) {
        RAISE(cli_full_iteration_forbids_modules);
        checking->is_told[RC_RULE_full_iteration_graph_forbids_modules] = true;
    }
}

void rc_check_cli(rc_checking *checking)
{
    rc_core_weight_shards(checking);
    activations_switches(checking);
    graph_names(checking);
    multi_token_prediction(checking);
    virtual_stages(checking);
    precision(checking);
    graph_settings(checking);
    shapes(checking);
    recompute(checking);
    parallel(checking);
    weight_rematerialisation(checking);
    experts(checking);
    delayed_gradients(checking);
    offload(checking);
    graph_environment(checking);
}
