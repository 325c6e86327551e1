/* model.c — what the model at hand has: kinds of layers, attention, norms.
 *
 * takes  the settings of a check in progress
 * gives  answers; what a label needs in order to act (labels.def) is one of them
 *
 * above  checking.c
 */
#include "check/model.h"

static bool has_dense_layer(const rc_doc *freq)
{
    for (const rc_doc *layer = freq->child; layer; layer = layer->next) {
        bool is_int = layer->kind == RC_DOC_INT || layer->kind == RC_DOC_BOOL;
        bool is_float_zero =
            layer->kind == RC_DOC_FLOAT && !(layer->f < 0.0) && !(layer->f > 0.0);
        if ((is_int && layer->i == 0) || is_float_zero)
            return true;
    }
    return false;
}

bool rc_model_is_every_layer_moe(const rc_checking *checking)
{
    const rc_doc *freq = checking->at[RC_CHECKED_moe_layer_freq];
    if (freq->kind != RC_DOC_LIST)
        return rc_checking_is_number(checking, RC_CHECKED_moe_layer_freq, 1);
    return !has_dense_layer(freq);
}

bool rc_model_is_mixed(const rc_doc *freq)
{
    bool is_int = freq->kind == RC_DOC_INT || freq->kind == RC_DOC_BOOL;
    return freq->kind == RC_DOC_LIST ? has_dense_layer(freq) : is_int && freq->i > 1;
}

bool rc_model_is_delta_net(const rc_checking *checking)
{
    if (!SINCE(main))
        return IS(experimental_attention_variant, "gated_delta_net");
    return IS(experimental_attention_variant, "gdn") ||
           IS(experimental_attention_variant, "gdn2");
}

bool rc_model_is_hybrid(const rc_checking *checking)
{
    return !IS_NULL(hybrid_override_pattern) || !IS_NULL(hybrid_layer_pattern);
}

bool rc_model_has_own_split(const rc_checking *checking)
{
    return !IS_NULL(num_layers_in_first_pipeline_stage) ||
           !IS_NULL(num_layers_in_last_pipeline_stage) ||
           !IS_NULL(pipeline_model_parallel_layout) || rc_model_is_hybrid(checking);
}

bool rc_model_has_norm_modules(const rc_checking *checking)
{
    bool is_latent = ON(multi_latent_attention) && !checking->cfg->mla_down_proj_fusion;
    return !IS(transformer_impl, "transformer_engine") || is_latent || ON(num_moe_experts) ||
           !IS_NULL(experimental_attention_variant);
}

bool rc_model_counts_ends(const rc_checking *checking)
{
    return ON(account_for_embedding_in_pipeline_split) ||
           ON(account_for_loss_in_pipeline_split);
}

static bool has_shared_experts(const rc_checking *checking)
{
    return ON(num_moe_experts) && !IS_NULL(moe_shared_expert_intermediate_size);
}

bool rc_model_meets(const rc_checking *checking, rc_label_need need)
{
    switch (need) {
    case RC_LABEL_NEED_ATTENTION:
        return true;
    case RC_LABEL_NEED_DENSE_MLP:
        return !ON(num_moe_experts) || !rc_model_is_every_layer_moe(checking);
    case RC_LABEL_NEED_NORM_MODULES:
        return rc_model_has_norm_modules(checking);
    case RC_LABEL_NEED_EXPERTS:
        return ON(num_moe_experts);
    case RC_LABEL_NEED_SHARED_EXPERTS:
        return has_shared_experts(checking);
    case RC_LABEL_NEED_LATENT_ATTENTION:
        return ON(multi_latent_attention);
    case RC_LABEL_NEED_DELTA_NET:
        return rc_model_is_delta_net(checking);
    case RC_LABEL_NEED_DELTA_PRODUCT:
        return !IS_NULL(mamba_num_heads);
    case RC_LABEL_NEED_HYPER_CONNECTIONS:
        return ON(enable_mhc_connections);
    case RC_LABEL_NEED_COUNT:
        break;
    }
    return false;
}

bool rc_model_has_work_for(const rc_checking *checking, rc_label label)
{
    return rc_model_meets(checking, rc_label_find_facts(label)->needs);
}
