/* rules_advice.c — settings that are accepted and then do nothing, or harm: what the switches mean.
 * The rest by subject: rules_advice_labels.c, _layers.c, _attention.c, _mlp.c, _state.c, _offload.c.
 *
 * above  rules_advice_*.c and advice.c
 */
#include "check/advice.h"
#include "check/layers.h"
#include "check/model.h"

static bool lists_labels(const rc_checking *checking)
{
    return checking->is_given[RC_CHECKED_recompute_modules] &&
           checking->given[RC_CHECKED_recompute_modules]->kind == RC_DOC_LIST;
}

static void selective(rc_checking *checking)
{
    bool has_list = lists_labels(checking);
    if (!has_list && !ON(moe_layer_recompute))
        WARN(implicit_core_attn);
    if (!ON(recompute_modules))
        WARN(empty_recompute_modules);
    if (!IS_NULL(recompute_method))
        WARN(selective_ignores_method);
    if (ON(moe_layer_recompute) && !has_list)
        WARN(moe_layer_recompute_keeps_core_attn);
}

static void granularity(rc_checking *checking)
{
    bool names_labels =
        lists_labels(checking) && checking->given[RC_CHECKED_recompute_modules]->n_children > 0;
    if (IS_NULL(recompute_granularity) &&
        (!IS_NULL(recompute_method) || !IS_NULL(recompute_num_layers) || names_labels))
        WARN(recompute_flags_without_granularity);
    if (rc_checking_is_full(checking) && lists_labels(checking))
        WARN(full_ignores_modules);
    if (rc_checking_is_selective(checking))
        selective(checking);
}

static void distributed_saved(rc_checking *checking)
{
    if (!ON(distribute_saved_activations))
        return;
    if (!rc_checking_is_full(checking))
        WARN(distribute_saved_with_selective);
    else if (!ABOVE(tensor_model_parallel_size, 1))
        WARN(distribute_saved_without_tp);
}

/* Bridge makes a block's input require a gradient, in the newest release and of plain stacks. */
static void adapters(rc_checking *checking)
{
    bool is_skipping = (ON(fp8) || ON(fp4)) && IS(recompute_method, "block");
    bool is_patched = SINCE(main) && !rc_model_is_hybrid(checking);
    if (!ON(peft))
        return;
    if (rc_checking_is_full(checking) && is_skipping)
        WARN(block_window_shifts);
    else if (rc_checking_is_full(checking) && !is_patched)
        WARN(lora_full_recompute_no_input_grad);
    else if (RECOMPUTES(core_attn) || RECOMPUTES(mlp) || RECOMPUTES(moe) ||
             RECOMPUTES(shared_experts))
        WARN(lora_selective_no_input_grad);
}

void rc_check_advice(rc_checking *checking)
{
    rc_sizes sizes;
    rc_sizes_find(checking, &sizes);
    granularity(checking);
    distributed_saved(checking);
    adapters(checking);
    rc_advice_labels(checking, &sizes);
    rc_advice_layers(checking, &sizes);
    rc_advice_attention(checking, &sizes);
    rc_advice_mlp(checking, &sizes);
    rc_advice_state(checking, &sizes);
    rc_advice_offload(checking, &sizes);
}
