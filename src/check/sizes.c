/* sizes.c — the model at hand in numbers, and what its layers retain. */
#include "check/sizes.h"
#include "check/model.h"

#include "base/num.h"

#include <math.h>

/* A positive number, or 0: not set, not known before the job runs, or no size at all. */
static double size_of(int64_t value)
{
    return value > 0 ? (double)value : 0.0;
}

static double number_at(const rc_checking *checking, rc_checked_field field)
{
    const rc_doc *value = checking->at[field];
    double number = value->kind == RC_DOC_INT     ? (double)value->i
                    : value->kind == RC_DOC_FLOAT ? value->f
                                                  : 0.0;
    return number > 0.0 ? number : 0.0;
}
#define SIZE(field) number_at(checking, RC_CHECKED_##field)

/* A default stands in for what only the job knows: no figure may rest on it. */
static bool is_any_late(const rc_config *cfg)
{
    static const rc_field fields[] = {
        RC_FIELD_num_layers,
        RC_FIELD_hidden_size,
        RC_FIELD_num_attention_heads,
        RC_FIELD_num_query_groups,
        RC_FIELD_kv_channels,
        RC_FIELD_ffn_hidden_size,
        RC_FIELD_seq_length,
        RC_FIELD_vocab_size,
        RC_FIELD_micro_batch_size,
        RC_FIELD_global_batch_size,
        RC_FIELD_tensor_model_parallel_size,
        RC_FIELD_pipeline_model_parallel_size,
        RC_FIELD_virtual_pipeline_model_parallel_size,
        RC_FIELD_num_layers_per_virtual_pipeline_stage,
        RC_FIELD_context_parallel_size,
        RC_FIELD_expert_model_parallel_size,
        RC_FIELD_expert_tensor_parallel_size,
        RC_FIELD_num_moe_experts,
        RC_FIELD_moe_router_topk,
        RC_FIELD_moe_ffn_hidden_size,
        RC_FIELD_recompute_num_layers,
        RC_FIELD_mtp_num_layers,
    };
    for (size_t i = 0; i < cfg->n_unknown; i++)
        for (size_t k = 0; cfg->unknown[i].is_value && k < sizeof fields / sizeof *fields; k++)
            if (cfg->unknown[i].field == fields[k])
                return true;
    return false;
}

static void find_parallel(const rc_checking *checking, rc_sizes *out)
{
    out->t = SIZE(tensor_model_parallel_size);
    out->p = SIZE(pipeline_model_parallel_size);
    out->v = IS_NULL(virtual_pipeline_model_parallel_size)
                 ? 1.0
                 : SIZE(virtual_pipeline_model_parallel_size);
    out->c = SIZE(context_parallel_size);
    out->ep = SIZE(expert_model_parallel_size);
    out->et = IS_NULL(expert_tensor_parallel_size) ? out->t : SIZE(expert_tensor_parallel_size);
}

static void find_tokens(const rc_checking *checking, rc_sizes *out)
{
    out->sequence = size_of(checking->cfg->seq_length) / out->c;
    out->n_tokens = out->sequence * SIZE(micro_batch_size);
    out->n_outer = ON(sequence_parallel) ? out->n_tokens / out->t : out->n_tokens;
}

static void find_attention(const rc_checking *checking, rc_sizes *out)
{
    const rc_config *cfg = checking->cfg;
    out->a = size_of(cfg->num_attention_heads);
    out->g = size_of(rc_config_groups(cfg));
    out->heads = out->a / out->t;
    out->groups = out->g > out->t ? out->g / out->t : out->g > 0.0;
    out->d = out->dv = size_of(rc_config_head_dim(cfg));
    if (!ON(multi_latent_attention))
        return;
    out->q_rank = size_of(cfg->q_lora_rank);
    out->kv_rank = size_of(cfg->kv_lora_rank);
    out->qk_dim = SIZE(qk_head_dim);
    out->r_dim = SIZE(qk_pos_emb_head_dim);
    out->dv = SIZE(v_head_dim);
    out->groups = out->heads;
    out->d = out->qk_dim + out->r_dim;
}

/* moe_layer_freq is a list of 0 and 1, or n for every n-th layer from the first on. */
static double find_moe_share(const rc_checking *checking)
{
    const rc_doc *freq = checking->at[RC_CHECKED_moe_layer_freq];
    double n_moe = 0.0, every = SIZE(moe_layer_freq), n_layers = SIZE(num_layers);
    if (freq->kind == RC_DOC_LIST) {
        for (const rc_doc *layer = freq->child; layer; layer = layer->next)
            n_moe += layer->kind == RC_DOC_INT && layer->i != 0;
        return freq->n_children ? n_moe / (double)freq->n_children : 0.0;
    }
    return every >= 1.0 && n_layers >= 1.0 ? ceil(n_layers / every) / n_layers : 1.0;
}

static void find_mlp(const rc_checking *checking, rc_sizes *out)
{
    const rc_config *cfg = checking->cfg;
    out->h = size_of(cfg->hidden_size);
    out->f = size_of(rc_config_ffn(cfg));
    out->glu = cfg->gated_linear_unit ? 2.0 : 1.0;
    out->vocab = size_of(rc_config_vocab(cfg, 0));
    if (!ON(num_moe_experts))
        return;
    out->experts = SIZE(num_moe_experts);
    out->k = size_of(cfg->moe_router_topk);
    out->fe = IS_NULL(moe_ffn_hidden_size) ? out->f : SIZE(moe_ffn_hidden_size);
    out->fs = SIZE(moe_shared_expert_intermediate_size);
    out->latent = SIZE(moe_latent_size);
    out->moe_width = out->latent > 0.0 ? out->latent : out->h;
    out->moe_share = find_moe_share(checking);
}

/* Megatron-LM transformer_block.py, get_num_layers_to_build. A layout's stages count as their mean. */
static void find_layers(const rc_checking *checking, rc_sizes *out)
{
    double first = SIZE(num_layers_in_first_pipeline_stage);
    double last = SIZE(num_layers_in_last_pipeline_stage), n_layers = SIZE(num_layers);
    double at_first = ON(account_for_embedding_in_pipeline_split);
    double at_last = ON(account_for_loss_in_pipeline_split);
    if (rc_model_is_hybrid(checking) || !checking->is_given[RC_CHECKED_num_layers])
        return; /* a layer there is an attention, an MLP or a mixer alone */
    double n_even = out->p - (first > 0.0) - (last > 0.0);
    double even = n_even > 0.0 ? (n_layers - first - last + at_first + at_last) / n_even : 0.0;
    out->first = first > 0.0 ? first : even - at_first;
    out->last = out->p <= 1.0 ? out->first : last > 0.0 ? last : even - at_last;
    if (!rc_model_has_own_split(checking) && !rc_model_counts_ends(checking))
        out->chunk = n_layers / (out->p * out->v);
}

/* 1F1B holds p - r micro-batches on rank r; interleaved, rank 0 holds 2(p-1) + (v-1)G + 1 chunks
 * (Megatron-LM pipeline_parallel/schedules.py; Narayanan et al. 2021). */
static void find_schedule(const rc_checking *checking, rc_sizes *out)
{
    const rc_config *cfg = checking->cfg;
    double group = size_of(cfg->microbatch_group_size_per_vp_stage);
    double ranks = size_of(cfg->data_parallel_size);
    if (!(ranks > 0.0))
        ranks = floor(size_of(cfg->world_size) / (out->t * out->p * out->c));
    double samples = SIZE(micro_batch_size) * ranks;
    if (samples > 0.0)
        out->n_micro = floor(size_of(cfg->global_batch_size) / samples);
    double n_most = out->n_micro > 0.0 ? out->n_micro : HUGE_VAL;
    double chunks = 2.0 * (out->p - 1.0) + (out->v - 1.0) * (group > 0.0 ? group : out->p) +
                    1.0 + ON(overlap_moe_expert_parallel_comm);
    out->n_plain = fmin(out->p, n_most);
    out->n_held = out->p > 1.0 && out->v > 1.0 ? fmin(chunks / out->v, n_most) : out->n_plain;
}

void rc_sizes_find(rc_checking *checking, rc_sizes *out)
{
    *out = (rc_sizes){0};
    if (is_any_late(checking->cfg))
        return;
    find_parallel(checking, out);
    if (!(out->t * out->p * out->v * out->c * out->ep * out->et > 0.0)) {
        *out = (rc_sizes){0};
        return;
    }
    find_tokens(checking, out);
    if (!ON(enable_mhc_connections) && IS_NULL(experimental_attention_variant))
        find_attention(checking, out); /* other kinds of it are not counted */
    find_mlp(checking, out);
    find_layers(checking, out);
    find_schedule(checking, out);
}

/* --- what layers retain */

static bool is_quantised(const rc_checking *checking)
{
    return ON(fp8) || ON(fp4);
}

/* Of what a linear layer keeps as its input. */
static double input_width(const rc_checking *checking)
{
    return is_quantised(checking) ? 1.0 : 2.0;
}

double rc_sizes_input(const rc_checking *checking, const rc_sizes *sizes)
{
    double width = ON(fp32_residual_connection) ? 4.0 : 2.0;
    return width * sizes->n_outer * sizes->h /
           (ON(distribute_saved_activations) && rc_checking_is_full(checking) ? sizes->t : 1.0);
}

double rc_sizes_scores(const rc_checking *checking, const rc_sizes *sizes)
{
    double width = SIZE(attention_dropout) > 0.0 ? 5.0 : 2.0;
    return width * sizes->n_tokens * sizes->sequence * sizes->heads;
}

bool rc_sizes_slices_value(const rc_checking *checking)
{
    return IS(position_embedding_type, "rope") && !ON(multi_latent_attention) &&
           !ON(fused_single_qkv_rope);
}

double rc_sizes_slice(const rc_sizes *sizes)
{
    bool is_gathered = sizes->g < sizes->t;
    double base = is_gathered ? sizes->a + 2.0 * sizes->g : sizes->heads + 2.0 * sizes->groups;
    return 2.0 * sizes->n_tokens * sizes->d * (base - sizes->groups);
}

double rc_sizes_rows(const rc_sizes *sizes)
{
    return sizes->n_outer * sizes->k * sizes->et;
}

bool rc_sizes_has_flash_attention(const rc_checking *checking)
{
    return IS(attention_backend, "flash") || ON(use_flash_attn);
}

/* Transformer Engine chooses flash or fused attention unless it is told not to. */
bool rc_sizes_has_fused_attention(const rc_checking *checking)
{
    bool is_off = IS(nvte_fused_attn, "0") && IS(nvte_flash_attn, "0");
    return rc_sizes_has_flash_attention(checking) || IS(attention_backend, "fused") ||
           (IS(attention_backend, "auto") && IS(transformer_impl, "transformer_engine") &&
            !is_off);
}

bool rc_sizes_has_packed_samples(const rc_checking *checking)
{
    return ON(dataset_packing) || ON(dataset_offline_packing) ||
           ON(dataset_enable_offline_packing) || ON(dataset_pack_sequences_in_batch);
}

bool rc_sizes_has_flash_batches(const rc_checking *checking)
{
    return rc_sizes_has_flash_attention(checking) && SIZE(micro_batch_size) > 1.0 &&
           !rc_sizes_has_packed_samples(checking);
}

/* The norm's input and output and its statistics; a quantised linear keeps its own copy of the
 * output. */
static double norm(const rc_checking *checking, const rc_sizes *sizes, bool is_recomputed)
{
    double residual = 2.0 * sizes->n_outer * sizes->h;
    return is_recomputed ? residual
                         : residual + sizes->n_outer * (4.0 + input_width(checking) * sizes->h);
}

/* Transformer Engine fuses the norms of plain attention and dense MLPs into the next linear. */
static bool drops_norm(rc_checking *checking, bool is_own_module)
{
    return RECOMPUTES(layernorm) && (is_own_module || IS(transformer_impl, "local"));
}

/* MLA: compressed query and keys, and their norms' outputs and statistics. */
static double latents(rc_checking *checking, const rc_sizes *sizes, bool is_whole)
{
    double n_norms = (sizes->q_rank > 0.0) + (sizes->kv_rank > 0.0);
    double compressed = 2.0 * sizes->n_outer * (sizes->q_rank + sizes->kv_rank);
    if (!is_whole && RECOMPUTES(mla_up_proj))
        return compressed + 2.0 * sizes->n_outer * sizes->r_dim;
    return compressed + 4.0 * sizes->n_outer * n_norms +
           input_width(checking) * sizes->n_outer * (sizes->q_rank + sizes->kv_rank);
}

/* Norm, query, key, value, output and its softmax statistics. */
static double attention(rc_checking *checking, const rc_sizes *sizes, bool is_whole)
{
    double n = sizes->n_tokens;
    double kept =
        norm(checking, sizes, !is_whole && drops_norm(checking, sizes->kv_rank > 0.0));
    bool is_kept = is_whole || !RECOMPUTES(core_attn);
    bool has_scores = is_kept && !rc_sizes_has_fused_attention(checking);
    double groups = has_scores ? sizes->heads : sizes->groups; /* repeated, to multiply */
    kept += 2.0 * n * sizes->heads * sizes->dv;
    if (is_kept)
        kept += has_scores ? rc_sizes_scores(checking, sizes) : 4.0 * n * sizes->heads;
    else if (rc_sizes_slices_value(checking))
        kept += rc_sizes_slice(sizes);
    if (sizes->kv_rank > 0.0)
        kept += latents(checking, sizes, is_whole);
    if (!is_whole && RECOMPUTES(mla_up_proj))
        return kept;
    return kept + 2.0 * n * (sizes->heads * sizes->d + groups * (sizes->d + sizes->dv));
}

static double dense_mlp(rc_checking *checking, const rc_sizes *sizes, bool is_whole)
{
    double inner = sizes->n_tokens * sizes->f / sizes->t;
    if (!is_whole && RECOMPUTES(mlp))
        return 2.0 * sizes->n_outer * sizes->h;
    return norm(checking, sizes, !is_whole && drops_norm(checking, false)) +
           inner * (2.0 * sizes->glu + input_width(checking));
}

double rc_sizes_row_map(const rc_checking *checking, const rc_sizes *sizes)
{
    return checking->cfg->moe_permute_fusion ? 4.0 * (2.0 * sizes->experts + 1.0)
                                             : 8.0 * sizes->k;
}

/* Scores, the map of who goes where, and the order of the rows, before and behind the exchange. */
static double routing(const rc_checking *checking, const rc_sizes *sizes)
{
    double order =
        checking->cfg->moe_permute_fusion ? 4.0 * sizes->k * sizes->et : 8.0 * sizes->k;
    return sizes->n_outer * (5.0 * sizes->experts + rc_sizes_row_map(checking, sizes) + order);
}

double rc_sizes_experts(rc_checking *checking, const rc_sizes *sizes, bool is_whole)
{
    double width = input_width(checking), inner = sizes->fe / sizes->et;
    double row = width * sizes->moe_width + 2.0 * sizes->glu * inner + 4.0;
    if (is_whole || !RECOMPUTES(moe_act))
        row += width * inner;
    return rc_sizes_rows(sizes) * row;
}

static double expert_mlp(rc_checking *checking, const rc_sizes *sizes, bool is_whole)
{
    double residual = 2.0 * sizes->n_outer * sizes->h, kept = residual;
    if (is_whole || !drops_norm(checking, true))
        kept += residual + 4.0 * sizes->n_outer; /* the router keeps it unquantised */
    if (!is_whole && RECOMPUTES(moe))
        return kept;
    if (is_whole || !RECOMPUTES(shared_experts))
        kept +=
            sizes->n_tokens * sizes->fs / sizes->t * (2.0 * sizes->glu + input_width(checking));
    kept += 2.0 * sizes->n_outer * sizes->latent; /* the input of the way back to h channels */
    return kept + routing(checking, sizes) + rc_sizes_experts(checking, sizes, is_whole);
}

/* Nothing is counted where a size is missing. */
static bool is_known(const rc_sizes *sizes)
{
    double experts = sizes->experts > 0.0 ? sizes->k * sizes->fe : 1.0;
    return sizes->n_tokens * sizes->h * sizes->heads * sizes->groups * sizes->d * sizes->dv *
               sizes->f * experts >
           0.0;
}

double rc_sizes_whole_layer(rc_checking *checking, const rc_sizes *sizes)
{
    double share = sizes->moe_share;
    if (!is_known(sizes))
        return 0.0;
    return attention(checking, sizes, true) + (1.0 - share) * dense_mlp(checking, sizes, true) +
           (share > 0.0 ? share * expert_mlp(checking, sizes, true) : 0.0);
}

double rc_sizes_layer(rc_checking *checking, const rc_sizes *sizes)
{
    double share = sizes->moe_share;
    if (!is_known(sizes))
        return 0.0;
    if (rc_checking_is_full(checking))
        return rc_sizes_input(checking, sizes);
    return attention(checking, sizes, false) +
           (1.0 - share) * dense_mlp(checking, sizes, false) +
           (share > 0.0 ? share * expert_mlp(checking, sizes, false) : 0.0);
}

/* --- parameters */

static double attention_parameters(const rc_sizes *sizes)
{
    double h = sizes->h, out = sizes->heads * sizes->dv * h;
    if (!(sizes->kv_rank > 0.0))
        return h * sizes->d * (sizes->a + 2.0 * sizes->g) / sizes->t + out;
    double query = sizes->q_rank > 0.0
                       ? h * sizes->q_rank + sizes->q_rank * sizes->heads * sizes->d
                       : h * sizes->heads * sizes->d;
    return query + h * (sizes->kv_rank + sizes->r_dim) +
           sizes->kv_rank * sizes->heads * (sizes->qk_dim + sizes->dv) + out;
}

double rc_sizes_parameters(const rc_sizes *sizes)
{
    double matrices = sizes->glu + 1.0, h = sizes->h;
    double dense = matrices * h * sizes->f / sizes->t;
    double moe =
        (sizes->experts + 2.0 * sizes->latent) * h + matrices * h * sizes->fs / sizes->t +
        sizes->experts / sizes->ep * matrices * sizes->moe_width * sizes->fe / sizes->et;
    return sizes->first * (attention_parameters(sizes) + (1.0 - sizes->moe_share) * dense +
                           sizes->moe_share * moe);
}

double rc_sizes_on_stage(const rc_sizes *sizes, double layer_bytes)
{
    return layer_bytes * sizes->first * sizes->n_held;
}

/* --- in words */

const char *rc_sizes_say_stage(const rc_sizes *sizes)
{
    return sizes->p > 1.0 ? "on the first stage" : "on a rank";
}

bool rc_sizes_is_much(double bytes)
{
    const double gib = 1024.0 * 1024.0 * 1024.0;
    return bytes >= gib && bytes < gib * gib; /* above that it is no model's */
}

const char *rc_sizes_say(double bytes, char buf[32])
{
    if (!(bytes > 0.0) || bytes >= 9.0e18)
        return "unknown";
    return rc_format_bytes((int64_t)bytes, buf);
}
