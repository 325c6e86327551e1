/* label.c — the rows of labels.def and label_needs.def as data. */
#include <recompute/label.h>

#include "base/text.h"

#include <string.h>

static const rc_label_facts facts[RC_LABEL_COUNT] = {
#define RC_LABEL(name, mechanism, since, needs, help)                                          \
    {#name, RC_MECHANISM_##mechanism, RC_RELEASE_##since, RC_LABEL_NEED_##needs, help},
#include "defs/labels.def"
#undef RC_LABEL
};

static const char *const needs[RC_LABEL_NEED_COUNT] = {
#define RC_LABEL_NEED(name, words) [RC_LABEL_NEED_##name] = words,
#include "defs/label_needs.def"
#undef RC_LABEL_NEED
};

const rc_label_facts *rc_label_find_facts(rc_label label)
{
    return &facts[label];
}

bool rc_label_find(const char *name, rc_label *label)
{
    for (int i = 0; i < RC_LABEL_COUNT; i++) {
        if (strcmp(facts[i].name, name) != 0)
            continue;
        *label = (rc_label)i;
        return true;
    }
    return false;
}

const char *rc_label_nearest(const char *typed)
{
    const char *names[RC_LABEL_COUNT];
    for (int i = 0; i < RC_LABEL_COUNT; i++)
        names[i] = facts[i].name;
    return rc_text_nearest(typed, names, RC_LABEL_COUNT);
}

const char *rc_label_need_words(rc_label_need need)
{
    return needs[need];
}
