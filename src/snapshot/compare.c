/* compare.c — what explains the difference of two peaks.
 *
 * takes  two snapshots, each at its peak of requested bytes on one device
 * gives  tables by label, phase, source and file whose differences add up to that of the peaks
 */
#include "snapshot/table.h"

#include <stdlib.h>
#include <string.h>

#define N(columns) (sizeof(columns) / sizeof *(columns))

typedef struct side {
    const rc_snapshot *snapshot;
    const rc_snapshot_device *device;
} side;

/* The asked device, else the one with the highest peak. */
static const rc_snapshot_device *choose(const rc_snapshot *snapshot,
                                        const rc_snapshot_view *view)
{
    const rc_snapshot_device *best = NULL;
    for (size_t i = 0; i < snapshot->n_devices; i++) {
        const rc_snapshot_device *d = &snapshot->devices[i];
        if (!rc_view_shows(view, d->device))
            continue;
        if (!best || d->baseline_requested_bytes + d->peak.net_bytes >
                         best->baseline_requested_bytes + best->peak.net_bytes)
            best = d;
    }
    return best;
}

typedef struct difference {
    const char *name;
    int64_t bytes[2], count[2];
} difference;

static int64_t magnitude(const difference *d)
{
    int64_t change = d->bytes[1] - d->bytes[0];
    return change < 0 ? -change : change;
}

static int by_magnitude(const void *a, const void *b)
{
    const difference *x = a, *y = b;
    if (magnitude(x) != magnitude(y))
        return magnitude(x) > magnitude(y) ? -1 : 1;
    if (x->bytes[1] != y->bytes[1])
        return x->bytes[1] > y->bytes[1] ? -1 : 1;
    return strcmp(x->name, y->name);
}

static int by_name(const void *a, const void *b)
{
    const difference *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static rc_code differences(const side sides[2], rc_group_kind kind, rc_arena *mem,
                           difference **out, size_t *n, rc_error *err)
{
    rc_group *groups[2];
    size_t n_groups[2], n_all = 0;
    for (int i = 0; i < 2; i++)
        RC_TRY(rc_snapshot_group(sides[i].snapshot, &sides[i].device->peak, kind, mem,
                                 &groups[i], &n_groups[i], err));
    RC_TRY(RC_NEW(mem, out, n_groups[0] + n_groups[1] + 1, err));
    for (int i = 0; i < 2; i++)
        for (size_t k = 0; k < n_groups[i]; k++) {
            difference *d = &(*out)[n_all++];
            d->name = groups[i][k].name;
            d->bytes[i] = groups[i][k].requested_bytes;
            d->count[i] = groups[i][k].count;
        }
    (*out)[n_all++] =
        (difference){"(before the recording)",
                     {sides[0].device->peak.before_bytes, sides[1].device->peak.before_bytes},
                     {0, 0}};
    qsort(*out, n_all, sizeof **out, by_name);
    *n = 0;
    for (size_t i = 0; i < n_all; i++) {
        difference *last = *n ? &(*out)[*n - 1] : NULL;
        if (!last || strcmp(last->name, (*out)[i].name) != 0) {
            (*out)[(*n)++] = (*out)[i];
            continue;
        }
        for (int s = 0; s < 2; s++) {
            last->bytes[s] += (*out)[i].bytes[s];
            last->count[s] += (*out)[i].count[s];
        }
    }
    qsort(*out, *n, sizeof **out, by_magnitude);
    return RC_OK;
}

static rc_code add_difference(rc_table *table, const difference *d, int64_t total,
                              rc_error *err)
{
    rc_cell *row;
    RC_TRY(rc_table_add_row(table, &row, err));
    int64_t change = d->bytes[1] - d->bytes[0];
    row[0] = rc_cell_int(change);
    if (total)
        row[1] = rc_cell_real((double)change / (double)total);
    for (int s = 0; s < 2; s++) {
        row[2 + s] = rc_cell_int(d->bytes[s]);
        row[4 + s] = rc_cell_int(d->count[s]);
    }
    row[6] = rc_cell_text(d->name);
    return RC_OK;
}

static int64_t peak_of(const side *s)
{
    return s->device->peak.traced_bytes + s->device->peak.before_bytes;
}

static rc_code add_kind(const side sides[2], rc_group_kind kind, const char *const text[2],
                        const rc_snapshot_view *view, rc_arena *mem, rc_table **table,
                        rc_error *err)
{
    static const rc_column columns[] = {{"difference_bytes", "difference", RC_UNIT_BYTES},
                                        {"share_ratio", "of the whole", RC_UNIT_RATIO},
                                        {"a_bytes", "A", RC_UNIT_BYTES},
                                        {"b_bytes", "B", RC_UNIT_BYTES},
                                        {"a_count", "allocations in A", RC_UNIT_COUNT},
                                        {"b_count", "in B", RC_UNIT_COUNT},
                                        {"name", NULL, RC_UNIT_TEXT}};
    difference *all, rest = {.name = "(all others)"};
    size_t n;
    int64_t total = peak_of(&sides[1]) - peak_of(&sides[0]);
    RC_TRY(rc_table_make(mem, text[0], text[1], columns, N(columns), table, err));
    RC_TRY(differences(sides, kind, mem, &all, &n, err));
    for (size_t i = 0; i < n; i++) {
        bool is_same = all[i].bytes[0] == all[i].bytes[1] && all[i].count[0] == all[i].count[1];
        if (view->is_brief && is_same)
            continue;
        if (view->n_top == 0 || i < (size_t)view->n_top) {
            RC_TRY(add_difference(*table, &all[i], total, err));
            continue;
        }
        for (int s = 0; s < 2; s++) {
            rest.bytes[s] += all[i].bytes[s];
            rest.count[s] += all[i].count[s];
        }
    }
    if (rest.count[0] || rest.count[1])
        RC_TRY(add_difference(*table, &rest, total, err));
    return RC_OK;
}

static rc_code add_sides(const side sides[2], rc_arena *mem, rc_table **table, rc_error *err)
{
    static const rc_column columns[] = {
        {"side", NULL, RC_UNIT_TEXT},
        {"device", NULL, RC_UNIT_COUNT},
        {"peak_requested_bytes", "peak requested", RC_UNIT_BYTES},
        {"peak_event_index", "at event", RC_UNIT_COUNT},
        {"reserved_at_peak_bytes", "reserved then", RC_UNIT_BYTES},
        {"peak_reserved_bytes", "peak reserved", RC_UNIT_BYTES},
        {"before_bytes", "from before the recording", RC_UNIT_BYTES},
        {"events", NULL, RC_UNIT_COUNT},
        {"path", "file", RC_UNIT_TEXT}};
    rc_cell *row;
    RC_TRY(rc_table_make(mem, "sides", "Peaks", columns, N(columns), table, err));
    for (int s = 0; s < 2; s++) {
        const rc_snapshot_device *d = sides[s].device;
        RC_TRY(rc_table_add_row(*table, &row, err));
        row[0] = rc_cell_text(s == 0 ? "A" : "B");
        row[1] = rc_cell_int(d->device);
        row[2] = rc_cell_int(peak_of(&sides[s]));
        row[3] = rc_cell_int(d->peak.event_index);
        row[4] = rc_cell_int(d->peak.reserved_bytes);
        row[5] = rc_cell_int(d->peak_reserved_bytes);
        row[6] = rc_cell_int(d->peak.before_bytes);
        row[7] = rc_cell_int(d->n_events);
        row[8] = rc_cell_text(sides[s].snapshot->file->path);
    }
    return RC_OK;
}

static rc_code add_total(const side sides[2], rc_arena *mem, rc_table **table, rc_error *err)
{
    static const rc_column columns[] = {
        {"peak_difference_bytes", "peak of B less peak of A", RC_UNIT_BYTES},
        {"peak_reserved_difference_bytes", "the same of reserved memory", RC_UNIT_BYTES}};
    rc_cell *row;
    RC_TRY(rc_table_make(mem, "difference", NULL, columns, N(columns), table, err));
    RC_TRY(rc_table_add_row(*table, &row, err));
    row[0] = rc_cell_int(peak_of(&sides[1]) - peak_of(&sides[0]));
    row[1] = rc_cell_int(sides[1].device->peak_reserved_bytes -
                         sides[0].device->peak_reserved_bytes);
    return RC_OK;
}

rc_code rc_snapshot_compare(const rc_snapshot *a, const rc_snapshot *b,
                            const rc_snapshot_view *view, rc_arena *mem, rc_report *report,
                            rc_error *err)
{
    static const struct {
        rc_group_kind kind;
        const char *text[2];
    } kinds[] = {{RC_GROUP_LABEL, {"difference_by_label", "Difference by label"}},
                 {RC_GROUP_PHASE, {"difference_by_phase", "Difference by phase"}},
                 {RC_GROUP_MODULE, {"difference_by_module", "Difference by file"}},
                 {RC_GROUP_SOURCE, {"difference_by_source", "Difference by source"}}};
    const side sides[2] = {{a, choose(a, view)}, {b, choose(b, view)}};
    rc_table *table;
    for (int s = 0; s < 2; s++)
        if (!sides[s].device)
            return RC_FAIL(err, RC_E_INPUT, (rc_where){.file = sides[s].snapshot->file->path},
                           "has no events on that device, so it has no peak to compare");
    RC_TRY(add_sides(sides, mem, &table, err));
    rc_report_add(report, table, false);
    RC_TRY(add_total(sides, mem, &table, err));
    rc_report_add(report, table, true);
    for (size_t i = 0; i < N(kinds); i++) {
        RC_TRY(add_kind(sides, kinds[i].kind, kinds[i].text, view, mem, &table, err));
        rc_report_add(report, table, false);
    }
    return RC_OK;
}
