/* label.h — the recompute labels: rows of labels.def. */
#ifndef RECOMPUTE_LABEL_H
#define RECOMPUTE_LABEL_H

#include <recompute/error.h>

RC_EXTERN_C_BEGIN

typedef enum rc_label {
#define RC_LABEL(name, mechanism, help) RC_LABEL_##name,
#include "defs/labels.def" /* installed beside this header */
#undef RC_LABEL
    RC_LABEL_COUNT
} rc_label;

typedef enum rc_mechanism {
    RC_MECHANISM_CHECKPOINT, /* inputs retained, the inside recomputed */
    RC_MECHANISM_DISCARD     /* outputs dropped after their last forward use */
} rc_mechanism;

typedef struct rc_label_facts {
    const char *name;
    rc_mechanism mechanism;
    const char *help;
} rc_label_facts;

/* A label's row; `label` is below RC_LABEL_COUNT. */
RC_API const rc_label_facts *rc_label_find_facts(rc_label label);
/* By name; false, and *label is left, when it is none. */
RC_API bool rc_label_find(const char *name, rc_label *label);
/* The label nearest to what was typed, or NULL where none is near. */
RC_API const char *rc_label_nearest(const char *typed);

RC_EXTERN_C_END

#endif
