/* show.c — a check for people and programs: its findings as a table, and one stable text form. */
#include <recompute/check.h>

#include "base/text.h"

#include <inttypes.h>
#include <string.h>

static void print_text(const char *text, size_t n, FILE *to)
{
    char safe[1024];
    fputs(rc_text_printable(text, n, safe, sizeof safe), to);
}

static void print_finding(const rc_finding *finding, FILE *to)
{
    const char *file = finding->where.file ? finding->where.file : "-";
    fprintf(to, "%s %s ", rc_level_name(finding->level), finding->rule);
    print_text(file, strlen(file), to);
    fprintf(to, ":%d:%d ", finding->where.line, finding->where.col);
    print_text(finding->reason, strlen(finding->reason), to);
    if (finding->fix) {
        fputs(" | ", to);
        print_text(finding->fix, strlen(finding->fix), to);
    }
    fputc('\n', to);
}

void rc_check_print(const rc_check *check, FILE *to)
{
    fputs(check->is_accepted ? "accept" : "reject", to);
    if (!check->is_accepted)
        fprintf(to, " %s %s", check->findings.at[check->first].rule,
                check->exception ? check->exception : "-");
    fputc('\n', to);
    for (size_t i = 0; i < check->findings.n; i++)
        print_finding(&check->findings.at[i], to);
    for (size_t i = 0; i < check->n_warnings; i++)
        fprintf(to, "warns %s\n", check->warnings[i]);
    if (!check->is_accepted)
        return;
    fputs("effective ", to);
    rc_doc_write_json(check->effective, to);
    fputs("\neffective_other ", to);
    rc_doc_write_json(check->effective_other, to);
    fputc('\n', to);
}

rc_code rc_check_table(const rc_check *check, rc_arena *mem, rc_table **out, rc_error *err)
{
    static const rc_column columns[] = {
        {"file", NULL, RC_UNIT_TEXT},    {"line", NULL, RC_UNIT_COUNT},
        {"column", NULL, RC_UNIT_COUNT}, {"level", NULL, RC_UNIT_TEXT},
        {"rule", NULL, RC_UNIT_TEXT},    {"layer", NULL, RC_UNIT_TEXT},
        {"reason", NULL, RC_UNIT_TEXT},  {"fix", "write instead", RC_UNIT_TEXT},
        {"source", NULL, RC_UNIT_TEXT},
    };
    RC_TRY(rc_table_make(mem, "findings", "What the framework will say", columns,
                         sizeof columns / sizeof *columns, out, err));
    for (size_t i = 0; i < check->findings.n; i++) {
        const rc_finding *finding = &check->findings.at[i];
        rc_cell *row;
        RC_TRY(rc_table_add_row(*out, &row, err));
        row[0] = rc_cell_text(finding->where.file);
        if (finding->where.line) {
            row[1] = rc_cell_int(finding->where.line);
            row[2] = rc_cell_int(finding->where.col);
        }
        row[3] = rc_cell_text(rc_level_name(finding->level));
        row[4] = rc_cell_text(finding->rule);
        row[5] = rc_cell_text(rc_layer_name(check->rules[i]->layer));
        row[6] = rc_cell_text(finding->reason);
        row[7] = rc_cell_text(finding->fix);
        row[8] = rc_cell_text(finding->source);
    }
    return RC_OK;
}
