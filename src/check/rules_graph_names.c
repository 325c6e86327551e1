/* rules_graph_names.c — CUDA graphs: old switches and names folded into today's, names looked up.
 *
 * What stays afterwards: cuda_graph_impl, cuda_graph_modules as a list, the inference scope.
 * Before release 0.18 the list was called cuda_graph_scope and its names meant what they said.
 */
#include "check/layers.h"

#include <string.h>

static void legacy_switches(rc_checking *checking)
{
    if (!ON(enable_cuda_graph) && !ON(external_cuda_graph))
        return;
    if (!IS(cuda_graph_impl, "none"))
        RAISE(legacy_graph_flags_exclude_graph_impl);
    if (ON(enable_cuda_graph) && ON(external_cuda_graph))
        RAISE(legacy_graph_flags_exclusive);
    if (!SINCE(0_15))
        return;
    if (ON(enable_cuda_graph)) {
        WARN(warn_enable_cuda_graph_deprecated);
        rc_checking_set_text(checking, RC_CHECKED_cuda_graph_impl, "local",
                             RC_RULE_set_legacy_graph_flags);
    }
    if (ON(external_cuda_graph)) {
        WARN(warn_external_cuda_graph_deprecated);
        rc_checking_set_text(checking, RC_CHECKED_cuda_graph_impl, "transformer_engine",
                             RC_RULE_set_legacy_graph_flags);
    }
}

static void scope_alias(rc_checking *checking)
{
    const rc_doc *modules = checking->at[RC_CHECKED_cuda_graph_modules];
    if (!SINCE(0_18) && checking->is_given[RC_CHECKED_cuda_graph_scope])
        checking->at[RC_CHECKED_cuda_graph_modules] = checking->at[RC_CHECKED_cuda_graph_scope];
    if (SINCE(0_18) && !IS_NULL(cuda_graph_scope)) {
        bool is_free = IS(cuda_graph_modules, "full") || modules->kind == RC_DOC_NULL ||
                       (modules->kind == RC_DOC_LIST && modules->n_children == 0);
        if (!is_free)
            RAISE(graph_scope_alias_excludes_graph_modules);
        WARN(warn_graph_scope_alias_deprecated);
        rc_checking_set(checking, RC_CHECKED_cuda_graph_modules,
                        checking->at[RC_CHECKED_cuda_graph_scope],
                        RC_RULE_set_graph_scope_alias);
    }
}

static bool is_module(const rc_checking *checking, const char *name)
{
    static const char *const names[] = {"attn",
                                        "mlp",
                                        "moe",
                                        "moe_router",
                                        "moe_preprocess",
                                        "mamba",
                                        "full_iteration",
                                        "full_iteration_inference"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0)
            return i < 7 || SINCE(0_17);
    return false;
}

/* "attn,mlp" as a list; pieces are not trimmed. */
static rc_doc *split(rc_checking *checking, const rc_doc *text)
{
    rc_doc *list = rc_checking_new_list(checking);
    for (const char *at = text->text;; at++) {
        const char *piece;
        size_t n = strcspn(at, ",");
        if (checking->code == RC_OK)
            checking->code = rc_arena_copy(checking->mem, at, n, &piece, checking->err);
        if (checking->code != RC_OK)
            return NULL;
        rc_checking_list_add(checking, list, piece);
        at += n;
        if (*at == '\0')
            return list;
    }
}

/* 0.16 and 0.17 looked names up only where all of them are texts. */
static bool are_texts(const rc_doc *names)
{
    for (const rc_doc *item = names->child; item; item = item->next)
        if (item->kind != RC_DOC_STRING)
            return false;
    return true;
}

/* What was given, as a list; NULL when memory is out. */
static rc_doc *list_names(rc_checking *checking)
{
    const rc_doc *modules = checking->at[RC_CHECKED_cuda_graph_modules];
    rc_doc *names = rc_checking_new_list(checking);
    if (modules->kind == RC_DOC_STRING && (modules->n_bytes || !SINCE(0_18)))
        names = split(checking, modules);
    else if (modules->kind == RC_DOC_LIST)
        rc_checking_list_add_all(checking, names, modules);
    else if (modules->kind != RC_DOC_NULL && modules->kind != RC_DOC_STRING)
        rc_checking_crash(checking, RC_RULE_graph_module_unknown, "AssertionError");
    return checking->code == RC_OK ? names : NULL;
}

/* The names that are known, or NULL when memory is out. */
static rc_doc *look_up(rc_checking *checking, bool *is_full)
{
    rc_doc *names = list_names(checking), *plain = rc_checking_new_list(checking);
    if (!names || !plain)
        return NULL;
    if (!SINCE(0_18) && !are_texts(names))
        rc_checking_crash(checking, RC_RULE_graph_module_unknown, "AssertionError");
    for (const rc_doc *item = names->child; item; item = item->next)
        if (item->kind == RC_DOC_STRING && strcmp(item->text, "full") == 0) {
            if (names->n_children != 1)
                RAISE(graph_modules_full_alone);
            *is_full = true;
            return plain;
        }
    for (const rc_doc *item = names->child; item; item = item->next)
        if (item->kind != RC_DOC_STRING)
            rc_checking_crash(checking, RC_RULE_graph_module_unknown, "AssertionError");
        else if (is_module(checking, item->text))
            rc_checking_list_add(checking, plain, item->text);
        else
            RAISE_ITEM(graph_module_unknown, item->text);
    return plain;
}

static size_t count(const rc_doc *list, const char *name)
{
    size_t n = 0;
    for (const rc_doc *item = list->child; item; item = item->next)
        n += strcmp(item->text, name) == 0;
    return n;
}

static void inference_scope_name(rc_checking *checking)
{
    bool is_name = checking->at[RC_CHECKED_inference_cuda_graph_scope]->kind == RC_DOC_STRING;
    if (!IS_NULL(inference_cuda_graph_scope) && !is_name && SINCE(0_18))
        rc_checking_crash(checking, RC_RULE_inference_graph_scope_unknown, "AssertionError");
    if (!IS_NULL(inference_cuda_graph_scope) && !IS(inference_cuda_graph_scope, "none") &&
        !IS(inference_cuda_graph_scope, "layer") && !IS(inference_cuda_graph_scope, "block"))
        RAISE(inference_graph_scope_unknown);
}

static void legacy_conflicts(rc_checking *checking, size_t n_training, size_t n_inference)
{
    bool has_scope = !IS_NULL(inference_cuda_graph_scope);
    /* an unknown implementation is no good either, and is noticed here first */
    bool is_layered = IS(cuda_graph_impl, "none") || IS(cuda_graph_impl, "local");
    bool is_trained = is_layered || IS(cuda_graph_impl, "full_iteration");
    if (n_training && n_inference)
        RAISE(graph_legacy_scope_conflict);
    inference_scope_name(checking);
    if (n_training && (!is_trained || (has_scope && !IS(inference_cuda_graph_scope, "none"))))
        RAISE(graph_legacy_scope_conflict);
    if (n_inference && (!is_layered || (has_scope && !IS(inference_cuda_graph_scope, "block"))))
        RAISE(graph_legacy_scope_conflict);
}

static void legacy_names(rc_checking *checking, const rc_doc *names)
{
    size_t n_training = count(names, "full_iteration");
    size_t n_inference = count(names, "full_iteration_inference");
    if (n_training + n_inference == 0 || !SINCE(0_18))
        return;
    legacy_conflicts(checking, n_training, n_inference);
    bool is_dropped = n_inference && !IS(cuda_graph_impl, "local");
    for (size_t i = 0; i < n_training + n_inference; i++)
        if (is_dropped)
            WARN(warn_graph_legacy_scope_no_effect);
        else
            WARN(warn_graph_legacy_scope_migrated);
    if (n_training)
        rc_checking_set_text(checking, RC_CHECKED_cuda_graph_impl, "full_iteration",
                             RC_RULE_set_legacy_graph_scope);
    else if (!is_dropped)
        rc_checking_set_text(checking, RC_CHECKED_inference_cuda_graph_scope, "block",
                             RC_RULE_set_legacy_graph_scope);
}

static bool is_same_list(const rc_doc *a, const rc_doc *b)
{
    if (a->kind != RC_DOC_LIST || a->n_children != b->n_children)
        return false;
    const rc_doc *y = b->child;
    for (const rc_doc *x = a->child; x; x = x->next, y = y->next)
        if (x->kind != RC_DOC_STRING || strcmp(x->text, y->text) != 0)
            return false;
    return true;
}

static void set_modules(rc_checking *checking, const rc_doc *names)
{
    rc_doc *kept = rc_checking_new_list(checking);
    for (const rc_doc *item = names->child; item; item = item->next)
        if (strncmp(item->text, "full_iteration", 14) != 0 || !SINCE(0_18))
            rc_checking_list_add(checking, kept, item->text);
    if (!kept || checking->code != RC_OK)
        return;
    if (is_same_list(checking->at[RC_CHECKED_cuda_graph_modules], kept))
        checking->at[RC_CHECKED_cuda_graph_modules] = kept;
    else
        rc_checking_set(checking, RC_CHECKED_cuda_graph_modules, kept,
                        RC_RULE_set_graph_modules_normal);
}

static void inference_scope(rc_checking *checking)
{
    bool is_local = IS(cuda_graph_impl, "local");
    if (!SINCE(0_18))
        return;
    inference_scope_name(checking);
    if (IS_NULL(inference_cuda_graph_scope)) {
        rc_checking_set_text(checking, RC_CHECKED_inference_cuda_graph_scope,
                             is_local ? "layer" : "none",
                             RC_RULE_set_inference_graph_scope_default);
        return;
    }
    if (is_local == IS(inference_cuda_graph_scope, "none"))
        RAISE(inference_graph_scope_not_allowed);
}

static void graph_modules(rc_checking *checking)
{
    bool is_full = false;
    const rc_doc *names = look_up(checking, &is_full);
    if (!names)
        return;
    if (is_full)
        WARN(warn_graph_modules_full_deprecated);
    legacy_names(checking, names);
    set_modules(checking, names);
}

void rc_core_graph_names(rc_checking *checking)
{
    legacy_switches(checking);
    scope_alias(checking);
    if (SINCE(0_16)) /* before, the scope was one word, and read as it stands */
        graph_modules(checking);
    if (!IS(cuda_graph_impl, "none") && !IS(cuda_graph_impl, "local") &&
        !IS(cuda_graph_impl, "transformer_engine") &&
        !(SINCE(0_18) && IS(cuda_graph_impl, "full_iteration")))
        RAISE(graph_impl_unknown);
    inference_scope(checking);
}
