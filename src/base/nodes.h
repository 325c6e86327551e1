/* nodes.h — makes the nodes of an rc_doc, for readers. */
#ifndef RC_BASE_NODES_H
#define RC_BASE_NODES_H

#include <recompute/arena.h>
#include <recompute/doc.h>

/* Makes nodes: counts them against RC_READ_MAX_NODES and packs their strings, so that a large
 * file does not pay RC_ALIGN for each. */
typedef struct rc_nodes {
    rc_arena *mem;
    size_t n;
    char *room;
    size_t n_room;
} rc_nodes;

RC_MUST_CHECK
rc_code rc_nodes_text(rc_nodes *nodes, const char *bytes, size_t n, const char **out,
                      rc_error *err);
RC_MUST_CHECK
rc_code rc_nodes_add(rc_nodes *nodes, rc_doc_kind kind, rc_where where, rc_doc **out,
                     rc_error *err);
/* A STRING with its text. */
RC_MUST_CHECK
rc_code rc_nodes_add_string(rc_nodes *nodes, rc_where where, const char *bytes, size_t n,
                            rc_doc **out, rc_error *err);

/* Refuses two children of `map` with one key, naming both places. Sorts, so that no choice of
 * keys makes it slow. */
RC_MUST_CHECK
rc_code rc_doc_check_keys(const rc_doc *map, rc_arena *mem, rc_error *err);

/* A scalar of a command line: null, numbers, true and false; yes, no, on and off are words here,
 * unlike in YAML. */
void rc_doc_resolve_word(rc_doc *node);

/* Takes `node` out of the children of `map`. */
void rc_doc_remove(rc_doc *map, rc_doc *node);

#endif
