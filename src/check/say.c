/* say.c — findings in words: which values, why, and what to write instead.
 *
 * The blame falls on the first of the rule's fields that the input sets; where it sets none, the
 * position is unknown and the text says that the value is the default.
 *
 * above  fix.c, say_fix.c, say_value.c
 */
#include "check/say.h"

#include "base/text.h"
#include "check/fix.h"
#include "check/say_fix.h"
#include "check/say_value.h"

#include <recompute/label.h>

#include <string.h>

enum { MAX_NAMED = 3 }; /* values named in one sentence */

/* Where a value was given: the field itself, or the older name it had. */
static rc_checked_field field_given(const rc_checking *checking, rc_checked_field field)
{
    bool is_old_name = field == RC_CHECKED_cuda_graph_modules && !checking->is_given[field] &&
                       checking->is_given[RC_CHECKED_cuda_graph_scope];
    return is_old_name ? RC_CHECKED_cuda_graph_scope : field;
}

/* Recompute is the user's own subject; whatever else is unset, a recipe may set. */
static bool is_left_open(const rc_checking *checking, rc_rule rule)
{
    for (const rc_checked_field *field = rc_rule_fields(rule); *field != RC_CHECKED_COUNT;
         field++)
        if (!checking->is_given[field_given(checking, *field)] &&
            !strstr(rc_checked_find(*field)->name, "recompute"))
            return true;
    return false;
}

static bool is_late(const rc_checking *checking, rc_rule rule)
{
    for (const rc_checked_field *field = rc_rule_fields(rule); *field != RC_CHECKED_COUNT;
         field++)
        if (checking->is_late[*field])
            return true;
    return false;
}

bool rc_say_is_given(const rc_checking *checking, rc_rule rule)
{
    for (const rc_checked_field *field = rc_rule_fields(rule); *field != RC_CHECKED_COUNT;
         field++)
        if (checking->is_given[*field])
            return true;
    return false;
}

rc_level rc_say_level(const rc_checking *checking, const rc_hit *hit)
{
    rc_level level = rc_rule_at(hit->rule)->level;
    if (is_late(checking, hit->rule))
        return level == RC_LEVEL_ERROR ? RC_LEVEL_WARNING : RC_LEVEL_NOTE;
    bool is_open = checking->is_partial && is_left_open(checking, hit->rule);
    return level == RC_LEVEL_ERROR && is_open ? RC_LEVEL_WARNING : level;
}

/* The values at fault: those given, and the most blamed one even where it is the default. What a
 * launcher changes is told as it was written. */
static rc_code say_values(const rc_checking *checking, rc_rule rule, rc_text *text,
                          rc_error *err)
{
    bool is_change = rc_rule_at(rule)->effect == RC_EFFECT_SETS;
    rc_checked_field last = RC_CHECKED_COUNT;
    int n_named = 0;
    for (const rc_checked_field *named = rc_rule_fields(rule);
         *named != RC_CHECKED_COUNT && n_named < MAX_NAMED; named++) {
        rc_checked_field field = field_given(checking, *named);
        if (field == last || (!checking->is_given[field] && n_named >= 2))
            continue; /* an older name stands for both */
        if (field == RC_CHECKED_recompute_modules && !checking->is_given[field] &&
            rc_checking_is_full(checking))
            continue; /* full has no labels */
        last = field;
        RC_TRY(rc_text_printf(text, err, "%s%s is ", n_named++ ? ", " : "",
                              rc_checked_find(field)->name));
        if (checking->is_late[field]) {
            RC_TRY(rc_text_printf(text, err, "known when the job starts"));
            continue;
        }
        RC_TRY(rc_say_value(text, is_change ? checking->written[field] : checking->given[field],
                            err));
        if (!checking->is_given[field])
            RC_TRY(rc_text_printf(text, err,
                                  checking->given[field] != checking->written[field]
                                      ? " by other settings"
                                      : " by default"));
    }
    return rc_text_printf(text, err, "%s", n_named ? ": " : "");
}

static rc_where find_where(const rc_checking *checking, const rc_hit *hit)
{
    if (hit->key)
        return hit->key->where;
    rc_checked_field itself = hit->item ? rc_checked_find_name(hit->item) : RC_CHECKED_COUNT;
    if (itself != RC_CHECKED_COUNT)
        return checking->given[itself]->where;
    for (const rc_checked_field *field = rc_rule_fields(hit->rule); *field != RC_CHECKED_COUNT;
         field++) {
        const rc_doc *value = checking->given[*field];
        if (!checking->is_given[*field])
            continue;
        for (const rc_doc *item = hit->item ? value->child : NULL; item; item = item->next)
            if (item->text && strcmp(item->text, hit->item) == 0)
                return item->where;
        return value->where;
    }
    return RC_NOWHERE;
}

static rc_code say_label_meant(const rc_checking *checking, const char *typed, rc_text *text,
                               rc_error *err)
{
    rc_label label;
    const char *nearest = rc_label_nearest(typed);
    if (rc_label_find(typed, &label))
        return rc_text_printf(text, err, "; a newer one has it");
    if (nearest && rc_checking_knows_label(checking, nearest))
        return rc_text_printf(text, err, ", did you mean %s?", nearest);
    return RC_OK;
}

static rc_code say_reason(const rc_checking *checking, const rc_hit *hit, const char **out,
                          rc_error *err)
{
    const rc_rule_facts *rule = rc_rule_at(hit->rule);
    rc_text text = {.mem = checking->mem};
    char safe[80];
    RC_TRY(say_values(checking, hit->rule, &text, err));
    if (hit->item)
        RC_TRY(rc_text_printf(
            &text, err,
            "\"%s\": ", rc_text_printable(hit->item, strlen(hit->item), safe, sizeof safe)));
    RC_TRY(rc_text_printf(&text, err, "%s", rule->reason));
    if (hit->here)
        RC_TRY(rc_text_printf(&text, err, "; here %s", hit->here));
    if (hit->rule == RC_RULE_recompute_module_unknown && hit->item)
        RC_TRY(say_label_meant(checking, hit->item, &text, err));
    const char *before = rule->level == RC_LEVEL_ERROR ? "an error, " : "";
    if (is_late(checking, hit->rule))
        RC_TRY(
            rc_text_printf(&text, err, " (%sunless the job starts with other values)", before));
    else if (*before && rc_say_level(checking, hit) != RC_LEVEL_ERROR)
        RC_TRY(rc_text_printf(&text, err,
                              " (an error, unless a recipe sets what is default here)"));
    *out = text.at;
    return RC_OK;
}

/* The setting that was probably meant, as the user of that framework writes it. */
static rc_code say_nearest(const rc_checking *checking, const rc_hit *hit, const char **out,
                           rc_error *err)
{
    if (hit->key->instead)
        return rc_arena_printf(checking->mem, out, err,
                               hit->key->fault == RC_KEY_NO_CHOICE ? "one of %s" : "%s",
                               hit->key->instead);
    const char *nearest = rc_field_nearest(hit->key->path);
    for (int i = 0; nearest && i < RC_FIELD_COUNT; i++) {
        const rc_field_facts *facts = rc_field_find((rc_field)i);
        const char *flag = facts->flag + (*facts->flag == '!');
        bool is_it = strcmp(rc_field_key((rc_field)i), nearest) == 0;
        if (is_it && *flag && checking->framework == RC_FRAMEWORK_MEGATRON_LM)
            nearest = flag;
    }
    *out = nearest;
    return nearest ? rc_arena_printf(checking->mem, out, err, "%s", nearest) : RC_OK;
}

/* How to give this check a value that only the job knows. */
static rc_code say_how_to_give(const rc_checking *checking, const rc_hit *hit, const char **out,
                               rc_error *err)
{
    const rc_field_facts *facts = rc_field_find(hit->key->field);
    bool is_flag = checking->framework == RC_FRAMEWORK_MEGATRON_LM && *facts->flag == '-' &&
                   facts->type != RC_FIELD_TYPE_BOOL;
    return rc_arena_printf(checking->mem, out, err,
                           is_flag ? "%s VALUE on the command line of this check"
                                   : "%s=VALUE on the command line of this check",
                           is_flag       ? facts->flag
                           : *facts->key ? facts->key
                                         : facts->name);
}

static rc_code say_fix(const rc_checking *checking, rc_rule rule, const rc_doc *fix,
                       const char **out, rc_error *err)
{
    rc_text text = {.mem = checking->mem};
    const char *settings, *words = rc_fix_words(checking, rule);
    RC_TRY(rc_say_settings(fix, checking->cfg, checking->framework, " ", &text, err));
    settings = text.at;
    if (*settings && words && strncmp(words, settings, strlen(settings)) == 0)
        return rc_arena_printf(checking->mem, out, err, "%s", words);
    if (*settings && words)
        return rc_arena_printf(checking->mem, out, err,
                               strncmp(words, "or ", 3) == 0 ? "%s, %s" : "%s; %s", settings,
                               words);
    if (*settings)
        *out = settings;
    else
        *out = words && strncmp(words, "or ", 3) == 0 ? words + 3 : words;
    return RC_OK;
}

rc_code rc_say_finding(const rc_checking *checking, const rc_hit *hit, rc_finding *out,
                       const rc_doc **fix, rc_error *err)
{
    const rc_rule_facts *rule = rc_rule_at(hit->rule);
    char id[RC_RULE_ID_ROOM], source[256];
    *out =
        (rc_finding){.level = rc_say_level(checking, hit), .where = find_where(checking, hit)};
    RC_TRY(rc_arena_printf(checking->mem, &out->rule, err, "%s", rc_rule_id(rule, id)));
    RC_TRY(say_reason(checking, hit, &out->reason, err));
    RC_TRY(rc_fix_make(checking, hit, fix, err));
    if (hit->rule == RC_RULE_unknown_key || (hit->key && hit->key->instead))
        RC_TRY(say_nearest(checking, hit, &out->fix, err));
    else if (hit->key && hit->key->is_value)
        RC_TRY(say_how_to_give(checking, hit, &out->fix, err));
    else
        RC_TRY(say_fix(checking, hit->rule, *fix, &out->fix, err));
    if (*rule->where)
        RC_TRY(rc_arena_printf(checking->mem, &out->source, err, "%s",
                               rc_rule_source(rule, source, sizeof source)));
    return RC_OK;
}
