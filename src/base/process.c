/* process.c — what this process has of the machine's memory. */
#define _POSIX_C_SOURCE 200809L
#include "base/process.h"

#include "base/file.h"
#include "base/num.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* The bytes of a line "VmHWM:     1234 kB"; 0 where there is none. */
static int64_t field_bytes(const char *status, const char *name)
{
    const char *at = strstr(status, name);
    char digits[24];
    int64_t n_kib;
    if (!at)
        return 0;
    at += strlen(name);
    at += strspn(at, " \t");
    size_t n = strspn(at, "0123456789");
    if (n >= sizeof digits)
        return 0;
    memcpy(digits, at, n);
    digits[n] = '\0';
    return rc_parse_int(digits, &n_kib) && rc_mul(n_kib, 1024, &n_kib) ? n_kib : 0;
}

rc_process_memory rc_process_memory_read(rc_arena *tmp)
{
    enum { MOST_BYTES = 1 << 16 };
    rc_process_memory memory = {0};
    const char *text;
    size_t n_bytes;
    rc_mark mark = rc_arena_mark(tmp);
    if (rc_file_read("/proc/self/status", MOST_BYTES, tmp, &text, &n_bytes, NULL) == RC_OK) {
        memory.now_bytes = field_bytes(text, "\nVmRSS:");
        memory.peak_bytes = field_bytes(text, "\nVmHWM:");
    }
    rc_arena_rewind(tmp, mark);
    return memory;
}

bool rc_process_forget_peak(void)
{
    static const char reset_peak[] = "5"; /* proc(5): resets the peak resident set size */
    int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    const bool is_reset = write(fd, reset_peak, 1) == 1;
    close(fd);
    return is_reset;
}
