/* layout/gpt.c — the kind of every layer of a GPT model.
 *
 * takes  multi_latent_attention, experimental_attention_variant with linear_attention_freq, num_moe_experts with
 *        moe_layer_freq, mtp_num_layers
 * gives  a mixer and an MLP for every layer, and what a depth of multi-token prediction is made of
 * next   stages.c deals them out
 *
 * A sliding window, and rotary embedding in some layers only (window_size, window_attn_skip_freq, no_rope_freq), make no
 * kind of their own: such layers have the weights of the others, and a fused kernel keeps query, key, value, output and
 * log-sum-exp whatever it masks or rotates.
 *
 * Source: Megatron-LM gpt_layer_specs.py, get_gpt_decoder_layer_specs; experimental_attention_variant_module_specs.py,
 * get_moe_layer_pattern and get_linear_attention_pattern; gpt_builders.py.
 */
#include "layout/layers.h"

#include "layout/need.h"

#include <inttypes.h>
#include <string.h>

/* --- which layers: every n-th, or a list of 0 and 1 */

typedef bool is_chosen(int64_t layer, int64_t every);

static bool is_first_of(int64_t layer, int64_t every)
{
    return layer % every == 0;
}

static bool is_not_last_of(int64_t layer, int64_t every)
{
    return (layer + 1) % every != 0;
}

static bool is_whole(const rc_doc *doc)
{
    return doc->kind == RC_DOC_INT || doc->kind == RC_DOC_BOOL;
}

static rc_code read_list(const rc_doc *list, rc_field field, int n, bool *out, rc_error *err)
{
    if (list->n_children != (size_t)n)
        return RC_FAIL(err, RC_E_INPUT, list->where,
                       "%s has %zu items; the model has %d layers", rc_field_key(field),
                       list->n_children, n);
    for (const rc_doc *item = list->child; item; item = item->next) {
        if (!is_whole(item) || item->i < 0 || item->i > 1)
            return RC_FAIL(err, RC_E_INPUT, item->where, "an item of %s must be 0 or 1",
                           rc_field_key(field));
        *out++ = item->i == 1;
    }
    return RC_OK;
}

/* `doc` NULL: every layer. */
static rc_code read_layers_of(const rc_doc *doc, rc_field field, is_chosen *rule, int n,
                              bool *out, rc_error *err)
{
    if (doc && doc->kind == RC_DOC_LIST)
        return read_list(doc, field, n, out, err);
    if (doc && (!is_whole(doc) || doc->i < 1))
        return RC_FAIL(err, RC_E_INPUT, doc->where,
                       "%s must be a number of layers, at least 1, or a list of 0 and 1",
                       rc_field_key(field));
    for (int i = 0; i < n; i++)
        out[i] = !doc || rule(i, doc->i);
    return RC_OK;
}

/* --- mixers */

typedef enum rc_variant_layers { ALL, BY_FREQ } rc_variant_layers;

static const struct {
    const char *name;
    rc_mixer mixer;
    rc_variant_layers layers;
} variants[] = {
#define RC_ATTENTION_VARIANT(name, mixer, layers) {#name, RC_MIXER_##mixer, layers},
#include "defs/attention_variants.def"
#undef RC_ATTENTION_VARIANT
};
enum { N_VARIANTS = sizeof variants / sizeof *variants };

static rc_code find_variant(const rc_config *cfg, size_t *out, rc_error *err)
{
    const rc_field field = RC_FIELD_experimental_attention_variant;
    for (*out = 0; *out < N_VARIANTS; ++*out)
        if (strcmp(variants[*out].name, cfg->experimental_attention_variant) == 0)
            return RC_OK;
    char known[160] = "";
    for (size_t i = 0, n = 0; i < N_VARIANTS && n < sizeof known; i++)
        n += (size_t)snprintf(known + n, sizeof known - n, "%s%s", i ? ", " : "",
                              variants[i].name);
    return RC_FAIL(err, RC_E_UNSUPPORTED, cfg->origin[field].where,
                   "%s is %s; known here are: %s", rc_field_key(field),
                   cfg->experimental_attention_variant, known);
}

static rc_code read_mixers(const rc_config *cfg, rc_mixer plain, bool *is_other,
                           rc_model_layers *out, rc_error *err)
{
    rc_mixer other = plain;
    size_t at = 0;
    if (cfg->experimental_attention_variant) {
        RC_TRY(find_variant(cfg, &at, err));
        other = variants[at].mixer;
        if (variants[at].layers == BY_FREQ)
            RC_TRY(rc_config_need(cfg, RC_FIELD_linear_attention_freq, err));
        RC_TRY(read_layers_of(variants[at].layers == ALL ? NULL : cfg->linear_attention_freq,
                              RC_FIELD_linear_attention_freq, is_not_last_of, out->n, is_other,
                              err));
    }
    for (int i = 0; i < out->n; i++)
        out->kinds[i].mixer = is_other[i] ? other : plain;
    return RC_OK;
}

/* --- the whole model */

/* Each depth has one layer more, of the kind of the model's last. Behind a stage without layers Megatron-LM
 * makes its plain layer instead (gpt_builders.py). */
static rc_code read_mtp(const rc_config *cfg, rc_layer_kind plain, rc_arena *mem,
                        rc_model_layers *out, rc_error *err)
{
    if (!rc_layout_is_set(cfg, RC_FIELD_mtp_num_layers) || cfg->mtp_num_layers == 0)
        return RC_OK;
    RC_TRY(rc_layers_need_number(cfg, RC_FIELD_mtp_num_layers, cfg->mtp_num_layers, err));
    RC_TRY(RC_NEW(mem, &out->mtp, 1, err));
    out->n_mtp = (int)cfg->mtp_num_layers;
    out->n_in_depth = 1;
    out->mtp[0] = out->kinds[out->n - 1];
    out->mtp_alone = cfg->framework == RC_FRAMEWORK_MEGATRON_LM ? plain : out->mtp[0];
    return RC_OK;
}

rc_code rc_gpt_layers_read(const rc_config *cfg, int64_t n_experts, rc_arena *mem,
                           rc_model_layers *out, rc_error *err)
{
    const rc_layer_kind plain = {.mixer = cfg->multi_latent_attention ? RC_MIXER_mla
                                                                      : RC_MIXER_attention,
                                 .mlp = n_experts ? RC_MLP_moe : RC_MLP_mlp};
    bool *is_chosen_layer;
    if (cfg->is_hybrid_model)
        return RC_FAIL(err, RC_E_INPUT, cfg->origin[RC_FIELD_is_hybrid_model].where,
                       "%s is true; give the layers as %s",
                       rc_field_key(RC_FIELD_is_hybrid_model),
                       rc_field_key(RC_FIELD_hybrid_layer_pattern));
    RC_TRY(rc_config_need(cfg, RC_FIELD_num_layers, err));
    RC_TRY(rc_layers_need_number(cfg, RC_FIELD_num_layers, cfg->num_layers, err));
    out->n = (int)cfg->num_layers;
    RC_TRY(RC_NEW(mem, &out->kinds, out->n, err));
    RC_TRY(RC_NEW(mem, &is_chosen_layer, out->n, err));
    RC_TRY(read_mixers(cfg, plain.mixer, is_chosen_layer, out, err));
    if (n_experts)
        RC_TRY(read_layers_of(cfg->moe_layer_freq, RC_FIELD_moe_layer_freq, is_first_of, out->n,
                              is_chosen_layer, err));
    for (int i = 0; i < out->n; i++)
        out->kinds[i].mlp = n_experts && is_chosen_layer[i] ? RC_MLP_moe : RC_MLP_mlp;
    return read_mtp(cfg, plain, mem, out, err);
}
