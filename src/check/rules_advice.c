/* rules_advice.c — settings that are accepted and then do nothing, or harm: what the switches mean.
 * The rest by subject: rules_advice_labels.c, _layers.c, _attention.c, _mlp.c, _state.c, _offload.c.
 */
#include "check/advice.h"

void rc_advice_warn_layer(rc_core *core, rc_rule rule, const rc_sizes *sizes,
                          double layer_bytes)
{
    double stage_bytes = rc_sizes_on_stage(sizes, layer_bytes);
    char layer[32], stage[32];
    if (rc_sizes_is_much(stage_bytes))
        rc_core_warn_here(core, rule, NULL, "%s a layer and micro-batch, %s %s",
                          rc_sizes_say(layer_bytes, layer), rc_sizes_say(stage_bytes, stage),
                          rc_sizes_say_stage(sizes));
}

bool rc_advice_is_inside_graph(rc_core *core, const char *module)
{
    return (IS(cuda_graph_impl, "local") || IS(cuda_graph_impl, "transformer_engine")) &&
           rc_core_captures(core, module);
}

static bool lists_labels(const rc_core *core)
{
    return core->is_given[RC_CORE_recompute_modules] &&
           core->given[RC_CORE_recompute_modules]->kind == RC_DOC_LIST;
}

static void selective(rc_core *core)
{
    bool has_list = lists_labels(core);
    if (!has_list && !ON(moe_layer_recompute))
        WARN(implicit_core_attn);
    if (!ON(recompute_modules))
        WARN(empty_recompute_modules);
    if (!IS_NULL(recompute_method))
        WARN(selective_ignores_method);
    if (ON(moe_layer_recompute) && !has_list)
        WARN(moe_layer_recompute_keeps_core_attn);
}

static void granularity(rc_core *core)
{
    bool names_labels =
        lists_labels(core) && core->given[RC_CORE_recompute_modules]->n_children > 0;
    if (IS_NULL(recompute_granularity) &&
        (!IS_NULL(recompute_method) || !IS_NULL(recompute_num_layers) || names_labels))
        WARN(recompute_flags_without_granularity);
    if (rc_core_is_full(core) && lists_labels(core))
        WARN(full_ignores_modules);
    if (rc_core_is_selective(core))
        selective(core);
}

static void distributed_saved(rc_core *core)
{
    if (!ON(distribute_saved_activations))
        return;
    if (!rc_core_is_full(core))
        WARN(distribute_saved_with_selective);
    else if (!ABOVE(tensor_model_parallel_size, 1))
        WARN(distribute_saved_without_tp);
}

/* Bridge makes a block's input require a gradient, in the newest release and of plain stacks. */
static void adapters(rc_core *core)
{
    bool is_skipping = (ON(fp8) || ON(fp4)) && IS(recompute_method, "block");
    bool is_patched = SINCE("main") && !rc_core_is_hybrid(core);
    if (!ON(peft))
        return;
    if (rc_core_is_full(core) && is_skipping)
        WARN(block_window_shifts);
    else if (rc_core_is_full(core) && !is_patched)
        WARN(lora_full_recompute_no_input_grad);
    else if (RECOMPUTES("core_attn") || RECOMPUTES("mlp") || RECOMPUTES("moe") ||
             RECOMPUTES("shared_experts"))
        WARN(lora_selective_no_input_grad);
}

void rc_core_advice(rc_core *core)
{
    rc_sizes sizes;
    rc_sizes_find(core, &sizes);
    granularity(core);
    distributed_saved(core);
    adapters(core);
    rc_advice_labels(core, &sizes);
    rc_advice_layers(core, &sizes);
    rc_advice_attention(core, &sizes);
    rc_advice_mlp(core, &sizes);
    rc_advice_state(core, &sizes);
    rc_advice_offload(core, &sizes);
}
