/* holders.c — who holds memory at a moment, as tables. */
#include "snapshot/table.h"

#include "snapshot/frames.h"

#include <string.h>

#define N(columns) (sizeof(columns) / sizeof *(columns))

static const struct kind {
    rc_group_kind kind;
    const char *name[3]; /* by rc_live_which */
    const char *title;
    bool is_brief; /* shown to people */
} kinds[] = {
    {RC_GROUP_LABEL, {"peak_by_label", "at_by_label", "oom_by_label"}, "by label", true},
    {RC_GROUP_PHASE, {"peak_by_phase", "at_by_phase", "oom_by_phase"}, "by phase", true},
    {RC_GROUP_SOURCE, {"peak_by_source", "at_by_source", "oom_by_source"}, "by source", true},
    {RC_GROUP_MODULE, {"peak_by_module", "at_by_module", "oom_by_module"}, "by file", false},
    {RC_GROUP_LABEL_PHASE,
     {"peak_by_label_phase", "at_by_label_phase", "oom_by_label_phase"},
     "by label and phase",
     false},
    {RC_GROUP_NATIVE,
     {"peak_by_native", "at_by_native", "oom_by_native"},
     "without Python frames, by C++ function",
     false}};

static const char *const moment_title[] = {"Held at the peak", "Held at that moment",
                                           "Held at the out-of-memory error"};

const rc_live_set *rc_live_set_of(const rc_snapshot_device *device, rc_live_which which)
{
    return which == RC_LIVE_PEAK  ? &device->peak
           : which == RC_LIVE_OOM ? &device->oom
                                  : &device->moment;
}

typedef struct holder_rows {
    rc_table *table;
    const rc_snapshot_device *device;
    int64_t total_bytes; /* of the moment */
} holder_rows;

static rc_code add_holder(const holder_rows *rows, const rc_group *group, rc_error *err)
{
    rc_cell *row;
    RC_TRY(rc_table_add_row(rows->table, &row, err));
    row[0] = rc_cell_int(rows->device->device);
    row[1] = rc_cell_int(group->requested_bytes);
    row[2] = rc_cell_real(
        rows->total_bytes ? (double)group->requested_bytes / (double)rows->total_bytes : 0);
    if (group->count > 0) {
        row[3] = rc_cell_int(group->count);
        row[4] = rc_cell_int(group->rounded_bytes);
    }
    row[5] = rc_cell_text(group->name);
    return RC_OK;
}

/* The first rows, the rest as one, and what was held before the recording. */
static rc_code add_rows(const holder_rows *rows, const rc_group *groups, size_t n, size_t n_top,
                        int64_t before_bytes, rc_error *err)
{
    rc_group rest = {.name = "(all others)"};
    for (size_t i = 0; i < n; i++) {
        if (n_top == 0 || i < n_top) {
            RC_TRY(add_holder(rows, &groups[i], err));
            continue;
        }
        rest.requested_bytes += groups[i].requested_bytes;
        rest.rounded_bytes += groups[i].rounded_bytes;
        rest.count += groups[i].count;
    }
    if (rest.count > 0)
        RC_TRY(add_holder(rows, &rest, err));
    if (before_bytes != 0)
        RC_TRY(
            add_holder(rows, &(rc_group){"(before the recording)", before_bytes, 0, 0}, err));
    return RC_OK;
}

static rc_code add_kind(const rc_snapshot *snapshot, rc_live_which which,
                        const struct kind *kind, const rc_snapshot_view *view,
                        rc_report *report, rc_error *err)
{
    static const rc_column columns[] = {
        {"device", NULL, RC_UNIT_COUNT},
        {"requested_bytes", "requested", RC_UNIT_BYTES},
        {"share_ratio", "share", RC_UNIT_RATIO},
        {"count", "allocations", RC_UNIT_COUNT},
        {"rounded_estimate_bytes", "rounded (estimate)", RC_UNIT_BYTES},
        {"name", NULL, RC_UNIT_TEXT}};
    rc_table *table;
    const char *title;
    RC_TRY(rc_arena_printf(snapshot->mem, &title, err, "%s, %s", moment_title[which],
                           kind->title));
    RC_TRY(rc_table_make(snapshot->mem, kind->name[which], title, columns, N(columns), &table,
                         err));
    for (size_t i = 0; i < snapshot->n_devices; i++) {
        const rc_snapshot_device *device = &snapshot->devices[i];
        const rc_live_set *set = rc_live_set_of(device, which);
        if (!rc_view_shows(view, device->device) || !set->is_set)
            continue;
        holder_rows rows = {table, device, set->traced_bytes + set->before_bytes};
        rc_group *groups;
        size_t n;
        RC_TRY(rc_snapshot_group(snapshot, set, kind->kind, snapshot->mem, &groups, &n, err));
        RC_TRY(add_rows(&rows, groups, n, (size_t)view->n_top,
                        kind->kind == RC_GROUP_NATIVE ? 0 : set->before_bytes, err));
    }
    if (table->n_rows > 0 || !view->is_brief)
        rc_report_add(report, table, false);
    return RC_OK;
}

/* What the segments know about memory from before the recording. */
static rc_code add_untraced(const rc_snapshot *snapshot, const rc_snapshot_view *view,
                            rc_report *report, rc_error *err)
{
    static const rc_column columns[] = {{"device", NULL, RC_UNIT_COUNT},
                                        {"requested_bytes", "requested", RC_UNIT_BYTES},
                                        {"share_ratio", "share", RC_UNIT_RATIO},
                                        {"count", "blocks", RC_UNIT_COUNT},
                                        {"rounded_bytes", "rounded", RC_UNIT_BYTES},
                                        {"name", NULL, RC_UNIT_TEXT}};
    rc_table *table;
    RC_TRY(rc_table_make(snapshot->mem, "before_recording_by_source",
                         "Held all through the recording, by source", columns, N(columns),
                         &table, err));
    for (size_t i = 0; i < snapshot->n_devices; i++) {
        const rc_snapshot_device *device = &snapshot->devices[i];
        if (!rc_view_shows(view, device->device))
            continue;
        holder_rows rows = {table, device, device->baseline_requested_bytes};
        rc_group *groups;
        size_t n;
        RC_TRY(rc_snapshot_group_untraced(snapshot, device, RC_GROUP_SOURCE, snapshot->mem,
                                          &groups, &n, err));
        RC_TRY(add_rows(&rows, groups, n, (size_t)view->n_top, 0, err));
    }
    if (table->n_rows > 0 || !view->is_brief)
        rc_report_add(report, table, false);
    return RC_OK;
}

rc_code rc_snapshot_add_holders(const rc_snapshot *snapshot, rc_live_which which,
                                const rc_snapshot_view *view, rc_report *report, rc_error *err)
{
    for (size_t i = 0; i < N(kinds); i++)
        if (kinds[i].is_brief || !view->is_brief)
            RC_TRY(add_kind(snapshot, which, &kinds[i], view, report, err));
    return which == RC_LIVE_PEAK ? add_untraced(snapshot, view, report, err) : RC_OK;
}

/* ---- one moment ---- */

static rc_code add_moment(const rc_snapshot *snapshot, rc_live_which which,
                          const rc_snapshot_view *view, rc_report *report, rc_error *err)
{
    static const rc_column columns[] = {{"device", NULL, RC_UNIT_COUNT},
                                        {"event_index", "event", RC_UNIT_COUNT},
                                        {"time_us", "time (us)", RC_UNIT_COUNT},
                                        {"since_seconds", "since start", RC_UNIT_SECONDS},
                                        {"requested_bytes", "requested", RC_UNIT_BYTES},
                                        {"traced_bytes", "of the recording", RC_UNIT_BYTES},
                                        {"before_bytes", "from before it", RC_UNIT_BYTES},
                                        {"reserved_bytes", "reserved", RC_UNIT_BYTES},
                                        {"allocations", NULL, RC_UNIT_COUNT}};
    rc_table *table;
    rc_cell *row;
    RC_TRY(rc_table_make(snapshot->mem, which == RC_LIVE_PEAK ? "peak" : "moment",
                         which == RC_LIVE_PEAK ? "Peak" : "Moment", columns, N(columns), &table,
                         err));
    for (size_t i = 0; i < snapshot->n_devices; i++) {
        const rc_snapshot_device *device = &snapshot->devices[i];
        const rc_live_set *set = rc_live_set_of(device, which);
        if (!rc_view_shows(view, device->device) || !set->is_set)
            continue;
        RC_TRY(rc_table_add_row(table, &row, err));
        row[0] = rc_cell_int(device->device);
        row[1] = rc_cell_int(set->event_index);
        if (set->has_time) {
            row[2] = rc_cell_int(set->time_us);
            row[3] = rc_cell_real((double)(set->time_us - device->first_us) * 1e-6);
        }
        row[4] = rc_cell_int(device->baseline_requested_bytes + set->net_bytes);
        row[5] = rc_cell_int(set->traced_bytes);
        row[6] = rc_cell_int(set->before_bytes);
        row[7] = rc_cell_int(set->reserved_bytes);
        row[8] = rc_cell_int((int64_t)set->n);
    }
    rc_report_add(report, table, false);
    return RC_OK;
}

static bool is_larger(const rc_live_entry *a, const rc_live_entry *b)
{
    return a->size_bytes != b->size_bytes ? a->size_bytes > b->size_bytes
                                          : a->number < b->number;
}

/* The `room` largest allocations, largest first: insertion into a short sorted list. */
static size_t find_largest(const rc_live_set *set, const rc_live_entry **largest, size_t room)
{
    size_t n = 0;
    for (size_t i = 0; i < set->n; i++) {
        const rc_live_entry *entry = &set->at[i];
        if (n == room && !is_larger(entry, largest[n - 1]))
            continue;
        size_t at = n < room ? n++ : n - 1;
        for (; at > 0 && is_larger(entry, largest[at - 1]); at--)
            largest[at] = largest[at - 1];
        largest[at] = entry;
    }
    return n;
}

static rc_code add_largest(const rc_snapshot *snapshot, rc_live_which which,
                           const rc_snapshot_view *view, rc_report *report, rc_error *err)
{
    static const rc_column columns[] = {{"device", NULL, RC_UNIT_COUNT},
                                        {"requested_bytes", "requested", RC_UNIT_BYTES},
                                        {"event_index", "made at event", RC_UNIT_COUNT},
                                        {"addr", "address", RC_UNIT_TEXT},
                                        {"label", NULL, RC_UNIT_TEXT},
                                        {"phase", NULL, RC_UNIT_TEXT},
                                        {"source", NULL, RC_UNIT_TEXT}};
    enum { N_LARGEST = 20 };
    rc_table *table;
    rc_cell *row;
    RC_TRY(rc_table_make(snapshot->mem, "largest", "Largest allocations", columns, N(columns),
                         &table, err));
    for (size_t i = 0; i < snapshot->n_devices; i++) {
        const rc_live_entry *largest[N_LARGEST];
        const rc_snapshot_device *device = &snapshot->devices[i];
        const rc_live_set *set = rc_live_set_of(device, which);
        size_t n = rc_view_shows(view, device->device) && set->is_set
                       ? find_largest(set, largest, N_LARGEST)
                       : 0;
        for (size_t k = 0; k < n; k++) {
            rc_stack_facts facts = snapshot->book->stacks[largest[k]->stack];
            const char *addr, *source;
            RC_TRY(rc_arena_printf(snapshot->mem, &addr, err, "0x%llx",
                                   (unsigned long long)largest[k]->addr));
            RC_TRY(rc_stack_source(snapshot->book, snapshot->file->names, largest[k]->stack,
                                   snapshot->mem, &source, err));
            RC_TRY(rc_table_add_row(table, &row, err));
            row[0] = rc_cell_int(device->device);
            row[1] = rc_cell_int(largest[k]->size_bytes);
            row[2] = rc_cell_int((int64_t)largest[k]->number - 1);
            row[3] = rc_cell_text(addr);
            row[4] = rc_cell_text(rc_snapshot_label_name(facts.label));
            row[5] = rc_cell_text(rc_snapshot_phase_name((rc_snapshot_phase)facts.phase));
            row[6] = rc_cell_text(source);
        }
    }
    rc_report_add(report, table, false);
    return RC_OK;
}

rc_code rc_snapshot_live_report(const rc_snapshot *snapshot, rc_live_which which,
                                const rc_snapshot_view *view, rc_report *report, rc_error *err)
{
    RC_TRY(add_moment(snapshot, which, view, report, err));
    RC_TRY(rc_snapshot_add_holders(snapshot, which, view, report, err));
    RC_TRY(add_largest(snapshot, which, view, report, err));
    return rc_snapshot_add_notes(snapshot, view, report, err);
}

/* ---- notes ---- */

static rc_code add_note(rc_table *table, int device, const char *text, rc_error *err)
{
    rc_cell *row;
    RC_TRY(rc_table_add_row(table, &row, err));
    if (device >= 0)
        row[0] = rc_cell_int(device);
    row[1] = rc_cell_text(text);
    return RC_OK;
}

static rc_code add_device_notes(const rc_snapshot_device *d, rc_table *table, rc_error *err)
{
    const struct {
        bool is_true;
        const char *text;
    } notes[] = {
        {d->has_overflowed == 1 ||
             (d->has_overflowed < 0 && d->n_events == d->ring_max_entries),
         "the ring buffer was full and older events are lost: raise max_entries"},
        {d->n_unmatched_frees > 0 && d->has_overflowed != 1,
         "memory from before the recording was freed in it: the peak before is not in the file"},
        {!d->has_segments,
         "no segments: memory from before the recording counts only as far as it was freed in it"},
        {d->peak.event_index < 0, "memory never rose above its start: the peak is the start"},
        {d->baseline_check_bytes != d->baseline_requested_bytes,
         "trace and segments do not add up: events are missing, or the file was changed"},
        {d->n_double_allocs > 0,
         "an address was allocated twice without a free: events are missing"},
        {d->n_backward_times > 0,
         "time runs backwards between some events: kept in file order"}};
    for (size_t i = 0; i < N(notes); i++)
        if (notes[i].is_true)
            RC_TRY(add_note(table, d->device, notes[i].text, err));
    return RC_OK;
}

rc_code rc_snapshot_add_notes(const rc_snapshot *snapshot, const rc_snapshot_view *view,
                              rc_report *report, rc_error *err)
{
    static const rc_column columns[] = {{"device", NULL, RC_UNIT_COUNT},
                                        {"note", NULL, RC_UNIT_TEXT}};
    rc_table *table;
    RC_TRY(rc_table_make(snapshot->mem, "notes", "Notes", columns, N(columns), &table, err));
    if (snapshot->n_devices == 0)
        RC_TRY(add_note(table, -1,
                        "no events: the file says what is held now, not how it came to be "
                        "(torch.cuda.memory._record_memory_history starts a recording)",
                        err));
    for (size_t i = 0; i < snapshot->n_devices; i++)
        if (rc_view_shows(view, snapshot->devices[i].device))
            RC_TRY(add_device_notes(&snapshot->devices[i], table, err));
    if (snapshot->n_oom_events > (int64_t)snapshot->n_ooms)
        RC_TRY(add_note(table, -1, "only the last out-of-memory events are listed", err));
    if (table->n_rows > 0)
        rc_report_add(report, table, false);
    return RC_OK;
}
