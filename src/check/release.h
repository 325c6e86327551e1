/* release.h — releases of Megatron Core, and versions of Transformer Engine in PEP 440's order. */
#ifndef RC_CHECK_RELEASE_H
#define RC_CHECK_RELEASE_H

#include <recompute/error.h>

/* 0.9 is 9, 0.19 is 19, the main branch is RC_RELEASE_MAIN. */
typedef int rc_release;
enum { RC_RELEASE_FIRST = 9, RC_RELEASE_LAST = 19, RC_RELEASE_MAIN = 20 };

/* "0.16", "0.16.1", "core_v0.16.0", "core_r0.16.0", "v0.16", "main", "latest"; false when unknown. */
bool rc_release_find(const char *name, rc_release *out);
bool rc_release_is_at_least(rc_release release, const char *name);
const char *rc_release_name(rc_release release);
/* "0.12-0.15", "0.12-", "-0.14", "" (always) */
bool rc_release_is_in(rc_release release, const char *range);

/* A version by PEP 440 as a sortable key: epoch, six release parts, pre-release phase and number,
 * post, dev, has local. */
typedef struct rc_te {
    int64_t key[12];
} rc_te;

/* false when `text` is no version of PEP 440 */
bool rc_te_find(const char *text, rc_te *out);
/* `text` must be a version. */
bool rc_te_is_below(const rc_te *te, const char *text);

#endif
