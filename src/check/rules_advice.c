/* rules_advice.c — settings that are accepted and then do nothing, or harm. */
#include "check/core.h"

#include <string.h>

static bool lists_labels(const rc_core *core)
{
    return core->is_given[RC_CORE_recompute_modules] &&
           core->given[RC_CORE_recompute_modules]->kind == RC_DOC_LIST;
}

static void selective(rc_core *core)
{
    bool has_list = lists_labels(core);
    if (!has_list && !ON(moe_layer_recompute))
        WARN(implicit_core_attn);
    if (!ON(recompute_modules))
        WARN(empty_recompute_modules);
    if (!IS_NULL(recompute_method))
        WARN(selective_ignores_method);
    if (ON(moe_layer_recompute) && !has_list)
        WARN(moe_layer_recompute_keeps_core_attn);
}

static void granularity(rc_core *core)
{
    bool names_labels =
        lists_labels(core) && core->given[RC_CORE_recompute_modules]->n_children > 0;
    if (IS_NULL(recompute_granularity) &&
        (!IS_NULL(recompute_method) || !IS_NULL(recompute_num_layers) || names_labels))
        WARN(recompute_flags_without_granularity);
    if (rc_core_is_full(core) && lists_labels(core))
        WARN(full_ignores_modules);
    if (rc_core_is_selective(core))
        selective(core);
}

/* Transformer Engine chooses flash or fused attention unless it is told not to. */
static bool is_fused_attention(const rc_core *core)
{
    bool is_off = IS(nvte_fused_attn, "0") && IS(nvte_flash_attn, "0");
    return IS(attention_backend, "flash") || IS(attention_backend, "fused") ||
           ON(use_flash_attn) ||
           (IS(attention_backend, "auto") && IS(transformer_impl, "transformer_engine") &&
            !is_off);
}

static void core_attention(rc_core *core)
{
    if (!RECOMPUTES("core_attn"))
        return;
    if (is_fused_attention(core) && !RECOMPUTES("mla_up_proj")) {
        WARN_ITEM(core_attn_with_fused_attention, "core_attn");
        if (IS(position_embedding_type, "rope") && !ON(multi_latent_attention) &&
            !ON(fused_single_qkv_rope))
            WARN_ITEM(core_attn_raises_memory, "core_attn");
    }
    if (ON(fp8) && ON(fp8_dot_product_attention))
        WARN_ITEM(fp8_core_attn_replay, "core_attn");
}

/* Layers of a model chunk, or 0 when they are not known or not even. */
static double chunk_layers(rc_core *core)
{
    double n_chunks = NUMBER(pipeline_model_parallel_size);
    if (!IS_NULL(virtual_pipeline_model_parallel_size))
        n_chunks *= NUMBER(virtual_pipeline_model_parallel_size);
    if (rc_core_has_own_split(core) || rc_core_counts_ends(core) ||
        !core->is_given[RC_CORE_num_layers] || n_chunks < 1.0)
        return 0.0;
    return NUMBER(num_layers) / n_chunks;
}

static void layer_counts(rc_core *core)
{
    if (!rc_core_is_full(core) || IS_NULL(recompute_num_layers))
        return;
    double n_layers = chunk_layers(core), group = NUMBER(recompute_num_layers);
    if (!IS_NULL(virtual_pipeline_model_parallel_size) && group > 1.0)
        WARN(layer_count_per_chunk);
    if (!IS(recompute_method, "uniform") || n_layers < 2.0)
        return;
    if (group >= n_layers)
        WARN(uniform_group_covers_stage);
    else if (group >= 1.0 &&
             rc_core_has_rest(core, n_layers, group, RC_RULE_python_zero_division))
        WARN(uniform_group_does_not_divide);
}

/* The first layers of a chunk are recomputed; the rest is what waits in the pipeline. */
static void block_tail(rc_core *core)
{
    double n_layers = chunk_layers(core);
    if (rc_core_is_full(core) && IS(recompute_method, "block") &&
        !IS_NULL(recompute_num_layers) && ABOVE(pipeline_model_parallel_size, 1) &&
        ABOVE(recompute_num_layers, 0) && BELOW(recompute_num_layers, n_layers))
        WARN(block_leaves_tail);
}

/* A replay runs what its region runs, messages to other ranks too. */
static void replayed_messages(rc_core *core)
{
    bool is_experts = RECOMPUTES("moe") || rc_core_is_full(core);
    bool is_any =
        rc_core_is_full(core) || (rc_core_is_selective(core) && ON(recompute_modules));
    if (is_experts && ON(num_moe_experts) && ABOVE(expert_model_parallel_size, 1))
        WARN(replay_repeats_dispatch);
    if (is_any && !IS_NULL(gtp_weight_remat_size) && ABOVE(gtp_weight_remat_size, 1))
        WARN(replay_gathers_weights);
}

static void label_without_layer(rc_core *core)
{
    static const char *const moe_labels[] = {"moe", "moe_act", "shared_experts"};
    for (size_t i = 0; i < sizeof moe_labels / sizeof *moe_labels; i++) {
        bool is_shared = i == 2;
        bool is_missing =
            !ON(num_moe_experts) || (is_shared && IS_NULL(moe_shared_expert_intermediate_size));
        if (is_missing && RECOMPUTES(moe_labels[i]))
            rc_core_warn_item(core, RC_RULE_label_without_layer, moe_labels[i]);
    }
}

static void nested_labels(rc_core *core)
{
    if (!RECOMPUTES("moe") || !ON(num_moe_experts))
        return;
    if (RECOMPUTES("moe_act"))
        rc_core_warn_item(core, RC_RULE_labels_nested_in_moe, "moe_act");
    if (RECOMPUTES("shared_experts"))
        rc_core_warn_item(core, RC_RULE_labels_nested_in_moe, "shared_experts");
}

/* Where the norm is a module of its own: the local implementation, MLA, and before MoE layers. */
static void layer_norm(rc_core *core)
{
    bool is_fused = IS(transformer_impl, "transformer_engine") && !ON(multi_latent_attention) &&
                    !ON(num_moe_experts) && IS_NULL(experimental_attention_variant);
    if (RECOMPUTES("layernorm") && is_fused)
        WARN_ITEM(layernorm_fused_away, "layernorm");
}

static bool is_cp_copying(rc_core *core)
{
    bool is_gather = IS(cp_comm_type, "all_gather");
    return ABOVE(context_parallel_size, 1) && !is_gather;
}

static void up_projection(rc_core *core)
{
    bool is_flash = IS(attention_backend, "flash") || ON(use_flash_attn);
    bool is_batched = !IS_NULL(micro_batch_size) && ABOVE(micro_batch_size, 1);
    if (!RECOMPUTES("mla_up_proj") || RECOMPUTES("core_attn"))
        return;
    if (is_cp_copying(core) || (is_flash && is_batched) ||
        (ON(fp8) && ON(fp8_dot_product_attention)))
        WARN_ITEM(mla_up_proj_defeated, "mla_up_proj");
}

/* Attention kernels with one head size pad the value to that of query and key. */
static void padded_value(rc_core *core)
{
    bool is_flash = IS(attention_backend, "flash") || ON(use_flash_attn);
    bool is_packed = ON(dataset_packing) || ON(dataset_offline_packing) ||
                     ON(dataset_enable_offline_packing) || ON(dataset_pack_sequences_in_batch);
    if (!RECOMPUTES("mla_up_proj") || RECOMPUTES("core_attn") || !(is_flash || is_packed) ||
        IS_NULL(qk_head_dim) || IS_NULL(qk_pos_emb_head_dim))
        return;
    double key = NUMBER(qk_head_dim) + NUMBER(qk_pos_emb_head_dim);
    if (!IS_NULL(v_head_dim) && !rc_core_is_number(core, RC_CORE_v_head_dim, key))
        WARN_ITEM(mla_up_proj_padded_value, "mla_up_proj");
}

static void experts_activation(rc_core *core)
{
    if (!RECOMPUTES("moe_act"))
        return;
    if (!ON(moe_grouped_gemm) && ON(num_moe_experts))
        WARN_ITEM(moe_act_sequential_mlp, "moe_act");
    if (ON(use_transformer_engine_op_fuser) && !IS(activation_func, "squared_relu"))
        WARN_ITEM(moe_act_op_fuser, "moe_act");
}

static void distributed_saved(rc_core *core)
{
    if (!ON(distribute_saved_activations))
        return;
    if (!IS_NULL(recompute_granularity) && !rc_core_is_full(core))
        WARN(distribute_saved_with_selective);
    else if (!ABOVE(tensor_model_parallel_size, 1))
        WARN(distribute_saved_without_tp);
}

static void adapters(rc_core *core)
{
    if (!ON(peft))
        return;
    if (rc_core_is_full(core) && !ABOVE(pipeline_model_parallel_size, 1))
        WARN(lora_full_recompute_no_input_grad);
    else if (rc_core_is_selective(core) && ON(recompute_modules) &&
             (RECOMPUTES("core_attn") || RECOMPUTES("mlp") || RECOMPUTES("moe")))
        WARN(lora_selective_no_input_grad);
}

static void allocator(rc_core *core)
{
    bool is_graphed =
        !IS(cuda_graph_impl, "none") && !IS(cuda_graph_impl, "transformer_engine");
    if (is_graphed && rc_core_has_expandable_segments(core))
        WARN(expandable_segments_with_graphs);
}

static void offload(rc_core *core)
{
    static const char *const both[] = {"core_attn", "moe_act", "gdp_qkv"};
    if (!ON(fine_grained_activation_offloading) || !ON(offload_modules))
        return;
    for (size_t i = 0; i < sizeof both / sizeof *both; i++)
        if (RECOMPUTES(both[i]) && HAS(offload_modules, both[i]))
            rc_core_warn_item(core, RC_RULE_recompute_and_offload_same_label, both[i]);
}

void rc_core_advice(rc_core *core)
{
    granularity(core);
    core_attention(core);
    layer_counts(core);
    block_tail(core);
    replayed_messages(core);
    label_without_layer(core);
    nested_labels(core);
    layer_norm(core);
    up_projection(core);
    padded_value(core);
    experts_activation(core);
    distributed_saved(core);
    adapters(core);
    allocator(core);
    offload(core);
    if (RECOMPUTES("gdn_norm_out") && ON(fp8))
        WARN_ITEM(gdn_norm_out_under_fp8, "gdn_norm_out");
    if (RECOMPUTES("mhc") && IS_NULL(mhc_recompute_layer_num))
        WARN(mhc_one_block);
}
