/* checksum.h — CRC-32 of what is written, so that damage to it is noticed when it is read.
 *
 * zlib's, because anybody can check a file of ours with it (Python: zlib.crc32). It notices every
 * change of one or two bits and every one that lies within 32 bits; of all others one in 2^32 passes.
 * It is no protection against who changes a file on purpose.
 */
#ifndef RC_BASE_CHECKSUM_H
#define RC_BASE_CHECKSUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Continues `before`, which is 0 at the start. */
uint32_t rc_crc32(uint32_t before, const void *at, size_t n_bytes);
/* The same from 0, by up to `n_threads` threads. */
uint32_t rc_crc32_of(const void *at, size_t n_bytes, int n_threads);
/* Of a text whose two parts have these, the second being `n_second` bytes long. */
uint32_t rc_crc32_join(uint32_t first, uint32_t second, int64_t n_second);

/* As text: 8 digits, lower case. */
enum { RC_CRC32_DIGITS = 8 };
const char *rc_crc32_print(uint32_t crc32, char buf[RC_CRC32_DIGITS + 1]);
bool rc_crc32_parse(const char *text, size_t n_bytes, uint32_t *out);

#endif
