/* config/settings.c — the settings of a table's row, applied to the config being made.
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

/* Null when the other field is. */
static rc_code make_product(rc_maker *maker, rc_field other, const rc_doc *node, rc_doc **out,
                            rc_error *err)
{
    int64_t product, by = rc_value_int(maker->cfg, other);
    if (node->kind != RC_DOC_INT || !rc_mul(node->i, by, &product))
        return rc_doc_new(maker->mem, RC_DOC_NULL, node->where, out, err);
    return make_int(maker, node->where, product, out, err);
}

/* n zeros, then ones up to num_layers; null when num_layers is. */
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

/* The last n positions; Megatron counts those in front of the own one (transformer_config.py). */
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

/* Which items are that word. */
static rc_code make_places(rc_maker *maker, const char *word, const rc_doc *node, rc_doc **out,
                           rc_error *err)
{
    size_t n_found = 0;
    RC_TRY(rc_doc_new(maker->mem, RC_DOC_LIST, node->where, out, err));
    for (const rc_doc *item = node->child; item; item = item->next) {
        rc_doc *place;
        bool is_it = item->text && strcmp(item->text, word) == 0;
        n_found += is_it;
        RC_TRY(make_int(maker, item->where, is_it, &place, err));
        rc_doc_add(*out, NULL, RC_NOWHERE, place);
    }
    return n_found ? RC_OK : rc_doc_new(maker->mem, RC_DOC_NULL, node->where, out, err);
}

/* A value as a table writes it, in YAML. */
static rc_code make_written(rc_maker *maker, const char *text, const rc_doc *node, rc_doc **out,
                            rc_error *err)
{
    const char *word;
    rc_nodes nodes = {.mem = maker->mem};
    rc_doc map = {.kind = RC_DOC_MAP};
    RC_TRY(rc_arena_printf(maker->mem, &word, err, "x=%s", text));
    RC_TRY(rc_override_add(&nodes, &map, word, node->where, err));
    *out = map.child;
    (*out)->where = node->where;
    return RC_OK;
}

static rc_code make_value(rc_maker *maker, const rc_assign *at, const rc_doc *node,
                          rc_doc **out, rc_error *err)
{
    switch (at->kind) {
    case RC_ASSIGN_PRODUCT:
        return make_product(maker, (rc_field)at->operand, node, out, err);
    case RC_ASSIGN_DENSE_FIRST:
        return make_dense_first(maker, at->operand, node->where, out, err);
    case RC_ASSIGN_DENSE_FIRST_GIVEN:
        return make_dense_first(maker, node->i, node->where, out, err);
    case RC_ASSIGN_WINDOW:
        return make_window(maker, node, out, err);
    case RC_ASSIGN_PLACES:
        return make_places(maker, at->text, node, out, err);
    case RC_ASSIGN_VALUE:
    case RC_ASSIGN_BRIDGE_VALUE:
    case RC_ASSIGN_GIVEN:
    case RC_ASSIGN_FAMILY:
    case RC_ASSIGN_END:
        break;
    }
    return make_written(maker, at->text, node, out, err);
}

static rc_code apply_one(rc_maker *maker, const rc_assign *at, const rc_doc *node,
                         rc_error *err)
{
    const char *name = rc_field_find(at->field)->name;
    if (at->is_weak && maker->cfg->origin[at->field].kind != RC_FROM_DEFAULT)
        return RC_OK;
    if (at->kind == RC_ASSIGN_GIVEN)
        return rc_maker_set(maker, at->field, node, node->key ? node->key : name, err);
    rc_doc *value;
    RC_TRY(make_value(maker, at, node, &value, err));
    return rc_maker_set(maker, at->field, value, name, err);
}

rc_code rc_maker_apply_settings(rc_maker *maker, const rc_assign *settings, const rc_doc *node,
                                int depth, rc_error *err)
{
    bool is_converted = maker->cfg->framework != RC_FRAMEWORK_MEGATRON_LM;
    if (depth > 8)
        return RC_FAIL(err, RC_E_BUG, RC_NOWHERE,
                       "families of hf.def name each other in a ring");
    for (const rc_assign *at = settings; at->kind != RC_ASSIGN_END; at++) {
        bool is_left =
            at->kind == RC_ASSIGN_BRIDGE_VALUE && (!is_converted || node->kind == RC_DOC_NULL);
        if (at->kind == RC_ASSIGN_FAMILY)
            RC_TRY(rc_maker_apply_settings(maker, rc_family_settings((rc_family)at->operand),
                                           node, depth + 1, err));
        else if (!is_left)
            RC_TRY(apply_one(maker, at, node, err));
    }
    return RC_OK;
}

rc_code rc_maker_apply_family(rc_maker *maker, rc_family family, const rc_doc *node,
                              rc_error *err)
{
    return rc_maker_apply_settings(maker, rc_family_settings(family), node, 1, err);
}

bool rc_assigns_have(const rc_assign *list, rc_assign_kind kind)
{
    while (list->kind != RC_ASSIGN_END && list->kind != kind)
        list++;
    return list->kind == kind;
}

bool rc_assigns_field(const rc_assign *list, rc_field field)
{
    while (list->kind != RC_ASSIGN_END && list->field != field)
        list++;
    return list->kind != RC_ASSIGN_END;
}

bool rc_assigns_wait(const rc_assign *list)
{
    static const rc_assign_kind waiting[] = {RC_ASSIGN_PRODUCT, RC_ASSIGN_DENSE_FIRST,
                                             RC_ASSIGN_DENSE_FIRST_GIVEN, RC_ASSIGN_WINDOW,
                                             RC_ASSIGN_PLACES};
    for (size_t i = 0; i < sizeof waiting / sizeof *waiting; i++)
        if (rc_assigns_have(list, waiting[i]))
            return true;
    return false;
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
