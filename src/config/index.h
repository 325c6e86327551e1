/* index.h — names to rows: the hash tables that make reading a config linear in its keys. */
#ifndef RC_CONFIG_INDEX_H
#define RC_CONFIG_INDEX_H

#include <recompute/arena.h>
#include <recompute/config.h>

/* A set of strings with a number each. Strings are borrowed. */
typedef struct rc_names {
    struct {
        const char *name;
        int value;
    } * slots;
    /* a power of two */
    size_t n_room;
} rc_names;

RC_MUST_CHECK
rc_code rc_names_make(rc_names *names, size_t n_most, rc_arena *mem, rc_error *err);
/* The first value set for a name stays. */
void rc_names_add(rc_names *names, const char *name, int value);
/* -1 when it is not there */
int rc_names_find(const rc_names *names, const char *name);

#endif
