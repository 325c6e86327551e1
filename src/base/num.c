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

/* `value` with 3 significant digits and one of `units`, `base` apart. The unit is chosen for the
 * rounded number: 1023.7 KiB is "1.00 MiB", never "1024 KiB". */
static const char *format_scaled(double value, double base, const char *const *units,
                                 size_t n_units, char buf[32])
{
    size_t unit = 0;
    while (fabs(value) >= base - 0.5 && unit + 1 < n_units) {
        value /= base;
        unit++;
    }
    double size = fabs(value);
    int digits = unit == 0 || size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
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
    double size = fabs(seconds);
    long whole = size < 1e15 ? lround(size) : 0;
    const char *sign = seconds < 0 ? "-" : "";
    if (!(size < 1e15))
        snprintf(buf, 32, "%g s", seconds);
    else if (whole >= 3600)
        snprintf(buf, 32, "%s%ldh%02ldm", sign, whole / 3600, whole / 60 % 60);
    else if (size >= 59.95)
        snprintf(buf, 32, "%s%ldm%02lds", sign, whole / 60, whole % 60);
    else if (size >= 0.9995)
        snprintf(buf, 32, "%.1f s", seconds);
    else if (size >= 0.9995e-3)
        snprintf(buf, 32, "%.3g ms", seconds * 1e3);
    else
        snprintf(buf, 32, "%.3g us", seconds * 1e6);
    return buf;
}

const char *rc_format_exact(double value, char buf[40])
{
    double back;
    if (value == 0 && signbit(value)) {
        snprintf(buf, 40, "-0.0"); /* "-0" would be read as the integer */
        return buf;
    }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(buf, 40, "%.*g", digits, value);
        if (rc_parse_real(buf, &back) && back == value)
            break;
    }
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
        int64_t factor;
    } units[] = {{"", 1},
                 {"b", 1},
                 {"kib", 1LL << 10},
                 {"mib", 1LL << 20},
                 {"gib", 1LL << 30},
                 {"tib", 1LL << 40},
                 {"kb", 1000},
                 {"mb", 1000000},
                 {"gb", 1000000000},
                 {"tb", 1000000000000}};
    char *end;
    double value = strtod(text, &end);
    size_t n_digits = strspn(text, "0123456789");
    if (n_digits == 0 || !(value >= 0))
        return false;
    /* Whole numbers do not pass through a double, which holds 53 bits only. */
    bool is_whole = end == text + n_digits;
    errno = 0;
    int64_t whole = strtoll(text, NULL, 10);
    if (is_whole && errno)
        return false;
    while (*end == ' ')
        end++;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcasecmp(end, units[i].unit) != 0)
            continue;
        if (is_whole)
            return rc_mul(whole, units[i].factor, bytes);
        double total = value * (double)units[i].factor;
        if (!(total < 0x1p63))
            return false;
        *bytes = (int64_t)total;
        return true;
    }
    return false;
}
