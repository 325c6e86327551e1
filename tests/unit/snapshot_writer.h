/* snapshot_writer.h — writes memory snapshots as the writers of torch do, for tests.
 *
 * Two habits: CPython's pickler (a container is memoised before its contents, strings by identity,
 * lists in batches of 1000) and the TorchScript pickler of C++ (protocol 2, memoised after the
 * contents, one batch, ints of 8 bytes). source: CPython Lib/pickle.py, torch/csrc/jit/serialization
 */
#ifndef RC_TESTS_SNAPSHOT_WRITER_H
#define RC_TESTS_SNAPSHOT_WRITER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct writer {
    unsigned char *at;
    size_t n, n_room;
    int protocol;
    bool is_cpp;
    uint32_t n_memo;
    struct {
        const char *text;
        uint32_t memo;
    } strings[256];
    size_t n_strings;
} writer;

static inline void w_bytes(writer *w, const void *bytes, size_t n)
{
    if (w->n + n > w->n_room) {
        w->n_room = (w->n + n) * 2 + 4096;
        w->at = realloc(w->at, w->n_room);
        if (!w->at)
            abort();
    }
    memcpy(w->at + w->n, bytes, n);
    w->n += n;
}

static inline void w_byte(writer *w, int byte)
{
    unsigned char b = (unsigned char)byte;
    w_bytes(w, &b, 1);
}

static inline void w_little(writer *w, uint64_t v, int n)
{
    for (int i = 0; i < n; i++)
        w_byte(w, (int)(v >> 8 * i & 0xFF));
}

static inline uint32_t w_put(writer *w)
{
    if (w->protocol >= 4) {
        w_byte(w, 0x94);
    } else if (w->n_memo < 256) {
        w_byte(w, 'q');
        w_byte(w, (int)w->n_memo);
    } else {
        w_byte(w, 'r');
        w_little(w, w->n_memo, 4);
    }
    return w->n_memo++;
}

static inline void w_get(writer *w, uint32_t memo)
{
    w_byte(w, memo < 256 ? 'h' : 'j');
    w_little(w, memo, memo < 256 ? 1 : 4);
}

static inline void w_new_text(writer *w, const char *text)
{
    size_t n = strlen(text);
    bool is_short = w->protocol >= 4 && n < 256;
    w_byte(w, is_short ? 0x8C : 'X');
    w_little(w, n, is_short ? 1 : 4);
    w_bytes(w, text, n);
    w_put(w);
}

/* The same string again is a reference. */
static inline void w_text(writer *w, const char *text)
{
    for (size_t i = 0; i < w->n_strings; i++)
        if (strcmp(w->strings[i].text, text) == 0) {
            w_get(w, w->strings[i].memo);
            return;
        }
    w->strings[w->n_strings].text = text;
    w->strings[w->n_strings++].memo = w->n_memo;
    w_new_text(w, text);
}

static inline void w_int(writer *w, int64_t v)
{
    if (v >= 0 && v < 256) {
        w_byte(w, 'K');
        w_little(w, (uint64_t)v, 1);
    } else if (v >= 0 && v < 65536) {
        w_byte(w, 'M');
        w_little(w, (uint64_t)v, 2);
    } else if (v >= INT32_MIN && v <= INT32_MAX) {
        w_byte(w, 'J');
        w_little(w, (uint64_t)v, 4);
    } else {
        int n = 8;
        while (!w->is_cpp && n > 1 && v >> (8 * n - 9) == (v < 0 ? -1 : 0))
            n--;
        w_byte(w, 0x8A);
        w_byte(w, n);
        w_little(w, (uint64_t)v, n);
    }
}

static inline void w_bool(writer *w, bool v)
{
    w_byte(w, v ? 0x88 : 0x89);
}

/* Containers: open, items, close. */
static inline uint32_t w_open(writer *w, int empty)
{
    w_byte(w, empty);
    uint32_t memo = UINT32_MAX;
    if (!w->is_cpp)
        memo = w_put(w);
    w_byte(w, '(');
    return memo;
}
static inline uint32_t w_dict(writer *w)
{
    return w_open(w, '}');
}
static inline uint32_t w_list(writer *w)
{
    return w_open(w, ']');
}
/* The memo index, also when it was given by the C++ writer now. */
static inline uint32_t w_end_dict(writer *w, uint32_t memo)
{
    w_byte(w, 'u');
    return w->is_cpp ? w_put(w) : memo;
}
static inline uint32_t w_end_list(writer *w, uint32_t memo)
{
    w_byte(w, 'e');
    return w->is_cpp ? w_put(w) : memo;
}
static inline void w_empty_list(writer *w)
{
    w_byte(w, ']');
    w_put(w);
}
static inline void w_pair(writer *w, int64_t a, int64_t b)
{
    w_int(w, a);
    w_int(w, b);
    w_byte(w, 0x86);
    if (!w->is_cpp)
        w_put(w);
}

static inline void w_key_int(writer *w, const char *key, int64_t v)
{
    w_text(w, key);
    w_int(w, v);
}
static inline void w_key_text(writer *w, const char *key, const char *v)
{
    w_text(w, key);
    w_text(w, v);
}

static inline void w_begin(writer *w, int protocol, bool is_cpp)
{
    *w = (writer){.protocol = is_cpp ? 2 : protocol, .is_cpp = is_cpp};
    w_byte(w, 0x80);
    w_byte(w, w->protocol);
}
static inline void w_finish(writer *w)
{
    w_byte(w, '.');
}
static inline void w_free(writer *w)
{
    free(w->at);
    *w = (writer){0};
}

#endif
