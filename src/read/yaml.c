/* read/yaml.c — one YAML document as rc_doc, with the position of every key and value.
 *
 * takes  libfyaml's events, which carry byte offsets
 * gives  a tree whose aliases and merge keys are expanded, as PyYAML would hand it to Megatron
 * next   config/ reads the tree; nothing later parses text
 *
 * libfyaml bounds its own recursion; what it leaves to us is bounded here: nesting, the number
 * of values, and the values that aliases multiply ("billion laughs").
 */
#include <recompute/read.h>

#include "base/nodes.h"
#include "base/source.h"
#include "base/text.h"

#include <libfyaml.h>
#include <string.h>

enum {
    MAX_ANCHORS = 1024,
    MAX_ALIASED_NODES = 50 * 1000,
    MAX_MERGE_COMPARES = 10 * 1000 * 1000
};

typedef struct frame {
    rc_doc *node;    /* the list or map being filled */
    const char *key; /* MAP: the key whose value comes next, else NULL */
    rc_where key_where;
} frame;

typedef struct anchor {
    const char *name;
    const rc_doc *node;
} anchor;

typedef struct yaml {
    rc_source source;
    rc_nodes nodes;
    frame stack[RC_READ_MAX_DEPTH + 1];
    size_t depth;
    rc_doc *root;
    anchor *anchors;
    size_t n_anchors;
    size_t n_aliased;
    rc_where last; /* of the token before, for values that have none */
} yaml;

static rc_where where_of(yaml *y, struct fy_token *token)
{
    const struct fy_mark *from = token ? fy_token_start_mark(token) : NULL;
    const struct fy_mark *to = token ? fy_token_end_mark(token) : NULL;
    if (!from)
        return y->last;
    size_t n = to && to->input_pos > from->input_pos ? to->input_pos - from->input_pos : 0;
    size_t at = from->input_pos;
    char before = at > 0 && at <= y->source.n_bytes ? y->source.bytes[at - 1] : '\0';
    if (before == '*' ||
        ((before == '"' || before == '\'') && fy_token_scalar_style(token) != FYSS_PLAIN)) {
        at--; /* libfyaml points behind a quote and behind the * of an alias */
        n += before == '*' ? 1 : 2;
    }
    return y->last = rc_source_where(&y->source, at, n);
}

static rc_code note_anchor(yaml *y, struct fy_event *event, const rc_doc *node, rc_error *err)
{
    struct fy_token *token = fy_event_get_anchor_token(event);
    if (!token)
        return RC_OK;
    if (y->n_anchors == MAX_ANCHORS)
        return RC_FAIL(err, RC_E_RANGE, node->where, "more than %d anchors", MAX_ANCHORS);
    if (!y->anchors)
        RC_TRY(RC_NEW(y->nodes.mem, &y->anchors, MAX_ANCHORS, err));
    size_t n = 0;
    const char *name = fy_token_get_text(token, &n);
    anchor *a = &y->anchors[y->n_anchors++];
    a->node = node;
    return rc_nodes_text(&y->nodes, name ? name : "", name ? n : 0, &a->name, err);
}

/* "tag:yaml.org,2002:str" and "!mine" as written in full. */
static rc_code note_tag(yaml *y, struct fy_event *event, rc_doc *node, rc_error *err)
{
    struct fy_token *token = fy_event_get_tag_token(event);
    const char *tag = token ? fy_token_get_text0(token) : NULL;
    return tag ? rc_nodes_text(&y->nodes, tag, strlen(tag), &node->tag, err) : RC_OK;
}

static void resolve(rc_doc *node)
{
    static const char core[] = "tag:yaml.org,2002:";
    if (node->tag && strncmp(node->tag, core, sizeof core - 1) == 0) {
        const char *type = node->tag + sizeof core - 1;
        bool is_text = strcmp(type, "str") == 0 || strncmp(type, "python/", 7) == 0;
        node->is_quoted = is_text || strcmp(type, "binary") == 0;
    }
    rc_doc_resolve_scalar(node);
}

/* Hangs a finished or opened node where the parser stands. */
static rc_code place(yaml *y, rc_doc *node, rc_error *err)
{
    if (y->depth == 0) {
        y->root = node;
        return RC_OK;
    }
    frame *top = &y->stack[y->depth - 1];
    if (top->node->kind == RC_DOC_LIST) {
        rc_doc_add(top->node, NULL, RC_NOWHERE, node);
        return RC_OK;
    }
    if (!top->key) {
        if (node->kind == RC_DOC_LIST || node->kind == RC_DOC_MAP || node->n_bytes == 0)
            return RC_FAIL(err, RC_E_INPUT, node->where, "a key must be a single word");
        top->key = node->text;
        top->key_where = node->where;
        if (strlen(node->text) != node->n_bytes)
            return RC_FAIL(err, RC_E_INPUT, node->where, "a key may not hold a NUL byte");
        return RC_OK;
    }
    rc_doc_add(top->node, top->key, top->key_where, node);
    top->key = NULL;
    return RC_OK;
}

static rc_code on_scalar(yaml *y, struct fy_event *event, rc_error *err)
{
    struct fy_token *token = fy_event_get_token(event);
    size_t n = 0;
    const char *text = token ? fy_token_get_text(token, &n) : NULL;
    rc_doc *node;
    RC_TRY(rc_nodes_add_string(&y->nodes, where_of(y, token), text ? text : "", text ? n : 0,
                               &node, err));
    node->is_quoted = token && fy_token_scalar_style(token) != FYSS_PLAIN;
    RC_TRY(note_tag(y, event, node, err));
    RC_TRY(note_anchor(y, event, node, err));
    resolve(node);
    return place(y, node, err);
}

static rc_code on_start(yaml *y, struct fy_event *event, rc_doc_kind kind, rc_error *err)
{
    rc_doc *node;
    rc_where where = where_of(y, fy_event_get_token(event));
    if (where.n_cols > 1)
        where.n_cols = 1;
    if (y->depth >= RC_READ_MAX_DEPTH)
        return RC_FAIL(err, RC_E_RANGE, where, "nested deeper than %d levels",
                       RC_READ_MAX_DEPTH);
    RC_TRY(rc_nodes_add(&y->nodes, kind, where, &node, err));
    RC_TRY(note_tag(y, event, node, err));
    RC_TRY(note_anchor(y, event, node, err));
    RC_TRY(place(y, node, err));
    y->stack[y->depth++] = (frame){.node = node};
    return RC_OK;
}

/* Adds the children of `from` that `map` lacks. They are copies made for this alias already. */
static rc_code merge_map(rc_doc *map, rc_doc *from, rc_error *err)
{
    if (from->kind != RC_DOC_MAP)
        return RC_FAIL(err, RC_E_INPUT, from->where,
                       "<< takes a map or a list of maps, as in <<: *defaults");
    if (map->n_children > 0 && from->n_children > MAX_MERGE_COMPARES / map->n_children)
        return RC_FAIL(err, RC_E_RANGE, from->where, "the merged maps are too large");
    rc_doc *next;
    for (rc_doc *node = from->child; node; node = next) {
        next = node->next;
        if (!rc_doc_find(map, node->key))
            rc_doc_add(map, node->key, node->key_where, node);
    }
    return RC_OK;
}

static rc_code merge_keys(rc_doc *map, rc_error *err)
{
    rc_doc *merge = map->child;
    while (merge && strcmp(merge->key, "<<") != 0)
        merge = merge->next;
    if (!merge)
        return RC_OK;
    rc_doc_remove(map, merge);
    if (merge->kind != RC_DOC_LIST)
        return merge_map(map, merge, err);
    rc_doc *next;
    for (rc_doc *one = merge->child; one; one = next) {
        next = one->next;
        RC_TRY(merge_map(map, one, err));
    }
    return RC_OK;
}

static rc_code on_end(yaml *y, rc_error *err)
{
    rc_doc *node = y->stack[--y->depth].node;
    if (node->kind != RC_DOC_MAP)
        return RC_OK;
    RC_TRY(rc_doc_check_keys(node, y->nodes.mem, err));
    RC_TRY(merge_keys(node, err));
    const rc_doc *target = rc_doc_find(node, "_target_");
    if (target && target->kind == RC_DOC_STRING)
        node->tag = target->text;
    return RC_OK;
}

static rc_code copy_tree(yaml *y, const rc_doc *from, size_t depth, rc_doc **out, rc_error *err)
{
    if (++y->n_aliased > MAX_ALIASED_NODES)
        return RC_FAIL(err, RC_E_RANGE, y->last,
                       "aliases multiply to more than %d values; write them out",
                       MAX_ALIASED_NODES);
    if (depth > RC_READ_MAX_DEPTH)
        return RC_FAIL(err, RC_E_RANGE, y->last, "aliases nest deeper than %d levels",
                       RC_READ_MAX_DEPTH);
    RC_TRY(rc_nodes_add(&y->nodes, from->kind, from->where, out, err));
    rc_doc *copy = *out;
    *copy = *from;
    copy->child = copy->last = copy->next = NULL;
    copy->n_children = 0;
    for (const rc_doc *child = from->child; child; child = child->next) {
        rc_doc *node;
        RC_TRY(copy_tree(y, child, depth + 1, &node, err));
        rc_doc_add(copy, child->key, child->key_where, node);
    }
    return RC_OK;
}

static bool is_open(const yaml *y, const rc_doc *node)
{
    for (size_t i = 0; i < y->depth; i++)
        if (y->stack[i].node == node)
            return true;
    return false;
}

static rc_code on_alias(yaml *y, struct fy_event *event, rc_error *err)
{
    struct fy_token *token = fy_event_get_token(event);
    size_t n = 0;
    const char *name = token ? fy_token_get_text(token, &n) : NULL;
    rc_where where = where_of(y, token);
    char safe[64];
    rc_text_printable(name ? name : "", name ? n : 0, safe, sizeof safe);
    size_t i = y->n_anchors;
    while (i > 0 && !(strlen(y->anchors[i - 1].name) == n && name &&
                      memcmp(y->anchors[i - 1].name, name, n) == 0))
        i--;
    if (i == 0)
        return RC_FAIL(err, RC_E_INPUT, where, "*%s refers to no anchor; &%s must stand before",
                       safe, safe);
    if (is_open(y, y->anchors[i - 1].node))
        return RC_FAIL(err, RC_E_INPUT, where, "*%s contains itself", safe);
    rc_doc *copy;
    RC_TRY(copy_tree(y, y->anchors[i - 1].node, y->depth, &copy, err));
    return place(y, copy, err);
}

static rc_code on_event(yaml *y, struct fy_event *event, rc_error *err)
{
    switch (event->type) {
    case FYET_DOCUMENT_START:
        if (y->root)
            return RC_FAIL(err, RC_E_INPUT, where_of(y, event->document_start.document_start),
                           "a second document begins; one file holds one configuration");
        return RC_OK;
    case FYET_SCALAR:
        return on_scalar(y, event, err);
    case FYET_ALIAS:
        return on_alias(y, event, err);
    case FYET_SEQUENCE_START:
        return on_start(y, event, RC_DOC_LIST, err);
    case FYET_MAPPING_START:
        return on_start(y, event, RC_DOC_MAP, err);
    case FYET_SEQUENCE_END:
    case FYET_MAPPING_END:
        return on_end(y, err);
    case FYET_NONE:
    case FYET_STREAM_START:
    case FYET_STREAM_END:
    case FYET_DOCUMENT_END:
        break;
    }
    return RC_OK;
}

/* libfyaml counts lines from 1 and columns in characters. */
static rc_where where_of_error(yaml *y, const struct fy_diag_error *error)
{
    const rc_source *s = &y->source;
    size_t at = 0;
    for (int line = 1; line < error->line && at < s->n_bytes; line++) {
        const char *end = memchr(s->bytes + at, '\n', s->n_bytes - at);
        at = end ? (size_t)(end - s->bytes) + 1 : s->n_bytes;
    }
    for (int col = 1; col < error->column && at < s->n_bytes && s->bytes[at] != '\n'; col++)
        do
            at++;
        while (at < s->n_bytes && ((unsigned char)s->bytes[at] & 0xC0) == 0x80);
    return rc_source_where(&y->source, at, 1);
}

/* The first tab in the white space that begins a line at or after the error's, or 0 columns. */
static rc_where find_tab(yaml *y, rc_where where)
{
    for (const char *line = where.text; line && *line;) {
        size_t n_indent = strspn(line, " \t");
        const char *tab = memchr(line, '\t', n_indent);
        if (tab)
            return rc_source_where(&y->source, (size_t)(tab - y->source.bytes), 1);
        const char *end = strchr(line, '\n');
        if (line != where.text || !end)
            break;
        line = end + 1; /* a wrong tab is often noticed on the line before */
    }
    return RC_NOWHERE;
}

/* What to do about the faults that people make most; `msg` is libfyaml's. */
static const char *find_advice(const char *msg)
{
    static const struct {
        const char *msg, *advice;
    } rows[] = {
        {"invalid value after mapping", "is the colon of `key: value` missing?"},
        {"invalid multiline plain key",
         "a colon needs a space behind it, and the keys of one map begin in one column"},
        {"invalid indentation in mapping", "the keys of one map begin in one column"},
        {"invalid scalar at the end of block sequence",
         "the lines of one list begin with `- ` in one column"},
        {"invalid nested block mapping", "a value with a colon and a space in it needs quotes"},
        {"plain scalar cannot start with", "put the value in quotes"},
        {"missing comma in flow mapping", "is a { further up not closed?"},
        {"flow sequence without a closing bracket", "the [ stands further up"},
        {"flow mapping without a closing brace", "the { stands further up"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strncmp(msg, rows[i].msg, strlen(rows[i].msg)) == 0)
            return rows[i].advice;
    return NULL;
}

static rc_code syntax_error(yaml *y, struct fy_diag *diag, rc_error *err)
{
    void *iterator = NULL;
    const struct fy_diag_error *error = fy_diag_errors_iterate(diag, &iterator);
    if (!error)
        return RC_FAIL(err, RC_E_INPUT, y->last, "this is no YAML");
    rc_where where = where_of_error(y, error);
    rc_where tab = find_tab(y, where);
    if (tab.line)
        return RC_FAIL(err, RC_E_INPUT, tab, "a tab indents this line; YAML takes spaces only");
    char safe[160];
    const char *msg = error->msg ? error->msg : "syntax error";
    const char *advice = find_advice(msg);
    return RC_FAIL(err, RC_E_INPUT, where, "not valid YAML: %s%s%s",
                   rc_text_printable(msg, strlen(msg), safe, sizeof safe), advice ? "; " : "",
                   advice ? advice : "");
}

static void say_nothing(struct fy_diag *diag, void *user, const char *bytes, size_t n)
{
    (void)diag, (void)user, (void)bytes, (void)n;
}

static rc_code read_events(yaml *y, struct fy_parser *parser, struct fy_diag *diag,
                           rc_error *err)
{
    size_t start = rc_source_start(&y->source);
    if (fy_parser_set_string(parser, y->source.bytes, y->source.n_bytes) != 0)
        return RC_FAIL(err, RC_E_MEMORY, RC_NOWHERE, "the host has no memory for the parser");
    y->last = rc_source_where(&y->source, start, 0);
    bool is_complete = false;
    rc_code code = RC_OK;
    struct fy_event *event;
    while (code == RC_OK && (event = fy_parser_parse(parser)) != NULL) {
        is_complete = event->type == FYET_STREAM_END;
        code = on_event(y, event, err);
        fy_parser_event_free(parser, event);
    }
    if (code == RC_OK && (!is_complete || fy_parser_get_stream_error(parser)))
        return syntax_error(y, diag, err);
    return code;
}

/* libfyaml reads far ahead before it hands out the first of many open brackets. A text with more
 * of them than any configuration has, wherever they stand, is refused first. */
static rc_code check_brackets(yaml *y, rc_error *err)
{
    enum { MAX_OPEN = 4096 };
    const char *bytes = y->source.bytes;
    size_t n_open = 0, first = 0;
    for (size_t at = strcspn(bytes, "[{"); bytes[at];) {
        bool is_open = bytes[at] == '[' || bytes[at] == '{';
        if (is_open && n_open == RC_READ_MAX_DEPTH)
            first = at;
        n_open = is_open ? n_open + 1 : n_open - (n_open > 0);
        if (n_open > MAX_OPEN)
            return RC_FAIL(err, RC_E_RANGE, rc_source_where(&y->source, first, 1),
                           "nested deeper than %d levels", RC_READ_MAX_DEPTH);
        at++;
        at += strcspn(bytes + at, "[]{}");
    }
    return RC_OK;
}

rc_code rc_yaml_read(const char *path, const char *bytes, size_t n_bytes, rc_arena *mem,
                     rc_doc **out, rc_error *err)
{
    yaml y = {.nodes = {.mem = mem}};
    RC_TRY(rc_source_open(path, bytes, n_bytes, mem, &y.source, err));
    RC_TRY(check_brackets(&y, err));
    struct fy_diag_cfg diag_cfg;
    fy_diag_cfg_default(&diag_cfg);
    diag_cfg.fp = NULL;
    diag_cfg.output_fn = say_nothing;
    struct fy_diag *diag = fy_diag_create(&diag_cfg);
    if (!diag)
        return RC_FAIL(err, RC_E_MEMORY, RC_NOWHERE, "the host has no memory for the parser");
    fy_diag_set_collect_errors(diag, true);
    struct fy_parse_cfg parse_cfg = {
        .flags = FYPCF_QUIET | FYPCF_COLLECT_DIAG | FYPCF_SLOPPY_FLOW_INDENTATION |
                 FYPCF_ALLOW_DUPLICATE_KEYS | FYPCF_JSON_NONE,
        .diag = diag,
    };
    struct fy_parser *parser = fy_parser_create(&parse_cfg);
    rc_code code =
        parser ? read_events(&y, parser, diag, err)
               : RC_FAIL(err, RC_E_MEMORY, RC_NOWHERE, "the host has no memory for the parser");
    fy_parser_destroy(parser);
    fy_diag_destroy(diag);
    if (code == RC_OK && !y.root)
        return rc_nodes_add(&y.nodes, RC_DOC_MAP, y.last, out, err);
    *out = y.root;
    return code;
}
