/* rules_advice_labels.c — labels that find nothing to do, or do harm, in this model. */
#include "check/advice.h"
#include "check/model.h"

static void core_attention_raises(rc_checking *checking, const rc_sizes *sizes)
{
    /* the statistics go */
    double more = rc_sizes_slice(sizes) - 4.0 * sizes->n_tokens * sizes->heads;
    char layer[32], stage[32];
    if (more > 0.0 && sizes->first > 0.0)
        WARN_HERE(core_attn_raises_memory, "core_attn",
                  "%s more a layer and micro-batch, %s %s", rc_sizes_say(more, layer),
                  rc_sizes_say(rc_sizes_on_stage(sizes, more), stage),
                  rc_sizes_say_stage(sizes));
    else
        WARN_ITEM(core_attn_raises_memory, "core_attn");
}

/* The statistics of the softmax, and the second output of batched flash attention. */
static void core_attention_frees(rc_checking *checking, const rc_sizes *sizes)
{
    double output = rc_sizes_has_flash_batches(checking) ? 2.0 * sizes->dv : 0.0;
    double freed = sizes->n_tokens * sizes->heads * (4.0 + output);
    double layer = rc_sizes_whole_layer(checking, sizes);
    char buf[32], layer_buf[32];
    if (layer > 0.0)
        WARN_HERE(core_attn_with_fused_attention, "core_attn",
                  "%s of the %s that a layer keeps", rc_sizes_say(freed, buf),
                  rc_sizes_say(layer, layer_buf));
    else
        WARN_ITEM(core_attn_with_fused_attention, "core_attn");
}

/* What the label does is said once: nothing inside a graph, harm, or little good. */
static void core_attention(rc_checking *checking, const rc_sizes *sizes)
{
    if (!RECOMPUTES(core_attn))
        return;
    if (rc_advice_need_captured(checking, "attn"))
        WARN_ITEM(label_inside_graph, "core_attn");
    else if (rc_sizes_has_fused_attention(checking) && !RECOMPUTES(mla_up_proj)) {
        if (rc_sizes_slices_value(checking))
            core_attention_raises(checking, sizes);
        else
            core_attention_frees(checking, sizes);
    }
    if (ON(fp8) && ON(fp8_dot_product_attention))
        WARN_ITEM(fp8_core_attn_replay, "core_attn");
}

static void label_without_layer(rc_checking *checking)
{
    for (rc_label label = 0; label < RC_LABEL_COUNT; label++) {
        const rc_label_facts *facts = rc_label_find_facts(label);
        bool is_of_experts = facts->needs == RC_LABEL_NEED_EXPERTS ||
                             facts->needs == RC_LABEL_NEED_SHARED_EXPERTS;
        if (is_of_experts && rc_checking_need_label(checking, label) &&
            !rc_model_meets(checking, facts->needs))
            WARN_ITEM(label_without_layer, facts->name);
    }
}

static void nested_labels(rc_checking *checking)
{
    if (!RECOMPUTES(moe) || !ON(num_moe_experts))
        return;
    if (RECOMPUTES(moe_act))
        WARN_ITEM(labels_nested_in_moe, "moe_act");
    if (RECOMPUTES(shared_experts))
        WARN_ITEM(labels_nested_in_moe, "shared_experts");
}

static bool is_cp_copying(rc_checking *checking)
{
    bool is_gather = IS(cp_comm_type, "all_gather");
    return ABOVE(context_parallel_size, 1) && !is_gather;
}

static void up_projection(rc_checking *checking)
{
    if (!RECOMPUTES(mla_up_proj) || RECOMPUTES(core_attn))
        return;
    if (is_cp_copying(checking) || rc_sizes_has_flash_batches(checking) ||
        (ON(fp8) && ON(fp8_dot_product_attention)))
        WARN_ITEM(mla_up_proj_defeated, "mla_up_proj");
}

/* Attention kernels with one head size pad the value to that of query and key. */
static void padded_value(rc_checking *checking)
{
    if (!RECOMPUTES(mla_up_proj) || RECOMPUTES(core_attn) ||
        !(rc_sizes_has_flash_attention(checking) || rc_sizes_has_packed_samples(checking)) ||
        IS_NULL(qk_head_dim) || IS_NULL(qk_pos_emb_head_dim))
        return;
    double key = NUMBER(qk_head_dim) + NUMBER(qk_pos_emb_head_dim);
    if (!IS_NULL(v_head_dim) && !rc_checking_is_number(checking, RC_CHECKED_v_head_dim, key))
        WARN_ITEM(mla_up_proj_padded_value, "mla_up_proj");
}

static void experts_activation(rc_checking *checking)
{
    if (!RECOMPUTES(moe_act) || !ON(num_moe_experts))
        return;
    if (!ON(moe_grouped_gemm))
        WARN_ITEM(moe_act_sequential_mlp, "moe_act");
    if (ON(use_transformer_engine_op_fuser) && !IS(activation_func, "squared_relu"))
        WARN_ITEM(moe_act_op_fuser, "moe_act");
}

/* A replay runs what its region runs, messages to other ranks too. */
static void replayed_messages(rc_checking *checking, const rc_sizes *sizes)
{
    double sent = 2.0 * sizes->n_outer * sizes->k * sizes->moe_width;
    char buf[32];
    bool is_experts = RECOMPUTES(moe) || rc_checking_is_full(checking);
    bool is_any = rc_checking_is_full(checking) ||
                  (rc_checking_is_selective(checking) && ON(recompute_modules));
    if (is_experts && ON(num_moe_experts) && ABOVE(expert_model_parallel_size, 1)) {
        if (sent > 0.0)
            WARN_HERE(replay_repeats_dispatch, NULL,
                      "up to %s each way, a layer and micro-batch", rc_sizes_say(sent, buf));
        else
            WARN(replay_repeats_dispatch);
    }
    if (is_any && !IS_NULL(gtp_weight_remat_size) && ABOVE(gtp_weight_remat_size, 1))
        WARN(replay_gathers_weights);
}

/* Transformer Engine's checkpoint, which mlp and shared_experts take under fp8 or fp4, does not ask
 * whether a graph is captured. */
static void captured_labels(rc_checking *checking)
{
    if (ON(fp8) || ON(fp4))
        return;
    if (RECOMPUTES(mlp) && rc_advice_need_captured(checking, "mlp"))
        WARN_ITEM(label_inside_graph, "mlp");
    if (RECOMPUTES(shared_experts) && (rc_advice_need_captured(checking, "moe") ||
                                       rc_advice_need_captured(checking, "moe_router")))
        WARN_ITEM(label_inside_graph, "shared_experts");
}

void rc_advice_labels(rc_checking *checking, const rc_sizes *sizes)
{
    core_attention(checking, sizes);
    replayed_messages(checking, sizes);
    label_without_layer(checking);
    nested_labels(checking);
    if (RECOMPUTES(layernorm) && !rc_model_has_work_for(checking, RC_LABEL_layernorm))
        WARN_ITEM(layernorm_fused_away, "layernorm");
    up_projection(checking);
    padded_value(checking);
    experts_activation(checking);
    captured_labels(checking);
    if (RECOMPUTES(gdn_norm_out) && (ON(fp8) || ON(fp4)))
        WARN_ITEM(gdn_norm_out_under_fp8, "gdn_norm_out");
    if (RECOMPUTES(mhc) && IS_NULL(mhc_recompute_layer_num))
        WARN(mhc_one_block);
}
