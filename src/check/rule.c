/* rule.c — the table of rules as data, and its names. */
#include "check/rule.h"

#include "base/text.h"

#include <recompute/arena.h>

#include <string.h>

static const rc_rule_facts rules[RC_RULE_COUNT] = {
#define RC_RULE(id, layer, level, range, fields, raises, reason, fix)                          \
    {#id, RC_LAYER_##layer, RC_LEVEL_##level, range, fields, raises, reason, fix},
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

const char *rc_rule_exception(const rc_rule_facts *rule, char buf[RC_RULE_ID_ROOM])
{
    size_t n = strcspn(rule->raises, " ");
    if (rule->level != RC_LEVEL_ERROR || n < 6 || n >= RC_RULE_ID_ROOM ||
        strncmp(rule->raises + n - 5, "Error", 5) != 0)
        return NULL;
    memcpy(buf, rule->raises, n);
    buf[n] = '\0';
    return buf;
}

/* "ValueError TC 1903" as "ValueError, megatron/core/transformer/transformer_config.py 1903". */
const char *rc_rule_source(const rc_rule_facts *rule, char *buf, size_t room)
{
    static const struct {
        const char *mark, *path;
    } files[] = {
        {"TC", "megatron/core/transformer/transformer_config.py"},
        {"MP", "megatron/core/model_parallel_config.py"},
        {"CG", "megatron/core/transformer/cuda_graph_config.py"},
        {"PL", "megatron/core/transformer/pipeline_parallel_layer_layout.py"},
        {"SP", "megatron/core/models/gpt/experimental_attention_variant_module_specs.py"},
        {"AR", "megatron/training/arguments.py"},
    };
    const char *space = strchr(rule->raises, ' ');
    int n = (int)(space ? space - rule->raises : (ptrdiff_t)strlen(rule->raises));
    const char *rest = space ? space + 1 : "";
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (strncmp(rest, files[i].mark, 2) == 0 && rest[2] == ' ') {
            snprintf(buf, room, "%.*s, %s%s", n, rule->raises, files[i].path, rest + 2);
            return buf;
        }
    snprintf(buf, room, "%.*s%s%s", n, rule->raises, *rest ? ", " : "", rest);
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
        char id[RC_RULE_ID_ROOM], source[256];
        const char *kept_id, *kept_source;
        rc_cell *row;
        RC_TRY(rc_arena_printf(mem, &kept_id, err, "%s", rc_rule_id(&rules[i], id)));
        RC_TRY(rc_arena_printf(mem, &kept_source, err, "%s",
                               rc_rule_source(&rules[i], source, sizeof source)));
        RC_TRY(rc_table_add_row(*out, &row, err));
        row[0] = rc_cell_text(kept_id);
        row[1] = rc_cell_text(rc_layer_name(rules[i].layer));
        row[2] = rc_cell_text(rc_level_name(rules[i].level));
        row[3] = rc_cell_text(*rules[i].range ? rules[i].range : "all");
        row[4] = rc_cell_text(kept_source);
        row[5] = rc_cell_text(rules[i].reason);
    }
    return RC_OK;
}
