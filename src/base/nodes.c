/* nodes.c — a counted supply of rc_doc nodes, and what readers do to maps of them. */
#include "base/nodes.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

rc_code rc_nodes_text(rc_nodes *nodes, const char *bytes, size_t n, const char **out,
                      rc_error *err)
{
    enum { CHUNK = 8192, LARGE = 1024 };
    if (n >= LARGE)
        return rc_arena_copy(nodes->mem, bytes, n, out, err);
    if (n + 1 > nodes->n_room) {
        RC_TRY(RC_NEW(nodes->mem, &nodes->room, CHUNK, err));
        nodes->n_room = CHUNK;
    }
    if (n)
        memcpy(nodes->room, bytes, n);
    nodes->room[n] = '\0';
    *out = nodes->room;
    nodes->room += n + 1;
    nodes->n_room -= n + 1;
    return RC_OK;
}

rc_code rc_nodes_add(rc_nodes *nodes, rc_doc_kind kind, rc_where where, rc_doc **out,
                     rc_error *err)
{
    if (++nodes->n > RC_READ_MAX_NODES)
        return RC_FAIL(err, RC_E_RANGE, where,
                       "more than %d values in one input (aliases count where they are used)",
                       RC_READ_MAX_NODES);
    return rc_doc_new(nodes->mem, kind, where, out, err);
}

rc_code rc_nodes_add_string(rc_nodes *nodes, rc_where where, const char *bytes, size_t n,
                            rc_doc **out, rc_error *err)
{
    RC_TRY(rc_nodes_add(nodes, RC_DOC_STRING, where, out, err));
    (*out)->n_bytes = n;
    return rc_nodes_text(nodes, bytes, n, &(*out)->text, err);
}

/* Equal keys in the order of the source. */
static int compare_keys(const void *a, const void *b)
{
    const rc_doc *left = *(const rc_doc *const *)a, *right = *(const rc_doc *const *)b;
    int order = strcmp(left->key, right->key);
    if (order)
        return order;
    const rc_where *l = &left->key_where, *r = &right->key_where;
    return l->line != r->line ? (l->line > r->line) - (l->line < r->line)
                              : (l->col > r->col) - (l->col < r->col);
}

static rc_code duplicate(const rc_doc *first, const rc_doc *second, rc_error *err)
{
    char safe[96];
    rc_text_printable(second->key, strlen(second->key), safe, sizeof safe);
    return RC_FAIL(err, RC_E_INPUT, second->key_where,
                   "key %s occurs twice, first at %d:%d; keep one of them", safe,
                   first->key_where.line, first->key_where.col);
}

static rc_code check_few_keys(const rc_doc *map, rc_error *err)
{
    for (const rc_doc *second = map->child; second; second = second->next)
        for (const rc_doc *first = map->child; first != second; first = first->next)
            if (strcmp(first->key, second->key) == 0)
                return duplicate(first, second, err);
    return RC_OK;
}

rc_code rc_doc_check_keys(const rc_doc *map, rc_arena *mem, rc_error *err)
{
    enum { FEW = 8 };
    if (map->n_children <= FEW)
        return check_few_keys(map, err);
    rc_mark mark = rc_arena_mark(mem);
    const rc_doc **sorted;
    RC_TRY(RC_NEW(mem, &sorted, map->n_children, err));
    size_t n = 0;
    for (const rc_doc *node = map->child; node; node = node->next)
        sorted[n++] = node;
    qsort(sorted, n, sizeof(const rc_doc *), compare_keys);
    rc_code code = RC_OK;
    for (size_t i = 1; i < n && code == RC_OK; i++)
        if (strcmp(sorted[i - 1]->key, sorted[i]->key) == 0)
            code = duplicate(sorted[i - 1], sorted[i], err);
    rc_arena_rewind(mem, mark);
    return code;
}

void rc_doc_resolve_word(rc_doc *node)
{
    rc_doc_resolve_scalar(node);
    bool is_yaml_only =
        strcasecmp(node->text, "true") != 0 && strcasecmp(node->text, "false") != 0;
    if (node->kind == RC_DOC_BOOL && is_yaml_only)
        node->kind = RC_DOC_STRING;
    if (node->kind == RC_DOC_NULL && strcasecmp(node->text, "null") != 0)
        node->kind = RC_DOC_STRING;
}

void rc_doc_remove(rc_doc *map, rc_doc *node)
{
    rc_doc *before = NULL;
    for (rc_doc *at = map->child; at && at != node; at = at->next)
        before = at;
    if (before)
        before->next = node->next;
    else
        map->child = node->next;
    if (map->last == node)
        map->last = before;
    node->next = NULL;
    map->n_children--;
}
