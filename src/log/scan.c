/* scan.c — many keywords, one pass.
 *
 * takes  the rows of log_patterns.def
 * gives  the next place where one of them stands
 * next   log.c reads the line around it
 *
 * The method is Wu and Manber's (1994): look at the two bytes that would end a window of
 * LOG_SCAN_MIN bytes. A table says how far the window can move before those two bytes could lie
 * inside any keyword; most pairs occur in none, so most steps skip six bytes. Only where the
 * table says 0 are keywords compared.
 */
#include "log/scan.h"

#include <string.h>

_Static_assert(RC_LOG_KIND_COUNT < 255, "rows are kept in one byte");

const log_pattern log_patterns[RC_LOG_KIND_COUNT] = {
#define RC_LOG_PATTERN(kind, handler, needle, also, meaning)                                   \
    {needle, also, meaning, (uint8_t)(sizeof(needle) - 1)},
#include "defs/log_patterns.def"
#undef RC_LOG_PATTERN
};

#define RC_LOG_PATTERN(kind, handler, needle, also, meaning)                                   \
    _Static_assert(sizeof(needle) > LOG_SCAN_MIN, #kind " has a keyword that is too short");
#include "defs/log_patterns.def"
#undef RC_LOG_PATTERN

static size_t pair_of(const char *last)
{
    return (size_t)(unsigned char)last[-1] << 8 | (unsigned char)last[0];
}

void log_scan_make(log_scan *scan)
{
    memset(scan, 0, sizeof *scan);
    memset(scan->shift, LOG_SCAN_MIN - 1, sizeof scan->shift);
    for (size_t row = RC_LOG_KIND_COUNT; row-- > 0;) {
        const char *needle = log_patterns[row].needle;
        for (size_t i = 1; i < LOG_SCAN_MIN; i++) {
            uint8_t *shift = &scan->shift[pair_of(needle + i)];
            uint8_t distance = (uint8_t)(LOG_SCAN_MIN - 1 - i);
            *shift = distance < *shift ? distance : *shift;
        }
        size_t pair = pair_of(needle + LOG_SCAN_MIN - 1);
        scan->next[row] = scan->bucket[pair];
        scan->bucket[pair] = (uint8_t)(row + 1);
    }
}

rc_log_kind log_scan_find(const log_scan *scan, const char *at, const char *end,
                          const char **hit)
{
    const char *last = at + LOG_SCAN_MIN - 1;
    while (last < end) {
        size_t pair = pair_of(last);
        uint8_t shift = scan->shift[pair];
        if (shift) {
            last += shift;
            continue;
        }
        const char *start = last - (LOG_SCAN_MIN - 1);
        for (size_t row = scan->bucket[pair]; row; row = scan->next[row - 1]) {
            const log_pattern *pattern = &log_patterns[row - 1];
            if ((size_t)(end - start) >= pattern->n_needle &&
                memcmp(start, pattern->needle, pattern->n_needle) == 0) {
                *hit = start;
                return (rc_log_kind)(row - 1);
            }
        }
        last++;
    }
    return RC_LOG_KIND_COUNT;
}
