/* timeline.c — memory over time in a bounded number of columns, in one pass.
 *
 * takes  changes in order; neither their number nor their time span is known beforehand
 * gives  columns, each with the labels at its highest moment and at its end
 *
 * Columns begin one unit wide. When they would pass MOST_COLUMNS, neighbours are merged and the
 * width doubles; a merged column keeps the higher moment. Within the open column the labels at the
 * highest moment are saved lazily: a label is copied when it first changes after that moment.
 */
#include <recompute/snapshot.h>

#include <string.h>

enum {
    MOST_COLUMNS = 4096,
    N_LABELS = RC_SNAPSHOT_LABEL_COUNT,
    BEFORE = RC_SNAPSHOT_LABEL_COUNT - 1
};

typedef struct column {
    int64_t index; /* in units of the width */
    int64_t high_bytes, high_reserved_bytes, end_reserved_bytes;
    int64_t at_high[N_LABELS], at_end[N_LABELS];
} column;

typedef struct track {
    column *columns; /* [n_room] those with a change */
    size_t n, n_room;
    int64_t width;  /* events or microseconds */
    int64_t origin; /* time of the first event */
    int64_t last;   /* units since the origin */
    bool is_time;
    /* the open column */
    int64_t now[N_LABELS], saved[N_LABELS];
    uint64_t saved_epoch[N_LABELS], epoch;
    int64_t total_bytes, reserved_bytes;
} track;

typedef struct watcher {
    rc_arena *mem;
    track **tracks; /* by trace number */
    size_t n_room;
    bool by_events;
} watcher;

static rc_code open_track(watcher *w, uint32_t trace, const rc_change *change, rc_error *err)
{
    RC_TRY(RC_GROW(w->mem, &w->tracks, w->n_room, &w->n_room, (size_t)trace + 1, err));
    track *t;
    RC_TRY(RC_NEW(w->mem, &t, 1, err));
    t->width = 1;
    t->epoch = 1;
    t->is_time = change->has_time && !w->by_events;
    t->origin = t->is_time ? change->time_us : 0;
    w->tracks[trace] = t;
    return RC_OK;
}

/* What the column holds at its highest moment, as far as it is known now. */
static void save_column(track *t)
{
    column *c = &t->columns[t->n - 1];
    for (int k = 0; k < N_LABELS; k++)
        c->at_high[k] = t->saved_epoch[k] == t->epoch ? t->saved[k] : t->now[k];
    memcpy(c->at_end, t->now, sizeof c->at_end);
    c->end_reserved_bytes = t->reserved_bytes;
}

static void merge_columns(track *t)
{
    size_t n = 0;
    t->width *= 2;
    for (size_t i = 0; i < t->n; i++) {
        column *from = &t->columns[i];
        from->index /= 2;
        column *last = n ? &t->columns[n - 1] : NULL;
        if (!last || last->index != from->index) {
            t->columns[n++] = *from;
            continue;
        }
        if (from->high_bytes > last->high_bytes) {
            last->high_bytes = from->high_bytes;
            memcpy(last->at_high, from->at_high, sizeof last->at_high);
        }
        if (from->high_reserved_bytes > last->high_reserved_bytes)
            last->high_reserved_bytes = from->high_reserved_bytes;
        memcpy(last->at_end, from->at_end, sizeof last->at_end);
        last->end_reserved_bytes = from->end_reserved_bytes;
    }
    t->n = n;
}

static rc_code open_column(watcher *w, track *t, int64_t index, rc_error *err)
{
    RC_TRY(RC_GROW(w->mem, &t->columns, t->n, &t->n_room, t->n + 1, err));
    /* a column begins with what was held before it: that may be its highest moment */
    t->columns[t->n++] = (column){
        .index = index, .high_bytes = t->total_bytes, .high_reserved_bytes = t->reserved_bytes};
    t->epoch++;
    return RC_OK;
}

static rc_code reach_column(watcher *w, track *t, const rc_change *change, rc_error *err)
{
    int64_t at = t->is_time && change->has_time ? change->time_us - t->origin
                 : t->is_time                   ? t->last
                                                : change->index;
    t->last = at > t->last ? at : t->last; /* time that runs backwards stays where it is */
    int64_t index = t->last / t->width;
    if (t->n && index == t->columns[t->n - 1].index)
        return RC_OK;
    if (t->n)
        save_column(t);
    bool is_merged = false;
    for (; index >= MOST_COLUMNS; index = t->last / t->width, is_merged = true)
        merge_columns(t);
    if (is_merged && t->n && t->columns[t->n - 1].index == index) {
        /* the open column goes on: what it holds is its saved state */
        column *c = &t->columns[t->n - 1];
        t->epoch++;
        for (int k = 0; k < N_LABELS; k++) {
            t->saved[k] = c->at_high[k];
            t->saved_epoch[k] = t->epoch;
        }
        return RC_OK;
    }
    return open_column(w, t, index, err);
}

static rc_code watch_change(void *state, uint32_t trace, const rc_change *change, rc_error *err)
{
    watcher *w = state;
    if (trace >= w->n_room || !w->tracks[trace])
        RC_TRY(open_track(w, trace, change, err));
    track *t = w->tracks[trace];
    RC_TRY(reach_column(w, t, change, err));
    if (change->delta_bytes == 0 && change->reserved_delta_bytes == 0)
        return RC_OK;
    column *c = &t->columns[t->n - 1];
    if (t->saved_epoch[change->label] != t->epoch) {
        t->saved[change->label] = t->now[change->label];
        t->saved_epoch[change->label] = t->epoch;
    }
    t->now[change->label] += change->delta_bytes;
    t->total_bytes += change->delta_bytes;
    t->reserved_bytes += change->reserved_delta_bytes;
    if (t->reserved_bytes > c->high_reserved_bytes)
        c->high_reserved_bytes = t->reserved_bytes;
    if (t->total_bytes > c->high_bytes) {
        c->high_bytes = t->total_bytes;
        t->epoch++; /* nothing has changed since this moment */
    }
    return RC_OK;
}

/* ---- the result ---- */

static const rc_snapshot_device *choose(const rc_snapshot *snapshot, int device)
{
    const rc_snapshot_device *best = NULL;
    for (size_t i = 0; i < snapshot->n_devices; i++) {
        const rc_snapshot_device *d = &snapshot->devices[i];
        if ((device < 0 || d->device == device) &&
            (!best || d->peak.traced_bytes + d->peak.before_bytes >
                          best->peak.traced_bytes + best->peak.before_bytes))
            best = d;
    }
    return best;
}

/* Columns without a change hold what the one before them ended with. */
static void fill(const track *t, const rc_snapshot_device *device, rc_snapshot_timeline *out)
{
    int64_t state[N_LABELS] = {0}, reserved = 0;
    size_t next = 0;
    for (size_t c = 0; c < out->n_columns; c++) {
        const column *here =
            next < t->n && t->columns[next].index == (int64_t)c ? &t->columns[next++] : NULL;
        for (size_t k = 0; k < N_LABELS; k++)
            out->bytes[k * out->n_columns + c] = here ? here->at_high[k] : state[k];
        out->bytes[(size_t)BEFORE * out->n_columns + c] += device->baseline_requested_bytes;
        out->reserved_bytes[c] =
            device->baseline_reserved_bytes + (here ? here->high_reserved_bytes : reserved);
        if (here) {
            memcpy(state, here->at_end, sizeof state);
            reserved = here->end_reserved_bytes;
        }
    }
}

static track *track_of(const watcher *w, const rc_snapshot *snapshot, int device)
{
    for (size_t i = 0; i < snapshot->file->n_traces && i < w->n_room; i++)
        if (snapshot->file->traces[i].device == device)
            return w->tracks[i];
    return NULL;
}

rc_code rc_snapshot_timeline_make(const char *path, bool by_events, int device, rc_arena *mem,
                                  rc_snapshot_timeline **out, rc_error *err)
{
    watcher w = {.mem = mem, .by_events = by_events};
    rc_snapshot_watch watch = {&w, watch_change};
    rc_snapshot *snapshot;
    RC_TRY(rc_snapshot_make(path, NULL, &watch, mem, &snapshot, NULL, err));
    const rc_snapshot_device *d = choose(snapshot, device);
    track *t = d ? track_of(&w, snapshot, d->device) : NULL;
    if (!t)
        return RC_FAIL(err, RC_E_INPUT, (rc_where){.file = path},
                       "has no events on that device, so there is no timeline");
    save_column(t);
    RC_TRY(RC_NEW(mem, out, 1, err));
    rc_snapshot_timeline *timeline = *out;
    timeline->device = d->device;
    timeline->is_time = t->is_time;
    timeline->column_width = (double)t->width * (t->is_time ? 1e-6 : 1);
    timeline->n_columns = (size_t)t->columns[t->n - 1].index + 1;
    timeline->peak_bytes = d->baseline_requested_bytes + d->peak.net_bytes;
    RC_TRY(RC_NEW(mem, &timeline->bytes, N_LABELS * timeline->n_columns, err));
    RC_TRY(RC_NEW(mem, &timeline->reserved_bytes, timeline->n_columns, err));
    fill(t, d, timeline);
    return RC_OK;
}

rc_code rc_snapshot_timeline_table(const rc_snapshot_timeline *timeline, rc_arena *mem,
                                   rc_table **out, rc_error *err)
{
    static const rc_column fixed[] = {{"from_seconds", "from", RC_UNIT_SECONDS},
                                      {"from_event", "from event", RC_UNIT_COUNT},
                                      {"total_bytes", "total", RC_UNIT_BYTES},
                                      {"reserved_bytes", "reserved", RC_UNIT_BYTES}};
    enum { N_FIXED = 4 };
    rc_column *columns;
    size_t used[N_LABELS], n_used = 0;
    for (size_t k = 0; k < N_LABELS; k++) {
        bool is_used = false;
        for (size_t c = 0; c < timeline->n_columns; c++)
            is_used = is_used || timeline->bytes[k * timeline->n_columns + c] != 0;
        if (is_used)
            used[n_used++] = k;
    }
    RC_TRY(RC_NEW(mem, &columns, N_FIXED + n_used, err));
    memcpy(columns, fixed, sizeof fixed);
    for (size_t i = 0; i < n_used; i++) {
        const char *name;
        RC_TRY(
            rc_arena_printf(mem, &name, err, "%s_bytes", rc_snapshot_label_name((int)used[i])));
        columns[N_FIXED + i] =
            (rc_column){name, rc_snapshot_label_name((int)used[i]), RC_UNIT_BYTES};
    }
    RC_TRY(rc_table_make(mem, "timeline", NULL, columns, N_FIXED + n_used, out, err));
    for (size_t c = 0; c < timeline->n_columns; c++) {
        rc_cell *row;
        int64_t total = 0;
        RC_TRY(rc_table_add_row(*out, &row, err));
        row[timeline->is_time ? 0 : 1] =
            timeline->is_time ? rc_cell_real((double)c * timeline->column_width)
                              : rc_cell_int((int64_t)((double)c * timeline->column_width));
        for (size_t i = 0; i < n_used; i++) {
            int64_t bytes = timeline->bytes[used[i] * timeline->n_columns + c];
            row[N_FIXED + i] = rc_cell_int(bytes);
            total += bytes;
        }
        row[2] = rc_cell_int(total);
        row[3] = rc_cell_int(timeline->reserved_bytes[c]);
    }
    return RC_OK;
}
