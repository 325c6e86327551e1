/* snapshot.h — what a CUDA memory snapshot tells: peaks, who holds them, fragmentation, OOM.
 *
 * takes  a snapshot file (snapshot_file.h)
 * gives  rc_snapshot: per device the replayed trace and the segments at the end
 *
 * Requested bytes come from the trace and are exact; rounded bytes come from segments and blocks.
 * Where rounded bytes of a past moment are shown they are an estimate: the final block where it is
 * still there, else the request rounded up to 512 (at most 1 MiB low for each large block).
 * Strings come from the file: print them through a report.
 */
#ifndef RECOMPUTE_SNAPSHOT_H
#define RECOMPUTE_SNAPSHOT_H

#include <recompute/snapshot_file.h>
#include <recompute/table.h>

RC_EXTERN_C_BEGIN

/* Rows of src/defs/snapshot_labels.def, and three more: unattributed (no Python frames), other,
 * before_recording. */
enum { RC_SNAPSHOT_LABEL_COUNT = 28 };
/* A label's name; "other" past the last. */
RC_API const char *rc_snapshot_label_name(int label);

typedef enum rc_snapshot_phase {
    RC_SNAPSHOT_BUILD,
    RC_SNAPSHOT_FORWARD,
    RC_SNAPSHOT_RECOMPUTE,
    RC_SNAPSHOT_BACKWARD,
    RC_SNAPSHOT_OPTIMIZER,
    RC_SNAPSHOT_NO_FRAMES, /* in training almost always backward, from C++ */
    RC_SNAPSHOT_OTHER,
    RC_SNAPSHOT_PHASE_COUNT
} rc_snapshot_phase;

/* "forward", "recompute", ... */
RC_API const char *rc_snapshot_phase_name(rc_snapshot_phase phase);

/* A moment to look at, besides the peak and the last OOM. */
typedef enum rc_moment_kind {
    RC_MOMENT_NONE,
    RC_MOMENT_INDEX,    /* after this event of each trace */
    RC_MOMENT_TIME_US,  /* Unix time */
    RC_MOMENT_SINCE_US, /* since the trace's first event */
    RC_MOMENT_END
} rc_moment_kind;

typedef struct rc_moment {
    rc_moment_kind kind;
    int64_t value;
} rc_moment;

/* "#1200", "1760000840019052", "2.5s", "250ms", "40us", "end"; false, with *moment of no use, when `text` is
 * none of them. */
RC_API bool rc_moment_parse(const char *text, rc_moment *moment);

typedef struct rc_live_entry {
    uint64_t addr;
    /* requested */
    int64_t size_bytes;
    /* of the allocation */
    uint32_t stack;
    /* event index + 1 */
    uint32_t number;
} rc_live_entry;

/* Allocations of one stack. */
typedef struct rc_stack_tally {
    uint32_t stack;
    /* rounded: an estimate */
    int64_t requested_bytes, rounded_bytes, count;
} rc_stack_tally;

/* What was allocated at one moment of one trace. */
typedef struct rc_live_set {
    bool is_set;
    /* -1: before the first event */
    int64_t event_index;
    int64_t time_us;
    bool has_time;
    /* requested, against the start of the trace */
    int64_t net_bytes;
    /* requested before the recording began and still held */
    int64_t before_bytes;
    /* at that moment */
    int64_t reserved_bytes;
    /* allocations of the trace, in no order */
    rc_live_entry *at;
    size_t n;
    /* their sum */
    int64_t traced_bytes;
    /* the same by stack, in no order */
    rc_stack_tally *tallies;
    size_t n_tallies;
} rc_live_set;

/* An active block at the end of the recording. */
typedef struct rc_final_block {
    int device;
    uint64_t addr;
    int64_t size_bytes, requested_bytes;
    uint32_t stack;
} rc_final_block;

typedef struct rc_label_traffic {
    int64_t bytes, count;
} rc_label_traffic;

typedef struct rc_snapshot_device {
    int device;
    int64_t n_events, n_actions[RC_ACTION_COUNT];
    bool has_time;
    int64_t first_us, last_us;
    /* of all allocations together */
    int64_t alloc_bytes;
    rc_label_traffic traffic[RC_SNAPSHOT_LABEL_COUNT];
    /* of what was allocated before the recording */
    int64_t n_unmatched_frees, unmatched_bytes;
    /* oddities of the file */
    int64_t n_double_allocs, n_backward_times;
    /* -1 unknown */
    int64_t ring_max_entries;
    /* 0, 1, -1 unknown */
    int has_overflowed;

    /* false: the file does not say what was held at the end */
    bool has_segments;
    /* of the final active blocks */
    int64_t end_requested_bytes;
    int64_t end_reserved_bytes;
    /* at the start of the trace */
    int64_t baseline_requested_bytes, baseline_reserved_bytes;
    /* the same, from unmatched frees and untraced blocks */
    int64_t baseline_check_bytes;
    int64_t peak_reserved_bytes, peak_reserved_index;
    /* [n_final_blocks] by address */
    const rc_final_block *final_blocks;
    size_t n_final_blocks;
    /* final blocks that no event of the trace made, by stack: held all through the recording */
    rc_stack_tally *untraced;
    size_t n_untraced;
    /* of requested bytes */
    rc_live_set peak;
    rc_live_set moment;
    /* at the last out-of-memory event */
    rc_live_set oom;
} rc_snapshot_device;

/* Free and used bytes of one (device, pool, size class, stream), or of many together. */
typedef struct rc_pool_stats {
    /* -1 all */
    int device;
    bool is_small, is_expandable;
    int64_t stream, pool_id[2];
    int64_t n_segments, n_blocks, n_inactive_blocks;
    int64_t reserved_bytes, allocated_bytes, active_bytes, requested_bytes;
    int64_t largest_inactive_bytes;
    /* in segments with no active block */
    int64_t releasable_bytes;
} rc_pool_stats;

typedef struct rc_snapshot_oom {
    int device;
    int64_t event_index;
    /* rounded request */
    int64_t size_bytes;
    int64_t device_free_bytes, stream;
    /* what the driver would have had to give */
    int64_t needed_bytes;
    uint32_t stack;
    bool is_small;
    /* biggest free block of the right pool, class and stream */
    int64_t largest_bytes;
    /* free */
    int64_t same_bytes, other_stream_bytes, private_bytes, other_class_bytes;
    /* requested, and reserved before the cache was freed */
    int64_t allocated_bytes, reserved_bytes;
    /* fragmentation, capacity or race */
    const char *verdict;
    /* other_streams or private_pools: free there, and enough; else NULL */
    const char *enough_with;
} rc_snapshot_oom;

typedef struct rc_frame_book rc_frame_book;

typedef struct rc_snapshot {
    const rc_snapshot_file *file;
    rc_frame_book *book;
    /* [n_final_blocks] by device, then by address */
    rc_final_block *final_blocks;
    size_t n_final_blocks;
    /* with a trace, by device number */
    rc_snapshot_device *devices;
    size_t n_devices;
    rc_pool_stats total;
    /* [n_by_device] of devices with segments */
    rc_pool_stats *by_device;
    size_t n_by_device;
    /* [n_pools] */
    rc_pool_stats *pools;
    size_t n_pools;
    /* up to the last 256 */
    rc_snapshot_oom *ooms;
    size_t n_ooms;
    int64_t n_oom_events;
    rc_arena *mem;
} rc_snapshot;

/* One change of a trace, in order; for timelines and steps. */
typedef struct rc_change {
    /* time 0 when the file has none */
    int64_t index, time_us;
    /* requested */
    int64_t delta_bytes;
    int64_t reserved_delta_bytes;
    /* of the allocation made or freed; before_recording for unmatched frees */
    int label;
    /* of the event's own stack, for allocations */
    rc_snapshot_phase phase;
    bool has_time, is_alloc;
} rc_change;
typedef struct rc_snapshot_watch {
    void *state;
    rc_code (*change)(void *state, uint32_t trace, const rc_change *change, rc_error *err);
} rc_snapshot_watch;

/**
 * Reads and replays a snapshot in one pass.
 *
 * takes   path    as rc_snapshot_read
 *         moment  also to be kept; NULL none
 *         watch   gets every change of memory; NULL none
 * gives   *out    see above
 *         *refusal  as rc_snapshot_read (may be NULL)
 * errors  as rc_snapshot_read; RC_E_INPUT when counters overflow
 * cost    one pass over the file; no memory per event but for live allocations
 */
RC_MUST_CHECK
RC_API rc_code rc_snapshot_make(const char *path, const rc_moment *moment,
                                const rc_snapshot_watch *watch, rc_arena *mem,
                                rc_snapshot **out, rc_refusal *refusal, rc_error *err);

/* The same over bytes in memory.
 *
 * takes   bytes           n_bytes of a file; borrowed for the call
 *         moment, watch   as above
 * gives   *out, *refusal  as above
 * errors  as above */
RC_MUST_CHECK
RC_API rc_code rc_snapshot_make_bytes(const void *bytes, size_t n_bytes,
                                      const rc_moment *moment, const rc_snapshot_watch *watch,
                                      rc_arena *mem, rc_snapshot **out, rc_refusal *refusal,
                                      rc_error *err);

/* ---- groups ---- */

typedef enum rc_group_kind {
    RC_GROUP_SOURCE, /* function@file.py:line, innermost frame of the program itself */
    RC_GROUP_MODULE, /* its file */
    RC_GROUP_LABEL,
    RC_GROUP_PHASE,
    RC_GROUP_LABEL_PHASE,
    RC_GROUP_NATIVE /* C++ function, for stacks without Python frames only */
} rc_group_kind;

typedef struct rc_group {
    const char *name;
    /* rounded: an estimate */
    int64_t requested_bytes, rounded_bytes, count;
} rc_group;

/* Live allocations by name.
 *
 * takes   set   of this snapshot
 *         kind  what they are named by
 * gives   *out  [*n] largest first, then by name
 * errors  RC_E_MEMORY */
RC_MUST_CHECK
RC_API rc_code rc_snapshot_group(const rc_snapshot *snapshot, const rc_live_set *set,
                                 rc_group_kind kind, rc_arena *mem, rc_group **out, size_t *n,
                                 rc_error *err);

/* The same for what was held all through the recording.
 *
 * takes   device  of this snapshot
 *         kind    as above
 * gives   *out    as above
 * errors  RC_E_MEMORY */
RC_MUST_CHECK
RC_API rc_code rc_snapshot_group_untraced(const rc_snapshot *snapshot,
                                          const rc_snapshot_device *device, rc_group_kind kind,
                                          rc_arena *mem, rc_group **out, size_t *n,
                                          rc_error *err);

/* ---- reports ---- */

typedef struct rc_snapshot_view {
    /* -1 all */
    int device;
    /* most rows of a list of holders; 0 all */
    int64_t n_top;
    /* for people: leaves out what only programs need */
    bool is_brief;
} rc_snapshot_view;

/* Everything.
 *
 * takes   view    what is shown of it
 * gives   report  tables added: settings, devices, peaks with who holds them, pools, OOM; taken from the
 *                 snapshot's arena
 * errors  RC_E_MEMORY */
RC_MUST_CHECK
RC_API rc_code rc_snapshot_overview(const rc_snapshot *snapshot, const rc_snapshot_view *view,
                                    rc_report *report, rc_error *err);

typedef enum rc_live_which { RC_LIVE_PEAK, RC_LIVE_MOMENT, RC_LIVE_OOM } rc_live_which;

/* One moment.
 *
 * takes   which   of each device's sets
 *         view    what is shown of it
 * gives   report  tables added: who holds memory then, and the largest allocations; taken from the
 *                 snapshot's arena
 * errors  RC_E_MEMORY */
RC_MUST_CHECK
RC_API rc_code rc_snapshot_live_report(const rc_snapshot *snapshot, rc_live_which which,
                                       const rc_snapshot_view *view, rc_report *report,
                                       rc_error *err);

/* What explains the difference of two peaks.
 *
 * takes   a, b    before and after
 *         view    the device of each: -1 is the one with the highest peak
 * gives   report  tables added: the rows of each add up to the difference
 * errors  RC_E_INPUT when a snapshot has no events on that device; RC_E_MEMORY */
RC_MUST_CHECK
RC_API rc_code rc_snapshot_compare(const rc_snapshot *a, const rc_snapshot *b,
                                   const rc_snapshot_view *view, rc_arena *mem,
                                   rc_report *report, rc_error *err);

/* ---- timelines ---- */

/* Memory over time by label, in at most `n_columns` columns. A column holds the labels at the moment
 * of its highest total, so no peak is lost however long the trace is. */
typedef struct rc_snapshot_timeline {
    int device;
    /* columns are of equal time, else of equal numbers of events */
    bool is_time;
    /* seconds or events */
    double column_width;
    size_t n_columns;
    /* [RC_SNAPSHOT_LABEL_COUNT][n_columns] requested */
    int64_t *bytes;
    /* [n_columns] highest of the column */
    int64_t *reserved_bytes;
    int64_t peak_bytes;
} rc_snapshot_timeline;

/* Reads a snapshot for its timeline alone.
 *
 * takes   path       as rc_snapshot_read
 *         by_events  columns of events although the file has times
 *         device     -1: the one with the highest peak
 * gives   *out       as above
 * errors  as rc_snapshot_make; RC_E_INPUT when the device has no events */
RC_MUST_CHECK
RC_API rc_code rc_snapshot_timeline_make(const char *path, bool by_events, int device,
                                         rc_arena *mem, rc_snapshot_timeline **out,
                                         rc_error *err);

/* For people and programs.
 *
 * gives   *out  a row per column of time, a column per label that holds memory at any time
 * errors  RC_E_MEMORY */
RC_MUST_CHECK
RC_API rc_code rc_snapshot_timeline_table(const rc_snapshot_timeline *timeline, rc_arena *mem,
                                          rc_table **out, rc_error *err);

/* ---- steps and regions ---- */

/* Each training step: its peak, what it left behind. Steps are the file's ProfilerStep marks, else
 * its Optimizer.step marks, else the turns from optimizer to forward in the stacks.
 *
 * takes   path    as rc_snapshot_read; read twice, so not standard input
 *         view    its device
 * gives   report  a table added: a row per step
 * errors  as rc_snapshot_make; RC_E_INPUT for standard input */
RC_MUST_CHECK
RC_API rc_code rc_snapshot_steps(const char *path, const rc_snapshot_view *view, rc_arena *mem,
                                 rc_report *report, rc_error *err);

/* The marked regions (record_function).
 *
 * takes   path, view  as rc_snapshot_steps
 * gives   report      a table added: peak inside, allocated inside, what each left behind
 * errors  as rc_snapshot_steps; RC_E_INPUT when the file has no marks */
RC_MUST_CHECK
RC_API rc_code rc_snapshot_regions(const char *path, const rc_snapshot_view *view,
                                   rc_arena *mem, rc_report *report, rc_error *err);

/* ---- export ---- */

/* Writes events.csv, stacks.csv, frames.csv, segments.csv, blocks.csv and annotations.csv.
 *
 * takes   path    as rc_snapshot_read; read twice, so not standard input
 *         folder  made where it is not there
 * gives   report  a table added: a row per file written
 * errors  as rc_snapshot_read; RC_E_IO when a file cannot be written */
RC_MUST_CHECK
RC_API rc_code rc_snapshot_export_csv(const char *path, const char *folder, rc_arena *mem,
                                      rc_report *report, rc_error *err);

/* Writes the same as tables of one SQLite database.
 *
 * takes   path    as above
 *         to      an existing file is replaced once the whole database is written
 * gives   report  a table added: a row per table written
 * errors  as above */
RC_MUST_CHECK
RC_API rc_code rc_snapshot_export_sqlite(const char *path, const char *to, rc_arena *mem,
                                         rc_report *report, rc_error *err);

RC_EXTERN_C_END

#endif
