/* rules_overlap.c — expert-parallel overlap, delayed weight gradients, and the MLA class's own
 * checks, which come last. */
#include "check/layers.h"

#include <string.h>

void rc_core_overlap_recompute(rc_checking *checking)
{
    if (IS(recompute_granularity, "full"))
        RAISE(ep_overlap_excludes_full_recompute);
    if (!IS_NULL(recompute_method))
        RAISE(ep_overlap_excludes_recompute_method);
    if (!IS_NULL(recompute_num_layers))
        RAISE(ep_overlap_excludes_recompute_num_layers);
    if (SINCE(0_17) && !IS_NULL(recompute_modules) && IN(recompute_modules, "moe"))
        RAISE_ITEM(ep_overlap_excludes_moe_recompute, "moe");
}

static void overlap_mtp(rc_checking *checking)
{
    bool is_one = rc_checking_is_number(checking, RC_CHECKED_mtp_num_layers, 1);
    bool is_zero = rc_checking_is_number(checking, RC_CHECKED_mtp_num_layers, 0);
    if (!IS_NULL(mtp_num_layers) && !is_one && !(is_zero && SINCE(0_19)))
        RAISE(ep_overlap_mtp_at_most_one);
    if (is_one && !ABOVE(pipeline_model_parallel_size, 1))
        RAISE(ep_overlap_mtp_needs_pipeline); /* 0.16 and 0.17 */
}

static void overlap_graphs(rc_checking *checking)
{
    if (!IS(cuda_graph_impl, "none") && !IS(cuda_graph_impl, "transformer_engine"))
        RAISE(ep_overlap_needs_te_graphs); /* 0.16 and 0.17 */
    if (SINCE(0_16) && IS(cuda_graph_impl, "transformer_engine") &&
        (IN(cuda_graph_modules, "moe") || IN(cuda_graph_modules, "mlp")))
        RAISE(ep_overlap_te_graph_excludes_moe_mlp);
}

static void overlap_ncclep(rc_checking *checking)
{
    if (!ON(moe_ncclep_static_shape))
        WARN(warn_ep_overlap_ncclep_waits); /* 0.19 alone */
    if (ON(fine_grained_activation_offloading) && IN(offload_modules, "expert_fc1"))
        RAISE(ep_overlap_ncclep_excludes_expert_fc1_offload);
}

static void overlap(rc_checking *checking)
{
    bool is_flex = IS(moe_token_dispatcher_type, "flex");
    if (ABOVE(pipeline_model_parallel_size, 1) && IS_NULL(virtual_pipeline_model_parallel_size))
        RAISE(ep_overlap_pp_needs_vpp);
    if (!ABOVE(expert_model_parallel_size, 1))
        RAISE(ep_overlap_needs_expert_parallel);
    if (!is_flex && !IS(moe_token_dispatcher_type, "alltoall"))
        RAISE(ep_overlap_needs_alltoall_or_flex);
    rc_core_overlap_recompute(checking);
    if (!ON(bf16) && !ON(fp16))
        RAISE(ep_overlap_needs_half_precision);
    if (ON(moe_shared_expert_overlap))
        RAISE(ep_overlap_excludes_shared_expert_overlap);
    overlap_mtp(checking);
    if (is_flex && IS(moe_flex_dispatcher_backend, "ncclep"))
        overlap_ncclep(checking);
    overlap_graphs(checking);
}

static void weight_gradients(rc_checking *checking)
{
    if (ON(delay_wgrad_compute)) {
        if (!ON(overlap_moe_expert_parallel_comm))
            RAISE(delay_wgrad_needs_ep_overlap);
        if (IS(cuda_graph_impl, "transformer_engine") &&
            rc_te_is_below(&checking->te, "2.10.0"))
            RAISE(delay_wgrad_te_graph_needs_te_2_10);
    }
    if (ON(overlap_dispatch_backward_with_experts_wgrad)) {
        if (ON(overlap_moe_expert_parallel_comm))
            RAISE(dispatch_wgrad_overlap_excludes_ep_overlap);
        if (rc_te_is_below(&checking->te, "2.3.0"))
            RAISE(dispatch_wgrad_overlap_needs_te_2_3);
    }
    if (ON(ep_overlap_early_attn_memory_release) && !ON(overlap_moe_expert_parallel_comm))
        RAISE(early_attn_release_needs_ep_overlap);
}

void rc_core_overlap(rc_checking *checking)
{
    if (ON(overlap_moe_expert_parallel_comm))
        overlap(checking);
    weight_gradients(checking);
    if (SINCE(0_12))
        (void)ABOVE(context_parallel_size, 1); /* only to see that it is a number */
    if (!ABOVE(pipeline_model_parallel_size, 0))
        RAISE(pipeline_size_positive);
    if (!IS_NULL(num_moe_experts) && !BELOW(num_moe_experts, 32) && !ON(moe_router_dtype))
        WARN(warn_many_experts_without_router_dtype);
}

static bool is_gathering(const rc_doc *type)
{
    return type->kind == RC_DOC_STRING &&
           (strcmp(type->text, "all_gather") == 0 || strcmp(type->text, "allgather") == 0);
}

static void sparse_attention(rc_checking *checking)
{
    if (!IS(experimental_attention_variant, "dsa"))
        return;
    if (ABOVE(context_parallel_size, 1))
        RAISE(dsa_excludes_context_parallel); /* 0.16 to 0.18 */
    if (ON(apply_rope_fusion))
        RAISE(dsa_excludes_rope_fusion);
    if (ABOVE(context_parallel_size, 1) && !is_gathering(checking->at[RC_CHECKED_cp_comm_type]))
        RAISE(dsa_context_parallel_gathers);
}

void rc_core_mla(rc_checking *checking)
{
    sparse_attention(checking);
    if (!checking->is_mla)
        return;
    if (ON(multi_latent_attention) && ON(apply_rope_fusion) && !IS(rope_type, "yarn"))
        RAISE(mla_rope_fusion_needs_yarn);
    if (ON(attention_output_gate))
        RAISE(mla_excludes_output_gate);
    if (ON(cache_mla_latents) && !rc_checking_is_false(checking, RC_CHECKED_apply_rope_fusion))
        RAISE(mla_cache_latents_excludes_rope_fusion);
}
