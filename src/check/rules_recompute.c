/* rules_recompute.c — granularity, method, number of layers, labels. */
#include "check/layers.h"
#include "check/model.h"

#include <recompute/label.h>

#include <string.h>

static void full(rc_checking *checking)
{
    if (IS_NULL(recompute_method))
        RAISE(full_recompute_needs_method);
    if (!IS_NULL(recompute_num_layers))
        return;
    /* the message names layers per stage, and dies dividing by a pipeline of 0 */
    rc_checking_need_quotient(checking, RC_CHECKED_num_layers,
                              RC_CHECKED_pipeline_model_parallel_size,
                              RC_RULE_pipeline_size_zero_crash);
    RAISE(full_recompute_needs_num_layers);
}

static void granularity(rc_checking *checking)
{
    bool is_selective = rc_checking_is_selective(checking);
    if (IS_NULL(recompute_granularity))
        return;
    if (!is_selective && !IS(recompute_granularity, "full"))
        RAISE(recompute_granularity_unknown);
    if (!IS_NULL(recompute_method) && !IS(recompute_method, "uniform") &&
        !IS(recompute_method, "block"))
        RAISE(recompute_method_unknown);
    if (!is_selective)
        full(checking);
    else if (!IS_NULL(recompute_num_layers))
        RAISE(selective_recompute_forbids_num_layers);
    if (ON(distribute_saved_activations) && ON(sequence_parallel))
        RAISE(distribute_saved_excludes_sequence_parallel);
    if (!SINCE(0_11) && !IS_NULL(virtual_pipeline_model_parallel_size) &&
        rc_checking_need_uneven(checking, RC_CHECKED_num_layers,
                                RC_CHECKED_virtual_pipeline_model_parallel_size,
                                RC_RULE_python_zero_division))
        RAISE(recompute_layers_divisible_by_vpp);
}

static void label_names(rc_checking *checking)
{
    const rc_doc *modules = checking->at[RC_CHECKED_recompute_modules];
    if (!rc_checking_need_set(checking, RC_CHECKED_recompute_modules))
        return;
    if (modules->kind == RC_DOC_STRING && modules->n_bytes)
        RAISE_ITEM(recompute_module_unknown, modules->text); /* its letters are looked up */
    if (modules->kind != RC_DOC_LIST)
        return;
    for (const rc_doc *item = modules->child; item; item = item->next)
        if (item->kind != RC_DOC_STRING || !rc_checking_knows_label(checking, item->text))
            RAISE_ITEM(recompute_module_unknown, item->text);
}

static void label_precision(rc_checking *checking)
{
    if (!ON(fp8) || (!IN(recompute_modules, "moe_act") && !IN(recompute_modules, "layernorm")))
        return;
    RAISE(fp8_excludes_act_or_norm_recompute); /* 0.13 alone */
    if (IS(fp8_recipe, "delayed"))
        RAISE(fp8_delayed_excludes_act_or_norm_recompute);
    else if (rc_te_is_below(&checking->te, "2.6.0.dev0"))
        RAISE(fp8_act_or_norm_recompute_needs_te_2_6);
}

/* The labels whose need the config class looks at. */
static void label_need(rc_checking *checking, rc_label label)
{
    static const rc_rule refused[RC_LABEL_NEED_COUNT] = {
        [RC_LABEL_NEED_LATENT_ATTENTION] = RC_RULE_mla_up_proj_recompute_needs_mla,
        [RC_LABEL_NEED_DELTA_NET] = RC_RULE_gdn_norm_out_recompute_needs_gdn,
    };
    const rc_label_facts *facts = rc_label_find_facts(label);
    rc_rule rule = refused[facts->needs];
    if (rule && IN(recompute_modules, facts->name) && !rc_model_meets(checking, facts->needs))
        rc_checking_raise(checking, rule, facts->name);
}

static void label_needs(rc_checking *checking)
{
    if (IN(recompute_modules, "moe_act") && !ON(moe_grouped_gemm)) {
        RAISE_ITEM(moe_act_recompute_needs_grouped_gemm, "moe_act");
        checking->is_told[RC_RULE_moe_act_sequential_mlp] = true;
    }
    for (rc_label label = 0; label < RC_LABEL_COUNT; label++)
        label_need(checking, label);
    if (IN(recompute_modules, "core_attn"))
        WARN(warn_core_attn_recompute_may_be_needless);
    if (IN(recompute_modules, "shared_experts") &&
        !IS_NULL(moe_shared_expert_intermediate_size) && ON(moe_shared_expert_overlap))
        RAISE_ITEM(shared_experts_recompute_excludes_overlap, "shared_experts");
    label_precision(checking);
}

/* Acts behind all checks above, so it lets through what they would refuse. */
static void moe_layer_switch(rc_checking *checking)
{
    if (!ON(moe_layer_recompute) || !SINCE(0_12))
        return;
    WARN(warn_moe_layer_recompute_deprecated);
    if (IS(recompute_granularity, "full")) {
        RAISE(moe_layer_recompute_excludes_full);
        return;
    }
    rc_checking_set_text(checking, RC_CHECKED_recompute_granularity, "selective",
                         RC_RULE_set_moe_layer_recompute);
    const rc_doc *modules = checking->at[RC_CHECKED_recompute_modules];
    bool is_sized = rc_checking_need_sized(checking, RC_CHECKED_recompute_modules);
    if (!is_sized || IN(recompute_modules, "moe"))
        return;
    if (modules->kind != RC_DOC_LIST) { /* nothing can be appended to it */
        rc_checking_crash(checking, RC_RULE_recompute_module_unknown, "AttributeError");
        return;
    }
    rc_doc *list = rc_checking_new_list(checking);
    rc_checking_list_add_all(checking, list, modules);
    rc_checking_list_add(checking, list, "moe");
    if (list)
        checking->at[RC_CHECKED_recompute_modules] = list;
}

void rc_core_recompute(rc_checking *checking)
{
    granularity(checking);
    if (IS_NULL(recompute_modules)) {
        rc_doc *list = rc_checking_new_list(checking);
        rc_checking_list_add(checking, list, "core_attn");
        if (list)
            rc_checking_set(checking, RC_CHECKED_recompute_modules, list,
                            RC_RULE_set_recompute_modules_default);
    }
    if (rc_checking_is_selective(checking) && SINCE(0_12)) {
        label_names(checking);
        label_needs(checking);
    }
    moe_layer_switch(checking);
}
