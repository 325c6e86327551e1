/* rules_offload.c — layer-wise CPU offloading, fine-grained offloading, paged stash. */
#include "check/layers.h"

#include <string.h>

void rc_core_cpu_offload(rc_checking *checking)
{
    if (!ON(cpu_offloading))
        return;
    double n_offloaded = NUMBER(cpu_offloading_num_layers);
    if (n_offloaded < 0.0 || n_offloaded >= NUMBER(num_layers))
        RAISE(cpu_offload_layer_count_range);
    if (ABOVE(pipeline_model_parallel_size, 1))
        RAISE(cpu_offload_no_pipeline_parallel);
    if (!IS_NULL(recompute_granularity))
        RAISE(cpu_offload_excludes_recompute);
}

static bool is_offload_module(const rc_checking *checking, const rc_doc *item)
{
    static const char *const always[] = {"core_attn", "attn_proj", "expert_fc1", "moe_act",
                                         "attn_norm", "mlp_norm",  "qkv_linear"};
    if (item->kind != RC_DOC_STRING)
        return false;
    if (strcmp(item->text, "fused_group_mlp") == 0)
        return SINCE(0_19);
    if (strcmp(item->text, "gdp_qkv") == 0)
        return SINCE(main);
    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        if (strcmp(always[i], item->text) == 0)
            return true;
    return false;
}

static bool offloads_moe_part(rc_checking *checking)
{
    return IN(offload_modules, "expert_fc1") || IN(offload_modules, "moe_act") ||
           IN(offload_modules, "fused_group_mlp");
}

static void module_names(rc_checking *checking)
{
    const rc_doc *modules = checking->at[RC_CHECKED_offload_modules];
    if (!rc_checking_need_set(checking, RC_CHECKED_offload_modules))
        return;
    if (modules->kind == RC_DOC_STRING)
        RAISE_ITEM(offload_module_unknown, modules->text); /* its letters are looked up */
    for (const rc_doc *item = modules->child; item; item = item->next)
        if (!is_offload_module(checking, item))
            RAISE_ITEM(offload_module_unknown, item->text);
}

static void fused_group_mlp(rc_checking *checking)
{
    if (!ON(use_transformer_engine_op_fuser))
        RAISE(offload_fused_group_mlp_needs_op_fuser);
    if (IN(offload_modules, "expert_fc1") || IN(offload_modules, "moe_act"))
        RAISE(offload_fused_group_mlp_excludes_parts);
}

static void modules(rc_checking *checking)
{
    if (IN(offload_modules, "attn_proj") && !IN(offload_modules, "core_attn"))
        RAISE(offload_attn_proj_needs_core_attn);
    if (IN(offload_modules, "gdp_qkv") && RECOMPUTES(gdp_in_proj))
        RAISE(offload_gdp_qkv_excludes_gdp_in_proj_recompute);
    if (offloads_moe_part(checking) && RECOMPUTES(moe))
        RAISE(moe_recompute_excludes_moe_offload);
    if (SINCE(0_19) && BELOW(min_offloaded_tensor_size, 0))
        RAISE(min_offload_size_non_negative);
    if (BELOW(activation_offload_fraction, 0) || ABOVE(activation_offload_fraction, 1))
        RAISE(offload_fraction_in_unit_interval);
    if (BELOW(delta_offload_bytes_across_pp_ranks, 0))
        RAISE(offload_delta_bytes_non_negative);
    if (IN(offload_modules, "fused_group_mlp"))
        fused_group_mlp(checking);
}

static void fine_grained(rc_checking *checking)
{
    if (ON(cpu_offloading))
        RAISE(fine_grained_offload_excludes_cpu_offload);
    if (!IS_NULL(offload_modules) &&
        !rc_checking_need_sized(checking, RC_CHECKED_offload_modules))
        return;
    if (!ON(offload_modules)) {
        RAISE(fine_grained_offload_needs_modules);
        return;
    }
    module_names(checking);
    modules(checking);
}

static void paged_stash(rc_checking *checking)
{
    if (ON(cpu_offloading))
        RAISE(paged_stash_excludes_cpu_offload);
    if (IS_NULL(moe_expert_rank_capacity_factor))
        RAISE(paged_stash_needs_rank_capacity);
    if (rc_checking_need_set(checking, RC_CHECKED_offload_modules) &&
        (rc_checking_is_in_set(checking, RC_CHECKED_offload_modules, "expert_fc1") ||
         rc_checking_is_in_set(checking, RC_CHECKED_offload_modules, "moe_act") ||
         (SINCE(0_19) &&
          rc_checking_is_in_set(checking, RC_CHECKED_offload_modules, "fused_group_mlp"))))
        RAISE(paged_stash_excludes_moe_offload_modules);
}

void rc_core_fine_offload(rc_checking *checking)
{
    if (ON(fine_grained_activation_offloading))
        fine_grained(checking);
    if (ON(gdp_cutedsl_kernel) && (BELOW(gdp_num_chunk_states_to_recompute, 0) ||
                                   ABOVE(gdp_num_chunk_states_to_recompute, 64)))
        RAISE(gdp_chunk_state_recompute_range);
    if (ON(moe_paged_stash))
        paged_stash(checking);
}
