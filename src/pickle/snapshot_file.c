/* snapshot_file.c — from the value of a pickle to rc_snapshot_file.
 *
 * takes  the machine at STOP: a dict of segments, traces, settings and annotations
 * gives  arrays of segments, blocks and annotations; the device of each trace of events
 *
 * Known keys are checked strictly; unknown ones are ignored, whatever lies under them. What was
 * reached once is marked: a second way to the same segment, block, event or trace is refused, or a
 * small file could describe 10^12 events.
 * source: torch/csrc/cuda/memory_snapshot.cpp, torch/csrc/cuda/Module.cpp
 */
#include "pickle/pickle.h"

#include <string.h>

#define MOST_SIZE_BYTES ((int64_t)1 << 48) /* no segment is 256 TiB */
static const int64_t MOST_TOTAL_BYTES = (int64_t)1 << 62;
enum { MOST_DEVICE = 1023 };

typedef struct walk {
    rc_pickle *p;
    rc_arena *mem; /* of the result */
    rc_snapshot_file *file;
    int64_t total_bytes; /* of all sizes read so far */
} walk;

static rc_code bad(walk *w, rc_refusal refusal, const char *where, const char *what)
{
    return rc_pickle_refuse(w->p, refusal, "%s %s", where, what);
}

/* The last value at a key, or 0. */
static rc_pv find(const rc_pickle_box *dict, uint32_t key)
{
    rc_pv found = 0;
    for (uint32_t i = 0; i < dict->n; i += 2)
        if (rc_pv_kind_of(dict->items[i]) == RC_PV_STRING && rc_pv_id(dict->items[i]) == key)
            found = dict->items[i + 1];
    return found;
}

static uint32_t object_of(const walk *w, rc_pv v, rc_pickle_kind *kind)
{
    uint32_t object = rc_pv_kind_of(v) == RC_PV_OBJECT ? rc_pickle_object(w->p, v) : 0;
    *kind = rc_pv_kind_of(v) == RC_PV_OBJECT ? rc_object_kind(object) : RC_OBJ_STACK_USED;
    return object;
}

typedef struct number_rule {
    const char *where, *key;
    bool is_needed, may_be_high;
    int64_t low, high;
} number_rule;

static rc_code read_number(walk *w, rc_pv v, const number_rule *rule, int64_t *out)
{
    bool is_high = false;
    if (!v)
        return rule->is_needed ? rc_pickle_refuse(w->p, RC_REFUSAL_MISSING_KEY,
                                                  "%s has no '%s'", rule->where, rule->key)
                               : RC_OK;
    if (!rc_pickle_int(w->p, v, out, &is_high))
        return rc_pickle_refuse(w->p, RC_REFUSAL_BAD_TYPE, "'%s' of %s is no int", rule->key,
                                rule->where);
    if (is_high ? !rule->may_be_high : *out < rule->low || *out > rule->high)
        return rc_pickle_refuse(w->p, RC_REFUSAL_BAD_VALUE, "'%s' of %s is out of range",
                                rule->key, rule->where);
    return RC_OK;
}

static rc_code read_addr(walk *w, rc_pv v, const char *where, bool is_needed, uint64_t *addr)
{
    int64_t value = (int64_t)*addr;
    const number_rule rule = {where, "address", is_needed, true, 0, INT64_MAX};
    RC_TRY(read_number(w, v, &rule, &value));
    *addr = (uint64_t)value;
    return RC_OK;
}

static rc_code read_size(walk *w, rc_pv v, const number_rule *rule, int64_t *out)
{
    RC_TRY(read_number(w, v, rule, out));
    w->total_bytes += *out;
    if (w->total_bytes > MOST_TOTAL_BYTES)
        return bad(w, RC_REFUSAL_BAD_VALUE, "the sum of all sizes", "passes 2^62");
    return RC_OK;
}

static rc_code read_stack(walk *w, rc_pv v, const char *where, uint32_t *stack)
{
    rc_problem problem = {0};
    *stack = RC_STACK_ABSENT;
    if (v)
        RC_TRY(rc_pickle_stack_of(w->p, v, stack, &problem));
    return problem.text ? bad(w, problem.refusal, where, problem.text) : RC_OK;
}

/* A dict that is reached for the first time. */
static rc_code take_dict(walk *w, rc_pv v, const char *where, const rc_pickle_box **dict)
{
    static const rc_pickle_box empty;
    rc_pickle_kind kind;
    uint32_t object = object_of(w, v, &kind);
    *dict = &empty;
    if (kind == RC_OBJ_DICT_USED || kind == RC_OBJ_EVENT_USED)
        return bad(w, RC_REFUSAL_LIMIT, where, "is referenced more than once");
    if (kind == RC_OBJ_FRAME || kind == RC_OBJ_EVENT || kind == RC_OBJ_BLOCK)
        return bad(w, RC_REFUSAL_MISSING_KEY, where, "lacks its keys");
    if (kind == RC_OBJ_DICT) {
        *dict = rc_pickle_box_of(w->p, object);
        rc_pickle_set_object(w->p, v, RC_OBJ_DICT_USED, object >> 4);
    } else if (kind != RC_OBJ_DICT_NEW) {
        return bad(w, RC_REFUSAL_BAD_TYPE, where, "is not a dict");
    }
    return RC_OK;
}

/* A list whose items are each reached once; empty ones may be shared. */
static rc_code take_list(walk *w, rc_pv v, const char *where, const rc_pickle_box **list)
{
    static const rc_pickle_box empty;
    rc_pickle_kind kind;
    *list = &empty;
    if (!v)
        return RC_OK;
    uint32_t object = object_of(w, v, &kind);
    if (kind == RC_OBJ_LIST_USED)
        return bad(w, RC_REFUSAL_LIMIT, where, "is referenced more than once");
    if (kind == RC_OBJ_LIST) {
        *list = rc_pickle_box_of(w->p, object);
        rc_pickle_set_object(w->p, v, RC_OBJ_LIST_USED, object >> 4);
    } else if (kind != RC_OBJ_LIST_NEW) {
        return bad(w, RC_REFUSAL_BAD_TYPE, where, "is not a list of the right things");
    }
    return RC_OK;
}

/* ---- segments ---- */

/* torch 2.0 keeps a block's frames in the first entry of its history. */
static rc_pv history_frames(const walk *w, rc_pv history)
{
    rc_pickle_kind kind;
    uint32_t object = object_of(w, history, &kind);
    if (kind != RC_OBJ_LIST)
        return 0;
    object = object_of(w, rc_pickle_box_of(w->p, object)->items[0], &kind);
    return kind == RC_OBJ_DICT ? find(rc_pickle_box_of(w->p, object), RC_KEY_FRAMES) : 0;
}

static rc_code read_block(walk *w, rc_pv v, uint64_t running_addr, rc_snapshot_block *block)
{
    static const number_rule size = {"a block", "size", true, false, 0, MOST_SIZE_BYTES};
    static const number_rule requested = {"a block", "requested_size", false, false,
                                          0,         MOST_SIZE_BYTES};
    const rc_pickle_box *dict;
    RC_TRY(take_dict(w, v, "a block", &dict));
    RC_TRY(read_size(w, find(dict, RC_KEY_SIZE), &size, &block->size_bytes));
    RC_TRY(
        read_size(w, find(dict, RC_KEY_REQUESTED_SIZE), &requested, &block->requested_bytes));
    block->addr = running_addr;
    RC_TRY(read_addr(w, find(dict, RC_KEY_ADDRESS), "a block", false, &block->addr));
    rc_pv state = find(dict, RC_KEY_STATE);
    if (!state)
        return bad(w, RC_REFUSAL_MISSING_KEY, "a block", "has no 'state'");
    if (rc_pv_kind_of(state) != RC_PV_STRING)
        return bad(w, RC_REFUSAL_BAD_TYPE, "a block's state", "is no string");
    uint32_t word = rc_pv_id(state);
    block->state = word == RC_KEY_INACTIVE           ? RC_BLOCK_INACTIVE
                   : word == RC_KEY_ACTIVE_ALLOCATED ? RC_BLOCK_ALLOCATED
                   : word == RC_KEY_ACTIVE_PENDING || word == RC_KEY_ACTIVE_AWAITING
                       ? RC_BLOCK_PENDING_FREE
                       : RC_BLOCK_OTHER;
    rc_pv frames = find(dict, RC_KEY_FRAMES);
    if (!frames)
        frames = history_frames(w, find(dict, RC_KEY_HISTORY));
    return read_stack(w, frames, "a block:", &block->stack);
}

static rc_code add_sizes(walk *w, const rc_snapshot_block *block)
{
    w->total_bytes += block->size_bytes + block->requested_bytes;
    if (w->total_bytes > MOST_TOTAL_BYTES)
        return bad(w, RC_REFUSAL_BAD_VALUE, "the sum of all sizes", "passes 2^62");
    return RC_OK;
}

/* A block that was recognised when its dict closed. */
static rc_code take_block(walk *w, rc_pv v, rc_snapshot_block *block, bool *is_done)
{
    rc_pickle_kind kind;
    uint32_t object = object_of(w, v, &kind);
    *is_done = kind == RC_OBJ_BLOCK;
    if (kind == RC_OBJ_BLOCK_USED)
        return bad(w, RC_REFUSAL_LIMIT, "a block", "is referenced more than once");
    if (kind != RC_OBJ_BLOCK)
        return RC_OK;
    *block = *(const rc_snapshot_block *)rc_pages_at(&w->p->blocks, object >> 4);
    rc_pickle_set_object(w->p, v, RC_OBJ_BLOCK_USED, object >> 4);
    return add_sizes(w, block);
}

static rc_code read_blocks(walk *w, const rc_pickle_box *list, rc_snapshot_segment *segment,
                           size_t *n_blocks)
{
    int64_t used_bytes = 0;
    segment->first_block = *n_blocks;
    segment->n_blocks = list->n;
    for (uint32_t i = 0; i < list->n; i++) {
        rc_snapshot_block *block = &w->file->blocks[(*n_blocks)++];
        bool is_done;
        RC_TRY(take_block(w, list->items[i], block, &is_done));
        if (!is_done)
            RC_TRY(read_block(w, list->items[i], segment->addr + (uint64_t)used_bytes, block));
        used_bytes += block->size_bytes;
    }
    w->file->n_untiled_segments += used_bytes != segment->total_bytes && list->n > 0;
    return RC_OK;
}

/* The last value at each known key: one pass, where a segment is asked for ten. */
typedef struct fields {
    rc_pv at[RC_KEY_COUNT];
} fields;

static void find_all(const rc_pickle_box *dict, fields *out)
{
    memset(out, 0, sizeof *out);
    for (uint32_t i = 0; i < dict->n; i += 2)
        if (rc_pv_kind_of(dict->items[i]) == RC_PV_STRING &&
            rc_pv_id(dict->items[i]) < RC_KEY_COUNT)
            out->at[rc_pv_id(dict->items[i])] = dict->items[i + 1];
}

static rc_code read_segment(walk *w, const rc_pickle_box *dict, rc_snapshot_segment *segment)
{
    fields f;
    find_all(dict, &f);
    static const number_rule device = {"a segment", "device", false, false, 0, MOST_DEVICE};
    static const number_rule total = {"a segment", "total_size",   true, false,
                                      0,           MOST_SIZE_BYTES};
    static const number_rule stream = {"a segment", "stream",  false,
                                       true,        INT64_MIN, INT64_MAX};
    int64_t number = 0;
    RC_TRY(read_number(w, f.at[RC_KEY_DEVICE], &device, &number));
    segment->device = (int)number;
    RC_TRY(read_addr(w, f.at[RC_KEY_ADDRESS], "a segment", true, &segment->addr));
    RC_TRY(read_size(w, f.at[RC_KEY_TOTAL_SIZE], &total, &segment->total_bytes));
    RC_TRY(read_number(w, f.at[RC_KEY_STREAM], &stream, &segment->stream));
    rc_pv type = f.at[RC_KEY_SEGMENT_TYPE];
    if (type && rc_pv_kind_of(type) != RC_PV_STRING)
        return bad(w, RC_REFUSAL_BAD_TYPE, "a segment's type", "is no string");
    segment->is_small = type && rc_pv_id(type) == RC_KEY_SMALL;
    rc_pickle_int_pair(w->p, f.at[RC_KEY_SEGMENT_POOL_ID], segment->pool_id);
    rc_pv expandable = f.at[RC_KEY_IS_EXPANDABLE];
    segment->is_expandable = expandable == rc_pv_make(RC_PV_BOOL, 1);
    return read_stack(w, f.at[RC_KEY_FRAMES], "a segment:", &segment->stack);
}

static rc_code read_segments(walk *w, rc_pv v)
{
    const rc_pickle_box *list;
    rc_snapshot_file *file = w->file;
    RC_TRY(take_list(w, v, "'segments'", &list));
    RC_TRY(RC_NEW(w->mem, &file->segments, list->n, w->p->err));
    const rc_pickle_box **dicts, **blocks;
    RC_TRY(RC_NEW(w->p->mem, &dicts, list->n, w->p->err));
    RC_TRY(RC_NEW(w->p->mem, &blocks, list->n, w->p->err));
    for (uint32_t i = 0; i < list->n; i++) {
        RC_TRY(take_dict(w, list->items[i], "a segment", &dicts[i]));
        RC_TRY(take_list(w, find(dicts[i], RC_KEY_BLOCKS), "a segment's list of blocks",
                         &blocks[i]));
        file->n_blocks += blocks[i]->n; /* each list once: no more than the file holds */
    }
    RC_TRY(RC_NEW(w->mem, &file->blocks, file->n_blocks, w->p->err));
    size_t n_blocks = 0;
    for (uint32_t i = 0; i < list->n; i++) {
        RC_TRY(read_segment(w, dicts[i], &file->segments[i]));
        RC_TRY(read_blocks(w, blocks[i], &file->segments[i], &n_blocks));
        file->n_untiled_segments +=
            blocks[i]->n == 0 && find(dicts[i], RC_KEY_BLOCKS) && file->segments[i].total_bytes;
    }
    file->n_segments = list->n;
    return RC_OK;
}

/* ---- traces ---- */

/* A trace that was not recognised while it was built: its events are read now. */
static rc_code read_late_trace(walk *w, rc_pv v, uint32_t *i_trace)
{
    const rc_pickle_box *list;
    rc_pickle *p = w->p;
    RC_TRY(take_list(w, v, "a device trace", &list));
    if (p->traces.n >= RC_PICKLE_TRACES)
        return bad(w, RC_REFUSAL_LIMIT, "the file", "has too many lists of events");
    void *elem;
    RC_TRY(rc_pages_add(&p->traces, &elem, p->err));
    *i_trace = (uint32_t)p->traces.n - 1;
    for (uint32_t i = 0; i < list->n; i++) {
        const rc_pickle_box *dict;
        rc_snapshot_event event;
        rc_problem problem = {0};
        RC_TRY(take_dict(w, list->items[i], "an event", &dict));
        RC_TRY(rc_pickle_read_event(p, dict->items, dict->n, &event, &problem));
        if (problem.text)
            return bad(w, problem.refusal, "a trace:", problem.text);
        RC_TRY(rc_pickle_give_event(p, *i_trace, &event));
    }
    rc_pickle_trace_at(p, *i_trace)->n_appended = list->n;
    return RC_OK;
}

static rc_code read_trace(walk *w, rc_pv v, int *trace)
{
    rc_pickle_kind kind;
    uint32_t object = object_of(w, v, &kind), i_trace = object >> 4;
    *trace = -1;
    if (kind == RC_OBJ_LIST_NEW)
        return RC_OK;
    if (kind == RC_OBJ_TRACE_USED || kind == RC_OBJ_LIST_USED)
        return bad(w, RC_REFUSAL_LIMIT, "a device trace", "is referenced more than once");
    if (kind == RC_OBJ_STACK)
        return bad(w, RC_REFUSAL_MISSING_KEY, "an event", "has no 'action'");
    if (kind == RC_OBJ_LIST) {
        RC_TRY(read_late_trace(w, v, &i_trace));
    } else if (kind != RC_OBJ_TRACE) {
        return bad(w, RC_REFUSAL_BAD_TYPE, "a device trace", "is not a list of events");
    } else {
        rc_pickle_set_object(w->p, v, RC_OBJ_TRACE_USED, i_trace);
    }
    const rc_pickle_trace *t = rc_pickle_trace_at(w->p, i_trace);
    if (t->wrong)
        return bad(w, t->refusal, "a trace:", t->wrong);
    if (t->n_given != t->n_appended)
        return bad(w, RC_REFUSAL_LIMIT, "a trace", "lost events while it was built");
    *trace = (int)i_trace;
    return RC_OK;
}

static rc_code read_traces(walk *w, rc_pv v)
{
    const rc_pickle_box *list;
    RC_TRY(take_list(w, v, "'device_traces'", &list));
    int number[MOST_DEVICE + 1], extra;
    for (uint32_t i = 0; i < list->n; i++)
        RC_TRY(read_trace(w, list->items[i], i <= MOST_DEVICE ? &number[i] : &extra));
    if (list->n > MOST_DEVICE + 1)
        return bad(w, RC_REFUSAL_BAD_VALUE, "'device_traces'", "has more than 1024 devices");
    rc_snapshot_file *file = w->file;
    file->n_traces = w->p->traces.n;
    RC_TRY(RC_NEW(w->mem, &file->traces, file->n_traces, w->p->err));
    for (size_t i = 0; i < file->n_traces; i++)
        file->traces[i] = (rc_snapshot_trace){.device = -1,
                                              .n_events = rc_pickle_trace_at(w->p, i)->n_given,
                                              .ring_max_entries = -1,
                                              .has_overflowed = -1};
    for (uint32_t i = 0; i < list->n; i++)
        if (number[i] >= 0)
            file->traces[number[i]].device = (int)i;
    return RC_OK;
}

/* ---- the rest: what is odd here is left out, not refused ---- */

static const rc_pickle_box *peek(const walk *w, rc_pv v, rc_pickle_kind wanted)
{
    static const rc_pickle_box empty;
    rc_pickle_kind kind;
    uint32_t object = object_of(w, v, &kind);
    return kind == wanted ? rc_pickle_box_of(w->p, object) : &empty;
}

static void read_ring(walk *w, rc_pv entries, rc_pv overflowed)
{
    const rc_pickle_box *n_max = peek(w, entries, RC_OBJ_LIST);
    const rc_pickle_box *lost = peek(w, overflowed, RC_OBJ_LIST);
    bool is_high;
    for (size_t i = 0; i < w->file->n_traces; i++) {
        rc_snapshot_trace *trace = &w->file->traces[i];
        if (trace->device < 0)
            continue;
        uint32_t at = (uint32_t)trace->device;
        if (at < n_max->n &&
            !rc_pickle_int(w->p, n_max->items[at], &trace->ring_max_entries, &is_high))
            trace->ring_max_entries = -1;
        if (at < lost->n && rc_pv_kind_of(lost->items[at]) == RC_PV_BOOL)
            trace->has_overflowed = (int)rc_pv_id(lost->items[at]);
    }
}

static rc_code read_annotations(walk *w, rc_pv v)
{
    const rc_pickle_box *list = peek(w, v, RC_OBJ_LIST);
    rc_snapshot_file *file = w->file;
    RC_TRY(RC_NEW(w->mem, &file->annotations, list->n, w->p->err));
    for (uint32_t i = 0; i < list->n; i++) {
        const rc_pickle_box *dict = peek(w, list->items[i], RC_OBJ_DICT);
        rc_pv name = find(dict, RC_KEY_NAME), stage = find(dict, RC_KEY_STAGE);
        int64_t device = 0, time_us;
        bool is_high;
        rc_pickle_int(w->p, find(dict, RC_KEY_DEVICE), &device, &is_high);
        bool is_start = stage == rc_pv_make(RC_PV_STRING, RC_KEY_START);
        if (rc_pv_kind_of(name) != RC_PV_STRING ||
            (!is_start && stage != rc_pv_make(RC_PV_STRING, RC_KEY_END)) ||
            !rc_pickle_int(w->p, find(dict, RC_KEY_TIME_US), &time_us, &is_high))
            continue;
        file->annotations[file->n_annotations++] = (rc_snapshot_annotation){
            .name = rc_pv_id(name),
            .is_start = is_start,
            .device = device >= 0 && device <= MOST_DEVICE ? (int)device : -1,
            .time_us = time_us};
    }
    return RC_OK;
}

static void read_settings(walk *w, rc_pv v)
{
    const rc_pickle_box *dict = peek(w, v, RC_OBJ_DICT);
    rc_snapshot_settings *s = &w->file->settings;
    bool is_high;
    s->has_settings = dict->n > 0;
    s->max_split_bytes = -1;
    rc_pv conf = find(dict, RC_KEY_ALLOC_CONF), gc = find(dict, RC_KEY_GC_THRESHOLD);
    if (rc_pv_kind_of(conf) == RC_PV_STRING)
        s->conf = rc_pv_id(conf);
    if (!rc_pickle_int(w->p, find(dict, RC_KEY_MAX_SPLIT_SIZE), &s->max_split_bytes, &is_high))
        s->max_split_bytes = -1;
    s->is_expandable = find(dict, RC_KEY_EXPANDABLE_SEGMENTS) == rc_pv_make(RC_PV_BOOL, 1);
    if (rc_pv_kind_of(gc) == RC_PV_FLOAT) {
        uint64_t bits = gc & ~(uint64_t)15;
        memcpy(&s->gc_threshold, &bits, sizeof bits);
    }
}

static rc_code read_top(walk *w, rc_pv top)
{
    rc_pickle_kind kind;
    uint32_t object = object_of(w, top, &kind);
    static const rc_pickle_box empty;
    const rc_pickle_box *dict = &empty;
    if (kind == RC_OBJ_LIST) { /* torch.cuda.memory_snapshot(): segments alone */
        RC_TRY(read_segments(w, top));
        return read_traces(w, 0);
    }
    if (kind == RC_OBJ_DICT)
        dict = rc_pickle_box_of(w->p, object);
    else if (kind != RC_OBJ_DICT_NEW && kind != RC_OBJ_FRAME)
        return bad(w, RC_REFUSAL_BAD_TYPE, "the pickle's value", "is not a dict");
    rc_pv segments = find(dict, RC_KEY_SEGMENTS), traces = find(dict, RC_KEY_DEVICE_TRACES);
    if (!segments && !traces)
        return bad(w, RC_REFUSAL_MISSING_KEY, "the dict",
                   "has neither 'segments' nor 'device_traces': no memory snapshot");
    RC_TRY(read_segments(w, segments));
    RC_TRY(read_traces(w, traces));
    read_ring(w, find(dict, RC_KEY_RING_MAX), find(dict, RC_KEY_RING_OVERFLOWED));
    read_settings(w, find(dict, RC_KEY_ALLOCATOR_SETTINGS));
    return read_annotations(w, find(dict, RC_KEY_ANNOTATIONS));
}

/* What reading needs besides the file: it ends with the reading. */
typedef struct reading {
    rc_arena *tmp, *mem;
    rc_unpack *from;
    const char *path;
    const rc_snapshot_sink *sink;
} reading;

static rc_code read_from(const reading *r, rc_snapshot_file **out, rc_refusal *refusal,
                         rc_error *err)
{
    rc_pickle *p;
    rc_pv top;
    rc_snapshot_names *names;
    RC_TRY(RC_NEW(r->mem, out, 1, err));
    RC_TRY(RC_NEW(r->mem, &names, 1, err));
    RC_TRY(rc_snapshot_names_make(r->mem, names, err));
    RC_TRY(RC_NEW(r->tmp, &p, 1, err));
    RC_TRY(rc_pickle_make(p, r->from, r->tmp, err));
    p->path = r->path;
    p->sink = r->sink;
    p->names = names;
    walk w = {.p = p, .mem = r->mem, .file = *out};
    rc_code code = rc_pickle_run(p, &top);
    if (code == RC_OK)
        code = read_top(&w, top);
    if (refusal)
        *refusal = p->refusal;
    RC_TRY(code);
    rc_snapshot_file *file = *out;
    file->path = r->path;
    file->names = names;
    file->protocol = p->protocol;
    file->n_unknown_actions = p->n_unknown_actions;
    file->n_file_bytes = rc_pickle_byte(p);
    file->n_trailing_bytes = p->total_bytes >= 0 ? p->total_bytes - file->n_file_bytes : 0;
    return RC_OK;
}

static rc_code no_memory(rc_error *err)
{
    return RC_FAIL(err, RC_E_MEMORY, RC_NOWHERE, "the host is out of memory");
}

rc_code rc_snapshot_read(const char *path, const rc_snapshot_sink *sink, rc_arena *mem,
                         rc_snapshot_file **out, rc_refusal *refusal, rc_error *err)
{
    reading r = {.tmp = rc_arena_open(), .mem = mem, .path = path, .sink = sink};
    if (refusal)
        *refusal = RC_REFUSAL_NONE;
    rc_code code = r.tmp ? rc_unpack_open(path, r.tmp, &r.from, err) : no_memory(err);
    if (code == RC_OK)
        code = read_from(&r, out, refusal, err);
    rc_unpack_close(r.from);
    rc_arena_close(r.tmp);
    return code;
}

rc_code rc_snapshot_read_bytes(const void *bytes, size_t n_bytes, const rc_snapshot_sink *sink,
                               rc_arena *mem, rc_snapshot_file **out, rc_refusal *refusal,
                               rc_error *err)
{
    reading r = {.tmp = rc_arena_open(), .mem = mem, .path = "memory", .sink = sink};
    if (refusal)
        *refusal = RC_REFUSAL_NONE;
    rc_code code =
        r.tmp ? rc_unpack_open_bytes(bytes, n_bytes, r.tmp, &r.from, err) : no_memory(err);
    if (code == RC_OK)
        code = read_from(&r, out, refusal, err);
    rc_unpack_close(r.from);
    rc_arena_close(r.tmp);
    return code;
}

const char *rc_snapshot_refusal_name(rc_refusal refusal)
{
    static const char *const names[RC_REFUSAL_COUNT] = {
        "none",       "EMPTY",    "NOT_PICKLE", "COMPRESSED", "BAD_PROTOCOL", "TRUNCATED",
        "BAD_LENGTH", "BAD_MEMO", "STACK",      "TOO_DEEP",   "CODE",         "BAD_OPCODE",
        "INT_RANGE",  "BAD_UTF8", "BAD_TYPE",   "BAD_VALUE",  "MISSING_KEY",  "LIMIT"};
    return refusal < RC_REFUSAL_COUNT ? names[refusal] : "none";
}

const char *rc_snapshot_action_name(rc_snapshot_action action)
{
    static const char *const names[RC_ACTION_COUNT] = {
        "alloc",       "free_requested", "free_completed", "segment_alloc", "segment_free",
        "segment_map", "segment_unmap",  "snapshot",       "oom",           "user_defined",
        "annotate",    "free",           "other"};
    return action < RC_ACTION_COUNT ? names[action] : "other";
}
