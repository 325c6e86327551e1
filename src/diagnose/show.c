/* show.c — a diagnosis as text for people and as tables for programs. */
#include "diagnose/diag.h"

#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void print_place(rc_where where, FILE *to)
{
    char safe[1024];
    if (!where.file)
        return;
    fprintf(to, "%s", rc_text_printable(where.file, strlen(where.file), safe, sizeof safe));
    if (where.line > 0)
        fprintf(to, ":%d", where.line);
    fputs(": ", to);
}

static void print_steps(const rc_diagnosis *diagnosis, FILE *to)
{
    char safe[1200];
    fputs("\nwhat to do, best first:\n", to);
    for (size_t i = 0; i < diagnosis->n_steps; i++) {
        const rc_step *step = &diagnosis->steps[i];
        fprintf(to, "%3zu. %s\n", i + 1, step->what);
        if (step->paste)
            fprintf(to, "       %s\n",
                    rc_text_printable(step->paste, strlen(step->paste), safe, sizeof safe));
        fprintf(to, "     costs: %s; rests on: %s\n", step->cost, step->rests_on);
    }
}

void rc_diagnosis_print(const rc_diagnosis *diagnosis, FILE *to)
{
    fprintf(to, "%s, phase %s (confidence: %s)\n", rc_cause_name(diagnosis->cause),
            rc_job_phase_name(diagnosis->phase), rc_confidence_name(diagnosis->confidence));
    fprintf(to, "%s\n", diagnosis->why);
    print_steps(diagnosis, to);
    if (diagnosis->n_evidence > 0)
        fputs("\nevidence:\n", to);
    for (size_t i = 0; i < diagnosis->n_evidence; i++) {
        fputs("  ", to);
        print_place(diagnosis->evidence[i].where, to);
        fprintf(to, "%s\n", diagnosis->evidence[i].text);
    }
    for (size_t i = 0; i < diagnosis->n_ruled_out; i++)
        fprintf(to, "%s  %s\n", i ? "" : "\nlooked at and ruled out:\n",
                diagnosis->ruled_out[i]);
    for (size_t i = 0; i < diagnosis->findings.n; i++) {
        const rc_finding *finding = &diagnosis->findings.at[i];
        fprintf(to, "%s  %s %s: ", i ? "" : "\nfindings:\n", rc_level_name(finding->level),
                finding->rule);
        print_place(finding->where, to);
        fprintf(to, "%s%s%s\n", finding->reason, finding->fix ? "; fix: " : "",
                finding->fix ? finding->fix : "");
    }
    fprintf(to, "\nthis is wrong if: %s\nit rests on: %s (row %s)\n", diagnosis->falsify,
            diagnosis->source, diagnosis->row);
}

/* --- tables */

static rc_code verdict_table(const rc_diagnosis *diagnosis, rc_arena *mem, rc_table **out,
                             rc_error *err)
{
    static const rc_column columns[] = {
        {"diagnosis", NULL, RC_UNIT_TEXT},    {"stage", NULL, RC_UNIT_TEXT},
        {"confidence", NULL, RC_UNIT_TEXT},   {"why", NULL, RC_UNIT_TEXT},
        {"falsified_by", NULL, RC_UNIT_TEXT}, {"rests_on", NULL, RC_UNIT_TEXT},
        {"row", NULL, RC_UNIT_TEXT}};
    rc_cell *cells;
    RC_TRY(rc_table_make(mem, "", NULL, columns, sizeof columns / sizeof *columns, out, err));
    RC_TRY(rc_table_add_row(*out, &cells, err));
    cells[0] = rc_cell_text(rc_cause_name(diagnosis->cause));
    cells[1] = rc_cell_text(rc_job_phase_name(diagnosis->phase));
    cells[2] = rc_cell_text(rc_confidence_name(diagnosis->confidence));
    cells[3] = rc_cell_text(diagnosis->why);
    cells[4] = rc_cell_text(diagnosis->falsify);
    cells[5] = rc_cell_text(diagnosis->source);
    cells[6] = rc_cell_text(diagnosis->row);
    return RC_OK;
}

static rc_code number_table(const rc_diagnosis *diagnosis, rc_arena *mem, rc_table **out,
                            rc_error *err)
{
    rc_column *columns;
    rc_cell *cells;
    RC_TRY(RC_NEW(mem, &columns, diagnosis->n_numbers, err));
    for (size_t i = 0; i < diagnosis->n_numbers; i++)
        columns[i] = (rc_column){diagnosis->numbers[i].name, NULL, RC_UNIT_REAL};
    RC_TRY(rc_table_make(mem, "numbers", "numbers", columns, diagnosis->n_numbers, out, err));
    RC_TRY(rc_table_add_row(*out, &cells, err));
    for (size_t i = 0; i < diagnosis->n_numbers; i++)
        cells[i] = rc_cell_real(diagnosis->numbers[i].value);
    return RC_OK;
}

static rc_code step_table(const rc_diagnosis *diagnosis, rc_arena *mem, rc_table **out,
                          rc_error *err)
{
    static const rc_column columns[] = {{"action", NULL, RC_UNIT_TEXT},
                                        {"what", NULL, RC_UNIT_TEXT},
                                        {"paste", NULL, RC_UNIT_TEXT},
                                        {"cost", NULL, RC_UNIT_TEXT},
                                        {"rests_on", NULL, RC_UNIT_TEXT}};
    RC_TRY(rc_table_make(mem, "actions", "actions", columns, sizeof columns / sizeof *columns,
                         out, err));
    for (size_t i = 0; i < diagnosis->n_steps; i++) {
        const rc_step *step = &diagnosis->steps[i];
        rc_cell *cells;
        RC_TRY(rc_table_add_row(*out, &cells, err));
        cells[0] = rc_cell_text(step->name);
        cells[1] = rc_cell_text(step->what);
        cells[2] = rc_cell_text(step->paste);
        cells[3] = rc_cell_text(step->cost);
        cells[4] = rc_cell_text(step->rests_on);
    }
    return RC_OK;
}

static rc_code evidence_table(const rc_diagnosis *diagnosis, rc_arena *mem, rc_table **out,
                              rc_error *err)
{
    static const rc_column columns[] = {{"file", NULL, RC_UNIT_TEXT},
                                        {"line", NULL, RC_UNIT_COUNT},
                                        {"text", NULL, RC_UNIT_TEXT}};
    RC_TRY(rc_table_make(mem, "evidence", "evidence", columns, sizeof columns / sizeof *columns,
                         out, err));
    for (size_t i = 0; i < diagnosis->n_evidence; i++) {
        rc_cell *cells;
        RC_TRY(rc_table_add_row(*out, &cells, err));
        cells[0] = rc_cell_text(diagnosis->evidence[i].where.file);
        if (diagnosis->evidence[i].where.line > 0)
            cells[1] = rc_cell_int(diagnosis->evidence[i].where.line);
        cells[2] = rc_cell_text(diagnosis->evidence[i].text);
    }
    return RC_OK;
}

static rc_code ruled_out_table(const rc_diagnosis *diagnosis, rc_arena *mem, rc_table **out,
                               rc_error *err)
{
    static const rc_column columns[] = {{"text", NULL, RC_UNIT_TEXT}};
    RC_TRY(rc_table_make(mem, "ruled_out", "ruled out", columns, 1, out, err));
    for (size_t i = 0; i < diagnosis->n_ruled_out; i++) {
        rc_cell *cells;
        RC_TRY(rc_table_add_row(*out, &cells, err));
        cells[0] = rc_cell_text(diagnosis->ruled_out[i]);
    }
    return RC_OK;
}

static rc_code finding_table(const rc_diagnosis *diagnosis, rc_arena *mem, rc_table **out,
                             rc_error *err)
{
    static const rc_column columns[] = {
        {"level", NULL, RC_UNIT_TEXT},  {"rule", NULL, RC_UNIT_TEXT},
        {"file", NULL, RC_UNIT_TEXT},   {"line", NULL, RC_UNIT_COUNT},
        {"reason", NULL, RC_UNIT_TEXT}, {"fix", NULL, RC_UNIT_TEXT}};
    RC_TRY(rc_table_make(mem, "findings", "findings", columns, sizeof columns / sizeof *columns,
                         out, err));
    for (size_t i = 0; i < diagnosis->findings.n; i++) {
        const rc_finding *finding = &diagnosis->findings.at[i];
        rc_cell *cells;
        RC_TRY(rc_table_add_row(*out, &cells, err));
        cells[0] = rc_cell_text(rc_level_name(finding->level));
        cells[1] = rc_cell_text(finding->rule);
        cells[2] = rc_cell_text(finding->where.file);
        if (finding->where.line > 0)
            cells[3] = rc_cell_int(finding->where.line);
        cells[4] = rc_cell_text(finding->reason);
        cells[5] = rc_cell_text(finding->fix);
    }
    return RC_OK;
}

rc_code rc_diagnosis_report(const rc_diagnosis *diagnosis, rc_arena *mem, rc_report *report,
                            rc_error *err)
{
    rc_table *verdict, *numbers, *steps, *evidence, *ruled_out, *findings;
    RC_TRY(verdict_table(diagnosis, mem, &verdict, err));
    RC_TRY(number_table(diagnosis, mem, &numbers, err));
    RC_TRY(step_table(diagnosis, mem, &steps, err));
    RC_TRY(evidence_table(diagnosis, mem, &evidence, err));
    RC_TRY(ruled_out_table(diagnosis, mem, &ruled_out, err));
    RC_TRY(finding_table(diagnosis, mem, &findings, err));
    rc_report_add(report, verdict, true);
    rc_report_add(report, numbers, true);
    rc_report_add(report, evidence, false);
    rc_report_add(report, ruled_out, false);
    rc_report_add(report, findings, false);
    rc_report_add(report, steps, false);
    return RC_OK;
}
