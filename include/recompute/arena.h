/* arena.h — memory that is taken piece by piece and given back all at once.
 *
 * A stage makes its result in the arena it is handed and never frees. Pieces are zeroed and
 * aligned to RC_ALIGN. An arena belongs to one thread.
 */
#ifndef RECOMPUTE_ARENA_H
#define RECOMPUTE_ARENA_H

#include <recompute/error.h>

RC_EXTERN_C_BEGIN

/* one cache line, one AVX-512 register */
enum { RC_ALIGN = 64 };

typedef struct rc_arena rc_arena;

/* How much of an arena was taken at a moment; its fields are the arena's own. */
typedef struct rc_mark {
    void *block;
    size_t used_bytes;
} rc_mark;

/* A new, empty arena, to be closed; NULL when the host is out of memory. */
RC_API rc_arena *rc_arena_open(void);
/* Gives back everything that was taken from it. NULL does nothing. */
RC_API void rc_arena_close(rc_arena *mem);

/* Room for n elements; mostly through RC_NEW, which knows their size.
 *
 * takes   n, elem_bytes  the product is checked; 0 gives a valid pointer that holds nothing
 * gives   *out           zeroed, aligned to RC_ALIGN
 * errors  RC_E_RANGE on overflow, RC_E_MEMORY when the host refuses; *out is then NULL */
RC_MUST_CHECK
RC_API rc_code rc_arena_take(rc_arena *mem, size_t n, size_t elem_bytes, void **out,
                             rc_error *err);

/* Scratch inside one function: mark, take, rewind. What was taken after the mark is gone then; marks
 * are rewound in the reverse order in which they were set. */
RC_API rc_mark rc_arena_mark(const rc_arena *mem);
RC_API void rc_arena_rewind(rc_arena *mem, rc_mark mark);

/* The next `bytes` are taken without asking the host, and stay here when a mark set after this is
 * rewound: for scratch that is taken again and again.
 *
 * takes   bytes  each piece rounded up to RC_ALIGN
 * errors  RC_E_MEMORY when the host refuses */
RC_MUST_CHECK
RC_API rc_code rc_arena_reserve(rc_arena *mem, size_t bytes, rc_error *err);

/* Bytes handed out so far and not rewound, each piece rounded up to RC_ALIGN. */
RC_API size_t rc_arena_used_bytes(const rc_arena *mem);

/* Fault injection for tests: every take after the next `n` fails with RC_E_MEMORY; -1 turns it off. */
RC_API void rc_arena_fail_after(rc_arena *mem, int64_t n);

/* `n` zeroed elements of what `out` points to, as rc_arena_take. */
#define RC_NEW(mem, out, n, err)                                                               \
    rc_arena_take((mem), (size_t)(n), sizeof **(out), (void **)(out), (err))

/* An array that holds n elements and is to hold n_needed. */
typedef struct rc_growth {
    size_t n, n_needed, elem_bytes;
} rc_growth;

/* A larger array where this one is full; mostly through RC_GROW.
 *
 * takes   by       as above
 * gives   *array   where the room was too little, another array: at least twice as large, the first n
 *                  elements copied, the rest zero. The old one stays in the arena
 *         *n_room  elements that fit now
 * errors  RC_E_RANGE on overflow, RC_E_MEMORY; the array is then what it was */
RC_MUST_CHECK
RC_API rc_code rc_arena_grow(rc_arena *mem, void **array, size_t *n_room, rc_growth by,
                             rc_error *err);
#define RC_GROW(mem, array, n, n_room, n_needed, err)                                          \
    ((n_needed) <= *(n_room)                                                                   \
         ? RC_OK                                                                               \
         : rc_arena_grow((mem), (void **)(array), (n_room),                                    \
                         RC_VALUE(rc_growth){(n), (n_needed), sizeof **(array)}, (err)))

/* A copy of a string.
 *
 * takes   text, n  bytes, NULs among them; NULL only where n is 0
 * gives   *out     the bytes and a terminating NUL
 * errors  RC_E_MEMORY */
RC_MUST_CHECK
RC_API rc_code rc_arena_copy(rc_arena *mem, const char *text, size_t n, const char **out,
                             rc_error *err);

/* A string put together as printf does.
 *
 * takes   fmt   as printf's
 * gives   *out  ends in NUL
 * errors  RC_E_MEMORY */
RC_MUST_CHECK
RC_API rc_code rc_arena_printf(rc_arena *mem, const char **out, rc_error *err, const char *fmt,
                               ...) RC_PRINTF(4, 5);

RC_EXTERN_C_END

#endif
