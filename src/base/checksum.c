/* base/checksum.c — CRC-32, serial and by several threads.
 *
 * zlib takes 2 GB/s a thread, which a save of a large model would feel. Where the processor multiplies
 * without carries, a text is folded before: a CRC is the remainder of a division of polynomials over
 * bits, so 128 bits at the front may be replaced by what they leave that far further on, a product with
 * two constants. What remains, 16 bytes with the same remainder, goes to zlib.
 */
#include "base/checksum.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

enum { MOST_PIECES = 64, LEAST_PIECE_BYTES = 1 << 20 };

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

enum { FOLDED_BYTES = 64, LEAST_FOLDED_BYTES = 256 };

static bool can_fold(void)
{
    return __builtin_cpu_supports("pclmul");
}

/* `far` holds x^(d+32) and x^(d-32) modulo the CRC's polynomial, bits reversed; d is the distance. */
__attribute__((target("pclmul"))) static __m128i fold(__m128i bits, __m128i far, __m128i next)
{
    __m128i low = _mm_clmulepi64_si128(bits, far, 0x00);
    __m128i high = _mm_clmulepi64_si128(bits, far, 0x11);
    return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

/* Of the whole 64-byte blocks at the front of a text, at least one; *n_bytes becomes their length.
 * source  Gopal et al. 2009, Fast CRC Computation for Generic Polynomials Using PCLMULQDQ */
__attribute__((target("pclmul"))) static uint32_t
fold_blocks(uint32_t before, const unsigned char *at, size_t *n_bytes)
{
    const __m128i by_512 = _mm_set_epi64x(0x1c6e41596, 0x154442bd4);
    const __m128i by_128 = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);
    unsigned char rest[16];
    __m128i bits[4];
    size_t n = *n_bytes / FOLDED_BYTES * FOLDED_BYTES;
    for (size_t i = 0; i < 4; i++)
        bits[i] = _mm_loadu_si128((const __m128i *)(const void *)(at + 16 * i));
    bits[0] = _mm_xor_si128(bits[0], _mm_cvtsi32_si128((int)~before));
    for (size_t done = FOLDED_BYTES; done < n; done += FOLDED_BYTES)
        for (size_t i = 0; i < 4; i++)
            bits[i] =
                fold(bits[i], by_512,
                     _mm_loadu_si128((const __m128i *)(const void *)(at + done + 16 * i)));
    for (size_t i = 1; i < 4; i++)
        bits[i] = fold(bits[i - 1], by_128, bits[i]);
    _mm_storeu_si128((__m128i *)(void *)rest, bits[3]);
    *n_bytes = n;
    return (uint32_t)crc32_z(UINT32_MAX, rest, sizeof rest);
}

uint32_t rc_crc32(uint32_t before, const void *at, size_t n_bytes)
{
    size_t n = n_bytes;
    if (n < LEAST_FOLDED_BYTES || !can_fold())
        return (uint32_t)crc32_z(before, at, n);
    uint32_t folded = fold_blocks(before, at, &n);
    return (uint32_t)crc32_z(folded, (const unsigned char *)at + n, n_bytes - n);
}

#else

uint32_t rc_crc32(uint32_t before, const void *at, size_t n_bytes)
{
    return (uint32_t)crc32_z(before, at, n_bytes);
}

#endif

uint32_t rc_crc32_join(uint32_t first, uint32_t second, int64_t n_second)
{
    return (uint32_t)crc32_combine(first, second, (z_off_t)n_second);
}

/* Pieces have each their own and are joined in order, so the result does not depend on how many
 * threads there really are. */
uint32_t rc_crc32_of(const void *at, size_t n_bytes, int n_threads)
{
    uint32_t of_piece[MOST_PIECES], all = 0;
    const unsigned char *bytes = at;
    size_t piece_bytes = n_bytes / MOST_PIECES + 1;
    if (piece_bytes < LEAST_PIECE_BYTES)
        piece_bytes = LEAST_PIECE_BYTES;
    int n_pieces = (int)((n_bytes + piece_bytes - 1) / piece_bytes);
    if (n_pieces < 2 || n_threads < 2)
        return rc_crc32(0, at, n_bytes);
#pragma omp parallel for num_threads(n_threads) schedule(dynamic, 1)
    for (int i = 0; i < n_pieces; i++) {
        size_t first = (size_t)i * piece_bytes, left = n_bytes - first;
        of_piece[i] = rc_crc32(0, bytes + first, left < piece_bytes ? left : piece_bytes);
    }
    for (int i = 0; i < n_pieces; i++) {
        size_t left = n_bytes - (size_t)i * piece_bytes;
        all =
            rc_crc32_join(all, of_piece[i], (int64_t)(left < piece_bytes ? left : piece_bytes));
    }
    return all;
}

const char *rc_crc32_print(uint32_t crc32, char buf[RC_CRC32_DIGITS + 1])
{
    snprintf(buf, RC_CRC32_DIGITS + 1, "%08" PRIx32, crc32);
    return buf;
}

bool rc_crc32_parse(const char *text, size_t n_bytes, uint32_t *out)
{
    static const char digits[] = "0123456789abcdef";
    *out = 0;
    for (size_t i = 0; i < n_bytes; i++) {
        const char *digit = text[i] ? strchr(digits, text[i]) : NULL;
        if (!digit)
            return false;
        *out = *out << 4 | (uint32_t)(digit - digits);
    }
    return n_bytes == RC_CRC32_DIGITS;
}
