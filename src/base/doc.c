/* doc.c — building, searching and printing rc_doc trees. */
#include <recompute/doc.h>

#include "base/num.h"
#include "base/text.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

rc_code rc_doc_new(rc_arena *mem, rc_doc_kind kind, rc_where where, rc_doc **out, rc_error *err)
{
    RC_TRY(RC_NEW(mem, out, 1, err));
    (*out)->kind = kind;
    (*out)->where = where;
    return RC_OK;
}

void rc_doc_add(rc_doc *parent, const char *key, rc_where key_where, rc_doc *node)
{
    node->key = key;
    node->key_where = key_where;
    node->next = NULL;
    if (parent->last)
        parent->last->next = node;
    else
        parent->child = node;
    parent->last = node;
    parent->n_children++;
}

rc_code rc_doc_add_string(rc_arena *mem, rc_doc *parent, const char *key, rc_where where,
                          const char *text, size_t n_bytes, rc_doc **out, rc_error *err)
{
    RC_TRY(rc_doc_new(mem, RC_DOC_STRING, where, out, err));
    RC_TRY(rc_arena_copy(mem, text, n_bytes, &(*out)->text, err));
    (*out)->n_bytes = n_bytes;
    rc_doc_add(parent, key, where, *out);
    return RC_OK;
}

rc_code rc_doc_add_int(rc_arena *mem, rc_doc *parent, const char *key, rc_where where,
                       int64_t value, rc_doc **out, rc_error *err)
{
    RC_TRY(rc_doc_new(mem, RC_DOC_INT, where, out, err));
    (*out)->i = value;
    (*out)->f = (double)value;
    rc_doc_add(parent, key, where, *out);
    return RC_OK;
}

const rc_doc *rc_doc_find(const rc_doc *map, const char *key)
{
    if (!map || map->kind != RC_DOC_MAP)
        return NULL;
    for (const rc_doc *node = map->child; node; node = node->next)
        if (node->key && strcmp(node->key, key) == 0)
            return node;
    return NULL;
}

const rc_doc *rc_doc_find_path(const rc_doc *map, const char *path)
{
    char part[256];
    while (map && *path) {
        size_t n = strcspn(path, ".");
        if (n >= sizeof part)
            return NULL;
        memcpy(part, path, n);
        part[n] = '\0';
        map = rc_doc_find(map, part);
        path += n + (path[n] == '.');
    }
    return map;
}

static bool is_one_of(const char *text, const char *const *words)
{
    for (; *words; words++)
        if (strcmp(text, *words) == 0)
            return true;
    return false;
}

/* Digits of one base with `_` between them; the sign was taken off before. */
static bool parse_based_int(const char *digits, int base, int64_t *out)
{
    uint64_t value = 0;
    if (!isxdigit((unsigned char)*digits))
        return false;
    for (const char *c = digits; *c; c++) {
        if (*c == '_')
            continue;
        int digit = isdigit((unsigned char)*c)    ? *c - '0'
                    : isxdigit((unsigned char)*c) ? tolower((unsigned char)*c) - 'a' + 10
                                                  : 99;
        if (digit >= base || value > (uint64_t)(INT64_MAX - digit) / (uint64_t)base)
            return false;
        value = value * (uint64_t)base + (uint64_t)digit;
    }
    *out = (int64_t)value;
    return true;
}

static bool resolve_int(const char *text, int64_t *out)
{
    bool is_negative = *text == '-';
    const char *digits = text + (*text == '-' || *text == '+');
    bool is_int;
    if (digits[0] == '0' && digits[1] == 'x')
        is_int = parse_based_int(digits + 2, 16, out);
    else if (digits[0] == '0' && digits[1] == 'b')
        is_int = parse_based_int(digits + 2, 2, out);
    else if (digits[0] == '0' && digits[1] != '\0')
        is_int = parse_based_int(digits + 1, 8, out); /* 017 is fifteen there; 08 is a string */
    else
        is_int = parse_based_int(digits, 10, out);
    if (is_int && is_negative)
        *out = -*out;
    return is_int;
}

/* [+-] digits [. digits] [e [+-] digits], with at least one digit and a dot or an exponent. */
static bool resolve_float(const char *text, double *out)
{
    char clean[64];
    size_t n = 0;
    bool has_digit = false, has_mark = false;
    for (const char *c = text; *c; c++) {
        if (*c == '_')
            continue;
        if (!strchr("+-.eE0123456789", *c) || n + 1 >= sizeof clean)
            return false;
        has_digit = has_digit || isdigit((unsigned char)*c);
        has_mark = has_mark || *c == '.' || *c == 'e' || *c == 'E';
        clean[n++] = *c;
    }
    clean[n] = '\0';
    return has_digit && has_mark && rc_parse_real(clean, out);
}

static bool resolve_special_float(const char *text, double *out)
{
    static const char *const infinite[] = {".inf", ".Inf", ".INF", NULL};
    static const char *const none[] = {".nan", ".NaN", ".NAN", NULL};
    bool is_negative = *text == '-';
    const char *word = text + (*text == '-' || *text == '+');
    if (is_one_of(word, infinite))
        *out = is_negative ? -INFINITY : INFINITY;
    else if (is_one_of(text, none))
        *out = NAN;
    else
        return false;
    return true;
}

static void resolve_word(rc_doc *node)
{
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL", NULL};
    static const char *const yes[] = {"true", "True", "TRUE", "yes", "Yes",
                                      "YES",  "on",   "On",   "ON",  NULL};
    static const char *const no[] = {"false", "False", "FALSE", "no",  "No",
                                     "NO",    "off",   "Off",   "OFF", NULL};
    bool is_yes = is_one_of(node->text, yes);
    if (is_one_of(node->text, nulls)) {
        node->kind = RC_DOC_NULL;
    } else if (is_yes || is_one_of(node->text, no)) {
        node->kind = RC_DOC_BOOL;
        node->i = is_yes;
    }
}

static void resolve_number(rc_doc *node)
{
    if (resolve_int(node->text, &node->i)) {
        node->kind = RC_DOC_INT;
        node->f = (double)node->i;
    } else if (resolve_special_float(node->text, &node->f) ||
               resolve_float(node->text, &node->f)) {
        node->kind = RC_DOC_FLOAT;
    }
}

/* The first byte and the length tell most scalars apart: no word is longer than "false". */
void rc_doc_resolve_scalar(rc_doc *node)
{
    node->kind = RC_DOC_STRING;
    if (node->is_quoted || strlen(node->text) != node->n_bytes)
        return;
    if (*node->text && strchr("+-.0123456789", *node->text))
        resolve_number(node);
    else if (node->n_bytes < sizeof "false")
        resolve_word(node);
}

static void print_scalar(const rc_doc *node, FILE *to)
{
    char safe[4096];
    switch (node->kind) {
    case RC_DOC_NULL:
        fputs("null", to);
        break;
    case RC_DOC_BOOL:
        fputs(node->i ? "true" : "false", to);
        break;
    case RC_DOC_INT:
        fprintf(to, "%" PRId64, node->i);
        break;
    case RC_DOC_FLOAT:
        fprintf(to, "%.17g", node->f);
        break;
    case RC_DOC_STRING:
        fprintf(to, "\"%s\"", rc_text_printable(node->text, node->n_bytes, safe, sizeof safe));
        break;
    case RC_DOC_LIST:
    case RC_DOC_MAP:
        fprintf(to, "%s of %zu", node->kind == RC_DOC_LIST ? "list" : "map", node->n_children);
        break;
    }
}

static void print_node(const rc_doc *node, int depth, FILE *to)
{
    char safe[512];
    fprintf(to, "%*s", depth * 2, "");
    if (node->key)
        fprintf(to, "%s: ", rc_text_printable(node->key, strlen(node->key), safe, sizeof safe));
    print_scalar(node, to);
    fprintf(to, "   # %d:%d\n", node->where.line, node->where.col);
    for (const rc_doc *child = node->child; child; child = child->next)
        print_node(child, depth + 1, to);
}

void rc_doc_print(const rc_doc *doc, FILE *to)
{
    print_node(doc, 0, to);
}

static void write_number(double value, FILE *to)
{
    char buf[40];
    snprintf(buf, sizeof buf, "%.17g", value);
    if (strpbrk(buf, "n")) /* nan, inf: JSON has neither */
        fputs("null", to);
    else
        fprintf(to, "%s%s", buf, strpbrk(buf, ".e") ? "" : ".0");
}

void rc_doc_write_json(const rc_doc *value, FILE *to)
{
    switch (value->kind) {
    case RC_DOC_NULL:
        fputs("null", to);
        return;
    case RC_DOC_BOOL:
        fputs(value->i ? "true" : "false", to);
        return;
    case RC_DOC_INT:
        fprintf(to, "%" PRId64, value->i);
        return;
    case RC_DOC_FLOAT:
        write_number(value->f, to);
        return;
    case RC_DOC_STRING:
        rc_json_write_string(value->text, to);
        return;
    case RC_DOC_LIST:
    case RC_DOC_MAP:
        break;
    }
    fputc(value->kind == RC_DOC_MAP ? '{' : '[', to);
    for (const rc_doc *item = value->child; item; item = item->next) {
        if (value->kind == RC_DOC_MAP) {
            rc_json_write_string(item->key, to);
            fputs(": ", to);
        }
        rc_doc_write_json(item, to);
        fputs(item->next ? ", " : "", to);
    }
    fputc(value->kind == RC_DOC_MAP ? '}' : ']', to);
}
