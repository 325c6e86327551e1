/* fix.c — a rule's changes, worked out on the values at hand. Changes of one field add up: two removals give
 * one list.
 *
 * above  checking.c
 */
#include "check/fix.h"

#include <recompute/label.h>

#include <stdio.h>
#include <string.h>

const char *rc_fix_words(const rc_checking *checking, rc_rule rule)
{
    return rc_rule_words(rule, ON(num_moe_experts));
}

static rc_code add_item(rc_arena *mem, rc_doc *list, const char *text, size_t n, rc_where where,
                        rc_error *err)
{
    rc_doc *item;
    return rc_doc_add_string(mem, list, NULL, where, text, n, &item, err);
}

static rc_code make_value(rc_arena *mem, const char *text, rc_doc **out, rc_error *err)
{
    size_t n_text = strlen(text);
    bool is_list = text[0] == '[';
    RC_TRY(rc_doc_new(mem, is_list ? RC_DOC_LIST : RC_DOC_STRING, RC_NOWHERE, out, err));
    if (is_list) {
        const char *at = text + 1, *end = text + n_text - 1;
        while (at < end) {
            size_t n = strcspn(at, ",]");
            RC_TRY(add_item(mem, *out, at, n, RC_NOWHERE, err));
            at += n + 1;
        }
        return RC_OK;
    }
    (*out)->text = text;
    (*out)->n_bytes = n_text;
    rc_doc_resolve_scalar(*out);
    return RC_OK;
}

static bool is_word(const rc_doc *item, const char *text, size_t n)
{
    return item->text && item->n_bytes == n && memcmp(item->text, text, n) == 0;
}

static bool has_item(const rc_doc *list, const char *text, size_t n)
{
    for (const rc_doc *item = list->child; item; item = item->next)
        if (is_word(item, text, n))
            return true;
    return false;
}

/* The labels that were probably meant by a word that is none: "core_atn", or "core_attn,mlp" in one. */
static rc_code add_meant(const rc_checking *checking, const char *typed, rc_doc *list,
                         rc_error *err)
{
    static const char between[] = ", []'\"";
    char part[64];
    for (const char *at = typed + strspn(typed, between); *at; at += strspn(at, between)) {
        size_t n = strcspn(at, between);
        snprintf(part, sizeof part, "%.*s", (int)(n < sizeof part ? n : 0), at);
        at += n;
        rc_label label;
        const char *meant = rc_label_find(part, &label) ? part : rc_label_nearest(part);
        const char *name;
        if (!meant || !rc_checking_knows_label(checking, meant) ||
            has_item(list, meant, strlen(meant)))
            continue;
        RC_TRY(rc_arena_copy(checking->mem, meant, strlen(meant), &name, err));
        RC_TRY(add_item(checking->mem, list, name, strlen(name), RC_NOWHERE, err));
    }
    return RC_OK;
}

/* The items of a list, and in place of the one of that name (may be NULL) what was meant by it. */
static rc_code copy_items(const rc_checking *checking, const rc_doc *from, const char *without,
                          bool has_meaning, rc_doc *list, rc_error *err)
{
    size_t n = without ? strlen(without) : 0;
    for (const rc_doc *item = from; item; item = item->next) {
        bool is_it = without && is_word(item, without, n);
        if (is_it && has_meaning)
            RC_TRY(add_meant(checking, without, list, err));
        else if (!is_it && item->kind == RC_DOC_STRING)
            RC_TRY(add_item(checking->mem, list, item->text, item->n_bytes, item->where, err));
    }
    return RC_OK;
}

/* The list at hand without the item, or with it. */
static rc_code change_list(const rc_checking *checking, const rc_change *change,
                           const rc_hit *hit, const rc_doc *now, rc_doc **out, rc_error *err)
{
    bool is_removal = change->op == '-';
    bool has_meaning = hit->rule == RC_RULE_recompute_module_unknown;
    const char *item = hit->item ? hit->item : "", *name = change->value ? change->value : item;
    RC_TRY(rc_doc_new(checking->mem, RC_DOC_LIST, RC_NOWHERE, out, err));
    if (now->kind == RC_DOC_LIST)
        RC_TRY(
            copy_items(checking, now->child, is_removal ? name : NULL, has_meaning, *out, err));
    else if (is_removal && has_meaning)
        RC_TRY(add_meant(checking, name, *out, err));
    if (change->op == '+' && !has_item(*out, name, strlen(name)))
        RC_TRY(add_item(checking->mem, *out, name, strlen(name), RC_NOWHERE, err));
    return RC_OK;
}

static bool is_same(const rc_doc *a, const rc_doc *b)
{
    if (a->kind != b->kind || a->kind == RC_DOC_MAP)
        return false;
    if (a->kind == RC_DOC_STRING)
        return strcmp(a->text, b->text) == 0;
    if (a->kind == RC_DOC_FLOAT)
        return !(a->f < b->f) && !(a->f > b->f);
    if (a->kind != RC_DOC_LIST)
        return a->i == b->i;
    for (const rc_doc *item = a->child; item; item = item->next)
        if (!item->text || !has_item(b, item->text, item->n_bytes))
            return false;
    return a->n_children == b->n_children;
}

static rc_doc *find_child(rc_doc *map, const char *key)
{
    for (rc_doc *node = map->child; node; node = node->next)
        if (strcmp(node->key, key) == 0)
            return node;
    return NULL;
}

/* A later change of the same field starts from what the earlier made of it. */
static rc_code add_change(const rc_checking *checking, const rc_change *change,
                          const rc_hit *hit, rc_doc *map, rc_error *err)
{
    const char *key = rc_checked_find(change->field)->name;
    rc_doc *before = find_child(map, key), *value;
    const rc_doc *now = before ? before : checking->given[change->field];
    /* an unset list has come to mean [core_attn], but only where labels are read */
    if (!before && now->kind == RC_DOC_NULL && change->op != '=' &&
        rc_checking_is_selective(checking))
        now = checking->at[change->field];
    if (change->op == '=')
        RC_TRY(make_value(checking->mem, change->value, &value, err));
    else
        RC_TRY(change_list(checking, change, hit, now, &value, err));
    if (!before && is_same(value, checking->given[change->field]))
        return RC_OK;
    if (!before) {
        rc_doc_add(map, key, RC_NOWHERE, value);
        return RC_OK;
    }
    rc_doc *next = before->next;
    *before = *value;
    before->key = key;
    before->next = next;
    return RC_OK;
}

/* A list with its last label gone means no recompute at all, which the granularity says. */
static rc_code settle_labels(const rc_checking *checking, rc_doc *map, rc_error *err)
{
    rc_doc *list = find_child(map, "recompute_modules"), *none;
    if (!list || list->kind != RC_DOC_LIST || list->child ||
        find_child(map, "recompute_granularity"))
        return RC_OK;
    list->kind = RC_DOC_NULL;
    if (!checking->is_given[RC_CHECKED_recompute_modules]) {
        list->key = "recompute_granularity";
        return RC_OK;
    }
    RC_TRY(rc_doc_new(checking->mem, RC_DOC_NULL, RC_NOWHERE, &none, err));
    rc_doc_add(map, "recompute_granularity", RC_NOWHERE, none);
    return RC_OK;
}

/* Graphs' modules under their old name: until 0.17 the only one, later read where the new is empty. */
static rc_code settle_scope(const rc_checking *checking, rc_doc *map, rc_error *err)
{
    rc_doc *modules = find_child(map, "cuda_graph_modules"), *none;
    if (!modules || checking->given[RC_CHECKED_cuda_graph_scope]->kind == RC_DOC_NULL ||
        find_child(map, "cuda_graph_scope"))
        return RC_OK;
    if (!SINCE(0_18)) {
        modules->key = "cuda_graph_scope";
        return RC_OK;
    }
    RC_TRY(rc_doc_new(checking->mem, RC_DOC_NULL, RC_NOWHERE, &none, err));
    rc_doc_add(map, "cuda_graph_scope", RC_NOWHERE, none);
    return RC_OK;
}

rc_code rc_fix_make(const rc_checking *checking, const rc_hit *hit, const rc_doc **out,
                    rc_error *err)
{
    const rc_change *change = rc_rule_changes(hit->rule, ON(num_moe_experts));
    rc_doc *map;
    *out = NULL;
    RC_TRY(rc_doc_new(checking->mem, RC_DOC_MAP, RC_NOWHERE, &map, err));
    for (; change->field != RC_CHECKED_COUNT; change++)
        RC_TRY(add_change(checking, change, hit, map, err));
    RC_TRY(settle_labels(checking, map, err));
    RC_TRY(settle_scope(checking, map, err));
    if (map->child)
        *out = map;
    return RC_OK;
}
