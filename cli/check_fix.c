/* check_fix.c — `--fix`: applies what rules can fix by themselves, again and again, until nothing more can be
 * done.
 *
 * above  check_subject.c
 */
#include "check.h"

#include <string.h>

enum { MAX_ROUNDS = 64 };

static rc_code add_value(rc_doc *map, const rc_doc *value, rc_arena *mem, rc_error *err)
{
    rc_doc *copy;
    RC_TRY(rc_doc_new(mem, value->kind, value->where, &copy, err));
    for (rc_doc *node = map->child; node; node = node->next)
        if (strcmp(node->key, value->key) == 0) {
            rc_doc *next = node->next;
            *node = *value;
            node->next = next;
            return RC_OK;
        }
    *copy = *value;
    rc_doc_add(map, value->key, value->where, copy);
    return RC_OK;
}

static bool is_tried(const rc_rule_facts **tried, size_t n, const rc_rule_facts *rule)
{
    for (size_t i = 0; i < n; i++)
        if (tried[i] == rule)
            return true;
    return false;
}

/* The first finding that counts, can be fixed, and whose rule was not tried; findings.n if none. */
static size_t find_fixable(const rc_check *check, rc_level level, const rc_rule_facts **tried,
                           size_t n_tried)
{
    for (size_t i = 0; i < check->findings.n; i++)
        if (check->findings.at[i].level <= level && check->fixes[i] &&
            !is_tried(tried, n_tried, check->rules[i]))
            return i;
    return check->findings.n;
}

static size_t count_of(const rc_check *check, const rc_rule_facts *rule)
{
    size_t n = 0;
    for (size_t i = 0; i < check->findings.n; i++)
        n += check->rules[i] == rule;
    return n;
}

rc_code rc_check_fix(const rc_check_inputs *inputs, const rc_subject *subject, rc_level level,
                     rc_arena *mem, const rc_doc **fix, rc_subject *after, rc_error *err)
{
    const rc_rule_facts *tried[MAX_ROUNDS];
    size_t n_tried = 0;
    rc_doc *map;
    RC_TRY(rc_doc_new(mem, RC_DOC_MAP, RC_NOWHERE, &map, err));
    *after = *subject;
    for (int round = 0; round < MAX_ROUNDS && n_tried < MAX_ROUNDS; round++) {
        const rc_check *check = after->check;
        size_t i = find_fixable(check, level, tried, n_tried);
        if (i == check->findings.n)
            break;
        for (const rc_doc *value = check->fixes[i]->child; value; value = value->next)
            RC_TRY(add_value(map, value, mem, err));
        const rc_rule_facts *rule = check->rules[i];
        size_t n_before = count_of(check, rule);
        RC_TRY(rc_check_run(inputs, map, mem, after, err));
        if (count_of(after->check, rule) >= n_before)
            tried[n_tried++] = rule;
    }
    *fix = map;
    return RC_OK;
}
