/* checking.c — the words that rules are made of.
 *
 * takes  the state of a check: the settings' values, the releases
 * gives  answers, hits in firing order, and the fields as Megatron's validation leaves them
 * next   the files of rules; check.c makes findings of the hits
 */
#include "check/checking.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* --- asking */

bool rc_checking_is_on(const rc_checking *checking, rc_checked_field field)
{
    const rc_doc *value = checking->at[field];
    switch (value->kind) {
    case RC_DOC_NULL:
        return false;
    case RC_DOC_BOOL:
    case RC_DOC_INT:
        return value->i != 0;
    case RC_DOC_FLOAT:
        return value->f < 0.0 || value->f > 0.0 || isnan(value->f);
    case RC_DOC_STRING:
        return value->n_bytes > 0;
    case RC_DOC_LIST:
    case RC_DOC_MAP:
        return value->n_children > 0;
    }
    return false;
}

bool rc_checking_is_null(const rc_checking *checking, rc_checked_field field)
{
    return checking->at[field]->kind == RC_DOC_NULL;
}

static bool is_text(const rc_doc *value, const char *text)
{
    return value->kind == RC_DOC_STRING && value->n_bytes == strlen(text) &&
           memcmp(value->text, text, value->n_bytes) == 0;
}

bool rc_checking_is_text(const rc_checking *checking, rc_checked_field field, const char *text)
{
    return is_text(checking->at[field], text);
}

bool rc_checking_need_item(rc_checking *checking, rc_checked_field field, const char *item)
{
    const rc_doc *value = checking->at[field];
    if (value->kind == RC_DOC_STRING)
        return strstr(value->text, item) != NULL;
    if (value->kind != RC_DOC_LIST) {
        rc_checking_crash_at(checking, RC_RULE_python_type_error, field);
        return false;
    }
    for (const rc_doc *child = value->child; child; child = child->next)
        if (is_text(child, item))
            return true;
    return false;
}

static bool take_number(const rc_doc *value, double *out)
{
    if (value->kind == RC_DOC_FLOAT)
        *out = value->f;
    else if (value->kind == RC_DOC_INT || value->kind == RC_DOC_BOOL)
        *out = (double)value->i;
    else
        return false;
    return true;
}

static bool is_equal(double a, double b)
{
    return !(a < b) && !(a > b) && !isnan(a) && !isnan(b);
}

bool rc_checking_is_number(const rc_checking *checking, rc_checked_field field, double value)
{
    double number;
    return take_number(checking->at[field], &number) && is_equal(number, value);
}

bool rc_checking_is_settled(const rc_checking *checking, rc_checked_field field)
{
    return checking->is_given[field] || checking->is_call;
}

double rc_checking_need_number(rc_checking *checking, rc_checked_field field)
{
    double number = 0.0;
    if (!take_number(checking->at[field], &number))
        rc_checking_crash_at(checking, RC_RULE_python_type_error, field);
    return number;
}

bool rc_checking_need_below(rc_checking *checking, rc_checked_field field, double limit)
{
    double number;
    if (take_number(checking->at[field], &number))
        return number < limit;
    rc_checking_crash_at(checking, RC_RULE_python_type_error, field);
    return false;
}

bool rc_checking_need_above(rc_checking *checking, rc_checked_field field, double limit)
{
    double number;
    if (take_number(checking->at[field], &number))
        return number > limit;
    rc_checking_crash_at(checking, RC_RULE_python_type_error, field);
    return false;
}

bool rc_checking_need_numeric(rc_checking *checking, rc_checked_field field)
{
    double number;
    if (take_number(checking->at[field], &number))
        return true;
    rc_checking_crash_at(checking, RC_RULE_python_type_error, field);
    return false;
}

bool rc_checking_is_false(const rc_checking *checking, rc_checked_field field)
{
    return checking->at[field]->kind == RC_DOC_BOOL && !checking->at[field]->i;
}

bool rc_checking_need_countable(rc_checking *checking, rc_checked_field field)
{
    rc_doc_kind kind = checking->at[field]->kind;
    if (kind != RC_DOC_NULL && kind != RC_DOC_MAP)
        return true;
    rc_checking_crash_at(checking, RC_RULE_python_type_error, field);
    return false;
}

bool rc_checking_need_sized(rc_checking *checking, rc_checked_field field)
{
    rc_doc_kind kind = checking->at[field]->kind;
    if (kind == RC_DOC_STRING || kind == RC_DOC_LIST || kind == RC_DOC_MAP)
        return true;
    rc_checking_crash_at(checking, RC_RULE_python_type_error, field);
    return false;
}

bool rc_checking_need_set(rc_checking *checking, rc_checked_field field)
{
    const rc_doc *value = checking->at[field];
    if (!rc_checking_need_sized(checking, field))
        return false;
    for (const rc_doc *item = value->child; item && value->kind == RC_DOC_LIST;
         item = item->next)
        if (item->kind == RC_DOC_LIST || item->kind == RC_DOC_MAP) {
            rc_checking_crash_at(checking, RC_RULE_python_type_error, field);
            return false;
        }
    return true;
}

/* A text is the set of its letters, none of which is a name. */
bool rc_checking_is_in_set(const rc_checking *checking, rc_checked_field field,
                           const char *item)
{
    const rc_doc *value = checking->at[field];
    for (const rc_doc *child = value->child; child && value->kind == RC_DOC_LIST;
         child = child->next)
        if (is_text(child, item))
            return true;
    return false;
}

bool rc_checking_need_uneven(rc_checking *checking, rc_checked_field a, rc_checked_field b,
                             rc_rule blame)
{
    const rc_doc *left = checking->at[a], *right = checking->at[b];
    /* `%` behind a text is formatting, which takes a list or a map without complaint */
    if (left->kind == RC_DOC_STRING &&
        (right->kind == RC_DOC_LIST || right->kind == RC_DOC_MAP))
        return true;
    return rc_checking_need_numeric(checking, a) && rc_checking_need_numeric(checking, b) &&
           rc_checking_need_rest(checking, rc_checking_need_number(checking, a),
                                 rc_checking_need_number(checking, b), blame);
}

void rc_checking_need_quotient(rc_checking *checking, rc_checked_field a, rc_checked_field b,
                               rc_rule blame)
{
    if (rc_checking_need_numeric(checking, a) && rc_checking_need_numeric(checking, b) &&
        rc_checking_is_number(checking, b, 0))
        rc_checking_crash(checking, blame, NULL);
}

bool rc_checking_need_rest(rc_checking *checking, double a, double b, rc_rule blame)
{
    if (is_equal(b, 0.0)) {
        rc_checking_crash(checking, blame, NULL);
        return false;
    }
    return !is_equal(fmod(a, b), 0.0);
}

bool rc_checking_is_selective(const rc_checking *checking)
{
    return IS(recompute_granularity, "selective");
}

bool rc_checking_need_label(rc_checking *checking, rc_label label)
{
    if (!SINCE(0_12)) /* selective meant one thing */
        return rc_checking_is_selective(checking) && label == RC_LABEL_core_attn;
    return rc_checking_is_selective(checking) &&
           IN(recompute_modules, rc_label_find_facts(label)->name);
}

bool rc_checking_knows_label(const rc_checking *checking, const char *name)
{
    rc_label label;
    return rc_label_find(name, &label) &&
           checking->release >= rc_label_find_facts(label)->since;
}

bool rc_checking_is_full(const rc_checking *checking)
{
    return IS(recompute_granularity, "full");
}

bool rc_checking_has_graphs(const rc_checking *checking)
{
    return !IS(cuda_graph_impl, "none") || ON(enable_cuda_graph) || ON(external_cuda_graph);
}

bool rc_checking_need_expandable_segments(rc_checking *checking)
{
    const char *const mark = "expandable_segments:True";
    return (!IS_NULL(pytorch_cuda_alloc_conf) && IN(pytorch_cuda_alloc_conf, mark)) ||
           (!IS_NULL(pytorch_alloc_conf) && IN(pytorch_alloc_conf, mark));
}

/* --- answering */

static void add_hit(rc_checking *checking, rc_hit hit)
{
    if (checking->code != RC_OK)
        return;
    checking->code = RC_GROW(checking->mem, &checking->hits, checking->n_hits,
                             &checking->n_room, checking->n_hits + 1, checking->err);
    if (checking->code != RC_OK)
        return;
    checking->hits[checking->n_hits++] = hit;
    if (!checking->has_stopped)
        checking->n_until_stop = checking->n_hits;
}

static bool is_in_release(const rc_checking *checking, rc_rule rule)
{
    const rc_rule_facts *facts = rc_rule_at(rule);
    return checking->release >= facts->first && checking->release <= facts->last;
}

/* Two checks of one rule (first and last stage, say) are one violation. */
static bool has_hit(const rc_checking *checking, rc_rule rule, const char *item)
{
    for (size_t i = 0; i < checking->n_hits; i++)
        if (checking->hits[i].rule == rule &&
            (checking->hits[i].item == item ||
             (item && checking->hits[i].item && strcmp(checking->hits[i].item, item) == 0)))
            return true;
    return false;
}

void rc_checking_raise(rc_checking *checking, rc_rule rule, const char *item)
{
    if (!is_in_release(checking, rule) || has_hit(checking, rule, item) ||
        checking->is_told[rule])
        return;
    add_hit(checking, (rc_hit){.rule = rule, .item = item});
    checking->has_stopped = true;
}

void rc_checking_crash(rc_checking *checking, rc_rule rule, const char *exception)
{
    if (has_hit(checking, rule, NULL))
        return;
    add_hit(checking, (rc_hit){.rule = rule, .exception = exception});
    checking->has_stopped = true;
}

void rc_checking_crash_at(rc_checking *checking, rc_rule rule, rc_checked_field field)
{
    rc_checking_raise(checking, rule, rc_checked_find(field)->name);
}

void rc_checking_warn(rc_checking *checking, rc_rule rule)
{
    rc_checking_warn_item(checking, rule, NULL);
}

void rc_checking_warn_item(rc_checking *checking, rc_rule rule, const char *item)
{
    if (is_in_release(checking, rule) && !checking->is_told[rule])
        add_hit(checking, (rc_hit){.rule = rule, .item = item});
}

void rc_checking_warn_here(rc_checking *checking, rc_rule rule, const char *item,
                           const char *fmt, ...)
{
    size_t n_before = checking->n_hits;
    char text[200];
    rc_checking_warn_item(checking, rule, item);
    if (checking->n_hits == n_before)
        return;
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (n > 0 && (size_t)n < sizeof text)
        checking->code = rc_arena_copy(checking->mem, text, (size_t)n,
                                       &checking->hits[n_before].here, checking->err);
}

void rc_checking_warn_key(rc_checking *checking, rc_rule rule, const rc_unknown_key *key)
{
    add_hit(checking, (rc_hit){.rule = rule, .item = key->path, .key = key});
}

static rc_doc *new_value(rc_checking *checking, rc_doc_kind kind)
{
    rc_doc *value;
    rc_code code = rc_doc_new(checking->mem, kind, RC_NOWHERE, &value, checking->err);
    if (code == RC_OK)
        return value;
    checking->code = code;
    return NULL;
}

/* The class knows the new value alone; the position stays that of the user's. */
static void give(rc_checking *checking, rc_checked_field field, rc_doc *value)
{
    value->where = checking->given[field]->where;
    checking->at[field] = checking->given[field] = value;
}

static void give_number(rc_checking *checking, rc_checked_field field, rc_doc_kind kind,
                        int64_t number)
{
    rc_doc *value = new_value(checking, kind);
    if (!value)
        return;
    value->i = number;
    value->f = (double)number;
    give(checking, field, value);
}

void rc_checking_give_text(rc_checking *checking, rc_checked_field field, const char *text)
{
    rc_doc *value = new_value(checking, RC_DOC_STRING);
    if (!value)
        return;
    value->text = text;
    value->n_bytes = strlen(text);
    give(checking, field, value);
}

void rc_checking_give_bool(rc_checking *checking, rc_checked_field field, bool value)
{
    give_number(checking, field, RC_DOC_BOOL, value);
}

void rc_checking_give_int(rc_checking *checking, rc_checked_field field, int64_t value)
{
    give_number(checking, field, RC_DOC_INT, value);
}

void rc_checking_give_null(rc_checking *checking, rc_checked_field field)
{
    give_number(checking, field, RC_DOC_NULL, 0);
}

void rc_checking_set(rc_checking *checking, rc_checked_field field, const rc_doc *value,
                     rc_rule change)
{
    if (!is_in_release(checking, change))
        return;
    checking->at[field] = value;
    rc_checking_warn(checking, change);
}

static void set_number(rc_checking *checking, rc_checked_field field, rc_doc_kind kind,
                       int64_t number, rc_rule change)
{
    const rc_doc *given = checking->given[field];
    if (!is_in_release(checking, change))
        return;
    give_number(checking, field, kind, number);
    checking->given[field] = given;
    rc_checking_warn(checking, change);
}

void rc_checking_set_text(rc_checking *checking, rc_checked_field field, const char *text,
                          rc_rule change)
{
    const rc_doc *given = checking->given[field];
    if (!is_in_release(checking, change))
        return;
    rc_checking_give_text(checking, field, text);
    checking->given[field] = given;
    rc_checking_warn(checking, change);
}

void rc_checking_set_bool(rc_checking *checking, rc_checked_field field, bool value,
                          rc_rule change)
{
    set_number(checking, field, RC_DOC_BOOL, value, change);
}

void rc_checking_set_int(rc_checking *checking, rc_checked_field field, int64_t value,
                         rc_rule change)
{
    set_number(checking, field, RC_DOC_INT, value, change);
}

void rc_checking_set_real(rc_checking *checking, rc_checked_field field, double value,
                          rc_rule change)
{
    rc_doc *real = new_value(checking, RC_DOC_FLOAT);
    if (!real)
        return;
    real->f = value;
    real->where = checking->given[field]->where;
    rc_checking_set(checking, field, real, change);
}

void rc_checking_set_null(rc_checking *checking, rc_checked_field field, rc_rule change)
{
    set_number(checking, field, RC_DOC_NULL, 0, change);
}

rc_doc *rc_checking_new_list(rc_checking *checking)
{
    return new_value(checking, RC_DOC_LIST);
}

void rc_checking_list_add(rc_checking *checking, rc_doc *list, const char *text)
{
    rc_doc *item = list ? new_value(checking, RC_DOC_STRING) : NULL;
    if (!item)
        return;
    item->text = text;
    item->n_bytes = strlen(text);
    rc_doc_add(list, NULL, RC_NOWHERE, item);
}

void rc_checking_list_add_all(rc_checking *checking, rc_doc *list, const rc_doc *from)
{
    for (const rc_doc *item = from->child; item; item = item->next) {
        rc_doc *copy = list ? new_value(checking, item->kind) : NULL;
        if (!copy)
            return;
        *copy = *item;
        copy->key = NULL;
        copy->next = NULL;
        rc_doc_add(list, NULL, RC_NOWHERE, copy);
    }
}

/* --- the start */

/* Written as in JSON: a list is empty. */
static rc_code make_default(rc_arena *mem, const char *text, const rc_doc **out, rc_error *err)
{
    rc_doc *value;
    bool is_list = strcmp(text, "[]") == 0;
    RC_TRY(rc_doc_new(mem, is_list ? RC_DOC_LIST : RC_DOC_STRING, RC_NOWHERE, &value, err));
    if (!is_list) {
        value->text = text;
        value->n_bytes = strlen(text);
        rc_doc_resolve_scalar(value);
    }
    *out = value;
    return RC_OK;
}

rc_code rc_checking_make(rc_arena *mem, bool is_mla, rc_checking **out, rc_error *err)
{
    RC_TRY(RC_NEW(mem, out, 1, err));
    rc_checking *checking = *out;
    checking->mem = mem;
    checking->is_mla = is_mla;
    checking->release = RC_RELEASE_main;
    for (int i = 0; i < RC_CHECKED_COUNT; i++) {
        bool is_switched = is_mla && i == RC_CHECKED_multi_latent_attention;
        RC_TRY(make_default(mem, is_switched ? "true" : rc_checked_default((rc_checked_field)i),
                            &checking->at[i], err));
        checking->given[i] = checking->written[i] = checking->at[i];
    }
    return RC_OK;
}
