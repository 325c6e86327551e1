/* override.c — `key=value` words in Hydra's override grammar as rc_doc.
 *
 * takes  words as the shell leaves them
 * gives  one map of nested maps, later words winning
 * next   config/
 *
 * The grammar is Hydra's (its documentation, "Basic override syntax"): values are words, quoted
 * strings, [lists] and {maps}; in unquoted text a backslash escapes one of \ ( ) [ ] { } : = ,
 * and white space; in quoted text only the quote and the backslash. What Hydra does besides,
 * sweeps (a,b) and functions (range(3)), starts several runs or code and is refused by name.
 */
#include "args/override.h"

#include "base/nodes.h"
#include "base/source.h"

#include <recompute/args.h>

#include <string.h>

typedef struct value_reader {
    rc_source source; /* of one word */
    rc_nodes *nodes;
    rc_where place; /* file and line of the word */
    size_t at;
    char *text; /* scratch, as large as the word */
} value_reader;

static rc_where where_at(value_reader *r, size_t from, size_t n_cols)
{
    return (rc_where){.file = r->place.file,
                      .line = r->place.line,
                      .col = r->place.col + (int)from,
                      .n_cols = (int)n_cols,
                      .text = r->place.text ? r->place.text : r->source.bytes};
}

static char peek(const value_reader *r)
{
    return r->source.bytes[r->at];
}

static void skip_space(value_reader *r)
{
    r->at += strspn(r->source.bytes + r->at, " \t\n");
}

static rc_code read_quoted(value_reader *r, rc_doc **out, rc_error *err)
{
    size_t from = r->at, n = 0;
    char quote = r->source.bytes[r->at++];
    while (peek(r) != quote) {
        if (peek(r) == '\0')
            return RC_FAIL(err, RC_E_INPUT, where_at(r, from, 1),
                           "this quote is not closed; is one lost in the shell's quoting?");
        char next = r->source.bytes[r->at + 1];
        if (peek(r) == '\\' && (next == quote || next == '\\'))
            r->at++;
        r->text[n++] = r->source.bytes[r->at++];
    }
    r->at++;
    RC_TRY(
        rc_nodes_add_string(r->nodes, where_at(r, from, r->at - from), r->text, n, out, err));
    (*out)->is_quoted = true;
    return RC_OK;
}

/* Up to one of the bytes in `ends`. White space inside stays, around it goes. "${...}" is taken
 * whole: config/ resolves interpolations. */
static rc_code read_plain(value_reader *r, const char *ends, rc_doc **out, rc_error *err)
{
    size_t from = r->at, n = 0, n_kept = 0;
    bool has_escape = false;
    int n_braces = 0;
    while (peek(r) && (n_braces > 0 || !strchr(ends, peek(r)))) {
        char c = peek(r), next = r->source.bytes[r->at + 1];
        if (c == '$' && next == '{')
            n_braces++;
        if (c == '}' && n_braces > 0)
            n_braces--;
        if (n_braces == 0 && strchr("([{", c))
            return RC_FAIL(err, RC_E_INPUT, where_at(r, r->at, 1),
                           "%c inside a word; functions are not evaluated here, and as text it "
                           "needs quotes or a backslash",
                           c);
        bool is_escape = c == '\\' && next && strchr("\\()[]{}:=, \t", next);
        has_escape = has_escape || is_escape;
        r->at += is_escape;
        r->text[n++] = r->source.bytes[r->at++];
        if (is_escape || (c != ' ' && c != '\t' && c != '\n'))
            n_kept = n;
    }
    if (n_kept == 0)
        return RC_FAIL(err, RC_E_INPUT, where_at(r, from, 1), "a value is expected here");
    RC_TRY(rc_nodes_add_string(r->nodes, where_at(r, from, n_kept), r->text, n_kept, out, err));
    (*out)->is_quoted = has_escape;
    rc_doc_resolve_word(*out);
    return RC_OK;
}

static rc_code read_value(value_reader *r, int depth, const char *ends, rc_doc **out,
                          rc_error *err);

static rc_code read_map_key(value_reader *r, rc_doc **key, rc_error *err)
{
    skip_space(r);
    if (peek(r) == '"' || peek(r) == '\'')
        RC_TRY(read_quoted(r, key, err));
    else
        RC_TRY(read_plain(r, ":,}", key, err));
    skip_space(r);
    if (peek(r) != ':')
        return RC_FAIL(err, RC_E_INPUT, where_at(r, r->at, 1),
                       "a colon is expected after the key");
    r->at++;
    return RC_OK;
}

/* The cursor stands on [ or {. */
static rc_code read_nested(value_reader *r, int depth, rc_doc **out, rc_error *err)
{
    size_t from = r->at;
    bool is_map = peek(r) == '{';
    char close = is_map ? '}' : ']';
    const char *ends = is_map ? ",}" : ",]";
    if (depth >= RC_READ_MAX_DEPTH)
        return RC_FAIL(err, RC_E_RANGE, where_at(r, from, 1), "nested deeper than %d levels",
                       RC_READ_MAX_DEPTH);
    RC_TRY(rc_nodes_add(r->nodes, is_map ? RC_DOC_MAP : RC_DOC_LIST, where_at(r, from, 1), out,
                        err));
    r->at++;
    skip_space(r);
    while (peek(r) != close) {
        rc_doc *key = NULL, *node;
        if (is_map)
            RC_TRY(read_map_key(r, &key, err));
        RC_TRY(read_value(r, depth + 1, ends, &node, err));
        rc_doc_add(*out, key ? key->text : NULL, key ? key->where : RC_NOWHERE, node);
        skip_space(r);
        if (peek(r) == ',')
            r->at++;
        else if (peek(r) != close)
            return RC_FAIL(err, RC_E_INPUT, where_at(r, from, r->at - from),
                           "this %s has no closing %c", is_map ? "map" : "list", close);
        skip_space(r);
    }
    r->at++;
    (*out)->where.n_cols = (int)(r->at - from);
    return is_map ? rc_doc_check_keys(*out, r->nodes->mem, err) : RC_OK;
}

static rc_code read_value(value_reader *r, int depth, const char *ends, rc_doc **out,
                          rc_error *err)
{
    skip_space(r);
    char c = peek(r);
    if (c == '[' || c == '{')
        return read_nested(r, depth, out, err);
    if (c == '"' || c == '\'')
        return read_quoted(r, out, err);
    return read_plain(r, ends, out, err);
}

/* What follows the equals sign, to the end of the word. */
static rc_code read_whole_value(value_reader *r, rc_doc **out, rc_error *err)
{
    size_t from = r->at;
    skip_space(r);
    if (peek(r) == '\0') {
        RC_TRY(rc_nodes_add_string(r->nodes, where_at(r, from, 0), "", 0, out, err));
        (*out)->is_quoted = true;
        return RC_OK;
    }
    RC_TRY(read_value(r, 0, ",", out, err));
    skip_space(r);
    if (peek(r) == ',')
        return RC_FAIL(err, RC_E_INPUT, where_at(r, r->at, 1),
                       "a comma outside brackets would be a sweep of several runs; a list is "
                       "written [a,b]");
    if (peek(r))
        return RC_FAIL(err, RC_E_INPUT, where_at(r, r->at, 1), "nothing more is expected here");
    return RC_OK;
}

static rc_doc *find_child(rc_doc *map, const char *key)
{
    for (rc_doc *node = map->child; node; node = node->next)
        if (strcmp(node->key, key) == 0)
            return node;
    return NULL;
}

/* Hangs `node` under `key`, replacing what was there; two maps are merged. */
static void put(rc_doc *map, const char *key, rc_where key_where, rc_doc *node)
{
    rc_doc *old = find_child(map, key);
    if (old && old->kind == RC_DOC_MAP && node->kind == RC_DOC_MAP) {
        rc_doc *next;
        for (rc_doc *child = node->child; child; child = next) {
            next = child->next;
            put(old, child->key, child->key_where, child);
        }
        return;
    }
    if (old)
        rc_doc_remove(map, old);
    rc_doc_add(map, key, key_where, node);
}

/* Walks the parts of "a.b.c" from `from` to `end` and hangs `node` under the last. */
static rc_code put_path(value_reader *r, rc_doc *root, size_t from, size_t end, rc_doc *node,
                        rc_error *err)
{
    rc_doc *map = root;
    for (int depth = 0;; depth++) {
        const char *part = r->source.bytes + from;
        size_t n = strcspn(part, ".");
        if (from + n > end)
            n = end - from;
        rc_where where = where_at(r, from, n ? n : 1);
        if (n == 0)
            return RC_FAIL(err, RC_E_INPUT, where, "a name is expected here");
        if (depth >= RC_READ_MAX_DEPTH)
            return RC_FAIL(err, RC_E_RANGE, where, "more than %d names", RC_READ_MAX_DEPTH);
        const char *key;
        RC_TRY(rc_nodes_text(r->nodes, part, n, &key, err));
        from += n;
        if (from == end) {
            put(map, key, where, node);
            return RC_OK;
        }
        from++; /* the dot */
        rc_doc *inner = find_child(map, key);
        if (!inner || inner->kind != RC_DOC_MAP) {
            RC_TRY(rc_nodes_add(r->nodes, RC_DOC_MAP, where, &inner, err));
            put(map, key, where, inner);
        }
        map = inner;
    }
}

bool rc_override_is(const char *word)
{
    if (*word == '~')
        return word[1] != '/' && word[1] != '\0'; /* ~/file is a path */
    word += *word == '+';
    word += *word == '+';
    size_t n = strcspn(word, "=/ \t\n");
    return n > 0 && word[n] == '=' && *word != '-' && *word != '.';
}

rc_code rc_override_add(rc_nodes *nodes, rc_doc *root, const char *word, rc_where at,
                        rc_error *err)
{
    value_reader r = {.nodes = nodes, .place = at};
    if (r.place.col == 0)
        r.place.col = 1;
    RC_TRY(rc_source_open(at.file, word, strlen(word), nodes->mem, &r.source, err));
    RC_TRY(RC_NEW(nodes->mem, &r.text, r.source.n_bytes + 1, err));
    const char *bytes = r.source.bytes;
    bool is_deleted = *bytes == '~';
    size_t from = is_deleted ? 1 : strspn(bytes, "+");
    size_t end = from + strcspn(bytes + from, "=");
    if (from > 2)
        return RC_FAIL(err, RC_E_INPUT, where_at(&r, 0, from),
                       "a key has at most two + in front");
    if (!is_deleted && bytes[end] != '=')
        return RC_FAIL(err, RC_E_INPUT, where_at(&r, 0, end),
                       "an override is written key=value");
    rc_doc *node;
    if (is_deleted) {
        RC_TRY(
            rc_nodes_add_string(nodes, where_at(&r, 0, r.source.n_bytes), "", 0, &node, err));
        node->kind = RC_DOC_NULL;
        node->tag = "~";
    } else {
        r.at = end + 1;
        RC_TRY(read_whole_value(&r, &node, err));
    }
    return put_path(&r, root, from, end, node, err);
}

rc_code rc_override_read(const char *const *words, size_t n_words, rc_arena *mem, rc_doc **out,
                         rc_error *err)
{
    rc_nodes nodes = {.mem = mem};
    RC_TRY(rc_nodes_add(&nodes, RC_DOC_MAP, (rc_where){.file = "command line"}, out, err));
    for (size_t i = 0; i < n_words; i++)
        RC_TRY(rc_override_add(&nodes, *out, words[i],
                               (rc_where){.file = "command line", .line = (int)i + 1}, err));
    return RC_OK;
}
