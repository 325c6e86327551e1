/* checked.h — the settings that rules read: rows of checked_fields.def.
 *
 * above  nothing of this folder
 */
#ifndef RC_CHECK_CHECKED_H
#define RC_CHECK_CHECKED_H

#include <recompute/config.h>
#include <recompute/release.h>

typedef enum rc_checked_field {
#define RC_CHECKED(name, owner, since) RC_CHECKED_##name,
#define RC_CLASS_DEFAULT(name, dflt)
#include "defs/checked_fields.def"
#undef RC_CHECKED
#undef RC_CLASS_DEFAULT
    RC_CHECKED_COUNT
} rc_checked_field;

/* Whose member a setting is. */
typedef enum rc_owner {
    /* Megatron Core's config classes */
    RC_OWNER_CORE,
    /* MLATransformerConfig alone */
    RC_OWNER_MLA,
    /* no config class */
    RC_OWNER_OTHER
} rc_owner;

typedef struct rc_checked_facts {
    const char *name;
    /* the same setting in an rc_config */
    rc_field field;
    rc_owner owner;
    rc_release since;
} rc_checked_facts;

const rc_checked_facts *rc_checked_find(rc_checked_field field);
/* RC_CHECKED_COUNT when rules read no such field */
rc_checked_field rc_checked_find_name(const char *name);
/* The default of its config class, as in JSON. */
const char *rc_checked_default(rc_checked_field field);

#endif
