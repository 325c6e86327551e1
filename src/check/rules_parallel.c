/* rules_parallel.c — parallel sizes, precision and linear attention: the base class and the head
 * of the config class. */
#include "check/layers.h"
#include "check/model.h"

static bool is_zero(double x)
{
    return !(x < 0.0) && !(x > 0.0);
}

/* Until 0.18 there are no shards; without a number of them the ranks are multiplied. */
void rc_core_weight_shards(rc_checking *checking)
{
    if (!SINCE(0_19))
        return;
    if (IS_NULL(tensor_parallel_num_weight_shards)) {
        (void)rc_checking_need_countable(checking, RC_CHECKED_tensor_model_parallel_size);
        (void)rc_checking_need_countable(checking, RC_CHECKED_gtp_weight_remat_size);
        return;
    }
    if (!NEED_NUMERIC(tensor_parallel_num_weight_shards) ||
        !NEED_NUMERIC(tensor_model_parallel_size))
        return;
    double shards = NUMBER(tensor_parallel_num_weight_shards);
    double ranks = NUMBER(tensor_model_parallel_size);
    if (shards < ranks ||
        rc_checking_need_rest(checking, shards, ranks, RC_RULE_python_zero_division))
        RAISE(weight_shards_multiple_of_tensor_parallel);
    else if (checking->at[RC_CHECKED_tensor_parallel_num_weight_shards]->kind == RC_DOC_FLOAT ||
             checking->at[RC_CHECKED_tensor_model_parallel_size]->kind == RC_DOC_FLOAT)
        rc_checking_set_real(checking, RC_CHECKED_gtp_weight_remat_size, shards / ranks,
                             RC_RULE_set_weight_remat_size);
    else if (!is_zero(ranks))
        rc_checking_set_int(checking, RC_CHECKED_gtp_weight_remat_size,
                            (int64_t)(shards / ranks), RC_RULE_set_weight_remat_size);
}

void rc_core_parallel(rc_checking *checking)
{
    if (ON(sequence_parallel) && !ABOVE(tensor_model_parallel_size, 1))
        RAISE(sequence_parallel_needs_tensor_parallel);
    if (IS_NULL(expert_tensor_parallel_size))
        rc_checking_set(checking, RC_CHECKED_expert_tensor_parallel_size,
                        checking->at[RC_CHECKED_tensor_model_parallel_size],
                        RC_RULE_set_expert_tensor_parallel_default);
    rc_core_weight_shards(checking);
    if (ABOVE(pipeline_model_parallel_size, 1) && IS_NULL(pipeline_dtype))
        RAISE(pipeline_parallel_needs_pipeline_dtype);
    if (ABOVE(expert_model_parallel_size, 1) && ABOVE(tensor_model_parallel_size, 1) &&
        rc_checking_is_false(checking, RC_CHECKED_sequence_parallel)) {
        RAISE(ep_tp_needs_sequence_parallel);      /* until 0.14 */
        RAISE(ep_tp_needs_sequence_parallel_0_15); /* 0.15 alone */
        WARN(warn_ep_tp_without_sequence_parallel);
    }
}

/* The class takes 4 times the hidden size, and divides it by the heads, rounding down. */
static void head_size(rc_checking *checking)
{
    bool is_sure = rc_checking_is_settled(checking, RC_CHECKED_hidden_size) &&
                   rc_checking_need_countable(checking, RC_CHECKED_hidden_size) &&
                   NEED_NUMERIC(hidden_size);
    if (rc_checking_is_settled(checking, RC_CHECKED_num_attention_heads) && is_sure &&
        rc_checking_is_number(checking, RC_CHECKED_num_attention_heads, 0))
        rc_checking_crash_at(checking, RC_RULE_python_zero_division,
                             RC_CHECKED_num_attention_heads);
}

void rc_core_precision(rc_checking *checking)
{
    if (IS(experimental_attention_variant, "gated_delta_net") && SINCE(main)) {
        WARN(warn_gated_delta_net_alias);
        rc_checking_set_text(checking, RC_CHECKED_experimental_attention_variant, "gdn",
                             RC_RULE_set_gdn_alias);
    }
    if (ON(use_transformer_engine_op_fuser) && ON(moe_grouped_gemm) &&
        !rc_checking_is_number(checking, RC_CHECKED_moe_use_grouped_tensor, 1))
        rc_checking_set_bool(checking, RC_CHECKED_moe_use_grouped_tensor, true,
                             RC_RULE_set_grouped_tensor_from_op_fuser);
    if (ON(moe_use_grouped_tensor) && !ON(moe_grouped_gemm))
        RAISE(grouped_tensor_needs_grouped_gemm);
    if (ON(fp32_residual_connection) && !IS_NULL(pipeline_dtype) &&
        !IS(pipeline_dtype, "float32")) {
        WARN(warn_fp32_residual_overrides_pipeline_dtype);
        rc_checking_set_text(checking, RC_CHECKED_pipeline_dtype, "float32",
                             RC_RULE_set_pipeline_dtype_fp32);
    }
    if (ON(fp16) && ON(bf16))
        RAISE(fp16_bf16_exclusive);
    if (rc_checking_need_uneven(checking, RC_CHECKED_num_attention_heads,
                                RC_CHECKED_tensor_model_parallel_size,
                                RC_RULE_python_zero_division))
        RAISE(attention_heads_divisible_by_tensor_parallel);
    head_size(checking);
}

/* Key heads are dealt out over ranks; until 0.17 over tensor-parallel ones alone. */
static void key_heads(rc_checking *checking)
{
    if (!SINCE(0_18)) {
        if (rc_checking_need_uneven(checking, RC_CHECKED_linear_num_key_heads,
                                    RC_CHECKED_tensor_model_parallel_size,
                                    RC_RULE_python_zero_division))
            RAISE(gdn_key_heads_divisible_by_tp_cp);
        if (!rc_checking_is_number(checking, RC_CHECKED_context_parallel_size, 1))
            RAISE(gdn_excludes_context_parallel);
        return;
    }
    bool is_sure = NEED_NUMERIC(linear_num_key_heads) && NEED_NUMERIC(context_parallel_size) &&
                   NEED_NUMERIC(tensor_model_parallel_size);
    if (is_sure && rc_checking_need_rest(checking, NUMBER(linear_num_key_heads),
                                         NUMBER(tensor_model_parallel_size) *
                                             NUMBER(context_parallel_size),
                                         RC_RULE_python_zero_division))
        RAISE(gdn_key_heads_divisible_by_tp_cp);
}

static void gated_delta_net(rc_checking *checking)
{
    if (IS_NULL(linear_conv_kernel_dim) || IS_NULL(linear_key_head_dim) ||
        IS_NULL(linear_value_head_dim) || IS_NULL(linear_num_key_heads) ||
        IS_NULL(linear_num_value_heads)) {
        RAISE(gdn_needs_linear_attention_fields);
        return;
    }
    if (rc_checking_need_uneven(checking, RC_CHECKED_linear_num_value_heads,
                                RC_CHECKED_linear_num_key_heads, RC_RULE_python_zero_division))
        RAISE(gdn_value_heads_multiple_of_key_heads);
    key_heads(checking);
}

void rc_core_linear_attention(rc_checking *checking)
{
    bool is_gdn = rc_model_is_delta_net(checking);
    if (is_gdn && !IS(experimental_attention_variant, "gdn2") && IS_NULL(linear_attention_freq))
        RAISE(gdn_needs_linear_attention_fields);
    if (is_gdn)
        gated_delta_net(checking);
    bool is_biased =
        rc_checking_is_settled(checking, RC_CHECKED_add_bias_linear) ||
        checking->framework == RC_FRAMEWORK_MEGATRON_LM; /* else a provider may know */
    if (IS(experimental_attention_variant, "dsa") && is_biased && ON(add_bias_linear))
        RAISE(dsa_excludes_linear_bias);
    /* fp8 divides the layers by the stages, to see how many may stay in bf16 */
    if (ON(fp8) && SINCE(0_12))
        rc_checking_need_quotient(checking, RC_CHECKED_num_layers,
                                  RC_CHECKED_pipeline_model_parallel_size,
                                  RC_RULE_pipeline_size_zero_crash);
    if (ON(fp4) && ON(fp8))
        RAISE(fp4_fp8_exclusive);
}
