/* doc.h — rc_doc: a tree of scalars, lists and maps with a source position for every node.
 *
 * The only thing readers (src/read/) produce. Everything in it is plain data owned by the arena
 * it was made in. Maps keep the order of the file; a key appears once (readers refuse or resolve
 * duplicates). Bytes of a string may hold NULs: use `n_bytes`.
 */
#ifndef RECOMPUTE_DOC_H
#define RECOMPUTE_DOC_H

#include <recompute/arena.h>
#include <recompute/error.h>

#include <stdio.h>

RC_EXTERN_C_BEGIN

typedef enum rc_doc_kind {
    RC_DOC_NULL,
    RC_DOC_BOOL,
    RC_DOC_INT,
    RC_DOC_FLOAT,
    RC_DOC_STRING,
    RC_DOC_LIST,
    RC_DOC_MAP
} rc_doc_kind;

typedef struct rc_doc rc_doc;
struct rc_doc {
    rc_doc_kind kind;
    rc_where where; /* of the value */
    const char
        *text;      /* STRING: its bytes; other scalars: as written in the source; else NULL */
    size_t n_bytes; /* of text */
    bool
        is_quoted; /* the source quoted this scalar, so it is a string whatever it looks like */
    int64_t i;     /* INT; BOOL 0 or 1 */
    double f;      /* FLOAT; INT also, rounded */

    const char *tag; /* explicit tag or `_target_`-like type of the source, else NULL */

    /* LIST and MAP: the children in order */
    rc_doc *child, *last, *next;
    size_t n_children;
    const char *key;    /* of this node in its MAP, else NULL */
    rc_where key_where; /* of that key */
};

/* New node; the caller sets the value. errors RC_E_MEMORY */
RC_MUST_CHECK
RC_API rc_code rc_doc_new(rc_arena *mem, rc_doc_kind kind, rc_where where, rc_doc **out,
                          rc_error *err);
/* Hangs `node` under `parent`; `key` NULL for lists. */
RC_API void rc_doc_add(rc_doc *parent, const char *key, rc_where key_where, rc_doc *node);

/* Scalars in one call, hung under `parent` (MAP with key, or LIST with key NULL). */
RC_MUST_CHECK
RC_API rc_code rc_doc_add_string(rc_arena *mem, rc_doc *parent, const char *key, rc_where where,
                                 const char *text, size_t n_bytes, rc_doc **out, rc_error *err);
RC_MUST_CHECK
RC_API rc_code rc_doc_add_int(rc_arena *mem, rc_doc *parent, const char *key, rc_where where,
                              int64_t value, rc_doc **out, rc_error *err);

/* The child with that key, or NULL; NULL also when `map` is NULL or no map. */
RC_API const rc_doc *rc_doc_find(const rc_doc *map, const char *key);
/* The node at "a.b.c", or NULL. */
RC_API const rc_doc *rc_doc_find_path(const rc_doc *map, const char *path);

/* A plain scalar resolved as PyYAML (YAML 1.1) and OmegaConf do: null ~, true yes on, ints 12 1_000
 * 0x1f 017 (octal) 0b11, floats incl. .inf .nan and 1e-5, else string; times such as 12:30 stay
 * strings. Takes text, n_bytes and is_quoted; fills kind, i and f. */
RC_API void rc_doc_resolve_scalar(rc_doc *node);

/* One stable text form, for --dump and tests. */
RC_API void rc_doc_print(const rc_doc *doc, FILE *to);
/* One line of JSON; a number that is not finite is null. */
RC_API void rc_doc_write_json(const rc_doc *value, FILE *to);

RC_EXTERN_C_END

#endif
