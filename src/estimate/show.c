/* estimate/show.c — rc_estimate for people and programs. */
#include <recompute/estimate.h>

#include <inttypes.h>

static const rc_component_facts components[RC_COMPONENT_COUNT] = {
#define COMPUTED true
#define ALLOWANCE false
#define RC_COMPONENT(name, kind, help) {#name, help, kind},
#include "defs/components.def"
#undef RC_COMPONENT
#undef COMPUTED
#undef ALLOWANCE
};

const rc_component_facts *rc_component_find(rc_component component)
{
    return &components[component];
}

static void print_moment(const rc_held *moment, const char *when, FILE *to)
{
    fprintf(to, "  %s: %" PRId64 " bytes, %s", when, moment->bytes,
            rc_phase_name(moment->phase));
    if (moment->op)
        fprintf(to,
                " of micro-batch %" PRId64 " in chunk %" PRId64 " at %s, %" PRId64 " in flight",
                moment->micro_batch, moment->vp, moment->op, moment->n_in_flight);
    fputc('\n', to);
    for (int i = 0; i < RC_COMPONENT_COUNT; i++)
        if (moment->of[i] > 0)
            fprintf(to, "    %-15s %" PRId64 "\n", components[i].name, moment->of[i]);
}

void rc_estimate_print(const rc_estimate *estimate, FILE *to)
{
    char name[160];
    fprintf(to, "job %s, %s\n", rc_profile_name(estimate->profile),
            rc_setting_name(&estimate->setting, name));
    for (int i = 0; i < estimate->n_ranks; i++) {
        const rc_estimate_rank *rank = &estimate->ranks[i];
        fprintf(to, "stage %" PRId64 ": %" PRId64 " ranks, %" PRId64 " parameters\n",
                rank->rank.pp, rank->n_ranks, rank->n_parameters);
        print_moment(&rank->first, "first step", to);
        print_moment(&rank->later, "later", to);
    }
}

static rc_code facts_table(const rc_estimate *estimate, rc_arena *mem, rc_table **out,
                           rc_error *err)
{
    static const rc_column columns[] = {
        {"setting", "setting", RC_UNIT_TEXT},
        {"profile", "kernels", RC_UNIT_TEXT},
        {"world_size", "ranks", RC_UNIT_COUNT},
        {"micro_batches", "micro-batches of a step", RC_UNIT_COUNT},
        {"stage", "hottest stage", RC_UNIT_COUNT},
        {"peak_bytes", "its peak, allocated", RC_UNIT_BYTES},
        {"first_step_bytes", "in the first step", RC_UNIT_BYTES},
        {"peak_phase", "peak in phase", RC_UNIT_TEXT},
        {"peak_op", "peak at op", RC_UNIT_TEXT},
        {"recompute_share", "recompute adds to a step, about", RC_UNIT_RATIO}};
    const rc_estimate_rank *hot = &estimate->ranks[estimate->hottest];
    char name[160];
    const char *setting;
    rc_cell *row;
    RC_TRY(
        rc_arena_printf(mem, &setting, err, "%s", rc_setting_name(&estimate->setting, name)));
    RC_TRY(rc_table_make(mem, "estimate", NULL, columns, 10, out, err));
    RC_TRY(rc_table_add_row(*out, &row, err));
    row[0] = rc_cell_text(setting);
    row[1] = rc_cell_text(rc_profile_name(estimate->profile));
    row[2] = rc_cell_int(estimate->layout->sizes.world);
    row[3] = rc_cell_int(estimate->layout->n_micro_batches);
    row[4] = rc_cell_int(hot->rank.pp);
    row[5] = rc_cell_int(hot->later.bytes);
    row[6] = rc_cell_int(hot->first.bytes);
    row[7] = rc_cell_text(rc_phase_name(hot->later.phase));
    row[8] = rc_cell_text(hot->later.op);
    row[9] = rc_cell_real(estimate->replay_seconds / estimate->step_seconds);
    return RC_OK;
}

enum { N_RANK_COLUMNS = 4 };

/* A column per component, behind what every rank is known by. */
static rc_code ranks_table(const rc_estimate *estimate, rc_arena *mem, rc_table **out,
                           rc_error *err)
{
    static const rc_column columns[N_RANK_COLUMNS + RC_COMPONENT_COUNT] = {
        {"stage", NULL, RC_UNIT_COUNT},
        {"ranks", NULL, RC_UNIT_COUNT},
        {"parameters", NULL, RC_UNIT_COUNT},
        {"peak_bytes", "peak", RC_UNIT_BYTES},
#define RC_COMPONENT(name, kind, help) {#name, NULL, RC_UNIT_BYTES},
#include "defs/components.def"
#undef RC_COMPONENT
    };
    RC_TRY(rc_table_make(mem, "ranks", "Every kind of rank, at its peak", columns,
                         N_RANK_COLUMNS + RC_COMPONENT_COUNT, out, err));
    for (int i = 0; i < estimate->n_ranks; i++) {
        const rc_estimate_rank *rank = &estimate->ranks[i];
        rc_cell *row;
        RC_TRY(rc_table_add_row(*out, &row, err));
        row[0] = rc_cell_int(rank->rank.pp);
        row[1] = rc_cell_int(rank->n_ranks);
        row[2] = rc_cell_int(rank->n_parameters);
        row[3] = rc_cell_int(rank->later.bytes);
        for (int k = 0; k < RC_COMPONENT_COUNT; k++)
            row[N_RANK_COLUMNS + k] = rc_cell_int(rank->later.of[k]);
    }
    return RC_OK;
}

static rc_code parts_table(const rc_estimate *estimate, rc_arena *mem, rc_table **out,
                           rc_error *err)
{
    static const rc_column columns[] = {{"component", NULL, RC_UNIT_TEXT},
                                        {"bytes", NULL, RC_UNIT_BYTES},
                                        {"kind", NULL, RC_UNIT_TEXT},
                                        {"about", NULL, RC_UNIT_TEXT}};
    const rc_held *peak = &estimate->ranks[estimate->hottest].later;
    RC_TRY(rc_table_make(mem, "components", "At the peak of the hottest stage", columns, 4, out,
                         err));
    for (int i = 0; i < RC_COMPONENT_COUNT; i++) {
        rc_cell *row;
        RC_TRY(rc_table_add_row(*out, &row, err));
        row[0] = rc_cell_text(components[i].name);
        row[1] = rc_cell_int(peak->of[i]);
        row[2] = rc_cell_text(components[i].is_computed ? "computed" : "allowance");
        row[3] = rc_cell_text(components[i].help);
    }
    return RC_OK;
}

rc_code rc_estimate_lacks_table(const rc_estimate *estimate, rc_arena *mem, rc_table **out,
                                rc_error *err)
{
    static const rc_column columns[] = {{"setting", NULL, RC_UNIT_TEXT},
                                        {"about", NULL, RC_UNIT_TEXT}};
    RC_TRY(rc_table_make(mem, "not_modelled", "Not modelled: the figures are without it",
                         columns, 2, out, err));
    for (int i = 0; i < estimate->n_lacks; i++) {
        rc_cell *row;
        RC_TRY(rc_table_add_row(*out, &row, err));
        row[0] = rc_cell_text(estimate->lacks[i].key);
        row[1] = rc_cell_text(estimate->lacks[i].words);
    }
    return RC_OK;
}

rc_code rc_estimate_report(const rc_estimate *estimate, rc_arena *mem, rc_report *report,
                           rc_error *err)
{
    static rc_code (*const makers[])(const rc_estimate *, rc_arena *, rc_table **,
                                     rc_error *) = {facts_table, rc_estimate_lacks_table,
                                                    parts_table, ranks_table};
    for (size_t i = 0; i < sizeof makers / sizeof *makers; i++) {
        rc_table *table;
        if (makers[i] == rc_estimate_lacks_table && estimate->n_lacks == 0)
            continue;
        RC_TRY(makers[i](estimate, mem, &table, err));
        rc_report_add(report, table, i == 0);
    }
    return RC_OK;
}

rc_code rc_components_table(rc_arena *mem, rc_table **out, rc_error *err)
{
    static const rc_column columns[] = {{"component", NULL, RC_UNIT_TEXT},
                                        {"kind", NULL, RC_UNIT_TEXT},
                                        {"about", NULL, RC_UNIT_TEXT}};
    RC_TRY(rc_table_make(mem, "components", "What the memory of a rank is made of", columns, 3,
                         out, err));
    for (int i = 0; i < RC_COMPONENT_COUNT; i++) {
        rc_cell *row;
        RC_TRY(rc_table_add_row(*out, &row, err));
        row[0] = rc_cell_text(components[i].name);
        row[1] = rc_cell_text(components[i].is_computed ? "computed" : "allowance");
        row[2] = rc_cell_text(components[i].help);
    }
    return RC_OK;
}
