/* unpack.h — a stream of bytes from a file, a pipe or memory, plain or packed with gzip or zstd.
 *
 * What the bytes mean is the caller's business. Memory does not grow with the input. Not thread-safe.
 */
#ifndef RC_READ_UNPACK_H
#define RC_READ_UNPACK_H

#include <recompute/arena.h>

typedef enum rc_packing { RC_PACKING_NONE, RC_PACKING_GZIP, RC_PACKING_ZSTD } rc_packing;

typedef struct rc_unpack rc_unpack;

/* Opens `path` ("-" is standard input) and looks at the first bytes to see how it is packed.
 * The caller closes it, also after a failed read. errors RC_E_IO, RC_E_MEMORY */
RC_MUST_CHECK
rc_code rc_unpack_open(const char *path, rc_arena *mem, rc_unpack **out, rc_error *err);
/* The same over bytes in memory; `bytes` is borrowed until close. */
RC_MUST_CHECK
rc_code rc_unpack_open_bytes(const void *bytes, size_t n_bytes, rc_arena *mem, rc_unpack **out,
                             rc_error *err);
/* NULL is allowed and does nothing */
void rc_unpack_close(rc_unpack *from);

/* Fills `to` with up to `room` unpacked bytes; *n is less than `room` only at the end.
 * errors  RC_E_IO when reading fails, RC_E_INPUT when the packed data is damaged or ends early */
RC_MUST_CHECK
rc_code rc_unpack_read(rc_unpack *from, unsigned char *to, size_t room, size_t *n,
                       rc_error *err);

rc_packing rc_unpack_packing(const rc_unpack *from);
/* Size of the unpacked data where it is known beforehand (a plain regular file, memory); else -1. */
int64_t rc_unpack_total_bytes(const rc_unpack *from);
/* Bytes taken from the file so far, as they lie there: against the bytes given, the ratio of a bomb. */
int64_t rc_unpack_consumed_bytes(const rc_unpack *from);

#endif
