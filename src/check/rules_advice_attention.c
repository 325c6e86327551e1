/* rules_advice_attention.c — what attention keeps besides what its label frees. */
#include "check/advice.h"

static bool is_attention_replayed(rc_checking *checking)
{
    return rc_checking_is_full(checking) || RECOMPUTES(core_attn);
}

/* Without a fused kernel: the scores, and keys and values repeated to all heads. */
static void scores(rc_checking *checking, const rc_sizes *sizes)
{
    if (rc_sizes_has_fused_attention(checking) || is_attention_replayed(checking) ||
        rc_advice_need_captured(checking, "attn"))
        return;
    double repeated =
        2.0 * sizes->n_tokens * (sizes->d + sizes->dv) * (sizes->heads - sizes->groups);
    double kept = rc_sizes_scores(checking, sizes) + repeated;
    WARN_LAYER(unfused_attention_keeps_scores, kept);
}

/* Megatron's own attention takes the value as a slice; a checkpoint around any does. With grouped
 * queries it is copied when it is repeated. */
static void pinned_values(rc_checking *checking, const rc_sizes *sizes)
{
    bool is_slice = !(sizes->groups < sizes->heads) || RECOMPUTES(core_attn);
    if (!IS(transformer_impl, "local") || !rc_sizes_slices_value(checking) ||
        rc_checking_is_full(checking) || rc_sizes_has_fused_attention(checking) || !is_slice)
        return;
    WARN_LAYER(local_attention_pins_qkv, rc_sizes_slice(sizes));
}

static void second_output(rc_checking *checking, const rc_sizes *sizes)
{
    bool is_exchanged = IS(cp_comm_type, "a2a") && ABOVE(context_parallel_size, 1);
    double more = 2.0 * sizes->n_tokens * sizes->heads * sizes->dv;
    if (!(rc_sizes_has_flash_batches(checking) || is_exchanged) ||
        is_attention_replayed(checking))
        return;
    WARN_LAYER(attention_output_twice, more);
}

/* A ring keeps every received piece until it ends; a gather has a second, ordered copy. */
static void whole_sequence(rc_checking *checking, const rc_sizes *sizes)
{
    bool is_gather = IS(cp_comm_type, "all_gather");
    if (!ABOVE(context_parallel_size, 1) ||
        !(IS_NULL(cp_comm_type) || IS(cp_comm_type, "p2p") || is_gather))
        return;
    double held = 2.0 * sizes->n_tokens * sizes->c * sizes->groups * (sizes->d + sizes->dv);
    char buf[32];
    if (rc_sizes_is_much(is_gather ? 2.0 * held : held))
        WARN_HERE(context_parallel_holds_all_keys, NULL, "%s while one layer runs",
                  rc_sizes_say(is_gather ? 2.0 * held : held, buf));
}

/* The gathered projection is gone after attention, unless a checkpoint keeps a slice of it. */
static void few_groups(rc_checking *checking, const rc_sizes *sizes)
{
    bool is_pinned = RECOMPUTES(core_attn) && !ON(fused_single_qkv_rope);
    double gathered = 2.0 * sizes->n_tokens * (sizes->a + 2.0 * sizes->g) * sizes->d;
    double held = is_pinned ? rc_sizes_on_stage(sizes, gathered) : gathered;
    char buf[32];
    if (ON(multi_latent_attention) || !(sizes->g < sizes->t) || !rc_sizes_is_much(held))
        return;
    WARN_HERE(kv_groups_below_tensor_parallel, NULL, "%s %s", rc_sizes_say(held, buf),
              is_pinned ? "over all layers, of which core_attn keeps a slice"
                        : "while one layer runs");
}

void rc_advice_attention(rc_checking *checking, const rc_sizes *sizes)
{
    scores(checking, sizes);
    pinned_values(checking, sizes);
    second_output(checking, sizes);
    whole_sequence(checking, sizes);
    few_groups(checking, sizes);
}
