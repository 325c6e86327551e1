/* config/hf.c — a config.json of Hugging Face as fields, and what in it the engine does not compute.
 *
 * takes  the flat map, by the rows of hf.def and hf_keys.def
 * gives  fields set in the config being made; the first key that is unknown, or says another
 *        function than the engine computes, in cfg->foreign, which whoever computes the model refuses
 *
 * Megatron jobs are judged by the fields alone, as their frameworks take what they know and no more.
 */
#include "config/make.h"
#include "config/value.h"

#include "base/text.h"

#include <stdio.h>
#include <string.h>

typedef enum style {
    NONE = 0,
    LLAMA = 1,
    MISTRAL = 2,
    QWEN2 = 4,
    QWEN3 = 8,
    GRANITE = 16,
    GPT2 = 32,
    ANY = 63
} style;
typedef enum how { COMPUTED, HARMLESS, ONLY, NULL_OR, SAME_AS } how;
enum { NO_NULL, WITH_NULL };

#define RC_HF_FAMILY(name, styles, why)
#define RC_HF_NEED(styles, key, null)
#define RC_HF_ROPE_NEED(type, key)
#define RC_HF_KEY(styles, key, how, value, why)

static const struct family {
    const char *name;
    unsigned styles;
    const char *why;
} families[] = {
#undef RC_HF_FAMILY
#define RC_HF_FAMILY(name, styles, why) {name, styles, why},
#include "defs/hf_keys.def"
#undef RC_HF_FAMILY
#define RC_HF_FAMILY(name, styles, why)
};

static const struct need {
    unsigned styles;
    const char *key;
    bool may_be_null;
} needs[] = {
#undef RC_HF_NEED
#define RC_HF_NEED(styles, key, null) {styles, key, null},
#include "defs/hf_keys.def"
#undef RC_HF_NEED
#define RC_HF_NEED(styles, key, null)
};

static const struct rope_need {
    const char *type, *key;
} rope_needs[] = {
#undef RC_HF_ROPE_NEED
#define RC_HF_ROPE_NEED(type, key) {type, key},
#include "defs/hf_keys.def"
#undef RC_HF_ROPE_NEED
#define RC_HF_ROPE_NEED(type, key)
};

static const struct key {
    unsigned styles;
    const char *name;
    how how;
    const char *value, *why;
} keys[] = {
#undef RC_HF_KEY
#define RC_HF_KEY(styles, key, how, value, why) {styles, key, how, value, why},
#include "defs/hf_keys.def"
#undef RC_HF_KEY
};
#undef RC_HF_FAMILY
#undef RC_HF_NEED
#undef RC_HF_ROPE_NEED

static const char *const rope_names[] = {"rope_parameters", "rope_scaling"};

typedef struct file {
    rc_maker *maker;
    const rc_doc *map;
    unsigned styles; /* of its family; NONE: refused already, so its keys are not judged */
    bool is_outer;
} file;

static rc_code note(rc_maker *maker, rc_where where, const char *says, rc_error *err)
{
    rc_foreign *foreign = &maker->cfg->foreign;
    if (foreign->says)
        return RC_OK;
    foreign->where = where;
    return rc_arena_copy(maker->mem, says, strlen(says), &foreign->says, err);
}

rc_code rc_config_refuse_foreign(const rc_config *cfg, rc_error *err)
{
    if (!cfg->foreign.says)
        return RC_OK;
    return RC_FAIL(err, RC_E_UNSUPPORTED, cfg->foreign.where, "%s", cfg->foreign.says);
}

/* --- one key */

/* A key, or a value as a message shows it: text of a stranger, so only what can be printed. */
static const char *show(const rc_doc *node, char buf[64])
{
    if (node->kind == RC_DOC_LIST || node->kind == RC_DOC_MAP)
        return node->kind == RC_DOC_LIST ? "a list" : "a map";
    if (node->kind == RC_DOC_NULL)
        return "null";
    const char *text = rc_value_text(node);
    return rc_text_printable(text ? text : "", text ? strlen(text) : 0, buf, 64);
}

static const char *show_key(const rc_doc *node, char buf[64])
{
    return rc_text_printable(node->key, strlen(node->key), buf, 64);
}

static const struct key *find_key(unsigned styles, const char *name)
{
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if ((keys[i].styles & styles) && strcmp(keys[i].name, name) == 0)
            return &keys[i];
    return NULL;
}

static bool is_same_scalar(const rc_doc *a, const rc_doc *b)
{
    bool is_number = a->kind == RC_DOC_INT || a->kind == RC_DOC_FLOAT;
    if (is_number && (b->kind == RC_DOC_INT || b->kind == RC_DOC_FLOAT))
        return a->f == b->f;
    if (a->kind != b->kind)
        return false;
    if (a->kind == RC_DOC_BOOL)
        return a->i == b->i;
    return a->kind == RC_DOC_NULL || strcmp(a->text, b->text) == 0;
}

static bool is_value(const rc_doc *node, const char *value)
{
    rc_doc scalar = {.text = value, .n_bytes = strlen(value)};
    bool is_all = true;
    if (node->kind == RC_DOC_MAP)
        return node->n_children == 0;
    for (const rc_doc *item = node->child; item && node->kind == RC_DOC_LIST; item = item->next)
        is_all = is_all && is_value(item, value);
    if (node->kind == RC_DOC_LIST)
        return is_all;
    rc_doc_resolve_scalar(&scalar);
    return is_same_scalar(node, &scalar);
}

static bool is_taken(const file *of, const struct key *key, const rc_doc *node, bool is_mapped)
{
    const rc_doc *other;
    switch (key->how) {
    case COMPUTED:
        return is_mapped || node->kind == RC_DOC_NULL;
    case HARMLESS:
        return true;
    case ONLY:
        return is_value(node, key->value);
    case NULL_OR:
        return node->kind == RC_DOC_NULL || is_value(node, key->value);
    case SAME_AS:
        other = rc_doc_find(of->map, key->value);
        return !other || is_same_scalar(node, other);
    }
    return false;
}

static rc_code note_unknown(const file *of, const rc_doc *node, rc_error *err)
{
    char says[200], name[64];
    snprintf(says, sizeof says,
             "%s: not known here, so neither is what it does to the model; take it out of the "
             "file if it does nothing",
             show_key(node, name));
    return note(of->maker, node->key_where, says, err);
}

static rc_code judge(const file *of, const rc_doc *node, bool is_mapped, rc_error *err)
{
    char says[200], value[64];
    const struct key *key = find_key(of->styles, node->key);
    if (!key)
        return note_unknown(of, node, err);
    if (is_taken(of, key, node, is_mapped))
        return RC_OK;
    if (key->how == COMPUTED)
        snprintf(says, sizeof says, "%s is %s: unsupported by the engine%s%s", key->name,
                 show(node, value), *key->why ? "; " : "", key->why);
    else
        snprintf(says, sizeof says,
                 "%s is %s: unsupported by the engine, which computes %s; %s", key->name,
                 show(node, value), key->value, key->why);
    return note(of->maker, node->where, says, err);
}

/* Applies the key's rows; *is_mapped: did one fit, or may one once all is read? */
static rc_code apply(const file *of, const char *name, const rc_doc *node, bool *is_mapped,
                     rc_error *err)
{
    const rc_alias *row = rc_maker_find_alias(of->maker, RC_DIALECT_HF, name);
    *is_mapped = false;
    if (row && rc_assigns_wait(row->settings)) {
        /* a window is a count */
        *is_mapped = !rc_assigns_have(row->settings, RC_ASSIGN_WINDOW) ||
                     (node->kind == RC_DOC_INT && node->i > 0);
        return rc_maker_defer(of->maker, RC_DIALECT_HF, row, node, err);
    }
    return row ? rc_maker_apply(of->maker, RC_DIALECT_HF, row, node, is_mapped, err) : RC_OK;
}

static rc_code read_key(const file *of, const rc_doc *node, rc_error *err)
{
    bool is_mapped;
    RC_TRY(apply(of, node->key, node, &is_mapped, err));
    return of->styles == NONE ? RC_OK : judge(of, node, is_mapped, err);
}

/* --- the family */

static const struct family *find_family(const char *name)
{
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (strcmp(families[i].name, name) == 0)
            return &families[i];
    return NULL;
}

static rc_code judge_family(rc_maker *maker, const char *name, const char *shown,
                            rc_where where, rc_error *err)
{
    char says[200];
    const struct family *family = find_family(name);
    if (family && family->styles != NONE)
        return RC_OK;
    snprintf(says, sizeof says, "model_type is %s: unsupported by the engine; %s", shown,
             family ? family->why : "what such a model computes is not known here");
    return note(maker, where, says, err);
}

rc_code rc_maker_judge_family(rc_maker *maker, const char *name, rc_where where, rc_error *err)
{
    return judge_family(maker, name, name, where, err);
}

/* `has_rms_norm`: a family that no row names is like Llama's in what its file leaves out. */
static rc_code read_family(file *of, const rc_doc *type, rc_error *err)
{
    char value[64];
    bool is_mapped, has_rms_norm = rc_doc_find(of->map, "rms_norm_eps") != NULL;
    RC_TRY(apply(of, "model_type", type, &is_mapped, err));
    if (!is_mapped && has_rms_norm)
        RC_TRY(rc_maker_apply_family(of->maker, RC_FAMILY_llama, type, err));
    if (!is_mapped)
        RC_TRY(rc_maker_note(of->maker,
                             (rc_unknown_key){.path = "model_type",
                                              .where = type->where,
                                              .field = RC_FIELD_COUNT,
                                              .node = type},
                             err));
    if (!of->is_outer)
        return RC_OK;
    bool is_word = type->kind == RC_DOC_STRING && strlen(type->text) == type->n_bytes;
    const char *name = is_word ? type->text : "";
    const struct family *family = find_family(name);
    of->styles = family ? family->styles : NONE;
    return judge_family(of->maker, name, show(type, value), type->where, err);
}

/* What may stand in a rope_scaling of any type; other keys of the file have no meaning there. */
static bool is_of_any_rope(const char *key)
{
    return strcmp(key, "rope_theta") == 0 || strcmp(key, "partial_rotary_factor") == 0;
}

static const rc_doc *find_in_ropes(const file *of, const char *key)
{
    for (size_t i = 0; i < 2 && is_of_any_rope(key); i++) {
        const rc_doc *found = rc_doc_find(rc_doc_find(of->map, rope_names[i]), key);
        if (found)
            return found;
    }
    return NULL;
}

static rc_code need_keys(const file *of, rc_error *err)
{
    char says[200];
    for (size_t i = 0; i < sizeof needs / sizeof *needs; i++) {
        const rc_doc *node = rc_doc_find(of->map, needs[i].key);
        if (!node)
            node = find_in_ropes(of, needs[i].key);
        bool is_there = node && (needs[i].may_be_null || node->kind != RC_DOC_NULL);
        if (is_there || !(needs[i].styles & of->styles))
            continue;
        snprintf(says, sizeof says,
                 "%s is missing; transformers then takes a default of its own, so write the "
                 "value that it has",
                 needs[i].key);
        RC_TRY(note(of->maker, node ? node->where : of->map->where, says, err));
    }
    return RC_OK;
}

/* --- rope_scaling and rope_parameters */

static bool is_map(const rc_doc *node)
{
    return node && node->kind == RC_DOC_MAP && node->n_children > 0;
}

static rc_code apply_rope(const file *of, const char *type, const rc_doc *node,
                          const char *name, bool *is_mapped, rc_error *err)
{
    char row[160];
    *is_mapped = false;
    int n = snprintf(row, sizeof row, "rope_scaling.%s%s%s", type, *name ? "." : "", name);
    if (n < 0 || (size_t)n >= sizeof row)
        return RC_OK;
    if (!of->maker->cfg->multi_latent_attention)
        return apply(of, row, node, is_mapped, err);
    *is_mapped = true;
    return RC_OK;
}

/* What stands both in the map and beside it must be the same: versions of transformers differ in
 * which of the two wins. */
static rc_code judge_twice(const file *of, const rc_doc *node, rc_error *err)
{
    char says[200], name[64], value[64], other[64];
    const rc_doc *beside = rc_doc_find(of->map, node->key);
    if (!beside || beside->kind == RC_DOC_NULL || is_same_scalar(node, beside))
        return RC_OK;
    snprintf(says, sizeof says, "%s is %s here and %s outside; give one of them",
             show_key(node, name), show(node, value), show(beside, other));
    return note(of->maker, node->where, says, err);
}

static rc_code read_rope_keys(const file *of, const rc_doc *map, const char *type,
                              rc_error *err)
{
    bool is_mapped;
    for (const rc_doc *node = map->child; node; node = node->next) {
        if (strcmp(node->key, "type") == 0 || strcmp(node->key, "rope_type") == 0)
            continue;
        RC_TRY(apply_rope(of, type, node, node->key, &is_mapped, err));
        if (is_mapped || (node->kind == RC_DOC_NULL && of->styles != NONE))
            continue;
        if (of->styles != NONE && !is_of_any_rope(node->key)) {
            RC_TRY(note_unknown(of, node, err));
            continue;
        }
        RC_TRY(read_key(of, node, err));
        if (of->styles != NONE)
            RC_TRY(judge_twice(of, node, err));
    }
    return RC_OK;
}

static rc_code judge_rope(const file *of, const rc_doc *map, const rc_doc *type, bool is_known,
                          rc_error *err)
{
    char says[200], value[64];
    const rc_doc *other = rc_doc_find(map, "type");
    if (of->styles == NONE)
        return RC_OK;
    snprintf(says, sizeof says,
             "%s has the type %s: unsupported by the engine; it computes default, linear, "
             "dynamic, llama3 and yarn",
             map->key, show(type, value));
    if (!is_known || (other && !is_same_scalar(type, other)))
        return note(of->maker, type->where, says, err);
    for (size_t i = 0; i < sizeof rope_needs / sizeof *rope_needs; i++) {
        const rc_doc *node = rc_doc_find(map, rope_needs[i].key);
        if (!is_value(type, rope_needs[i].type) || (node && node->kind != RC_DOC_NULL))
            continue;
        snprintf(says, sizeof says, "%s of type %s has no %s; write the value that it has",
                 map->key, rope_needs[i].type, rope_needs[i].key);
        RC_TRY(note(of->maker, map->where, says, err));
    }
    return RC_OK;
}

static rc_code read_rope(const file *of, const rc_doc *map, rc_error *err)
{
    static const rc_doc unsaid = {.kind = RC_DOC_STRING, .text = "default", .n_bytes = 7};
    const rc_doc *type = rc_doc_find(map, "rope_type");
    bool is_known = false;
    type = type ? type : rc_doc_find(map, "type");
    rc_doc fallback = unsaid;
    fallback.where = map->where;
    if (!type)
        type = &fallback;
    bool is_word = type->kind == RC_DOC_STRING && !strchr(type->text, '.');
    const char *word = is_word ? type->text : "";
    if (*word)
        RC_TRY(apply_rope(of, word, type, "", &is_known, err));
    RC_TRY(judge_rope(of, map, type, is_known, err));
    return read_rope_keys(of, map, word, err);
}

static rc_code read_ropes(const file *of, rc_error *err)
{
    char says[200];
    const rc_doc *maps[2];
    for (size_t i = 0; i < 2; i++) {
        maps[i] = rc_doc_find(of->map, rope_names[i]);
        if (is_map(maps[i]))
            RC_TRY(read_rope(of, maps[i], err));
        bool is_empty = !maps[i] || is_map(maps[i]) || is_value(maps[i], "null");
        if (is_empty || of->styles == NONE)
            continue;
        snprintf(says, sizeof says, "%s must be a map or null", rope_names[i]);
        RC_TRY(note(of->maker, maps[i]->where, says, err));
    }
    if (!is_map(maps[0]) || !is_map(maps[1]) || of->styles == NONE)
        return RC_OK;
    return note(of->maker, maps[1]->where,
                "rope_scaling stands beside rope_parameters, its newer name; give one of them",
                err);
}

/* --- the file */

static bool is_rope(const rc_doc *node)
{
    return strcmp(node->key, rope_names[0]) == 0 || strcmp(node->key, rope_names[1]) == 0;
}

/* Maps inside config.json that hold keys of the language model. */
static bool is_inner(const rc_doc *node)
{
    static const char *const names[] = {"text_config", "llm_config", "language_config", NULL};
    for (const char *const *name = names; *name && node->kind == RC_DOC_MAP; name++)
        if (strcmp(node->key, *name) == 0)
            return true;
    return false;
}

static rc_code read_inner(const file *of, const rc_doc *node, rc_error *err);

/* The model type first: its rows say what the shape's keys leave out. */
static rc_code read_file(file *of, rc_error *err)
{
    const rc_doc *type = rc_doc_find(of->map, "model_type");
    if (type)
        RC_TRY(read_family(of, type, err));
    else if (of->is_outer)
        RC_TRY(note(of->maker, of->map->where,
                    "model_type is missing, so what the model computes is not known here; name "
                    "the class of transformers that it is of",
                    err));
    RC_TRY(need_keys(of, err));
    for (const rc_doc *node = of->map->child; node; node = node->next)
        if (node != type && !is_inner(node) && !is_rope(node))
            RC_TRY(read_key(of, node, err));
    RC_TRY(read_ropes(of, err));
    for (const rc_doc *node = of->map->child; node; node = node->next)
        if (is_inner(node))
            RC_TRY(read_inner(of, node, err));
    return RC_OK;
}

static rc_code read_inner(const file *of, const rc_doc *node, rc_error *err)
{
    file inner = {.maker = of->maker, .map = node};
    if (of->styles != NONE)
        RC_TRY(judge(of, node, false, err));
    return read_file(&inner, err);
}

rc_code rc_maker_read_hf(rc_maker *maker, const rc_doc *map, rc_error *err)
{
    file outer = {.maker = maker, .map = map, .is_outer = true};
    RC_TRY(rc_maker_prepare_aliases(maker, RC_DIALECT_HF, err));
    return read_file(&outer, err);
}
