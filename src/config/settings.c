/* config/settings.c — "field=value" words of the tables, applied to the config being made.
 *
 * takes  a row of aliases.def, hf.def or presets.def and the node that called for it
 * gives  the fields set; their values stand at the place of that node
 */
#include "args/override.h"
#include "config/make.h"
#include "config/value.h"

#include "base/num.h"

#include <stdio.h>
#include <string.h>

enum { MAX_LAYERS = 16384 };

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
        return strcmp(when, "null") == 0;
    if (*when == '\0')
        return true;
    if (node->kind == RC_DOC_BOOL)
        return strcmp(when, node->i ? "true" : "false") == 0;
    const char *text = rc_value_text(node);
    return text && is_alike(when, text);
}

rc_code rc_maker_negate(rc_maker *maker, const rc_doc *node, rc_doc **out, rc_error *err)
{
    RC_TRY(rc_doc_new(maker->mem, RC_DOC_BOOL, node->where, out, err));
    bool is_truth = node->kind == RC_DOC_BOOL || node->kind == RC_DOC_INT;
    (*out)->i = !(is_truth ? node->i != 0 : node->kind != RC_DOC_NULL);
    return RC_OK;
}

static rc_code make_int(rc_maker *maker, rc_where where, int64_t value, rc_doc **out,
                        rc_error *err)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%lld", (long long)value);
    RC_TRY(rc_doc_new(maker->mem, RC_DOC_INT, where, out, err));
    (*out)->i = value;
    (*out)->f = (double)value;
    (*out)->n_bytes = strlen(digits);
    return rc_arena_copy(maker->mem, digits, (*out)->n_bytes, &(*out)->text, err);
}

/* $*other: null when the other field is. */
static rc_code make_product(rc_maker *maker, const char *other, const rc_doc *node,
                            rc_doc **out, rc_error *err)
{
    char name[64];
    int64_t by = RC_NULL_INT, product;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(other, " "), other);
    rc_field field = rc_field_find_name(name);
    if (field == RC_FIELD_COUNT || rc_field_find(field)->type != RC_FIELD_TYPE_INT)
        return RC_FAIL(err, RC_E_BUG, RC_NOWHERE, "a table multiplies by no field: %s", name);
    by = rc_value_int(maker->cfg, field);
    if (node->kind != RC_DOC_INT || !rc_mul(node->i, by, &product)) {
        RC_TRY(rc_doc_new(maker->mem, RC_DOC_NULL, node->where, out, err));
        return RC_OK;
    }
    return make_int(maker, node->where, product, out, err);
}

/* #n: n zeros, then ones up to num_layers; null when num_layers is. */
static rc_code make_dense_first(rc_maker *maker, int64_t n_dense, rc_where where, rc_doc **out,
                                rc_error *err)
{
    int64_t n_layers = maker->cfg->num_layers;
    bool is_list = n_layers > 0 && n_layers <= MAX_LAYERS && n_dense >= 0;
    RC_TRY(rc_doc_new(maker->mem, is_list ? RC_DOC_LIST : RC_DOC_NULL, where, out, err));
    for (int64_t i = 0; is_list && i < n_layers; i++) {
        rc_doc *node;
        RC_TRY(make_int(maker, where, i >= n_dense, &node, err));
        rc_doc_add(*out, NULL, RC_NOWHERE, node);
    }
    return RC_OK;
}

/* <$: the last n positions; Megatron counts those in front of the own one (transformer_config.py). */
static rc_code make_window(rc_maker *maker, const rc_doc *node, rc_doc **out, rc_error *err)
{
    bool is_window = node->kind == RC_DOC_INT && node->i > 0;
    RC_TRY(
        rc_doc_new(maker->mem, is_window ? RC_DOC_LIST : RC_DOC_NULL, node->where, out, err));
    for (int i = 0; is_window && i < 2; i++) {
        rc_doc *side;
        RC_TRY(make_int(maker, node->where, i == 0 ? node->i - 1 : 0, &side, err));
        rc_doc_add(*out, NULL, RC_NOWHERE, side);
    }
    return RC_OK;
}

/* %WORD, `n` bytes of it: which items are that word. */
static rc_code make_places(rc_maker *maker, const char *word, size_t n, const rc_doc *node,
                           rc_doc **out, rc_error *err)
{
    size_t n_found = 0;
    RC_TRY(rc_doc_new(maker->mem, RC_DOC_LIST, node->where, out, err));
    for (const rc_doc *item = node->child; item; item = item->next) {
        rc_doc *place;
        bool is_it = item->text && strncmp(item->text, word, n) == 0 && item->text[n] == '\0';
        n_found += is_it;
        RC_TRY(make_int(maker, item->where, is_it, &place, err));
        rc_doc_add(*out, NULL, RC_NOWHERE, place);
    }
    return n_found ? RC_OK : rc_doc_new(maker->mem, RC_DOC_NULL, node->where, out, err);
}

/* The value behind the = of a setting, `n` bytes. */
static rc_code make_value(rc_maker *maker, const char *text, size_t n, const rc_doc *node,
                          rc_doc **out, rc_error *err)
{
    if (*text == '!')
        return rc_maker_negate(maker, node, out, err);
    if (*text == '<')
        return make_window(maker, node, out, err);
    if (*text == '%')
        return make_places(maker, text + 1, n - 1, node, out, err);
    if (*text == '$')
        return make_product(maker, text + 2, node, out, err);
    if (*text == '#') {
        int64_t n_dense = text[1] == '$' ? node->i : text[1] - '0';
        return make_dense_first(maker, n_dense, node->where, out, err);
    }
    const char *word;
    rc_nodes nodes = {.mem = maker->mem};
    rc_doc map = {.kind = RC_DOC_MAP};
    RC_TRY(rc_arena_printf(maker->mem, &word, err, "x=%.*s", (int)n, text));
    RC_TRY(rc_override_add(&nodes, &map, word, node->where, err));
    *out = map.child;
    (*out)->where = node->where;
    return RC_OK;
}

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
    if (*text == '$' && text[1] != '*')
        return rc_maker_set(maker, field, node, node->key ? node->key : name, err);
    rc_doc *value;
    RC_TRY(make_value(maker, text, n - (size_t)(text - word), node, &value, err));
    return rc_maker_set(maker, field, value, name, err);
}

/* @NAME: the rows of model_type NAME; `depth` bounds a ring of rows. */
static rc_code apply_family(rc_maker *maker, const char *family, size_t n, const rc_doc *node,
                            int depth, rc_error *err)
{
    rc_aliases rows = rc_aliases_find(RC_DIALECT_HF);
    for (size_t i = 0; i < rows.n && depth < 8; i++) {
        const rc_alias *row = &rows.at[i];
        if (strcmp(row->name, "model_type") == 0 && strncmp(row->when, family, n) == 0 &&
            row->when[n] == '\0')
            return rc_maker_apply_settings(maker, row->settings, node, depth + 1, err);
    }
    return RC_FAIL(err, RC_E_BUG, RC_NOWHERE, "a table names no family: %s", family);
}

rc_code rc_maker_apply_settings(rc_maker *maker, const char *settings, const rc_doc *node,
                                int depth, rc_error *err)
{
    bool is_converted = maker->cfg->framework != RC_FRAMEWORK_MEGATRON_LM;
    for (const char *word = settings; *word;) {
        size_t n = strcspn(word, " ");
        bool is_of_bridge = *word == '+';
        if (*word == '@')
            RC_TRY(apply_family(maker, word + 1, n - 1, node, depth, err));
        else if (!is_of_bridge || (is_converted && node->kind != RC_DOC_NULL))
            RC_TRY(apply_setting(maker, word + is_of_bridge, n - is_of_bridge, node, err));
        word += n + strspn(word + n, " ");
    }
    return RC_OK;
}

rc_code rc_maker_apply(rc_maker *maker, rc_dialect dialect, const rc_alias *row,
                       const rc_doc *node, bool *is_known, rc_error *err)
{
    rc_aliases rows = rc_aliases_find(dialect);
    const char *name = row->name;
    for (; row < rows.at + rows.n && strcmp(row->name, name) == 0; row++) {
        if (!fits(row->when, node))
            continue;
        *is_known = true;
        RC_TRY(rc_maker_apply_settings(maker, row->settings, node, 0, err));
    }
    return RC_OK;
}
