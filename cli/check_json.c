/* check_json.c — findings as one JSON object; the schema is in docs/check.md.
 *
 * above  check_subject.c
 */
#include "check.h"

#include "base/text.h"

#include <inttypes.h>
#include <string.h>

void rc_check_write_text_or_null(const char *text, FILE *to)
{
    if (text)
        rc_json_write_string(text, to);
    else
        fputs("null", to);
}

static void write_member(const char *key, const char *text, FILE *to)
{
    fprintf(to, ", \"%s\": ", key);
    rc_check_write_text_or_null(text, to);
}

static void write_position(const rc_where *where, const char *path, FILE *to)
{
    write_member("file", where->file ? where->file : path, to);
    if (where->line)
        fprintf(to, ", \"line\": %d, \"column\": %d, \"width\": %d", where->line, where->col,
                where->n_cols > 0 ? where->n_cols : 1);
    else
        fputs(", \"line\": null, \"column\": null, \"width\": null", to);
}

static void write_finding(const rc_subject *subject, size_t i, FILE *to)
{
    const rc_finding *finding = &subject->check->findings.at[i];
    const rc_rule_facts *rule = subject->check->rules[i];
    fputs("{\"rule\": ", to);
    rc_json_write_string(finding->rule, to);
    write_member("also_known_as", rc_rule_other_name(rule), to);
    write_member("layer", rc_layer_name(rule->layer), to);
    write_member("level", rc_level_name(finding->level), to);
    fprintf(to, ", \"is_first\": %s", i == subject->check->first ? "true" : "false");
    write_position(&finding->where, subject->path, to);
    write_member("reason", finding->reason, to);
    write_member("fix", finding->fix, to);
    fputs(", \"settings\": ", to);
    if (subject->check->fixes[i])
        rc_doc_write_json(subject->check->fixes[i], to);
    else
        fputs("{}", to);
    write_member("source", finding->source, to);
    fputc('}', to);
}

static void write_map(const char *key, const rc_doc *map, bool is_known, FILE *to)
{
    fprintf(to, ", \"%s\": ", key);
    if (is_known)
        rc_doc_write_json(map, to);
    else
        fputs("null", to);
}

/* Every field that is set, in the order of the table. */
static void write_origins(const rc_subject *subject, FILE *to)
{
    rc_arena *mem = rc_arena_open();
    const char *between = "\n  ";
    fputs(", \"settings\": [", to);
    const char *value;
    for (rc_field i = 0; mem && rc_subject_find_setting(subject, mem, &i, &value); i++) {
        const rc_origin *origin = &subject->cfg->origin[i];
        fprintf(to, "%s{\"key\": ", between);
        rc_json_write_string(rc_field_key(i), to);
        write_member("value", value, to);
        write_member("source", rc_origin_kind_name(origin->kind), to);
        write_position(&origin->where, subject->path, to);
        fputc('}', to);
        between = ",\n  ";
    }
    fputs("\n ]", to);
    rc_arena_close(mem);
}

static void write_verdict(const rc_subject *subject, FILE *to)
{
    const rc_check *check = subject->check;
    fprintf(to, ", \"verdict\": \"%s\"", check->is_accepted ? "accept" : "reject");
    write_member("rule", check->is_accepted ? NULL : check->findings.at[check->first].rule, to);
    write_member("exception", check->exception, to);
    write_map("effective", check->effective, check->is_accepted, to);
    write_map("effective_other", check->effective_other, check->is_accepted, to);
    fputs(", \"findings\": [", to);
    for (size_t i = 0; i < check->findings.n; i++) {
        fputs(i ? ",\n  " : "\n  ", to);
        write_finding(subject, i, to);
    }
    fputs(check->findings.n ? "\n ]}" : "]}", to);
}

static void write_subject(const rc_subject *subject, const rc_check_show *show, FILE *to)
{
    fputs("{\"file\": ", to);
    rc_json_write_string(subject->path, to);
    write_member("target", rc_check_target_name(subject->options.target), to);
    write_member("megatron", subject->options.megatron ? subject->options.megatron : "main",
                 to);
    write_member("transformer_engine", subject->options.transformer_engine, to);
    if (!subject->unreadable) {
        if (show->has_origins)
            write_origins(subject, to);
        write_verdict(subject, to);
        return;
    }
    fputs(", \"verdict\": \"unreadable\"", to);
    write_position(&subject->where, subject->path, to);
    write_member("error", subject->unreadable, to);
    fputc('}', to);
}

void rc_check_write_json(const rc_subject *subjects, size_t n, const rc_check_show *show,
                         FILE *to)
{
    int status = 0;
    fputs("{\"version\": 1, \"files\": [", to);
    for (size_t i = 0; i < n; i++) {
        int one = rc_subject_status(&subjects[i], show);
        status = one > status ? one : status;
        fputs(i ? ",\n " : "\n ", to);
        write_subject(&subjects[i], show, to);
    }
    fprintf(to, "\n], \"status\": %d}\n", status);
}
