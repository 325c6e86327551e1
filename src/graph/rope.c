/* rope.c — what the config says about rotary positions, as attributes of the op.
 *
 * takes  position_embedding_type, rotary_*, rope_scaling*, seq_len_interpolation_factor, yarn_*
 * gives  rotary_dim, rotary_base and one way of scaling; combinations that Megatron gives no meaning
 *        are refused
 *
 * The names and what they do are Megatron Core's (models/common/embeddings/rotary_pos_embedding.py,
 * yarn_rotary_pos_embedding.py, models/gpt/gpt_model.py) and Bridge's; engine.rope_dynamic_factor is
 * ours, for what transformers calls "dynamic".
 */
#include "graph/rope.h"

#include "op/rope.h"

#include <math.h>
#include <string.h>

static rc_code need_number(const rc_config *cfg, rc_field field, double value, double least,
                           rc_error *err)
{
    if (cfg->origin[field].is_null)
        return RC_FAIL(err, RC_E_INPUT, cfg->origin[field].where,
                       "%s is not set; this rotary scaling needs it", rc_field_key(field));
    if (value >= least && isfinite(value))
        return RC_OK;
    return RC_FAIL(err, RC_E_INPUT, cfg->origin[field].where,
                   "%s is %g; it must be at least %g", rc_field_key(field), value, least);
}

/* least turns < most turns, both above 0 */
static rc_code need_turns(const rc_config *cfg, rc_field least, rc_field most,
                          const rc_rope_scaling *by, rc_error *err)
{
    const double smallest = 1e-6;
    RC_TRY(need_number(cfg, least, by->least_turns, smallest, err));
    RC_TRY(need_number(cfg, most, by->most_turns, smallest, err));
    if (by->least_turns < by->most_turns)
        return RC_OK;
    return RC_FAIL(err, RC_E_INPUT, cfg->origin[most].where,
                   "%s is %g; it must be above %s, %g", rc_field_key(most), by->most_turns,
                   rc_field_key(least), by->least_turns);
}

static rc_code read_linear(const rc_config *cfg, rc_op_attr *attr, rc_error *err)
{
    attr->rope_scaling.kind = RC_ROPE_LINEAR;
    attr->rope_scaling.factor = cfg->seq_len_interpolation_factor;
    return need_number(cfg, RC_FIELD_seq_len_interpolation_factor,
                       cfg->seq_len_interpolation_factor, 1, err);
}

static rc_code read_llama3(const rc_config *cfg, rc_op_attr *attr, rc_error *err)
{
    attr->rope_scaling = (rc_rope_scaling){
        .kind = RC_ROPE_LLAMA3,
        .factor = cfg->rope_scaling_factor,
        .old_length = (double)cfg->rope_scaling_original_max_position_embeddings,
        .least_turns = cfg->rope_scaling_low_freq_factor,
        .most_turns = cfg->rope_scaling_high_freq_factor};
    const rc_rope_scaling *by = &attr->rope_scaling;
    RC_TRY(need_number(cfg, RC_FIELD_rope_scaling_factor, by->factor, 1, err));
    RC_TRY(need_number(cfg, RC_FIELD_rope_scaling_original_max_position_embeddings,
                       by->old_length, 1, err));
    return need_turns(cfg, RC_FIELD_rope_scaling_low_freq_factor,
                      RC_FIELD_rope_scaling_high_freq_factor, by, err);
}

/* Positions past the old length choose the base that gives the slowest pair the same last angle
 * as the factor would; shorter samples leave it alone (transformers, modeling_rope_utils.py). */
static rc_code read_dynamic(const rc_config *cfg, const rc_dims *dims, rc_op_attr *attr,
                            rc_error *err)
{
    const double factor = cfg->rope_dynamic_factor, dim = (double)attr->rotary_dim;
    const double old = (double)cfg->max_position_embeddings;
    RC_TRY(need_number(cfg, RC_FIELD_rope_dynamic_factor, factor, 1, err));
    RC_TRY(need_number(cfg, RC_FIELD_max_position_embeddings, old, 1, err));
    if (attr->rotary_dim <= 2)
        return RC_FAIL(err, RC_E_INPUT, cfg->origin[RC_FIELD_rope_dynamic_factor].where,
                       "%s needs heads of which more than 2 elements rotate",
                       rc_field_key(RC_FIELD_rope_dynamic_factor));
    if ((double)dims->s > old)
        attr->rotary_base *=
            pow(factor * (double)dims->s / old - (factor - 1), dim / (dim - 2));
    return RC_OK;
}

/* Peng et al. 2023, equation 22, with the weights that DeepSeek-V2 gave its logarithm. */
static double log_scale(double factor, double weight)
{
    return factor <= 1 ? 1 : 0.1 * weight * log(factor) + 1;
}

static double yarn_amplitude(const rc_config *cfg)
{
    const double factor = cfg->yarn_rotary_scaling_factor;
    if (!isnan(cfg->yarn_attention_factor))
        return cfg->yarn_attention_factor;
    if (isnan(cfg->yarn_mscale) || isnan(cfg->yarn_mscale_all_dim))
        return log_scale(factor, 1);
    return log_scale(factor, cfg->yarn_mscale) / log_scale(factor, cfg->yarn_mscale_all_dim);
}

static rc_code read_yarn(const rc_config *cfg, rc_op_attr *attr, rc_error *err)
{
    attr->rope_scaling =
        (rc_rope_scaling){.kind = RC_ROPE_YARN,
                          .factor = cfg->yarn_rotary_scaling_factor,
                          .old_length = (double)cfg->yarn_original_max_position_embeddings,
                          .least_turns = cfg->yarn_beta_slow,
                          .most_turns = cfg->yarn_beta_fast,
                          .is_rounded = cfg->yarn_correction_range_round_to_int,
                          .amplitude = yarn_amplitude(cfg)};
    const rc_rope_scaling *by = &attr->rope_scaling;
    RC_TRY(need_number(cfg, RC_FIELD_yarn_rotary_scaling_factor, by->factor, 1, err));
    RC_TRY(need_number(cfg, RC_FIELD_yarn_original_max_position_embeddings, by->old_length, 1,
                       err));
    RC_TRY(need_turns(cfg, RC_FIELD_yarn_beta_slow, RC_FIELD_yarn_beta_fast, by, err));
    RC_TRY(need_number(cfg, RC_FIELD_yarn_correction_range_round_to_int, 1, 1, err));
    if (!(by->amplitude > 0) || !isfinite(by->amplitude))
        return RC_FAIL(err, RC_E_INPUT, cfg->origin[RC_FIELD_yarn_mscale].where,
                       "YaRN's factor of cos and sin comes out as %g; it must be above 0",
                       by->amplitude);
    if (!(attr->rotary_base > 1))
        return RC_FAIL(err, RC_E_INPUT, cfg->origin[RC_FIELD_rotary_base].where,
                       "rotary_base is %g; YaRN needs more than 1", attr->rotary_base);
    return RC_OK;
}

/* Ways that exclude each other: Megatron leaves one of two out without a word. */
static rc_code refuse_two(const rc_config *cfg, bool is_yarn, rc_error *err)
{
    const struct {
        rc_field field;
        bool is_asked;
    } ways[] = {
        {RC_FIELD_position_embedding_type, is_yarn},
        {RC_FIELD_rope_scaling, cfg->rope_scaling},
        {RC_FIELD_seq_len_interpolation_factor, !isnan(cfg->seq_len_interpolation_factor)},
        {RC_FIELD_rope_dynamic_factor, !isnan(cfg->rope_dynamic_factor)},
    };
    const size_t n = sizeof ways / sizeof *ways;
    size_t first = 0;
    while (first < n && !ways[first].is_asked)
        first++;
    for (size_t i = first + 1; i < n; i++)
        if (ways[i].is_asked)
            return RC_FAIL(err, RC_E_INPUT, cfg->origin[ways[i].field].where,
                           "%s scales rotary positions, and %s does already; give one of them",
                           rc_field_key(ways[i].field), rc_field_key(ways[first].field));
    return RC_OK;
}

/* Megatron's YaRN rotates whole heads whatever rotary_percent says, and its factor of cos and sin
 * applies even where the type is not yarn. */
static rc_code refuse_half_yarn(const rc_config *cfg, bool is_yarn, rc_error *err)
{
    const double factor = cfg->yarn_rotary_scaling_factor;
    if (is_yarn && cfg->rotary_percent < 1)
        return RC_FAIL(err, RC_E_UNSUPPORTED, cfg->origin[RC_FIELD_rotary_percent].where,
                       "rotary_percent is %g; YaRN rotates whole heads, set it to 1",
                       cfg->rotary_percent);
    if (is_yarn || isnan(factor) || factor <= 1)
        return RC_OK;
    return RC_FAIL(err, RC_E_UNSUPPORTED,
                   cfg->origin[RC_FIELD_yarn_rotary_scaling_factor].where,
                   "%s is %g, but position_embedding_type is not yarn; set one of them",
                   rc_field_key(RC_FIELD_yarn_rotary_scaling_factor), factor);
}

/* Of an odd number one element would have no partner; frameworks differ in what becomes of it. */
static rc_code refuse_odd(const rc_config *cfg, const rc_dims *dims, rc_error *err)
{
    const int64_t n = (int64_t)((double)dims->d * cfg->rotary_percent);
    if (n % 2 == 0)
        return RC_OK;
    return RC_FAIL(err, RC_E_INPUT, cfg->origin[RC_FIELD_rotary_percent].where,
                   "%lld of a head's %lld elements rotate, in pairs: an even number must",
                   (long long)n, (long long)dims->d);
}

rc_code rc_rope_read(const rc_config *cfg, const rc_dims *dims, rc_op_attr *out, rc_error *err)
{
    const bool is_yarn = strcmp(cfg->position_embedding_type, "yarn") == 0;
    *out = (rc_op_attr){.d = dims->d,
                        .rotary_dim = 2 * (int64_t)((double)dims->d * cfg->rotary_percent / 2),
                        .rotary_base = cfg->rotary_base,
                        .is_rotary_interleaved = cfg->rotary_interleaved};
    RC_TRY(refuse_odd(cfg, dims, err));
    RC_TRY(refuse_two(cfg, is_yarn, err));
    RC_TRY(refuse_half_yarn(cfg, is_yarn, err));
    if (is_yarn)
        return read_yarn(cfg, out, err);
    if (cfg->rope_scaling)
        return read_llama3(cfg, out, err);
    if (!isnan(cfg->seq_len_interpolation_factor))
        return read_linear(cfg, out, err);
    return isnan(cfg->rope_dynamic_factor) ? RC_OK : read_dynamic(cfg, dims, out, err);
}

bool rc_rope_is_same(const rc_op_attr *a, const rc_op_attr *b)
{
    bool is_same = a->rotary_dim == b->rotary_dim &&
                   a->is_rotary_interleaved == b->is_rotary_interleaved &&
                   rc_rope_amplitude(a) == rc_rope_amplitude(b);
    for (int64_t i = 0; i < a->rotary_dim / 2 && is_same; i++)
        is_same = rc_rope_rate(a, i) == rc_rope_rate(b, i);
    return is_same;
}
