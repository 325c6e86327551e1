/* checked.c — the rows of checked_fields.def as data. */
#include "check/checked.h"

#include <string.h>

static const rc_checked_facts facts[RC_CHECKED_COUNT] = {
#define RC_CHECKED(name, owner, since)                                                         \
    {#name, RC_FIELD_##name, RC_OWNER_##owner, RC_RELEASE_##since},
#define RC_CLASS_DEFAULT(name, dflt)
#include "defs/checked_fields.def"
#undef RC_CHECKED
#undef RC_CLASS_DEFAULT
};

static const char *const class_defaults[RC_CHECKED_COUNT] = {
#define RC_CHECKED(name, owner, since)
#define RC_CLASS_DEFAULT(name, dflt) [RC_CHECKED_##name] = dflt,
#include "defs/checked_fields.def"
#undef RC_CHECKED
#undef RC_CLASS_DEFAULT
};

const rc_checked_facts *rc_checked_find(rc_checked_field field)
{
    return &facts[field];
}

rc_checked_field rc_checked_find_name(const char *name)
{
    for (int i = 0; i < RC_CHECKED_COUNT; i++)
        if (strcmp(facts[i].name, name) == 0)
            return (rc_checked_field)i;
    return RC_CHECKED_COUNT;
}

const char *rc_checked_default(rc_checked_field field)
{
    const char *own = class_defaults[field];
    return own ? own : rc_field_find(facts[field].field)->dflt;
}
