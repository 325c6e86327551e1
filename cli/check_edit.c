/* check_edit.c — `--write`: a fix written into the YAML file that it belongs to.
 *
 * An edit replaces the bytes of one value, found by its position; all else stays as it was.
 *
 * above  check_subject.c
 */
#include "check.h"

#include "base/file.h"
#include "base/text.h"

#include <recompute/read.h>

#include <stdlib.h>
#include <string.h>

enum { MAX_EDITS = 64 };

typedef struct edit {
    size_t at, n; /* bytes replaced */
    const char *text;
} edit;

typedef struct editor {
    const char *bytes;
    size_t n_bytes;
    edit edits[MAX_EDITS];
    size_t n_edits;
    rc_arena *mem;
    const char *path;
} editor;

static size_t line_start(const editor *ed, int line)
{
    size_t at = 0;
    for (int i = 1; i < line && at < ed->n_bytes; i++) {
        const char *stop = memchr(ed->bytes + at, '\n', ed->n_bytes - at);
        at = stop ? (size_t)(stop - ed->bytes) + 1 : ed->n_bytes;
    }
    return at;
}

static size_t offset_of(const editor *ed, rc_where where)
{
    return line_start(ed, where.line) + (size_t)(where.col - 1);
}

static rc_code add_edit(editor *ed, size_t at, size_t n, const char *text, rc_error *err)
{
    if (ed->n_edits == MAX_EDITS || at + n > ed->n_bytes)
        return RC_FAIL(err, RC_E_UNSUPPORTED, RC_NOWHERE, "%s: too many changes to write",
                       ed->path);
    ed->edits[ed->n_edits++] = (edit){at, n, text};
    return RC_OK;
}

/* Bytes of a quoted scalar or a flow list from its first byte, or 0 when it does not end. */
static size_t flow_length(const char *at, size_t n)
{
    int depth = 0;
    char quote = '\0';
    for (size_t i = 0; i < n; i++) {
        if (quote) {
            i += quote == '"' && at[i] == '\\';
            if (i < n && at[i] == quote)
                quote = '\0';
        } else if (at[i] == '"' || at[i] == '\'') {
            quote = at[i];
        } else if (at[i] == '[' || at[i] == '{') {
            depth++;
        } else if (at[i] == ']' || at[i] == '}') {
            depth--;
        }
        if (!quote && depth == 0)
            return i + 1;
    }
    return 0;
}

static rc_code cannot_edit(const rc_doc *node, rc_error *err)
{
    return RC_FAIL(err, RC_E_UNSUPPORTED, node->where,
                   "this form of a value cannot be edited in place; write the fix by hand");
}

static size_t after_colon(const editor *ed, const rc_doc *node)
{
    size_t at = offset_of(ed, node->key_where);
    const char *colon = at < ed->n_bytes ? memchr(ed->bytes + at, ':', ed->n_bytes - at) : NULL;
    return colon ? (size_t)(colon - ed->bytes) + 1 : ed->n_bytes;
}

/* `key: *name`: only this use of the anchor changes. */
static rc_code edit_alias(editor *ed, const rc_doc *node, const char *text, rc_error *err)
{
    size_t at = after_colon(ed, node);
    while (at < ed->n_bytes && (ed->bytes[at] == ' ' || ed->bytes[at] == '\t'))
        at++;
    if (at >= ed->n_bytes || ed->bytes[at] != '*')
        return cannot_edit(node, err);
    size_t n = 1;
    while (at + n < ed->n_bytes && !strchr(" \t\r\n,]}", ed->bytes[at + n]))
        n++;
    return add_edit(ed, at, n, text, err);
}

/* Does `&name` stand in front, so that other places mean this value too? */
static bool has_anchor(const editor *ed, size_t at)
{
    while (at > 0 && (ed->bytes[at - 1] == ' ' || ed->bytes[at - 1] == '\t'))
        at--;
    while (at > 0 && !strchr(" \t\n:&", ed->bytes[at - 1]))
        at--;
    return at > 0 && ed->bytes[at - 1] == '&';
}

static rc_code edit_scalar(editor *ed, const rc_doc *node, const char *text, rc_error *err)
{
    size_t at = offset_of(ed, node->where), n = node->n_bytes;
    const char *spaced;
    if (node->key && at < offset_of(ed, node->key_where))
        return edit_alias(ed, node, text, err);
    if (at <= ed->n_bytes && has_anchor(ed, at))
        return RC_FAIL(err, RC_E_UNSUPPORTED, node->where,
                       "other places share this value by its anchor; write the fix by hand");
    if (n == 0 && !node->is_quoted) { /* "key:" and nothing */
        RC_TRY(rc_arena_printf(ed->mem, &spaced, err, " %s", text));
        return add_edit(ed, after_colon(ed, node), 0, spaced, err);
    }
    if (at < ed->n_bytes && (ed->bytes[at] == '"' || ed->bytes[at] == '\''))
        n = flow_length(ed->bytes + at, ed->n_bytes - at);
    else if (at + n > ed->n_bytes || memcmp(ed->bytes + at, node->text, n) != 0)
        return cannot_edit(node, err);
    return n ? add_edit(ed, at, n, text, err) : cannot_edit(node, err);
}

static bool has_item(const rc_doc *list, const rc_doc *item)
{
    for (const rc_doc *one = list->child; one; one = one->next)
        if (item->text && strcmp(one->text, item->text) == 0)
            return true;
    return false;
}

/* Is every item of `value` in the file already, so that lines only have to go? */
static bool is_shortened(const rc_doc *node, const rc_doc *value)
{
    if (value->kind != RC_DOC_LIST || !value->child)
        return false;
    for (const rc_doc *one = value->child; one; one = one->next)
        if (!has_item(node, one))
            return false;
    return true;
}

/* A list of as many items: each that differs is a change of its own, so that comments stay. */
static rc_code edit_items(editor *ed, const rc_doc *node, const rc_doc *value, rc_error *err)
{
    const rc_doc *to = value->child;
    for (const rc_doc *item = node->child; item; item = item->next, to = to->next) {
        if (item->kind != RC_DOC_STRING)
            return cannot_edit(node, err);
        if (strcmp(item->text, to->text) != 0)
            RC_TRY(edit_scalar(ed, item, to->text, err));
    }
    return RC_OK;
}

/* "- a" lines: those of items that go are deleted; else the value moves behind the key as a flow
 * list and all lines go. */
static rc_code edit_block_list(editor *ed, const rc_doc *node, const rc_doc *value,
                               const char *text, rc_error *err)
{
    const char *spaced;
    bool is_shorter = is_shortened(node, value);
    for (const rc_doc *item = node->child; item; item = item->next)
        if (item->kind == RC_DOC_LIST || item->kind == RC_DOC_MAP)
            return cannot_edit(node, err);
    RC_TRY(rc_arena_printf(ed->mem, &spaced, err, " %s", text));
    if (!is_shorter)
        RC_TRY(add_edit(ed, after_colon(ed, node), 0, spaced, err));
    for (const rc_doc *item = node->child; item; item = item->next) {
        if (is_shorter && has_item(value, item))
            continue;
        size_t at = line_start(ed, item->where.line);
        RC_TRY(add_edit(ed, at, line_start(ed, item->where.line + 1) - at, "", err));
    }
    return RC_OK;
}

static rc_code edit_value(editor *ed, const rc_doc *node, const rc_doc *value, const char *text,
                          rc_error *err)
{
    if (node->kind == RC_DOC_MAP)
        return cannot_edit(node, err);
    if (node->kind != RC_DOC_LIST)
        return edit_scalar(ed, node, text, err);
    if (value->kind == RC_DOC_LIST && value->n_children == node->n_children)
        return edit_items(ed, node, value, err);
    size_t at = offset_of(ed, node->where);
    if (at >= ed->n_bytes || ed->bytes[at] != '[')
        return edit_block_list(ed, node, value, text, err);
    size_t n = flow_length(ed->bytes + at, ed->n_bytes - at);
    return n ? add_edit(ed, at, n, text, err) : cannot_edit(node, err);
}

/* Did a merge key (`<<: *defaults`) bring this into the map? Anchors stand in front of their uses. */
static bool is_merged(const editor *ed, const rc_doc *map, const rc_doc *node)
{
    return offset_of(ed, node->key_where) < offset_of(ed, map->where);
}

/* The setting of the map's own that a new one is best put in front of: one with the same first word
 * in its name, else the first. */
static const rc_doc *find_neighbour(const editor *ed, const rc_doc *map, const char *name)
{
    const rc_doc *first = NULL;
    size_t n = strcspn(name, "_") + 1;
    for (const rc_doc *node = map->child; node; node = node->next) {
        if (is_merged(ed, map, node))
            continue;
        if (strncmp(node->key, name, n) == 0)
            return node;
        first = first ? first : node;
    }
    return first;
}

/* A new line in the section, indented like those beside it; in braces a new member. */
static rc_code insert_value(editor *ed, const rc_doc *file, const char *key, const char *text,
                            rc_error *err)
{
    const char *dot = strrchr(key, '.');
    const char *section, *line;
    RC_TRY(rc_arena_copy(ed->mem, key, dot ? (size_t)(dot - key) : 0, &section, err));
    const rc_doc *map = dot ? rc_doc_find_path(file, section) : file;
    const char *name = dot ? dot + 1 : key;
    const rc_doc *beside =
        map && map->kind == RC_DOC_MAP ? find_neighbour(ed, map, name) : NULL;
    size_t at = beside ? offset_of(ed, beside->key_where) : 0;
    bool is_flow = map && map->kind == RC_DOC_MAP && offset_of(ed, map->where) < ed->n_bytes &&
                   ed->bytes[offset_of(ed, map->where)] == '{';
    if (!beside)
        return RC_FAIL(err, RC_E_UNSUPPORTED, RC_NOWHERE,
                       "%s: there is no section to write %s: %s into; add it by hand", ed->path,
                       key, text);
    const char *end = memchr(ed->bytes, '\n', ed->n_bytes);
    bool has_returns = end && end > ed->bytes && end[-1] == '\r';
    if (is_flow) {
        RC_TRY(rc_arena_printf(ed->mem, &line, err, "%s: %s, ", name, text));
        return add_edit(ed, at, 0, line, err);
    }
    RC_TRY(rc_arena_printf(ed->mem, &line, err, "%s: %s%s\n%*s", name, text,
                           has_returns ? "\r" : "", beside->key_where.col - 1, ""));
    return add_edit(ed, at, 0, line, err);
}

static rc_code value_text(const rc_doc *value, rc_arena *mem, const char **out, rc_error *err)
{
    const char *setting;
    rc_doc map = {.kind = RC_DOC_MAP}, copy = *value;
    copy.next = NULL;
    rc_doc_add(&map, value->key, RC_NOWHERE, &copy);
    RC_TRY(rc_say_fix(&map, RC_FRAMEWORK_CORE, "", mem, &setting, err));
    *out = strchr(setting, '=') + 1;
    return RC_OK;
}

/* A value that another input sets over the file's would win over the edit too. */
static rc_code refuse_elsewhere(const editor *ed, const rc_subject *subject, rc_field field,
                                rc_error *err)
{
    const rc_origin *origin = &subject->cfg->origin[field];
    bool is_set = origin->kind == RC_FROM_FILE || origin->kind == RC_FROM_FLAG ||
                  origin->kind == RC_FROM_OVERRIDE;
    if (!is_set || !origin->where.file || strcmp(origin->where.file, ed->path) == 0)
        return RC_OK;
    return RC_FAIL(err, RC_E_UNSUPPORTED, origin->where,
                   "%s is set here, not in the file; --fix prints what to change",
                   rc_field_find(field)->name);
}

/* The map that "a.b.c" stands in, or NULL. */
static const rc_doc *find_section(const rc_doc *file, const char *key, rc_arena *mem)
{
    const char *dot = strrchr(key, '.'), *path;
    if (!dot || rc_arena_copy(mem, key, (size_t)(dot - key), &path, NULL) != RC_OK)
        return NULL;
    return rc_doc_find_path(file, path);
}

static rc_code add_edits(editor *ed, const rc_subject *subject, const rc_doc *file,
                         const rc_doc *fix, rc_error *err)
{
    for (const rc_doc *value = fix->child; value; value = value->next) {
        const char *text;
        rc_field field = rc_field_find_name(value->key);
        RC_TRY(value_text(value, ed->mem, &text, err));
        const rc_origin *origin = &subject->cfg->origin[field];
        const char *key = origin->through ? origin->through : rc_field_find(field)->key;
        const rc_doc *node = rc_doc_find_path(file, key);
        RC_TRY(refuse_elsewhere(ed, subject, field, err));
        if (origin->through && !strchr(key, '.'))
            return RC_FAIL(
                err, RC_E_UNSUPPORTED, origin->where,
                "%s sets %s, which is not written there; --fix prints what to change", key,
                rc_field_find(field)->name);
        if (!node && origin->kind == RC_FROM_FILE)
            node = origin->node; /* under another name */
        const rc_doc *section = find_section(file, key, ed->mem);
        if (node && node->key && !(section && is_merged(ed, section, node)))
            RC_TRY(edit_value(ed, node, value, text, err));
        else
            RC_TRY(insert_value(ed, file, rc_field_find(field)->key, text, err));
    }
    return RC_OK;
}

static int compare_edits(const void *a, const void *b)
{
    const edit *x = a, *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

static rc_code apply(editor *ed, rc_text *out, rc_error *err)
{
    size_t at = 0;
    qsort(ed->edits, ed->n_edits, sizeof *ed->edits, compare_edits);
    for (size_t i = 0; i < ed->n_edits; i++) {
        const edit *one = &ed->edits[i];
        if (one->at < at)
            return RC_FAIL(err, RC_E_BUG, RC_NOWHERE, "%s: two edits overlap", ed->path);
        RC_TRY(rc_text_add(out, ed->bytes + at, one->at - at, err));
        RC_TRY(rc_text_add(out, one->text, strlen(one->text), err));
        at = one->at + one->n;
    }
    return rc_text_add(out, ed->bytes + at, ed->n_bytes - at, err);
}

static rc_code replace_file(const char *path, const rc_text *text, rc_error *err)
{
    rc_out_file file;
    RC_TRY(rc_out_file_open(path, &file, err));
    if (fwrite(text->at, 1, text->n, file.to) == text->n)
        return rc_out_file_commit(&file, err);
    rc_out_file_abort(&file);
    return RC_FAIL(err, RC_E_IO, RC_NOWHERE, "%s: cannot write", path);
}

rc_code rc_check_write_yaml(const rc_subject *subject, const rc_doc *file, const rc_doc *fix,
                            rc_arena *mem, rc_error *err)
{
    editor *ed;
    rc_doc *again;
    rc_text text = {.mem = mem};
    RC_TRY(RC_NEW(mem, &ed, 1, err));
    ed->mem = mem;
    ed->path = subject->path;
    if (subject->options.target != RC_CHECK_BRIDGE || !file)
        return RC_FAIL(err, RC_E_UNSUPPORTED, RC_NOWHERE,
                       "%s: --write edits Bridge's YAML files; --fix prints what to change",
                       subject->path);
    RC_TRY(rc_file_read(subject->path, RC_READ_MAX_BYTES, mem, &ed->bytes, &ed->n_bytes, err));
    RC_TRY(add_edits(ed, subject, file, fix, err));
    RC_TRY(apply(ed, &text, err));
    /* what was written must still be YAML before it replaces the file */
    RC_TRY(rc_yaml_read(subject->path, text.at, text.n, mem, &again, err));
    return replace_file(subject->path, &text, err);
}
