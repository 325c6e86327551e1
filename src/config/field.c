/* field.c — the rows of fields.def as data. */
#include <recompute/config.h>

#include <string.h>

static const rc_field_facts facts[RC_FIELD_COUNT] = {
#define RC_FIELD(name, key, type, dflt, flag, help)                                            \
    {#name, key, dflt, flag, help, RC_FIELD_TYPE_##type},
#include "defs/fields.def"
#undef RC_FIELD
};

const rc_field_facts *rc_field_find(rc_field field)
{
    return &facts[field];
}

const char *rc_field_key(rc_field field)
{
    return *facts[field].key ? facts[field].key : facts[field].name;
}

rc_field rc_field_find_name(const char *name)
{
    for (int i = 0; i < RC_FIELD_COUNT; i++)
        if (strcmp(facts[i].name, name) == 0)
            return (rc_field)i;
    return RC_FIELD_COUNT;
}
