/* train/agree.c — do weights made elsewhere belong to the function that this run computes?
 *
 * takes  a config whose checkpoint.pretrained_checkpoint names weights, and the file beside them that
 *        tells their function: Hugging Face's config.json, or the state.json of a checkpoint of ours
 * gives  nothing, or an error that names the first setting in which the two differ
 *
 * Tensors that fit say little: Llama 3.1's weights fit a model without its rotary scaling, which
 * computes something else from them and reports a loss all the same.
 */
#include "train/agree.h"

#include "train/checkpoint.h"

#include <recompute/graph.h>
#include <recompute/read.h>
#include <recompute/train.h>

#include "base/file.h"
#include "base/text.h"
#include "graph/rope.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* What the function depends on, but for rotary positions. Not dropout, which is how one trains, nor
 * lengths, of which a run may take a part. */
static const rc_field fields[] = {
    RC_FIELD_num_layers,
    RC_FIELD_hidden_size,
    RC_FIELD_num_attention_heads,
    RC_FIELD_num_query_groups,
    RC_FIELD_kv_channels,
    RC_FIELD_ffn_hidden_size,
    RC_FIELD_vocab_size,
    RC_FIELD_normalization,
    RC_FIELD_layernorm_epsilon,
    RC_FIELD_layernorm_zero_centered_gamma,
    RC_FIELD_position_embedding_type,
    RC_FIELD_gated_linear_unit,
    RC_FIELD_activation_func,
    RC_FIELD_add_bias_linear,
    RC_FIELD_add_qkv_bias,
    RC_FIELD_qk_layernorm,
    RC_FIELD_share_embeddings_and_output_weights,
    RC_FIELD_softmax_scale,
};
enum { N_FIELDS = sizeof fields / sizeof *fields };

/* The settings of rotary positions, the telling ones first: only named here, compared as angles. */
static const rc_field rope_fields[] = {
    RC_FIELD_rotary_base,
    RC_FIELD_rotary_percent,
    RC_FIELD_rotary_interleaved,
    RC_FIELD_rope_scaling,
    RC_FIELD_seq_len_interpolation_factor,
    RC_FIELD_rope_dynamic_factor,
    RC_FIELD_rope_scaling_factor,
    RC_FIELD_rope_scaling_low_freq_factor,
    RC_FIELD_rope_scaling_high_freq_factor,
    RC_FIELD_rope_scaling_original_max_position_embeddings,
    RC_FIELD_yarn_rotary_scaling_factor,
    RC_FIELD_yarn_original_max_position_embeddings,
    RC_FIELD_yarn_beta_fast,
    RC_FIELD_yarn_beta_slow,
    RC_FIELD_yarn_attention_factor,
    RC_FIELD_yarn_mscale,
    RC_FIELD_yarn_mscale_all_dim,
    RC_FIELD_yarn_correction_range_round_to_int,
    RC_FIELD_max_position_embeddings,
};
enum { N_ROPE_FIELDS = sizeof rope_fields / sizeof *rope_fields };

typedef struct pair {
    const rc_config *run, *theirs;
    rc_arena *mem;
} pair;

/* The value that a field comes to, as text: what is derived when it is null. */
static rc_code show(const pair *of, const rc_config *cfg, rc_field field, const char **out,
                    rc_error *err)
{
    int64_t count;
    switch ((int)field) {
    case RC_FIELD_num_query_groups:
        count = rc_config_groups(cfg);
        break;
    case RC_FIELD_kv_channels:
        count = rc_config_head_dim(cfg);
        break;
    case RC_FIELD_ffn_hidden_size:
        count = rc_config_ffn(cfg);
        break;
    case RC_FIELD_softmax_scale:
        if (isnan(cfg->softmax_scale))
            return rc_arena_printf(of->mem, out, err, "%.17g",
                                   1.0 / sqrt((double)rc_config_head_dim(cfg)));
        return rc_arena_printf(of->mem, out, err, "%.17g", cfg->softmax_scale);
    default:
        return rc_config_show(cfg, field, of->mem, out, err);
    }
    return rc_arena_printf(of->mem, out, err, "%lld", (long long)count);
}

static rc_code differ(const pair *of, rc_field field, const char *mine, const char *its,
                      rc_error *err)
{
    const rc_where *at = &of->theirs->origin[field].where;
    char place[120] = "by default", safe[80], here[48], there[48];
    if (at->file)
        snprintf(place, sizeof place, "at %s:%d:%d",
                 rc_text_printable(at->file, strlen(at->file), safe, sizeof safe), at->line,
                 at->col);
    return RC_FAIL(err, RC_E_INPUT, of->run->origin[field].where,
                   "%s is %s in this run, but the weights are of a model with %s (%s)",
                   rc_field_key(field),
                   rc_text_printable(mine, strlen(mine), here, sizeof here),
                   rc_text_printable(its, strlen(its), there, sizeof there), place);
}

static rc_code compare_fields(const pair *of, const rc_field *list, size_t n, rc_error *err)
{
    const char *mine, *its;
    for (size_t i = 0; i < n; i++) {
        bool is_unsaid =
            of->run->origin[list[i]].is_null || of->theirs->origin[list[i]].is_null;
        if (list[i] == RC_FIELD_vocab_size && is_unsaid) /* the tensors' rows tell */
            continue;
        RC_TRY(show(of, of->run, list[i], &mine, err));
        RC_TRY(show(of, of->theirs, list[i], &its, err));
        if (strcmp(mine, its) != 0)
            return differ(of, list[i], mine, its, err);
    }
    return RC_OK;
}

static rc_code compare_rope(const pair *of, rc_error *err)
{
    const char *type = of->run->position_embedding_type;
    rc_op_attr mine, its;
    rc_dims dims = {.d = rc_config_head_dim(of->run), .s = of->run->seq_length};
    if (!type || (strcmp(type, "rope") != 0 && strcmp(type, "yarn") != 0) || dims.d <= 0)
        return RC_OK;
    RC_TRY(rc_rope_read(of->run, &dims, &mine, err));
    RC_TRY(rc_rope_read(of->theirs, &dims, &its, err));
    if (rc_rope_is_same(&mine, &its))
        return RC_OK;
    RC_TRY(compare_fields(of, rope_fields, N_ROPE_FIELDS, err));
    return RC_FAIL(err, RC_E_BUG, RC_NOWHERE, "rotary positions differ, but no setting does");
}

static rc_code read_json(const char *path, rc_arena *mem, rc_doc **out, rc_error *err)
{
    const char *bytes;
    size_t n_bytes;
    RC_TRY(rc_file_read(path, RC_READ_MAX_BYTES, mem, &bytes, &n_bytes, err));
    RC_TRY(rc_json_read(path, bytes, n_bytes, mem, out, err));
    if ((*out)->kind == RC_DOC_MAP)
        return RC_OK;
    return RC_FAIL(err, RC_E_INPUT, (*out)->where, "is no map of settings");
}

/* A config of one section. */
static rc_code make_config(const char *section, rc_doc *map, rc_arena *mem, rc_config **out,
                           rc_error *err)
{
    rc_doc *root;
    RC_TRY(rc_doc_new(mem, RC_DOC_MAP, map->where, &root, err));
    rc_doc_add(root, section, map->where, map);
    rc_input input = {root, RC_FROM_FILE};
    return rc_config_make(&input, 1, mem, out, err);
}

static rc_code read_hf(const char *path, rc_arena *mem, rc_config **out, rc_error *err)
{
    rc_doc *map;
    RC_TRY(read_json(path, mem, &map, err));
    RC_TRY(make_config("hf_config", map, mem, out, err));
    RC_TRY(rc_config_refuse_foreign(*out, err));
    return rc_train_refuse_model(*out, err);
}

/* A checkpoint of ours tells its settings as text. */
static rc_code add_own(const rc_doc *identity, const rc_field *list, size_t n, rc_doc *to,
                       rc_arena *mem, rc_error *err)
{
    for (size_t i = 0; i < n; i++) {
        rc_doc *value;
        const rc_doc *node = rc_doc_find(identity, rc_field_key(list[i]));
        if (!node || node->kind != RC_DOC_STRING)
            continue;
        RC_TRY(rc_doc_new(mem, RC_DOC_STRING, node->where, &value, err));
        value->text = node->text;
        value->n_bytes = node->n_bytes;
        rc_doc_resolve_scalar(value);
        rc_doc_add(to, rc_field_find(list[i])->name, node->where, value);
    }
    return RC_OK;
}

static rc_code read_own(const char *path, rc_arena *mem, rc_config **out, rc_error *err)
{
    rc_doc *state, *map;
    bool is_unsealed; /* is said where a run resumes */
    RC_TRY(rc_state_open(path, mem, &state, &is_unsealed, err));
    const rc_doc *identity = rc_doc_find(state, "identity");
    RC_TRY(rc_doc_new(mem, RC_DOC_MAP, state->where, &map, err));
    RC_TRY(add_own(identity, fields, N_FIELDS, map, mem, err));
    RC_TRY(add_own(identity, rope_fields, N_ROPE_FIELDS, map, mem, err));
    return make_config("fields", map, mem, out, err);
}

/* The file beside the weights that tells their function: config.json, or state.json of ours; in a
 * folder, or beside a file. *theirs is NULL where there is none. */
static rc_code read_theirs(const char *weights, rc_arena *mem, rc_config **theirs,
                           rc_error *err)
{
    const char *iteration, *folder = weights, *path;
    const char *slash = strrchr(weights, '/');
    bool exists;
    *theirs = NULL;
    RC_TRY(rc_checkpoint_find(weights, mem, &iteration, err));
    if (iteration)
        folder = iteration;
    else if (!rc_path_is_directory(weights) && slash)
        RC_TRY(rc_arena_copy(mem, weights, (size_t)(slash - weights), &folder, err));
    else if (!rc_path_is_directory(weights))
        folder = ".";
    RC_TRY(rc_arena_printf(mem, &path, err, "%s/config.json", folder));
    RC_TRY(rc_path_look(path, &exists, err)); /* else any weights would do */
    if (exists)
        return read_hf(path, mem, theirs, err);
    RC_TRY(rc_arena_printf(mem, &path, err, "%s/%s", folder, rc_state_name));
    RC_TRY(rc_path_look(path, &exists, err));
    return exists ? read_own(path, mem, theirs, err) : RC_OK;
}

rc_code rc_train_agree(const rc_config *cfg, rc_arena *mem, bool *is_told, rc_error *err)
{
    const char *resumed = NULL;
    rc_config *theirs;
    *is_told = false;
    if (cfg->load)
        RC_TRY(rc_checkpoint_find(cfg->load, mem, &resumed, err));
    if (resumed || !cfg->pretrained_checkpoint)
        return RC_OK;
    RC_TRY(read_theirs(cfg->pretrained_checkpoint, mem, &theirs, err));
    if (!theirs)
        return RC_OK;
    pair of = {.run = cfg, .theirs = theirs, .mem = mem};
    RC_TRY(compare_fields(&of, fields, N_FIELDS, err));
    RC_TRY(compare_rope(&of, err));
    *is_told = true;
    return RC_OK;
}
