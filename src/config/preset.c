/* config/preset.c — built-in models: rows of presets.def as settings.
 *
 * takes  the name in {preset: NAME}, which is what --model NAME becomes
 * gives  the shape and the family's habits set, at the place of the name
 */
#include "config/make.h"

#include "base/text.h"

#include <stdio.h>
#include <string.h>

static const struct {
    rc_family family;
    const rc_assign *settings;
} rows[] = {
#define RC_PRESET(name, family, source, settings) {RC_FAMILY_##family, RC_ASSIGNS(settings)},
#include "defs/presets.def"
#undef RC_PRESET
};
static const rc_assign grouped[] = {SET(group_query_attention, true){.kind = RC_ASSIGN_END}};

/* The same settings as text, a blank before each. */
#undef SET
#undef DENSE_FIRST
#define SET(field, ...) " " #field "=" #__VA_ARGS__
#define DENSE_FIRST(field, n) " " #field "=#" #n
static const rc_preset presets[] = {
#define RC_PRESET(name, family, source, settings) {name, #family, source, &(settings)[1]},
#include "defs/presets.def"
#undef RC_PRESET
};

const rc_preset *rc_preset_list(size_t *n)
{
    *n = sizeof presets / sizeof *presets;
    return presets;
}

static char fold(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool is_kept(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* The same letters and digits: Llama-3.1-8B is llama3.1-8b. */
static bool is_same_name(const char *a, const char *b)
{
    for (;; a++, b++) {
        while (*a && !is_kept(fold(*a)))
            a++;
        while (*b && !is_kept(fold(*b)))
            b++;
        if (fold(*a) != fold(*b) || *a == '\0')
            return *a == *b;
    }
}

const rc_preset *rc_preset_find(const char *name)
{
    const char *slash = strrchr(name, '/'); /* meta-llama/Llama-3.1-8B */
    for (size_t i = 0; i < sizeof presets / sizeof *presets; i++)
        if (is_same_name(slash ? slash + 1 : name, presets[i].name))
            return &presets[i];
    for (size_t i = 0; i < sizeof presets / sizeof *presets; i++)
        if (is_same_name(name, presets[i].source))
            return &presets[i];
    return NULL;
}

rc_code rc_maker_read_preset(rc_maker *maker, const rc_doc *node, rc_error *err)
{
    const char *names[sizeof presets / sizeof *presets];
    char safe[80];
    if (node->kind != RC_DOC_STRING)
        return RC_FAIL(err, RC_E_INPUT, node->where, "a preset is the name of a model");
    const rc_preset *preset = rc_preset_find(node->text);
    if (!preset) {
        for (size_t i = 0; i < sizeof presets / sizeof *presets; i++)
            names[i] = presets[i].name;
        const char *nearest =
            rc_text_nearest(node->text, names, sizeof presets / sizeof *presets);
        rc_text_printable(node->text, node->n_bytes, safe, sizeof safe);
        return RC_FAIL(err, RC_E_INPUT, node->where,
                       "unknown model %s%s%s; `recompute list models` shows all", safe,
                       nearest ? ", did you mean " : "", nearest ? nearest : "");
    }
    RC_TRY(rc_maker_judge_family(maker, preset->family, node->where, err));
    const rc_assign *settings = rows[preset - presets].settings;
    RC_TRY(rc_maker_apply_family(maker, rows[preset - presets].family, node, err));
    RC_TRY(rc_maker_apply_settings(maker, settings, node, 0, err));
    if (rc_assigns_field(settings, RC_FIELD_num_moe_experts))
        RC_TRY(rc_maker_apply_family(maker, RC_FAMILY_moe, node, err));
    if (rc_assigns_field(settings, RC_FIELD_num_query_groups))
        RC_TRY(rc_maker_apply_settings(maker, grouped, node, 0, err));
    return RC_OK;
}
