/* error.h — how every fallible function reports failure, and what every header's comments leave unsaid.
 *
 * A function that can fail returns rc_code, is marked RC_MUST_CHECK, and takes `rc_error *err`
 * last. The first failure wins: RC_FAIL never overwrites one.
 *
 * Unless a comment says otherwise: `err` may be NULL and no other pointer may; what is given out is
 * taken from the arena `mem` and lives as long as it, or is static where there is no arena; what is
 * taken is borrowed for the call; after a failure outputs are of no use. Everything that takes from
 * an arena can fail with RC_E_MEMORY. RC_E_BUG, an invariant of ours that broke, may come from any.
 */
#ifndef RECOMPUTE_ERROR_H
#define RECOMPUTE_ERROR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The library hides everything by default; what a header of include/recompute/ declares is public. */
#if defined(__GNUC__)
#define RC_API __attribute__((visibility("default")))
#define RC_MUST_CHECK __attribute__((warn_unused_result))
#define RC_PRINTF(fmt_at, args_at) __attribute__((format(printf, fmt_at, args_at)))
#else
#define RC_API
#define RC_MUST_CHECK
#define RC_PRINTF(fmt_at, args_at)
#endif

/* Every public header is C11 and C++17 (tools/check-headers.sh). RC_VALUE(type){...} is an unnamed value,
 * which the two languages write differently. */
#ifdef __cplusplus
#define RC_EXTERN_C_BEGIN extern "C" {
#define RC_EXTERN_C_END }
#define RC_VALUE(type) type
#define RC_NOWHERE (rc_where{})
#else
#define RC_EXTERN_C_BEGIN
#define RC_EXTERN_C_END
#define RC_VALUE(type) (type)
#define RC_NOWHERE ((rc_where){0})
#endif

RC_EXTERN_C_BEGIN

typedef enum rc_code {
    RC_OK = 0,
    RC_E_INPUT,       /* the user's file, flag or value is wrong */
    RC_E_RANGE,       /* a number does not fit what has to hold it */
    RC_E_IO,          /* the operating system refused a file or device */
    RC_E_MEMORY,      /* the host is out of memory */
    RC_E_UNSUPPORTED, /* understood, but this build or machine cannot do it */
    RC_E_BUG,         /* an invariant of ours broke */
    RC_E_STOPPED      /* the user interrupted, and state was saved */
} rc_code;

/* A place in the user's input. `file` NULL and 0 mean unknown; lines and columns count from 1,
 * columns in bytes. `text` is the source line where it is known (borrowed, may be NULL). */
typedef struct rc_where {
    const char *file;
    int line, col;
    /* width of what is wrong, 0 where unknown */
    int n_cols;
    const char *text;
} rc_where;

typedef struct rc_error {
    rc_code code;
    rc_where where;
    /* our own file:line */
    const char *raised_at;
    /* what is wrong; then what would be right */
    char msg[480];
} rc_error;

#define RC_STRING_1(x) #x
#define RC_STRING(x) RC_STRING_1(x)
#define RC_HERE __FILE__ ":" RC_STRING(__LINE__)

/* Fills *err (unless it already holds a failure) and returns `code`. Used through RC_FAIL, which
 * says the code itself so that compilers and analysers know a failure when they see one.
 *
 * takes   where      borrowed strings: they must outlive *err
 *         raised_at  our own file:line; static
 *         fmt        as printf's; the message is cut to the room of rc_error.msg */
RC_API rc_code rc_fail(rc_error *err, rc_code code, rc_where where, const char *raised_at,
                       const char *fmt, ...) RC_PRINTF(5, 6);

#define RC_FAIL(err, code, where, ...)                                                         \
    ((void)rc_fail((err), (code), (where), RC_HERE, __VA_ARGS__), (rc_code)(code))

/* Passes a failure up. The only macro of the project that hides a return. */
#define RC_TRY(call)                                                                           \
    do {                                                                                       \
        rc_code rc_try_code = (call);                                                          \
        if (rc_try_code != RC_OK)                                                              \
            return rc_try_code;                                                                \
    } while (0)

/* Process exit status for a code: 0 fine or stopped on request, 2 input, 3 the machine, 4 unsupported,
 * 70 our bug. */
RC_API int rc_code_exit_status(rc_code code);

RC_EXTERN_C_END

#ifdef NDEBUG
#define RC_ASSERT(cond) ((void)0)
#else
#include <assert.h>
#define RC_ASSERT(cond) assert(cond)
#endif

#endif
