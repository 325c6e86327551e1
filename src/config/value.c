/* config/value.c — one node of an input as the typed value of one field.
 *
 * takes  a field and the node that stands for it
 * gives  the value in rc_config and its origin, or a message that says what would be right
 *
 * Python's laxness is followed where Megatron follows it: whole numbers serve as reals, 0 and 1
 * as booleans, any scalar as a string. A real is no whole number, not even 2.0.
 */
#include "config/value.h"

#include "args/override.h"
#include "base/num.h"
#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const size_t offsets[RC_FIELD_COUNT] = {
#define RC_FIELD(name, key, type, dflt, flag, help) offsetof(rc_config, name),
#include "defs/fields.def"
#undef RC_FIELD
};

static void *value_at(rc_config *cfg, rc_field field)
{
    return (char *)cfg + offsets[field];
}

int64_t rc_value_int(const rc_config *cfg, rc_field field)
{
    RC_ASSERT(rc_field_find(field)->type == RC_FIELD_TYPE_INT);
    return *(const int64_t *)(const void *)((const char *)cfg + offsets[field]);
}

/* How a node reads in a message: "abc" in quotes, numbers as written, "a list". */
static const char *name_node(const rc_doc *node, char *buf, size_t room)
{
    char safe[80];
    if (node->kind == RC_DOC_LIST || node->kind == RC_DOC_MAP)
        return node->kind == RC_DOC_LIST ? "a list" : "a map";
    if (node->kind == RC_DOC_BOOL && !node->text)
        return node->i ? "true" : "false";
    rc_text_printable(node->text ? node->text : "", node->n_bytes, safe, sizeof safe);
    snprintf(buf, room, node->kind == RC_DOC_STRING ? "\"%s\"" : "%s", safe);
    return buf;
}

static rc_code not_a(const rc_doc *node, const char *shown, const char *what, rc_error *err)
{
    char buf[96];
    rc_doc bare = *node;
    bare.is_quoted = false;
    if (node->kind == RC_DOC_STRING && node->n_bytes == 0)
        return RC_FAIL(err, RC_E_INPUT, node->where, "%s is empty; it must be %s", shown, what);
    if (node->kind == RC_DOC_STRING && node->is_quoted && !node->tag)
        rc_doc_resolve_scalar(&bare);
    if (bare.kind != node->kind)
        return RC_FAIL(err, RC_E_INPUT, node->where,
                       "%s must be %s, not text: write %s without quotes", shown, what,
                       name_node(&bare, buf, sizeof buf));
    if (node->kind == RC_DOC_BOOL && !node->text && node->i)
        return RC_FAIL(err, RC_E_INPUT, node->where, "%s needs a value: %s", shown, what);
    return RC_FAIL(err, RC_E_INPUT, node->where, "%s must be %s, not %s", shown, what,
                   name_node(node, buf, sizeof buf));
}

/* "torch.bfloat16", "torch.nn.functional.silu", "a.b.AttnBackend" by their last part. */
static const char *last_part(const char *dotted)
{
    const char *dot = strrchr(dotted, '.');
    return dot && dot[1] ? dot + 1 : dotted;
}

/* The name of an enumeration's number, or NULL. */
static const char *find_enum_name(const char *class, int64_t value)
{
    static const struct {
        const char *class;
        int64_t value;
        const char *name;
    } rows[] = {
#define RC_ENUM(class, value, name) {class, value, name},
#include "defs/enums.def"
#undef RC_ENUM
    };
    for (size_t i = 0; class && i < sizeof rows / sizeof *rows; i++)
        if (rows[i].value == value && strcmp(rows[i].class, class) == 0)
            return rows[i].name;
    return NULL;
}

/* What Bridge saves for an enum: {_target_: class, _call_: true, _args_: [value]}, newer ones
 * with its _name_; for a function or dtype: {_target_: dotted name, _call_: false}. */
static const char *text_of_target(const rc_doc *map)
{
    const rc_doc *name = rc_doc_find(map, "_name_");
    const rc_doc *args = rc_doc_find(map, "_args_");
    const rc_doc *value = rc_doc_find(map, "value");
    if (name && name->text)
        return name->text;
    const char *class = map->tag ? last_part(map->tag) : NULL;
    if (args && args->kind == RC_DOC_LIST && args->child)
        value = args->child;
    if (!value || !value->text)
        return class;
    const char *enum_name = value->kind == RC_DOC_INT ? find_enum_name(class, value->i) : NULL;
    return enum_name ? enum_name : value->text;
}

const char *rc_value_text(const rc_doc *node)
{
    if (node->kind == RC_DOC_LIST)
        return NULL;
    if (node->kind == RC_DOC_MAP)
        return text_of_target(node);
    if (node->kind == RC_DOC_BOOL && !node->text)
        return node->i ? "true" : "false";
    return node->text;
}

/* "torch.bfloat16" and "AttnBackend.auto" as strings. */
static bool is_qualified(const char *text)
{
    static const char *const classes[] = {"torch.", "AttnBackend.", "CudaGraphScope.",
                                          "CudaGraphModule.", "InferenceCudaGraphScope."};
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (strncmp(text, classes[i], strlen(classes[i])) == 0)
            return true;
    return false;
}

static rc_code set_string(const rc_doc *node, const char *shown, const char **out,
                          rc_error *err)
{
    *out = rc_value_text(node);
    if (!*out)
        return not_a(node, shown, "a word", err);
    if (strlen(*out) < node->n_bytes && node->kind == RC_DOC_STRING)
        return RC_FAIL(err, RC_E_INPUT, node->where, "%s may not hold a NUL byte", shown);
    if (is_qualified(*out))
        *out = last_part(*out);
    return RC_OK;
}

static rc_code set_list(const rc_doc *node, const char *shown, rc_strings *out, rc_arena *mem,
                        rc_error *err)
{
    bool is_one = node->kind != RC_DOC_LIST;
    if (node->kind == RC_DOC_MAP && !node->tag)
        return not_a(node, shown, "a list of words", err);
    size_t n = is_one ? 1 : node->n_children;
    RC_TRY(RC_NEW(mem, &out->at, n + 1, err));
    out->n = 0;
    for (const rc_doc *one = is_one ? node : node->child; one;
         one = is_one ? NULL : one->next) {
        if (one->kind == RC_DOC_LIST || one->kind == RC_DOC_NULL)
            return not_a(one, shown, "a list of words", err);
        RC_TRY(set_string(one, shown, &out->at[out->n++], err));
    }
    return RC_OK;
}

static rc_code set_bytes(const rc_doc *node, const char *shown, int64_t *out, rc_error *err)
{
    bool is_bytes = node->kind == RC_DOC_INT
                        ? (*out = node->i, node->i >= 0)
                        : node->kind == RC_DOC_STRING && rc_parse_bytes(node->text, out);
    return is_bytes ? RC_OK
                    : not_a(node, shown, "a size such as 512MiB, 2.5GB or 1073741824", err);
}

static void set_null(rc_config *cfg, rc_field field)
{
    void *at = value_at(cfg, field);
    switch (rc_field_find(field)->type) {
    case RC_FIELD_TYPE_INT:
    case RC_FIELD_TYPE_BYTES:
        *(int64_t *)at = RC_NULL_INT;
        break;
    case RC_FIELD_TYPE_REAL:
        *(double *)at = (double)NAN;
        break;
    case RC_FIELD_TYPE_BOOL:
        *(bool *)at = false;
        break;
    case RC_FIELD_TYPE_STR:
        *(const char **)at = NULL;
        break;
    case RC_FIELD_TYPE_LIST:
        *(rc_strings *)at = (rc_strings){0};
        break;
    case RC_FIELD_TYPE_RAW:
        *(const rc_doc **)at = NULL;
        break;
    }
}

static rc_code set_typed(rc_config *cfg, rc_field field, const rc_doc *node, const char *shown,
                         rc_arena *mem, rc_error *err)
{
    void *at = value_at(cfg, field);
    bool is_int = node->kind == RC_DOC_INT;
    switch (rc_field_find(field)->type) {
    case RC_FIELD_TYPE_INT:
        if (!is_int)
            return not_a(node, shown, "a whole number", err);
        *(int64_t *)at = node->i;
        return RC_OK;
    case RC_FIELD_TYPE_REAL:
        if (!is_int && node->kind != RC_DOC_FLOAT)
            return not_a(node, shown, "a number", err);
        *(double *)at = node->f;
        return RC_OK;
    case RC_FIELD_TYPE_BOOL:
        if (node->kind != RC_DOC_BOOL && !(is_int && (node->i == 0 || node->i == 1)))
            return not_a(node, shown, "true or false", err);
        *(bool *)at = node->i != 0;
        return RC_OK;
    case RC_FIELD_TYPE_BYTES:
        return set_bytes(node, shown, at, err);
    case RC_FIELD_TYPE_STR:
        return set_string(node, shown, at, err);
    case RC_FIELD_TYPE_LIST:
        return set_list(node, shown, at, mem, err);
    case RC_FIELD_TYPE_RAW:
        *(const rc_doc **)at = node;
        return RC_OK;
    }
    return RC_FAIL(err, RC_E_BUG, RC_NOWHERE, "unknown field type");
}

rc_code rc_value_set(rc_config *cfg, rc_field field, const rc_doc *node, rc_origin_kind kind,
                     const char *shown, rc_arena *mem, rc_error *err)
{
    bool is_null = node->kind == RC_DOC_NULL;
    if (is_null && node->tag && strcmp(node->tag, "~") == 0)
        return rc_value_set_default(cfg, field, mem, err); /* the user deleted the key */
    if (node->kind == RC_DOC_STRING && !node->is_quoted && strcmp(node->text, "???") == 0)
        return RC_OK; /* OmegaConf: to be given elsewhere */
    if (is_null)
        set_null(cfg, field);
    else
        RC_TRY(set_typed(cfg, field, node, shown, mem, err));
    cfg->origin[field] =
        (rc_origin){.kind = kind, .is_null = is_null, .where = node->where, .node = node};
    return RC_OK;
}

/* The default as a node: a plain scalar, or a list through the reader of overrides. */
static rc_code default_node(const char *text, rc_arena *mem, rc_doc **out, rc_error *err)
{
    if (*text != '[') {
        RC_TRY(rc_doc_new(mem, RC_DOC_STRING, RC_NOWHERE, out, err));
        (*out)->text = text;
        (*out)->n_bytes = strlen(text);
        rc_doc_resolve_scalar(*out);
        return RC_OK;
    }
    rc_nodes nodes = {.mem = mem};
    rc_doc map = {.kind = RC_DOC_MAP};
    const char *word;
    RC_TRY(rc_arena_printf(mem, &word, err, "default=%s", text));
    RC_TRY(rc_override_add(&nodes, &map, word, RC_NOWHERE, err));
    *out = map.child;
    return RC_OK;
}

rc_code rc_value_set_default(rc_config *cfg, rc_field field, rc_arena *mem, rc_error *err)
{
    const rc_field_facts *facts = rc_field_find(field);
    cfg->origin[field] = (rc_origin){.kind = RC_FROM_DEFAULT, .is_null = true};
    if (strcmp(facts->dflt, "null") == 0) {
        set_null(cfg, field);
        return RC_OK;
    }
    rc_doc *node, scratch = {.text = facts->dflt, .n_bytes = strlen(facts->dflt)};
    bool is_scalar = *facts->dflt != '[' && facts->type != RC_FIELD_TYPE_RAW &&
                     facts->type != RC_FIELD_TYPE_LIST;
    if (is_scalar) {
        rc_doc_resolve_scalar(&scratch);
        node = &scratch;
    } else {
        RC_TRY(default_node(facts->dflt, mem, &node, err));
    }
    RC_TRY(set_typed(cfg, field, node, facts->name, mem, err));
    cfg->origin[field].is_null = false;
    return RC_OK;
}
