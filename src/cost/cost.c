/* cost.c — prices a schedule: the peak, what is alive there, and what recompute adds.
 *
 * takes  rc_schedule with placed buffers
 * gives  rc_cost and its tables
 * next   report/ prints, plan/ compares
 */
#include <recompute/cost.h>

#include "base/num.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static bool is_alive(const rc_buffer *buffer, int instr)
{
    return buffer->first <= instr && instr <= buffer->last;
}

/* Largest sum of live bytes of each category over the step. */
static rc_code find_largest(rc_cost *cost, rc_arena *mem, rc_error *err)
{
    const rc_schedule *s = cost->schedule;
    int64_t *change;
    for (int category = 0; category < RC_CATEGORY_COUNT; category++) {
        RC_TRY(RC_NEW(mem, &change, s->n_instrs + 1, err));
        for (int i = 0; i < s->n_buffers; i++) {
            const rc_buffer *b = &s->buffers[i];
            if ((int)b->category != category || b->last < 0)
                continue;
            change[b->first] += rc_buffer_room(b);
            change[b->last + 1] -= rc_buffer_room(b);
        }
        int64_t live = 0;
        for (int i = 0; i < s->n_instrs; i++) {
            live += change[i];
            if (live > cost->largest[category])
                cost->largest[category] = live;
        }
    }
    return RC_OK;
}

/* Products run one after another, so the largest counts. */
static int64_t most_library_bytes(const rc_schedule *s)
{
    int64_t most = 0;
    for (int i = 0; i < s->graph->n_ops; i++) {
        const rc_op op = rc_graph_op(s->graph, i);
        int64_t bytes =
            op.facts->library_bytes ? op.facts->library_bytes(&op.attr, s->n_threads) : 0;
        most = bytes > most ? bytes : most;
    }
    return most;
}

rc_code rc_cost_make(const rc_schedule *schedule, rc_arena *mem, rc_cost **out, rc_error *err)
{
    RC_TRY(RC_NEW(mem, out, 1, err));
    rc_cost *cost = *out;
    *cost = (rc_cost){.schedule = schedule,
                      .peak_bytes = schedule->arena_bytes,
                      .bound_bytes = schedule->bound_bytes,
                      .peak_instr = schedule->peak_instr,
                      .retained_bytes = schedule->retained_bytes,
                      .fwd_flops = schedule->fwd_flops,
                      .bwd_flops = schedule->bwd_flops,
                      .recompute_flops = schedule->recompute_flops};
    cost->library_bytes = most_library_bytes(schedule);
    for (int i = 0; i < schedule->n_buffers; i++)
        if (is_alive(&schedule->buffers[i], cost->peak_instr))
            cost->at_peak[schedule->buffers[i].category] +=
                rc_buffer_room(&schedule->buffers[i]);
    cost->model_state_bytes = cost->at_peak[RC_CATEGORY_WEIGHTS] +
                              cost->at_peak[RC_CATEGORY_GRADIENTS] +
                              cost->at_peak[RC_CATEGORY_OPTIMIZER];
    return find_largest(cost, mem, err);
}

static const char *peak_subject(const rc_cost *cost, char buf[RC_GRAPH_NAME_BYTES])
{
    const rc_instr *instr = &cost->schedule->instrs[cost->peak_instr];
    return instr->op >= 0 ? rc_graph_op_name(cost->schedule->graph, instr->op, buf)
                          : "all weights";
}

void rc_cost_print(const rc_cost *cost, FILE *to)
{
    char name[RC_GRAPH_NAME_BYTES];
    fprintf(to, "cost: peak %" PRId64 " bytes, bound %" PRId64 ", at instruction %d (%s %s)\n",
            cost->peak_bytes, cost->bound_bytes, cost->peak_instr,
            rc_instr_kind_name(cost->schedule->instrs[cost->peak_instr].kind),
            peak_subject(cost, name));
    for (int i = 0; i < RC_CATEGORY_COUNT; i++)
        fprintf(to, "%-22s %" PRId64 " at the peak, %" PRId64 " at most\n",
                rc_category_name((rc_category)i), cost->at_peak[i], cost->largest[i]);
    fprintf(to, "flops: forward %" PRId64 ", backward %" PRId64 ", recompute %" PRId64 "\n",
            cost->fwd_flops, cost->bwd_flops, cost->recompute_flops);
}

static rc_code facts_table(const rc_cost *cost, rc_arena *mem, rc_table **out, rc_error *err)
{
    static const rc_column columns[] = {
        {"setting", "setting", RC_UNIT_TEXT},
        {"peak_bytes", "predicted peak", RC_UNIT_BYTES},
        {"bound_bytes", "liveness bound", RC_UNIT_BYTES},
        {"placement_loss", "lost to placement", RC_UNIT_RATIO},
        {"library_bytes", "math library, in scratch, at most", RC_UNIT_BYTES},
        {"model_state_bytes", "model state", RC_UNIT_BYTES},
        {"retained_bytes", "retained by forward", RC_UNIT_BYTES},
        {"peak_phase", "peak in phase", RC_UNIT_TEXT},
        {"peak_op", "peak at op", RC_UNIT_TEXT},
        {"peak_layer", "peak in layer", RC_UNIT_COUNT},
        {"n_parameters", "parameters", RC_UNIT_COUNT},
        {"fwd_flops", "forward", RC_UNIT_FLOPS},
        {"bwd_flops", "backward", RC_UNIT_FLOPS},
        {"recompute_flops", "recomputed", RC_UNIT_FLOPS},
        {"recompute_ratio", "recomputed / (forward + backward)", RC_UNIT_RATIO},
        {"recompute_moved_bytes", "moved by recompute", RC_UNIT_BYTES},
        {"threads", "threads", RC_UNIT_COUNT}};
    const rc_schedule *s = cost->schedule;
    const rc_instr *peak = &s->instrs[cost->peak_instr];
    char buf[RC_GRAPH_NAME_BYTES];
    const char *subject;
    rc_cell *row;
    RC_TRY(rc_arena_printf(mem, &subject, err, "%s", peak_subject(cost, buf)));
    RC_TRY(rc_table_make(mem, "summary", NULL, columns, 17, out, err));
    RC_TRY(rc_table_add_row(*out, &row, err));
    row[0] = rc_cell_text(s->policy->name);
    row[1] = rc_cell_int(cost->peak_bytes);
    row[2] = rc_cell_int(cost->bound_bytes);
    row[3] = rc_cell_real((double)(cost->peak_bytes - cost->bound_bytes) /
                          (double)cost->bound_bytes);
    row[4] = rc_cell_int(cost->library_bytes);
    row[5] = rc_cell_int(cost->model_state_bytes);
    row[6] = rc_cell_int(cost->retained_bytes);
    row[7] = rc_cell_text(rc_instr_kind_name(peak->kind));
    row[8] = rc_cell_text(subject);
    if (peak->op >= 0)
        row[9] = rc_cell_int(rc_graph_op(s->graph, peak->op).layer);
    row[10] = rc_cell_int(s->graph->n_parameters);
    row[11] = rc_cell_int(cost->fwd_flops);
    row[12] = rc_cell_int(cost->bwd_flops);
    row[13] = rc_cell_int(cost->recompute_flops);
    row[14] = rc_cell_real((double)cost->recompute_flops /
                           (double)(cost->fwd_flops + cost->bwd_flops));
    row[15] = rc_cell_int(s->recompute_moved_bytes);
    row[16] = rc_cell_int(s->n_threads);
    return RC_OK;
}

static rc_code category_table(const rc_cost *cost, rc_arena *mem, rc_table **out, rc_error *err)
{
    static const rc_column columns[] = {{"category", NULL, RC_UNIT_TEXT},
                                        {"at_peak_bytes", "at the peak", RC_UNIT_BYTES},
                                        {"largest_bytes", "at most", RC_UNIT_BYTES}};
    RC_TRY(rc_table_make(mem, "categories", "memory by category", columns, 3, out, err));
    for (int i = 0; i < RC_CATEGORY_COUNT; i++) {
        rc_cell *row;
        RC_TRY(rc_table_add_row(*out, &row, err));
        row[0] = rc_cell_text(rc_category_name((rc_category)i));
        row[1] = rc_cell_int(cost->at_peak[i]);
        row[2] = rc_cell_int(cost->largest[i]);
    }
    return RC_OK;
}

/* The label whose region computes the tensor, the innermost first in the table's order. */
static const char *label_of(const rc_graph *graph, int tensor)
{
    int producer = rc_graph_tensor(graph, tensor).producer;
    for (int i = 0; i < graph->n_regions; i++) {
        const rc_region region = rc_graph_region(graph, i);
        if (region.first <= producer && producer <= region.last)
            return rc_label_find_facts(region.label)->name;
    }
    return NULL;
}

typedef struct alive_part {
    const char *part, *category, *label;
    int64_t n, bytes;
} alive_part;

static int by_bytes(const void *a, const void *b)
{
    const alive_part *x = a, *y = b;
    return x->bytes < y->bytes ? 1 : x->bytes > y->bytes ? -1 : strcmp(x->part, y->part);
}

/* What a storage holds last: an op that works in place leaves its own result there. */
static rc_code find_contents(const rc_graph *graph, rc_arena *mem, int **out, rc_error *err)
{
    RC_TRY(RC_NEW(mem, out, graph->n_tensors, err));
    for (int i = 0; i < graph->n_tensors; i++) {
        const rc_tensor tensor = rc_graph_tensor(graph, i);
        (*out)[i] = i;
        if (tensor.view_of < 0 &&
            tensor.n_elem == rc_graph_tensor(graph, tensor.storage).n_elem)
            (*out)[tensor.storage] = i;
    }
    return RC_OK;
}

static int content_of(const int *contents, const rc_buffer *buffer)
{
    bool is_value = buffer->category == RC_CATEGORY_ACTIVATIONS ||
                    buffer->category == RC_CATEGORY_RECOMPUTED;
    return is_value ? contents[buffer->tensor] : buffer->tensor;
}

/* Buffers alive at the peak, those of the same part and category over all layers added up. */
static rc_code collect_alive(const rc_cost *cost, rc_arena *mem, alive_part **out, size_t *n,
                             rc_error *err)
{
    const rc_schedule *s = cost->schedule;
    int *contents;
    RC_TRY(find_contents(s->graph, mem, &contents, err));
    RC_TRY(RC_NEW(mem, out, s->n_buffers, err));
    *n = 0;
    for (int i = 0; i < s->n_buffers; i++) {
        const rc_buffer *b = &s->buffers[i];
        if (!is_alive(b, cost->peak_instr))
            continue;
        int content = content_of(contents, b);
        const char *part = content >= 0 ? rc_graph_tensor(s->graph, content).part : "scratch";
        const char *category = rc_category_name(b->category);
        size_t at = 0;
        while (at < *n && (strcmp((*out)[at].part, part) != 0 ||
                           strcmp((*out)[at].category, category) != 0))
            at++;
        if (at == *n) {
            const char *label = content >= 0 ? label_of(s->graph, content) : NULL;
            (*out)[(*n)++] = (alive_part){.part = part, .category = category, .label = label};
        }
        (*out)[at].n++;
        (*out)[at].bytes += rc_buffer_room(b);
    }
    qsort(*out, *n, sizeof **out, by_bytes);
    return RC_OK;
}

static rc_code alive_table(const rc_cost *cost, rc_arena *mem, rc_table **out, rc_error *err)
{
    static const rc_column columns[] = {
        {"tensor", NULL, RC_UNIT_TEXT}, {"category", NULL, RC_UNIT_TEXT},
        {"label", NULL, RC_UNIT_TEXT},  {"count", NULL, RC_UNIT_COUNT},
        {"bytes", NULL, RC_UNIT_BYTES}, {"share", NULL, RC_UNIT_RATIO}};
    alive_part *parts;
    size_t n;
    RC_TRY(rc_table_make(mem, "alive_at_peak", "alive at the peak, over all layers", columns, 6,
                         out, err));
    RC_TRY(collect_alive(cost, mem, &parts, &n, err));
    for (size_t i = 0; i < n; i++) {
        rc_cell *row;
        RC_TRY(rc_table_add_row(*out, &row, err));
        row[0] = rc_cell_text(parts[i].part);
        row[1] = rc_cell_text(parts[i].category);
        row[2] = rc_cell_text(parts[i].label);
        row[3] = rc_cell_int(parts[i].n);
        row[4] = rc_cell_int(parts[i].bytes);
        row[5] = rc_cell_real((double)parts[i].bytes / (double)cost->bound_bytes);
    }
    return RC_OK;
}

rc_code rc_cost_report(const rc_cost *cost, rc_arena *mem, rc_report *report, rc_error *err)
{
    rc_table *table;
    RC_TRY(facts_table(cost, mem, &table, err));
    rc_report_add(report, table, true);
    RC_TRY(category_table(cost, mem, &table, err));
    rc_report_add(report, table, false);
    RC_TRY(alive_table(cost, mem, &table, err));
    rc_report_add(report, table, false);
    return RC_OK;
}

rc_code rc_cost_timeline(const rc_cost *cost, rc_arena *mem, rc_table **out, rc_error *err)
{
    static const rc_column columns[] = {
        {"instruction", NULL, RC_UNIT_COUNT}, {"kind", NULL, RC_UNIT_TEXT},
        {"op", NULL, RC_UNIT_TEXT},           {"weights", NULL, RC_UNIT_BYTES},
        {"gradients", NULL, RC_UNIT_BYTES},   {"optimizer", NULL, RC_UNIT_BYTES},
        {"inputs", NULL, RC_UNIT_BYTES},      {"activations", NULL, RC_UNIT_BYTES},
        {"recomputed", NULL, RC_UNIT_BYTES},  {"activation_gradients", NULL, RC_UNIT_BYTES},
        {"scratch", NULL, RC_UNIT_BYTES},     {"live_bytes", NULL, RC_UNIT_BYTES}};
    const rc_schedule *s = cost->schedule;
    int64_t(*change)[RC_CATEGORY_COUNT];
    int64_t live[RC_CATEGORY_COUNT] = {0};
    RC_TRY(RC_NEW(mem, &change, s->n_instrs + 1, err));
    for (int i = 0; i < s->n_buffers; i++) {
        const rc_buffer *b = &s->buffers[i];
        if (b->last < 0)
            continue;
        change[b->first][b->category] += rc_buffer_room(b);
        change[b->last + 1][b->category] -= rc_buffer_room(b);
    }
    RC_TRY(rc_table_make(mem, "timeline", "live bytes at every instruction", columns, 12, out,
                         err));
    for (int i = 0; i < s->n_instrs; i++) {
        const rc_instr *instr = &s->instrs[i];
        char buf[RC_GRAPH_NAME_BYTES];
        const char *name = NULL;
        rc_cell *row;
        if (instr->op >= 0)
            RC_TRY(rc_arena_printf(mem, &name, err, "%s",
                                   rc_graph_op_name(s->graph, instr->op, buf)));
        RC_TRY(rc_table_add_row(*out, &row, err));
        row[0] = rc_cell_int(i);
        row[1] = rc_cell_text(rc_instr_kind_name(instr->kind));
        row[2] = rc_cell_text(name);
        for (int k = 0; k < RC_CATEGORY_COUNT; k++) {
            live[k] += change[i][k];
            row[3 + k] = rc_cell_int(live[k]);
        }
        row[11] = rc_cell_int(instr->live_bytes);
    }
    return RC_OK;
}

rc_code rc_cost_layer(const rc_policy *policy, int layer, rc_arena *mem, int64_t *bytes,
                      int64_t *stats_bytes, rc_error *err)
{
    const rc_graph *graph = policy->graph;
    bool *is_retained;
    *bytes = *stats_bytes = 0;
    RC_TRY(rc_policy_retained(policy, mem, &is_retained, err));
    for (int i = 0; i < graph->n_tensors; i++) {
        const rc_tensor tensor = rc_graph_tensor(graph, i);
        if (!is_retained[i] || tensor.storage != i || tensor.layer != layer)
            continue;
        int64_t *sum = tensor.kind == RC_TENSOR_STATS ? stats_bytes : bytes;
        if (!rc_add(*sum, tensor.bytes, sum))
            return RC_FAIL(err, RC_E_RANGE, RC_NOWHERE, "layer %d passes 2^63-1 bytes", layer);
    }
    return RC_OK;
}
