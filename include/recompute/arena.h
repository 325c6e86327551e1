/* arena.h — memory that is taken piece by piece and given back all at once.
 *
 * A stage makes its result in the arena it is handed and never frees. Pieces are zeroed and
 * aligned to RC_ALIGN. An arena belongs to one thread.
 */
#ifndef RECOMPUTE_ARENA_H
#define RECOMPUTE_ARENA_H

#include <recompute/error.h>

RC_EXTERN_C_BEGIN

enum { RC_ALIGN = 64 }; /* one cache line, one AVX-512 register */

typedef struct rc_arena rc_arena;
typedef struct rc_mark {
    void *block;
    size_t used_bytes;
} rc_mark;

/* gives NULL when the host is out of memory */
RC_API rc_arena *rc_arena_open(void);
/* NULL is allowed and does nothing */
RC_API void rc_arena_close(rc_arena *mem);

/* takes   n, elem_bytes  the product is checked; 0 gives a valid pointer that holds nothing
 * errors  RC_E_RANGE on overflow, RC_E_MEMORY when the host refuses; *out is then NULL */
RC_MUST_CHECK
RC_API rc_code rc_arena_take(rc_arena *mem, size_t n, size_t elem_bytes, void **out,
                             rc_error *err);

/* Scratch inside one function: mark, take, rewind. */
RC_API rc_mark rc_arena_mark(const rc_arena *mem);
RC_API void rc_arena_rewind(rc_arena *mem, rc_mark mark);

/* The next `bytes` are taken without asking the host, and stay here when a mark set after this is
 * rewound: for scratch that is taken again and again. */
RC_MUST_CHECK
RC_API rc_code rc_arena_reserve(rc_arena *mem, size_t bytes, rc_error *err);

/* Bytes handed out so far and not rewound. */
RC_API size_t rc_arena_used_bytes(const rc_arena *mem);

/* Fault injection for tests: every take after the next `n` fails with RC_E_MEMORY; -1 turns it off. */
RC_API void rc_arena_fail_after(rc_arena *mem, int64_t n);

#define RC_NEW(mem, out, n, err)                                                               \
    rc_arena_take((mem), (size_t)(n), sizeof **(out), (void **)(out), (err))

/* Room for n_needed elements in an array that holds n: it doubles, and what was there is copied. */
typedef struct rc_growth {
    size_t n, n_needed, elem_bytes;
} rc_growth;
RC_MUST_CHECK
RC_API rc_code rc_arena_grow(rc_arena *mem, void **array, size_t *n_room, rc_growth by,
                             rc_error *err);
#define RC_GROW(mem, array, n, n_room, n_needed, err)                                          \
    ((n_needed) <= *(n_room)                                                                   \
         ? RC_OK                                                                               \
         : rc_arena_grow((mem), (void **)(array), (n_room),                                    \
                         RC_VALUE(rc_growth){(n), (n_needed), sizeof **(array)}, (err)))

/* Copies of strings; `n` bytes and a terminating NUL. */
RC_MUST_CHECK
RC_API rc_code rc_arena_copy(rc_arena *mem, const char *text, size_t n, const char **out,
                             rc_error *err);
RC_MUST_CHECK
RC_API rc_code rc_arena_printf(rc_arena *mem, const char **out, rc_error *err, const char *fmt,
                               ...) RC_PRINTF(4, 5);

RC_EXTERN_C_END

#endif
