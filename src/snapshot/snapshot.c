/* snapshot.c — a snapshot file replayed: rc_snapshot.
 *
 * takes  the file's segments and the replayed traces
 * gives  absolute bytes (the trace knows changes only, the segments know the end), pools, OOM events
 * next   group.c says who holds memory, table.c prints
 */
#include "snapshot/replay.h"

#include "base/num.h"
#include "snapshot/pools.h"

#include <stdlib.h>
#include <string.h>

/* ---- devices ---- */

static int by_addr(const void *a, const void *b)
{
    const rc_final_block *x = a, *y = b;
    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static rc_code make_final_blocks(rc_snapshot *snapshot, rc_error *err)
{
    const rc_snapshot_file *file = snapshot->file;
    RC_TRY(RC_NEW(snapshot->mem, &snapshot->final_blocks, file->n_blocks, err));
    for (size_t i = 0; i < file->n_segments; i++) {
        const rc_snapshot_segment *segment = &file->segments[i];
        for (size_t k = 0; k < segment->n_blocks; k++) {
            const rc_snapshot_block *block = &file->blocks[segment->first_block + k];
            if (block->state != RC_BLOCK_INACTIVE)
                snapshot->final_blocks[snapshot->n_final_blocks++] =
                    (rc_final_block){segment->device, block->addr, block->size_bytes,
                                     block->requested_bytes, block->stack};
        }
    }
    /* torch writes segments by address: mostly there is nothing to sort */
    size_t n = snapshot->n_final_blocks, n_sorted = n > 0;
    while (n_sorted < n && by_addr(&snapshot->final_blocks[n_sorted - 1],
                                   &snapshot->final_blocks[n_sorted]) <= 0)
        n_sorted++;
    if (n_sorted < n)
        qsort(snapshot->final_blocks, n, sizeof *snapshot->final_blocks, by_addr);
    return RC_OK;
}

/* What the segments say about a device at the end. */
static void add_end(const rc_snapshot *snapshot, rc_snapshot_device *device)
{
    size_t low = 0, high = snapshot->n_final_blocks;
    const rc_final_block *all = snapshot->final_blocks;
    while (low < high) { /* the first block of this device */
        size_t middle = (low + high) / 2;
        if (all[middle].device < device->device)
            low = middle + 1;
        else
            high = middle;
    }
    device->final_blocks = all + low;
    for (size_t i = low; i < snapshot->n_final_blocks && all[i].device == device->device; i++) {
        device->n_final_blocks++;
        device->end_requested_bytes += all[i].requested_bytes;
    }
    for (size_t i = 0; i < snapshot->n_by_device; i++)
        if (snapshot->by_device[i].device == device->device) {
            device->has_segments = true;
            device->end_reserved_bytes = snapshot->by_device[i].reserved_bytes;
        }
}

/* The request rounded up as the allocator does (c10/cuda/CUDACachingAllocator.cpp, kMinBlockSize). */
static int64_t rounded_bytes(int64_t size_bytes)
{
    return size_bytes < 512 ? 512 : rc_round_up(size_bytes, 512);
}

typedef struct maker {
    const rc_replay *replay;
    rc_snapshot *snapshot;
    uint32_t *place; /* [number of stacks] zeros between uses */
    /* by final block: the allocation of the trace that it is, or NULL */
    const rc_live_entry **made; /* [n_final_blocks] */
} maker;

/* Where the final block is this allocation still, its size is known and no estimate. */
static void settle(const maker *m, const rc_snapshot_device *device, const rc_marker *marker,
                   rc_live_set *set)
{
    for (size_t i = 0; i < device->n_final_blocks; i++) {
        const rc_live_entry *entry = m->made[i];
        const rc_final_block *block = &device->final_blocks[i];
        if (entry && entry->number <= marker->number &&
            block->requested_bytes == entry->size_bytes &&
            block->size_bytes >= entry->size_bytes)
            set->tallies[m->place[entry->stack] - 1].rounded_bytes +=
                block->size_bytes - rounded_bytes(entry->size_bytes);
    }
}

/* Sums by stack; `place[stack]` is 1 + its index in the tallies, and zero again afterwards. */
static rc_code tally(const maker *m, const rc_snapshot_device *device, const rc_marker *marker,
                     rc_live_set *set, rc_error *err)
{
    uint32_t *place = m->place;
    for (size_t i = 0; i < set->n; i++)
        if (place[set->at[i].stack] == 0)
            place[set->at[i].stack] = (uint32_t)++set->n_tallies;
    RC_TRY(RC_NEW(m->snapshot->mem, &set->tallies, set->n_tallies, err));
    for (size_t i = 0; i < set->n; i++) {
        rc_stack_tally *t = &set->tallies[place[set->at[i].stack] - 1];
        t->stack = set->at[i].stack;
        t->requested_bytes += set->at[i].size_bytes;
        t->rounded_bytes += rounded_bytes(set->at[i].size_bytes);
        t->count++;
    }
    settle(m, device, marker, set);
    for (size_t i = 0; i < set->n_tallies; i++)
        place[set->tallies[i].stack] = 0;
    return RC_OK;
}

/* Finds what the trace made of the final blocks, and sums up the rest by stack. */
static rc_code tally_untraced(const maker *m, const rc_trace_replay *trace,
                              rc_snapshot_device *device, rc_error *err)
{
    size_t n_most = 0;
    device->baseline_check_bytes = trace->unmatched_bytes;
    for (size_t i = 0; i < device->n_final_blocks; i++) {
        m->made[i] = rc_live_find(&trace->live, device->final_blocks[i].addr);
        n_most += m->made[i] == NULL;
    }
    RC_TRY(RC_NEW(m->snapshot->mem, &device->untraced, n_most, err));
    for (size_t i = 0; i < device->n_final_blocks; i++) {
        const rc_final_block *block = &device->final_blocks[i];
        if (m->made[i])
            continue;
        device->baseline_check_bytes += block->requested_bytes;
        if (m->place[block->stack] == 0) {
            m->place[block->stack] = (uint32_t)++device->n_untraced;
            device->untraced[device->n_untraced - 1].stack = block->stack;
        }
        rc_stack_tally *t = &device->untraced[m->place[block->stack] - 1];
        t->requested_bytes += block->requested_bytes;
        t->rounded_bytes += block->size_bytes;
        t->count++;
    }
    for (size_t i = 0; i < device->n_untraced; i++)
        m->place[device->untraced[i].stack] = 0;
    return RC_OK;
}

static rc_code collect(const maker *m, const rc_trace_replay *trace, const rc_marker *marker,
                       const rc_snapshot_device *device, rc_live_set *set, rc_error *err)
{
    RC_TRY(rc_replay_collect(trace, marker, m->snapshot->mem, set, err));
    set->before_bytes = device->baseline_requested_bytes - marker->unmatched_bytes;
    set->reserved_bytes = device->baseline_reserved_bytes + marker->reserved_net_bytes;
    return set->is_set ? tally(m, device, marker, set, err) : RC_OK;
}

static rc_code make_device(const maker *m, const rc_snapshot_trace *facts,
                           rc_trace_replay *trace, rc_snapshot_device *out, rc_error *err)
{
    *out = (rc_snapshot_device){.device = facts->device,
                                .n_events = trace->n_events,
                                .has_time = trace->has_time,
                                .first_us = trace->first_us,
                                .last_us = trace->last_us,
                                .alloc_bytes = trace->alloc_bytes,
                                .n_unmatched_frees = trace->n_unmatched_frees,
                                .unmatched_bytes = trace->unmatched_bytes,
                                .n_double_allocs = trace->n_double_allocs,
                                .n_backward_times = trace->n_backward_times,
                                .ring_max_entries = facts->ring_max_entries,
                                .has_overflowed = facts->has_overflowed,
                                .peak_reserved_index = trace->peak_reserved_index};
    memcpy(out->n_actions, trace->n_actions, sizeof out->n_actions);
    memcpy(out->traffic, trace->traffic, sizeof out->traffic);
    add_end(m->snapshot, out);
    if (!out->has_segments) {
        /* the end is not in the file: what was there before is known as far as it was freed */
        int64_t net = trace->reserved_net_bytes;
        out->end_requested_bytes = trace->unmatched_bytes + trace->net_bytes;
        out->end_reserved_bytes = net > 0 ? net : 0;
    }
    out->baseline_requested_bytes = out->end_requested_bytes - trace->net_bytes;
    out->baseline_reserved_bytes = out->end_reserved_bytes - trace->reserved_net_bytes;
    out->peak_reserved_bytes = out->baseline_reserved_bytes + trace->peak_reserved_net_bytes;
    if (m->replay->moment)
        rc_replay_finish(trace, m->replay->moment);
    RC_TRY(tally_untraced(m, trace, out, err));
    RC_TRY(collect(m, trace, &trace->peak, out, &out->peak, err));
    RC_TRY(collect(m, trace, &trace->moment, out, &out->moment, err));
    return collect(m, trace, &trace->oom, out, &out->oom, err);
}

static int by_device(const void *a, const void *b)
{
    const rc_snapshot_device *x = a, *y = b;
    return x->device < y->device ? -1 : x->device > y->device;
}

static rc_code make_devices(const maker *m, rc_error *err)
{
    rc_snapshot *snapshot = m->snapshot;
    const rc_snapshot_file *file = snapshot->file;
    RC_TRY(RC_NEW(snapshot->mem, &snapshot->devices, file->n_traces, err));
    for (size_t i = 0; i < file->n_traces; i++) {
        if (file->traces[i].device < 0 || i >= m->replay->n_traces || !m->replay->traces[i])
            continue;
        RC_TRY(make_device(m, &file->traces[i], m->replay->traces[i],
                           &snapshot->devices[snapshot->n_devices], err));
        snapshot->n_devices++;
    }
    if (snapshot->n_devices > 1)
        qsort(snapshot->devices, snapshot->n_devices, sizeof *snapshot->devices, by_device);
    return RC_OK;
}

/* ---- out of memory ---- */

static const rc_snapshot_device *find_device(const rc_snapshot *snapshot, int number)
{
    for (size_t i = 0; i < snapshot->n_devices; i++)
        if (snapshot->devices[i].device == number)
            return &snapshot->devices[i];
    return NULL;
}

static rc_code make_ooms(const rc_replay *replay, rc_snapshot *snapshot, rc_error *err)
{
    int64_t n = replay->n_ooms < RC_OOMS_KEPT ? replay->n_ooms : RC_OOMS_KEPT;
    RC_TRY(RC_NEW(snapshot->mem, &snapshot->ooms, n, err));
    for (int64_t i = replay->n_ooms - n; i < replay->n_ooms; i++) {
        const rc_oom_event *e = &replay->ooms[i % RC_OOMS_KEPT];
        int number = snapshot->file->traces[e->trace].device;
        const rc_snapshot_device *device = number >= 0 ? find_device(snapshot, number) : NULL;
        if (!device)
            continue;
        rc_snapshot_oom *oom = &snapshot->ooms[snapshot->n_ooms++];
        *oom = (rc_snapshot_oom){.device = number,
                                 .event_index = e->event_index,
                                 .size_bytes = e->event.size_bytes,
                                 .device_free_bytes = e->event.device_free_bytes,
                                 .stream = e->event.stream,
                                 .stack = e->event.stack,
                                 .allocated_bytes =
                                     device->baseline_requested_bytes + e->net_bytes,
                                 .reserved_bytes = device->baseline_reserved_bytes +
                                                   e->reserved_net_bytes + e->burst_bytes};
        rc_pools_judge_oom(snapshot, e->event.pool_id, oom);
    }
    snapshot->n_oom_events = replay->n_ooms;
    return RC_OK;
}

/* ---- all of it ---- */

static rc_code finish(const rc_replay *replay, rc_snapshot *snapshot, rc_error *err)
{
    const rc_snapshot_names *names = snapshot->file->names;
    size_t n_stacks = rc_snapshot_count_stacks(names);
    maker m = {.replay = replay, .snapshot = snapshot};
    RC_TRY(rc_frame_book_reach(snapshot->book, names, (uint32_t)n_stacks - 1, err));
    RC_TRY(rc_pools_make(snapshot, err));
    RC_TRY(make_final_blocks(snapshot, err));
    RC_TRY(RC_NEW(replay->mem, &m.place, n_stacks, err));
    RC_TRY(RC_NEW(replay->mem, &m.made, snapshot->n_final_blocks, err));
    RC_TRY(make_devices(&m, err));
    return make_ooms(replay, snapshot, err);
}

/* A file, or bytes in memory. */
typedef struct input {
    const char *path;
    const void *bytes;
    size_t n_bytes;
} input;

static rc_code make_with(rc_replay *replay, const input *from, rc_snapshot *snapshot,
                         rc_refusal *refusal, rc_error *err)
{
    rc_snapshot_file *file;
    rc_snapshot_sink sink = {replay, rc_replay_event};
    RC_TRY(RC_NEW(snapshot->mem, &snapshot->book, 1, err));
    snapshot->book->mem = snapshot->mem;
    replay->book = snapshot->book;
    if (from->path)
        RC_TRY(rc_snapshot_read(from->path, &sink, snapshot->mem, &file, refusal, err));
    else
        RC_TRY(rc_snapshot_read_bytes(from->bytes, from->n_bytes, &sink, snapshot->mem, &file,
                                      refusal, err));
    snapshot->file = file;
    return finish(replay, snapshot, err);
}

/* The replay lives in an arena of its own: comparing two files then needs the room of one. */
static rc_code make(const input *from, rc_replay *replay, rc_arena *mem, rc_snapshot **out,
                    rc_refusal *refusal, rc_error *err)
{
    RC_TRY(RC_NEW(mem, out, 1, err));
    (*out)->mem = mem;
    replay->mem = rc_arena_open();
    rc_code code = replay->mem
                       ? make_with(replay, from, *out, refusal, err)
                       : RC_FAIL(err, RC_E_MEMORY, RC_NOWHERE, "the host is out of memory");
    rc_arena_close(replay->mem);
    return code;
}

rc_code rc_snapshot_make(const char *path, const rc_moment *moment,
                         const rc_snapshot_watch *watch, rc_arena *mem, rc_snapshot **out,
                         rc_refusal *refusal, rc_error *err)
{
    rc_replay replay = {.moment = moment, .watch = watch};
    return make(&(input){.path = path}, &replay, mem, out, refusal, err);
}

rc_code rc_snapshot_make_bytes(const void *bytes, size_t n_bytes, const rc_moment *moment,
                               const rc_snapshot_watch *watch, rc_arena *mem, rc_snapshot **out,
                               rc_refusal *refusal, rc_error *err)
{
    rc_replay replay = {.moment = moment, .watch = watch};
    return make(&(input){.bytes = bytes, .n_bytes = n_bytes}, &replay, mem, out, refusal, err);
}

bool rc_moment_parse(const char *text, rc_moment *moment)
{
    static const struct {
        const char *unit;
        double us;
    } units[] = {{"us", 1}, {"ms", 1e3}, {"min", 60e6}, {"s", 1e6}, {"m", 60e6}};
    *moment = (rc_moment){.kind = RC_MOMENT_END};
    if (strcmp(text, "end") == 0)
        return true;
    bool is_index = *text == '#';
    moment->kind = is_index ? RC_MOMENT_INDEX : RC_MOMENT_TIME_US;
    if (rc_parse_int(text + is_index, &moment->value))
        return moment->value >= 0 || !is_index;
    size_t n = strlen(text);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        size_t n_unit = strlen(units[i].unit);
        char number[40];
        double value;
        if (n <= n_unit || n - n_unit >= sizeof number ||
            strcmp(text + n - n_unit, units[i].unit) != 0)
            continue;
        memcpy(number, text, n - n_unit);
        number[n - n_unit] = '\0';
        if (!rc_parse_real(number, &value) || !(value >= 0 && value < 1e9))
            continue;
        *moment = (rc_moment){RC_MOMENT_SINCE_US, (int64_t)(value * units[i].us)};
        return true;
    }
    return false;
}
