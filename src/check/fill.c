/* fill.c — the fields of an rc_config as the untyped values that rules read.
 *
 * A typed value is what the launcher hands to the class; the raw node stays where its kind matters
 * (true and 2.0 are no layer counts) and for its position.
 *
 * above  checking.c
 */
#include "check/checking.h"

#include <string.h>

static rc_code make_list(const rc_strings *list, const rc_doc *node, rc_arena *mem, rc_doc *out,
                         rc_error *err)
{
    const rc_doc *item =
        node && node->kind == RC_DOC_LIST && node->n_children == list->n ? node->child : NULL;
    for (size_t i = 0; i < list->n; i++) {
        rc_doc *text;
        rc_where where = item ? item->where : out->where;
        RC_TRY(rc_doc_new(mem, RC_DOC_STRING, where, &text, err));
        text->text = list->at[i];
        text->n_bytes = strlen(list->at[i]);
        rc_doc_add(out, NULL, where, text);
        item = item ? item->next : NULL;
    }
    return RC_OK;
}

/* A value of another kind than its field's, as the class will see it. Arguments have no kinds: a
 * single word is a list there. */
static bool is_kept_raw(const rc_config *cfg, const rc_doc *node, rc_field_type type)
{
    if (!node || cfg->framework == RC_FRAMEWORK_MEGATRON_LM)
        return false;
    if (type == RC_FIELD_TYPE_INT)
        return node->kind == RC_DOC_BOOL || node->kind == RC_DOC_FLOAT;
    return type == RC_FIELD_TYPE_LIST && node->kind == RC_DOC_STRING;
}

static rc_code fill_typed(const void *at, rc_field_type type, const rc_doc *node, rc_arena *mem,
                          rc_doc *out, rc_error *err)
{
    switch (type) {
    case RC_FIELD_TYPE_INT:
    case RC_FIELD_TYPE_BYTES:
        out->kind = RC_DOC_INT;
        out->i = *(const int64_t *)at;
        out->f = (double)out->i;
        return RC_OK;
    case RC_FIELD_TYPE_REAL:
        out->kind = RC_DOC_FLOAT;
        out->f = *(const double *)at;
        return RC_OK;
    case RC_FIELD_TYPE_BOOL:
        out->kind = RC_DOC_BOOL;
        out->i = *(const bool *)at;
        return RC_OK;
    case RC_FIELD_TYPE_STR:
        out->kind = RC_DOC_STRING;
        out->text = *(const char *const *)at;
        out->n_bytes = strlen(out->text);
        return RC_OK;
    case RC_FIELD_TYPE_LIST:
        out->kind = RC_DOC_LIST;
        return make_list(at, node, mem, out, err);
    case RC_FIELD_TYPE_RAW:
        break;
    }
    return RC_OK;
}

static rc_code make_value(const rc_config *cfg, rc_field field, rc_arena *mem,
                          const rc_doc **out, rc_error *err)
{
    const rc_origin *origin = &cfg->origin[field];
    const void *at = rc_config_value_at(cfg, field);
    rc_field_type type = rc_field_find(field)->type;
    rc_doc *value;
    if (!origin->is_null && type == RC_FIELD_TYPE_RAW) {
        *out = *(const rc_doc *const *)at;
        return RC_OK;
    }
    if (!origin->is_null && is_kept_raw(cfg, origin->node, type)) {
        *out = origin->node;
        return RC_OK;
    }
    RC_TRY(rc_doc_new(mem, RC_DOC_NULL, origin->where, &value, err));
    *out = value;
    return origin->is_null ? RC_OK : fill_typed(at, type, origin->node, mem, value, err);
}

/* An untouched default is the class's own, which rc_checked_default knows; Megatron-LM hands over
 * defaults of its arguments. */
static bool is_class_default(const rc_config *cfg, rc_field field)
{
    return cfg->origin[field].kind == RC_FROM_DEFAULT &&
           (cfg->framework != RC_FRAMEWORK_MEGATRON_LM || cfg->origin[field].is_null);
}

/* `--tensor-model-parallel-size $TP` with TP from the scheduler: no rule may be sure about it. */
static void mark_late(rc_checking *checking, const rc_config *cfg)
{
    for (size_t i = 0; i < cfg->n_unknown; i++) {
        const rc_unknown_key *one = &cfg->unknown[i];
        rc_checked_field field = one->is_value
                                     ? rc_checked_find_name(rc_field_find(one->field)->name)
                                     : RC_CHECKED_COUNT;
        if (field != RC_CHECKED_COUNT)
            checking->is_late[field] = true;
    }
}

rc_code rc_checking_fill(rc_checking *checking, const rc_config *cfg, rc_error *err)
{
    mark_late(checking, cfg);
    for (int i = 0; i < RC_CHECKED_COUNT; i++) {
        rc_field field = rc_checked_find((rc_checked_field)i)->field;
        if (is_class_default(cfg, field))
            continue;
        RC_TRY(make_value(cfg, field, checking->mem, &checking->at[i], err));
        checking->given[i] = checking->written[i] = checking->at[i];
        checking->is_given[i] = cfg->origin[field].kind != RC_FROM_DERIVED &&
                                cfg->origin[field].kind != RC_FROM_DEFAULT;
    }
    return RC_OK;
}
