/* outline.c — the bound and the replay of a setting from a schedule of a few layers.
 *
 * takes  a graph, settings
 * gives  rc_outline: what rc_schedule_make would report, without a list of all layers
 * next   plan/ places only what can fit
 *
 * Layers are alike, and a setting treats them in runs: block k has k discarded layers and L - k
 * others, uniform k has groups of k. So the live bytes of the whole list repeat, up to a constant,
 * from layer to layer of a run and from group to group. A *sketch* is the schedule of the same
 * setting with every run cut to SHORT layers and at most SHORT groups. Its instructions are split
 * into visits, one per stretch on the same layer; a visit has a change of live bytes and a peak
 * above where it started. The third layer of a cut run stands for those that were cut out: its
 * visits count as many times as there are. Likewise the third group.
 *
 * Emission looks at one layer and what touches it, so if the second and the third of a run are
 * alike, instruction by instruction, so are all between them and the last. That is compared; where
 * it does not hold, or the graph has layers of several kinds, the whole list is made.
 */
#include "schedule/outline.h"

#include "base/num.h"
#include "schedule/passes.h"

#include <math.h>
#include <string.h>

enum { SHORT = 4, STANDS = 2, MOST_RUNS = SHORT + 1, MOST_LAYERS = SHORT * MOST_RUNS };

/* How a setting's layers map on a sketch's. */
typedef struct cut {
    rc_setting setting; /* of the short model */
    int n_runs, n_layers;
    struct {
        int first, n;   /* short layers */
        int64_t n_full; /* what they stand for */
    } runs[MOST_RUNS];
    int64_t n_groups; /* runs 0 .. SHORT-1 are groups and stand for so many; 0: they do not */
} cut;

/* A stretch of the whole list: what it does to the live bytes, and its replays. */
typedef struct part {
    int64_t change, peak;
    int64_t flops, moved_bytes;
} part;

/* Instructions in a row on one layer; -1 is before the first and after the last. */
typedef struct visit {
    int layer, first, last;
    part part;
} visit;

typedef struct sketch {
    visit *visits;
    int n_visits, n_visits_room;
    bool is_even[MOST_RUNS]; /* layers STANDS-1 and STANDS of a run are alike */
    bool has_even_groups;
} sketch;

typedef struct known {
    cut cut;
    sketch as_is, kept;
    bool has_kept; /* something is discarded in the last layer */
    struct known *next;
} known;

struct rc_outliner {
    const rc_graph *graph;
    int n_threads;
    rc_arena *mem;
    bool is_uniform;
    int64_t persistent_bytes;
    rc_graph *shorter[MOST_LAYERS + 1]; /* the graph with fewer layers */
    known *known;
};

/* ---- sums ---- */

static rc_code range_error(rc_error *err)
{
    return RC_FAIL(err, RC_E_RANGE, RC_NOWHERE, "the arena passes 2^63-1 bytes");
}

static rc_code append(part *sum, const part *next, rc_error *err)
{
    if (fabs((double)sum->change + (double)next->peak) > 9e18 ||
        (double)sum->flops + (double)next->flops > 9e18 ||
        (double)sum->moved_bytes + (double)next->moved_bytes > 9e18)
        return range_error(err);
    if (sum->change + next->peak > sum->peak)
        sum->peak = sum->change + next->peak;
    sum->change += next->change;
    sum->flops += next->flops;
    sum->moved_bytes += next->moved_bytes;
    return RC_OK;
}

static rc_code append_times(part *sum, const part *next, int64_t times, rc_error *err)
{
    part all = *next;
    if (fabs((double)next->change * (double)times) > 9e18 ||
        (double)next->flops * (double)times > 9e18 ||
        (double)next->moved_bytes * (double)times > 9e18)
        return range_error(err);
    all.change *= times;
    all.flops *= times;
    all.moved_bytes *= times;
    if (next->change > 0)
        all.peak += next->change * (times - 1);
    return append(sum, &all, err);
}

/* ---- sketches ---- */

static int layer_of(const rc_schedule *schedule, int instr)
{
    int op = schedule->instrs[instr].op;
    int layer = op < 0 ? -1 : rc_graph_op(schedule->graph, op).layer;
    return layer < schedule->graph->dims.L ? layer : -1;
}

static int64_t live_before(const rc_schedule *schedule, int instr)
{
    int64_t persistent = 0;
    if (instr)
        return schedule->instrs[instr - 1].live_bytes;
    for (int i = 0; i < schedule->n_buffers; i++)
        if (schedule->buffers[i].is_persistent)
            persistent += rc_buffer_room(&schedule->buffers[i]);
    return persistent;
}

static part sum_visit(const rc_schedule *schedule, const visit *v)
{
    int64_t before = live_before(schedule, v->first);
    part sum = {.peak = INT64_MIN};
    for (int i = v->first; i <= v->last; i++) {
        const rc_instr *instr = &schedule->instrs[i];
        if (instr->live_bytes - before > sum.peak)
            sum.peak = instr->live_bytes - before;
        if (instr->kind != RC_INSTR_RECOMPUTE)
            continue;
        const rc_op op = rc_graph_op(schedule->graph, instr->op);
        sum.flops += op.fwd_flops;
        sum.moved_bytes += op.fwd_bytes;
    }
    sum.change = schedule->instrs[v->last].live_bytes - before;
    return sum;
}

static bool find_visits(const rc_schedule *schedule, sketch *out)
{
    for (int i = 0; i < schedule->n_instrs; i++) {
        int layer = layer_of(schedule, i);
        if (i == 0 || layer != out->visits[out->n_visits - 1].layer) {
            if (out->n_visits == out->n_visits_room)
                return false;
            out->visits[out->n_visits++] = (visit){.layer = layer, .first = i};
        }
        out->visits[out->n_visits - 1].last = i;
    }
    for (int i = 0; i < out->n_visits; i++)
        out->visits[i].part = sum_visit(schedule, &out->visits[i]);
    return true;
}

static bool is_same_visit(const rc_schedule *schedule, const visit *a, const visit *b)
{
    if (a->last - a->first != b->last - b->first)
        return false;
    for (int i = 0; i <= a->last - a->first; i++) {
        const rc_instr *x = &schedule->instrs[a->first + i];
        const rc_instr *y = &schedule->instrs[b->first + i];
        if (x->kind != y->kind || x->flops != y->flops ||
            x->live_bytes - live_before(schedule, a->first + i) !=
                y->live_bytes - live_before(schedule, b->first + i))
            return false;
    }
    return true;
}

/* The next visit of `layer` at or after `at`; n_visits where there is none. */
static int next_visit(const sketch *s, int at, int layer)
{
    while (at < s->n_visits && s->visits[at].layer != layer)
        at++;
    return at;
}

/* Whether two layers are visited as often, and alike. */
static bool is_same_layer(const rc_schedule *schedule, const sketch *s, int a, int b)
{
    int i = next_visit(s, 0, a), j = next_visit(s, 0, b);
    for (; i < s->n_visits && j < s->n_visits;
         i = next_visit(s, i + 1, a), j = next_visit(s, j + 1, b))
        if (!is_same_visit(schedule, &s->visits[i], &s->visits[j]))
            return false;
    return i == s->n_visits && j == s->n_visits;
}

static void compare_layers(const rc_schedule *schedule, const cut *c, sketch *s)
{
    for (int run = 0; run < c->n_runs; run++)
        s->is_even[run] = c->runs[run].n == SHORT &&
                          is_same_layer(schedule, s, c->runs[run].first + STANDS - 1,
                                        c->runs[run].first + STANDS);
    s->has_even_groups = c->n_groups >= SHORT;
    for (int i = 0; s->has_even_groups && i < c->runs[STANDS].n; i++)
        s->has_even_groups = is_same_layer(schedule, s, c->runs[STANDS - 1].first + i,
                                           c->runs[STANDS].first + i);
}

static rc_code make_sketch(const rc_outliner *o, const rc_policy *policy, const cut *c,
                           sketch *out, rc_error *err)
{
    rc_schedule *schedule;
    rc_mark mark = rc_arena_mark(o->mem);
    RC_TRY(rc_schedule_unplaced(policy, o->n_threads, o->mem, &schedule, err));
    if (find_visits(schedule, out))
        compare_layers(schedule, c, out);
    rc_arena_rewind(o->mem, mark);
    return RC_OK;
}

/* Whether what was cut out can be put back. */
static bool is_sound(const cut *c, const sketch *s)
{
    for (int run = 0; run < c->n_runs; run++)
        if (c->runs[run].n < c->runs[run].n_full && !s->is_even[run])
            return false;
    return c->n_groups <= SHORT || s->has_even_groups;
}

/* ---- the whole from a sketch ---- */

static int run_of(const cut *c, int layer)
{
    for (int run = 0; run < c->n_runs; run++)
        if (layer >= c->runs[run].first && layer < c->runs[run].first + c->runs[run].n)
            return run;
    return -1;
}

/* Visits [*at, ...) of one run, those of the layer that stands for others counted for them. */
static rc_code sum_run(const cut *c, const sketch *s, int run, int *at, part *out,
                       rc_error *err)
{
    int stands = run < 0 ? -1 : c->runs[run].first + STANDS;
    int64_t times = run < 0 ? 1 : c->runs[run].n_full - c->runs[run].n + 1;
    *out = (part){.peak = INT64_MIN / 4};
    for (; *at < s->n_visits && run_of(c, s->visits[*at].layer) == run; ++*at) {
        const visit *v = &s->visits[*at];
        RC_TRY(append_times(out, &v->part, v->layer == stands ? times : 1, err));
    }
    return RC_OK;
}

static rc_code sum_sketch(const cut *c, const sketch *s, part *out, rc_error *err)
{
    *out = (part){.peak = 0};
    for (int at = 0; at < s->n_visits;) {
        int run = run_of(c, s->visits[at].layer);
        part stretch;
        RC_TRY(sum_run(c, s, run, &at, &stretch, err));
        int64_t times = run == STANDS && c->n_groups > SHORT ? c->n_groups - SHORT + 1 : 1;
        RC_TRY(append_times(out, &stretch, times, err));
    }
    return RC_OK;
}

/* ---- settings ---- */

static void add_run(cut *c, int64_t n_full)
{
    int n = n_full < SHORT ? (int)n_full : SHORT;
    if (n == 0)
        return;
    c->runs[c->n_runs].first = c->n_layers;
    c->runs[c->n_runs].n = n;
    c->runs[c->n_runs++].n_full = n_full;
    c->n_layers += n;
}

static cut make_cut(const rc_setting *setting, int64_t n_layers)
{
    cut c;
    memset(&c, 0, sizeof c); /* compared as bytes */
    c.setting.granularity = setting->granularity;
    int64_t n = setting->num_layers < n_layers ? setting->num_layers : n_layers;
    if (setting->granularity != RC_GRANULARITY_FULL) {
        c.setting.labels = setting->labels;
        add_run(&c, n_layers);
        return c;
    }
    c.setting.method = setting->method;
    if (setting->method == RC_METHOD_BLOCK) {
        add_run(&c, n);
        add_run(&c, n_layers - n);
    } else {
        c.n_groups = n_layers / n;
        for (int64_t group = 0; group < c.n_groups && group < SHORT; group++)
            add_run(&c, n);
        add_run(&c, n_layers % n);
    }
    c.setting.num_layers = c.runs[0].n;
    return c;
}

static bool is_same_sketch(const cut *a, const cut *b)
{
    if (memcmp(&a->setting, &b->setting, sizeof a->setting) != 0 || a->n_runs != b->n_runs)
        return false;
    for (int run = 0; run < a->n_runs; run++)
        if (a->runs[run].n != b->runs[run].n)
            return false;
    return true;
}

static rc_code short_graph(rc_outliner *o, int n, const rc_graph **out, rc_error *err)
{
    *out = o->graph;
    if (n == o->graph->dims.L)
        return RC_OK;
    if (!o->shorter[n])
        RC_TRY(rc_graph_with_layers(o->graph, n, o->mem, &o->shorter[n], err));
    *out = o->shorter[n];
    return RC_OK;
}

static rc_code make_sketches(rc_outliner *o, const rc_graph *graph, known *k, rc_error *err)
{
    rc_policy *policy, *kept;
    sketch *sketches[] = {&k->as_is, &k->kept};
    for (int i = 0; i < 2; i++) {
        sketches[i]->n_visits_room = 8 * (k->cut.n_layers + 2);
        RC_TRY(RC_NEW(o->mem, &sketches[i]->visits, sketches[i]->n_visits_room, err));
    }
    rc_mark mark = rc_arena_mark(o->mem);
    RC_TRY(rc_policy_make(graph, &k->cut.setting, o->mem, &policy, err));
    RC_TRY(make_sketch(o, policy, &k->cut, &k->as_is, err));
    RC_TRY(rc_policy_keep_last_layer(policy, o->mem, &kept, err));
    k->has_kept = kept != NULL;
    if (kept)
        RC_TRY(make_sketch(o, kept, &k->cut, &k->kept, err));
    rc_arena_rewind(o->mem, mark);
    return RC_OK;
}

static rc_code find_sketches(rc_outliner *o, const cut *c, const known **out, rc_error *err)
{
    known *at = o->known;
    const rc_graph *graph;
    while (at && !is_same_sketch(&at->cut, c))
        at = at->next;
    *out = at;
    if (at)
        return RC_OK;
    RC_TRY(RC_NEW(o->mem, &at, 1, err));
    RC_TRY(short_graph(o, c->n_layers, &graph, err));
    at->cut = *c;
    RC_TRY(make_sketches(o, graph, at, err));
    at->next = o->known;
    o->known = at;
    *out = at;
    return RC_OK;
}

/* ---- the door ---- */

static rc_code count_persistent(rc_outliner *o, rc_error *err)
{
    for (int i = 0; i < o->graph->n_tensors; i++)
        for (int role = 0; role < RC_PARAM_ROLE_COUNT; role++) {
            rc_buffer buffer;
            if (rc_persistent_buffer(o->graph, i, (rc_param_role)role, &buffer) &&
                !rc_add(o->persistent_bytes, rc_buffer_room(&buffer), &o->persistent_bytes))
                return RC_FAIL(err, RC_E_RANGE, RC_NOWHERE, "the model passes 2^63-1 bytes");
        }
    return RC_OK;
}

rc_code rc_outliner_open(const rc_graph *graph, int n_threads, rc_arena *mem, rc_outliner **out,
                         rc_error *err)
{
    RC_TRY(RC_NEW(mem, out, 1, err));
    **out = (rc_outliner){.graph = graph,
                          .n_threads = n_threads,
                          .mem = mem,
                          .is_uniform = rc_graph_only_run(graph) != NULL};
    return count_persistent(*out, err);
}

/* From the schedules of all layers. */
static rc_code outline_in_full(rc_outliner *o, const rc_setting *setting, rc_outline *out,
                               rc_error *err)
{
    rc_policy *policy;
    rc_schedule *schedule;
    rc_mark mark = rc_arena_mark(o->mem);
    RC_TRY(rc_policy_make(o->graph, setting, o->mem, &policy, err));
    RC_TRY(rc_schedule_choose(policy, o->n_threads, o->mem, &schedule, err));
    *out = (rc_outline){schedule->bound_bytes, schedule->recompute_flops,
                        schedule->recompute_moved_bytes, schedule->policy->is_last_layer_kept};
    rc_arena_rewind(o->mem, mark);
    return RC_OK;
}

rc_code rc_outline_make(rc_outliner *o, const rc_setting *setting, rc_outline *out,
                        rc_error *err)
{
    cut c = make_cut(setting, o->graph->dims.L);
    const known *found;
    part sum, kept = {.peak = INT64_MAX};
    if (!o->is_uniform)
        return outline_in_full(o, setting, out, err);
    RC_TRY(find_sketches(o, &c, &found, err));
    if (!is_sound(&c, &found->as_is) || (found->has_kept && !is_sound(&c, &found->kept)))
        return outline_in_full(o, setting, out, err);
    RC_TRY(sum_sketch(&c, &found->as_is, &sum, err));
    if (found->has_kept)
        RC_TRY(sum_sketch(&c, &found->kept, &kept, err));
    bool is_last_kept = rc_schedule_keeps_last_layer(sum.peak, kept.peak);
    sum = is_last_kept ? kept : sum;
    *out = (rc_outline){0, sum.flops, sum.moved_bytes, is_last_kept};
    if (!rc_add(o->persistent_bytes, sum.peak, &out->bound_bytes))
        return range_error(err);
    return RC_OK;
}
