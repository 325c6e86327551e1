/* rules_build.c — settled settings that fail or are weakened when the model is built or run. */
#include "check/layers.h"
#include "check/model.h"

#include <string.h>

static void split(rc_checking *checking)
{
    double n_stages = NUMBER(pipeline_model_parallel_size);
    /* where the ends count as layers, the core's own rules have looked */
    if (rc_model_has_own_split(checking) || rc_model_counts_ends(checking) || n_stages < 1.0)
        return;
    double n_layers = NUMBER(num_layers);
    bool is_uneven =
        rc_checking_need_rest(checking, n_layers, n_stages, RC_RULE_pipeline_size_zero_crash);
    if (!is_uneven && n_stages > 1.0 && !IS_NULL(virtual_pipeline_model_parallel_size))
        is_uneven = rc_checking_need_rest(checking, n_layers / n_stages,
                                          NUMBER(virtual_pipeline_model_parallel_size),
                                          RC_RULE_python_zero_division);
    if (is_uneven)
        RAISE(build_even_split);
}

static void overlap_refusals(rc_checking *checking)
{
    if (!ON(overlap_moe_expert_parallel_comm))
        return;
    if (ON(use_megatron_fsdp) &&
        (IS(cuda_graph_impl, "local") || IS(cuda_graph_impl, "transformer_engine")))
        RAISE(build_fsdp_overlap_graphs);
    if (!IS_NULL(num_microbatches_with_partial_activation_checkpoints))
        RAISE(run_partial_checkpoint_overlap);
}

static void refusals(rc_checking *checking)
{
    bool is_quantised = ON(fp8) || ON(fp4);
    if (ON(cpu_offloading) && IS(transformer_impl, "local"))
        RAISE(build_cpu_offload_needs_te);
    if (ON(enable_mhc_connections) && ON(num_moe_experts))
        RAISE(build_mhc_no_moe_layer);
    if (RECOMPUTES(layernorm) && is_quantised && rc_model_is_delta_net(checking))
        RAISE(build_norm_recompute_quantised_attention);
    if (ON(multi_latent_attention) && !checking->is_mla)
        RAISE(build_mla_needs_its_class);
    overlap_refusals(checking);
}

static bool is_fp32(const rc_checking *checking, rc_checked_field field)
{
    const rc_doc *type = checking->at[field];
    return type->kind != RC_DOC_STRING || strstr(type->text, "32") != NULL;
}

/* What the optimizer's own class asserts. */
static void optimizer(rc_checking *checking)
{
    bool is_sharded = ON(use_distributed_optimizer) || ON(ddp_use_distributed_optimizer) ||
                      ON(use_megatron_fsdp);
    bool is_said = checking->framework == RC_FRAMEWORK_MEGATRON_LM ||
                   checking->is_given[RC_CHECKED_use_distributed_optimizer] ||
                   checking->is_given[RC_CHECKED_ddp_use_distributed_optimizer];
    if (!ON(use_precision_aware_optimizer)) {
        if (!is_fp32(checking, RC_CHECKED_main_grads_dtype) ||
            !is_fp32(checking, RC_CHECKED_main_params_dtype) ||
            !is_fp32(checking, RC_CHECKED_exp_avg_dtype) ||
            !is_fp32(checking, RC_CHECKED_exp_avg_sq_dtype))
            RAISE(optimizer_types_need_precision_aware);
        return;
    }
    if (!IS(optimizer, "adam"))
        RAISE(precision_aware_optimizer_needs_adam);
    if (!is_sharded && is_said)
        RAISE(precision_aware_optimizer_needs_distributed);
}

static void full_uniform(rc_checking *checking)
{
    if (!ABOVE(recompute_num_layers, 0))
        RAISE(run_uniform_zero_layers_loops);
    if (ON(mtp_num_layers) &&
        !rc_checking_is_number(checking, RC_CHECKED_recompute_num_layers, 1))
        RAISE(run_mtp_uniform_one);
}

static void full(rc_checking *checking)
{
    if (!rc_checking_is_full(checking) || IS_NULL(recompute_num_layers))
        return;
    if (IS(recompute_method, "uniform"))
        full_uniform(checking);
    if (!IS(recompute_method, "block"))
        return;
    if (!ABOVE(recompute_num_layers, 0))
        WARN(run_block_clamps);
    if (ON(mtp_num_layers))
        WARN(run_mtp_block_skipped);
}

static void expert_labels(rc_checking *checking)
{
    bool is_kept = IN(cuda_graph_modules, "moe_preprocess") &&
                   (IS(moe_token_dispatcher_type, "alltoall") || !IS_NULL(moe_latent_size));
    if (!ON(num_moe_experts))
        return;
    if (RECOMPUTES(mlp) && !rc_model_has_work_for(checking, RC_LABEL_mlp))
        WARN(build_mlp_label_dense_only);
    if (RECOMPUTES(layernorm) && IS(cuda_graph_impl, "transformer_engine") &&
        IN(cuda_graph_modules, "moe_router") && (ON(moe_shared_expert_overlap) || !is_kept))
        WARN(build_prenorm_recompute_graph);
}

static void label_effects(rc_checking *checking)
{
    expert_labels(checking);
    if ((RECOMPUTES(gdp_in_proj) || RECOMPUTES(gdp_qkv)) &&
        !rc_model_meets(checking, RC_LABEL_NEED_DELTA_PRODUCT))
        WARN(build_gdp_labels);
    if (RECOMPUTES(moe) && IS(cuda_graph_impl, "local"))
        WARN(build_moe_label_local_graph);
    bool has_consumer = (RECOMPUTES(moe_act) && ON(num_moe_experts)) ||
                        (RECOMPUTES(layernorm) && rc_model_has_norm_modules(checking));
    if (has_consumer && (ON(fp8) || ON(fp4)))
        WARN(build_act_recompute_saves_input);
}

static void captured(rc_checking *checking)
{
    bool is_whole = !ON(cuda_graph_modules);
    if (IS(cuda_graph_impl, "none"))
        return;
    if (ON(fine_grained_activation_offloading) && ON(offload_modules) &&
        ((IN(offload_modules, "attn_norm") && (is_whole || IN(cuda_graph_modules, "attn"))) ||
         (IN(offload_modules, "mlp_norm") &&
          (is_whole || IN(cuda_graph_modules, "mlp") || IN(cuda_graph_modules, "moe_router")))))
        WARN(build_offload_norm_graph);
    if (IS(cuda_graph_impl, "local") && !IS_NULL(recompute_granularity) &&
        BELOW(cuda_graph_warmup_steps, 1))
        WARN(build_local_graph_recompute_warmup);
}

void rc_check_build(rc_checking *checking)
{
    split(checking);
    optimizer(checking);
    refusals(checking);
    full(checking);
    label_effects(checking);
    captured(checking);
}
