/* say.c — findings in words: which values, why, and what to write instead.
 *
 * The blame falls on the first of the rule's fields that the input sets; where it sets none, the
 * position is unknown and the text says that the value is the default.
 */
#include "check/say.h"

#include "base/text.h"

#include <inttypes.h>
#include <string.h>

enum { MAX_NAMED = 3 }; /* values named in one sentence */

/* The next word of a row's list of fields; RC_CORE_COUNT at the end. */
static rc_core_field next_field(const char **at)
{
    char name[80];
    while (**at) {
        size_t n = strcspn(*at, " ");
        rc_core_field field = RC_CORE_COUNT;
        if (n < sizeof name) {
            memcpy(name, *at, n);
            name[n] = '\0';
            field = rc_core_field_named(name);
        }
        *at += n + ((*at)[n] == ' ');
        if (field != RC_CORE_COUNT)
            return field;
    }
    return RC_CORE_COUNT;
}

static rc_code say_value(rc_text *text, const rc_doc *value, rc_error *err)
{
    char safe[120];
    switch (value->kind) {
    case RC_DOC_NULL:
        return rc_text_printf(text, err, "null");
    case RC_DOC_BOOL:
        return rc_text_printf(text, err, value->i ? "true" : "false");
    case RC_DOC_INT:
        return rc_text_printf(text, err, "%" PRId64, value->i);
    case RC_DOC_FLOAT:
        return rc_text_printf(text, err, "%g", value->f);
    case RC_DOC_STRING:
        rc_text_printable(value->text, value->n_bytes, safe, sizeof safe);
        return rc_text_printf(text, err, value->n_bytes ? "%s" : "\"\"", safe);
    case RC_DOC_LIST:
        RC_TRY(rc_text_printf(text, err, "["));
        for (const rc_doc *item = value->child; item && text->n < 300; item = item->next) {
            RC_TRY(say_value(text, item, err));
            RC_TRY(rc_text_printf(text, err, item->next ? ", " : ""));
        }
        return rc_text_printf(text, err, "]");
    case RC_DOC_MAP:
        return rc_text_printf(text, err, "{...}");
    }
    return RC_OK;
}

static rc_code say_values(const rc_core *core, const rc_rule_facts *rule, rc_text *text,
                          rc_error *err)
{
    const char *at = rule->fields;
    int n_named = 0;
    for (rc_core_field field = next_field(&at); field != RC_CORE_COUNT && n_named < MAX_NAMED;
         field = next_field(&at)) {
        if (!core->is_given[field] && n_named > 0 && strchr(rule->fields, ' ') != NULL &&
            rc_core_is_null(core, field) == (core->given[field]->kind == RC_DOC_NULL) &&
            n_named >= 2)
            continue;
        RC_TRY(rc_text_printf(text, err, "%s%s is ", n_named ? ", " : "",
                              rc_core_field_find(field)->name));
        RC_TRY(say_value(text, core->given[field], err));
        if (!core->is_given[field])
            RC_TRY(rc_text_printf(text, err, " (default)"));
        n_named++;
    }
    return rc_text_printf(text, err, n_named ? ": " : "");
}

static rc_where find_where(const rc_core *core, const rc_hit *hit)
{
    const char *at = rc_rule_at(hit->rule)->fields;
    for (rc_core_field field = next_field(&at); field != RC_CORE_COUNT;
         field = next_field(&at)) {
        const rc_doc *value = core->given[field];
        if (!core->is_given[field])
            continue;
        for (const rc_doc *item = hit->item ? value->child : NULL; item; item = item->next)
            if (item->text && strcmp(item->text, hit->item) == 0)
                return item->where;
        return value->where;
    }
    return RC_NOWHERE;
}

static rc_code say_reason(const rc_core *core, const rc_hit *hit, const char **out,
                          rc_error *err)
{
    const rc_rule_facts *rule = rc_rule_at(hit->rule);
    rc_text text = {.mem = core->mem};
    char safe[80];
    RC_TRY(say_values(core, rule, &text, err));
    if (hit->item)
        RC_TRY(rc_text_printf(
            &text, err,
            "\"%s\": ", rc_text_printable(hit->item, strlen(hit->item), safe, sizeof safe)));
    RC_TRY(rc_text_printf(&text, err, "%s", rule->reason));
    *out = text.at;
    return RC_OK;
}

rc_code rc_say_finding(const rc_core *core, const rc_hit *hit, rc_finding *out, rc_error *err)
{
    const rc_rule_facts *rule = rc_rule_at(hit->rule);
    char id[RC_RULE_ID_ROOM], source[256];
    *out = (rc_finding){.level = rule->level, .where = find_where(core, hit)};
    RC_TRY(rc_arena_printf(core->mem, &out->rule, err, "%s", rc_rule_id(rule, id)));
    RC_TRY(say_reason(core, hit, &out->reason, err));
    if (*rule->fix)
        out->fix = rule->fix;
    if (*rule->raises)
        RC_TRY(rc_arena_printf(core->mem, &out->source, err, "%s",
                               rc_rule_source(rule, source, sizeof source)));
    return RC_OK;
}
