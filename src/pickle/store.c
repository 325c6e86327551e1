/* store.c — pages of words and records, and interned strings, frames and stacks. */
#include "pickle/store.h"

#include "pickle/words.h"

#include <string.h>

/* ---- words ---- */

/* Every page starts as this one: reading needs no test, and a stray high index costs 8 bytes. */
static const uint32_t zero_page[RC_WORDS_PAGE];

static rc_code words_reserve(rc_words *words, size_t n_pages, rc_error *err)
{
    RC_TRY(RC_GROW(words->mem, &words->page, words->n_pages, &words->n_room, n_pages, err));
    while (words->n_pages < n_pages)
        words->page[words->n_pages++] = (uint32_t *)(uintptr_t)zero_page;
    return RC_OK;
}

rc_code rc_words_extend(rc_words *words, size_t n, rc_error *err)
{
    if (n == 0)
        return RC_OK;
    size_t last = (n - 1) >> RC_WORDS_PAGE_BITS;
    if (last >= words->n_pages)
        RC_TRY(words_reserve(words, last + 1, err));
    if (words->page[last] == zero_page) {
        uint32_t *fresh;
        RC_TRY(RC_NEW(words->mem, &fresh, RC_WORDS_PAGE, err));
        words->page[last] = fresh;
        if (words->n_ready == last << RC_WORDS_PAGE_BITS)
            words->n_ready += RC_WORDS_PAGE;
    }
    return RC_OK;
}

/* ---- records ---- */

rc_code rc_pages_add(rc_pages *pages, void **elem, rc_error *err)
{
    if (pages->n >> RC_PAGES_BITS == pages->n_pages) {
        RC_TRY(RC_GROW(pages->mem, &pages->page, pages->n_pages, &pages->n_room,
                       pages->n_pages + 1, err));
        void *fresh;
        RC_TRY(rc_arena_take(pages->mem, (size_t)1 << RC_PAGES_BITS, pages->elem_bytes, &fresh,
                             err));
        pages->page[pages->n_pages++] = fresh;
    }
    *elem = rc_pages_at(pages, pages->n++);
    return RC_OK;
}

/* ---- id sets ---- */

static rc_code set_grow(rc_id_set *set, rc_error *err)
{
    size_t room = set->n_room ? set->n_room * 2 : 256;
    uint32_t *id, *hash;
    RC_TRY(RC_NEW(set->mem, &id, room, err));
    RC_TRY(RC_NEW(set->mem, &hash, room, err));
    for (size_t i = 0; i < set->n_room; i++) {
        if (!set->id[i])
            continue;
        size_t at = set->hash[i] & (room - 1);
        while (id[at])
            at = (at + 1) & (room - 1);
        id[at] = set->id[i];
        hash[at] = set->hash[i];
    }
    set->id = id;
    set->hash = hash;
    set->n_room = room;
    return RC_OK;
}

static rc_code set_add(rc_id_set *set, uint32_t hash, uint32_t id, rc_error *err)
{
    if (set->n * 2 >= set->n_room)
        RC_TRY(set_grow(set, err));
    size_t at = hash & (set->n_room - 1);
    while (set->id[at])
        at = (at + 1) & (set->n_room - 1);
    set->id[at] = id;
    set->hash[at] = hash;
    set->n++;
    return RC_OK;
}

/* The next id with this hash from *at on, or 0; *at moves past it. */
static uint32_t set_next(const rc_id_set *set, uint32_t hash, size_t *at)
{
    while (set->n_room && set->id[*at]) {
        size_t here = *at;
        *at = (here + 1) & (set->n_room - 1);
        if (set->hash[here] == hash)
            return set->id[here];
    }
    return 0;
}

static size_t set_first(const rc_id_set *set, uint32_t hash)
{
    return set->n_room ? hash & (set->n_room - 1) : 0;
}

/* ---- names ---- */

enum { BUMP_PAGE = 1 << 16, MOST_IDS = (1 << 28) - 1 };

rc_code rc_bump_take(rc_bump *bump, size_t n_bytes, void **out, rc_error *err)
{
    size_t n = (n_bytes + 7) & ~(size_t)7;
    if (n > BUMP_PAGE / 4)
        return rc_arena_take(bump->mem, n, 1, out, err);
    if (n > bump->n_left) {
        RC_TRY(RC_NEW(bump->mem, &bump->at, BUMP_PAGE, err));
        bump->n_left = BUMP_PAGE;
    }
    *out = bump->at;
    bump->at += n;
    bump->n_left -= n;
    return RC_OK;
}

/* Mixes 8 bytes at a time; strings of a snapshot are short and few. */
static uint32_t hash_bytes(uint32_t seed, const unsigned char *bytes, size_t n)
{
    uint64_t h = (n + ((uint64_t)seed << 32)) * 0x9E3779B97F4A7C15u;
    for (; n >= 8; n -= 8, bytes += 8) {
        uint64_t word;
        memcpy(&word, bytes, 8);
        h = (h ^ word) * 0xFF51AFD7ED558CCDu;
        h ^= h >> 32;
    }
    uint64_t rest = 0;
    memcpy(&rest, bytes, n);
    h = (h ^ rest) * 0xC4CEB9FE1A85EC53u;
    return (uint32_t)(h ^ (h >> 32));
}

static rc_code too_many(const char *what, rc_error *err)
{
    return RC_FAIL(err, RC_E_RANGE, RC_NOWHERE, "the snapshot has more than %d %s", MOST_IDS,
                   what);
}

static rc_code add_string(rc_snapshot_names *names, const unsigned char *bytes, size_t n,
                          uint64_t n_total, uint32_t hash, uint32_t *id, rc_error *err)
{
    if (names->strings.n > MOST_IDS)
        return too_many("strings", err);
    void *copy, *at;
    RC_TRY(rc_bump_take(&names->bump, n + 1, &copy, err));
    memcpy(copy, bytes, n);
    ((char *)copy)[n] = '\0';
    RC_TRY(rc_pages_add(&names->strings, &at, err));
    *(rc_snapshot_string *)at = (rc_snapshot_string){copy, n, n_total};
    *id = (uint32_t)names->strings.n - 1;
    return set_add(&names->string_set, hash, *id, err);
}

static uint32_t find_string(const rc_snapshot_names *names, const unsigned char *bytes,
                            size_t n, uint64_t n_total, uint32_t hash)
{
    size_t at = set_first(&names->string_set, hash);
    for (uint32_t id; (id = set_next(&names->string_set, hash, &at)) != 0;) {
        const rc_snapshot_string *s = rc_pages_at(&names->strings, id);
        if (s->n_bytes == n && s->n_total_bytes == n_total && memcmp(s->bytes, bytes, n) == 0)
            return id;
    }
    return 0;
}

rc_code rc_snapshot_names_string(rc_snapshot_names *names, const unsigned char *bytes,
                                 size_t n_bytes, uint32_t *id, bool *is_new, rc_error *err)
{
    uint32_t hash = hash_bytes(names->seed, bytes, n_bytes);
    *id = find_string(names, bytes, n_bytes, n_bytes, hash);
    *is_new = *id == 0;
    return *is_new ? add_string(names, bytes, n_bytes, n_bytes, hash, id, err) : RC_OK;
}

rc_code rc_snapshot_names_long_string(rc_snapshot_names *names, const unsigned char *head,
                                      size_t n_head, uint64_t n_bytes, uint32_t hash,
                                      uint32_t *id, rc_error *err)
{
    *id = find_string(names, head, n_head, n_bytes, hash);
    return *id ? RC_OK : add_string(names, head, n_head, n_bytes, hash, id, err);
}

rc_code rc_snapshot_names_frame(rc_snapshot_names *names, const rc_snapshot_frame *frame,
                                uint32_t *id, rc_error *err)
{
    uint32_t hash =
        rc_stack_hash(rc_stack_hash(rc_stack_hash(names->seed, frame->name), frame->filename),
                      (uint32_t)frame->line);
    size_t at = set_first(&names->frame_set, hash);
    while ((*id = set_next(&names->frame_set, hash, &at)) != 0) {
        const rc_snapshot_frame *f = rc_pages_at(&names->frames, *id);
        if (f->name == frame->name && f->filename == frame->filename && f->line == frame->line)
            return RC_OK;
    }
    if (names->frames.n > MOST_IDS)
        return too_many("frames", err);
    void *elem;
    RC_TRY(rc_pages_add(&names->frames, &elem, err));
    *(rc_snapshot_frame *)elem = *frame;
    *id = (uint32_t)names->frames.n - 1;
    return set_add(&names->frame_set, hash, *id, err);
}

rc_code rc_snapshot_names_stack(rc_snapshot_names *names, const uint32_t *frames, size_t n,
                                uint32_t hash, uint32_t *id, rc_error *err)
{
    if (n == 0) {
        *id = RC_STACK_EMPTY;
        return RC_OK;
    }
    size_t at = set_first(&names->stack_set, hash);
    while ((*id = set_next(&names->stack_set, hash, &at)) != 0) {
        const rc_snapshot_stack *s = rc_pages_at(&names->stacks, *id);
        if (s->n_frames == n && memcmp(s->frame, frames, n * sizeof *frames) == 0)
            return RC_OK;
    }
    if (names->stacks.n > MOST_IDS)
        return too_many("stacks", err);
    void *copy, *elem;
    RC_TRY(rc_bump_take(&names->bump, n * sizeof *frames, &copy, err));
    memcpy(copy, frames, n * sizeof *frames);
    RC_TRY(rc_pages_add(&names->stacks, &elem, err));
    *(rc_snapshot_stack *)elem = (rc_snapshot_stack){copy, n};
    *id = (uint32_t)names->stacks.n - 1;
    return set_add(&names->stack_set, hash, *id, err);
}

rc_code rc_snapshot_names_make(rc_arena *mem, rc_snapshot_names *names, rc_error *err)
{
    static const char *const words[] = {
        "",
#define RC_WORD(id, text) text,
#include "defs/snapshot_words.def"
#undef RC_WORD
    };
    *names =
        (rc_snapshot_names){.mem = mem,
                            .bump = {.mem = mem},
                            .seed = (uint32_t)((uintptr_t)names >> 4) * 0x85EBCA6Bu,
                            .strings = {.mem = mem, .elem_bytes = sizeof(rc_snapshot_string)},
                            .frames = {.mem = mem, .elem_bytes = sizeof(rc_snapshot_frame)},
                            .stacks = {.mem = mem, .elem_bytes = sizeof(rc_snapshot_stack)},
                            .string_set = {.mem = mem},
                            .frame_set = {.mem = mem},
                            .stack_set = {.mem = mem}};
    void *elem;
    RC_TRY(rc_pages_add(&names->strings, &elem, err));
    *(rc_snapshot_string *)elem = (rc_snapshot_string){"", 0, 0};
    RC_TRY(rc_pages_add(&names->frames, &elem, err));
    RC_TRY(rc_pages_add(&names->stacks, &elem, err)); /* absent */
    RC_TRY(rc_pages_add(&names->stacks, &elem, err)); /* empty */
    for (size_t i = 1; i < sizeof words / sizeof *words; i++) {
        uint32_t id;
        bool is_new;
        RC_TRY(rc_snapshot_names_string(names, (const unsigned char *)words[i],
                                        strlen(words[i]), &id, &is_new, err));
        RC_ASSERT(id == i);
    }
    return RC_OK;
}

rc_snapshot_string rc_snapshot_string_at(const rc_snapshot_names *names, uint32_t id)
{
    return *(const rc_snapshot_string *)rc_pages_at(&names->strings, id);
}

rc_snapshot_frame rc_snapshot_frame_at(const rc_snapshot_names *names, uint32_t id)
{
    return *(const rc_snapshot_frame *)rc_pages_at(&names->frames, id);
}

rc_snapshot_stack rc_snapshot_stack_at(const rc_snapshot_names *names, uint32_t id)
{
    return *(const rc_snapshot_stack *)rc_pages_at(&names->stacks, id);
}

size_t rc_snapshot_count_stacks(const rc_snapshot_names *names)
{
    return names->stacks.n;
}

/* ---- UTF-8 ---- */

/* How many bytes follow this first byte, or -1. */
static int utf8_followers(unsigned char first)
{
    if (first < 0x80)
        return 0;
    if (first >= 0xC2 && first <= 0xDF)
        return 1;
    if (first >= 0xE0 && first <= 0xEF)
        return 2;
    if (first >= 0xF0 && first <= 0xF4)
        return 3;
    return -1;
}

bool rc_utf8_is_valid(const unsigned char *bytes, size_t n, size_t *n_cut)
{
    *n_cut = 0;
    for (size_t i = 0; i < n;) {
        int more = utf8_followers(bytes[i]);
        if (more < 0)
            return false;
        for (int k = 1; k <= more; k++) {
            if (i + (size_t)k == n) {
                *n_cut = n - i;
                return true;
            }
            unsigned char b = bytes[i + (size_t)k];
            unsigned char low = 0x80, high = 0xBF;
            if (k == 1 && bytes[i] == 0xE0)
                low = 0xA0;
            else if (k == 1 && bytes[i] == 0xF0)
                low = 0x90;
            else if (k == 1 && bytes[i] == 0xF4)
                high = 0x8F;
            if (b < low || b > high)
                return false;
        }
        i += (size_t)more + 1;
    }
    return true;
}
