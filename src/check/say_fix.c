/* say_fix.c — what to write instead, as the user of the framework writes it.
 *
 * takes  a map of settings that fixes a config
 * gives  words for a message, or lines that can be pasted as they are
 *
 * above  say_value.c
 */
#include "check/say_fix.h"

#include "base/text.h"
#include "check/say_value.h"

#include <recompute/check.h>

#include <string.h>

static rc_code say_words(rc_text *text, const rc_doc *list, const char *between, rc_error *err)
{
    for (const rc_doc *item = list->child; item; item = item->next) {
        RC_TRY(rc_say_value(text, item, err));
        RC_TRY(rc_text_printf(text, err, "%s", item->next ? between : ""));
    }
    return RC_OK;
}

static bool is_off(const rc_doc *value)
{
    return value->kind == RC_DOC_NULL || (value->kind == RC_DOC_BOOL && !value->i) ||
           (value->kind == RC_DOC_LIST && !value->child);
}

/* "--recompute-modules core_attn moe"; false when no argument sets that value. */
static rc_code say_flag(rc_text *text, rc_field field, const rc_doc *value, bool *is_said,
                        rc_error *err)
{
    const char *flag = rc_field_find(field)->flag;
    char name[96];
    *is_said = true;
    if (value->kind == RC_DOC_BOOL && rc_field_switch(field, value->i != 0, name, sizeof name))
        return rc_text_printf(text, err, "%s", name);
    *is_said = *flag == '-' && !is_off(value);
    if (!*is_said)
        return RC_OK;
    RC_TRY(rc_text_printf(text, err, "%s ", flag));
    return value->kind == RC_DOC_LIST ? say_words(text, value, " ", err)
                                      : rc_say_value(text, value, err);
}

static rc_code say_override(rc_text *text, const char *key, const rc_doc *value, rc_error *err)
{
    RC_TRY(rc_text_printf(text, err, "%s=", key));
    if (value->kind != RC_DOC_LIST)
        return rc_say_value(text, value, err);
    RC_TRY(rc_text_printf(text, err, "["));
    RC_TRY(say_words(text, value, ",", err));
    return rc_text_printf(text, err, "]");
}

/* "env.NAME" as the shell sets it; false for other settings. */
static rc_code say_variable(rc_text *text, const char *key, const rc_doc *value, bool *is_said,
                            rc_error *err)
{
    *is_said = strncmp(key, "env.", 4) == 0;
    if (!*is_said)
        return RC_OK;
    if (value->kind == RC_DOC_NULL)
        return rc_text_printf(text, err, "unset %s", key + 4);
    RC_TRY(rc_text_printf(text, err, "export %s=", key + 4));
    return rc_say_value(text, value, err);
}

/* "mixed_precision.fp8" where that section wins over the model's own key. */
static rc_code say_through(rc_text *text, const char *through, const char *key,
                           const rc_doc *value, rc_error *err)
{
    const char *dot = strrchr(key, '.');
    if (strchr(through, '.'))
        return say_override(text, through, value, err);
    RC_TRY(rc_text_printf(text, err, "%s.", through));
    return say_override(text, dot ? dot + 1 : key, value, err);
}

/* `cfg` may be NULL: then no section wins over another. */
static rc_code say_setting(rc_text *text, rc_framework framework, const rc_config *cfg,
                           const rc_doc *value, rc_error *err)
{
    rc_field field = rc_field_find_name(value->key);
    bool is_said = false;
    if (field == RC_FIELD_COUNT || framework == RC_FRAMEWORK_CORE)
        return say_override(text, value->key, value, err);
    const rc_field_facts *facts = rc_field_find(field);
    RC_TRY(say_variable(text, facts->key, value, &is_said, err));
    if (!is_said && framework == RC_FRAMEWORK_MEGATRON_LM) {
        RC_TRY(say_flag(text, field, value, &is_said, err));
        const char *flag = facts->flag + (*facts->flag == '!');
        if (!is_said && *flag && is_off(value) != (*facts->flag == '!'))
            return rc_text_printf(text, err, "no %s", flag);
    }
    const char *through = cfg ? cfg->origin[field].through : NULL;
    if (!is_said && through && framework == RC_FRAMEWORK_BRIDGE)
        return say_through(text, through, facts->key, value, err);
    bool has_key = framework == RC_FRAMEWORK_BRIDGE && *facts->key;
    return is_said ? RC_OK : say_override(text, has_key ? facts->key : value->key, value, err);
}

rc_code rc_say_settings(const rc_doc *fix, const rc_config *cfg, rc_framework framework,
                        const char *between, rc_text *text, rc_error *err)
{
    RC_TRY(rc_text_printf(text, err, "%s", ""));
    for (const rc_doc *value = fix ? fix->child : NULL; value; value = value->next) {
        /* "no --a, no --b": what is left out is no word to paste */
        bool is_prose = framework == RC_FRAMEWORK_MEGATRON_LM && value->next &&
                        (is_off(value) || is_off(value->next));
        RC_TRY(say_setting(text, framework, cfg, value, err));
        RC_TRY(rc_text_printf(text, err, "%s", !value->next ? "" : is_prose ? ", " : between));
    }
    return RC_OK;
}

rc_code rc_say_fix(const rc_doc *fix, rc_framework framework, const char *between,
                   rc_arena *mem, const char **out, rc_error *err)
{
    rc_text text = {.mem = mem};
    RC_TRY(rc_say_settings(fix, NULL, framework, between, &text, err));
    *out = text.at;
    return RC_OK;
}

/* --- lines for a script */

/* The argument that gave a value, as it is written; NULL when none did. */
static const char *find_written(const rc_origin *origin, size_t *n, rc_where *where)
{
    const rc_where *places[] = {&origin->where, origin->node ? &origin->node->key_where : NULL};
    for (size_t i = 0; i < 2; i++) {
        const rc_where *at = places[i];
        if (!at || !at->text || at->col < 1 || memchr(at->text, '\0', (size_t)at->col + 1) ||
            strncmp(at->text + at->col - 1, "--", 2) != 0)
            continue;
        const char *text = at->text + at->col - 1;
        *n = strcspn(text, " \t\r\n=:\"'\\)");
        *where = *at;
        return text;
    }
    return NULL;
}

/* A comment, so that what is printed can be pasted into an array or a script as a whole. */
static rc_code say_written(rc_text *text, const char *what, const rc_config *cfg,
                           rc_field field, rc_error *err)
{
    const rc_origin *origin = &cfg->origin[field];
    const char *flag = rc_field_find(field)->flag;
    flag += *flag == '!';
    rc_where where = origin->where;
    size_t n = strlen(flag);
    char safe[96], file[256];
    const char *written = find_written(origin, &n, &where);
    RC_TRY(rc_text_printf(text, err, "# %s %s", what,
                          rc_text_printable(written ? written : flag, n, safe, sizeof safe)));
    if (where.file && where.line)
        RC_TRY(
            rc_text_printf(text, err, " (%s:%d:%d)",
                           rc_text_printable(where.file, strlen(where.file), file, sizeof file),
                           where.line, where.col));
    return rc_text_printf(text, err, "\n");
}

static rc_code say_line(rc_text *text, const rc_config *cfg, const rc_doc *value, rc_error *err)
{
    rc_field field = rc_field_find_name(value->key);
    const rc_field_facts *facts = rc_field_find(field);
    const rc_origin *origin = &cfg->origin[field];
    bool is_set = origin->kind != RC_FROM_DEFAULT && !origin->is_null, is_said;
    rc_text line = {.mem = text->mem};
    RC_TRY(say_variable(&line, facts->key, value, &is_said, err));
    if (!is_said)
        RC_TRY(say_flag(&line, field, value, &is_said, err));
    if (!is_said && !is_set && is_off(value))
        return RC_OK; /* it is off as it is */
    if (!is_said && is_set && (*facts->flag || is_off(value)))
        return say_written(text, "leave out", cfg, field, err);
    if (!is_said) {
        RC_TRY(rc_text_printf(&line, err, "# no argument sets "));
        RC_TRY(say_override(&line, value->key, value, err));
    } else if (is_set && *facts->flag) {
        RC_TRY(say_written(text, "in place of", cfg, field, err));
    }
    return rc_text_printf(text, err, "%s\n", line.at);
}

rc_code rc_say_patch(const rc_doc *fix, const rc_config *cfg, rc_arena *mem, const char **out,
                     rc_error *err)
{
    rc_text text = {.mem = mem};
    RC_TRY(rc_text_printf(&text, err, "%s", ""));
    for (const rc_doc *value = fix ? fix->child : NULL; value; value = value->next) {
        rc_field field = rc_field_find_name(value->key);
        if (cfg->framework == RC_FRAMEWORK_MEGATRON_LM && field != RC_FIELD_COUNT) {
            RC_TRY(say_line(&text, cfg, value, err));
            continue;
        }
        RC_TRY(say_setting(&text, cfg->framework, cfg, value, err));
        RC_TRY(rc_text_printf(&text, err, "\n"));
    }
    *out = text.at;
    return RC_OK;
}
