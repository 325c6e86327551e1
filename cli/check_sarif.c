/* check_sarif.c — findings as SARIF 2.1.0, the form that code review tools read. */
#include "check.h"

#include "base/text.h"

#include <string.h>

#ifndef RC_VERSION
#define RC_VERSION "unknown"
#endif

static void write_rules(FILE *to)
{
    char id[RC_RULE_ID_ROOM];
    for (size_t i = 0; i < rc_rule_count(); i++) {
        const rc_rule_facts *rule = rc_rule_find_nth(i);
        fprintf(to, "%s\n    {\"id\": ", i ? "," : "");
        rc_json_write_string(rc_rule_id(rule, id), to);
        fputs(", \"shortDescription\": {\"text\": ", to);
        rc_json_write_string(rule->reason, to);
        fprintf(to, "}, \"defaultConfiguration\": {\"level\": \"%s\"}}",
                rc_level_name(rule->level));
    }
}

/* Characters in the first `n` bytes of a line: SARIF's columns count them, ours count bytes. */
static int count_characters(const char *line, size_t n)
{
    int count = 0;
    for (size_t i = 0; i < n && line[i]; i++)
        count += ((unsigned char)line[i] & 0xC0) != 0x80;
    return count;
}

static void write_region(const rc_where *where, FILE *to)
{
    if (!where->line)
        return;
    size_t before = where->col > 0 ? (size_t)where->col - 1 : 0;
    size_t width = where->n_cols > 0 ? (size_t)where->n_cols : 1;
    int from = where->text ? count_characters(where->text, before) : (int)before;
    int past =
        where->text ? count_characters(where->text, before + width) : (int)(before + width);
    fprintf(to, ", \"region\": {\"startLine\": %d, \"startColumn\": %d, \"endColumn\": %d}",
            where->line, from + 1, (past > from ? past : from + 1) + 1);
}

/* A path as a relative URI (RFC 3986). */
static void write_uri(const char *path, FILE *to)
{
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";
    fputc('"', to);
    for (; *path; path++)
        fprintf(to, strchr(plain, *path) ? "%c" : "%%%02X", (unsigned char)*path);
    fputc('"', to);
}

static void write_result(const char *rule, const char *level, const char *text,
                         const char *file, const rc_where *where, FILE *to)
{
    fprintf(to, "\n   {\"ruleId\": \"%s\", \"level\": \"%s\", \"message\": {\"text\": ", rule,
            level);
    rc_json_write_string(text, to);
    fputs("}, \"locations\": [{\"physicalLocation\": {\"artifactLocation\": {\"uri\": ", to);
    write_uri(where->file ? where->file : file, to);
    fputc('}', to);
    write_region(where, to);
    fputs("}}]}", to);
}

static rc_code write_finding(const rc_subject *subject, size_t i, rc_arena *mem, FILE *to,
                             rc_error *err)
{
    const rc_finding *finding = &subject->check->findings.at[i];
    const char *text;
    RC_TRY(rc_arena_printf(mem, &text, err, "%s%s%s", finding->reason,
                           finding->fix ? ". Write instead: " : "",
                           finding->fix ? finding->fix : ""));
    write_result(finding->rule, rc_level_name(finding->level), text, subject->path,
                 &finding->where, to);
    return RC_OK;
}

rc_code rc_check_write_sarif(const rc_subject *subjects, size_t n, rc_arena *mem, FILE *to,
                             rc_error *err)
{
    bool is_later = false;
    fputs("{\"$schema\": \"https://json.schemastore.org/sarif-2.1.0.json\", \"version\": "
          "\"2.1.0\",\n"
          " \"runs\": [{\"tool\": {\"driver\": {\"name\": \"recompute\", \"version\": "
          "\"" RC_VERSION "\", \"rules\": [",
          to);
    write_rules(to);
    fputs("\n  ]}}, \"columnKind\": \"unicodeCodePoints\", \"results\": [", to);
    for (size_t i = 0; i < n; i++) {
        const rc_subject *subject = &subjects[i];
        for (size_t k = 0; !subject->unreadable && k < subject->check->findings.n; k++) {
            fputs(is_later ? "," : "", to);
            RC_TRY(write_finding(subject, k, mem, to, err));
            is_later = true;
        }
        if (!subject->unreadable)
            continue;
        fputs(is_later ? "," : "", to);
        write_result("unreadable-input", "error", subject->unreadable, subject->path,
                     &subject->where, to);
        is_later = true;
    }
    fputs("\n  ]}]}\n", to);
    return RC_OK;
}
