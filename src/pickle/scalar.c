/* scalar.c — ints of any width and strings of any length. */
#include "pickle/pickle.h"

#include <inttypes.h>
#include <string.h>

/* Whether the number lies in -2^63 .. 2^64-1: a ninth byte can only be the sign. `v`: its low 64 bits. */
static bool fits_64_bits(const unsigned char *bytes, size_t n, uint64_t v)
{
    if (n < 9)
        return true;
    return n == 9 && (bytes[8] == 0 || (bytes[8] == 0xFF && v >> 63));
}

rc_code rc_pickle_long(rc_pickle *p, const unsigned char *bytes, size_t n, rc_pv *out)
{
    bool is_negative = n > 0 && bytes[n - 1] >= 0x80;
    uint64_t v = rc_little_endian(bytes, n < 8 ? n : 8);
    if (is_negative && n < 8)
        v |= ~(uint64_t)0 << 8 * n;
    bool is_high = !is_negative && n >= 8 && v >> 63;
    if (!fits_64_bits(bytes, n, v))
        return rc_pickle_refuse(p, RC_REFUSAL_INT_RANGE, "an integer outside 64 bits");
    int64_t as_signed = (int64_t)v;
    if (!is_high && as_signed >= -((int64_t)1 << 59) && as_signed < (int64_t)1 << 59) {
        *out = rc_pv_make(RC_PV_INT, v);
        return RC_OK;
    }
    void *big;
    RC_TRY(rc_pages_add(&p->big, &big, p->err));
    memcpy(big, &v, sizeof v);
    *out = rc_pv_make(RC_PV_BIG, (uint64_t)(p->big.n - 1) << 1 | is_high);
    return RC_OK;
}

rc_code rc_pickle_push_long(rc_pickle *p, uint64_t n)
{
    RC_TRY(rc_pickle_check_length(p, n));
    if (n > 9)
        return rc_pickle_refuse(p, RC_REFUSAL_INT_RANGE, "an integer of %" PRIu64 " bytes", n);
    RC_TRY(rc_pickle_need(p, (size_t)n));
    rc_pv v;
    RC_TRY(rc_pickle_long(p, p->at, (size_t)n, &v));
    p->at += n;
    return rc_pickle_push(p, v);
}
/* ---- strings ---- */

static rc_code bad_utf8(rc_pickle *p)
{
    return rc_pickle_refuse(p, RC_REFUSAL_BAD_UTF8, "a string is not UTF-8");
}

rc_code rc_pickle_text(rc_pickle *p, const unsigned char *bytes, size_t n, rc_pv *out)
{
    uint32_t id;
    bool is_new;
    size_t n_cut;
    RC_TRY(rc_snapshot_names_string(p->names, bytes, n, &id, &is_new, p->err));
    if (is_new && (!rc_utf8_is_valid(bytes, n, &n_cut) || n_cut))
        return bad_utf8(p);
    *out = rc_pv_make(RC_PV_STRING, id);
    return RC_OK;
}

/* A string longer than a window may be: checked piece by piece, its beginning kept. */
static rc_code long_text(rc_pickle *p, uint64_t n, rc_pv *out)
{
    unsigned char head[RC_PICKLE_STRING_KEPT];
    RC_TRY(rc_pickle_need(p, sizeof head));
    memcpy(head, p->at, sizeof head);
    uint32_t hash = p->names->seed;
    for (uint64_t left = n; left > 0;) {
        RC_TRY(rc_pickle_need(p, left < 8 ? (size_t)left : 8));
        size_t here = (size_t)(p->end - p->at), n_cut;
        here = here < left ? here : (size_t)left;
        if (!rc_utf8_is_valid(p->at, here, &n_cut) || (here == left && n_cut))
            return bad_utf8(p);
        here -= n_cut;
        for (size_t i = 0; i < here; i++)
            hash = rc_stack_hash(hash, p->at[i]);
        p->at += here;
        left -= here;
    }
    uint32_t id;
    RC_TRY(rc_snapshot_names_long_string(p->names, head, sizeof head, n, hash, &id, p->err));
    *out = rc_pv_make(RC_PV_STRING, id);
    return RC_OK;
}

rc_code rc_pickle_push_text(rc_pickle *p, uint64_t n)
{
    RC_TRY(rc_pickle_check_length(p, n));
    rc_pv v = 0;
    if (n > RC_PICKLE_LONG_STRING) {
        RC_TRY(long_text(p, n, &v));
    } else {
        RC_TRY(rc_pickle_need(p, (size_t)n));
        RC_TRY(rc_pickle_text(p, p->at, (size_t)n, &v));
        p->at += n;
    }
    return rc_pickle_push(p, v);
}
rc_code rc_pickle_push_bytes(rc_pickle *p, uint64_t n)
{
    RC_TRY(rc_pickle_skip(p, n));
    return rc_pickle_push(p, rc_pv_make(RC_PV_BYTES, 0));
}
