/* rules_advice_offload.c — activations that travel to the host, and the blocks that they leave. */
#include "check/advice.h"

#include <string.h>

/* Some labels are names of offloaded modules too. */
static void both_ways(rc_checking *checking)
{
    static const rc_label both[] = {RC_LABEL_core_attn, RC_LABEL_moe_act, RC_LABEL_gdp_qkv};
    for (size_t i = 0; i < sizeof both / sizeof *both; i++) {
        const char *name = rc_label_find_facts(both[i])->name;
        if (rc_checking_need_label(checking, both[i]) && IN(offload_modules, name))
            WARN_ITEM(recompute_and_offload_same_label, name);
    }
}

/* The largest tensor that a module saves, in elements; 0 when unknown. */
static double largest_saved(const rc_sizes *sizes, const char *module)
{
    double heads = sizes->n_tokens * sizes->heads;
    if (strcmp(module, "attn_norm") == 0 || strcmp(module, "mlp_norm") == 0 ||
        strcmp(module, "qkv_linear") == 0)
        return sizes->n_outer * sizes->h;
    if (strcmp(module, "core_attn") == 0)
        return heads * (sizes->d > sizes->dv ? sizes->d : sizes->dv);
    if (strcmp(module, "attn_proj") == 0)
        return heads * sizes->dv;
    if (strcmp(module, "expert_fc1") == 0)
        return rc_sizes_rows(sizes) * sizes->moe_width;
    if (strcmp(module, "moe_act") == 0)
        return rc_sizes_rows(sizes) * sizes->glu * sizes->fe / sizes->et;
    return 0.0;
}

static void thresholds(rc_checking *checking, const rc_sizes *sizes)
{
    const rc_doc *modules = checking->at[RC_CHECKED_offload_modules];
    if (modules->kind != RC_DOC_LIST || IS_NULL(min_offloaded_tensor_size))
        return;
    double least = NUMBER(min_offloaded_tensor_size);
    for (const rc_doc *item = modules->child; item; item = item->next) {
        double largest = item->kind == RC_DOC_STRING ? largest_saved(sizes, item->text) : 0.0;
        if (largest > 0.0 && largest < least)
            WARN_HERE(offload_below_threshold, item->text,
                      "its largest tensor has %.0f elements, the limit is %.0f", largest,
                      least);
    }
}

/* Blocks of sizes that differ from step to step: what a label gives back does not fit again. */
static void fragments(rc_checking *checking)
{
    bool is_known = !IS_NULL(pytorch_cuda_alloc_conf) || !IS_NULL(pytorch_alloc_conf);
    bool is_padded = ON(moe_pad_expert_input_to_capacity) || ON(moe_paged_stash);
    if (is_known && !rc_checking_need_expandable_segments(checking) && RECOMPUTES(moe_act) &&
        ON(num_moe_experts) && !is_padded && IS(cuda_graph_impl, "none"))
        WARN_ITEM(discarded_blocks_fragment, "moe_act");
}

static void allocator(rc_checking *checking)
{
    bool is_graphed =
        !IS(cuda_graph_impl, "none") && !IS(cuda_graph_impl, "transformer_engine");
    if (is_graphed && rc_checking_need_expandable_segments(checking))
        WARN(expandable_segments_with_graphs);
    fragments(checking);
}

void rc_advice_offload(rc_checking *checking, const rc_sizes *sizes)
{
    allocator(checking);
    if (!ON(fine_grained_activation_offloading) || !ON(offload_modules))
        return;
    both_ways(checking);
    thresholds(checking, sizes);
}
