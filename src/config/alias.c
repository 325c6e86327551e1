/* config/alias.c — names of other frameworks by table: aliases.def and hf.def.
 *
 * takes  flat maps: Megatron-LM arguments, TransformerConfig fields, Hugging Face's config.json
 * gives  the fields they mean, set in the config being made
 */
#include "config/make.h"

#include <string.h>

#define RC_ALIAS(dialect, name, when, settings) ALIAS_##dialect(name, when, settings)
static const rc_alias args_rows[] = {
#define ALIAS_ARGS(name, when, ...) {name, when, RC_ASSIGNS(__VA_ARGS__)},
#define ALIAS_BRIDGE(name, when, ...)
#include "defs/aliases.def"
#undef ALIAS_ARGS
#undef ALIAS_BRIDGE
};
static const rc_alias bridge_rows[] = {
#define ALIAS_ARGS(name, when, ...)
#define ALIAS_BRIDGE(name, when, ...) {name, when, RC_ASSIGNS(__VA_ARGS__)},
#include "defs/aliases.def"
#undef ALIAS_ARGS
#undef ALIAS_BRIDGE
};
#undef RC_ALIAS

static const rc_alias hf_rows[] = {
#define RC_FAMILY(name, settings) {"model_type", #name, RC_ASSIGNS(settings)},
#define RC_HF(name, when, settings) {name, when, RC_ASSIGNS(settings)},
#include "defs/hf.def"
#undef RC_FAMILY
#undef RC_HF
};
static const rc_assign *const family_settings[RC_FAMILY_COUNT] = {
#define RC_FAMILY(name, settings) RC_ASSIGNS(settings),
#define RC_HF(name, when, settings)
#include "defs/hf.def"
#undef RC_FAMILY
#undef RC_HF
};

const rc_assign *rc_family_settings(rc_family family)
{
    return family_settings[family];
}

rc_aliases rc_aliases_find(rc_dialect dialect)
{
    switch (dialect) {
    case RC_DIALECT_ARGS:
        return (rc_aliases){args_rows, sizeof args_rows / sizeof *args_rows};
    case RC_DIALECT_BRIDGE:
        return (rc_aliases){bridge_rows, sizeof bridge_rows / sizeof *bridge_rows};
    case RC_DIALECT_HF:
        break;
    }
    return (rc_aliases){hf_rows, sizeof hf_rows / sizeof *hf_rows};
}

static bool say_switch(const char *name, char *buf, size_t room)
{
    size_t n = strlen(name), n_dashes = name[0] == '-' ? 0 : 2;
    if (n + n_dashes + 1 > room)
        return false;
    memcpy(buf, "--", 2);
    for (size_t i = 0; i <= n; i++)
        buf[n_dashes + i] = name[i] == '_' ? '-' : name[i];
    return true;
}

bool rc_field_switch(rc_field field, bool value, char *buf, size_t room)
{
    const rc_field_facts *facts = rc_field_find(field);
    if (facts->type != RC_FIELD_TYPE_BOOL)
        return false;
    if (*facts->flag && value == (*facts->flag != '!'))
        return say_switch(facts->flag + (*facts->flag == '!'), buf, room);
    for (size_t i = 0; i < sizeof args_rows / sizeof *args_rows; i++) {
        const rc_alias *row = &args_rows[i];
        const rc_assign *only = row->settings;
        bool is_it = strcmp(row->when, "true") == 0 && only->kind == RC_ASSIGN_VALUE &&
                     !only->is_weak && only->field == field && only[1].kind == RC_ASSIGN_END;
        if (is_it && strcmp(only->text, value ? "true" : "false") == 0)
            return say_switch(row->name, buf, room);
    }
    return false;
}

rc_code rc_maker_prepare_aliases(rc_maker *maker, rc_dialect dialect, rc_error *err)
{
    rc_names *names = &maker->aliases[dialect];
    if (names->slots)
        return RC_OK;
    rc_aliases rows = rc_aliases_find(dialect);
    RC_TRY(rc_names_make(names, rows.n, maker->mem, err));
    for (size_t i = 0; i < rows.n; i++)
        rc_names_add(names, rows.at[i].name, (int)i);
    return RC_OK;
}

/* "--num-layers" and "!--disable-bias-linear" as the arguments' names: num_layers. */
static rc_code add_flag(rc_maker *maker, int field, rc_error *err)
{
    const char *flag = rc_field_find((rc_field)field)->flag, *name;
    flag += *flag == '!';
    if (strncmp(flag, "--", 2) != 0)
        return RC_OK;
    char buf[128];
    size_t n = 0;
    for (flag += 2; *flag && n + 1 < sizeof buf; flag++)
        buf[n++] = *flag == '-' ? '_' : *flag;
    RC_TRY(rc_arena_copy(maker->mem, buf, n, &name, err));
    rc_names_add(&maker->flags, name, field);
    return RC_OK;
}

rc_code rc_maker_prepare_flat(rc_maker *maker, rc_error *err)
{
    if (maker->flags.slots)
        return RC_OK;
    RC_TRY(rc_names_make(&maker->names, RC_FIELD_COUNT, maker->mem, err));
    RC_TRY(rc_names_make(&maker->flags, RC_FIELD_COUNT, maker->mem, err));
    for (int i = 0; i < RC_FIELD_COUNT; i++) {
        rc_names_add(&maker->names, rc_field_find((rc_field)i)->name, i);
        RC_TRY(add_flag(maker, i, err));
    }
    return RC_OK;
}

const rc_alias *rc_maker_find_alias(const rc_maker *maker, rc_dialect dialect, const char *name)
{
    int row = rc_names_find(&maker->aliases[dialect], name);
    return row < 0 ? NULL : &rc_aliases_find(dialect).at[row];
}

static rc_code set_flag(rc_maker *maker, rc_field field, const rc_doc *node, rc_error *err)
{
    if (*rc_field_find(field)->flag != '!')
        return rc_maker_set(maker, field, node, node->key, err);
    rc_doc *value;
    RC_TRY(rc_maker_negate(maker, node, &value, err));
    return rc_maker_set(maker, field, value, node->key, err);
}

rc_code rc_maker_read_arg(rc_maker *maker, const rc_doc *node, rc_error *err)
{
    RC_TRY(rc_maker_prepare_flat(maker, err));
    RC_TRY(rc_maker_prepare_aliases(maker, RC_DIALECT_ARGS, err));
    const rc_alias *row = rc_maker_find_alias(maker, RC_DIALECT_ARGS, node->key);
    bool is_known = false;
    int flag = rc_names_find(&maker->flags, node->key);
    int name = flag < 0 ? rc_names_find(&maker->names, node->key) : flag;
    rc_field field = name < 0 ? RC_FIELD_COUNT : (rc_field)name;
    RC_TRY(rc_maker_judge_arg(maker, node, field, row || name >= 0, err));
    if (row)
        return rc_maker_apply(maker, RC_DIALECT_ARGS, row, node, &is_known, err);
    if (flag >= 0)
        return set_flag(maker, field, node, err);
    return name >= 0 ? rc_maker_set(maker, field, node, node->key, err) : RC_OK;
}

rc_code rc_maker_read_args(rc_maker *maker, const rc_doc *map, rc_error *err)
{
    for (const rc_doc *node = map->child; node; node = node->next)
        RC_TRY(rc_maker_read_arg(maker, node, err));
    return RC_OK;
}

rc_code rc_maker_read_names(rc_maker *maker, const rc_doc *map, rc_error *err)
{
    RC_TRY(rc_maker_prepare_flat(maker, err));
    for (const rc_doc *node = map->child; node; node = node->next) {
        int name = rc_names_find(&maker->names, node->key);
        if (name >= 0)
            RC_TRY(rc_maker_set(maker, (rc_field)name, node, node->key, err));
        else
            RC_TRY(rc_maker_note_unknown(maker, node->key, node, err));
    }
    return RC_OK;
}
