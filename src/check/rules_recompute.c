/* rules_recompute.c — granularity, method, number of layers, labels. */
#include "check/core.h"

#include <recompute/label.h>

#include <string.h>

static void full(rc_core *core)
{
    if (IS_NULL(recompute_method))
        RAISE(full_recompute_needs_method);
    if (!IS_NULL(recompute_num_layers))
        return;
    /* the message names layers per stage, and dies dividing by a pipeline of 0 */
    rc_core_divide(core, RC_CORE_num_layers, RC_CORE_pipeline_model_parallel_size,
                   RC_RULE_pipeline_size_zero_crash);
    RAISE(full_recompute_needs_num_layers);
}

static void granularity(rc_core *core)
{
    bool is_selective = rc_core_is_selective(core);
    if (IS_NULL(recompute_granularity))
        return;
    if (!is_selective && !IS(recompute_granularity, "full"))
        RAISE(recompute_granularity_unknown);
    if (!IS_NULL(recompute_method) && !IS(recompute_method, "uniform") &&
        !IS(recompute_method, "block"))
        RAISE(recompute_method_unknown);
    if (!is_selective)
        full(core);
    else if (!IS_NULL(recompute_num_layers))
        RAISE(selective_recompute_forbids_num_layers);
    if (ON(distribute_saved_activations) && ON(sequence_parallel))
        RAISE(distribute_saved_excludes_sequence_parallel);
    if (!SINCE("0.11") && !IS_NULL(virtual_pipeline_model_parallel_size) &&
        rc_core_divides_unevenly(core, RC_CORE_num_layers,
                                 RC_CORE_virtual_pipeline_model_parallel_size,
                                 RC_RULE_python_zero_division))
        RAISE(recompute_layers_divisible_by_vpp);
}

/* The release that brought each label; the others came with the list, in 0.12. */
bool rc_core_is_label(const rc_core *core, const char *name)
{
    static const struct {
        const char *label, *since;
    } later[] = {{"shared_experts", "0.14"},
                 {"gdn_norm_out", "0.19"},
                 {"gdp_in_proj", "main"},
                 {"gdp_qkv", "main"},
                 {"mhc", "main"}};
    rc_label label;
    for (size_t i = 0; i < sizeof later / sizeof *later; i++)
        if (strcmp(later[i].label, name) == 0)
            return SINCE(later[i].since);
    return rc_label_find(name, &label);
}

static void label_names(rc_core *core)
{
    const rc_doc *modules = core->at[RC_CORE_recompute_modules];
    if (!rc_core_is_set(core, RC_CORE_recompute_modules))
        return;
    if (modules->kind == RC_DOC_STRING && modules->n_bytes)
        RAISE_ITEM(recompute_module_unknown, modules->text); /* its letters are looked up */
    if (modules->kind != RC_DOC_LIST)
        return;
    for (const rc_doc *item = modules->child; item; item = item->next)
        if (item->kind != RC_DOC_STRING || !rc_core_is_label(core, item->text))
            RAISE_ITEM(recompute_module_unknown, item->text);
}

static void label_precision(rc_core *core)
{
    if (!ON(fp8) ||
        (!HAS(recompute_modules, "moe_act") && !HAS(recompute_modules, "layernorm")))
        return;
    RAISE(fp8_excludes_act_or_norm_recompute); /* 0.13 alone */
    if (IS(fp8_recipe, "delayed"))
        RAISE(fp8_delayed_excludes_act_or_norm_recompute);
    else if (rc_te_is_below(&core->te, "2.6.0.dev0"))
        RAISE(fp8_act_or_norm_recompute_needs_te_2_6);
}

static void label_needs(rc_core *core)
{
    if (HAS(recompute_modules, "moe_act") && !ON(moe_grouped_gemm)) {
        RAISE_ITEM(moe_act_recompute_needs_grouped_gemm, "moe_act");
        core->is_told[RC_RULE_moe_act_sequential_mlp] = true;
    }
    if (HAS(recompute_modules, "mla_up_proj") && !ON(multi_latent_attention))
        RAISE_ITEM(mla_up_proj_recompute_needs_mla, "mla_up_proj");
    if (HAS(recompute_modules, "gdn_norm_out") && !rc_core_is_delta_net(core))
        RAISE_ITEM(gdn_norm_out_recompute_needs_gdn, "gdn_norm_out");
    if (HAS(recompute_modules, "core_attn"))
        WARN(warn_core_attn_recompute_may_be_needless);
    if (HAS(recompute_modules, "shared_experts") &&
        !IS_NULL(moe_shared_expert_intermediate_size) && ON(moe_shared_expert_overlap))
        RAISE_ITEM(shared_experts_recompute_excludes_overlap, "shared_experts");
    label_precision(core);
}

/* Acts behind all checks above, so it lets through what they would refuse. */
static void moe_layer_switch(rc_core *core)
{
    if (!ON(moe_layer_recompute) || !SINCE("0.12"))
        return;
    WARN(warn_moe_layer_recompute_deprecated);
    if (IS(recompute_granularity, "full")) {
        RAISE(moe_layer_recompute_excludes_full);
        return;
    }
    rc_core_set_text(core, RC_CORE_recompute_granularity, "selective",
                     RC_RULE_set_moe_layer_recompute);
    const rc_doc *modules = core->at[RC_CORE_recompute_modules];
    bool is_sized = rc_core_is_sized(core, RC_CORE_recompute_modules);
    if (!is_sized || HAS(recompute_modules, "moe"))
        return;
    if (modules->kind != RC_DOC_LIST) { /* nothing can be appended to it */
        rc_core_crash(core, RC_RULE_recompute_module_unknown, "AttributeError");
        return;
    }
    rc_doc *list = rc_core_new_list(core);
    rc_core_list_add_all(core, list, modules);
    rc_core_list_add(core, list, "moe");
    if (list)
        core->at[RC_CORE_recompute_modules] = list;
}

void rc_core_recompute(rc_core *core)
{
    granularity(core);
    if (IS_NULL(recompute_modules)) {
        rc_doc *list = rc_core_new_list(core);
        rc_core_list_add(core, list, "core_attn");
        if (list)
            rc_core_set(core, RC_CORE_recompute_modules, list,
                        RC_RULE_set_recompute_modules_default);
    }
    if (rc_core_is_selective(core) && SINCE("0.12")) {
        label_names(core);
        label_needs(core);
    }
    moe_layer_switch(core);
}
