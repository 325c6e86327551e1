/* rules_moe.c — mixture of experts, and the model checks that stand behind the pipeline split. */
#include "check/layers.h"
#include "check/model.h"

static void ffn_size(rc_checking *checking)
{
    if (!IS_NULL(num_moe_experts)) {
        if (!ABOVE(num_moe_experts, 0))
            RAISE(num_experts_positive);
        if (IS_NULL(moe_ffn_hidden_size)) {
            WARN(warn_moe_ffn_size_defaulted);
            WARN(set_moe_ffn_size);
        }
        return;
    }
    if (IS_NULL(moe_ffn_hidden_size))
        return;
    const rc_doc *freq = checking->at[RC_CHECKED_moe_layer_freq];
    RAISE(moe_ffn_size_without_experts); /* 0.13 to 0.17, whatever the frequency */
    if (!SINCE(0_18))
        return;
    if (!rc_model_is_mixed(freq)) {
        RAISE(moe_ffn_size_needs_experts);
        return;
    }
    WARN(warn_moe_ffn_size_ignored);
    rc_checking_set_null(checking, RC_CHECKED_moe_ffn_hidden_size, RC_RULE_set_moe_ffn_size);
}

static void dispatcher(rc_checking *checking)
{
    bool is_flex = IS(moe_token_dispatcher_type, "flex");
    bool is_ncclep = IS(moe_flex_dispatcher_backend, "ncclep");
    if (is_flex && IS(moe_flex_dispatcher_backend, "deepep") &&
        ON(moe_pad_expert_input_to_capacity))
        RAISE(flex_deepep_no_pad_to_capacity);
    if (is_ncclep && !is_flex)
        RAISE(ncclep_needs_flex_dispatcher);
    if (is_ncclep && ON(moe_use_grouped_tensor) && !ON(use_transformer_engine_op_fuser))
        RAISE(ncclep_grouped_tensor_needs_op_fuser);
    if (IS_NULL(moe_shared_expert_intermediate_size))
        return;
    if (!ABOVE(moe_shared_expert_intermediate_size, 0))
        RAISE(shared_expert_size_positive);
    /* until 0.17 flex was no good either */
    if (ON(moe_shared_expert_overlap) && !(is_flex && SINCE(0_18)) &&
        !IS(moe_token_dispatcher_type, "alltoall"))
        RAISE(shared_expert_overlap_needs_alltoall_or_flex);
}

static void rank_capacity(rc_checking *checking)
{
    if (!ON(use_transformer_engine_op_fuser))
        RAISE(rank_capacity_needs_op_fuser); /* 0.18 alone */
    bool is_hybridep = IS(moe_flex_dispatcher_backend, "hybridep");
    if (!is_hybridep && !(SINCE(0_19) && IS(moe_flex_dispatcher_backend, "ncclep")))
        RAISE(rank_capacity_needs_hybridep_or_ncclep);
    if (is_hybridep && !ON(use_transformer_engine_op_fuser) && !ON(moe_use_grouped_tensor))
        RAISE(rank_capacity_hybridep_needs_fused_grouping);
}

static void capacity(rc_checking *checking)
{
    if (!IS_NULL(moe_expert_capacity_factor) && !IS(moe_token_dispatcher_type, "alltoall") &&
        !IS(moe_token_dispatcher_type, "alltoall_seq"))
        RAISE(capacity_needs_alltoall); /* until 0.11 */
    if (!IS_NULL(moe_expert_capacity_factor) && BELOW(moe_expert_capacity_factor, 0))
        rc_checking_set_null(checking, RC_CHECKED_moe_expert_capacity_factor,
                             RC_RULE_set_negative_capacity_none);
    if (ON(moe_pad_expert_input_to_capacity) && IS_NULL(moe_expert_capacity_factor))
        RAISE(pad_to_capacity_needs_capacity_factor);
    if (!IS_NULL(moe_expert_rank_capacity_factor))
        rank_capacity(checking);
}

void rc_core_experts(rc_checking *checking)
{
    if (ABOVE(expert_model_parallel_size, 1) && IS_NULL(num_moe_experts))
        RAISE(expert_parallel_needs_experts);
    ffn_size(checking);
    dispatcher(checking);
    capacity(checking);
}

static void quantised_experts(rc_checking *checking)
{
    if (!ON(num_moe_experts) || !ON(fp8))
        return;
    if (rc_te_is_below(&checking->te, "1.7.0.dev0"))
        RAISE(moe_fp8_needs_te_1_7);
    if (ON(moe_grouped_gemm))
        RAISE(grouped_gemm_excludes_fp8); /* 0.9 alone */
    if (ON(moe_grouped_gemm) && rc_te_is_below(&checking->te, "1.11.0"))
        RAISE(grouped_gemm_fp8_needs_te_1_11);
}

static void router_padding(rc_checking *checking)
{
    if (ON(moe_router_padding_for_fp8)) {
        WARN(warn_router_padding_fp8_deprecated);
        if (!rc_checking_is_number(checking, RC_CHECKED_moe_router_padding_for_quantization, 1))
            rc_checking_set_bool(checking, RC_CHECKED_moe_router_padding_for_quantization, true,
                                 RC_RULE_set_router_padding_quantization);
    }
    bool is_old = !SINCE(0_16) && ON(moe_router_padding_for_fp8); /* its own switch */
    if (!ON(moe_router_padding_for_quantization) && !is_old)
        return;
    if (IS_NULL(fp8) && (IS_NULL(fp4) || is_old))
        RAISE(router_padding_needs_fp8_or_fp4);
    if (IS(moe_token_dispatcher_type, "allgather") ||
        IS(moe_token_dispatcher_type, "alltoall_seq"))
        RAISE(router_padding_excludes_allgather);
}

/* The last weights of a block spread by 1 / sqrt(2 * num_layers). */
static void layer_count(rc_checking *checking)
{
    if (!rc_checking_is_settled(checking, RC_CHECKED_num_layers))
        return;
    if (rc_checking_is_number(checking, RC_CHECKED_num_layers, 0))
        rc_checking_crash(checking, RC_RULE_layer_count_positive, "ZeroDivisionError");
    else if (BELOW(num_layers, 0))
        RAISE(layer_count_positive);
}

/* Neighbouring pairs are rotated by fused kernels of newer engines only, and at first by none. */
static bool is_interleaving_fused(const rc_checking *checking)
{
    const char *since = SINCE(0_14) ? "2.3.0" : SINCE(0_13) ? "2.3.0.dev0" : "2.2.0.dev0";
    return SINCE(0_12) && !rc_te_is_below(&checking->te, since);
}

static void rope_fusion(rc_checking *checking)
{
    if (!ON(apply_rope_fusion))
        return;
    bool is_mla = ON(multi_latent_attention);
    if (is_mla)
        WARN(warn_mla_rope_fusion_training_only);
    if (ON(rotary_interleaved) && !is_interleaving_fused(checking) && !(is_mla && SINCE(0_13)))
        RAISE(rope_fusion_excludes_interleaved);
    if (is_mla)
        RAISE(rope_fusion_excludes_mla); /* 0.11 and 0.12 */
}

static void activation(rc_checking *checking)
{
    bool is_launched = checking->framework == RC_FRAMEWORK_MEGATRON_LM;
    bool is_known = is_launched || rc_checking_is_settled(checking, RC_CHECKED_activation_func);
    bool is_swiglu = IS(activation_func, "silu") && ON(gated_linear_unit);
    /* the launcher switches the fused gelu off where there is no bias */
    bool is_fused = ON(bias_activation_fusion) &&
                    (!is_launched || ON(gated_linear_unit) || ON(add_bias_linear));
    if (ON(use_te_activation_func) && is_fused)
        RAISE(te_activation_excludes_bias_fusion);
    if (ON(activation_func_fp8_input_store) && is_known && !is_swiglu)
        RAISE(fp8_input_store_needs_swiglu);
}

void rc_core_late_model(rc_checking *checking)
{
    activation(checking);
    rope_fusion(checking);
    if (ON(multi_latent_attention) && ON(rotary_interleaved))
        RAISE(mla_excludes_rotary_interleaved);
    layer_count(checking);
    if (!IS_NULL(num_moe_experts) && ON(add_bias_linear) &&
        !rc_checking_is_number(checking, RC_CHECKED_expert_tensor_parallel_size, 1))
        RAISE(moe_bias_needs_expert_tp_1);
    if (!IS_NULL(num_moe_experts) && ON(add_bias_linear))
        RAISE(moe_excludes_bias); /* 0.12 to 0.14 */
    quantised_experts(checking);
    router_padding(checking);
}
