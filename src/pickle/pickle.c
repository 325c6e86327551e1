/* pickle.c — the machine: window, stack, memo and one small function per opcode.
 *
 * takes  bytes through rc_unpack, a window at a time
 * gives  the value at STOP; containers are build.c's business
 *
 * Opcodes are a table: what is not in it is refused, and nothing in it can name code.
 * source: CPython Lib/pickletools.py (what each opcode does)
 */
#include "pickle/pickle.h"

#include <inttypes.h>
#include <string.h>

enum { FIRST_STACK = 4096, MOST_STACK = 1 << 27 };

/* ---- the stack ---- */

rc_code rc_pickle_push_slow(rc_pickle *p, rc_pv v)
{
    if (p->n_stack == p->n_stack_room) {
        if (p->n_stack >= MOST_STACK)
            return rc_pickle_refuse(p, RC_REFUSAL_LIMIT, "more than %d values on the stack",
                                    MOST_STACK);
        size_t n_needed = p->n_stack ? p->n_stack + 1 : FIRST_STACK;
        RC_TRY(RC_GROW(p->mem, &p->stack, p->n_stack, &p->n_stack_room, n_needed, p->err));
    }
    p->stack[p->n_stack++] = v;
    return RC_OK;
}

/* The top value, which must not be a mark; NULL after a refusal. */
static rc_pv *top(rc_pickle *p)
{
    if (p->n_stack == 0 || rc_pv_kind_of(p->stack[p->n_stack - 1]) == RC_PV_MARK)
        return NULL;
    return &p->stack[p->n_stack - 1];
}

static rc_code underflow(rc_pickle *p)
{
    return rc_pickle_refuse(p, RC_REFUSAL_STACK, "an opcode finds nothing on the stack");
}

/* `n` values down to the last mark: *items is valid until the next push. */
static rc_code take_top(rc_pickle *p, size_t n, const rc_pv **items)
{
    for (size_t i = 1; i <= n; i++)
        if (i > p->n_stack || rc_pv_kind_of(p->stack[p->n_stack - i]) == RC_PV_MARK)
            return underflow(p);
    p->n_stack -= n;
    *items = p->stack + p->n_stack;
    return RC_OK;
}

static rc_code take_marked(rc_pickle *p, const rc_pv **items, size_t *n)
{
    if (p->n_marks == 0)
        return rc_pickle_refuse(p, RC_REFUSAL_STACK,
                                "an opcode needs a mark and there is none");
    size_t mark = p->marks[--p->n_marks];
    *items = p->stack + mark + 1;
    *n = p->n_stack - mark - 1;
    p->n_stack = mark;
    return RC_OK;
}

static rc_code op_mark(rc_pickle *p, const unsigned char *arg)
{
    (void)arg;
    if (p->n_marks == RC_PICKLE_MARKS)
        return rc_pickle_refuse(p, RC_REFUSAL_TOO_DEEP, "more than %d open marks",
                                RC_PICKLE_MARKS);
    p->marks[p->n_marks++] = p->n_stack;
    return rc_pickle_push(p, rc_pv_make(RC_PV_MARK, 0));
}

static rc_code op_pop(rc_pickle *p, const unsigned char *arg)
{
    (void)arg;
    if (p->n_stack == 0)
        return underflow(p);
    p->n_stack--;
    if (rc_pv_kind_of(p->stack[p->n_stack]) == RC_PV_MARK)
        p->n_marks--;
    return RC_OK;
}

static rc_code op_pop_mark(rc_pickle *p, const unsigned char *arg)
{
    (void)arg;
    const rc_pv *items = NULL;
    size_t n = 0;
    return take_marked(p, &items, &n);
}

static rc_code op_dup(rc_pickle *p, const unsigned char *arg)
{
    (void)arg;
    rc_pv *v = top(p);
    return v ? rc_pickle_push(p, *v) : underflow(p);
}

static rc_code op_stop(rc_pickle *p, const unsigned char *arg)
{
    (void)arg;
    if (p->n_stack != 1 || p->n_marks > 0)
        return rc_pickle_refuse(p, RC_REFUSAL_STACK, "STOP with %zu values on the stack",
                                p->n_stack);
    p->is_stopped = true;
    return RC_OK;
}

/* ---- scalars ---- */

static rc_code op_int1(rc_pickle *p, const unsigned char *arg)
{
    return rc_pickle_push(p, rc_pv_make(RC_PV_INT, arg[0]));
}
static rc_code op_int2(rc_pickle *p, const unsigned char *arg)
{
    return rc_pickle_push(p, rc_pv_make(RC_PV_INT, rc_little_endian(arg, 2)));
}
static rc_code op_int4(rc_pickle *p, const unsigned char *arg)
{
    int64_t v = (int32_t)(uint32_t)rc_little_endian(arg, 4);
    return rc_pickle_push(p, rc_pv_make(RC_PV_INT, (uint64_t)v));
}
static rc_code op_none(rc_pickle *p, const unsigned char *arg)
{
    (void)arg;
    return rc_pickle_push(p, rc_pv_make(RC_PV_NONE, 0));
}
static rc_code op_true(rc_pickle *p, const unsigned char *arg)
{
    (void)arg;
    return rc_pickle_push(p, rc_pv_make(RC_PV_BOOL, 1));
}
static rc_code op_false(rc_pickle *p, const unsigned char *arg)
{
    (void)arg;
    return rc_pickle_push(p, rc_pv_make(RC_PV_BOOL, 0));
}
static rc_code op_float(rc_pickle *p, const unsigned char *arg)
{
    uint64_t bits = 0; /* the one big-endian number of the format */
    for (int i = 0; i < 8; i++)
        bits = bits << 8 | arg[i];
    return rc_pickle_push(p, (bits & ~(uint64_t)15) | RC_PV_FLOAT);
}

static rc_code op_long1(rc_pickle *p, const unsigned char *arg)
{
    return rc_pickle_push_long(p, arg[0]);
}
static rc_code op_long4(rc_pickle *p, const unsigned char *arg)
{
    int32_t n = (int32_t)(uint32_t)rc_little_endian(arg, 4);
    if (n < 0)
        return rc_pickle_refuse(p, RC_REFUSAL_BAD_LENGTH, "a negative length");
    return rc_pickle_push_long(p, (uint64_t)n);
}

/* ---- strings ---- */

static rc_code op_text1(rc_pickle *p, const unsigned char *arg)
{
    return rc_pickle_push_text(p, arg[0]);
}
static rc_code op_text4(rc_pickle *p, const unsigned char *arg)
{
    return rc_pickle_push_text(p, rc_little_endian(arg, 4));
}
static rc_code op_text8(rc_pickle *p, const unsigned char *arg)
{
    return rc_pickle_push_text(p, rc_little_endian(arg, 8));
}

static rc_code op_bytes1(rc_pickle *p, const unsigned char *arg)
{
    return rc_pickle_push_bytes(p, arg[0]);
}
static rc_code op_bytes4(rc_pickle *p, const unsigned char *arg)
{
    return rc_pickle_push_bytes(p, rc_little_endian(arg, 4));
}
static rc_code op_bytes8(rc_pickle *p, const unsigned char *arg)
{
    return rc_pickle_push_bytes(p, rc_little_endian(arg, 8));
}

/* ---- the memo ---- */

static rc_code memo_word(rc_pickle *p, rc_pv v, uint32_t *word)
{
    rc_pv_kind kind = rc_pv_kind_of(v);
    if (kind == RC_PV_INT || kind == RC_PV_BIG || kind == RC_PV_FLOAT) {
        void *boxed;
        RC_TRY(rc_pages_add(&p->boxed, &boxed, p->err));
        memcpy(boxed, &v, sizeof v);
        *word = rc_word_make(RC_PV_BOXED, (uint32_t)(p->boxed.n - 1));
    } else {
        *word = rc_word_make((uint32_t)kind, rc_pv_id(v));
    }
    return RC_OK;
}

rc_code rc_pickle_put_word(rc_pickle *p, size_t i, uint32_t word)
{
    if (i >= p->memo.n_ready)
        RC_TRY(rc_words_reach(&p->memo, i + 1, p->err));
    p->n_memo += rc_words_get(&p->memo, i) == 0;
    rc_words_set(&p->memo, i, word);
    return RC_OK;
}

static rc_code put(rc_pickle *p, uint64_t i)
{
    /* every put costs a byte, so no writer's index passes the bytes read */
    if (i > (uint64_t)rc_pickle_byte(p))
        return rc_pickle_refuse(p, RC_REFUSAL_BAD_MEMO, "memo index %" PRIu64 " is impossible",
                                i);
    rc_pv *v = top(p);
    if (!v)
        return underflow(p);
    uint32_t word;
    RC_TRY(memo_word(p, *v, &word));
    return rc_pickle_put_word(p, (size_t)i, word);
}
static rc_code op_memoize(rc_pickle *p, const unsigned char *arg)
{
    (void)arg;
    return put(p, p->n_memo);
}
static rc_code op_put1(rc_pickle *p, const unsigned char *arg)
{
    return put(p, arg[0]);
}
static rc_code op_put4(rc_pickle *p, const unsigned char *arg)
{
    return put(p, rc_little_endian(arg, 4));
}

static rc_code get(rc_pickle *p, size_t i)
{
    uint32_t word = i < p->memo.n_pages * (size_t)RC_WORDS_PAGE ? rc_words_get(&p->memo, i) : 0;
    if (word == 0)
        return rc_pickle_refuse(p, RC_REFUSAL_BAD_MEMO, "memo index %zu was never stored", i);
    rc_pv v = rc_pv_make((rc_pv_kind)(word & 15), word >> 4);
    if (rc_pv_kind_of(v) == RC_PV_BOXED) {
        memcpy(&v, rc_pages_at(&p->boxed, word >> 4), sizeof v);
    } else if (rc_pv_kind_of(v) == RC_PV_OBJECT) {
        /* what is whole needs its identity no more: the next get is one step shorter */
        uint32_t object = rc_pickle_object(p, v);
        if (rc_object_kind(object) == RC_OBJ_FRAME)
            v = rc_pv_make(RC_PV_FRAME, object >> 4);
        else if (rc_object_kind(object) == RC_OBJ_STACK_USED)
            v = rc_pv_make(RC_PV_STACK, object >> 4);
        rc_words_set(&p->memo, i, rc_word_make((uint32_t)rc_pv_kind_of(v), rc_pv_id(v)));
    }
    return rc_pickle_push(p, v);
}
static rc_code op_get1(rc_pickle *p, const unsigned char *arg)
{
    return get(p, arg[0]);
}
static rc_code op_get4(rc_pickle *p, const unsigned char *arg)
{
    return get(p, (size_t)rc_little_endian(arg, 4));
}

/* ---- containers ---- */

static rc_code push_new(rc_pickle *p, rc_pickle_kind kind)
{
    rc_pv v;
    RC_TRY(rc_pickle_new_object(p, kind, &v));
    return rc_pickle_push(p, v);
}
static rc_code op_empty_dict(rc_pickle *p, const unsigned char *arg)
{
    (void)arg;
    bool is_done;
    RC_TRY(rc_pickle_run_dict(p, &is_done));
    return is_done ? RC_OK : push_new(p, RC_OBJ_DICT_NEW);
}
static rc_code op_empty_tuple(rc_pickle *p, const unsigned char *arg)
{
    (void)arg;
    return push_new(p, RC_OBJ_LIST_NEW);
}
static rc_code op_empty_list(rc_pickle *p, const unsigned char *arg)
{
    (void)arg;
    bool is_done;
    RC_TRY(rc_pickle_run_frames(p, &is_done));
    return is_done ? RC_OK : push_new(p, RC_OBJ_LIST_NEW);
}

static rc_code push_list(rc_pickle *p, const rc_pv *items, size_t n)
{
    rc_pv v;
    RC_TRY(rc_pickle_make_list(p, items, n, &v));
    return rc_pickle_push(p, v);
}
static rc_code push_tuple(rc_pickle *p, size_t n)
{
    const rc_pv *items = NULL;
    RC_TRY(take_top(p, n, &items));
    return push_list(p, items, n);
}
static rc_code op_tuple1(rc_pickle *p, const unsigned char *arg)
{
    (void)arg;
    return push_tuple(p, 1);
}
static rc_code op_tuple2(rc_pickle *p, const unsigned char *arg)
{
    (void)arg;
    return push_tuple(p, 2);
}
static rc_code op_tuple3(rc_pickle *p, const unsigned char *arg)
{
    (void)arg;
    return push_tuple(p, 3);
}
static rc_code op_marked_list(rc_pickle *p, const unsigned char *arg)
{
    (void)arg;
    const rc_pv *items = NULL;
    size_t n = 0;
    RC_TRY(take_marked(p, &items, &n));
    return push_list(p, items, n);
}

static rc_code take_pairs(rc_pickle *p, const rc_pv **items, size_t *n)
{
    RC_TRY(take_marked(p, items, n));
    return *n % 2 ? rc_pickle_refuse(p, RC_REFUSAL_STACK, "a key without a value") : RC_OK;
}

static rc_code op_marked_dict(rc_pickle *p, const unsigned char *arg)
{
    (void)arg;
    const rc_pv *items = NULL;
    size_t n = 0;
    RC_TRY(take_pairs(p, &items, &n));
    rc_pv v;
    RC_TRY(rc_pickle_new_object(p, RC_OBJ_DICT_NEW, &v));
    RC_TRY(rc_pickle_set_items(p, v, items, n));
    return rc_pickle_push(p, v);
}

static rc_code append_to_top(rc_pickle *p, const rc_pv *items, size_t n)
{
    rc_pv *list = top(p);
    return list ? rc_pickle_append(p, *list, items, n) : underflow(p);
}
static rc_code op_append(rc_pickle *p, const unsigned char *arg)
{
    (void)arg;
    const rc_pv *items = NULL;
    RC_TRY(take_top(p, 1, &items));
    return append_to_top(p, items, 1);
}
static rc_code op_appends(rc_pickle *p, const unsigned char *arg)
{
    (void)arg;
    const rc_pv *items = NULL;
    size_t n = 0;
    RC_TRY(take_marked(p, &items, &n));
    return append_to_top(p, items, n);
}
static rc_code op_setitem(rc_pickle *p, const unsigned char *arg)
{
    (void)arg;
    const rc_pv *items = NULL;
    RC_TRY(take_top(p, 2, &items));
    rc_pv *dict = top(p);
    return dict ? rc_pickle_set_items(p, *dict, items, 2) : underflow(p);
}
static rc_code op_setitems(rc_pickle *p, const unsigned char *arg)
{
    (void)arg;
    const rc_pv *items = NULL;
    size_t n = 0;
    RC_TRY(take_pairs(p, &items, &n));
    rc_pv *dict = top(p);
    if (!dict)
        return underflow(p);
    rc_pv self = *dict, list;
    RC_TRY(rc_pickle_set_items(p, self, items, n));
    if (rc_pv_kind_of(self) == RC_PV_OBJECT &&
        rc_object_kind(rc_pickle_object(p, self)) == RC_OBJ_EVENT &&
        rc_pickle_open_trace(p, p->n_stack - 1, &list))
        return rc_pickle_run_events(p, list);
    return RC_OK;
}

/* ---- the file as a whole ---- */

static rc_code op_proto(rc_pickle *p, const unsigned char *arg)
{
    if (arg[0] < 2 || arg[0] > 5 || rc_pickle_byte(p) != 2)
        return rc_pickle_refuse(p, RC_REFUSAL_BAD_PROTOCOL,
                                "pickle protocol %d; 2 to 5 are read, named once", arg[0]);
    p->protocol = arg[0];
    return RC_OK;
}

/* A hint for readers: long strings lie outside frames, so it limits nothing. */
static rc_code op_frame(rc_pickle *p, const unsigned char *arg)
{
    uint64_t n = rc_little_endian(arg, 8);
    if (p->total_bytes >= 0 && n > (uint64_t)(p->total_bytes - rc_pickle_byte(p)))
        return rc_pickle_refuse(p, RC_REFUSAL_TRUNCATED,
                                "a frame of %" PRIu64 " bytes, but only %" PRId64 " are left",
                                n, p->total_bytes - rc_pickle_byte(p));
    return RC_OK;
}

typedef struct opcode {
    rc_code (*run)(rc_pickle *p, const unsigned char *arg); /* NULL: refused */
    unsigned char n_arg_bytes;
    const char *runs_code; /* its name, when it would import, call or ask for an object */
} opcode;

static const opcode opcodes[256] = {
    [0x80] = {op_proto, 1, NULL},       [0x95] = {op_frame, 8, NULL},
    ['('] = {op_mark, 0, NULL},         ['}'] = {op_empty_dict, 0, NULL},
    [']'] = {op_empty_list, 0, NULL},   [')'] = {op_empty_tuple, 0, NULL},
    [0x85] = {op_tuple1, 0, NULL},      [0x86] = {op_tuple2, 0, NULL},
    [0x87] = {op_tuple3, 0, NULL},      ['t'] = {op_marked_list, 0, NULL}, /* a tuple */
    ['l'] = {op_marked_list, 0, NULL},  ['d'] = {op_marked_dict, 0, NULL},
    ['a'] = {op_append, 0, NULL},       ['e'] = {op_appends, 0, NULL},
    ['s'] = {op_setitem, 0, NULL},      ['u'] = {op_setitems, 0, NULL},
    ['K'] = {op_int1, 1, NULL},         ['M'] = {op_int2, 2, NULL},
    ['J'] = {op_int4, 4, NULL},         [0x8A] = {op_long1, 1, NULL},
    [0x8B] = {op_long4, 4, NULL},       ['G'] = {op_float, 8, NULL},
    ['N'] = {op_none, 0, NULL},         [0x88] = {op_true, 0, NULL},
    [0x89] = {op_false, 0, NULL},       [0x8C] = {op_text1, 1, NULL},
    ['X'] = {op_text4, 4, NULL},        [0x8D] = {op_text8, 8, NULL},
    ['C'] = {op_bytes1, 1, NULL},       ['B'] = {op_bytes4, 4, NULL},
    [0x8E] = {op_bytes8, 8, NULL},      [0x96] = {op_bytes8, 8, NULL}, /* a bytearray */
    [0x94] = {op_memoize, 0, NULL},     ['q'] = {op_put1, 1, NULL},
    ['r'] = {op_put4, 4, NULL},         ['h'] = {op_get1, 1, NULL},
    ['j'] = {op_get4, 4, NULL},         ['0'] = {op_pop, 0, NULL},
    ['1'] = {op_pop_mark, 0, NULL},     ['2'] = {op_dup, 0, NULL},
    ['.'] = {op_stop, 0, NULL},         ['c'] = {NULL, 0, "GLOBAL"},
    [0x93] = {NULL, 0, "STACK_GLOBAL"}, ['R'] = {NULL, 0, "REDUCE"},
    ['b'] = {NULL, 0, "BUILD"},         ['i'] = {NULL, 0, "INST"},
    ['o'] = {NULL, 0, "OBJ"},           [0x81] = {NULL, 0, "NEWOBJ"},
    [0x92] = {NULL, 0, "NEWOBJ_EX"},    ['P'] = {NULL, 0, "PERSID"},
    ['Q'] = {NULL, 0, "BINPERSID"},     [0x82] = {NULL, 0, "EXT1"},
    [0x83] = {NULL, 0, "EXT2"},         [0x84] = {NULL, 0, "EXT4"},
    [0x97] = {NULL, 0, "NEXT_BUFFER"},  [0x98] = {NULL, 0, "READONLY_BUFFER"},
};

static rc_code refuse_opcode(rc_pickle *p, unsigned char byte)
{
    p->at--;
    const char *name = opcodes[byte].runs_code;
    if (name)
        return rc_pickle_refuse(p, RC_REFUSAL_CODE,
                                "opcode %s could run code; a snapshot holds plain data only",
                                name);
    return rc_pickle_refuse(p, RC_REFUSAL_BAD_OPCODE,
                            "opcode 0x%02x, which no snapshot writer uses", byte);
}

static rc_code check_head(rc_pickle *p)
{
    static const struct {
        const char *magic;
        size_t n;
        const char *name;
    } packed[] = {{"PK\x03\x04", 4, "a zip archive (torch.save writes those)"},
                  {"\xFD"
                   "7zXZ",
                   5, "xz data"},
                  {"BZh", 3, "bzip2 data"},
                  {"\x1F\x8B", 2, "gzip data inside gzip data"},
                  {"\x28\xB5\x2F\xFD", 4, "zstd data inside packed data"}};
    RC_TRY(rc_pickle_refill(p));
    size_t n = (size_t)(p->end - p->at);
    if (n == 0)
        return rc_pickle_refuse(p, RC_REFUSAL_EMPTY, "the file is empty");
    for (size_t i = 0; i < sizeof packed / sizeof *packed; i++)
        if (n >= packed[i].n && memcmp(p->at, packed[i].magic, packed[i].n) == 0)
            return rc_pickle_refuse(p, RC_REFUSAL_COMPRESSED, "%s; unpack it first",
                                    packed[i].name);
    if (p->at[0] != 0x80)
        return rc_pickle_refuse(
            p, RC_REFUSAL_NOT_PICKLE,
            "not a pickle of protocol 2 or later, as torch writes snapshots");
    return RC_OK;
}

rc_code rc_pickle_make(rc_pickle *p, rc_unpack *from, rc_arena *mem, rc_error *err)
{
    *p = (rc_pickle){.mem = mem,
                     .bump = {.mem = mem},
                     .from = from,
                     .err = err,
                     .total_bytes = rc_unpack_total_bytes(from),
                     .memo = {.mem = mem},
                     .objects = {.mem = mem},
                     .boxes = {.mem = mem, .elem_bytes = sizeof(rc_pickle_box)},
                     .boxed = {.mem = mem, .elem_bytes = sizeof(rc_pv)},
                     .big = {.mem = mem, .elem_bytes = sizeof(uint64_t)},
                     .pairs = {.mem = mem, .elem_bytes = sizeof(rc_pickle_pair)},
                     .traces = {.mem = mem, .elem_bytes = sizeof(rc_pickle_trace)},
                     .blocks = {.mem = mem, .elem_bytes = sizeof(rc_snapshot_block)}};
    p->n_window = RC_PICKLE_WINDOW;
    if (p->total_bytes >= 0 && p->total_bytes < RC_PICKLE_WINDOW)
        p->n_window = (size_t)p->total_bytes + 1; /* one more: the end is seen at once */
    RC_TRY(RC_NEW(mem, &p->buf, p->n_window, err));
    p->at = p->end = p->buf;
    return RC_OK;
}

rc_code rc_pickle_run(rc_pickle *p, rc_pv *value)
{
    RC_TRY(check_head(p));
    while (!p->is_stopped) {
        RC_TRY(rc_pickle_need(p, 1));
        unsigned char byte = *p->at++;
        const opcode *op = &opcodes[byte];
        if (!op->run)
            return refuse_opcode(p, byte);
        RC_TRY(rc_pickle_need(p, op->n_arg_bytes));
        const unsigned char *arg = p->at;
        p->at += op->n_arg_bytes;
        RC_TRY(op->run(p, arg));
    }
    *value = p->stack[0];
    return RC_OK;
}
