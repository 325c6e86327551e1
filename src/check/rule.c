/* rule.c — the table of rules as data, and its names. */
#include "check/rule.h"

#include "base/text.h"

#include <recompute/arena.h>

#include <stdio.h>
#include <string.h>

/* --- columns as text */

#define TC "megatron/core/transformer/transformer_config.py "
#define MP "megatron/core/model_parallel_config.py "
#define CG "megatron/core/transformer/cuda_graph_config.py "
#define PL "megatron/core/transformer/pipeline_parallel_layer_layout.py "
#define SP "megatron/core/models/gpt/experimental_attention_variant_module_specs.py "
#define AR "megatron/training/arguments.py "

/* Each part of a list begins with a space, but for words behind changes; `LIST_TEXT` drops the first. */
#define NONE ""
#define F(name) " " #name
#define SET(name, value) " " #name "=" value
#define ADD(name, item) " " #name "+=" item
#define DROP(name, item) " " #name "-=" item
#define DROP_ITEM(name) " " #name "-=$"
#define ALSO(words) " | " words
#define HINT(words) "  | " words
#define LIST_TEXT(list) &(list)[sizeof(list) > 1]

#define RC_RULE_WORDS(id, where, why, instead)                                                 \
    static const char id##_where[] = where, id##_why[] = why, id##_instead[] = instead;
#define RC_RULE_DENSE(id, instead)
#include "defs/rule_words.def"
#undef RC_RULE_WORDS
#undef RC_RULE_DENSE

#define RAISES(name) RC_EFFECT_RAISES, #name
#define WARNS RC_EFFECT_WARNS, NULL
#define LOGS RC_EFFECT_LOGS, NULL
#define SETS RC_EFFECT_SETS, NULL
#define EXITS RC_EFFECT_EXITS, NULL
#define HANGS RC_EFFECT_HANGS, NULL
#define IGNORES RC_EFFECT_IGNORES, NULL
#define CLAMPS RC_EFFECT_CLAMPS, NULL
#define ACCEPTS RC_EFFECT_ACCEPTS, NULL
#define ALL RC_RELEASE_0_9, RC_RELEASE_main
#define SINCE(name) RC_RELEASE_##name, RC_RELEASE_main
#define UNTIL(name) RC_RELEASE_0_9, RC_RELEASE_##name
#define ONLY(name) RC_RELEASE_##name, RC_RELEASE_##name
#define BETWEEN(name, last) RC_RELEASE_##name, RC_RELEASE_##last
static const rc_rule_facts rules[RC_RULE_COUNT] = {
#define RC_RULE(id, layer, level, effect, releases, fields)                                    \
    {#id,        RC_LAYER_##layer, RC_LEVEL_##level,                                           \
     effect,     releases,         LIST_TEXT("" fields),                                       \
     id##_where, id##_why,         LIST_TEXT(id##_instead)},
#include "defs/rules.def"
#undef RC_RULE
};

static const struct {
    const char *name;
    rc_rule rule;
} other_names[] = {
#define RC_RULE_NAME(name, rule) {name, RC_RULE_##rule},
#include "defs/rule_names.def"
#undef RC_RULE_NAME
};
enum { N_OTHER_NAMES = sizeof other_names / sizeof *other_names };

const rc_rule_facts *rc_rule_at(rc_rule rule)
{
    return &rules[rule];
}

size_t rc_rule_count(void)
{
    return RC_RULE_COUNT;
}

const rc_rule_facts *rc_rule_find_nth(size_t i)
{
    return i < RC_RULE_COUNT ? &rules[i] : NULL;
}

const char *rc_layer_name(rc_layer layer)
{
    static const char *const names[] = {"core", "cli", "bridge", "build", "advice"};
    return names[layer];
}

const char *rc_rule_id(const rc_rule_facts *rule, char buf[RC_RULE_ID_ROOM])
{
    size_t n = 0;
    for (; rule->name[n] && n + 1 < RC_RULE_ID_ROOM; n++)
        buf[n] = rule->name[n] == '_' ? '-' : rule->name[n];
    buf[n] = '\0';
    return buf;
}

const rc_rule_facts *rc_rule_find(const char *id)
{
    char name[RC_RULE_ID_ROOM];
    size_t n = 0;
    for (; id[n] && n + 1 < sizeof name; n++)
        name[n] = id[n] == '-' ? '_' : id[n];
    name[n] = '\0';
    for (size_t i = 0; i < RC_RULE_COUNT; i++)
        if (strcmp(rules[i].name, name) == 0)
            return &rules[i];
    for (size_t i = 0; i < N_OTHER_NAMES; i++)
        if (strcmp(other_names[i].name, id) == 0)
            return &rules[other_names[i].rule];
    return NULL;
}

const char *rc_rule_other_name(const rc_rule_facts *rule)
{
    for (size_t i = 0; i < N_OTHER_NAMES; i++)
        if (&rules[other_names[i].rule] == rule)
            return other_names[i].name;
    return NULL;
}

const char *rc_rule_nearest(const char *id, char buf[RC_RULE_ID_ROOM])
{
    size_t best = RC_RULE_COUNT, best_distance = strlen(id) / 2 + 1;
    for (size_t i = 0; i < RC_RULE_COUNT; i++) {
        size_t distance = rc_text_distance(id, rc_rule_id(&rules[i], buf));
        if (distance < best_distance) {
            best = i;
            best_distance = distance;
        }
    }
    return best < RC_RULE_COUNT ? rc_rule_id(&rules[best], buf) : NULL;
}

const char *rc_rule_exception(const rc_rule_facts *rule)
{
    return rule->level == RC_LEVEL_ERROR ? rule->exception : NULL;
}

size_t rc_rule_settings(const rc_rule_facts *rule, rc_field out[RC_RULE_SETTINGS_ROOM])
{
    const rc_checked_field *fields = rc_rule_fields((rc_rule)(rule - rules));
    size_t n = 0;
    for (; fields[n] != RC_CHECKED_COUNT; n++)
        out[n] = rc_checked_find(fields[n])->field;
    return n;
}

const char *rc_rule_releases(const rc_rule_facts *rule, char buf[RC_RULE_RELEASES_ROOM])
{
    bool is_first = rule->first == 0, is_last = rule->last + 1 == RC_RELEASE_COUNT;
    snprintf(buf, RC_RULE_RELEASES_ROOM, "%s-%s", is_first ? "" : rc_release_name(rule->first),
             is_last ? "" : rc_release_name(rule->last));
    return is_first && is_last ? "all" : buf;
}

/* "ValueError, megatron/core/transformer/transformer_config.py 1903" */
const char *rc_rule_source(const rc_rule_facts *rule, char *buf, size_t room)
{
    static const char *const effects[] = {"raises", "warns",   "logs",   "sets", "exits",
                                          "hangs",  "ignores", "clamps", ""};
    snprintf(buf, room, "%s%s%s", rule->exception ? rule->exception : effects[rule->effect],
             *rule->where ? ", " : "", rule->where);
    return buf;
}

rc_code rc_rule_table(rc_arena *mem, rc_table **out, rc_error *err)
{
    static const rc_column columns[] = {
        {"rule", NULL, RC_UNIT_TEXT},   {"layer", NULL, RC_UNIT_TEXT},
        {"level", NULL, RC_UNIT_TEXT},  {"releases", NULL, RC_UNIT_TEXT},
        {"source", NULL, RC_UNIT_TEXT}, {"reason", NULL, RC_UNIT_TEXT}};
    RC_TRY(rc_table_make(mem, "rules", NULL, columns, 6, out, err));
    for (size_t i = 0; i < RC_RULE_COUNT; i++) {
        char id[RC_RULE_ID_ROOM], source[256], releases[RC_RULE_RELEASES_ROOM];
        const char *kept_id, *kept_source, *kept_releases;
        rc_cell *row;
        RC_TRY(rc_arena_printf(mem, &kept_id, err, "%s", rc_rule_id(&rules[i], id)));
        RC_TRY(rc_arena_printf(mem, &kept_source, err, "%s",
                               rc_rule_source(&rules[i], source, sizeof source)));
        RC_TRY(rc_arena_printf(mem, &kept_releases, err, "%s",
                               rc_rule_releases(&rules[i], releases)));
        RC_TRY(rc_table_add_row(*out, &row, err));
        row[0] = rc_cell_text(kept_id);
        row[1] = rc_cell_text(rc_layer_name(rules[i].layer));
        row[2] = rc_cell_text(rc_level_name(rules[i].level));
        row[3] = rc_cell_text(kept_releases);
        row[4] = rc_cell_text(kept_source);
        row[5] = rc_cell_text(rules[i].reason);
    }
    return RC_OK;
}
