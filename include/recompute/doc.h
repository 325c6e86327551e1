/* doc.h — rc_doc: a tree of scalars, lists and maps with a source position for every node.
 *
 * The only thing readers (src/read/, src/args/) produce. Everything in it is plain data owned by the arena
 * it was made in. Maps keep the order of the file; a key appears once (readers refuse or resolve
 * duplicates). Bytes of a string may hold NULs: use `n_bytes`.
 */
#ifndef RECOMPUTE_DOC_H
#define RECOMPUTE_DOC_H

#include <recompute/arena.h>
#include <recompute/error.h>

#include <stdio.h>

RC_EXTERN_C_BEGIN

/* What a document may hold; a reader refuses more, with its position. */
enum {
    RC_READ_MAX_BYTES = 64 * 1024 * 1024,
    /* values of one document, aliases expanded */
    RC_READ_MAX_NODES = 500 * 1000,
    /* lists and maps inside each other */
    RC_READ_MAX_DEPTH = 48
};

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
    /* of the value */
    rc_where where;
    /* STRING: its bytes; other scalars: as written in the source; else NULL */
    const char *text;
    /* of text */
    size_t n_bytes;
    /* the source quoted this scalar, so it is a string whatever it looks like */
    bool is_quoted;
    /* INT; BOOL 0 or 1 */
    int64_t i;
    /* FLOAT; INT also, rounded */
    double f;

    /* explicit tag or `_target_`-like type of the source, else NULL */
    const char *tag;

    /* LIST and MAP: the children in order */
    rc_doc *child, *last, *next;
    size_t n_children;
    /* of this node in its MAP, else NULL */
    const char *key;
    /* of that key */
    rc_where key_where;
};

/* A new node that hangs nowhere.
 *
 * takes   where  of the value; its strings are borrowed as long as the node lives
 * gives   *out   no value yet: the caller sets it
 * errors  RC_E_MEMORY */
RC_MUST_CHECK
RC_API rc_code rc_doc_new(rc_arena *mem, rc_doc_kind kind, rc_where where, rc_doc **out,
                          rc_error *err);

/* Hangs `node` under `parent`, a LIST or MAP, as its last child. `key` is borrowed as long as the node
 * lives, and NULL for lists; `node` hangs nowhere yet. */
RC_API void rc_doc_add(rc_doc *parent, const char *key, rc_where key_where, rc_doc *node);

/* A scalar in one call, hung under `parent`.
 *
 * takes   parent  MAP with a key, or LIST with key NULL
 *         where   of the value and of the key
 *         text    n_bytes of it are copied, NULs among them
 * gives   *out    the new node
 * errors  RC_E_MEMORY */
RC_MUST_CHECK
RC_API rc_code rc_doc_add_string(rc_arena *mem, rc_doc *parent, const char *key, rc_where where,
                                 const char *text, size_t n_bytes, rc_doc **out, rc_error *err);
RC_MUST_CHECK
RC_API rc_code rc_doc_add_int(rc_arena *mem, rc_doc *parent, const char *key, rc_where where,
                              int64_t value, rc_doc **out, rc_error *err);

/* The child with that key, or NULL; NULL also when `map` is NULL or no map. */
RC_API const rc_doc *rc_doc_find(const rc_doc *map, const char *key);
/* The node at "a.b.c", or NULL; NULL also for a part of 256 bytes or more. */
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
