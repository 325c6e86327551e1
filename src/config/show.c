/* config/show.c — rc_config for people: every field, its value, and where it came from. */
#include "base/num.h"
#include "base/text.h"

#include <recompute/config.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *rc_origin_kind_name(rc_origin_kind kind)
{
    static const char *const names[] = {"default", "preset",   "file",
                                        "flag",    "override", "derived"};
    return names[kind];
}

static rc_code add_real(rc_text *text, double value, rc_error *err)
{
    char buf[40];
    return rc_text_printf(text, err, "%s", rc_format_exact(value, buf));
}

static rc_code add_word(rc_text *text, const char *bytes, size_t n, rc_error *err)
{
    char safe[1024];
    return rc_text_printf(text, err, "%s", rc_text_printable(bytes, n, safe, sizeof safe));
}

static rc_code add_node(rc_text *text, const rc_doc *node, rc_error *err)
{
    bool is_list = node->kind == RC_DOC_LIST;
    if (node->kind == RC_DOC_BOOL)
        return rc_text_printf(text, err, "%s", node->i ? "true" : "false");
    if (node->kind == RC_DOC_NULL)
        return rc_text_printf(text, err, "null");
    if (!is_list && node->kind != RC_DOC_MAP)
        return add_word(text, node->text, node->n_bytes, err);
    RC_TRY(rc_text_printf(text, err, is_list ? "[" : "{"));
    for (const rc_doc *child = node->child; child; child = child->next) {
        if (child->key) {
            RC_TRY(add_word(text, child->key, strlen(child->key), err));
            RC_TRY(rc_text_printf(text, err, ": "));
        }
        RC_TRY(add_node(text, child, err));
        RC_TRY(rc_text_printf(text, err, child->next ? ", " : ""));
    }
    return rc_text_printf(text, err, is_list ? "]" : "}");
}

static rc_code add_list(rc_text *text, const rc_strings *list, rc_error *err)
{
    RC_TRY(rc_text_printf(text, err, "["));
    for (size_t i = 0; i < list->n; i++) {
        RC_TRY(rc_text_printf(text, err, i ? "," : ""));
        RC_TRY(add_word(text, list->at[i], strlen(list->at[i]), err));
    }
    return rc_text_printf(text, err, "]");
}

const void *rc_config_value_at(const rc_config *cfg, rc_field field)
{
    static const size_t offsets[RC_FIELD_COUNT] = {
#define RC_FIELD(name, key, type, dflt, flag, help) offsetof(rc_config, name),
#include "defs/fields.def"
#undef RC_FIELD
    };
    return (const char *)cfg + offsets[field];
}

rc_code rc_config_show(const rc_config *cfg, rc_field field, rc_arena *mem, const char **out,
                       rc_error *err)
{
    rc_text text = {.mem = mem};
    const void *at = rc_config_value_at(cfg, field);
    rc_code code = RC_OK;
    if (cfg->origin[field].is_null) {
        *out = "null";
        return RC_OK;
    }
    switch (rc_field_find(field)->type) {
    case RC_FIELD_TYPE_INT:
    case RC_FIELD_TYPE_BYTES:
        code = rc_text_printf(&text, err, "%" PRId64, *(const int64_t *)at);
        break;
    case RC_FIELD_TYPE_REAL:
        code = add_real(&text, *(const double *)at, err);
        break;
    case RC_FIELD_TYPE_BOOL:
        code = rc_text_printf(&text, err, "%s", *(const bool *)at ? "true" : "false");
        break;
    case RC_FIELD_TYPE_STR:
        code = add_word(&text, *(const char *const *)at, strlen(*(const char *const *)at), err);
        break;
    case RC_FIELD_TYPE_LIST:
        code = add_list(&text, at, err);
        break;
    case RC_FIELD_TYPE_RAW:
        code = add_node(&text, *(const rc_doc *const *)at, err);
        break;
    }
    *out = text.at ? text.at : "";
    return code;
}

void rc_config_print(const rc_config *cfg, FILE *to)
{
    rc_arena *mem = rc_arena_open();
    char safe[256];
    for (int i = 0; mem && i < RC_FIELD_COUNT; i++) {
        const char *value;
        const rc_origin *origin = &cfg->origin[i];
        if (rc_config_show(cfg, (rc_field)i, mem, &value, NULL) != RC_OK)
            break;
        const char *file = origin->where.file ? origin->where.file : "";
        rc_text_printable(file, strlen(file), safe, sizeof safe);
        fprintf(to, "%s: %s   # %s", rc_field_key((rc_field)i), value,
                rc_origin_kind_name(origin->kind));
        if (origin->where.line)
            fprintf(to, " %s:%d:%d", safe, origin->where.line, origin->where.col);
        fputc('\n', to);
    }
    rc_arena_close(mem);
}

rc_code rc_config_table(const rc_config *cfg, rc_arena *mem, rc_table **out, rc_error *err)
{
    static const rc_column columns[] = {
        {"key", "setting", RC_UNIT_TEXT}, {"value", NULL, RC_UNIT_TEXT},
        {"source", NULL, RC_UNIT_TEXT},   {"file", NULL, RC_UNIT_TEXT},
        {"line", NULL, RC_UNIT_COUNT},    {"column", NULL, RC_UNIT_COUNT},
    };
    RC_TRY(rc_table_make(mem, "config", "Settings and where each came from", columns,
                         sizeof columns / sizeof *columns, out, err));
    for (int i = 0; i < RC_FIELD_COUNT; i++) {
        rc_cell *cells;
        const char *value;
        const rc_origin *origin = &cfg->origin[i];
        RC_TRY(rc_config_show(cfg, (rc_field)i, mem, &value, err));
        RC_TRY(rc_table_add_row(*out, &cells, err));
        cells[0] = rc_cell_text(rc_field_key((rc_field)i));
        cells[1] = rc_cell_text(value);
        cells[2] = rc_cell_text(rc_origin_kind_name(origin->kind));
        cells[3] = rc_cell_text(origin->where.file);
        if (origin->where.line) {
            cells[4] = rc_cell_int(origin->where.line);
            cells[5] = rc_cell_int(origin->where.col);
        }
    }
    return RC_OK;
}
