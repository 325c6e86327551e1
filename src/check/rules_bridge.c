/* rules_bridge.c — what Megatron Bridge refuses or changes before the config class looks. */
#include "check/layers.h"
#include "check/model.h"

#include <string.h>

static bool is_provider(const rc_checking *checking, const char *name)
{
    const rc_doc *target = checking->at[RC_CHECKED_model_target];
    return target->kind == RC_DOC_STRING && strstr(target->text, name) != NULL;
}

bool rc_bridge_is_plain_provider(const rc_config *cfg)
{
    const char *dot = cfg->model_target ? strrchr(cfg->model_target, '.') : NULL;
    return dot && strcmp(dot, ".GPTModelProvider") == 0;
}

/* The list that the user gave, under its new or old name. */
static rc_checked_field named_list(const rc_checking *checking)
{
    return IS_NULL(cuda_graph_scope) ? RC_CHECKED_cuda_graph_modules
                                     : RC_CHECKED_cuda_graph_scope;
}

static bool names_modules(const rc_checking *checking)
{
    rc_checked_field list = named_list(checking);
    return rc_checking_is_on(checking, list) && !rc_checking_is_text(checking, list, "full");
}

static bool captures_attention(rc_checking *checking)
{
    return rc_checking_has_graphs(checking) &&
           (!names_modules(checking) ||
            rc_checking_need_item(checking, named_list(checking), "attn"));
}

static bool has_te(const rc_checking *checking, const char *version)
{
    return !rc_te_is_below(&checking->te, version);
}

/* Parts that are named, under the new name of the list or the old one. */
static bool names_module(rc_checking *checking, const char *module)
{
    return names_modules(checking) &&
           rc_checking_need_item(checking, named_list(checking), module);
}

static bool are_captured_gradients_fit(rc_checking *checking)
{
    bool has_shared =
        !IS_NULL(moe_shared_expert_intermediate_size) && !ON(moe_shared_expert_overlap);
    bool is_attn = names_module(checking, "attn");
    if (!is_attn && !(has_shared && names_module(checking, "moe_router")))
        return true;
    return has_te(checking, "2.12.0") && ON(gradient_accumulation_fusion) &&
           !(is_attn && (ON(add_bias_linear) || ON(add_qkv_bias)));
}

static void delayed_gradients(rc_checking *checking)
{
    bool is_late = ON(overlap_grad_reduce) || ON(gradient_accumulation_fusion);
    if (is_late && !has_te(checking, "2.7.0"))
        RAISE(bridge_delay_wgrad);
    if (!ON(overlap_moe_expert_parallel_comm))
        RAISE(delay_wgrad_needs_ep_overlap);
    if (!are_captured_gradients_fit(checking))
        RAISE(bridge_delay_wgrad);
}

/* The overlap's rules are asked here first, in another order than the class has. */
static void overlap(rc_checking *checking)
{
    if (!ABOVE(expert_model_parallel_size, 1))
        RAISE(ep_overlap_needs_expert_parallel);
    if (!ABOVE(num_moe_experts, 1))
        RAISE(bridge_ep_overlap_mirror);
    if (!IS(moe_token_dispatcher_type, "alltoall") && !IS(moe_token_dispatcher_type, "flex"))
        RAISE(ep_overlap_needs_alltoall_or_flex);
    if (!ON(bf16) && !ON(fp16))
        RAISE(ep_overlap_needs_half_precision);
    if (ABOVE(pipeline_model_parallel_size, 1) && IS_NULL(virtual_pipeline_model_parallel_size))
        RAISE(ep_overlap_pp_needs_vpp);
    rc_core_overlap_recompute(checking);
    if (ON(moe_shared_expert_overlap))
        RAISE(ep_overlap_excludes_shared_expert_overlap);
}

static void communication(rc_checking *checking)
{
    if (ON(overlap_moe_expert_parallel_comm))
        overlap(checking);
    if (ON(delay_wgrad_compute))
        delayed_gradients(checking);
}

static bool is_energon(const rc_checking *checking)
{
    const rc_doc *target = checking->at[RC_CHECKED_dataset_target];
    return target->kind == RC_DOC_STRING && strstr(target->text, "nergon") != NULL &&
           ON(dataset_packing);
}

/* Boundaries of packed samples have a fixed number only when they are padded too. */
static bool pads_boundaries(const rc_checking *checking)
{
    const rc_doc *specs = ON(dataset_offline_packing)
                              ? checking->at[RC_CHECKED_dataset_offline_packing]
                              : checking->at[RC_CHECKED_dataset_packing];
    const rc_doc *pads = rc_doc_find(specs, "pad_cu_seqlens");
    return pads && pads->kind == RC_DOC_BOOL && pads->i;
}

static void packing(rc_checking *checking)
{
    bool is_captured = IS(cuda_graph_impl, "full_iteration") ||
                       IS(cuda_graph_impl, "transformer_engine") || ON(external_cuda_graph);
    if (is_energon(checking)) {
        if (rc_checking_has_graphs(checking) || ON(mtp_num_layers) ||
            ABOVE(pipeline_model_parallel_size, 1))
            RAISE(bridge_energon_packing_no_graphs);
        return;
    }
    bool is_offline = ON(dataset_enable_offline_packing) || ON(dataset_offline_packing) ||
                      ON(dataset_packing);
    if (is_offline && is_captured &&
        (!ON(dataset_pad_to_max_length) ||
         (captures_attention(checking) && !pads_boundaries(checking))))
        RAISE(bridge_offline_packing_graphs);
}

static void graph_names(rc_checking *checking)
{
    rc_checked_field list = named_list(checking);
    if (IS(cuda_graph_impl, "none")) { /* so it is under the old switches too */
        if (checking->is_given[list] && names_modules(checking))
            WARN(bridge_graph_none_clears_modules);
        rc_checking_give_null(checking, RC_CHECKED_cuda_graph_modules);
        rc_checking_give_null(checking, RC_CHECKED_cuda_graph_scope);
        return;
    }
    if (!IS(cuda_graph_impl, "local"))
        return;
    bool is_inference = !names_modules(checking) && (IS(inference_cuda_graph_scope, "layer") ||
                                                     IS(inference_cuda_graph_scope, "block"));
    if (!names_module(checking, "full_iteration") && !is_inference)
        RAISE(bridge_local_graph_only_full_iteration);
}

static void graphs(rc_checking *checking)
{
    if (IS(cuda_graph_impl, "full_iteration") && ON(check_for_nan_in_loss))
        RAISE(bridge_full_iteration_no_nan_check);
    if (rc_checking_has_graphs(checking) && !ON(use_te_rng_tracker))
        RAISE(bridge_graph_needs_te_rng_tracker);
    if (ON(use_torch_fsdp2) &&
        (rc_checking_has_graphs(checking) || !IS_NULL(num_moe_experts) || ON(fp8) || ON(fp4) ||
         !IS_NULL(virtual_pipeline_model_parallel_size)))
        RAISE(bridge_fsdp2_no_graphs);
}

static void offload(rc_checking *checking)
{
    bool is_new = !rc_te_is_below(&checking->te, "2.10.0");
    bool is_off = !IS_NULL(nvte_cpu_offload_v1) && !IS(nvte_cpu_offload_v1, "1");
    if (!ON(fine_grained_activation_offloading))
        return;
    if (!IS(transformer_impl, "transformer_engine") || (is_new && is_off))
        RAISE(bridge_fine_grained_offload_te);
    else if (is_new && IS_NULL(nvte_cpu_offload_v1))
        WARN(bridge_fine_grained_offload_env);
}

static void virtual_stages(rc_checking *checking)
{
    double n_stages = NUMBER(pipeline_model_parallel_size);
    if (IS_NULL(virtual_pipeline_model_parallel_size) || rc_model_has_own_split(checking) ||
        rc_model_counts_ends(checking) || n_stages < 1.0)
        return;
    double per_stage = (double)(int64_t)(NUMBER(num_layers) / n_stages);
    if (rc_checking_need_rest(checking, per_stage, NUMBER(virtual_pipeline_model_parallel_size),
                              RC_RULE_python_zero_division)) {
        RAISE(bridge_vpp_divides);
        checking->is_told[RC_RULE_build_even_split] = true;
    }
}

/* What Gemma 4's provider refuses beside experts. */
static bool is_beyond_gemma4(rc_checking *checking)
{
    bool has_label = rc_checking_is_selective(checking) && ON(recompute_modules) &&
                     IN(recompute_modules, "layernorm");
    bool has_offload = ON(fine_grained_activation_offloading) && ON(offload_modules) &&
                       IN(offload_modules, "mlp_norm");
    return rc_checking_has_graphs(checking) || ON(moe_shared_expert_overlap) || has_label ||
           has_offload;
}

static void providers(rc_checking *checking)
{
    bool is_gemma4 = is_provider(checking, "Gemma4") || is_provider(checking, "gemma4");
    if (is_gemma4 && ON(num_moe_experts) && is_beyond_gemma4(checking))
        RAISE(bridge_gemma4_moe);
    if (is_provider(checking, "T5") && !checking->is_given[RC_CHECKED_recompute_num_layers]) {
        if (rc_checking_is_selective(checking))
            RAISE(bridge_t5_num_layers_default);
        else if (rc_checking_is_full(checking))
            rc_checking_give_int(checking, RC_CHECKED_recompute_num_layers, 1);
    }
    if (is_provider(checking, "Sarvam") &&
        !checking->is_given[RC_CHECKED_recompute_granularity])
        WARN(bridge_sarvam_defaults);
}

/* What finalize() changes. */
static void adjust(rc_checking *checking)
{
    if (ABOVE(pipeline_model_parallel_size, 1) && IS_NULL(pipeline_dtype))
        rc_checking_give_text(checking, RC_CHECKED_pipeline_dtype,
                              ON(bf16)   ? "bfloat16"
                              : ON(fp16) ? "float16"
                                         : "float32");
    if (ON(sequence_parallel) && !ABOVE(tensor_model_parallel_size, 1)) {
        WARN(bridge_finalize_adjusts);
        rc_checking_give_bool(checking, RC_CHECKED_sequence_parallel, false);
    }
    if (ABOVE(expert_model_parallel_size, 1) && IS_NULL(expert_tensor_parallel_size))
        rc_checking_give_int(checking, RC_CHECKED_expert_tensor_parallel_size, 1);
}

static void adapters(rc_checking *checking)
{
    bool recomputes_mlp = rc_checking_is_selective(checking) && ON(recompute_modules) &&
                          IN(recompute_modules, "mlp");
    if (!ON(peft))
        return;
    if (!IS_NULL(recompute_method))
        WARN(bridge_peft_input_grad);
    if (ON(sequence_parallel) && (ON(cpu_offloading) || rc_checking_has_graphs(checking) ||
                                  recomputes_mlp || IS(recompute_granularity, "full")))
        WARN(bridge_lora_regather_off);
}

/* Before the class's own checks. */
void rc_check_bridge(rc_checking *checking)
{
    communication(checking);
    packing(checking);
    providers(checking);
    graph_names(checking);
    adjust(checking);
}

/* Behind them, on what they leave. */
void rc_check_bridge_late(rc_checking *checking)
{
    offload(checking);
    graphs(checking);
    virtual_stages(checking);
    adapters(checking);
    if (!IS_NULL(seq_length) && ABOVE(context_parallel_size, 1) &&
        rc_checking_need_rest(checking, NUMBER(seq_length), 2.0 * NUMBER(context_parallel_size),
                              RC_RULE_python_zero_division))
        RAISE(bridge_sequence_divisible_by_context_parallel);
}
