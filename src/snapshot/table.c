/* table.c — rc_snapshot as tables.
 *
 * takes  a snapshot and what the reader wants to see
 * gives  a report; rows of each list of holders add up to the bytes of its moment
 */
#include "snapshot/table.h"

#include "snapshot/frames.h"

#include <stdlib.h>
#include <string.h>

#define N(columns) (sizeof(columns) / sizeof *(columns))

static rc_cell optional_int(bool is_known, int64_t value)
{
    return is_known ? rc_cell_int(value) : (rc_cell){.is_null = true};
}

static rc_cell text_of(const rc_snapshot *snapshot, uint32_t id)
{
    return id ? rc_cell_text(rc_snapshot_string_at(snapshot->file->names, id).bytes)
              : (rc_cell){.is_null = true};
}

bool rc_view_shows(const rc_snapshot_view *view, int device)
{
    return view->device < 0 || view->device == device;
}

/* ---- file and settings ---- */

static rc_code add_file(const rc_snapshot *snapshot, const rc_snapshot_view *view,
                        rc_report *report, rc_error *err)
{
    static const rc_column columns[] = {{"path", "file", RC_UNIT_TEXT},
                                        {"file_bytes", "size unpacked", RC_UNIT_BYTES},
                                        {"stacks", "distinct stacks", RC_UNIT_COUNT},
                                        {"alloc_conf", "PYTORCH_CUDA_ALLOC_CONF", RC_UNIT_TEXT},
                                        {"is_expandable", "expandable segments", RC_UNIT_BOOL},
                                        {"max_split_bytes", "max_split_size", RC_UNIT_BYTES},
                                        {"gc_threshold", NULL, RC_UNIT_REAL},
                                        {"protocol", NULL, RC_UNIT_COUNT},
                                        {"trailing_bytes", NULL, RC_UNIT_COUNT},
                                        {"unknown_actions", NULL, RC_UNIT_COUNT},
                                        {"untiled_segments", NULL, RC_UNIT_COUNT},
                                        {"annotations", NULL, RC_UNIT_COUNT}};
    enum { N_BRIEF = 6 };
    const rc_snapshot_file *file = snapshot->file;
    const rc_snapshot_settings *settings = &file->settings;
    bool has_conf =
        settings->conf && rc_snapshot_string_at(file->names, settings->conf).n_bytes;
    rc_table *table;
    rc_cell *row, all[N(columns)];
    size_t n_columns = view->is_brief ? N_BRIEF : N(columns);
    RC_TRY(rc_table_make(snapshot->mem, "file", NULL, columns, n_columns, &table, err));
    RC_TRY(rc_table_add_row(table, &row, err));
    all[0] = rc_cell_text(file->path);
    all[1] = rc_cell_int(file->n_file_bytes);
    all[2] = rc_cell_int((int64_t)rc_snapshot_count_stacks(file->names) - 2);
    all[3] = text_of(snapshot, has_conf ? settings->conf : 0);
    all[4] = rc_cell_int(settings->is_expandable || snapshot->total.is_expandable);
    all[5] = optional_int(settings->max_split_bytes >= 0, settings->max_split_bytes);
    all[6] = settings->has_settings ? rc_cell_real(settings->gc_threshold)
                                    : (rc_cell){.is_null = true};
    all[7] = rc_cell_int(file->protocol);
    all[8] = rc_cell_int(file->n_trailing_bytes);
    all[9] = rc_cell_int(file->n_unknown_actions);
    all[10] = rc_cell_int(file->n_untiled_segments);
    all[11] = rc_cell_int((int64_t)file->n_annotations);
    memcpy(row, all, n_columns * sizeof *row);
    rc_report_add(report, table, true);
    return RC_OK;
}

/* ---- devices ---- */

static void fill_device(const rc_snapshot_device *d, rc_cell *row)
{
    bool has_peak_time = d->peak.has_time;
    int64_t peak_bytes = d->baseline_requested_bytes + d->peak.net_bytes;
    row[0] = rc_cell_int(d->device);
    row[1] = rc_cell_int(peak_bytes);
    row[2] = rc_cell_int(d->peak.event_index);
    row[3] = optional_int(has_peak_time, d->peak.time_us);
    if (has_peak_time)
        row[4] = rc_cell_real((double)(d->peak.time_us - d->first_us) * 1e-6);
    row[5] = rc_cell_int(d->peak.reserved_bytes);
    row[6] = rc_cell_int(d->peak_reserved_bytes);
    row[7] = rc_cell_int(d->peak_reserved_index);
    row[8] = rc_cell_int(d->baseline_requested_bytes);
    row[9] = rc_cell_int(d->baseline_reserved_bytes);
    row[10] = rc_cell_int(d->end_requested_bytes);
    row[11] = rc_cell_int(d->end_reserved_bytes);
    row[12] = rc_cell_int(d->n_events);
    row[13] = rc_cell_int(d->peak.net_bytes);
    row[14] = rc_cell_int((int64_t)d->peak.n);
    row[15] = rc_cell_int(d->peak.traced_bytes);
    row[16] = rc_cell_int(d->n_actions[RC_ACTION_ALLOC]);
    row[17] = rc_cell_int(d->alloc_bytes);
    row[18] = rc_cell_int(d->n_unmatched_frees);
    row[19] = rc_cell_int(d->unmatched_bytes);
    row[20] = rc_cell_int(d->n_double_allocs);
    row[21] = rc_cell_int(d->n_backward_times);
    row[22] = optional_int(d->has_time, d->first_us);
    row[23] = optional_int(d->has_time, d->last_us);
    row[24] = optional_int(d->ring_max_entries >= 0, d->ring_max_entries);
    row[25] = optional_int(d->has_overflowed >= 0, d->has_overflowed);
    row[26] = rc_cell_int(d->baseline_check_bytes == d->baseline_requested_bytes);
}

static rc_code add_devices(const rc_snapshot *snapshot, const rc_snapshot_view *view,
                           rc_report *report, rc_error *err)
{
    static const rc_column columns[] = {
        {"device", NULL, RC_UNIT_COUNT},
        {"peak_requested_bytes", "peak requested", RC_UNIT_BYTES},
        {"peak_event_index", "at event", RC_UNIT_COUNT},
        {"peak_time_us", "at time (us)", RC_UNIT_COUNT},
        {"peak_since_seconds", "since start", RC_UNIT_SECONDS},
        {"reserved_at_peak_bytes", "reserved then", RC_UNIT_BYTES},
        {"peak_reserved_bytes", "peak reserved", RC_UNIT_BYTES},
        {"peak_reserved_event_index", "at event", RC_UNIT_COUNT},
        {"baseline_requested_bytes", "held before recording", RC_UNIT_BYTES},
        {"baseline_reserved_bytes", "reserved before recording", RC_UNIT_BYTES},
        {"end_requested_bytes", "requested at end", RC_UNIT_BYTES},
        {"end_reserved_bytes", "reserved at end", RC_UNIT_BYTES},
        {"events", NULL, RC_UNIT_COUNT},
        {"peak_delta_requested_bytes", "rise to the peak", RC_UNIT_BYTES},
        {"live_at_peak_count", "allocations at the peak", RC_UNIT_COUNT},
        {"live_at_peak_requested_bytes", "their bytes", RC_UNIT_BYTES},
        {"allocs", "allocations", RC_UNIT_COUNT},
        {"alloc_bytes_total", "allocated in all", RC_UNIT_BYTES},
        {"unmatched_frees", "frees of older memory", RC_UNIT_COUNT},
        {"unmatched_free_bytes", "their bytes", RC_UNIT_BYTES},
        {"double_allocs", "allocations without a free", RC_UNIT_COUNT},
        {"backward_times", "events back in time", RC_UNIT_COUNT},
        {"first_time_us", NULL, RC_UNIT_COUNT},
        {"last_time_us", NULL, RC_UNIT_COUNT},
        {"ring_max_entries", "ring entries", RC_UNIT_COUNT},
        {"has_overflowed", "events lost", RC_UNIT_BOOL},
        {"is_baseline_consistent", "adds up", RC_UNIT_BOOL}};
    enum { N_BRIEF = 9 };
    rc_table *table;
    rc_cell *row, all[N(columns)];
    size_t n_columns = view->is_brief ? N_BRIEF : N(columns);
    RC_TRY(rc_table_make(snapshot->mem, "devices", "Devices", columns, n_columns, &table, err));
    for (size_t i = 0; i < snapshot->n_devices; i++) {
        if (!rc_view_shows(view, snapshot->devices[i].device))
            continue;
        RC_TRY(rc_table_add_row(table, &row, err));
        for (size_t k = 0; k < N(columns); k++)
            all[k] = (rc_cell){.is_null = true};
        fill_device(&snapshot->devices[i], all);
        memcpy(row, all, n_columns * sizeof *row);
    }
    rc_report_add(report, table, false);
    return RC_OK;
}

static rc_code add_actions(const rc_snapshot *snapshot, const rc_snapshot_view *view,
                           rc_report *report, rc_error *err)
{
    static const rc_column columns[] = {{"device", NULL, RC_UNIT_COUNT},
                                        {"action", NULL, RC_UNIT_TEXT},
                                        {"count", NULL, RC_UNIT_COUNT}};
    rc_table *table;
    rc_cell *row;
    RC_TRY(rc_table_make(snapshot->mem, "actions", "Events", columns, N(columns), &table, err));
    for (size_t i = 0; i < snapshot->n_devices; i++)
        for (int a = 0; a < RC_ACTION_COUNT; a++) {
            const rc_snapshot_device *device = &snapshot->devices[i];
            if (!device->n_actions[a] || !rc_view_shows(view, device->device))
                continue;
            RC_TRY(rc_table_add_row(table, &row, err));
            row[0] = rc_cell_int(device->device);
            row[1] = rc_cell_text(rc_snapshot_action_name((rc_snapshot_action)a));
            row[2] = rc_cell_int(device->n_actions[a]);
        }
    rc_report_add(report, table, false);
    return RC_OK;
}

static rc_code add_traffic(const rc_snapshot *snapshot, const rc_snapshot_view *view,
                           rc_report *report, rc_error *err)
{
    static const rc_column columns[] = {{"device", NULL, RC_UNIT_COUNT},
                                        {"label", NULL, RC_UNIT_TEXT},
                                        {"requested_bytes", "allocated in all", RC_UNIT_BYTES},
                                        {"count", "allocations", RC_UNIT_COUNT}};
    rc_table *table;
    RC_TRY(rc_table_make(snapshot->mem, "traffic_by_label", "All allocations, by label",
                         columns, N(columns), &table, err));
    for (size_t i = 0; i < snapshot->n_devices; i++) {
        const rc_snapshot_device *device = &snapshot->devices[i];
        const rc_label_traffic *sums = device->traffic;
        for (int a = 0; a < RC_SNAPSHOT_LABEL_COUNT && rc_view_shows(view, device->device);
             a++) {
            rc_cell *row;
            if (sums[a].count == 0)
                continue;
            RC_TRY(rc_table_add_row(table, &row, err));
            row[0] = rc_cell_int(device->device);
            row[1] = rc_cell_text(rc_snapshot_label_name(a));
            row[2] = rc_cell_int(sums[a].bytes);
            row[3] = rc_cell_int(sums[a].count);
        }
    }
    rc_report_add(report, table, false);
    return RC_OK;
}

/* ---- pools ---- */

static const rc_column stats_columns[] = {
    {"device", NULL, RC_UNIT_COUNT},
    {"class", NULL, RC_UNIT_TEXT},
    {"stream", NULL, RC_UNIT_COUNT},
    {"pool_id", "pool", RC_UNIT_TEXT},
    {"segments", NULL, RC_UNIT_COUNT},
    {"reserved_bytes", "reserved", RC_UNIT_BYTES},
    {"allocated_bytes", "allocated", RC_UNIT_BYTES},
    {"active_bytes", "active", RC_UNIT_BYTES},
    {"inactive_bytes", "inactive", RC_UNIT_BYTES},
    {"inactive_ratio", "inactive part", RC_UNIT_RATIO},
    {"largest_inactive_block_bytes", "largest free block", RC_UNIT_BYTES},
    {"releasable_bytes", "releasable", RC_UNIT_BYTES},
    {"stuck_bytes", "stuck", RC_UNIT_BYTES},
    {"requested_active_bytes", "requested", RC_UNIT_BYTES},
    {"internal_waste_bytes", "lost to rounding", RC_UNIT_BYTES},
    {"awaiting_free_bytes", "awaiting free", RC_UNIT_BYTES},
    {"blocks", NULL, RC_UNIT_COUNT},
    {"inactive_blocks", "free blocks", RC_UNIT_COUNT},
    {"is_expandable", "expandable", RC_UNIT_BOOL}};
enum { N_STATS = sizeof stats_columns / sizeof *stats_columns, N_STATS_NAMES = 4 };

static void fill_stats(const rc_pool_stats *s, rc_cell *row)
{
    int64_t inactive_bytes = s->reserved_bytes - s->active_bytes;
    row[4] = rc_cell_int(s->n_segments);
    row[5] = rc_cell_int(s->reserved_bytes);
    row[6] = rc_cell_int(s->allocated_bytes);
    row[7] = rc_cell_int(s->active_bytes);
    row[8] = rc_cell_int(inactive_bytes);
    row[9] = rc_cell_real(s->reserved_bytes ? (double)inactive_bytes / (double)s->reserved_bytes
                                            : 0);
    row[10] = rc_cell_int(s->largest_inactive_bytes);
    row[11] = rc_cell_int(s->releasable_bytes);
    row[12] = rc_cell_int(inactive_bytes - s->releasable_bytes);
    row[13] = rc_cell_int(s->requested_bytes);
    row[14] = rc_cell_int(s->active_bytes - s->requested_bytes);
    row[15] = rc_cell_int(s->active_bytes - s->allocated_bytes);
    row[16] = rc_cell_int(s->n_blocks);
    row[17] = rc_cell_int(s->n_inactive_blocks);
    row[18] = rc_cell_int(s->is_expandable);
}

/* The columns without the names of pools, for sums. */
static rc_code add_stats_row(rc_table *table, const rc_pool_stats *s, bool has_device,
                             rc_error *err)
{
    rc_cell *row, all[N_STATS] = {0};
    RC_TRY(rc_table_add_row(table, &row, err));
    fill_stats(s, all);
    all[0] = rc_cell_int(s->device);
    if (has_device)
        row[0] = all[0];
    memcpy(row + has_device, all + N_STATS_NAMES, (N_STATS - N_STATS_NAMES) * sizeof *row);
    return RC_OK;
}

static rc_code add_segments(const rc_snapshot *snapshot, rc_report *report, rc_error *err)
{
    rc_table *table;
    RC_TRY(rc_table_make(snapshot->mem, "segments", "Segments at the end",
                         stats_columns + N_STATS_NAMES, N_STATS - N_STATS_NAMES, &table, err));
    RC_TRY(add_stats_row(table, &snapshot->total, false, err));
    rc_report_add(report, table, true);
    return RC_OK;
}

static rc_code add_segments_by_device(const rc_snapshot *snapshot, rc_report *report,
                                      rc_error *err)
{
    rc_column *columns;
    size_t n = N_STATS - N_STATS_NAMES + 1;
    RC_TRY(RC_NEW(snapshot->mem, &columns, n, err));
    columns[0] = stats_columns[0];
    memcpy(columns + 1, stats_columns + N_STATS_NAMES, (n - 1) * sizeof *columns);
    rc_table *table;
    RC_TRY(rc_table_make(snapshot->mem, "segments_by_device", "Segments at the end, by device",
                         columns, n, &table, err));
    for (size_t i = 0; i < snapshot->n_by_device; i++)
        RC_TRY(add_stats_row(table, &snapshot->by_device[i], true, err));
    rc_report_add(report, table, false);
    return RC_OK;
}

static rc_code add_pools(const rc_snapshot *snapshot, const rc_snapshot_view *view,
                         rc_report *report, rc_error *err)
{
    enum { N_BRIEF = 13 };
    rc_table *table;
    size_t n_columns = view->is_brief ? N_BRIEF : N_STATS;
    RC_TRY(rc_table_make(snapshot->mem, "pools",
                         "Pools at the end (pool 0:0 is the default, others are private: CUDA "
                         "graphs, MemPool)",
                         stats_columns, n_columns, &table, err));
    for (size_t i = 0; i < snapshot->n_pools; i++) {
        const rc_pool_stats *s = &snapshot->pools[i];
        rc_cell *row, all[N_STATS] = {0};
        if (!rc_view_shows(view, s->device))
            continue;
        RC_TRY(rc_table_add_row(table, &row, err));
        fill_stats(s, all);
        const char *pool;
        RC_TRY(rc_arena_printf(snapshot->mem, &pool, err, "%lld:%lld", (long long)s->pool_id[0],
                               (long long)s->pool_id[1]));
        all[0] = rc_cell_int(s->device);
        all[1] = rc_cell_text(s->is_small ? "small" : "large");
        all[2] = rc_cell_int(s->stream);
        all[3] = rc_cell_text(pool);
        memcpy(row, all, n_columns * sizeof *row);
    }
    rc_report_add(report, table, false);
    return RC_OK;
}

/* ---- out of memory ---- */

static rc_code fill_oom(const rc_snapshot *snapshot, const rc_snapshot_oom *oom, rc_cell *row,
                        rc_error *err)
{
    rc_stack_facts facts = snapshot->book->stacks[oom->stack];
    const char *source;
    RC_TRY(rc_stack_source(snapshot->book, snapshot->file->names, oom->stack, snapshot->mem,
                           &source, err));
    row[0] = rc_cell_int(oom->device);
    row[1] = rc_cell_int(oom->event_index);
    row[2] = rc_cell_int(oom->size_bytes);
    row[3] = rc_cell_int(oom->device_free_bytes);
    row[4] = rc_cell_int(oom->largest_bytes);
    row[5] = rc_cell_int(oom->same_bytes);
    row[6] = rc_cell_text(oom->verdict);
    row[7] = rc_cell_text(oom->enough_with);
    row[8] = rc_cell_text(source);
    row[9] = rc_cell_text(rc_snapshot_label_name(facts.label));
    row[10] = rc_cell_text(rc_snapshot_phase_name((rc_snapshot_phase)facts.phase));
    row[11] = rc_cell_int(oom->other_stream_bytes);
    row[12] = rc_cell_int(oom->private_bytes);
    row[13] = rc_cell_int(oom->other_class_bytes);
    row[14] = rc_cell_int(oom->needed_bytes);
    row[15] = rc_cell_int(oom->allocated_bytes);
    row[16] = rc_cell_int(oom->reserved_bytes);
    row[17] = rc_cell_int(oom->stream);
    row[18] = rc_cell_text(oom->is_small ? "small" : "large");
    return RC_OK;
}

static rc_code add_ooms(const rc_snapshot *snapshot, const rc_snapshot_view *view,
                        rc_report *report, rc_error *err)
{
    static const rc_column columns[] = {
        {"device", NULL, RC_UNIT_COUNT},
        {"event_index", "event", RC_UNIT_COUNT},
        {"size_bytes", "request", RC_UNIT_BYTES},
        {"device_free_bytes", "free on the card", RC_UNIT_BYTES},
        {"largest_free_block_same_pool_bytes", "largest block that could serve", RC_UNIT_BYTES},
        {"free_same_pool_bytes", "free in its pool", RC_UNIT_BYTES},
        {"verdict", NULL, RC_UNIT_TEXT},
        {"enough_with", "enough with", RC_UNIT_TEXT},
        {"source", NULL, RC_UNIT_TEXT},
        {"label", NULL, RC_UNIT_TEXT},
        {"phase", NULL, RC_UNIT_TEXT},
        {"free_other_streams_bytes", "free on other streams", RC_UNIT_BYTES},
        {"free_private_pools_bytes", "free in private pools", RC_UNIT_BYTES},
        {"free_other_class_bytes", "free in the other size class", RC_UNIT_BYTES},
        {"needed_bytes", "asked of the driver", RC_UNIT_BYTES},
        {"requested_bytes", "held by the program", RC_UNIT_BYTES},
        {"reserved_bytes", "reserved before", RC_UNIT_BYTES},
        {"stream", NULL, RC_UNIT_COUNT},
        {"class", NULL, RC_UNIT_TEXT}};
    enum { N_BRIEF = 11 };
    rc_table *table;
    rc_cell *row, all[N(columns)];
    size_t n_columns = view->is_brief ? N_BRIEF : N(columns);
    if (snapshot->n_ooms == 0 && view->is_brief)
        return RC_OK;
    RC_TRY(
        rc_table_make(snapshot->mem, "oom", "Out of memory", columns, n_columns, &table, err));
    for (size_t i = 0; i < snapshot->n_ooms; i++) {
        if (!rc_view_shows(view, snapshot->ooms[i].device))
            continue;
        RC_TRY(fill_oom(snapshot, &snapshot->ooms[i], all, err));
        RC_TRY(rc_table_add_row(table, &row, err));
        memcpy(row, all, n_columns * sizeof *row);
    }
    rc_report_add(report, table, false);
    return RC_OK;
}

/* ---- all ---- */

rc_code rc_snapshot_overview(const rc_snapshot *snapshot, const rc_snapshot_view *view,
                             rc_report *report, rc_error *err)
{
    RC_TRY(add_file(snapshot, view, report, err));
    RC_TRY(rc_snapshot_add_answer(snapshot, view, report, err));
    RC_TRY(add_ooms(snapshot, view, report, err));
    if (snapshot->n_ooms > 0)
        RC_TRY(rc_snapshot_add_holders(snapshot, RC_LIVE_OOM, view, report, err));
    RC_TRY(add_devices(snapshot, view, report, err));
    RC_TRY(rc_snapshot_add_holders(snapshot, RC_LIVE_PEAK, view, report, err));
    RC_TRY(add_segments(snapshot, report, err));
    if (!view->is_brief || snapshot->n_by_device > 1)
        RC_TRY(add_segments_by_device(snapshot, report, err));
    RC_TRY(add_pools(snapshot, view, report, err));
    if (!view->is_brief) {
        RC_TRY(add_actions(snapshot, view, report, err));
        RC_TRY(add_traffic(snapshot, view, report, err));
    }
    return rc_snapshot_add_notes(snapshot, view, report, err);
}
