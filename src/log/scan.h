/* scan.h — finds any of a few hundred keywords in a stream of bytes. */
#ifndef RC_LOG_SCAN_H
#define RC_LOG_SCAN_H

#include <recompute/log.h>

/* Every keyword has at least this many bytes, so a step can skip up to LOG_SCAN_MIN - 1 of them. */
enum { LOG_SCAN_MIN = 7 };

typedef struct log_scan {
    /* of the last two bytes of the window; 0: look closer */
    uint8_t shift[1 << 16];
    /* first row whose window ends in these bytes, + 1 */
    uint8_t bucket[1 << 16];
    /* the next such row, + 1 */
    uint8_t next[RC_LOG_KIND_COUNT];
} log_scan;

typedef struct log_pattern {
    const char *needle, *also, *meaning;
    uint8_t n_needle;
} log_pattern;

extern const log_pattern log_patterns[RC_LOG_KIND_COUNT];

void log_scan_make(log_scan *scan);

/* The first keyword that begins at or after `at` and ends before `end`: its row, and in *hit where
 * it begins; RC_LOG_KIND_COUNT if there is none. Of two at one place the lower row counts. */
rc_log_kind log_scan_find(const log_scan *scan, const char *at, const char *end,
                          const char **hit);

#endif
