/* graph/dims.c — the sizes that shapes are written in, out of a config.
 *
 * takes  rc_config; what is null is derived as Megatron derives it
 * gives  rc_dims, every product of a few of which stays below 2^63
 * next   builders write shapes in them
 */
#include "graph/dims.h"

#include "base/num.h"

#include <inttypes.h>
#include <math.h>

/* Far above any model, and low enough that a product of a few sizes and the kernels' constants
 * stays below 2^63. */
static const int64_t most_of_a_size = (int64_t)1 << 40, most_choices = 1 << 16;

static rc_code need_size(const rc_config *cfg, rc_field field, int64_t value, rc_error *err)
{
    const rc_field_facts *facts = rc_field_find(field);
    const int64_t most = field == RC_FIELD_num_layers ? RC_MOST_LAYERS : most_of_a_size;
    if (value == RC_NULL_INT)
        return RC_FAIL(err, RC_E_INPUT, cfg->origin[field].where, "%s is not set; give %s=N",
                       facts->key, facts->key);
    if (value < 1)
        return RC_FAIL(err, RC_E_INPUT, cfg->origin[field].where,
                       "%s is %" PRId64 "; it must be at least 1", facts->key, value);
    if (value > most)
        return RC_FAIL(err, RC_E_RANGE, cfg->origin[field].where,
                       "%s is %" PRId64 "; at most %" PRId64 " can be computed", facts->key,
                       value, most);
    return RC_OK;
}

static rc_code need_divides(const rc_config *cfg, rc_field field, int64_t whole, int64_t part,
                            const char *part_name, rc_error *err)
{
    if (whole % part == 0)
        return RC_OK;
    return RC_FAIL(err, RC_E_INPUT, cfg->origin[field].where,
                   "%s is %" PRId64 ", which is no multiple of %s, %" PRId64,
                   rc_field_find(field)->name, whole, part_name, part);
}

static rc_code make_parallel_dims(const rc_config *cfg, rc_dims *dims, rc_error *err)
{
    dims->t = cfg->tensor_model_parallel_size;
    dims->p = cfg->pipeline_model_parallel_size;
    dims->c = cfg->context_parallel_size;
    RC_TRY(need_size(cfg, RC_FIELD_tensor_model_parallel_size, dims->t, err));
    RC_TRY(need_size(cfg, RC_FIELD_pipeline_model_parallel_size, dims->p, err));
    RC_TRY(need_size(cfg, RC_FIELD_context_parallel_size, dims->c, err));
    dims->ep =
        cfg->expert_model_parallel_size == RC_NULL_INT ? 1 : cfg->expert_model_parallel_size;
    dims->has_sequence_parallel = cfg->sequence_parallel && dims->t > 1;
    RC_TRY(
        need_divides(cfg, RC_FIELD_seq_length, dims->s, dims->c, "context_parallel_size", err));
    dims->S = dims->s / dims->c;
    if (dims->has_sequence_parallel)
        RC_TRY(need_divides(cfg, RC_FIELD_seq_length, dims->S, dims->t,
                            "tensor_model_parallel_size", err));
    if (!rc_mul(dims->S, dims->b, &dims->N))
        return RC_FAIL(err, RC_E_RANGE, cfg->origin[RC_FIELD_seq_length].where,
                       "seq_length times micro_batch_size passes 2^63-1");
    dims->n = dims->has_sequence_parallel ? dims->N / dims->t : dims->N;
    RC_TRY(need_divides(cfg, RC_FIELD_num_attention_heads, dims->a, dims->t,
                        "tensor_model_parallel_size", err));
    return need_divides(cfg, RC_FIELD_num_query_groups, dims->g, dims->t,
                        "tensor_model_parallel_size", err);
}

/* The vocabulary with its padding and without. */
static rc_code make_vocabulary(const rc_config *cfg, rc_profile profile, int64_t tokenizer,
                               rc_dims *dims, rc_error *err)
{
    if (tokenizer < 1)
        RC_TRY(need_size(cfg, RC_FIELD_vocab_size, cfg->vocab_size, err));
    dims->V = rc_config_vocab(cfg, tokenizer);
    dims->W = dims->V;
    if (profile == RC_PROFILE_ENGINE && dims->t == 1) /* who shards it runs Megatron */
        dims->W = cfg->vocab_size != RC_NULL_INT ? cfg->vocab_size : tokenizer;
    return need_size(cfg, RC_FIELD_vocab_size, dims->V, err);
}

rc_code rc_graph_check_sizes(const rc_config *cfg, rc_error *err)
{
    static const struct {
        rc_field field;
        bool is_needed; /* else null is derived */
    } sizes[] = {
        {RC_FIELD_num_layers, true},          {RC_FIELD_hidden_size, true},
        {RC_FIELD_num_attention_heads, true}, {RC_FIELD_seq_length, true},
        {RC_FIELD_micro_batch_size, true},    {RC_FIELD_make_vocab_size_divisible_by, true},
        {RC_FIELD_num_query_groups, false},   {RC_FIELD_kv_channels, false},
        {RC_FIELD_ffn_hidden_size, false},    {RC_FIELD_vocab_size, false},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int64_t value = *(const rc_field_INT *)rc_config_value_at(cfg, sizes[i].field);
        if (sizes[i].is_needed || value != RC_NULL_INT)
            RC_TRY(need_size(cfg, sizes[i].field, value, err));
    }
    return RC_OK;
}

/* Multi-latent attention; all 0 without it. */
static rc_code make_latent_dims(const rc_config *cfg, rc_dims *dims, rc_error *err)
{
    if (!cfg->multi_latent_attention)
        return RC_OK;
    dims->rq = cfg->q_lora_rank == RC_NULL_INT ? 0 : cfg->q_lora_rank;
    dims->rkv = cfg->kv_lora_rank;
    dims->dqk = cfg->qk_head_dim;
    dims->dr = cfg->qk_pos_emb_head_dim;
    dims->dv = cfg->v_head_dim;
    if (cfg->q_lora_rank != RC_NULL_INT)
        RC_TRY(need_size(cfg, RC_FIELD_q_lora_rank, dims->rq, err));
    RC_TRY(need_size(cfg, RC_FIELD_kv_lora_rank, dims->rkv, err));
    RC_TRY(need_size(cfg, RC_FIELD_qk_head_dim, dims->dqk, err));
    RC_TRY(need_size(cfg, RC_FIELD_qk_pos_emb_head_dim, dims->dr, err));
    return need_size(cfg, RC_FIELD_v_head_dim, dims->dv, err);
}

static rc_code make_dims(const rc_config *cfg, rc_dims *dims, rc_error *err)
{
    RC_TRY(rc_graph_check_sizes(cfg, err));
    dims->L = cfg->num_layers;
    dims->h = cfg->hidden_size;
    dims->a = cfg->num_attention_heads;
    dims->s = cfg->seq_length;
    dims->b = cfg->micro_batch_size;
    dims->E = cfg->num_moe_experts == RC_NULL_INT ? 0 : cfg->num_moe_experts;
    dims->k = cfg->moe_router_topk == RC_NULL_INT ? 0 : cfg->moe_router_topk;
    if (cfg->kv_channels == RC_NULL_INT && !cfg->multi_latent_attention)
        RC_TRY(need_divides(cfg, RC_FIELD_hidden_size, dims->h, dims->a, "num_attention_heads",
                            err));
    dims->d = rc_config_head_dim(cfg);
    dims->g = rc_config_groups(cfg);
    dims->f = rc_config_ffn(cfg);
    RC_TRY(need_size(cfg, RC_FIELD_kv_channels, dims->d, err));
    RC_TRY(need_size(cfg, RC_FIELD_num_query_groups, dims->g, err));
    RC_TRY(need_size(cfg, RC_FIELD_ffn_hidden_size, dims->f, err));
    if (dims->a > most_of_a_size / dims->d)
        return RC_FAIL(err, RC_E_RANGE, cfg->origin[RC_FIELD_num_attention_heads].where,
                       "num_attention_heads %" PRId64 " times kv_channels %" PRId64
                       " passes %" PRId64 ", the most that can be computed",
                       dims->a, dims->d, most_of_a_size);
    RC_TRY(need_divides(cfg, RC_FIELD_num_attention_heads, dims->a, dims->g, "num_query_groups",
                        err));
    RC_TRY(make_latent_dims(cfg, dims, err));
    return make_parallel_dims(cfg, dims, err);
}

/* ---- experts ---- */

/* A size that is null is another; it is cut over ranks. */
static rc_code make_cut(const rc_config *cfg, rc_field field, int64_t otherwise, int64_t ranks,
                        int64_t *out, rc_error *err)
{
    const int64_t value = *(const rc_field_INT *)rc_config_value_at(cfg, field);
    *out = value == RC_NULL_INT ? otherwise : value;
    if (value != RC_NULL_INT)
        RC_TRY(need_size(cfg, field, value, err));
    return need_divides(cfg, field, *out, ranks, "the tensor-parallel size it is cut over",
                        err);
}

static rc_code need_factor(const rc_config *cfg, rc_field field, double value, rc_error *err)
{
    if (isnan(value) || (value > 0 && value <= 1e6))
        return RC_OK;
    return RC_FAIL(err, RC_E_INPUT, cfg->origin[field].where,
                   "%s is %g; it must be above 0 and at most 1000000", rc_field_key(field),
                   value);
}

static rc_code need_rows(double rows, int64_t *out, rc_error *err)
{
    if (rows > (double)most_of_a_size)
        return RC_FAIL(err, RC_E_RANGE, RC_NOWHERE,
                       "experts would read %.0f rows; choose smaller sizes", rows);
    *out = (int64_t)ceil(rows);
    return RC_OK;
}

/* How likely it is that one of a token's k experts is among this rank's, the first of E that are chosen by chance. */
static double chance(const rc_dims *dims)
{
    double none = 1;
    for (int64_t i = 0; i < dims->k; i++)
        none *= (double)(dims->E - dims->el - i) / (double)(dims->E - i);
    return 1 - fmax(none, 0);
}

/* Rows are as many as if tokens were dealt out evenly, times `imbalance`, and never more than there are; ranks that cut
 * an expert read the same ones. source  megatron/core/transformer/moe/moe_utils.py, get_capacity;
 * token_dispatcher.py, preprocess */
static rc_code make_rows(const rc_config *cfg, double imbalance, rc_dims *dims, rc_error *err)
{
    const double k = (double)dims->k, E = (double)dims->E, n = (double)dims->n;
    const double all = n * (double)(dims->ep * dims->et), el = (double)dims->el;
    const double room = E * ceil(n * k / E * cfg->moe_expert_capacity_factor);
    double sent = n * k, rows = fmin(sent * imbalance, n * (double)dims->ep * fmin(k, el));
    if (!isnan(room)) {
        const bool is_padded = cfg->moe_pad_expert_input_to_capacity;
        sent = is_padded ? room : fmin(sent, room);
        rows = is_padded ? room : fmin(rows, room);
    }
    RC_TRY(need_rows(sent, &dims->Q, err));
    RC_TRY(need_rows(ceil(rows) * (double)dims->et, &dims->R, err));
    return need_rows(fmin(all * chance(dims) * imbalance, all), &dims->U, err);
}

static rc_code make_expert_dims(const rc_config *cfg, double imbalance, rc_dims *dims,
                                rc_error *err)
{
    if (dims->E == 0)
        return RC_OK;
    RC_TRY(need_size(cfg, RC_FIELD_num_moe_experts, dims->E, err));
    RC_TRY(need_size(cfg, RC_FIELD_moe_router_topk, dims->k, err));
    RC_TRY(need_size(cfg, RC_FIELD_expert_model_parallel_size, dims->ep, err));
    RC_TRY(need_divides(cfg, RC_FIELD_num_moe_experts, dims->E, dims->ep,
                        "expert_model_parallel_size", err));
    if (dims->k > dims->E || dims->k > most_choices)
        return RC_FAIL(err, RC_E_INPUT, cfg->origin[RC_FIELD_moe_router_topk].where,
                       "moe_router_topk is %" PRId64 ", and a token chooses from %" PRId64
                       " experts, at most %" PRId64 " of them",
                       dims->k, dims->E, most_choices);
    dims->el = dims->E / dims->ep;
    RC_TRY(make_cut(cfg, RC_FIELD_expert_tensor_parallel_size, dims->t, 1, &dims->et, err));
    RC_TRY(make_cut(cfg, RC_FIELD_moe_ffn_hidden_size, dims->f, dims->et, &dims->fe, err));
    RC_TRY(make_cut(cfg, RC_FIELD_moe_shared_expert_intermediate_size, 0, dims->t, &dims->fs,
                    err));
    RC_TRY(make_cut(cfg, RC_FIELD_moe_latent_size, dims->h, 1, &dims->hl, err));
    RC_TRY(need_factor(cfg, RC_FIELD_moe_expert_capacity_factor,
                       cfg->moe_expert_capacity_factor, err));
    return make_rows(cfg, imbalance > 0 ? imbalance : 1, dims, err);
}

rc_code rc_dims_make(const rc_graph_request *request, rc_dims *dims, rc_error *err)
{
    RC_TRY(make_dims(request->cfg, dims, err));
    RC_TRY(make_expert_dims(request->cfg, request->imbalance, dims, err));
    return make_vocabulary(request->cfg, request->profile, request->n_words, dims, err);
}
