/* open.h — a descriptor for a path, without waiting: what stands there is looked at first.
 *
 * A plain open() of a FIFO waits for whoever holds its other end, perhaps for ever; a device gives
 * bytes without end. So both are refused by name where a file is meant.
 */
#ifndef RC_BASE_OPEN_H
#define RC_BASE_OPEN_H

#include <recompute/error.h>

/* Who reads: anywhere in the file, again and again; or once, from its start to its end. */
typedef enum rc_open_for { RC_OPEN_FILE, RC_OPEN_STREAM } rc_open_for;

/**
 * Opens for reading.
 *
 * takes   reads  RC_OPEN_FILE wants a regular file; RC_OPEN_STREAM takes besides what a shell has
 *                opened already: a pipe, and whatever /dev/stdin and /dev/fd/N stand for
 * gives   *fd       to be closed
 *         *n_bytes  its size now; 0 for what has none; may be NULL
 * errors  RC_E_INPUT for an empty path; RC_E_IO naming the kind of what is refused
 */
RC_MUST_CHECK
rc_code rc_open_reading(const char *path, rc_open_for reads, int *fd, int64_t *n_bytes,
                        rc_error *err);

/**
 * Opens for writing, and makes the file where there is none. Devices are taken, and a FIFO that
 * somebody reads.
 *
 * takes   shown     how messages name it: `path` may be a temporary one
 *         is_added  behind what is there; else that is gone
 * errors  RC_E_INPUT for an empty path; RC_E_IO
 */
RC_MUST_CHECK
rc_code rc_open_writing(const char *path, const char *shown, bool is_added, int *fd,
                        rc_error *err);

/* errors  RC_E_INPUT for "": every function that takes a path asks this first */
RC_MUST_CHECK
rc_code rc_path_refuse_empty(const char *path, rc_error *err);

#endif
