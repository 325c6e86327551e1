/* limits.h — how much memory the machine lets this process take, and a refusal before that.
 *
 * A run that starts does not run out of memory: over a cgroup's limit the kernel kills without
 * a word, over an rlimit a library fails somewhere in the middle. So all limits are read before
 * the arena is taken, and held against what the run will take. Swap is not counted: a step that
 * swaps trains nothing.
 */
#ifndef RC_TRAIN_LIMITS_H
#define RC_TRAIN_LIMITS_H

#include <recompute/schedule.h>

/* Beside the arena, the order of the data and rc_run_beside_bytes: the arena's alignment to
 * huge pages, and buffers of files. */
enum { RC_ROUNDING_BYTES = 8 << 20 };

/* What a limit counts: each counts all of the one before, and more. */
typedef enum rc_limit_counts {
    RC_COUNTS_TOUCHED,  /* memory in use */
    RC_COUNTS_WRITABLE, /* promised too: the stack of a thread counts in full */
    /* Files too: the math library counts in full, which is RC_LIBRARY_FILES_BYTES. */
    RC_COUNTS_ADDRESSES
} rc_limit_counts;
enum { RC_LIBRARY_FILES_BYTES = 32 << 20 };

/* One limit and what is left of it. */
typedef struct rc_limit {
    /* in words */
    const char *name;
    /* where it stands; NULL for a limit of this process */
    const char *file;
    /* the limit */
    int64_t bytes;
    /* What this process may still take; below 0 where the limit is passed already. */
    int64_t free_bytes;
    rc_limit_counts counts;
} rc_limit;

/* 16 levels of two kinds of cgroups, and the machine's */
enum { RC_MOST_LIMITS = 64 };
typedef struct rc_limits {
    rc_limit at[RC_MOST_LIMITS];
    size_t n;
} rc_limits;

/**
 * Reads the limits of this process: RLIMIT_AS, RLIMIT_DATA, memory cgroups of both versions
 * with all their parents, what the machine has available, and what it may still promise.
 *
 * takes   root  folder that holds proc/ and sys/; "" is this machine
 * gives   *out  without those that are not set or cannot be read
 * errors  RC_E_MEMORY
 * cost    some twenty small files of the kernel
 * source  Linux Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst; proc(5);
 *         getrlimit(2)
 */
RC_MUST_CHECK
rc_code rc_limits_read(const char *root, rc_arena *mem, rc_limits *out, rc_error *err);

/**
 * Refuses a run that does not fit.
 *
 * takes   order_bytes  of the order of its data, not taken yet
 * errors  RC_E_MEMORY naming the limit that leaves least, what the run needs, and the cheapest
 *         recompute setting that fits
 */
RC_MUST_CHECK
rc_code rc_limits_refuse(const rc_limits *limits, const rc_schedule *schedule,
                         int64_t order_bytes, rc_arena *mem, rc_error *err);

#endif
