/* arena.c — memory that is taken piece by piece and given back all at once.
 *
 * A chain of blocks, each at least as large as all before it. A rewind frees the blocks taken
 * after the mark. The blocks' own headers are the only malloc of the library.
 */
#define _DEFAULT_SOURCE /* madvise */
#include <recompute/arena.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

typedef struct block block;
struct block {
    block *older;
    size_t room_bytes, used_bytes;
};

struct rc_arena {
    block *newest;
    size_t total_bytes; /* of all older blocks' used bytes */
    int64_t n_until_failure;
};

enum { FIRST_BLOCK_BYTES = 1 << 12, MOST_BLOCK_BYTES = 1 << 24, HUGE_PAGE_BYTES = 1 << 21 };

static char *block_bytes(block *b)
{
    size_t header = (sizeof(block) + RC_ALIGN - 1) / RC_ALIGN * RC_ALIGN;
    return (char *)b + header;
}

static block *block_open(size_t room_bytes, block *older)
{
    size_t header = (sizeof(block) + RC_ALIGN - 1) / RC_ALIGN * RC_ALIGN;
    if (room_bytes > SIZE_MAX - 2 * header - HUGE_PAGE_BYTES)
        return NULL;
    /* one fault per 2 MiB touched instead of 512; a kernel without huge pages declines */
    bool is_huge = room_bytes >= HUGE_PAGE_BYTES;
    size_t align = is_huge ? HUGE_PAGE_BYTES : RC_ALIGN;
    size_t bytes = (header + room_bytes + align - 1) / align * align;
    block *b = aligned_alloc(align, bytes);
    if (b && is_huge)
        (void)madvise(b, bytes, MADV_HUGEPAGE);
    if (b)
        *b = (block){.older = older, .room_bytes = bytes - header};
    return b;
}

rc_arena *rc_arena_open(void)
{
    rc_arena *mem = calloc(1, sizeof *mem);
    if (mem)
        mem->n_until_failure = -1;
    return mem;
}

void rc_arena_close(rc_arena *mem)
{
    if (!mem)
        return;
    rc_arena_rewind(mem, (rc_mark){0});
    free(mem);
}

static rc_code arena_grow(rc_arena *mem, size_t bytes, rc_error *err)
{
    size_t room = mem->newest ? mem->newest->room_bytes * 2 : FIRST_BLOCK_BYTES;
    if (room > MOST_BLOCK_BYTES)
        room = MOST_BLOCK_BYTES;
    if (room < bytes)
        room = bytes;
    block *b = block_open(room, mem->newest);
    if (!b)
        return RC_FAIL(err, RC_E_MEMORY, RC_NOWHERE, "the host has no %zu bytes left", bytes);
    if (mem->newest)
        mem->total_bytes += mem->newest->used_bytes;
    mem->newest = b;
    return RC_OK;
}

rc_code rc_arena_take(rc_arena *mem, size_t n, size_t elem_bytes, void **out, rc_error *err)
{
    *out = NULL;
    if (elem_bytes != 0 && n > (SIZE_MAX / 2 - RC_ALIGN) / elem_bytes)
        return RC_FAIL(err, RC_E_RANGE, RC_NOWHERE, "%zu elements of %zu bytes overflow", n,
                       elem_bytes);
    if (mem->n_until_failure == 0)
        return RC_FAIL(err, RC_E_MEMORY, RC_NOWHERE, "out of memory (injected by a test)");
    if (mem->n_until_failure > 0)
        mem->n_until_failure--;
    size_t bytes = (n * elem_bytes + RC_ALIGN - 1) / RC_ALIGN * RC_ALIGN;
    if (!mem->newest || mem->newest->room_bytes - mem->newest->used_bytes < bytes)
        RC_TRY(arena_grow(mem, bytes, err));
    char *at = block_bytes(mem->newest) + mem->newest->used_bytes;
    mem->newest->used_bytes += bytes;
    memset(at, 0, bytes);
    *out = at;
    return RC_OK;
}

rc_code rc_arena_reserve(rc_arena *mem, size_t bytes, rc_error *err)
{
    if (mem->newest && mem->newest->room_bytes - mem->newest->used_bytes >= bytes)
        return RC_OK;
    return arena_grow(mem, bytes, err);
}

rc_mark rc_arena_mark(const rc_arena *mem)
{
    return (rc_mark){mem->newest, mem->newest ? mem->newest->used_bytes : 0};
}

void rc_arena_rewind(rc_arena *mem, rc_mark mark)
{
    while (mem->newest && mem->newest != mark.block) {
        block *older = mem->newest->older;
        free(mem->newest);
        mem->newest = older;
        if (older)
            mem->total_bytes -= older->used_bytes;
    }
    if (mem->newest)
        mem->newest->used_bytes = mark.used_bytes;
}

size_t rc_arena_used_bytes(const rc_arena *mem)
{
    return mem->total_bytes + (mem->newest ? mem->newest->used_bytes : 0);
}

void rc_arena_fail_after(rc_arena *mem, int64_t n)
{
    mem->n_until_failure = n;
}

rc_code rc_arena_grow(rc_arena *mem, void **array, size_t *n_room, rc_growth by, rc_error *err)
{
    enum { FIRST = 16 };
    size_t room = *n_room > FIRST / 2 ? *n_room * 2 : FIRST;
    void *larger;
    if (by.n_needed <= *n_room)
        return RC_OK;
    if (room < by.n_needed)
        room = by.n_needed;
    RC_TRY(rc_arena_take(mem, room, by.elem_bytes, &larger, err));
    if (by.n)
        memcpy(larger, *array, by.n * by.elem_bytes);
    *array = larger;
    *n_room = room;
    return RC_OK;
}

rc_code rc_arena_copy(rc_arena *mem, const char *text, size_t n, const char **out,
                      rc_error *err)
{
    char *copy;
    RC_TRY(RC_NEW(mem, &copy, n + 1, err));
    if (n)
        memcpy(copy, text, n);
    *out = copy;
    return RC_OK;
}

rc_code rc_arena_printf(rc_arena *mem, const char **out, rc_error *err, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (n < 0)
        return RC_FAIL(err, RC_E_BUG, RC_NOWHERE, "bad format string");
    char *text;
    RC_TRY(RC_NEW(mem, &text, (size_t)n + 1, err));
    va_start(args, fmt);
    vsnprintf(text, (size_t)n + 1, fmt, args);
    va_end(args);
    *out = text;
    return RC_OK;
}
