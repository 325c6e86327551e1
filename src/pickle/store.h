/* store.h — what a pickle machine keeps: words by index, records by index, and interned
 * strings, frames and stacks.
 *
 * Everything is addressed by a 32-bit id; equal strings, frames and stacks have equal ids. Memory
 * comes from one arena in pages, so growing copies nothing.
 */
#ifndef RC_PICKLE_STORE_H
#define RC_PICKLE_STORE_H

#include <recompute/arena.h>
#include <recompute/snapshot_file.h>

/* uint32_t by index; what was never written reads as 0. */
enum { RC_WORDS_PAGE_BITS = 12, RC_WORDS_PAGE = 1 << RC_WORDS_PAGE_BITS };
typedef struct rc_words {
    rc_arena *mem;
    /* [n_pages] */
    uint32_t **page;
    size_t n_pages, n_room;
    /* words 0 .. n_ready-1 can be written */
    size_t n_ready;
} rc_words;

/* Makes words 0 .. n-1 readable; only the page of n-1 becomes writable. */
RC_MUST_CHECK
rc_code rc_words_extend(rc_words *words, size_t n, rc_error *err);
RC_MUST_CHECK
static inline rc_code rc_words_reach(rc_words *words, size_t n, rc_error *err)
{
    return n <= words->n_ready ? RC_OK : rc_words_extend(words, n, err);
}
static inline uint32_t rc_words_get(const rc_words *words, size_t i)
{
    return words->page[i >> RC_WORDS_PAGE_BITS][i & (RC_WORDS_PAGE - 1)];
}
static inline void rc_words_set(rc_words *words, size_t i, uint32_t value)
{
    words->page[i >> RC_WORDS_PAGE_BITS][i & (RC_WORDS_PAGE - 1)] = value;
}

/* Records of one size by index. Zero-initialise with mem and elem_bytes set. */
enum { RC_PAGES_BITS = 10 };
typedef struct rc_pages {
    rc_arena *mem;
    size_t elem_bytes;
    unsigned char **page;
    size_t n_pages, n_room, n;
} rc_pages;
RC_MUST_CHECK
rc_code rc_pages_add(rc_pages *pages, void **elem, rc_error *err);
static inline void *rc_pages_at(const rc_pages *pages, size_t i)
{
    return pages->page[i >> RC_PAGES_BITS] +
           (i & (((size_t)1 << RC_PAGES_BITS) - 1)) * pages->elem_bytes;
}

/* Open-addressed set of ids by hash. */
typedef struct rc_id_set {
    rc_arena *mem;
    /* [n_room] 0 is empty */
    uint32_t *id;
    /* [n_room] */
    uint32_t *hash;
    size_t n, n_room;
} rc_id_set;

/* Small pieces of any size, aligned to 8. Zero-initialise with mem set. */
typedef struct rc_bump {
    rc_arena *mem;
    unsigned char *at;
    size_t n_left;
} rc_bump;
RC_MUST_CHECK
rc_code rc_bump_take(rc_bump *bump, size_t n_bytes, void **out, rc_error *err);

struct rc_snapshot_names {
    rc_arena *mem;
    /* Differs from run to run, so that no file can be made of names that collide; no result
     * depends on it, for ids are given in the order of the file. */
    uint32_t seed;
    rc_bump bump;
    /* of rc_snapshot_string */
    rc_pages strings;
    /* of rc_snapshot_frame */
    rc_pages frames;
    /* of rc_snapshot_stack */
    rc_pages stacks;
    rc_id_set string_set, frame_set, stack_set;
};

/* Id 0 is "absent" everywhere; string ids 1 .. RC_KEY_COUNT-1 are the known words in order. */
RC_MUST_CHECK
rc_code rc_snapshot_names_make(rc_arena *mem, rc_snapshot_names *names, rc_error *err);
/* The id of these bytes; *is_new tells whether they had not been seen (and so not been checked). */
RC_MUST_CHECK
rc_code rc_snapshot_names_string(rc_snapshot_names *names, const unsigned char *bytes,
                                 size_t n_bytes, uint32_t *id, bool *is_new, rc_error *err);
/* The same for a string of which only the beginning is kept. */
RC_MUST_CHECK
rc_code rc_snapshot_names_long_string(rc_snapshot_names *names, const unsigned char *head,
                                      size_t n_head, uint64_t n_bytes, uint32_t hash,
                                      uint32_t *id, rc_error *err);
RC_MUST_CHECK
rc_code rc_snapshot_names_frame(rc_snapshot_names *names, const rc_snapshot_frame *frame,
                                uint32_t *id, rc_error *err);

/* Hash of a list of frame ids, taken one at a time from the names' seed on. */
static inline uint32_t rc_stack_hash(uint32_t hash, uint32_t frame)
{
    return (hash ^ frame) * 0x9E3779B1u + (hash >> 15);
}
RC_MUST_CHECK
rc_code rc_snapshot_names_stack(rc_snapshot_names *names, const uint32_t *frames, size_t n,
                                uint32_t hash, uint32_t *id, rc_error *err);

/* Well-formed UTF-8, surrogates allowed (Python writes them for undecodable file names). `n_cut` bytes
 * at the end may be the beginning of a longer sequence. */
bool rc_utf8_is_valid(const unsigned char *bytes, size_t n, size_t *n_cut);

#endif
