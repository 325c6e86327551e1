/* pickle.h — a pickle machine that can only build data.
 *
 * takes  bytes of protocols 2 to 5, in steps
 * gives  one value, and each event of a snapshot as soon as it is whole
 *
 * The machine knows no opcode that imports, calls or builds an object. It never recurses, never
 * sizes memory by a number it has not checked, and stops at fixed limits of depth, marks, memo and
 * stack. What it recognises on the way (frames, stacks of frames, events) becomes an id or leaves
 * through the sink; only the few other containers are kept as they are.
 */
#ifndef RC_PICKLE_PICKLE_H
#define RC_PICKLE_PICKLE_H

#include "pickle/store.h"
#include "pickle/words.h"
#include "read/unpack.h"

/* A value: a kind in the low 4 bits, above it the number, the id, or the bits of a double. */
typedef uint64_t rc_pv;
typedef enum rc_pv_kind {
    RC_PV_MARK, /* on the stack; in the memo: never stored */
    RC_PV_NONE,
    RC_PV_BOOL,
    RC_PV_INT,   /* fits 60 bits */
    RC_PV_BIG,   /* index into `big`: anything else from -2^63 to 2^64-1 */
    RC_PV_FLOAT, /* its low 4 bits are lost */
    RC_PV_STRING,
    RC_PV_BYTES,  /* opaque */
    RC_PV_OBJECT, /* a container: index into `objects` */
    RC_PV_FRAME,  /* a whole frame dict; identity does not matter */
    RC_PV_STACK,  /* a list of frames that an event has used: it can no longer change */
    RC_PV_PAIR,   /* a tuple of two ints: index into `pairs` */
    RC_PV_BOXED   /* in the memo only: index into `boxed` */
} rc_pv_kind;

static inline rc_pv rc_pv_make(rc_pv_kind kind, uint64_t payload)
{
    return payload << 4 | (uint64_t)kind;
}
static inline rc_pv_kind rc_pv_kind_of(rc_pv v)
{
    return (rc_pv_kind)(v & 15);
}
static inline uint32_t rc_pv_id(rc_pv v)
{
    return (uint32_t)(v >> 4);
}
/* Two's complement: gcc and clang shift signed numbers arithmetically. */
static inline int64_t rc_pv_int(rc_pv v)
{
    return (int64_t)v >> 4;
}

/* A memo entry and an object: a kind in the low 4 bits, a 28-bit id above. */
static inline uint32_t rc_word_make(uint32_t kind, uint32_t id)
{
    return id << 4 | kind;
}

/* What a container has become. */
typedef enum rc_pickle_kind {
    RC_OBJ_DICT_NEW, /* empty */
    RC_OBJ_LIST_NEW, /* empty list or tuple */
    RC_OBJ_DICT,     /* id of a box of key, value, key, value ... */
    RC_OBJ_LIST,     /* id of a box of items; tuples too */
    RC_OBJ_FRAME,    /* frame id */
    RC_OBJ_STACK,    /* stack id; may still grow */
    RC_OBJ_STACK_USED,
    RC_OBJ_EVENT, /* given to the sink, not yet in its list; low bits of its number there */
    RC_OBJ_EVENT_USED, /* in its list: a second time is refused */
    RC_OBJ_TRACE,      /* a list of events: trace number */
    RC_OBJ_TRACE_USED,
    RC_OBJ_DICT_USED, /* as DICT, but part of the result: a second time is refused */
    RC_OBJ_LIST_USED,
    RC_OBJ_BLOCK, /* a block of a segment: index into `blocks` */
    RC_OBJ_BLOCK_USED
} rc_pickle_kind;

enum {
    RC_PICKLE_MARKS = 64,
    RC_PICKLE_DEPTH = 64,
    RC_PICKLE_TRACES = 4096,
    RC_PICKLE_WINDOW = 1 << 18,
    RC_PICKLE_LONG_STRING = 1 << 16,
    RC_PICKLE_STRING_KEPT = 1 << 12
};

typedef struct rc_pickle_box {
    rc_pv *items;
    uint32_t n, n_room, depth;
} rc_pickle_box;

typedef struct rc_pickle_pair {
    int64_t a, b;
} rc_pickle_pair;

/* One list of events: each is given to the sink, later appended to the list; at the end the two
 * counts must agree. */
typedef struct rc_pickle_trace {
    int64_t n_given, n_appended;
    /* The first thing wrong in the list; it matters only when the file uses the list as a trace. */
    rc_refusal refusal;
    const char *wrong;
} rc_pickle_trace;

typedef struct rc_pickle {
    /* of the machine; names lie in the result's */
    rc_arena *mem;
    rc_bump bump;
    rc_unpack *from;
    const char *path;
    /* may be NULL */
    const rc_snapshot_sink *sink;
    rc_error *err;
    rc_refusal refusal;

    /* the window: bytes at .. end are unread, `window_byte` is the file offset of buf[0] */
    /* [n_window] */
    unsigned char *buf;
    size_t n_window;
    const unsigned char *at, *end;
    int64_t window_byte;
    /* -1 unknown */
    int64_t total_bytes;
    bool is_end;

    rc_pv *stack;
    size_t n_stack, n_stack_room;
    /* index of the MARK in the stack */
    size_t marks[RC_PICKLE_MARKS];
    size_t n_marks;

    rc_words memo;
    /* distinct entries: the next MEMOIZE index */
    size_t n_memo;
    rc_words objects;
    size_t n_objects;
    rc_pages boxes, boxed, big, pairs, traces, blocks;

    rc_snapshot_names *names;
    /* scratch: frame ids of a list */
    uint32_t *frames;
    size_t n_frames_room;
    /* of events given to the sink */
    int64_t n_unknown_actions;

    /* the short string last read: an event's "N/A" comes again and again */
    uint64_t last_text;
    uint32_t last_text_id;
    int protocol;
    bool is_stopped;
} rc_pickle;

/* Prepares a machine; the caller opens and closes `from`, and sets path, sink and names. Its
 * memory is taken from `tmp` and needed no longer than the machine. */
RC_MUST_CHECK
rc_code rc_pickle_make(rc_pickle *pickle, rc_unpack *from, rc_arena *tmp, rc_error *err);
/* Runs to STOP; *top is the value. */
RC_MUST_CHECK
rc_code rc_pickle_run(rc_pickle *pickle, rc_pv *top);

/* File offset of the next unread byte. */
static inline int64_t rc_pickle_byte(const rc_pickle *p)
{
    return p->window_byte + (p->at - p->buf);
}
/* Fails with "refused (CLASS): ..., at byte N" and notes the class. */
rc_code rc_pickle_refuse(rc_pickle *p, rc_refusal refusal, const char *fmt, ...)
    RC_PRINTF(3, 4);

/* ---- bytes.c: the window ---- */

RC_MUST_CHECK
rc_code rc_pickle_refill(rc_pickle *p);
/* Brings `n` bytes into the window that are not all in it yet; at most a window. */
RC_MUST_CHECK
rc_code rc_pickle_fetch(rc_pickle *p, size_t n);
/* `n` bytes must lie in the window; at most a window. */
RC_MUST_CHECK
static inline rc_code rc_pickle_need(rc_pickle *p, size_t n)
{
    return (size_t)(p->end - p->at) >= n ? RC_OK : rc_pickle_fetch(p, n);
}
/* A length prefix: these bytes must exist in the file, where its length is known. */
RC_MUST_CHECK
rc_code rc_pickle_check_length(rc_pickle *p, uint64_t n);
RC_MUST_CHECK
rc_code rc_pickle_skip(rc_pickle *p, uint64_t n);

/* ---- scalar.c ---- */

static inline uint64_t rc_little_endian(const unsigned char *at, size_t n)
{
    uint64_t v = 0;
    for (size_t i = 0; i < n; i++)
        v |= (uint64_t)at[i] << 8 * i;
    return v;
}
/* An int of any size up to 9 bytes. */
RC_MUST_CHECK
rc_code rc_pickle_long(rc_pickle *p, const unsigned char *bytes, size_t n, rc_pv *out);
/* A string of `n` bytes at `bytes`, checked. */
RC_MUST_CHECK
rc_code rc_pickle_text(rc_pickle *p, const unsigned char *bytes, size_t n, rc_pv *out);
/* The next `n` bytes of the file as a value on the stack. */
RC_MUST_CHECK
rc_code rc_pickle_push_long(rc_pickle *p, uint64_t n);
RC_MUST_CHECK
rc_code rc_pickle_push_text(rc_pickle *p, uint64_t n);
RC_MUST_CHECK
rc_code rc_pickle_push_bytes(rc_pickle *p, uint64_t n);

/* ---- build.c: containers ---- */

static inline uint32_t rc_pickle_object(const rc_pickle *p, rc_pv v)
{
    return rc_words_get(&p->objects, rc_pv_id(v));
}
static inline rc_pickle_kind rc_object_kind(uint32_t object)
{
    return (rc_pickle_kind)(object & 15);
}
static inline void rc_pickle_set_object(rc_pickle *p, rc_pv v, rc_pickle_kind kind, uint32_t id)
{
    rc_words_set(&p->objects, rc_pv_id(v), rc_word_make((uint32_t)kind, id));
}
static inline rc_pickle_box *rc_pickle_box_of(const rc_pickle *p, uint32_t object)
{
    return rc_pages_at(&p->boxes, object >> 4);
}
static inline rc_pickle_trace *rc_pickle_trace_at(const rc_pickle *p, size_t i)
{
    return rc_pages_at(&p->traces, i);
}
RC_MUST_CHECK
rc_code rc_pickle_new_object(rc_pickle *p, rc_pickle_kind kind, rc_pv *out);
RC_MUST_CHECK
rc_code rc_pickle_append(rc_pickle *p, rc_pv list, const rc_pv *items, size_t n);
/* `n` counts keys and values */
RC_MUST_CHECK
rc_code rc_pickle_set_items(rc_pickle *p, rc_pv dict, const rc_pv *items, size_t n);
/* A tuple or list made at once. */
RC_MUST_CHECK
rc_code rc_pickle_make_list(rc_pickle *p, const rc_pv *items, size_t n, rc_pv *out);
/* The list of the trace that the events now being built will belong to, or false. */
bool rc_pickle_open_trace(const rc_pickle *p, size_t dict_at, rc_pv *list);
/* Makes `list` a trace if it is not one yet; false when there are too many or it cannot be. */
RC_MUST_CHECK
rc_code rc_pickle_start_trace(rc_pickle *p, rc_pv list, uint32_t *trace, bool *is_trace);
/* Counts the event and hands it to the sink. */
RC_MUST_CHECK
rc_code rc_pickle_give_event(rc_pickle *p, uint32_t trace, const rc_snapshot_event *event);

/* ---- event.c: what known dicts mean ---- */

/* What is wrong with a dict; raised only where the dict matters. `text` NULL: nothing is. */
typedef struct rc_problem {
    rc_refusal refusal;
    const char *text;
} rc_problem;

/* An int: false when `v` is none. *is_high: 2^63 or more, *out is then its two's complement. */
bool rc_pickle_int(const rc_pickle *p, rc_pv v, int64_t *out, bool *is_high);
/* A tuple or list of two ints: false when `v` is none. */
bool rc_pickle_int_pair(const rc_pickle *p, rc_pv v, int64_t pair[2]);
/* The stack id of a list of frames, worked out once for each list. errors RC_E_MEMORY */
RC_MUST_CHECK
rc_code rc_pickle_stack_of(rc_pickle *p, rc_pv list, uint32_t *stack, rc_problem *problem);
/* Reads an event from key, value pairs (the last of equal keys wins). errors RC_E_MEMORY */
RC_MUST_CHECK
rc_code rc_pickle_read_event(rc_pickle *p, const rc_pv *items, size_t n,
                             rc_snapshot_event *event, rc_problem *problem);
/* The id of a frame dict. errors RC_E_MEMORY */
RC_MUST_CHECK
rc_code rc_pickle_read_frame(rc_pickle *p, const rc_pv *items, size_t n, uint32_t *id,
                             rc_problem *problem);

/* ---- fast.c ---- */

/* Reads events of the usual form while they last; leaves the rest to the machine. */
RC_MUST_CHECK
rc_code rc_pickle_run_events(rc_pickle *p, rc_pv list);

/* Behind EMPTY_LIST: reads a list of known frames at once and pushes it, if it is one. */
RC_MUST_CHECK
rc_code rc_pickle_run_frames(rc_pickle *p, bool *is_done);

/* Behind EMPTY_DICT: reads a block of a segment or a frame at once and pushes it, if it is one. */
RC_MUST_CHECK
rc_code rc_pickle_run_dict(rc_pickle *p, bool *is_done);

/* ---- used by pickle.c and fast.c ---- */
RC_MUST_CHECK
rc_code rc_pickle_push_slow(rc_pickle *p, rc_pv v);
static inline rc_code rc_pickle_push(rc_pickle *p, rc_pv v)
{
    if (p->n_stack == p->n_stack_room)
        return rc_pickle_push_slow(p, v);
    p->stack[p->n_stack++] = v;
    return RC_OK;
}
/* Stores a memo word; MEMOIZE passes p->n_memo. The index was checked. */
RC_MUST_CHECK
rc_code rc_pickle_put_word(rc_pickle *p, size_t i, uint32_t word);

#endif
