/* process.h — what this process has of the machine's memory, by the system's own count.
 *
 * Linux, /proc/self/status; elsewhere, and where /proc is not there, all of it is 0: unknown.
 */
#ifndef RC_BASE_PROCESS_H
#define RC_BASE_PROCESS_H

#include <recompute/arena.h>

typedef struct rc_process_memory {
    /* VmRSS: resident, files that are mapped included */
    int64_t now_bytes;
    /* VmHWM: the most it ever was, or since rc_process_forget_peak */
    int64_t peak_bytes;
} rc_process_memory;
rc_process_memory rc_process_memory_read(rc_arena *tmp);

/* The peak counts from now on; false where the system does not let it (proc(5), clear_refs). */
bool rc_process_forget_peak(void);

#endif
