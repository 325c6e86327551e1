/* base/checksum.c — CRC-32, serial and by several threads. */
#include "base/checksum.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

enum { MOST_PIECES = 64, LEAST_PIECE_BYTES = 1 << 20 };

uint32_t rc_crc32(uint32_t before, const void *at, size_t n_bytes)
{
    return (uint32_t)crc32_z(before, at, n_bytes);
}

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
