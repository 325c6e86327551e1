/* build.c — containers: appending, setting items, and recognising what is whole.
 *
 * takes  a container on the machine's stack and the values that go into it
 * gives  boxes of values, or an id where the container is a frame, a stack of frames or an event
 *
 * An event leaves through the sink as soon as its dict is closed, when it lies above the list it is
 * about to be appended to: [list MARK event event ... dict]. That is how every writer lays traces
 * out, and it keeps memory from growing with the trace. The list counts what was given and what
 * was really appended, so a file that plays tricks in between is refused.
 */
#include "pickle/pickle.h"

#include <string.h>

enum { ID_MASK = (1 << 28) - 1 };

rc_code rc_pickle_new_object(rc_pickle *p, rc_pickle_kind kind, rc_pv *out)
{
    if (p->n_objects > ID_MASK)
        return rc_pickle_refuse(p, RC_REFUSAL_LIMIT, "more than %d containers", ID_MASK);
    RC_TRY(rc_words_reach(&p->objects, p->n_objects + 1, p->err));
    *out = rc_pv_make(RC_PV_OBJECT, p->n_objects++);
    rc_pickle_set_object(p, *out, kind, 0);
    return RC_OK;
}

static uint32_t object_depth(const rc_pickle *p, uint32_t object)
{
    static const unsigned char depths[] = {
        [RC_OBJ_FRAME] = 1,      [RC_OBJ_STACK] = 2,      [RC_OBJ_STACK_USED] = 2,
        [RC_OBJ_EVENT] = 3,      [RC_OBJ_EVENT_USED] = 3, [RC_OBJ_BLOCK] = 3,
        [RC_OBJ_BLOCK_USED] = 3, [RC_OBJ_TRACE] = 4,      [RC_OBJ_TRACE_USED] = 4};
    rc_pickle_kind kind = rc_object_kind(object);
    if (kind == RC_OBJ_DICT || kind == RC_OBJ_LIST || kind == RC_OBJ_DICT_USED ||
        kind == RC_OBJ_LIST_USED)
        return rc_pickle_box_of(p, object)->depth;
    return depths[kind];
}

/* Levels of containers inside a value. */
static uint32_t depth_of(const rc_pickle *p, rc_pv v)
{
    rc_pv_kind kind = rc_pv_kind_of(v);
    if (kind == RC_PV_OBJECT)
        return object_depth(p, rc_pickle_object(p, v));
    return kind == RC_PV_STACK ? 2 : kind == RC_PV_FRAME || kind == RC_PV_PAIR ? 1 : 0;
}

/* Depth of a container that holds these: counted when they are put in, so a cycle ends here. */
static rc_code depth_with(rc_pickle *p, const rc_pv *items, size_t n, uint32_t *depth)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t d = depth_of(p, items[i]) + 1;
        *depth = d > *depth ? d : *depth;
    }
    if (*depth > RC_PICKLE_DEPTH)
        return rc_pickle_refuse(p, RC_REFUSAL_TOO_DEEP, "containers nested more than %d deep",
                                RC_PICKLE_DEPTH);
    return RC_OK;
}

static rc_code box_add(rc_pickle *p, rc_pickle_box *box, const rc_pv *items, size_t n)
{
    RC_TRY(depth_with(p, items, n, &box->depth));
    if (n > ((uint32_t)1 << 30) - box->n)
        return rc_pickle_refuse(p, RC_REFUSAL_LIMIT, "a container of more than 2^30 values");
    if (box->n + n > box->n_room) {
        size_t room = box->n_room ? (size_t)box->n_room * 2 : n;
        while (room < box->n + n)
            room *= 2;
        void *larger;
        RC_TRY(rc_bump_take(&p->bump, room * sizeof *items, &larger, p->err));
        if (box->n)
            memcpy(larger, box->items, box->n * sizeof *items);
        box->items = larger;
        box->n_room = (uint32_t)room;
    }
    memcpy(box->items + box->n, items, n * sizeof *items);
    box->n += (uint32_t)n;
    return RC_OK;
}

/* Turns an empty container into a box. */
static rc_code open_box(rc_pickle *p, rc_pv v, rc_pickle_kind kind, rc_pickle_box **box)
{
    void *elem;
    RC_TRY(rc_pages_add(&p->boxes, &elem, p->err));
    rc_pickle_set_object(p, v, kind, (uint32_t)p->boxes.n - 1);
    *box = elem;
    return RC_OK;
}

static rc_code not_a(rc_pickle *p, const char *what)
{
    return rc_pickle_refuse(p, RC_REFUSAL_STACK, "the target of an opcode is no %s", what);
}

static rc_code changes_late(rc_pickle *p, const char *what)
{
    return rc_pickle_refuse(p, RC_REFUSAL_LIMIT, "%s changes after it was complete", what);
}

/* ---- lists ---- */

static bool frame_of(const rc_pickle *p, rc_pv v, uint32_t *frame)
{
    uint32_t object = rc_pv_kind_of(v) == RC_PV_OBJECT ? rc_pickle_object(p, v) : 0;
    if (rc_pv_kind_of(v) == RC_PV_FRAME)
        *frame = rc_pv_id(v);
    else if (object && rc_object_kind(object) == RC_OBJ_FRAME)
        *frame = object >> 4;
    else
        return false;
    return true;
}

static rc_code reserve_frames(rc_pickle *p, size_t n)
{
    if (n <= p->n_frames_room)
        return RC_OK;
    size_t room = p->n_frames_room ? p->n_frames_room * 2 : 1024;
    while (room < n)
        room *= 2;
    RC_TRY(RC_NEW(p->mem, &p->frames, room, p->err));
    p->n_frames_room = room;
    return RC_OK;
}

/* The stack of these frames; *stack is 0 when one of them is something else. */
static rc_code stack_of_items(rc_pickle *p, const rc_pv *items, size_t n, uint32_t *stack)
{
    *stack = 0;
    uint32_t hash = p->names->seed, frame;
    RC_TRY(reserve_frames(p, n));
    for (size_t i = 0; i < n; i++) {
        if (!frame_of(p, items[i], &frame))
            return RC_OK;
        p->frames[i] = frame;
        hash = rc_stack_hash(hash, frame);
    }
    return rc_snapshot_names_stack(p->names, p->frames, n, hash, stack, p->err);
}

static rc_code fill_new_list(rc_pickle *p, rc_pv list, const rc_pv *items, size_t n)
{
    uint32_t stack = 0, frame;
    if (n > 0 && frame_of(p, items[0], &frame))
        RC_TRY(stack_of_items(p, items, n, &stack));
    if (stack) {
        rc_pickle_set_object(p, list, RC_OBJ_STACK, stack);
        return RC_OK;
    }
    rc_pickle_box *box;
    RC_TRY(open_box(p, list, RC_OBJ_LIST, &box));
    return box_add(p, box, items, n);
}

/* A list of frames that goes on: from here a box, and a stack again when it is used. */
static rc_code unstack(rc_pickle *p, rc_pv list, uint32_t stack, rc_pickle_box **box)
{
    RC_TRY(open_box(p, list, RC_OBJ_LIST, box));
    rc_snapshot_stack s = rc_snapshot_stack_at(p->names, stack);
    for (size_t i = 0; i < s.n_frames; i++) {
        rc_pv frame = rc_pv_make(RC_PV_FRAME, s.frame[i]);
        RC_TRY(box_add(p, *box, &frame, 1));
    }
    return RC_OK;
}

static void note_wrong(rc_pickle_trace *trace, rc_refusal refusal, const char *text)
{
    if (!trace->wrong) {
        trace->wrong = text;
        trace->refusal = refusal;
    }
}

/* An event that was not recognised when its dict closed: built in several steps, or wrong. */
static rc_code append_late_event(rc_pickle *p, uint32_t i_trace, rc_pv v)
{
    rc_pickle_trace *trace = rc_pickle_trace_at(p, i_trace);
    rc_snapshot_event event;
    rc_problem problem = {0};
    if (trace->wrong)
        return RC_OK;
    const rc_pickle_box *box = rc_pickle_box_of(p, rc_pickle_object(p, v));
    RC_TRY(rc_pickle_read_event(p, box->items, box->n, &event, &problem));
    if (problem.text || trace->n_given != trace->n_appended) {
        note_wrong(trace, problem.text ? problem.refusal : RC_REFUSAL_LIMIT,
                   problem.text ? problem.text : "events out of order");
        return RC_OK;
    }
    trace->n_appended++;
    rc_pickle_set_object(p, v, RC_OBJ_EVENT_USED, 0);
    return rc_pickle_give_event(p, i_trace, &event);
}

static rc_code append_events(rc_pickle *p, uint32_t i_trace, const rc_pv *items, size_t n)
{
    rc_pickle_trace *trace = rc_pickle_trace_at(p, i_trace);
    for (size_t i = 0; i < n; i++) {
        bool is_object = rc_pv_kind_of(items[i]) == RC_PV_OBJECT;
        uint32_t object = is_object ? rc_pickle_object(p, items[i]) : 0;
        rc_pickle_kind kind = is_object ? rc_object_kind(object) : RC_OBJ_LIST_NEW;
        if (kind == RC_OBJ_EVENT && object >> 4 == (uint32_t)(trace->n_appended & ID_MASK)) {
            trace->n_appended++;
            rc_pickle_set_object(p, items[i], RC_OBJ_EVENT_USED, 0);
        } else if (kind == RC_OBJ_DICT) {
            RC_TRY(append_late_event(p, i_trace, items[i]));
        } else if (kind == RC_OBJ_EVENT || kind == RC_OBJ_EVENT_USED) {
            note_wrong(trace, RC_REFUSAL_LIMIT, "an event is referenced more than once");
        } else if (kind == RC_OBJ_DICT_NEW) {
            note_wrong(trace, RC_REFUSAL_MISSING_KEY, "an event has no 'action'");
        } else {
            note_wrong(trace, RC_REFUSAL_BAD_TYPE, "an event is not a dict");
        }
    }
    return RC_OK;
}

rc_code rc_pickle_append(rc_pickle *p, rc_pv list, const rc_pv *items, size_t n)
{
    if (rc_pv_kind_of(list) == RC_PV_STACK)
        return changes_late(p, "a list of frames");
    if (rc_pv_kind_of(list) != RC_PV_OBJECT)
        return not_a(p, "list");
    uint32_t object = rc_pickle_object(p, list);
    rc_pickle_kind kind = rc_object_kind(object);
    rc_pickle_box *box;
    if (kind == RC_OBJ_LIST_NEW)
        return n ? fill_new_list(p, list, items, n) : RC_OK;
    if (kind == RC_OBJ_LIST)
        return box_add(p, rc_pickle_box_of(p, object), items, n);
    if (kind == RC_OBJ_TRACE)
        return append_events(p, object >> 4, items, n);
    if (kind == RC_OBJ_STACK) {
        RC_TRY(unstack(p, list, object >> 4, &box));
        return box_add(p, box, items, n);
    }
    if (kind == RC_OBJ_STACK_USED || kind == RC_OBJ_TRACE_USED || kind == RC_OBJ_LIST_USED)
        return changes_late(p, "a list");
    return not_a(p, "list");
}

rc_code rc_pickle_make_list(rc_pickle *p, const rc_pv *items, size_t n, rc_pv *out)
{
    int64_t a, b;
    bool is_high_a, is_high_b;
    if (n == 2 && rc_pickle_int(p, items[0], &a, &is_high_a) &&
        rc_pickle_int(p, items[1], &b, &is_high_b)) {
        void *elem;
        RC_TRY(rc_pages_add(&p->pairs, &elem, p->err));
        *(rc_pickle_pair *)elem = (rc_pickle_pair){a, b};
        if (p->pairs.n > ID_MASK)
            return rc_pickle_refuse(p, RC_REFUSAL_LIMIT, "more than %d tuples", ID_MASK);
        *out = rc_pv_make(RC_PV_PAIR, p->pairs.n - 1);
        return RC_OK;
    }
    RC_TRY(rc_pickle_new_object(p, RC_OBJ_LIST_NEW, out));
    return rc_pickle_append(p, *out, items, n);
}

/* ---- traces ---- */

bool rc_pickle_open_trace(const rc_pickle *p, size_t dict_at, rc_pv *list)
{
    if (p->n_marks == 0)
        return false;
    size_t mark = p->marks[p->n_marks - 1];
    if (mark == 0 || rc_pv_kind_of(p->stack[mark - 1]) != RC_PV_OBJECT)
        return false;
    *list = p->stack[mark - 1];
    uint32_t object = rc_pickle_object(p, *list);
    if (rc_object_kind(object) == RC_OBJ_LIST_NEW)
        return dict_at == mark + 1;
    if (rc_object_kind(object) != RC_OBJ_TRACE)
        return false;
    const rc_pickle_trace *trace = rc_pickle_trace_at(p, object >> 4);
    return trace->n_given - trace->n_appended == (int64_t)(dict_at - mark - 1) ||
           /* the dict itself was given already */
           trace->n_given - trace->n_appended == (int64_t)(dict_at - mark);
}

rc_code rc_pickle_start_trace(rc_pickle *p, rc_pv list, uint32_t *trace, bool *is_trace)
{
    uint32_t object = rc_pickle_object(p, list);
    *trace = object >> 4;
    *is_trace = rc_object_kind(object) == RC_OBJ_TRACE;
    if (*is_trace || p->traces.n == RC_PICKLE_TRACES)
        return RC_OK;
    void *elem;
    RC_TRY(rc_pages_add(&p->traces, &elem, p->err));
    *trace = (uint32_t)p->traces.n - 1;
    *is_trace = true;
    rc_pickle_set_object(p, list, RC_OBJ_TRACE, *trace);
    return RC_OK;
}

rc_code rc_pickle_give_event(rc_pickle *p, uint32_t trace, const rc_snapshot_event *event)
{
    rc_pickle_trace_at(p, trace)->n_given++;
    p->n_unknown_actions += event->action == RC_ACTION_OTHER;
    return p->sink ? p->sink->event(p->sink->state, p->names, trace, event, p->err) : RC_OK;
}

/* ---- dicts ---- */

static rc_code check_keys(rc_pickle *p, const rc_pv *items, size_t n, uint64_t *known)
{
    *known = 0;
    for (size_t i = 0; i < n; i += 2) {
        rc_pv_kind kind = rc_pv_kind_of(items[i]);
        if (kind == RC_PV_STRING && rc_pv_id(items[i]) < 64)
            *known |= (uint64_t)1 << rc_pv_id(items[i]);
        if (kind >= RC_PV_BYTES)
            return rc_pickle_refuse(p, RC_REFUSAL_BAD_TYPE, "a dict key that is no scalar");
    }
    return RC_OK;
}

/* Tries to see a frame or an event in a whole dict. */
static rc_code recognise(rc_pickle *p, rc_pv dict, const rc_pv *items, size_t n, uint64_t known)
{
    const uint64_t frame_keys = (uint64_t)1 << RC_KEY_NAME | (uint64_t)1 << RC_KEY_FILENAME |
                                (uint64_t)1 << RC_KEY_LINE;
    rc_problem problem = {0};
    rc_pv list;
    if ((known & frame_keys) == frame_keys) {
        uint32_t frame;
        RC_TRY(rc_pickle_read_frame(p, items, n, &frame, &problem));
        if (!problem.text)
            rc_pickle_set_object(p, dict, RC_OBJ_FRAME, frame);
    } else if ((known >> RC_KEY_ACTION & 1) && p->n_stack > 0 &&
               p->stack[p->n_stack - 1] == dict &&
               rc_pickle_open_trace(p, p->n_stack - 1, &list)) {
        rc_snapshot_event event;
        RC_TRY(rc_pickle_read_event(p, items, n, &event, &problem));
        uint32_t trace;
        bool is_trace;
        if (problem.text)
            return RC_OK;
        RC_TRY(rc_pickle_start_trace(p, list, &trace, &is_trace));
        if (!is_trace)
            return RC_OK;
        rc_pickle_set_object(p, dict, RC_OBJ_EVENT,
                             (uint32_t)(rc_pickle_trace_at(p, trace)->n_given & ID_MASK));
        return rc_pickle_give_event(p, trace, &event);
    }
    return RC_OK;
}

rc_code rc_pickle_set_items(rc_pickle *p, rc_pv dict, const rc_pv *items, size_t n)
{
    if (rc_pv_kind_of(dict) == RC_PV_FRAME)
        return changes_late(p, "a frame");
    if (rc_pv_kind_of(dict) != RC_PV_OBJECT)
        return not_a(p, "dict");
    uint64_t known;
    uint32_t object = rc_pickle_object(p, dict);
    rc_pickle_kind kind = rc_object_kind(object);
    rc_pickle_box *box;
    if (kind == RC_OBJ_FRAME || kind == RC_OBJ_EVENT || kind == RC_OBJ_EVENT_USED ||
        kind == RC_OBJ_BLOCK || kind == RC_OBJ_BLOCK_USED)
        return changes_late(p, "a dict");
    if (kind != RC_OBJ_DICT_NEW && kind != RC_OBJ_DICT)
        return not_a(p, "dict");
    RC_TRY(check_keys(p, items, n, &known));
    if (kind == RC_OBJ_DICT)
        return box_add(p, rc_pickle_box_of(p, object), items, n);
    if (n == 0)
        return RC_OK;
    uint32_t depth = 0;
    RC_TRY(depth_with(p, items, n, &depth));
    RC_TRY(recognise(p, dict, items, n, known));
    if (rc_object_kind(rc_pickle_object(p, dict)) != RC_OBJ_DICT_NEW)
        return RC_OK;
    RC_TRY(open_box(p, dict, RC_OBJ_DICT, &box));
    return box_add(p, box, items, n);
}
