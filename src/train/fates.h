/* fates.h — what training does with each setting (src/train/ only; what commands ask is public). */
#ifndef RC_TRAIN_FATES_H
#define RC_TRAIN_FATES_H

#include "config/asks.h"

typedef enum rc_fate_kind {
    RC_FATE_USED,
    RC_FATE_HARMLESS,
    RC_FATE_REFUSED,
    RC_FATE_VOCABULARY
} rc_fate_kind;

/* A row of fates.def. */
typedef struct rc_fate {
    /* first: fates are looked up as asks */
    rc_ask ask;
    rc_fate_kind kind;
} rc_fate;

const rc_fate *rc_fate_list(size_t *n);
/* The row of a field, of a key "section.name" of Bridge, of an argument "--some-name"; NULL: none. */
const rc_fate *rc_fate_of_field(rc_field field);
const rc_fate *rc_fate_of_key(const char *path);
const rc_fate *rc_fate_of_argument(const char *argument);

/* rc_train_refuse_model, and what training adds.
 * errors  RC_E_UNSUPPORTED RC_E_INPUT */
RC_MUST_CHECK
rc_code rc_train_refuse_run(const rc_config *cfg, rc_error *err);

#endif
