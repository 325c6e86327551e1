/* layout/hybrid.c — the kind of every layer of a hybrid model: "M-M*E|M-M*E", a letter a layer.
 *
 * takes  hybrid_layer_pattern, or hybrid_override_pattern, its older name
 * gives  kinds, where the stages begin (`|`), and the layers of a depth of multi-token prediction (behind `/`)
 * next   stages.c deals them out
 *
 * Source: Megatron-LM hybrid_layer_allocation.py, parse_hybrid_pattern; megatron/training/arguments.py, validate_args;
 * Megatron Bridge hybrid_provider.py, finalize.
 */
#include "layout/layers.h"

#include "base/text.h"
#include "layout/need.h"

#include <inttypes.h>
#include <string.h>

typedef struct pattern {
    const rc_config *cfg;
    rc_field field;
    const char *text;
    /* letters of the model, with `|` between them */
    size_t n_main;
    /* letters of one depth, and how often they stand there */
    const char *mtp;
    size_t n_in_depth;
    int n_depths;
    /* of letter M */
    rc_mixer ssm;
    bool has_experts;
} pattern;

static const struct {
    char letter;
    rc_layer_kind kind;
} letters[] = {
#define RC_HYBRID_LETTER(letter, mixer, mlp) {letter, {RC_MIXER_##mixer, RC_MLP_##mlp}},
#define RC_HYBRID_STACK(name, mixer)
#include "defs/hybrids.def"
#undef RC_HYBRID_LETTER
#undef RC_HYBRID_STACK
};
enum { N_LETTERS = sizeof letters / sizeof *letters };

static const struct {
    const char *name;
    rc_mixer mixer;
} stacks[] = {
#define RC_HYBRID_LETTER(letter, mixer, mlp)
#define RC_HYBRID_STACK(name, mixer) {name, RC_MIXER_##mixer},
#include "defs/hybrids.def"
#undef RC_HYBRID_LETTER
#undef RC_HYBRID_STACK
};
enum { N_STACKS = sizeof stacks / sizeof *stacks };

/* --- what M is: --spec MODULE NAME, or model.hybrid_stack_spec */

static const char *find_stack_name(const rc_doc *node)
{
    if (node && node->kind == RC_DOC_LIST)
        node = node->last;
    if (node && node->kind == RC_DOC_MAP)
        node = rc_doc_find(node, "_target_");
    return node && node->kind == RC_DOC_STRING ? rc_text_last_part(node->text) : "";
}

static rc_code read_stack(pattern *p, rc_error *err)
{
    p->ssm = RC_MIXER_mamba;
    for (size_t i = 0; i < p->cfg->n_unknown; i++) {
        const rc_unknown_key *key = &p->cfg->unknown[i];
        const char *last = rc_text_last_part(key->path), *name;
        if (key->is_value || !key->node || key->node->kind == RC_DOC_NULL ||
            (strcmp(last, "--spec") != 0 && strcmp(last, "hybrid_stack_spec") != 0 &&
             strcmp(last, "mamba_stack_spec") != 0))
            continue;
        size_t at = 0;
        for (name = find_stack_name(key->node); at < N_STACKS; at++)
            if (strcmp(stacks[at].name, name) == 0)
                break;
        if (at == N_STACKS)
            return RC_FAIL(err, RC_E_UNSUPPORTED, key->where,
                           "%s: layers of another make than %s are not known here", key->path,
                           stacks[0].name);
        p->ssm = stacks[at].mixer;
    }
    return RC_OK;
}

/* --- the text */

static rc_code refuse(const pattern *p, const char *says, rc_error *err)
{
    return RC_FAIL(err, RC_E_INPUT, p->cfg->origin[p->field].where, "%s: %s",
                   rc_field_key(p->field), says);
}

/* What stands behind the first `/`: the same letters once a depth, or nothing at all. */
static rc_code read_depths(pattern *p, rc_error *err)
{
    const char *from = p->text + p->n_main;
    p->n_depths = 0;
    if (from[strspn(from, "/")] == '\0')
        return RC_OK;
    p->mtp = from + 1;
    p->n_in_depth = strcspn(p->mtp, "/");
    for (; *from; p->n_depths++) {
        size_t n = strcspn(from + 1, "/");
        if (n != p->n_in_depth || memcmp(from + 1, p->mtp, n) != 0)
            return refuse(p, "every depth behind a / must have the same layers", err);
        from += 1 + n;
    }
    return RC_OK;
}

static rc_code read_letter(const pattern *p, char letter, rc_layer_kind *out, rc_error *err)
{
    char says[96];
    size_t at = 0;
    while (at < N_LETTERS && letters[at].letter != letter)
        at++;
    if (at == N_LETTERS) {
        char shown[8];
        snprintf(says, sizeof says, "%s stands for no layer",
                 rc_text_printable(&letter, 1, shown, sizeof shown));
        return refuse(p, says, err);
    }
    *out = letters[at].kind;
    if (out->mixer == RC_MIXER_mamba)
        out->mixer = p->ssm;
    if (out->mlp == RC_MLP_moe && !p->has_experts)
        return refuse(p, "it has layers of experts; give model.num_moe_experts", err);
    return RC_OK;
}

/* Megatron has no model with both kinds of softmax attention. */
static rc_code read_letters(const pattern *p, const char *text, size_t n, rc_layer_kind *out,
                            rc_error *err)
{
    bool has_plain = false, has_latent = false;
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '|' && text == p->text)
            continue;
        RC_TRY(read_letter(p, text[i], out, err));
        has_plain = has_plain || out->mixer == RC_MIXER_attention;
        has_latent = has_latent || out->mixer == RC_MIXER_mla || out->mixer == RC_MIXER_dsa;
        out++;
    }
    if (has_plain && has_latent)
        return refuse(p, "* does not stand beside + or D: one model has one of them", err);
    return RC_OK;
}

static rc_code read_segments(const pattern *p, rc_arena *mem, rc_model_layers *out,
                             rc_error *err)
{
    int n_before = 0;
    for (size_t i = 0; i < p->n_main; i++)
        out->n_segments += p->text[i] == '|';
    out->n_segments++;
    out->n = (int)p->n_main - (out->n_segments - 1);
    RC_TRY(RC_NEW(mem, &out->segment_starts, out->n_segments + 1, err));
    for (size_t i = 0, at = 0; i < p->n_main; i++) {
        n_before += p->text[i] != '|';
        if (p->text[i] == '|')
            out->segment_starts[++at] = n_before;
    }
    out->segment_starts[out->n_segments] = out->n;
    return RC_OK;
}

/* --- beside other settings */

static rc_code need_number(const pattern *p, rc_field field, int64_t given, int n,
                           rc_error *err)
{
    const bool is_set = rc_layout_is_set(p->cfg, field);
    if (p->cfg->framework == RC_FRAMEWORK_MEGATRON_LM || (is_set && given == n))
        return RC_OK; /* there the pattern decides */
    if (!is_set && (field == RC_FIELD_num_layers || n == 0))
        return RC_OK;
    if (is_set)
        return RC_FAIL(err, RC_E_INPUT, p->cfg->origin[field].where,
                       "%s is %" PRId64 ", but %s has %d", rc_field_key(field), given,
                       rc_field_key(p->field), n);
    return RC_FAIL(err, RC_E_INPUT, p->cfg->origin[p->field].where,
                   "%s has %d depths of multi-token prediction; set %s to %d",
                   rc_field_key(p->field), n, rc_field_key(field), n);
}

/* Depths that share their weights may be more than the pattern has. */
static rc_code read_n_mtp(const pattern *p, rc_model_layers *out, rc_error *err)
{
    const rc_field field = RC_FIELD_mtp_num_layers;
    const bool is_set = rc_layout_is_set(p->cfg, field);
    out->n_mtp = p->n_depths;
    if (!out->is_mtp_shared || !is_set || p->n_depths == 0)
        return need_number(p, field, is_set ? p->cfg->mtp_num_layers : 0, p->n_depths, err);
    RC_TRY(rc_layers_need_number(p->cfg, field, p->cfg->mtp_num_layers, err));
    out->n_mtp = (int)p->cfg->mtp_num_layers;
    return RC_OK;
}

static rc_code refuse_other_splits(const pattern *p, rc_error *err)
{
    static const rc_field others[] = {RC_FIELD_pipeline_model_parallel_layout,
                                      RC_FIELD_num_layers_per_virtual_pipeline_stage,
                                      RC_FIELD_num_virtual_stages_per_pipeline_rank};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        RC_TRY(rc_layout_refuse_pair(p->cfg, p->field, others[i], err));
    if (p->cfg->account_for_embedding_in_pipeline_split ||
        p->cfg->account_for_loss_in_pipeline_split)
        return refuse(p, "its stages are parted by |, and embedding and loss count for nothing",
                      err);
    return RC_OK;
}

rc_code rc_hybrid_layers_read(const rc_config *cfg, int64_t n_experts, rc_arena *mem,
                              rc_model_layers *out, rc_error *err)
{
    const bool is_new = rc_layout_is_set(cfg, RC_FIELD_hybrid_layer_pattern);
    pattern p = {.cfg = cfg, .has_experts = n_experts > 0};
    RC_TRY(rc_layout_refuse_pair(cfg, RC_FIELD_hybrid_layer_pattern,
                                 RC_FIELD_hybrid_override_pattern, err));
    p.field = is_new ? RC_FIELD_hybrid_layer_pattern : RC_FIELD_hybrid_override_pattern;
    p.text = is_new ? cfg->hybrid_layer_pattern : cfg->hybrid_override_pattern;
    p.n_main = strcspn(p.text, "/");
    out->is_hybrid = true;
    RC_TRY(refuse_other_splits(&p, err));
    RC_TRY(read_stack(&p, err));
    RC_TRY(rc_layers_need_number(cfg, p.field, (int64_t)strlen(p.text), err));
    RC_TRY(read_segments(&p, mem, out, err));
    RC_TRY(rc_layers_need_number(cfg, p.field, out->n, err));
    RC_TRY(RC_NEW(mem, &out->kinds, out->n, err));
    RC_TRY(read_letters(&p, p.text, p.n_main, out->kinds, err));
    RC_TRY(need_number(&p, RC_FIELD_num_layers, cfg->num_layers, out->n, err));
    RC_TRY(read_depths(&p, err));
    RC_TRY(read_n_mtp(&p, out, err));
    out->n_in_depth = (int)p.n_in_depth;
    RC_TRY(RC_NEW(mem, &out->mtp, p.n_in_depth, err));
    return read_letters(&p, p.mtp, p.n_in_depth, out->mtp, err);
}
