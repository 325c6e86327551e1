/* te.h — versions of Transformer Engine in PEP 440's order.
 *
 * above  nothing of this folder
 */
#ifndef RC_CHECK_TE_H
#define RC_CHECK_TE_H

#include <stdbool.h>
#include <stdint.h>

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
