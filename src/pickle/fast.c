/* fast.c — events, blocks and frames of the usual form, read straight from the bytes.
 *
 * takes  the machine standing behind an event of a trace
 * gives  further events to the sink, as long as each has the form every writer uses:
 *        } [put] ( key value key value ... u [put]   with keys and known strings from the memo
 *
 * A million events are 28 million opcodes; run one by one they cost five times as much. An event is
 * read into a draft first. Whatever is unusual (an unknown key, a new frame, the end of the window)
 * drops the draft, and the machine, which has seen nothing of it, reads that event opcode by opcode.
 */
#include "pickle/pickle.h"

#include <string.h>

typedef const unsigned char *cursor; /* NULL: not the usual form */

enum { GUARD_BYTES = 32, MOST_PUTS = 8, MOST_OBJECTS = 2 };

typedef struct draft {
    rc_snapshot_event event;
    uint32_t keys;            /* bit per key seen */
    cursor last;              /* an opcode may begin up to here: GUARD_BYTES follow */
    size_t put_at[MOST_PUTS]; /* SIZE_MAX: the next free index */
    uint32_t put_word[MOST_PUTS];
    size_t n_puts;
    uint32_t object[MOST_OBJECTS]; /* words of the containers made: the event, its frame list */
    size_t n_objects;
    rc_code code; /* a failure that reading again would not undo */
} draft;

static inline uint32_t load4(cursor at)
{
    uint32_t v;
    memcpy(&v, at, 4);
    return v;
}

static inline uint64_t load8(cursor at)
{
    uint64_t v;
    memcpy(&v, at, 8);
    return v;
}

/* An optional put of `word`. */
static inline cursor read_put(draft *d, cursor at, uint32_t word)
{
    size_t i = SIZE_MAX;
    if (*at == 0x94) {
        at += 1;
    } else if (*at == 'q') {
        i = at[1];
        at += 2;
    } else if (*at == 'r') {
        i = load4(at + 1);
        at += 5;
    } else {
        return at;
    }
    if (d->n_puts == MOST_PUTS)
        return NULL;
    d->put_at[d->n_puts] = i;
    d->put_word[d->n_puts++] = word;
    return at;
}

/* BINGET is 'h' and a byte, LONG_BINGET 'j' and four: no branch on which. */
static inline bool is_get(cursor at)
{
    return (*at | 2) == 'j';
}
static inline cursor read_get(const rc_pickle *p, cursor at, size_t *i, uint32_t *word)
{
    unsigned wide = *at & 2;
    uint32_t mask = wide ? 0xFFFFFFFFu : 0xFF;
    *i = load4(at + 1) & mask;
    *word = *i >> RC_WORDS_PAGE_BITS < p->memo.n_pages ? rc_words_get(&p->memo, *i) : 0;
    return at + 2 + wide + (wide >> 1);
}

static inline cursor read_int(cursor at, int64_t *v)
{
    switch (*at) {
    case 'K':
        *v = at[1];
        return at + 2;
    case 'M':
        *v = (int64_t)(load4(at + 1) & 0xFFFF);
        return at + 3;
    case 'J':
        *v = (int32_t)load4(at + 1);
        return at + 5;
    case 0x8A: {
        unsigned n = at[1];
        if (n == 0 || n > 8)
            return NULL;
        unsigned shift = 64 - 8 * n;
        *v = (int64_t)(load8(at + 2) << shift) >> shift;
        return at + 2 + n;
    }
    default:
        return NULL;
    }
}

static cursor read_new_text(rc_pickle *p, draft *d, cursor at, uint32_t *id)
{
    size_t n = *at == 'X' ? load4(at + 1) : at[1];
    at += *at == 'X' ? 5 : 2;
    if (at > d->last || n > (size_t)(d->last - at))
        return NULL;
    uint64_t key = 0;
    if (n <= 7 && n > 0)
        key = (load8(at) & (~(uint64_t)0 >> (64 - 8 * n))) | (uint64_t)n << 56;
    if (key && key == p->last_text) {
        *id = p->last_text_id;
    } else {
        rc_pv v;
        d->code = rc_pickle_text(p, at, n, &v);
        if (d->code != RC_OK)
            return NULL;
        *id = rc_pv_id(v);
        p->last_text = key;
        p->last_text_id = *id;
    }
    return read_put(d, at + n, rc_word_make(RC_PV_STRING, *id));
}

static inline cursor read_text(rc_pickle *p, draft *d, cursor at, uint32_t *id)
{
    if (is_get(at)) {
        size_t i;
        uint32_t word;
        at = read_get(p, at, &i, &word);
        *id = word >> 4;
        return (word & 15) == RC_PV_STRING ? at : NULL;
    }
    return *at == 0x8C || *at == 'X' ? read_new_text(p, d, at, id) : NULL;
}

/* (a, b) of two small ints; a tuple in the memo is never asked for again by a writer. */
static cursor read_pair(rc_pickle *p, draft *d, cursor at)
{
    int64_t pair[2];
    if (!(at = read_int(at, &pair[0])) || !(at = read_int(at, &pair[1])) || *at != 0x86)
        return NULL;
    const rc_pickle_pair *last = p->pairs.n ? rc_pages_at(&p->pairs, p->pairs.n - 1) : NULL;
    if (!last || last->a != pair[0] || last->b != pair[1]) {
        void *elem;
        d->code = rc_pages_add(&p->pairs, &elem, p->err);
        if (d->code != RC_OK)
            return NULL;
        *(rc_pickle_pair *)elem = (rc_pickle_pair){pair[0], pair[1]};
    }
    d->event.pool_id[0] = pair[0];
    d->event.pool_id[1] = pair[1];
    d->event.has_pool = true;
    return read_put(d, at + 1, rc_word_make(RC_PV_PAIR, (uint32_t)(p->pairs.n - 1)));
}

/* Frame ids of gets, up to the byte that is none. */
static inline cursor read_frame_ids(rc_pickle *p, const draft *d, cursor at, size_t *n,
                                    uint32_t *hash)
{
    while (is_get(at)) {
        size_t i;
        uint32_t word;
        if (at > d->last || *n == p->n_frames_room)
            return NULL;
        at = read_get(p, at, &i, &word);
        if ((word & 15) != RC_PV_FRAME) {
            uint32_t object =
                (word & 15) == RC_PV_OBJECT ? rc_words_get(&p->objects, word >> 4) : 0;
            if (rc_object_kind(object) != RC_OBJ_FRAME)
                return NULL;
            word = rc_word_make(RC_PV_FRAME, object >> 4);
            rc_words_set(&p->memo, i, word); /* one step shorter the next time */
        }
        p->frames[(*n)++] = word >> 4;
        *hash = rc_stack_hash(*hash, word >> 4);
    }
    return at;
}

static cursor read_new_frames(rc_pickle *p, draft *d, cursor at)
{
    if (d->n_objects == MOST_OBJECTS)
        return NULL;
    uint32_t *object = &d->object[d->n_objects];
    at = read_put(d, at + 1,
                  rc_word_make(RC_PV_OBJECT, (uint32_t)(p->n_objects + d->n_objects)));
    d->n_objects++;
    if (!at)
        return NULL;
    bool is_marked = *at == '(';
    if (!is_marked) { /* no frames, or one */
        cursor after = is_get(at) ? at + (*at == 'h' ? 2 : 5) : NULL;
        if (!after || *after != 'a') {
            *object = rc_word_make(RC_OBJ_LIST_NEW, 0);
            d->event.stack = RC_STACK_EMPTY;
            return at;
        }
    }
    size_t n = 0;
    uint32_t hash = p->names->seed;
    at = read_frame_ids(p, d, at + is_marked, &n, &hash);
    if (!at || *at != (is_marked ? 'e' : 'a') || n == 0)
        return NULL;
    d->code = rc_snapshot_names_stack(p->names, p->frames, n, hash, &d->event.stack, p->err);
    if (d->code != RC_OK)
        return NULL;
    *object = rc_word_make(RC_OBJ_STACK_USED, d->event.stack);
    /* the C++ writer memoises a list after its contents */
    return read_put(d, at + 1,
                    rc_word_make(RC_PV_OBJECT, (uint32_t)(p->n_objects + d->n_objects - 1)));
}

static inline cursor read_frames(rc_pickle *p, draft *d, cursor at)
{
    if (*at == ']')
        return read_new_frames(p, d, at);
    if (!is_get(at))
        return NULL;
    size_t i;
    uint32_t word;
    at = read_get(p, at, &i, &word);
    uint32_t object = word >> 4;
    if ((word & 15) == RC_PV_OBJECT) {
        object = rc_words_get(&p->objects, word >> 4);
        if (object == rc_word_make(RC_OBJ_LIST_NEW, 0)) {
            d->event.stack = RC_STACK_EMPTY;
            return at;
        }
        if (rc_object_kind(object) != RC_OBJ_STACK_USED)
            return NULL;
        rc_words_set(&p->memo, i, rc_word_make(RC_PV_STACK, object >> 4));
        object >>= 4;
    } else if ((word & 15) != RC_PV_STACK) {
        return NULL;
    }
    d->event.stack = object;
    return at;
}

static inline cursor read_value(rc_pickle *p, draft *d, cursor at, uint32_t key)
{
    rc_snapshot_event *e = &d->event;
    int64_t addr = 0;
    switch (key) {
    case RC_KEY_ACTION:
        return read_text(p, d, at, &e->action_name);
    case RC_KEY_ADDR:
        at = read_int(at, &addr);
        e->addr = (uint64_t)addr;
        return addr >= 0 ? at : NULL;
    case RC_KEY_SIZE:
        return read_int(at, &e->size_bytes);
    case RC_KEY_STREAM:
        return read_int(at, &e->stream);
    case RC_KEY_TIME_US:
        return read_int(at, &e->time_us);
    case RC_KEY_COMPILE_CONTEXT:
        return read_text(p, d, at, &e->compile_context);
    case RC_KEY_USER_METADATA:
        return read_text(p, d, at, &e->user_metadata);
    case RC_KEY_POOL_ID:
        return read_pair(p, d, at);
    case RC_KEY_FRAMES:
        return read_frames(p, d, at);
    default:
        return NULL;
    }
}

/* Allocations, frees and segments with all they need; anything else is for the machine to judge. */
static bool is_whole(draft *d)
{
    const uint32_t needed =
        1u << RC_KEY_ACTION | 1u << RC_KEY_ADDR | 1u << RC_KEY_SIZE | 1u << RC_KEY_STREAM;
    rc_snapshot_event *e = &d->event;
    if ((d->keys & needed) != needed || e->action_name < RC_KEY_ALLOC ||
        e->action_name > RC_KEY_SNAPSHOT)
        return false;
    e->action = (rc_snapshot_action)(e->action_name - RC_KEY_ALLOC);
    e->has_time = d->keys >> RC_KEY_TIME_US & 1;
    return e->size_bytes >= 0 && e->size_bytes <= (int64_t)1 << 48;
}

/* The put of a new dict and the mark behind it. NULL, here and below: something else stands there. */
static inline cursor read_begin(draft *d, cursor at, uint32_t self)
{
    d->n_objects = 1;
    at = read_put(d, at + 1, self);
    return at && *at == '(' ? at + 1 : NULL;
}

/* The next key of that dict, a string the machine knows, up to `most`. */
static inline cursor read_key(const rc_pickle *p, const draft *d, cursor at, uint32_t most,
                              uint32_t *key)
{
    size_t i;
    uint32_t word;
    if (at > d->last || !is_get(at))
        return NULL;
    at = read_get(p, at, &i, &word);
    *key = word >> 4;
    return (word & 15) != RC_PV_STRING || *key > most || at > d->last ? NULL : at;
}

static cursor read_event(rc_pickle *p, draft *d, cursor at)
{
    uint32_t self = rc_word_make(RC_PV_OBJECT, (uint32_t)p->n_objects);
    uint32_t key;
    at = read_begin(d, at, self);
    while (at && *at != 'u') {
        at = read_key(p, d, at, RC_KEY_FRAMES, &key);
        if (!at)
            return NULL;
        d->keys |= 1u << key;
        at = read_value(p, d, at, key);
    }
    if (!at || at > d->last || !is_whole(d))
        return NULL;
    return read_put(d, at + 1, self);
}

static rc_code commit_puts(rc_pickle *p, const draft *d)
{
    for (size_t i = 0; i < d->n_puts; i++)
        RC_TRY(rc_pickle_put_word(p, d->put_at[i] == SIZE_MAX ? p->n_memo : d->put_at[i],
                                  d->put_word[i]));
    return RC_OK;
}

/* The draft's containers, the first of them on the stack. */
static rc_code commit_objects(rc_pickle *p, const draft *d)
{
    rc_pv self = rc_pv_make(RC_PV_OBJECT, p->n_objects);
    for (size_t i = 0; i < d->n_objects; i++)
        rc_words_set(&p->objects, p->n_objects++, d->object[i]);
    RC_TRY(commit_puts(p, d));
    return rc_pickle_push(p, self);
}

/* The draft becomes part of the machine. */
static rc_code commit(rc_pickle *p, draft *d, uint32_t i_trace)
{
    rc_pickle_trace *trace = rc_pickle_trace_at(p, i_trace);
    d->object[0] = rc_word_make(RC_OBJ_EVENT, (uint32_t)trace->n_given & ((1u << 28) - 1));
    RC_TRY(commit_objects(p, d));
    return rc_pickle_give_event(p, i_trace, &d->event);
}

/* Explicit indices are bounded by the bytes read, as the machine does it. */
static bool has_possible_puts(const rc_pickle *p, const draft *d)
{
    for (size_t i = 0; i < d->n_puts; i++)
        if (d->put_at[i] != SIZE_MAX && d->put_at[i] > (uint64_t)rc_pickle_byte(p))
            return false;
    return true;
}

/* Bytes enough in the window, ids enough for the containers; else the machine goes on and judges. */
static bool has_room(const rc_pickle *p)
{
    return p->end - p->at > GUARD_BYTES && p->n_objects < ((size_t)1 << 28) - MOST_OBJECTS;
}

static rc_code reserve_frames(rc_pickle *p)
{
    if (p->n_frames_room > 0)
        return RC_OK;
    RC_TRY(RC_NEW(p->mem, &p->frames, 1024, p->err));
    p->n_frames_room = 1024;
    return RC_OK;
}

rc_code rc_pickle_run_frames(rc_pickle *p, bool *is_done)
{
    *is_done = false;
    if (!has_room(p))
        return RC_OK;
    RC_TRY(reserve_frames(p));
    RC_TRY(rc_words_reach(&p->objects, p->n_objects + 1, p->err));
    draft d = {.last = p->end - GUARD_BYTES};
    cursor at = read_new_frames(p, &d, p->at - 1);
    RC_TRY(d.code);
    if (!at || d.event.stack == RC_STACK_EMPTY || !has_possible_puts(p, &d))
        return RC_OK;
    rc_pv self = rc_pv_make(RC_PV_OBJECT, p->n_objects++);
    rc_pickle_set_object(p, self, RC_OBJ_STACK, d.event.stack); /* no event has used it yet */
    RC_TRY(commit_puts(p, &d));
    p->at = at;
    *is_done = true;
    return rc_pickle_push(p, self);
}

/* ---- blocks ---- */

static rc_block_state state_of(uint32_t word)
{
    return word == RC_KEY_INACTIVE           ? RC_BLOCK_INACTIVE
           : word == RC_KEY_ACTIVE_ALLOCATED ? RC_BLOCK_ALLOCATED
           : word == RC_KEY_ACTIVE_PENDING || word == RC_KEY_ACTIVE_AWAITING
               ? RC_BLOCK_PENDING_FREE
               : RC_BLOCK_OTHER;
}

static cursor read_block_value(rc_pickle *p, draft *d, cursor at, uint32_t key,
                               rc_snapshot_block *block)
{
    int64_t number = 0;
    uint32_t state = 0;
    if (key == RC_KEY_STATE) {
        at = read_text(p, d, at, &state);
        block->state = state_of(state);
        return at;
    }
    if (key == RC_KEY_FRAMES)
        return read_frames(p, d, at);
    if (key != RC_KEY_ADDRESS && key != RC_KEY_SIZE && key != RC_KEY_REQUESTED_SIZE)
        return NULL;
    at = read_int(at, &number);
    if (number < 0 || (key != RC_KEY_ADDRESS && number > (int64_t)1 << 48))
        return NULL;
    if (key == RC_KEY_ADDRESS)
        block->addr = (uint64_t)number;
    else if (key == RC_KEY_SIZE)
        block->size_bytes = number;
    else
        block->requested_bytes = number;
    return at;
}

static cursor read_block(rc_pickle *p, draft *d, cursor at, rc_snapshot_block *block)
{
    const uint64_t needed = (uint64_t)1 << RC_KEY_ADDRESS | (uint64_t)1 << RC_KEY_SIZE |
                            (uint64_t)1 << RC_KEY_STATE | (uint64_t)1 << RC_KEY_FRAMES;
    uint32_t self = rc_word_make(RC_PV_OBJECT, (uint32_t)p->n_objects);
    uint64_t keys = 0;
    uint32_t key;
    at = read_begin(d, at, self);
    while (at && *at != 'u') {
        at = read_key(p, d, at, RC_KEY_STATE, &key);
        if (!at)
            return NULL;
        keys |= (uint64_t)1 << key;
        at = read_block_value(p, d, at, key, block);
    }
    block->stack = d->event.stack;
    return !at || at > d->last || (keys & needed) != needed ? NULL : read_put(d, at + 1, self);
}

static rc_code run_block(rc_pickle *p, bool *is_done)
{
    RC_TRY(reserve_frames(p));
    RC_TRY(rc_words_reach(&p->objects, p->n_objects + MOST_OBJECTS, p->err));
    draft d = {.last = p->end - GUARD_BYTES};
    rc_snapshot_block block = {0};
    cursor at = read_block(p, &d, p->at - 1, &block);
    RC_TRY(d.code);
    if (!at || !has_possible_puts(p, &d))
        return RC_OK;
    void *elem;
    RC_TRY(rc_pages_add(&p->blocks, &elem, p->err));
    *(rc_snapshot_block *)elem = block;
    d.object[0] = rc_word_make(RC_OBJ_BLOCK, (uint32_t)p->blocks.n - 1);
    p->at = at;
    *is_done = true;
    return commit_objects(p, &d);
}

/* ---- frames ---- */

/* Files of torch 2.0 hold a dict for each frame of each event. */
static cursor read_frame(rc_pickle *p, draft *d, cursor at, rc_snapshot_frame *frame)
{
    const uint32_t needed = 1u << RC_KEY_NAME | 1u << RC_KEY_FILENAME | 1u << RC_KEY_LINE;
    uint32_t self = rc_word_make(RC_PV_OBJECT, (uint32_t)p->n_objects);
    uint32_t key;
    at = read_begin(d, at, self);
    while (at && *at != 'u') {
        at = read_key(p, d, at, RC_KEY_LINE, &key);
        if (!at)
            return NULL;
        if (key == RC_KEY_NAME)
            at = read_text(p, d, at, &frame->name);
        else if (key == RC_KEY_FILENAME)
            at = read_text(p, d, at, &frame->filename);
        else
            at = key == RC_KEY_LINE ? read_int(at, &frame->line) : NULL;
        d->keys |= 1u << key;
    }
    return !at || at > d->last || d->keys != needed ? NULL : read_put(d, at + 1, self);
}

static rc_code run_frame(rc_pickle *p, bool *is_done)
{
    RC_TRY(rc_words_reach(&p->objects, p->n_objects + MOST_OBJECTS, p->err));
    draft d = {.last = p->end - GUARD_BYTES};
    rc_snapshot_frame frame = {0};
    uint32_t id;
    cursor at = read_frame(p, &d, p->at - 1, &frame);
    RC_TRY(d.code);
    if (!at || !has_possible_puts(p, &d))
        return RC_OK;
    RC_TRY(rc_snapshot_names_frame(p->names, &frame, &id, p->err));
    rc_pv self = rc_pv_make(RC_PV_OBJECT, p->n_objects++);
    rc_pickle_set_object(p, self, RC_OBJ_FRAME, id);
    RC_TRY(commit_puts(p, &d));
    p->at = at;
    *is_done = true;
    return rc_pickle_push(p, self);
}

/* The first key of a dict, where it is one the machine knows. */
static uint32_t first_key(const rc_pickle *p, cursor at)
{
    size_t i;
    uint32_t word;
    at += *at == 0x94 ? 1 : *at == 'q' ? 2 : *at == 'r' ? 5 : 0;
    if (*at != '(' || !is_get(at + 1))
        return RC_KEY_NONE;
    read_get(p, at + 1, &i, &word);
    return (word & 15) == RC_PV_STRING ? word >> 4 : RC_KEY_NONE;
}

rc_code rc_pickle_run_dict(rc_pickle *p, bool *is_done)
{
    *is_done = false;
    if (!has_room(p))
        return RC_OK;
    switch (first_key(p, p->at)) {
    case RC_KEY_NAME:
    case RC_KEY_FILENAME:
    case RC_KEY_LINE:
        return run_frame(p, is_done);
    case RC_KEY_ADDRESS:
    case RC_KEY_SIZE:
    case RC_KEY_REQUESTED_SIZE:
    case RC_KEY_STATE:
    case RC_KEY_FRAMES:
        return run_block(p, is_done);
    default:
        return RC_OK;
    }
}

/* ---- events ---- */

/* The C++ writer memoises an event after its contents: the put of the event the machine has read. */
static rc_code finish_event(rc_pickle *p)
{
    draft d = {.last = p->end - GUARD_BYTES};
    rc_pv self = p->stack[p->n_stack - 1];
    cursor at = read_put(&d, p->at, rc_word_make(RC_PV_OBJECT, rc_pv_id(self)));
    if (d.n_puts == 0 || !has_possible_puts(p, &d))
        return RC_OK;
    p->at = at;
    return rc_pickle_put_word(p, d.put_at[0] == SIZE_MAX ? p->n_memo : d.put_at[0],
                              d.put_word[0]);
}

rc_code rc_pickle_run_events(rc_pickle *p, rc_pv list)
{
    uint32_t i_trace = rc_pickle_object(p, list) >> 4;
    RC_TRY(reserve_frames(p));
    if (has_room(p))
        RC_TRY(finish_event(p));
    for (;;) {
        if (!has_room(p))
            return RC_OK;
        RC_TRY(rc_words_reach(&p->objects, p->n_objects + MOST_OBJECTS, p->err));
        draft d = {.last = p->end - GUARD_BYTES};
        cursor at = p->at;
        if (*at != '}')
            return RC_OK;
        at = read_event(p, &d, at);
        RC_TRY(d.code);
        if (!at || !has_possible_puts(p, &d))
            return RC_OK;
        RC_TRY(commit(p, &d, i_trace));
        p->at = at;
    }
}
