/* rules_advice_state.c — what no recompute frees: weights, optimizer, loss. */
#include "check/advice.h"
#include "check/model.h"

#include <string.h>

/* Bytes a parameter holds at least: weight and gradient, and the optimizer's share where it is not
 * dealt out over data-parallel ranks (Megatron-LM distributed_data_parallel, distrib_optimizer). */
static double parameter_bytes(const rc_checking *checking)
{
    const rc_config *cfg = checking->cfg;
    bool is_sharded = cfg->use_distributed_optimizer || cfg->ddp_use_distributed_optimizer ||
                      ON(use_megatron_fsdp) || ON(use_torch_fsdp2);
    bool is_said = checking->framework == RC_FRAMEWORK_MEGATRON_LM ||
                   checking->is_given[RC_CHECKED_use_distributed_optimizer];
    return is_sharded || !is_said ? 6.0 : 18.0;
}

static void tied_embeddings(rc_checking *checking, const rc_sizes *sizes)
{
    bool is_tied = (checking->is_given[RC_CHECKED_share_embeddings_and_output_weights] ||
                    checking->framework == RC_FRAMEWORK_MEGATRON_LM) &&
                   ON(share_embeddings_and_output_weights);
    if (!is_tied || !(sizes->p > 1.0) || rc_model_has_own_split(checking) ||
        rc_model_counts_ends(checking) || ON(peft))
        return;
    double bytes = sizes->vocab * sizes->h / sizes->t * parameter_bytes(checking);
    char buf[32];
    if (rc_sizes_is_much(bytes))
        WARN_HERE(tied_embeddings_twice, NULL, "%s more on the last stage",
                  rc_sizes_say(bytes, buf));
}

static void replicated_projections(rc_checking *checking, const rc_sizes *sizes)
{
    if (!IS(transformer_impl, "transformer_engine") || ON(peft))
        return;
    double layer = sizes->h * (sizes->q_rank + sizes->kv_rank + sizes->r_dim);
    double bytes = layer * sizes->first * (1.0 - 1.0 / sizes->t) * parameter_bytes(checking);
    char buf[32];
    if (rc_sizes_is_much(bytes))
        WARN_HERE(mla_down_projections_replicated, NULL, "%s more %s", rc_sizes_say(bytes, buf),
                  rc_sizes_say_stage(sizes));
}

static void main_weights(rc_checking *checking, const rc_sizes *sizes)
{
    const rc_config *cfg = checking->cfg;
    bool is_full_main = cfg->main_params_dtype && strstr(cfg->main_params_dtype, "32");
    if (!ON(use_precision_aware_optimizer) || ON(store_param_remainders) || !is_full_main ||
        !ON(bf16))
        return;
    double bytes = 2.0 * rc_sizes_parameters(sizes);
    double n_shards = (double)cfg->data_parallel_size * sizes->c; /* experts: fewer */
    char buf[32];
    if (bytes > 0.0 && cfg->data_parallel_size > 0 && !(sizes->experts > 0.0))
        WARN_HERE(precision_aware_full_main_weights, NULL, "%s %s",
                  rc_sizes_say(bytes / n_shards, buf), rc_sizes_say_stage(sizes));
    else if (bytes > 0.0)
        WARN_HERE(precision_aware_full_main_weights, NULL,
                  "%s %s, dealt out over data-parallel ranks", rc_sizes_say(bytes, buf),
                  rc_sizes_say_stage(sizes));
    else
        WARN(precision_aware_full_main_weights);
}

static void gradients(rc_checking *checking, const rc_sizes *sizes)
{
    if (!checking->is_given[RC_CHECKED_grad_reduce_in_fp32] || ON(grad_reduce_in_fp32) ||
        !ON(bf16) || parameter_bytes(checking) < 18.0 || ON(use_precision_aware_optimizer) ||
        ON(peft))
        return;
    double bytes = 4.0 * rc_sizes_parameters(sizes);
    char buf[32];
    if (rc_sizes_is_much(bytes))
        WARN_HERE(bf16_gradients_copied_at_step, NULL, "%s %s at each step",
                  rc_sizes_say(bytes, buf), rc_sizes_say_stage(sizes));
}

/* A softmax in fp32 for the model and each MTP layer, and the logits it is made of. */
static void loss(rc_checking *checking, const rc_sizes *sizes)
{
    double n_mtp = IS_NULL(mtp_num_layers) ? 0.0 : NUMBER(mtp_num_layers);
    double bytes = sizes->n_tokens * sizes->vocab / sizes->t * (4.0 * (1.0 + n_mtp) + 2.0);
    if (!rc_sizes_is_much(bytes))
        return;
    double layer = rc_sizes_layer(checking, sizes);
    double replay = rc_checking_is_full(checking) ? rc_sizes_whole_layer(checking, sizes) : 0.0;
    double last = sizes->last * layer, first = sizes->first * sizes->n_held * layer;
    char buf[32], layers[32];
    if (!(last > 0.0) || bytes < last + replay || bytes + last < first)
        return;
    WARN_HERE(loss_is_the_peak, NULL, "%s, where %g layers retain %s", rc_sizes_say(bytes, buf),
              sizes->last, rc_sizes_say(last, layers));
}

/* Apex's kernel alone reads it, and only for LayerNorm. */
static void norms(rc_checking *checking)
{
    if (ON(memory_efficient_layer_norm) &&
        (!IS(transformer_impl, "local") || !IS(normalization, "LayerNorm")))
        WARN(memory_efficient_norm_unused);
}

void rc_advice_state(rc_checking *checking, const rc_sizes *sizes)
{
    tied_embeddings(checking, sizes);
    replicated_projections(checking, sizes);
    main_weights(checking, sizes);
    gradients(checking, sizes);
    loss(checking, sizes);
    norms(checking);
}
