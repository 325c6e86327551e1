/* steps.c — peaks of training steps and of marked regions.
 *
 * takes  the file twice: annotations come after the events they describe
 * gives  one row per step, or per region name
 *
 * Regions nest. Only the innermost open one is updated by an event; when it ends, its peak goes to the
 * one around it, so an event costs the same however deep the nesting is.
 * source: torch/csrc/cuda/memory_snapshot.cpp (external_annotations: name, stage, device, time_us)
 */
#include <recompute/snapshot.h>

#include <stdlib.h>
#include <string.h>

#define N(columns) (sizeof(columns) / sizeof *(columns))

enum { MOST_OPEN = 1024 };

/* A stretch of one device's trace. */
typedef struct span {
    const char *name;
    int device;
    int64_t first_index, last_index; /* events; last -1 while open */
    int64_t from_us, to_us;
    int64_t from_bytes, to_bytes, peak_bytes; /* net of the trace */
    int64_t n_allocs, alloc_bytes;            /* inside */
} span;

typedef struct spans {
    rc_arena *mem;
    span *at;
    size_t n, n_room;
} spans;

static rc_code add_span(spans *to, const span *one, rc_error *err)
{
    RC_TRY(RC_GROW(to->mem, &to->at, to->n, &to->n_room, to->n + 1, err));
    to->at[to->n++] = *one;
    return RC_OK;
}

/* A mark of one device in time. */
typedef struct mark {
    uint32_t name; /* string id of the first reading */
    bool is_start;
    int64_t time_us;
    size_t order; /* in the file: marks of one time keep it */
} mark;

typedef struct lane {
    int device; /* of the trace */
    const mark *marks;
    size_t n_marks, next_mark;
    int64_t net_bytes, n_allocs, alloc_bytes;
    int64_t last_index, last_us;
    size_t open[MOST_OPEN]; /* spans, outermost first */
    uint32_t open_name[MOST_OPEN];
    size_t n_open, n_ignored;
    bool was_optimizer, has_open_step;
    size_t step; /* the open step's span */
    int64_t n_steps;
} lane;

typedef enum step_kind { BY_REGIONS, BY_MARKS, BY_PHASES } step_kind;

typedef struct stepper {
    rc_arena *mem;
    const rc_snapshot_file *file; /* of the first reading */
    lane **lanes;                 /* by trace number */
    size_t n_lanes;
    spans found;
    step_kind kind;
} stepper;

/* ---- marks ---- */

static bool has_prefix(const stepper *s, uint32_t name, const char *prefix)
{
    rc_snapshot_string text = rc_snapshot_string_at(s->file->names, name);
    return strncmp(text.bytes, prefix, strlen(prefix)) == 0;
}

static int by_time(const void *a, const void *b)
{
    const mark *x = a, *y = b;
    if (x->time_us != y->time_us)
        return x->time_us < y->time_us ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

/* Marks of a device, or all of them when it has none: the marking thread may sit elsewhere. */
static rc_code take_marks(const stepper *s, const char *prefix, lane *l, rc_error *err)
{
    const rc_snapshot_file *file = s->file;
    bool has_own = false;
    for (size_t i = 0; i < file->n_annotations; i++)
        has_own = has_own || file->annotations[i].device == l->device;
    mark *marks;
    RC_TRY(RC_NEW(s->mem, &marks, file->n_annotations, err));
    for (size_t i = 0; i < file->n_annotations; i++) {
        const rc_snapshot_annotation *a = &file->annotations[i];
        if ((has_own && a->device != l->device) || !has_prefix(s, a->name, prefix))
            continue;
        marks[l->n_marks++] = (mark){a->name, a->is_start, a->time_us, i};
    }
    if (l->n_marks > 1)
        qsort(marks, l->n_marks, sizeof *marks, by_time);
    l->marks = marks;
    return RC_OK;
}

/* ---- spans ---- */

static rc_code open_span(stepper *s, lane *l, const char *name, int64_t index, int64_t time_us,
                         rc_error *err)
{
    const span one = {.name = name,
                      .device = l->device,
                      .first_index = index,
                      .last_index = -1,
                      .from_us = time_us,
                      .from_bytes = l->net_bytes,
                      .peak_bytes = l->net_bytes,
                      /* less what was counted before: closing adds the counters then */
                      .n_allocs = -l->n_allocs,
                      .alloc_bytes = -l->alloc_bytes};
    return add_span(&s->found, &one, err);
}

static void close_span(stepper *s, lane *l, size_t at, int64_t time_us)
{
    span *one = &s->found.at[at];
    one->last_index = l->last_index;
    one->to_us = time_us;
    one->to_bytes = l->net_bytes;
    one->n_allocs += l->n_allocs;
    one->alloc_bytes += l->alloc_bytes;
}

static rc_code apply_region(stepper *s, lane *l, const mark *m, int64_t index, rc_error *err)
{
    if (m->is_start) {
        if (l->n_open == MOST_OPEN) {
            l->n_ignored++;
            return RC_OK;
        }
        l->open[l->n_open] = s->found.n;
        l->open_name[l->n_open++] = m->name;
        return open_span(s, l, rc_snapshot_string_at(s->file->names, m->name).bytes, index,
                         m->time_us, err);
    }
    size_t k = l->n_open;
    while (k > 0 && l->open_name[k - 1] != m->name)
        k--;
    if (k == 0)
        return RC_OK; /* its start lies before the recording */
    /* peaks inside what it encloses are its own too */
    int64_t peak = 0;
    for (size_t i = k - 1; i < l->n_open; i++) {
        int64_t inner = s->found.at[l->open[i]].peak_bytes;
        peak = i == k - 1 || inner > peak ? inner : peak;
    }
    size_t at = l->open[k - 1];
    s->found.at[at].peak_bytes = peak;
    close_span(s, l, at, m->time_us);
    if (k >= 2 && peak > s->found.at[l->open[k - 2]].peak_bytes)
        s->found.at[l->open[k - 2]].peak_bytes = peak;
    l->n_open--;
    for (size_t i = k - 1; i < l->n_open; i++) {
        l->open[i] = l->open[i + 1];
        l->open_name[i] = l->open_name[i + 1];
    }
    return RC_OK;
}

static rc_code next_step(stepper *s, lane *l, const char *name, int64_t index, int64_t time_us,
                         rc_error *err)
{
    if (l->has_open_step)
        close_span(s, l, l->step, time_us);
    if (!name)
        RC_TRY(rc_arena_printf(s->mem, &name, err, "step %lld", (long long)l->n_steps));
    l->n_steps++;
    l->step = s->found.n;
    l->has_open_step = true;
    return open_span(s, l, name, index, time_us, err);
}

/* ProfilerStep#N begins a step; Optimizer.step ends one. */
static rc_code apply_step_mark(stepper *s, lane *l, const mark *m, int64_t index, rc_error *err)
{
    bool is_profiler = has_prefix(s, m->name, "ProfilerStep#");
    if (is_profiler != m->is_start)
        return RC_OK;
    return next_step(s, l,
                     is_profiler ? rc_snapshot_string_at(s->file->names, m->name).bytes : NULL,
                     index, m->time_us, err);
}

static rc_code pass_marks(stepper *s, lane *l, const rc_change *change, rc_error *err)
{
    while (l->next_mark < l->n_marks && change->has_time &&
           l->marks[l->next_mark].time_us <= change->time_us) {
        const mark *m = &l->marks[l->next_mark++];
        RC_TRY(s->kind == BY_REGIONS ? apply_region(s, l, m, change->index, err)
                                     : apply_step_mark(s, l, m, change->index, err));
    }
    return RC_OK;
}

/* Without marks: a step begins with the first forward allocation after the optimizer's. */
static rc_code turn_phase(stepper *s, lane *l, const rc_change *change, rc_error *err)
{
    bool is_turn = l->was_optimizer && change->is_alloc && change->phase == RC_SNAPSHOT_FORWARD;
    if (is_turn || !l->has_open_step)
        RC_TRY(next_step(s, l, NULL, change->index, change->time_us, err));
    if (!change->is_alloc)
        return RC_OK;
    if (change->phase == RC_SNAPSHOT_OPTIMIZER)
        l->was_optimizer = true;
    else if (change->phase != RC_SNAPSHOT_NO_FRAMES && change->phase != RC_SNAPSHOT_OTHER)
        l->was_optimizer = false;
    return RC_OK;
}

static rc_code move_spans(stepper *s, lane *l, const rc_change *change, rc_error *err)
{
    if (s->kind == BY_PHASES)
        return turn_phase(s, l, change, err);
    if (s->kind == BY_MARKS && !l->has_open_step)
        RC_TRY(next_step(s, l, "(before the first mark)", change->index, change->time_us, err));
    return pass_marks(s, l, change, err);
}

static span *innermost(stepper *s, const lane *l)
{
    if (l->has_open_step)
        return &s->found.at[l->step];
    return l->n_open ? &s->found.at[l->open[l->n_open - 1]] : NULL;
}

static rc_code watch_change(void *state, uint32_t trace, const rc_change *change, rc_error *err)
{
    stepper *s = state;
    lane *l = trace < s->n_lanes ? s->lanes[trace] : NULL;
    if (!l)
        return RC_OK;
    RC_TRY(move_spans(s, l, change, err));
    l->net_bytes += change->delta_bytes;
    if (change->is_alloc) {
        l->n_allocs++;
        l->alloc_bytes += change->delta_bytes;
    }
    l->last_index = change->index;
    l->last_us = change->time_us;
    span *inner = innermost(s, l);
    if (inner && l->net_bytes > inner->peak_bytes)
        inner->peak_bytes = l->net_bytes;
    return RC_OK;
}

/* ---- both readings ---- */

static rc_code make_lanes(stepper *s, const char *prefix, rc_error *err)
{
    s->n_lanes = s->file->n_traces;
    RC_TRY(RC_NEW(s->mem, &s->lanes, s->n_lanes, err));
    for (size_t i = 0; i < s->n_lanes; i++) {
        if (s->file->traces[i].device < 0)
            continue;
        RC_TRY(RC_NEW(s->mem, &s->lanes[i], 1, err));
        s->lanes[i]->device = s->file->traces[i].device;
        s->lanes[i]->last_index = -1;
        RC_TRY(take_marks(s, prefix, s->lanes[i], err));
    }
    return RC_OK;
}

static bool has_marks(const stepper *s, const char *prefix)
{
    for (size_t i = 0; i < s->file->n_annotations; i++)
        if (has_prefix(s, s->file->annotations[i].name, prefix))
            return true;
    return false;
}

static rc_code first_reading(stepper *s, const char *path, rc_error *err)
{
    rc_snapshot_file *file;
    if (strcmp(path, "-") == 0)
        return RC_FAIL(err, RC_E_INPUT, RC_NOWHERE,
                       "steps and regions read the file twice; give its name, not -");
    RC_TRY(rc_snapshot_read(path, NULL, s->mem, &file, NULL, err));
    s->file = file;
    return RC_OK;
}

static rc_code second_reading(stepper *s, const char *path, rc_snapshot **out, rc_error *err)
{
    const rc_snapshot_watch watch = {s, watch_change};
    RC_TRY(rc_snapshot_make(path, NULL, &watch, s->mem, out, NULL, err));
    for (size_t i = 0; i < s->n_lanes; i++) {
        lane *l = s->lanes[i];
        if (l && l->has_open_step)
            close_span(s, l, l->step, l->last_us);
        while (l && l->n_open > 0) { /* a region without an end lasts to the end */
            const mark end = {.name = l->open_name[l->n_open - 1], .time_us = l->last_us};
            RC_TRY(apply_region(s, l, &end, l->last_index, err));
        }
    }
    return RC_OK;
}

static int64_t baseline_of(const rc_snapshot *snapshot, int device)
{
    for (size_t i = 0; i < snapshot->n_devices; i++)
        if (snapshot->devices[i].device == device)
            return snapshot->devices[i].baseline_requested_bytes;
    return 0;
}

static bool shows(const rc_snapshot_view *view, int device)
{
    return view->device < 0 || view->device == device;
}

/* ---- steps ---- */

rc_code rc_snapshot_steps(const char *path, const rc_snapshot_view *view, rc_arena *mem,
                          rc_report *report, rc_error *err)
{
    static const rc_column columns[] = {{"device", NULL, RC_UNIT_COUNT},
                                        {"step", NULL, RC_UNIT_TEXT},
                                        {"peak_requested_bytes", "peak", RC_UNIT_BYTES},
                                        {"end_requested_bytes", "at its end", RC_UNIT_BYTES},
                                        {"growth_bytes", "left behind", RC_UNIT_BYTES},
                                        {"allocs", "allocations", RC_UNIT_COUNT},
                                        {"alloc_bytes", "allocated", RC_UNIT_BYTES},
                                        {"seconds", "duration", RC_UNIT_SECONDS},
                                        {"first_event", NULL, RC_UNIT_COUNT},
                                        {"last_event", NULL, RC_UNIT_COUNT}};
    stepper s = {.mem = mem, .found = {.mem = mem}};
    rc_snapshot *snapshot;
    rc_table *table;
    RC_TRY(first_reading(&s, path, err));
    const char *prefix = has_marks(&s, "ProfilerStep#") ? "ProfilerStep#" : "Optimizer.step";
    s.kind = has_marks(&s, prefix) ? BY_MARKS : BY_PHASES;
    RC_TRY(make_lanes(&s, prefix, err));
    RC_TRY(second_reading(&s, path, &snapshot, err));
    RC_TRY(rc_table_make(mem, "steps",
                         s.kind == BY_PHASES ? "Steps, by the turns from optimizer to forward"
                                             : "Steps, by their marks",
                         columns, N(columns), &table, err));
    for (size_t i = 0; i < s.found.n; i++) {
        const span *one = &s.found.at[i];
        bool is_empty = one->last_index < one->first_index;
        rc_cell *row;
        if (!shows(view, one->device) || is_empty)
            continue;
        int64_t base = baseline_of(snapshot, one->device);
        RC_TRY(rc_table_add_row(table, &row, err));
        row[0] = rc_cell_int(one->device);
        row[1] = rc_cell_text(one->name);
        row[2] = rc_cell_int(base + one->peak_bytes);
        row[3] = rc_cell_int(base + one->to_bytes);
        row[4] = rc_cell_int(one->to_bytes - one->from_bytes);
        row[5] = rc_cell_int(one->n_allocs);
        row[6] = rc_cell_int(one->alloc_bytes);
        if (one->to_us > 0)
            row[7] = rc_cell_real((double)(one->to_us - one->from_us) * 1e-6);
        row[8] = rc_cell_int(one->first_index);
        row[9] = rc_cell_int(one->last_index);
    }
    rc_report_add(report, table, false);
    return RC_OK;
}

/* ---- regions ---- */

typedef struct region {
    const char *name;
    int device;
    int64_t count, peak_bytes, alloc_bytes, growth_bytes, total_us;
} region;

static int by_name(const void *a, const void *b)
{
    const region *x = a, *y = b;
    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    return strcmp(x->name, y->name);
}

static int by_peak(const void *a, const void *b)
{
    const region *x = a, *y = b;
    if (x->peak_bytes != y->peak_bytes)
        return x->peak_bytes > y->peak_bytes ? -1 : 1;
    return by_name(a, b);
}

static rc_code sum_regions(const stepper *s, const rc_snapshot *snapshot, region **out,
                           size_t *n, rc_error *err)
{
    RC_TRY(RC_NEW(s->mem, out, s->found.n, err));
    for (size_t i = 0; i < s->found.n; i++) {
        const span *one = &s->found.at[i];
        /* the number of each step belongs to `steps` */
        bool is_step = strncmp(one->name, "ProfilerStep#", 13) == 0;
        (*out)[i] = (region){is_step ? "ProfilerStep" : one->name,
                             one->device,
                             1,
                             baseline_of(snapshot, one->device) + one->peak_bytes,
                             one->alloc_bytes,
                             one->to_bytes - one->from_bytes,
                             one->to_us - one->from_us};
    }
    if (s->found.n > 1)
        qsort(*out, s->found.n, sizeof **out, by_name);
    *n = 0;
    for (size_t i = 0; i < s->found.n; i++) {
        const region *one = &(*out)[i];
        region *last = *n ? &(*out)[*n - 1] : NULL;
        if (!last || by_name(last, one) != 0) {
            (*out)[(*n)++] = *one;
            continue;
        }
        last->count++;
        last->alloc_bytes += one->alloc_bytes;
        last->growth_bytes += one->growth_bytes;
        last->total_us += one->total_us;
        if (one->peak_bytes > last->peak_bytes)
            last->peak_bytes = one->peak_bytes;
    }
    if (*n > 1)
        qsort(*out, *n, sizeof **out, by_peak);
    return RC_OK;
}

rc_code rc_snapshot_regions(const char *path, const rc_snapshot_view *view, rc_arena *mem,
                            rc_report *report, rc_error *err)
{
    static const rc_column columns[] = {{"device", NULL, RC_UNIT_COUNT},
                                        {"peak_requested_bytes", "peak inside", RC_UNIT_BYTES},
                                        {"count", "times", RC_UNIT_COUNT},
                                        {"alloc_bytes", "allocated inside", RC_UNIT_BYTES},
                                        {"growth_bytes", "left behind", RC_UNIT_BYTES},
                                        {"seconds", "time inside", RC_UNIT_SECONDS},
                                        {"region", NULL, RC_UNIT_TEXT}};
    stepper s = {.mem = mem, .kind = BY_REGIONS, .found = {.mem = mem}};
    rc_snapshot *snapshot;
    rc_table *table;
    region *regions;
    size_t n;
    RC_TRY(first_reading(&s, path, err));
    if (s.file->n_annotations == 0)
        return RC_FAIL(
            err, RC_E_INPUT, (rc_where){.file = path},
            "has no marked regions; torch 2.5 and later writes them when the program "
            "uses record_function or an optimizer");
    RC_TRY(make_lanes(&s, "", err));
    RC_TRY(second_reading(&s, path, &snapshot, err));
    RC_TRY(sum_regions(&s, snapshot, &regions, &n, err));
    RC_TRY(rc_table_make(mem, "regions", "Marked regions", columns, N(columns), &table, err));
    for (size_t i = 0; i < n; i++) {
        rc_cell *row;
        if (!shows(view, regions[i].device))
            continue;
        RC_TRY(rc_table_add_row(table, &row, err));
        row[0] = rc_cell_int(regions[i].device);
        row[1] = rc_cell_int(regions[i].peak_bytes);
        row[2] = rc_cell_int(regions[i].count);
        row[3] = rc_cell_int(regions[i].alloc_bytes);
        row[4] = rc_cell_int(regions[i].growth_bytes);
        row[5] = rc_cell_real((double)regions[i].total_us * 1e-6);
        row[6] = rc_cell_text(regions[i].name);
    }
    rc_report_add(report, table, false);
    return RC_OK;
}
