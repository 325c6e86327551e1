/* bytes.c — the machine's window over the file, and refusals with the place in it. */
#include "pickle/pickle.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const size_t MOST_ARENA_BYTES = (size_t)4 << 30;
/* Ratios of real snapshots stay under 60 with zstd -19; past this it is a bomb. */
enum { MOST_UNPACK_RATIO = 500, UNPACK_FREE_BYTES = 64 << 20 };

rc_code rc_pickle_refuse(rc_pickle *p, rc_refusal refusal, const char *fmt, ...)
{
    char what[320];
    va_list args;
    va_start(args, fmt);
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    p->refusal = refusal;
    return RC_FAIL(p->err, RC_E_INPUT, (rc_where){.file = p->path},
                   "refused (%s): %s, at byte %" PRId64, rc_snapshot_refusal_name(refusal),
                   what, rc_pickle_byte(p));
}

/* ---- the window ---- */

static rc_code check_budget(rc_pickle *p)
{
    int64_t packed = rc_unpack_consumed_bytes(p->from);
    if (rc_unpack_packing(p->from) != RC_PACKING_NONE && p->window_byte > UNPACK_FREE_BYTES &&
        p->window_byte / MOST_UNPACK_RATIO > packed)
        return rc_pickle_refuse(p, RC_REFUSAL_LIMIT,
                                "the file unpacks to more than %d times its size",
                                MOST_UNPACK_RATIO);
    if (rc_arena_used_bytes(p->mem) > MOST_ARENA_BYTES)
        return rc_pickle_refuse(p, RC_REFUSAL_LIMIT,
                                "the file needs more than 4 GiB to be read");
    return RC_OK;
}

rc_code rc_pickle_refill(rc_pickle *p)
{
    size_t kept = (size_t)(p->end - p->at);
    p->window_byte += p->at - p->buf;
    memmove(p->buf, p->at, kept);
    size_t n;
    rc_code code = rc_unpack_read(p->from, p->buf + kept, p->n_window - kept, &n, p->err);
    if (code == RC_E_INPUT)
        p->refusal = RC_REFUSAL_COMPRESSED;
    RC_TRY(code);
    p->at = p->buf;
    p->end = p->buf + kept + n;
    p->is_end = n < p->n_window - kept;
    return check_budget(p);
}

rc_code rc_pickle_fetch(rc_pickle *p, size_t n)
{
    if (!p->is_end)
        RC_TRY(rc_pickle_refill(p));
    if ((size_t)(p->end - p->at) < n)
        return rc_pickle_refuse(p, RC_REFUSAL_TRUNCATED, "the file ends inside a value");
    return RC_OK;
}

/* A length prefix: these bytes must exist in the file. */
rc_code rc_pickle_check_length(rc_pickle *p, uint64_t n)
{
    if (p->total_bytes >= 0 && n > (uint64_t)(p->total_bytes - rc_pickle_byte(p)))
        return rc_pickle_refuse(p, RC_REFUSAL_BAD_LENGTH,
                                "a value of %" PRIu64 " bytes, but only %" PRId64 " are left",
                                n, p->total_bytes - rc_pickle_byte(p));
    return RC_OK;
}

rc_code rc_pickle_skip(rc_pickle *p, uint64_t n)
{
    RC_TRY(rc_pickle_check_length(p, n));
    while (n > 0) {
        RC_TRY(rc_pickle_need(p, 1));
        uint64_t here = (uint64_t)(p->end - p->at);
        here = here < n ? here : n;
        p->at += here;
        n -= here;
    }
    return RC_OK;
}
