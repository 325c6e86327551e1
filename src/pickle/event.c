/* event.c — what the dicts of a snapshot mean: frames, stacks of frames, events.
 *
 * source: torch/csrc/cuda/memory_snapshot.cpp, torch/csrc/cuda/Module.cpp, torch/cuda/memory.py
 */
#include "pickle/pickle.h"

#include <string.h>

static const int64_t MOST_SIZE_BYTES = (int64_t)1 << 48; /* no allocation is 256 TiB */

bool rc_pickle_int(const rc_pickle *p, rc_pv v, int64_t *out, bool *is_high)
{
    *is_high = false;
    *out = 0;
    if (rc_pv_kind_of(v) == RC_PV_INT) {
        *out = rc_pv_int(v);
        return true;
    }
    if (rc_pv_kind_of(v) != RC_PV_BIG)
        return false;
    *is_high = v >> 4 & 1;
    memcpy(out, rc_pages_at(&p->big, (size_t)(v >> 5)), sizeof *out);
    return true;
}

bool rc_pickle_int_pair(const rc_pickle *p, rc_pv v, int64_t pair[2])
{
    bool is_high;
    if (rc_pv_kind_of(v) == RC_PV_PAIR) {
        const rc_pickle_pair *at = rc_pages_at(&p->pairs, rc_pv_id(v));
        pair[0] = at->a;
        pair[1] = at->b;
        return true;
    }
    uint32_t object = rc_pv_kind_of(v) == RC_PV_OBJECT ? rc_pickle_object(p, v) : 0;
    if (rc_object_kind(object) != RC_OBJ_LIST)
        return false;
    const rc_pickle_box *box = rc_pickle_box_of(p, object);
    return box->n == 2 && rc_pickle_int(p, box->items[0], &pair[0], &is_high) &&
           rc_pickle_int(p, box->items[1], &pair[1], &is_high);
}

static void say(rc_problem *problem, rc_refusal refusal, const char *text)
{
    if (!problem->text)
        *problem = (rc_problem){refusal, text};
}

/* Values at the known keys; a key that is absent leaves 0, which is no value's bits. */
static void find_keys(const rc_pv *items, size_t n, uint32_t n_keys, rc_pv *at)
{
    for (size_t i = 0; i + 1 < n; i += 2)
        if (rc_pv_kind_of(items[i]) == RC_PV_STRING && rc_pv_id(items[i]) < n_keys)
            at[rc_pv_id(items[i])] = items[i + 1];
}

/* ---- frames ---- */

rc_code rc_pickle_read_frame(rc_pickle *p, const rc_pv *items, size_t n, uint32_t *id,
                             rc_problem *problem)
{
    rc_pv at[RC_KEY_LINE + 1] = {0};
    find_keys(items, n, RC_KEY_LINE + 1, at);
    *id = 0;
    rc_snapshot_frame frame = {0};
    bool is_high;
    if (!at[RC_KEY_NAME] || !at[RC_KEY_FILENAME] || !at[RC_KEY_LINE])
        say(problem, RC_REFUSAL_MISSING_KEY, "a frame lacks 'name', 'filename' or 'line'");
    else if (rc_pv_kind_of(at[RC_KEY_NAME]) != RC_PV_STRING ||
             rc_pv_kind_of(at[RC_KEY_FILENAME]) != RC_PV_STRING ||
             !rc_pickle_int(p, at[RC_KEY_LINE], &frame.line, &is_high))
        say(problem, RC_REFUSAL_BAD_TYPE,
            "a frame's name, filename or line has the wrong type");
    else {
        frame.name = rc_pv_id(at[RC_KEY_NAME]);
        frame.filename = rc_pv_id(at[RC_KEY_FILENAME]);
        return rc_snapshot_names_frame(p->names, &frame, id, p->err);
    }
    return RC_OK;
}

/* A frame in a list: already an id, or a dict that was built in several steps. */
static rc_code frame_at(rc_pickle *p, rc_pv v, uint32_t *id, rc_problem *problem)
{
    *id = 0;
    if (rc_pv_kind_of(v) == RC_PV_FRAME) {
        *id = rc_pv_id(v);
        return RC_OK;
    }
    uint32_t object = rc_pv_kind_of(v) == RC_PV_OBJECT ? rc_pickle_object(p, v)
                                                       : rc_word_make(RC_OBJ_LIST_NEW, 0);
    if (rc_object_kind(object) == RC_OBJ_FRAME) {
        *id = object >> 4;
    } else if (rc_object_kind(object) == RC_OBJ_DICT) {
        const rc_pickle_box *box = rc_pickle_box_of(p, object);
        RC_TRY(rc_pickle_read_frame(p, box->items, box->n, id, problem));
        if (*id)
            rc_pickle_set_object(p, v, RC_OBJ_FRAME, *id);
    } else if (rc_object_kind(object) == RC_OBJ_DICT_NEW) {
        say(problem, RC_REFUSAL_MISSING_KEY, "a frame lacks 'name', 'filename' or 'line'");
    } else {
        say(problem, RC_REFUSAL_BAD_TYPE, "'frames' holds something that is no frame");
    }
    return RC_OK;
}

static rc_code stack_of_box(rc_pickle *p, const rc_pickle_box *box, uint32_t *stack,
                            rc_problem *problem)
{
    uint32_t *ids;
    RC_TRY(RC_NEW(p->mem, &ids, box->n, p->err));
    uint32_t hash = p->names->seed;
    for (uint32_t i = 0; i < box->n; i++) {
        RC_TRY(frame_at(p, box->items[i], &ids[i], problem));
        if (problem->text)
            return RC_OK;
        hash = rc_stack_hash(hash, ids[i]);
    }
    return rc_snapshot_names_stack(p->names, ids, box->n, hash, stack, p->err);
}

rc_code rc_pickle_stack_of(rc_pickle *p, rc_pv list, uint32_t *stack, rc_problem *problem)
{
    *stack = RC_STACK_ABSENT;
    if (rc_pv_kind_of(list) == RC_PV_STACK) {
        *stack = rc_pv_id(list);
        return RC_OK;
    }
    uint32_t object = rc_pv_kind_of(list) == RC_PV_OBJECT ? rc_pickle_object(p, list) : 0;
    rc_pickle_kind kind = rc_object_kind(object);
    if (kind == RC_OBJ_LIST_NEW) {
        *stack = RC_STACK_EMPTY;
        return RC_OK;
    }
    if (kind == RC_OBJ_STACK || kind == RC_OBJ_STACK_USED) {
        *stack = object >> 4;
    } else if (kind == RC_OBJ_LIST) {
        RC_TRY(stack_of_box(p, rc_pickle_box_of(p, object), stack, problem));
    } else {
        say(problem, RC_REFUSAL_BAD_TYPE, "'frames' is not a list of frames");
        return RC_OK;
    }
    if (problem->text) /* found wrong once: not looked through for every event again */
        rc_pickle_set_object(p, list, RC_OBJ_LIST_USED, object >> 4);
    else
        rc_pickle_set_object(p, list, RC_OBJ_STACK_USED, *stack);
    return RC_OK;
}

/* ---- events ---- */

static rc_snapshot_action action_of(uint32_t word)
{
    return word >= RC_KEY_ALLOC && word <= RC_KEY_FREE
               ? (rc_snapshot_action)(word - RC_KEY_ALLOC)
               : RC_ACTION_OTHER;
}

/* Which of size and address an action cannot do without. */
static bool needs_size(rc_snapshot_action action)
{
    return action <= RC_ACTION_FREE_COMPLETED;
}
static bool needs_addr(rc_snapshot_action action)
{
    return action <= RC_ACTION_SEGMENT_UNMAP;
}

/* A number that must be at least 0; absent is fine unless it is needed. */
static void read_number(const rc_pickle *p, rc_pv v, bool is_needed, const char *const text[3],
                        int64_t *out, rc_problem *problem)
{
    bool is_high = false;
    *out = 0;
    if (!v) {
        if (is_needed)
            say(problem, RC_REFUSAL_MISSING_KEY, text[0]);
    } else if (!rc_pickle_int(p, v, out, &is_high)) {
        say(problem, RC_REFUSAL_BAD_TYPE, text[1]);
    } else if (*out < 0 && !is_high) {
        say(problem, RC_REFUSAL_BAD_VALUE, text[2]);
    }
}

static const char *const size_text[] = {"an event has no 'size'", "an event's size is no int",
                                        "an event's size is negative"};
static const char *const addr_text[] = {"an event has no 'addr'", "an event's addr is no int",
                                        "an event's addr is negative"};
static const char *const free_text[] = {"an oom event has no 'device_free'",
                                        "an event's device_free is no int",
                                        "an event's device_free is negative"};

static uint32_t string_or_none(rc_pv v)
{
    return rc_pv_kind_of(v) == RC_PV_STRING ? rc_pv_id(v) : 0;
}

static void read_numbers(const rc_pickle *p, const rc_pv *at, rc_snapshot_event *e,
                         rc_problem *problem)
{
    int64_t addr = 0;
    bool is_high;
    read_number(p, at[RC_KEY_SIZE], needs_size(e->action), size_text, &e->size_bytes, problem);
    if (e->size_bytes > MOST_SIZE_BYTES || e->size_bytes < 0)
        say(problem, RC_REFUSAL_BAD_VALUE, "an event's size is not between 0 and 2^48");
    if (e->action == RC_ACTION_OOM)
        read_number(p, at[RC_KEY_DEVICE_FREE], true, free_text, &e->device_free_bytes, problem);
    if (needs_addr(e->action) || (e->action == RC_ACTION_FREE && at[RC_KEY_ADDR]))
        read_number(p, at[RC_KEY_ADDR], needs_addr(e->action), addr_text, &addr, problem);
    e->addr = (uint64_t)addr;
    if (at[RC_KEY_STREAM] && !rc_pickle_int(p, at[RC_KEY_STREAM], &e->stream, &is_high))
        say(problem, RC_REFUSAL_BAD_TYPE, "an event's stream is no int");
    e->has_time = at[RC_KEY_TIME_US] != 0;
    if (e->has_time && !rc_pickle_int(p, at[RC_KEY_TIME_US], &e->time_us, &is_high))
        say(problem, RC_REFUSAL_BAD_TYPE, "an event's time_us is no int");
}

rc_code rc_pickle_read_event(rc_pickle *p, const rc_pv *items, size_t n, rc_snapshot_event *e,
                             rc_problem *problem)
{
    rc_pv at[RC_KEY_FRAMES + 1] = {0};
    find_keys(items, n, RC_KEY_FRAMES + 1, at);
    *e = (rc_snapshot_event){0};
    if (!at[RC_KEY_ACTION])
        say(problem, RC_REFUSAL_MISSING_KEY, "an event has no 'action'");
    else if (rc_pv_kind_of(at[RC_KEY_ACTION]) != RC_PV_STRING)
        say(problem, RC_REFUSAL_BAD_TYPE, "an event's action is no string");
    e->action_name = string_or_none(at[RC_KEY_ACTION]);
    e->action = action_of(e->action_name);
    read_numbers(p, at, e, problem);
    /* a merged free without an address frees nothing */
    if (e->action == RC_ACTION_FREE && !at[RC_KEY_ADDR])
        e->action = RC_ACTION_OTHER;
    e->compile_context = string_or_none(at[RC_KEY_COMPILE_CONTEXT]);
    e->user_metadata = string_or_none(at[RC_KEY_USER_METADATA]);
    e->has_pool = rc_pickle_int_pair(p, at[RC_KEY_POOL_ID], e->pool_id);
    if (at[RC_KEY_FRAMES] && !problem->text)
        RC_TRY(rc_pickle_stack_of(p, at[RC_KEY_FRAMES], &e->stack, problem));
    return RC_OK;
}
