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

static void write_region(const rc_where *where, FILE *to)
{
    if (!where->line)
        return;
    int width = where->n_cols > 0 ? where->n_cols : 1;
    fprintf(to, ", \"region\": {\"startLine\": %d, \"startColumn\": %d, \"endColumn\": %d}",
            where->line, where->col, where->col + width);
}

static void write_result(const char *rule, const char *level, const char *text,
                         const char *file, const rc_where *where, FILE *to)
{
    fprintf(to, "\n   {\"ruleId\": \"%s\", \"level\": \"%s\", \"message\": {\"text\": ", rule,
            level);
    rc_json_write_string(text, to);
    fputs("}, \"locations\": [{\"physicalLocation\": {\"artifactLocation\": {\"uri\": ", to);
    rc_json_write_string(where->file ? where->file : file, to);
    fputc('}', to);
    write_region(where, to);
    fputs("}}]}", to);
}

static void write_finding(const rc_subject *subject, size_t i, FILE *to)
{
    const rc_finding *finding = &subject->check->findings.at[i];
    char text[2048];
    snprintf(text, sizeof text, "%s%s%s", finding->reason,
             finding->fix ? ". Write instead: " : "", finding->fix ? finding->fix : "");
    write_result(finding->rule, rc_level_name(finding->level), text, subject->path,
                 &finding->where, to);
}

void rc_check_write_sarif(const rc_subject *subjects, size_t n, FILE *to)
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
            write_finding(subject, k, to);
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
}
