/* snapshot_file.h — the file of a PyTorch CUDA memory snapshot, read without running it.
 *
 * A snapshot is an untrusted pickle. The reader builds data only, refuses whatever names
 * code, and hands each event over as it is read, so memory does not grow with the trace. All
 * strings come from the file: print them through a report, never raw.
 *
 * Two unit systems are kept apart (as the allocator does): *requested* bytes are what the program
 * asked for (trace events), *rounded* bytes are what the allocator set aside (segments, blocks).
 */
#ifndef RECOMPUTE_SNAPSHOT_FILE_H
#define RECOMPUTE_SNAPSHOT_FILE_H

#include <recompute/arena.h>
#include <recompute/error.h>

RC_EXTERN_C_BEGIN

/* ---- what the file holds ---- */

/* ORDER actions: as in src/defs/snapshot_words.def */
typedef enum rc_snapshot_action {
    RC_ACTION_ALLOC,
    RC_ACTION_FREE_REQUESTED,
    RC_ACTION_FREE_COMPLETED,
    RC_ACTION_SEGMENT_ALLOC,
    RC_ACTION_SEGMENT_FREE,
    RC_ACTION_SEGMENT_MAP,
    RC_ACTION_SEGMENT_UNMAP,
    RC_ACTION_SNAPSHOT,
    RC_ACTION_OOM,
    RC_ACTION_USER_DEFINED,
    RC_ACTION_ANNOTATE,
    RC_ACTION_FREE, /* a viewer's merge of both frees */
    RC_ACTION_OTHER,
    RC_ACTION_COUNT
} rc_snapshot_action;

/* As the file spells it: "segment_alloc". */
RC_API const char *rc_snapshot_action_name(rc_snapshot_action action);

typedef struct rc_snapshot_string {
    /* NUL-terminated; untrusted */
    const char *bytes;
    /* kept; a very long string keeps its beginning only */
    size_t n_bytes;
    uint64_t n_total_bytes;
} rc_snapshot_string;

typedef struct rc_snapshot_frame {
    /* string ids */
    uint32_t name, filename;
    int64_t line;
} rc_snapshot_frame;

typedef struct rc_snapshot_stack {
    /* [n_frames] frame ids, innermost first */
    const uint32_t *frame;
    size_t n_frames;
} rc_snapshot_stack;

/* Stack ids: 0 no `frames` key, 1 an empty list. */
enum { RC_STACK_ABSENT = 0, RC_STACK_EMPTY = 1 };

typedef struct rc_snapshot_event {
    /* 0 for oom */
    uint64_t addr;
    /* requested; segment bytes; rounded for oom; a total for snapshot */
    int64_t size_bytes;
    /* Unix time; 0 when has_time is false (torch 2.0, 2.1) */
    int64_t time_us;
    int64_t stream;
    /* oom only */
    int64_t device_free_bytes;
    /* 0, 0 is the default pool */
    int64_t pool_id[2];
    /* stack id */
    uint32_t stack;
    /* string ids, 0 is absent */
    uint32_t action_name;
    uint32_t compile_context, user_metadata;
    rc_snapshot_action action;
    bool has_time, has_pool;
} rc_snapshot_event;

typedef enum rc_block_state {
    RC_BLOCK_INACTIVE,
    RC_BLOCK_ALLOCATED,
    RC_BLOCK_PENDING_FREE, /* freed by the program, still used by another stream */
    RC_BLOCK_OTHER         /* a state from the future; counted as active */
} rc_block_state;

typedef struct rc_snapshot_block {
    uint64_t addr;
    /* rounded */
    int64_t size_bytes;
    /* stale when inactive */
    int64_t requested_bytes;
    uint32_t stack;
    rc_block_state state;
} rc_snapshot_block;

typedef struct rc_snapshot_segment {
    int device;
    bool is_small, is_expandable;
    uint64_t addr;
    int64_t total_bytes;
    int64_t stream;
    int64_t pool_id[2];
    uint32_t stack;
    /* in rc_snapshot_file.blocks */
    size_t first_block, n_blocks;
} rc_snapshot_segment;

typedef struct rc_snapshot_annotation {
    /* string id */
    uint32_t name;
    bool is_start;
    int device;
    int64_t time_us;
} rc_snapshot_annotation;

typedef struct rc_snapshot_trace {
    /* -1: the file does not use it as a device's trace */
    int device;
    int64_t n_events;
    /* -1 unknown (before torch 2.12) */
    int64_t ring_max_entries;
    /* 0, 1, -1 unknown */
    int has_overflowed;
} rc_snapshot_trace;

/* What the file says about the allocator; has_settings is false in torch 2.0 to 2.2 files. */
typedef struct rc_snapshot_settings {
    bool has_settings, is_expandable;
    /* string id of PYTORCH_CUDA_ALLOC_CONF */
    uint32_t conf;
    /* -1 no limit */
    int64_t max_split_bytes;
    double gc_threshold;
} rc_snapshot_settings;

typedef struct rc_snapshot_names rc_snapshot_names;

typedef struct rc_snapshot_file {
    const char *path;
    const rc_snapshot_names *names;
    rc_snapshot_segment *segments;
    size_t n_segments;
    rc_snapshot_block *blocks;
    size_t n_blocks;
    rc_snapshot_annotation *annotations;
    size_t n_annotations;
    /* [n_traces] by trace number */
    rc_snapshot_trace *traces;
    size_t n_traces;
    rc_snapshot_settings settings;
    int protocol;
    /* unpacked, up to and with STOP */
    int64_t n_file_bytes;
    /* after STOP, ignored */
    int64_t n_trailing_bytes;
    int64_t n_unknown_actions, n_untiled_segments;
} rc_snapshot_file;

/* Borrowed for the life of the file; id 0 gives the empty string, no frame, no stack. */
RC_API rc_snapshot_string rc_snapshot_string_at(const rc_snapshot_names *names, uint32_t id);
RC_API rc_snapshot_frame rc_snapshot_frame_at(const rc_snapshot_names *names, uint32_t id);
RC_API rc_snapshot_stack rc_snapshot_stack_at(const rc_snapshot_names *names, uint32_t id);
RC_API size_t rc_snapshot_count_stacks(const rc_snapshot_names *names);

/* Called for each event in the file's order. `trace` numbers the lists of events as they appear;
 * which device each belongs to is known at the end (rc_snapshot_file.traces). `names` knows the
 * event's ids already. */
typedef struct rc_snapshot_sink {
    void *state;
    rc_code (*event)(void *state, const rc_snapshot_names *names, uint32_t trace,
                     const rc_snapshot_event *event, rc_error *err);
} rc_snapshot_sink;

/* Why a file is refused: ORDER refusals, names in rc_snapshot_refusal_name. */
typedef enum rc_refusal {
    RC_REFUSAL_NONE,
    RC_REFUSAL_EMPTY,
    RC_REFUSAL_NOT_PICKLE,
    RC_REFUSAL_COMPRESSED,
    RC_REFUSAL_BAD_PROTOCOL,
    RC_REFUSAL_TRUNCATED,
    RC_REFUSAL_BAD_LENGTH,
    RC_REFUSAL_BAD_MEMO,
    RC_REFUSAL_STACK,
    RC_REFUSAL_TOO_DEEP,
    RC_REFUSAL_CODE,
    RC_REFUSAL_BAD_OPCODE,
    RC_REFUSAL_INT_RANGE,
    RC_REFUSAL_BAD_UTF8,
    RC_REFUSAL_BAD_TYPE,
    RC_REFUSAL_BAD_VALUE,
    RC_REFUSAL_MISSING_KEY,
    RC_REFUSAL_LIMIT,
    RC_REFUSAL_COUNT
} rc_refusal;

/* "TRUNCATED", "NOT_PICKLE", ... */
RC_API const char *rc_snapshot_refusal_name(rc_refusal refusal);

/**
 * Reads a snapshot once, from beginning to end, without running anything in it.
 *
 * takes   path   plain, gzip or zstd; "-" is standard input
 *         sink   gets every event; NULL reads the rest only
 * gives   *out   everything but the events
 *         *refusal  the class of a refusal (may be NULL)
 * errors  RC_E_INPUT "refused (CLASS): ... at byte N" for a file that is damaged, hostile or no
 *         snapshot; RC_E_IO; RC_E_MEMORY; whatever the sink returns
 * memory  of the result: names, segments, blocks; while it reads, 4 bytes for each memo entry and
 *         each container of the file, in an arena of its own
 */
RC_MUST_CHECK
RC_API rc_code rc_snapshot_read(const char *path, const rc_snapshot_sink *sink, rc_arena *mem,
                                rc_snapshot_file **out, rc_refusal *refusal, rc_error *err);

/* The same over bytes in memory.
 *
 * takes   bytes  n_bytes of a file; borrowed for the call
 *         sink   as above
 * gives   *out, *refusal  as above
 * errors  as above, but RC_E_IO */
RC_MUST_CHECK
RC_API rc_code rc_snapshot_read_bytes(const void *bytes, size_t n_bytes,
                                      const rc_snapshot_sink *sink, rc_arena *mem,
                                      rc_snapshot_file **out, rc_refusal *refusal,
                                      rc_error *err);

RC_EXTERN_C_END

#endif
