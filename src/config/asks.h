/* asks.h — rows about settings, and what a config asks for of them (config, graph and train). */
#ifndef RC_CONFIG_ASKS_H
#define RC_CONFIG_ASKS_H

#include <recompute/config.h>

/* How a row of fates.def and of graph_lacks.def begins; their comments say what stands in it. */
typedef struct rc_ask {
    const char *key;
    /* ends with NULL */
    const char *const *neutral;
    const char *words;
} rc_ask;

/* The neutral values of a row, at file scope. */
#define RC_ASK_IS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define RC_ASK_NEVER ((const char *const[]){NULL})

/* A table of rows that begin with an rc_ask. */
typedef struct rc_asks {
    const void *rows;
    size_t n, row_bytes;
} rc_asks;

/* One setting that an input gives a value. */
typedef struct rc_asked {
    /* "model.fp8", "--spec" */
    const char *key;
    rc_where where;
    const rc_doc *node;
    /* where it is no field of ours; else NULL */
    const rc_unknown_key *unknown;
} rc_asked;

/* The row of a field, of a key "section.name" of Bridge, of an argument "--some-name"; NULL: none. */
const rc_ask *rc_asks_of_field(const rc_asks *table, rc_field field);
const rc_ask *rc_asks_of_key(const rc_asks *table, const char *path);
const rc_ask *rc_asks_of_argument(const rc_asks *table, const char *argument);
/* The row of a key that is no field: an argument too where it has no section. */
const rc_ask *rc_asks_of_unknown(const rc_asks *table, const rc_unknown_key *key);

/* The neutral values in one cell, parted by spaces.
 * errors  RC_E_MEMORY */
RC_MUST_CHECK
rc_code rc_ask_show_neutral(const rc_ask *row, rc_arena *mem, const char **out, rc_error *err);

/* Does a value ask for what is done anyway? `node` NULL is null. */
bool rc_ask_is_neutral(const rc_config *cfg, const rc_ask *row, const rc_doc *node);
/* Does an input ask for what the row is about? Not where the value is neutral, one that only the job knows, or
 * none of the choices. */
bool rc_ask_is_asked(const rc_config *cfg, const rc_asked *asked, const rc_ask *row);
/* "model.fp8: unsupported by the engine; ..." with the row's words, at the setting.
 * errors  RC_E_UNSUPPORTED, always */
RC_MUST_CHECK
rc_code rc_ask_refuse(const rc_asked *asked, const rc_ask *row, const char *by, rc_error *err);

/* What is to be said of a setting; `row` is NULL where the table has none. */
typedef rc_code (*rc_ask_judge)(const rc_config *cfg, const rc_asked *asked, const rc_ask *row,
                                const void *user, rc_error *err);

/* Every field that an input set, in the order of the fields. A default is never asked about.
 * errors  the first that `say` gives */
RC_MUST_CHECK
rc_code rc_asks_walk_fields(const rc_asks *table, const rc_config *cfg, rc_ask_judge say,
                            const void *user, rc_error *err);
/* Every key that is no field, in the order of the input. A map of which the table has single keys is
 * judged key by key: a section of which no field of ours stands comes as one key.
 * errors  the first that `say` gives */
RC_MUST_CHECK
rc_code rc_asks_walk_unknown(const rc_asks *table, const rc_config *cfg, rc_ask_judge say,
                             const void *user, rc_error *err);

#endif
