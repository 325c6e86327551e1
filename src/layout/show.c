/* layout/show.c — a layout as text, and as tables. */
#include <recompute/layout.h>

#include "base/text.h"

#include <inttypes.h>

enum { NAME_BYTES = 64, N_KINDS = RC_MIXER_COUNT * RC_MLP_COUNT };

/* "mla+moe", "mamba", "mlp". Returns buf. */
static const char *kind_name(rc_layer_kind kind, char buf[NAME_BYTES])
{
    const bool has_mixer = kind.mixer != RC_MIXER_none, has_mlp = kind.mlp != RC_MLP_none;
    snprintf(buf, NAME_BYTES, "%s%s%s", has_mixer ? rc_mixer_name(kind.mixer) : "",
             has_mixer && has_mlp ? "+" : "", has_mlp ? rc_mlp_name(kind.mlp) : "");
    return buf;
}

static void print_runs(const rc_layer_run *runs, int n_runs, FILE *to)
{
    char name[NAME_BYTES];
    for (int i = 0; i < n_runs; i++)
        fprintf(to, "%s%d %s", i ? ", " : " ", runs[i].n_layers, kind_name(runs[i].kind, name));
}

static void print_chunk(const rc_layout *layout, int i, FILE *to)
{
    const rc_chunk *chunk = &layout->chunks[i];
    const int pp = (int)layout->sizes.pp;
    fprintf(to, "stage %d chunk %d:", i % pp, i / pp);
    if (chunk->n_runs)
        fprintf(to, " from layer %d", chunk->first_layer);
    print_runs(chunk->runs, chunk->n_runs, to);
    if (chunk->n_mtp) {
        fprintf(to, "; %d deep%s:", chunk->n_mtp,
                chunk->is_mtp_shared ? " with the weights of one" : "");
        print_runs(chunk->mtp_runs, chunk->n_mtp_runs, to);
    }
    fprintf(to, "%s%s%s\n", chunk->has_embedding ? "; embedding" : "",
            chunk->has_final_norm ? "; final norm" : "", chunk->has_loss ? "; loss" : "");
}

void rc_layout_print(const rc_layout *layout, FILE *to)
{
    const rc_parallel *s = &layout->sizes;
    fprintf(to,
            "layout of %" PRId64 " ranks: tp %" PRId64 ", cp %" PRId64 ", gtp %" PRId64
            ", dp %" PRId64 ", pp %" PRId64 "; ep %" PRId64 ", etp %" PRId64 ", edp %" PRId64
            "\n",
            s->world, s->tp, s->cp, s->gtp, s->dp, s->pp, s->ep, s->etp, s->edp);
    fprintf(to, "%" PRId64 " micro-batches", layout->n_micro_batches);
    if (s->is_interleaved)
        fprintf(to, "; %" PRId64 " chunks a stage, %" PRId64 " micro-batches in a row", s->vp,
                layout->micro_batch_group);
    fprintf(to, "\n%d layers:", layout->n_layers);
    print_runs(layout->runs, layout->n_runs, to);
    fprintf(to, "%s\n", layout->is_tied ? "; tied output weights" : "");
    for (int i = 0; i < layout->n_chunks; i++)
        print_chunk(layout, i, to);
    for (int i = 0; i < layout->n_rank_kinds; i++)
        fprintf(to, "stage %" PRId64 ": %" PRId64 " ranks, the first is %" PRId64 "\n",
                layout->rank_kinds[i].rank.pp, layout->rank_kinds[i].n_ranks,
                layout->rank_kinds[i].number);
}

/* --- tables: layers of one kind are summed up, in the order in which kinds appear */

static void add_kinds(const rc_layer_run *runs, int n_runs, int times, rc_layer_run *kinds,
                      int *n_kinds)
{
    for (int i = 0; i < n_runs; i++) {
        int at = 0;
        while (at < *n_kinds && (kinds[at].kind.mixer != runs[i].kind.mixer ||
                                 kinds[at].kind.mlp != runs[i].kind.mlp))
            at++;
        if (at == *n_kinds)
            kinds[(*n_kinds)++] = (rc_layer_run){.kind = runs[i].kind};
        kinds[at].n_layers += times * runs[i].n_layers;
    }
}

/* "3 mla+mlp, 58 mla+moe", NULL where there are none. */
static rc_code show_kinds(const rc_layer_run *runs, int n_runs, int times, rc_arena *mem,
                          const char **out, rc_error *err)
{
    rc_layer_run kinds[N_KINDS];
    rc_text text = {.mem = mem};
    char name[NAME_BYTES];
    int n = 0;
    add_kinds(runs, n_runs, times, kinds, &n);
    for (int i = 0; i < n; i++)
        RC_TRY(rc_text_printf(&text, err, "%s%d %s", i ? ", " : "", kinds[i].n_layers,
                              kind_name(kinds[i].kind, name)));
    *out = text.at;
    return RC_OK;
}

rc_code rc_layout_table(const rc_layout *layout, rc_arena *mem, rc_table **out, rc_error *err)
{
    static const rc_column columns[] = {{"stage", NULL, RC_UNIT_COUNT},
                                        {"chunk", NULL, RC_UNIT_COUNT},
                                        {"first_layer", "from layer", RC_UNIT_COUNT},
                                        {"n_layers", "layers", RC_UNIT_COUNT},
                                        {"kinds", NULL, RC_UNIT_TEXT},
                                        {"embedding", NULL, RC_UNIT_BOOL},
                                        {"token_prediction", "token prediction", RC_UNIT_TEXT},
                                        {"final_norm", "final norm", RC_UNIT_BOOL},
                                        {"loss", NULL, RC_UNIT_BOOL},
                                        {"n_ranks", "ranks", RC_UNIT_COUNT},
                                        {"first_rank", "first rank", RC_UNIT_COUNT}};
    RC_TRY(rc_table_make(mem, "chunks", "Layers by stage", columns, 11, out, err));
    for (int i = 0; i < layout->n_chunks; i++) {
        const int64_t pp = i / layout->sizes.vp, vp = i % layout->sizes.vp;
        const rc_chunk *chunk = rc_layout_chunk(layout, pp, vp);
        const char *kinds, *mtp;
        rc_cell *row;
        RC_TRY(show_kinds(chunk->runs, chunk->n_runs, 1, mem, &kinds, err));
        RC_TRY(show_kinds(chunk->mtp_runs, chunk->n_mtp_runs, chunk->n_mtp, mem, &mtp, err));
        RC_TRY(rc_table_add_row(*out, &row, err));
        row[0] = rc_cell_int(pp);
        row[1] = rc_cell_int(vp);
        row[2] = rc_cell_int(chunk->first_layer);
        row[3] = rc_cell_int(rc_chunk_n_layers(chunk));
        row[4] = rc_cell_text(kinds);
        row[5] = rc_cell_int(chunk->has_embedding);
        row[6] = rc_cell_text(mtp);
        row[7] = rc_cell_int(chunk->has_final_norm);
        row[8] = rc_cell_int(chunk->has_loss);
        row[9] = rc_cell_int(layout->rank_kinds[pp].n_ranks);
        row[10] = rc_cell_int(layout->rank_kinds[pp].number);
    }
    return RC_OK;
}

rc_code rc_layout_facts(const rc_layout *layout, rc_arena *mem, rc_table **out, rc_error *err)
{
    static const rc_column columns[] = {
        {"n_ranks", "ranks", RC_UNIT_COUNT},
        {"is_world_given", "ranks are given", RC_UNIT_BOOL},
        {"tp", "tensor parallel", RC_UNIT_COUNT},
        {"cp", "context parallel", RC_UNIT_COUNT},
        {"gtp", "weight shards a tensor-parallel rank", RC_UNIT_COUNT},
        {"dp", "data parallel", RC_UNIT_COUNT},
        {"pp", "pipeline stages", RC_UNIT_COUNT},
        {"ep", "expert parallel", RC_UNIT_COUNT},
        {"etp", "expert tensor parallel", RC_UNIT_COUNT},
        {"edp", "expert data parallel", RC_UNIT_COUNT},
        {"vp", "chunks a stage", RC_UNIT_COUNT},
        {"is_interleaved", "interleaved", RC_UNIT_BOOL},
        {"n_layers", "layers", RC_UNIT_COUNT},
        {"kinds", NULL, RC_UNIT_TEXT},
        {"n_mtp", "depths of token prediction", RC_UNIT_COUNT},
        {"n_local_experts", "experts of a layer on a rank", RC_UNIT_COUNT},
        {"n_micro_batches", "micro-batches a step", RC_UNIT_COUNT},
        {"micro_batch_group", "micro-batches in a row", RC_UNIT_COUNT}};
    const rc_parallel *s = &layout->sizes;
    const char *kinds;
    rc_cell *row;
    RC_TRY(show_kinds(layout->runs, layout->n_runs, 1, mem, &kinds, err));
    RC_TRY(rc_table_make(mem, "layout", "Layout", columns, sizeof columns / sizeof *columns,
                         out, err));
    RC_TRY(rc_table_add_row(*out, &row, err));
    const int64_t numbers[] = {s->world,
                               s->is_world_given,
                               s->tp,
                               s->cp,
                               s->gtp,
                               s->dp,
                               s->pp,
                               s->ep,
                               s->etp,
                               s->edp,
                               s->vp,
                               s->is_interleaved,
                               layout->n_layers,
                               0,
                               layout->n_mtp,
                               layout->n_local_experts,
                               layout->n_micro_batches,
                               layout->micro_batch_group};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        row[i] = rc_cell_int(numbers[i]);
    row[13] = rc_cell_text(kinds);
    if (layout->n_micro_batches == 0)
        row[16] = rc_cell_text(NULL);
    return RC_OK;
}
