/* config/derive.c — what a setting resolves to when it is null, as Megatron derives it. */
#include <recompute/config.h>

#include "base/num.h"

rc_code rc_config_need(const rc_config *cfg, rc_field field, rc_error *err)
{
    if (!cfg->origin[field].is_null)
        return RC_OK;
    return RC_FAIL(err, RC_E_INPUT, cfg->origin[field].where,
                   "%s is null; a value must be given", rc_field_key(field));
}

int64_t rc_config_head_dim(const rc_config *cfg)
{
    if (cfg->kv_channels != RC_NULL_INT)
        return cfg->kv_channels;
    if (cfg->hidden_size == RC_NULL_INT || cfg->num_attention_heads <= 0)
        return RC_NULL_INT;
    return cfg->hidden_size / cfg->num_attention_heads;
}

/* On Megatron-LM's command line --num-query-groups counts only with --group-query-attention
 * (arguments.py, core_transformer_config_from_args). */
int64_t rc_config_groups(const rc_config *cfg)
{
    bool is_ignored = cfg->framework == RC_FRAMEWORK_MEGATRON_LM && !cfg->group_query_attention;
    return cfg->num_query_groups == RC_NULL_INT || is_ignored ? cfg->num_attention_heads
                                                              : cfg->num_query_groups;
}

/* Megatron-LM arguments.py: a gated MLP has three matrices for two, so 8h/3 keeps the number of
 * parameters; TransformerConfig (transformer_config.py) knows 4h only. */
int64_t rc_config_ffn(const rc_config *cfg)
{
    int64_t four_h;
    if (cfg->ffn_hidden_size != RC_NULL_INT)
        return cfg->ffn_hidden_size;
    if (cfg->hidden_size == RC_NULL_INT || !rc_mul(4, cfg->hidden_size, &four_h))
        return RC_NULL_INT;
    bool is_gated_line = cfg->framework == RC_FRAMEWORK_MEGATRON_LM && cfg->gated_linear_unit;
    return is_gated_line ? (int64_t)((double)four_h * 2 / 3 / 64) * 64 : four_h;
}

int64_t rc_config_vocab(const rc_config *cfg, int64_t tokenizer_size)
{
    int64_t size = cfg->vocab_size != RC_NULL_INT ? cfg->vocab_size : tokenizer_size, step;
    if (!rc_mul(cfg->make_vocab_size_divisible_by, cfg->tensor_model_parallel_size, &step) ||
        step == 0)
        return size;
    int64_t n_steps = size / step + (size % step != 0), padded;
    return rc_mul(n_steps, step, &padded) ? padded : size;
}
