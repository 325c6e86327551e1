/* config/alias.c — names of other frameworks by table: aliases.def and hf.def.
 *
 * takes  flat maps: Megatron-LM arguments, TransformerConfig fields, Hugging Face's config.json
 * gives  the fields they mean, set in the config being made
 */
#include "base/text.h"
#include "config/make.h"
#include "config/value.h"
#include "read/override.h"

#include <stdio.h>
#include <string.h>

#define RC_ALIAS(tongue, name, when, settings) ALIAS_##tongue(name, when, settings)
static const rc_alias args_rows[] = {
#define ALIAS_ARGS(name, when, settings) {name, when, settings},
#define ALIAS_BRIDGE(name, when, settings)
#include "defs/aliases.def"
#undef ALIAS_ARGS
#undef ALIAS_BRIDGE
};
static const rc_alias bridge_rows[] = {
#define ALIAS_ARGS(name, when, settings)
#define ALIAS_BRIDGE(name, when, settings) {name, when, settings},
#include "defs/aliases.def"
#undef ALIAS_ARGS
#undef ALIAS_BRIDGE
};
#undef RC_ALIAS

static const rc_alias hf_rows[] = {
#define RC_HF(name, when, settings) {name, when, settings},
#include "defs/hf.def"
#undef RC_HF
};

rc_aliases rc_aliases_find(rc_tongue tongue)
{
    switch (tongue) {
    case RC_TONGUE_ARGS:
        return (rc_aliases){args_rows, sizeof args_rows / sizeof *args_rows};
    case RC_TONGUE_BRIDGE:
        return (rc_aliases){bridge_rows, sizeof bridge_rows / sizeof *bridge_rows};
    case RC_TONGUE_HF:
        break;
    }
    return (rc_aliases){hf_rows, sizeof hf_rows / sizeof *hf_rows};
}

rc_code rc_maker_prepare_aliases(rc_maker *maker, rc_tongue tongue, rc_error *err)
{
    rc_names *names = &maker->aliases[tongue];
    if (names->slots)
        return RC_OK;
    rc_aliases rows = rc_aliases_find(tongue);
    RC_TRY(rc_names_make(names, rows.n, maker->mem, err));
    for (size_t i = 0; i < rows.n; i++)
        rc_names_add(names, rows.at[i].name, (int)i);
    return RC_OK;
}

/* "--num-layers" and "!--disable-bias-linear" as the arguments' names: num_layers. */
static rc_code add_flag(rc_maker *maker, int field, rc_error *err)
{
    const char *flag = rc_field_find((rc_field)field)->flag, *name;
    flag += *flag == '!';
    if (strncmp(flag, "--", 2) != 0)
        return RC_OK;
    char buf[128];
    size_t n = 0;
    for (flag += 2; *flag && n + 1 < sizeof buf; flag++)
        buf[n++] = *flag == '-' ? '_' : *flag;
    RC_TRY(rc_arena_copy(maker->mem, buf, n, &name, err));
    rc_names_add(&maker->flags, name, field);
    return RC_OK;
}

rc_code rc_maker_prepare_flat(rc_maker *maker, rc_error *err)
{
    if (maker->flags.slots)
        return RC_OK;
    RC_TRY(rc_names_make(&maker->names, RC_FIELD_COUNT, maker->mem, err));
    RC_TRY(rc_names_make(&maker->flags, RC_FIELD_COUNT, maker->mem, err));
    for (int i = 0; i < RC_FIELD_COUNT; i++) {
        rc_names_add(&maker->names, rc_field_find((rc_field)i)->name, i);
        RC_TRY(add_flag(maker, i, err));
    }
    return RC_OK;
}

const rc_alias *rc_maker_find_alias(const rc_maker *maker, rc_tongue tongue, const char *name)
{
    int row = rc_names_find(&maker->aliases[tongue], name);
    return row < 0 ? NULL : &rc_aliases_find(tongue).at[row];
}

/* Equal but for - and _, which people write for each other. */
static bool is_alike(const char *a, const char *b)
{
    for (; *a && *b; a++, b++)
        if (*a != *b && !(strchr("-_", *a) && strchr("-_", *b)))
            return false;
    return *a == *b;
}

static bool fits(const char *when, const rc_doc *node)
{
    if (node->kind == RC_DOC_NULL)
        return false;
    if (*when == '\0')
        return true;
    if (node->kind == RC_DOC_BOOL)
        return strcmp(when, node->i ? "true" : "false") == 0;
    const char *text = rc_value_text(node);
    return text && is_alike(when, text);
}

static rc_code negate(rc_maker *maker, const rc_doc *node, rc_doc **out, rc_error *err)
{
    RC_TRY(rc_doc_new(maker->mem, RC_DOC_BOOL, node->where, out, err));
    bool is_truth = node->kind == RC_DOC_BOOL || node->kind == RC_DOC_INT;
    (*out)->i = !(is_truth ? node->i != 0 : node->kind != RC_DOC_NULL);
    return RC_OK;
}

/* One "field=value" or "field?=value" of a row; values stand at the place of the name that meant
 * them. */
static rc_code apply_setting(rc_maker *maker, const char *word, size_t n, const rc_doc *node,
                             rc_error *err)
{
    char name[64];
    size_t n_name = strcspn(word, "?=");
    bool is_weak = word[n_name] == '?';
    snprintf(name, sizeof name, "%.*s", (int)n_name, word);
    rc_field field = rc_field_find_name(name);
    if (field == RC_FIELD_COUNT)
        return RC_FAIL(err, RC_E_BUG, RC_NOWHERE, "a table names no field: %s", word);
    if (is_weak && maker->cfg->origin[field].kind != RC_FROM_DEFAULT)
        return RC_OK;
    const char *text = word + n_name + is_weak + 1;
    if (*text == '$')
        return rc_maker_set(maker, field, node, node->key ? node->key : name, err);
    rc_doc *value;
    if (*text == '!') {
        RC_TRY(negate(maker, node, &value, err));
    } else {
        const char *copy;
        rc_nodes nodes = {.mem = maker->mem};
        rc_doc map = {.kind = RC_DOC_MAP};
        RC_TRY(rc_arena_printf(maker->mem, &copy, err, "x=%.*s", (int)(word + n - text), text));
        RC_TRY(rc_override_add(&nodes, &map, copy, node->where, err));
        value = map.child;
        value->where = node->where;
    }
    return rc_maker_set(maker, field, value, name, err);
}

rc_code rc_maker_apply(rc_maker *maker, rc_tongue tongue, const rc_alias *row,
                       const rc_doc *node, bool *is_known, rc_error *err)
{
    rc_aliases rows = rc_aliases_find(tongue);
    const char *name = row->name;
    for (; row < rows.at + rows.n && strcmp(row->name, name) == 0; row++) {
        if (!fits(row->when, node))
            continue;
        *is_known = true;
        for (const char *word = row->settings; *word;) {
            size_t n = strcspn(word, " ");
            RC_TRY(apply_setting(maker, word, n, node, err));
            word += n + strspn(word + n, " ");
        }
    }
    return RC_OK;
}

static rc_code set_flag(rc_maker *maker, rc_field field, const rc_doc *node, rc_error *err)
{
    if (*rc_field_find(field)->flag != '!')
        return rc_maker_set(maker, field, node, node->key, err);
    rc_doc *value;
    RC_TRY(negate(maker, node, &value, err));
    return rc_maker_set(maker, field, value, node->key, err);
}

rc_code rc_maker_read_arg(rc_maker *maker, const rc_doc *node, rc_error *err)
{
    RC_TRY(rc_maker_prepare_flat(maker, err));
    RC_TRY(rc_maker_prepare_aliases(maker, RC_TONGUE_ARGS, err));
    const rc_alias *row = rc_maker_find_alias(maker, RC_TONGUE_ARGS, node->key);
    bool is_known = false;
    if (row)
        return rc_maker_apply(maker, RC_TONGUE_ARGS, row, node, &is_known, err);
    int flag = rc_names_find(&maker->flags, node->key);
    if (flag >= 0)
        return set_flag(maker, (rc_field)flag, node, err);
    int name = rc_names_find(&maker->names, node->key);
    if (name >= 0)
        return rc_maker_set(maker, (rc_field)name, node, node->key, err);
    return rc_maker_note_unknown(maker, node->key, node->key_where, err);
}

rc_code rc_maker_read_args(rc_maker *maker, const rc_doc *map, rc_error *err)
{
    for (const rc_doc *node = map->child; node; node = node->next)
        RC_TRY(rc_maker_read_arg(maker, node, err));
    return RC_OK;
}

rc_code rc_maker_read_names(rc_maker *maker, const rc_doc *map, rc_error *err)
{
    RC_TRY(rc_maker_prepare_flat(maker, err));
    for (const rc_doc *node = map->child; node; node = node->next) {
        int name = rc_names_find(&maker->names, node->key);
        if (name >= 0)
            RC_TRY(rc_maker_set(maker, (rc_field)name, node, node->key, err));
        else
            RC_TRY(rc_maker_note_unknown(maker, node->key, node->key_where, err));
    }
    return RC_OK;
}

static rc_code read_hf_key(rc_maker *maker, const rc_doc *node, rc_error *err)
{
    const rc_alias *row = rc_maker_find_alias(maker, RC_TONGUE_HF, node->key);
    bool is_known = false;
    return row ? rc_maker_apply(maker, RC_TONGUE_HF, row, node, &is_known, err) : RC_OK;
}

/* The model type first: its rows say what the shape's keys leave out. Keys that are no matter of
 * training (token ids, generation settings, ...) are many and pass in silence. */
rc_code rc_maker_read_hf(rc_maker *maker, const rc_doc *map, rc_error *err)
{
    RC_TRY(rc_maker_prepare_aliases(maker, RC_TONGUE_HF, err));
    const rc_doc *inner =
        rc_doc_find(map, "text_config"); /* of a model that also sees images */
    const rc_doc *type = rc_doc_find(map, "model_type");
    if (type)
        RC_TRY(read_hf_key(maker, type, err));
    for (const rc_doc *node = map->child; node; node = node->next)
        if (node != type && node != inner)
            RC_TRY(read_hf_key(maker, node, err));
    return inner && inner->kind == RC_DOC_MAP ? rc_maker_read_hf(maker, inner, err) : RC_OK;
}
