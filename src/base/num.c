/* num.c — checked sizes, and numbers as people read and write them. */
#include "base/num.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

bool rc_mul(int64_t a, int64_t b, int64_t *out)
{
    if (a < 0 || b < 0 || (b != 0 && a > INT64_MAX / b))
        return false;
    *out = a * b;
    return true;
}

bool rc_add(int64_t a, int64_t b, int64_t *out)
{
    if (a < 0 || b < 0 || a > INT64_MAX - b)
        return false;
    *out = a + b;
    return true;
}

int64_t rc_round_up(int64_t n, int64_t step)
{
    RC_ASSERT(step > 0 && (step & (step - 1)) == 0);
    return (n + step - 1) & ~(step - 1);
}

/* `value` with 3 significant digits and one of `units`, `base` apart. */
static const char *format_scaled(double value, double base, const char *const *units,
                                 size_t n_units, char buf[32])
{
    size_t unit = 0;
    while (fabs(value) >= base && unit + 1 < n_units) {
        value /= base;
        unit++;
    }
    int digits = fabs(value) >= 100 || unit == 0 ? 0 : fabs(value) >= 10 ? 1 : 2;
    snprintf(buf, 32, "%.*f %s", digits, value, units[unit]);
    return buf;
}

const char *rc_format_bytes(int64_t bytes, char buf[32])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    return format_scaled((double)bytes, 1024, units, 6, buf);
}

const char *rc_format_si(double value, char buf[32])
{
    static const char *const units[] = {"", "K", "M", "G", "T", "P", "E"};
    return format_scaled(value, 1000, units, 7, buf);
}

const char *rc_format_count(int64_t n, char buf[32])
{
    char digits[32];
    snprintf(digits, sizeof digits, "%" PRId64, n);
    const char *from = digits;
    char *to = buf;
    if (*from == '-')
        *to++ = *from++;
    size_t left = strlen(from);
    while (left > 0) {
        *to++ = *from++;
        left--;
        if (left > 0 && left % 3 == 0)
            *to++ = ',';
    }
    *to = '\0';
    return buf;
}

const char *rc_format_seconds(double seconds, char buf[32])
{
    if (seconds >= 3600)
        snprintf(buf, 32, "%dh%02dm", (int)(seconds / 3600), (int)fmod(seconds / 60, 60));
    else if (seconds >= 60)
        snprintf(buf, 32, "%dm%02ds", (int)(seconds / 60), (int)fmod(seconds, 60));
    else if (seconds >= 1)
        snprintf(buf, 32, "%.1f s", seconds);
    else if (seconds >= 1e-3)
        snprintf(buf, 32, "%.3g ms", seconds * 1e3);
    else
        snprintf(buf, 32, "%.3g us", seconds * 1e6);
    return buf;
}

bool rc_parse_int(const char *text, int64_t *out)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno || end == text || *end || isspace((unsigned char)text[0]))
        return false;
    *out = value;
    return true;
}

bool rc_parse_real(const char *text, double *out)
{
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    if (end == text || *end || isspace((unsigned char)text[0]))
        return false;
    *out = value;
    return true;
}

bool rc_parse_bytes(const char *text, int64_t *bytes)
{
    static const struct {
        const char *unit;
        double factor;
    } units[] = {{"", 1},         {"b", 1},        {"kib", 0x1p10}, {"mib", 0x1p20},
                 {"gib", 0x1p30}, {"tib", 0x1p40}, {"kb", 1e3},     {"mb", 1e6},
                 {"gb", 1e9},     {"tb", 1e12}};
    char *end;
    double value = strtod(text, &end);
    if (end == text || !(value >= 0) || !isdigit((unsigned char)text[0]))
        return false;
    while (*end == ' ')
        end++;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcasecmp(end, units[i].unit) != 0)
            continue;
        double total = value * units[i].factor;
        if (!(total < 0x1p63))
            return false;
        *bytes = (int64_t)total;
        return true;
    }
    return false;
}
