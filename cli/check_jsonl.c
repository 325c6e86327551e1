/* check_jsonl.c — many small configurations in one go: a JSON object a line in, a verdict a line
 * out, in the same order.
 *
 * in   {"id": …, "kind": "TransformerConfig", "te_version": "2.9.0", "config": {field: value, …}}
 * out  {"id": …, "verdict": "accept"|"reject", "rule": …, "exception": …, "warnings": […],
 *       "effective": {…}|null, "effective_other": {…}|null, "all_rules": […]}
 *
 * above  check_json.c
 */
#include "check.h"

#include "base/file.h"
#include "base/text.h"

#include <recompute/read.h>

#include <string.h>

enum { MAX_FILE_BYTES = 1 << 30 };

static void write_names(const char *key, const char **names, size_t n, FILE *to)
{
    fprintf(to, ", \"%s\": [", key);
    for (size_t i = 0; i < n; i++) {
        fputs(i ? ", " : "", to);
        rc_json_write_string(names[i], to);
    }
    fputc(']', to);
}

static void write_id(const rc_doc *id, FILE *to)
{
    fputs("{\"id\": ", to);
    if (id)
        rc_doc_write_json(id, to);
    else
        fputs("null", to);
}

static void write_verdict(const rc_doc *id, const rc_check *check, FILE *to)
{
    write_id(id, to);
    fprintf(to, ", \"verdict\": \"%s\", \"rule\": ", check->is_accepted ? "accept" : "reject");
    rc_check_write_text_or_null(
        check->is_accepted ? NULL : check->findings.at[check->first].rule, to);
    fputs(", \"exception\": ", to);
    rc_check_write_text_or_null(check->exception, to);
    write_names("warnings", check->warnings, check->n_warnings, to);
    fputs(", \"effective\": ", to);
    if (check->is_accepted)
        rc_doc_write_json(check->effective, to);
    else
        fputs("null", to);
    fputs(", \"effective_other\": ", to);
    if (check->is_accepted)
        rc_doc_write_json(check->effective_other, to);
    else
        fputs("null", to);
    fputs(", \"all_rules\": [", to);
    for (size_t i = 0; i < check->findings.n && check->findings.at[i].level == RC_LEVEL_ERROR;
         i++) {
        if (i && check->rules[i] == check->rules[i - 1])
            continue; /* several items of one list */
        fputs(i ? ", " : "", to);
        rc_json_write_string(check->findings.at[i].rule, to);
    }
    fputs("]}\n", to);
}

static const char *find_text(const rc_doc *map, const char *key)
{
    const rc_doc *value = rc_doc_find(map, key);
    return value && value->kind == RC_DOC_STRING ? value->text : NULL;
}

static rc_code check_line(const rc_doc *doc, rc_arena *mem, const rc_check_options *options,
                          FILE *to, int *status, rc_error *err)
{
    rc_check_options own = *options;
    rc_check *check;
    const rc_doc *config = rc_doc_find(doc, "config");
    const char *kind = find_text(doc, "kind");
    if (doc->kind != RC_DOC_MAP || (config && config->kind != RC_DOC_MAP))
        return RC_FAIL(err, RC_E_INPUT, doc->where,
                       "a line is one object with the map \"config\" in it");
    if (find_text(doc, "te_version"))
        own.transformer_engine = find_text(doc, "te_version");
    if (find_text(doc, "megatron"))
        own.megatron = find_text(doc, "megatron");
    RC_TRY(rc_check_make_core(config ? config : doc,
                              kind && strcmp(kind, "MLATransformerConfig") == 0, &own, mem,
                              &check, err));
    write_verdict(rc_doc_find(doc, "id"), check, to);
    if (!check->is_accepted && *status == 0)
        *status = 1;
    return RC_OK;
}

static void write_unreadable(const rc_doc *doc, size_t line, const rc_error *err, FILE *to)
{
    write_id(doc ? rc_doc_find(doc, "id") : NULL, to);
    fprintf(to,
            ", \"verdict\": \"unreadable\", \"line\": %zu, \"column\": %d, \"error\": ", line,
            err->where.col);
    rc_json_write_string(err->msg, to);
    fputs("}\n", to);
}

static rc_code check_lines(const char *path, rc_arena *mem, const rc_check_options *options,
                           FILE *to, int *status, rc_error *err)
{
    const char *bytes;
    size_t n_bytes, n_line = 0;
    RC_TRY(rc_file_read(path, MAX_FILE_BYTES, mem, &bytes, &n_bytes, err));
    for (const char *at = bytes, *end = bytes + n_bytes; at < end;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t n = (size_t)((stop ? stop : end) - at);
        rc_error line_err = {0};
        rc_mark mark = rc_arena_mark(mem);
        rc_doc *doc = NULL;
        n_line++;
        rc_code code = n ? rc_json_read(path, at, n, mem, &doc, &line_err) : RC_OK;
        if (doc && code == RC_OK)
            code = check_line(doc, mem, options, to, status, &line_err);
        if (code == RC_E_INPUT || code == RC_E_RANGE) {
            write_unreadable(doc, n_line, &line_err, to);
            *status = 2;
        } else if (code != RC_OK) {
            *err = line_err;
            return code;
        }
        rc_arena_rewind(mem, mark);
        at += n + 1;
    }
    return RC_OK;
}

rc_code rc_check_jsonl(const char *path, const rc_check_options *options, FILE *to, int *status,
                       rc_error *err)
{
    rc_arena *mem = rc_arena_open();
    if (!mem)
        return RC_FAIL(err, RC_E_MEMORY, RC_NOWHERE, "the host is out of memory");
    rc_code code = check_lines(path, mem, options, to, status, err);
    if (code == RC_E_IO && err)
        code = err->code = RC_E_INPUT; /* as any file that cannot be read */
    rc_arena_close(mem);
    return code;
}
