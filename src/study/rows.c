/* rows.c — recompute settings as a trainer's command line wants them. */
#include <recompute/label.h>
#include <recompute/policy.h>
#include <recompute/study.h>

#include "base/text.h"

#include <string.h>

static rc_code bridge_overrides(const rc_setting *setting, rc_arena *mem, const char **out,
                                rc_error *err)
{
    char text[400];
    rc_setting_overrides(setting, text); /* quoted for a shell already */
    return rc_arena_copy(mem, text, strlen(text), out, err);
}

/* Source: Megatron-LM megatron/training/arguments.py, the --recompute-* arguments. */
static rc_code megatron_flags(const rc_setting *setting, rc_arena *mem, const char **out,
                              rc_error *err)
{
    rc_text text = {.mem = mem};
    if (setting->granularity == RC_GRANULARITY_FULL)
        return rc_arena_printf(mem, out, err,
                               "--recompute-granularity full --recompute-method %s "
                               "--recompute-num-layers %lld",
                               setting->method == RC_METHOD_BLOCK ? "block" : "uniform",
                               (long long)setting->num_layers);
    if (setting->granularity == RC_GRANULARITY_NONE || setting->labels == 0) {
        *out = "";
        return RC_OK;
    }
    RC_TRY(rc_text_printf(&text, err, "--recompute-granularity selective --recompute-modules"));
    for (int i = 0; i < RC_LABEL_COUNT; i++)
        if (setting->labels & 1u << i)
            RC_TRY(rc_text_printf(&text, err, " %s", rc_label_find_facts((rc_label)i)->name));
    *out = text.at;
    return RC_OK;
}

static rc_code make_row(const char *name, rc_launch_style style, rc_arena *mem,
                        rc_launch_row *row, rc_error *err)
{
    rc_setting setting;
    char safe[128];
    if (!rc_setting_parse(name, &setting))
        return RC_FAIL(
            err, RC_E_INPUT, RC_NOWHERE,
            "%s is no recompute setting; write [] or [core_attn,mlp] or full/block/4 "
            "or full/uniform/1",
            rc_text_printable(name, strlen(name), safe, sizeof safe));
    row->setting = name;
    if (style == RC_LAUNCH_MEGATRON_LM)
        return megatron_flags(&setting, mem, &row->overrides, err);
    return bridge_overrides(&setting, mem, &row->overrides, err);
}

rc_code rc_launch_rows_make(const char *const *settings, size_t n_settings,
                            rc_launch_style style, rc_arena *mem, rc_launch_row **rows,
                            size_t *n_rows, rc_error *err)
{
    RC_TRY(RC_NEW(mem, rows, n_settings + 1, err));
    *n_rows = 0;
    RC_TRY(make_row("[]", style, mem, &(*rows)[(*n_rows)++], err));
    for (size_t i = 0; i < n_settings; i++)
        if (strcmp(settings[i], "[]") != 0)
            RC_TRY(make_row(settings[i], style, mem, &(*rows)[(*n_rows)++], err));
    return RC_OK;
}
