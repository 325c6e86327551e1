/* label.h — the recompute labels: rows of labels.def. */
#ifndef RECOMPUTE_LABEL_H
#define RECOMPUTE_LABEL_H

#include <recompute/error.h>
#include <recompute/release.h>

RC_EXTERN_C_BEGIN

typedef enum rc_label {
#define RC_LABEL(name, mechanism, since, needs, help) RC_LABEL_##name,
#include "defs/labels.def" /* installed beside this header */
#undef RC_LABEL
    RC_LABEL_COUNT
} rc_label;

typedef enum rc_mechanism {
    /* inputs retained, the inside recomputed */
    RC_MECHANISM_CHECKPOINT,
    /* outputs dropped after their last forward use */
    RC_MECHANISM_DISCARD
} rc_mechanism;

/* What a model must have for a label to act: rows of label_needs.def. */
typedef enum rc_label_need {
#define RC_LABEL_NEED(name, words) RC_LABEL_NEED_##name,
#include "defs/label_needs.def" /* installed beside this header */
#undef RC_LABEL_NEED
    RC_LABEL_NEED_COUNT
} rc_label_need;

typedef struct rc_label_facts {
    const char *name;
    rc_mechanism mechanism;
    /* the first release of Megatron Core that knows it */
    rc_release since;
    rc_label_need needs;
    const char *help;
} rc_label_facts;

/* A label's row; `label` is below RC_LABEL_COUNT. */
RC_API const rc_label_facts *rc_label_find_facts(rc_label label);
/* By name; false, and *label is left, when it is none. */
RC_API bool rc_label_find(const char *name, rc_label *label);
/* The label nearest to what was typed, or NULL where none is near. */
RC_API const char *rc_label_nearest(const char *typed);
/* A need in words, "experts"; `need` is below RC_LABEL_NEED_COUNT. */
RC_API const char *rc_label_need_words(rc_label_need need);

RC_EXTERN_C_END

#endif
