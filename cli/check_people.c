/* check_people.c — findings for people: position, line, caret, why, what to write instead, source.
 *
 * above  check_subject.c
 */
#include "check.h"

#include "base/text.h"

#include <string.h>

static const char *colour_of(rc_level level, const rc_check_show *show)
{
    static const char *const colours[] = {"\033[1;31m", "\033[1;33m", "\033[1;36m"};
    return show->has_colour ? colours[level] : "";
}

static void write_safe(const char *text, size_t n, FILE *to)
{
    char safe[1024];
    fputs(rc_text_printable(text, n, safe, sizeof safe), to);
}

static void write_where(const rc_subject *subject, const rc_where *where, FILE *to)
{
    const char *file = where->file ? where->file : subject->path;
    write_safe(file, strlen(file), to);
    if (where->line)
        fprintf(to, ":%d:%d", where->line, where->col);
    fputs(": ", to);
}

static void write_finding(const rc_subject *subject, size_t i, const rc_check_show *show,
                          FILE *to)
{
    const rc_finding *finding = &subject->check->findings.at[i];
    write_where(subject, &finding->where, to);
    fprintf(to, "%s%s%s: %s [%s]\n", colour_of(finding->level, show),
            rc_level_name(finding->level), show->has_colour ? "\033[0m" : "", finding->reason,
            finding->rule);
    rc_line_print(&finding->where, to);
    if (finding->fix)
        fprintf(to, "      write instead: %s\n", finding->fix);
    if (finding->source)
        fprintf(to, "      source: %s%s\n", finding->source,
                i == subject->check->first ? " (the first to be raised)" : "");
}

static void write_count(size_t n, const char *what, const char *before, FILE *to)
{
    fprintf(to, "%s%zu %s%s", before, n, what, n == 1 ? "" : "s");
}

/* "model.num_layers: 4  # file run.yaml:3:15", what is at its default left out. */
static void write_origins(const rc_subject *subject, FILE *to)
{
    rc_arena *mem = rc_arena_open();
    const char *value;
    for (rc_field i = 0; mem && rc_subject_find_setting(subject, mem, &i, &value); i++) {
        const rc_origin *origin = &subject->cfg->origin[i];
        const char *file = origin->where.file ? origin->where.file : "";
        fprintf(to, "%s: ", rc_field_key(i));
        write_safe(value, strlen(value), to);
        fprintf(to, "  # %s%s", rc_origin_kind_name(origin->kind), *file ? " " : "");
        write_safe(file, strlen(file), to);
        if (origin->where.line)
            fprintf(to, ":%d:%d", origin->where.line, origin->where.col);
        fputc('\n', to);
    }
    rc_arena_close(mem);
}

/* Is any value not the default? A file of something else has none. */
static bool has_settings(const rc_subject *subject)
{
    for (int i = 0; i < RC_FIELD_COUNT; i++)
        if (subject->cfg->origin[i].kind != RC_FROM_DEFAULT)
            return true;
    return false;
}

void rc_check_write_people(const rc_subject *subject, const rc_check_show *show, FILE *to)
{
    const rc_check *check = subject->check;
    if (subject->unreadable) {
        write_where(subject, &subject->where, to);
        fprintf(to, "%s\n", subject->unreadable);
        rc_line_print(&subject->where, to);
        return;
    }
    if (show->has_origins)
        write_origins(subject, to);
    for (size_t i = 0; i < check->findings.n; i++)
        if (check->findings.at[i].level != RC_LEVEL_NOTE || show->has_notes)
            write_finding(subject, i, show, to);
    size_t n_notes = rc_findings_count(&check->findings, RC_LEVEL_NOTE);
    write_safe(subject->path, strlen(subject->path), to);
    fprintf(to, ": %s as %s", check->is_accepted ? "accepted" : "refused",
            rc_check_target_name(subject->options.target));
    write_count(rc_findings_count(&check->findings, RC_LEVEL_ERROR), "error", ": ", to);
    write_count(rc_findings_count(&check->findings, RC_LEVEL_WARNING), "warning", ", ", to);
    write_count(n_notes, "note", ", ", to);
    fputs(n_notes && !show->has_notes ? " (--notes shows them)" : "", to);
    fputs(has_settings(subject) ? "\n" : "; no setting is found in it\n", to);
}
