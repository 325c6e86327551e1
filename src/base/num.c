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

const rc_scale rc_binary_units[RC_N_BINARY] = {{"B", 1},        {"KiB", 0x1p10},
                                               {"MiB", 0x1p20}, {"GiB", 0x1p30},
                                               {"TiB", 0x1p40}, {"PiB", 0x1p50}};
const rc_scale rc_si_units[RC_N_SI] = {{"", 1},     {"K", 1e3},  {"M", 1e6}, {"G", 1e9},
                                       {"T", 1e12}, {"P", 1e15}, {"E", 1e18}};

/* `value` with 3 significant digits and one of `units`, `base` apart. The unit is chosen for the
 * rounded number: 1023.7 KiB is "1.00 MiB", never "1024 KiB". */
static const char *format_scaled(double value, double base, const rc_scale *units,
                                 size_t n_units, char buf[32])
{
    size_t unit = 0;
    while (fabs(value) >= base - 0.5 && unit + 1 < n_units) {
        value /= base;
        unit++;
    }
    double size = fabs(value);
    int digits = unit == 0 || size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
    snprintf(buf, 32, "%.*f %s", digits, value, units[unit].name);
    return buf;
}

const char *rc_format_bytes(int64_t bytes, char buf[32])
{
    return format_scaled((double)bytes, 1024, rc_binary_units, RC_N_BINARY, buf);
}

const char *rc_format_si(double value, char buf[32])
{
    return format_scaled(value, 1000, rc_si_units, RC_N_SI, buf);
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

/* "GB" of the prefix G; the case does not matter. */
static bool is_si_bytes(const char *text, const rc_scale *unit)
{
    size_t n = strlen(unit->name);
    return strncasecmp(text, unit->name, n) == 0 && strcasecmp(text + n, "b") == 0;
}

/* Bytes of the unit that is the whole text; none is bytes. 0 when it is none. */
static int64_t find_unit(const char *text)
{
    if (*text == '\0')
        return 1;
    for (size_t i = 0; i < RC_N_BINARY; i++)
        if (strcasecmp(text, rc_binary_units[i].name) == 0)
            return (int64_t)rc_binary_units[i].factor;
    for (size_t i = 0; i < RC_N_SI; i++)
        if (is_si_bytes(text, &rc_si_units[i]))
            return (int64_t)rc_si_units[i].factor;
    return 0;
}

bool rc_parse_bytes(const char *text, int64_t *bytes)
{
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
    int64_t unit = find_unit(end);
    if (is_whole)
        return unit > 0 && rc_mul(whole, unit, bytes);
    double total = value * (double)unit;
    if (unit == 0 || !(total < 0x1p63))
        return false;
    *bytes = (int64_t)total;
    return true;
}

static bool starts_with(const char *at, const char *limit, const char *name, size_t n)
{
    return (size_t)(limit - at) >= n && memcmp(at, name, n) == 0;
}

double rc_find_printed_unit(const char *at, const char *limit, const char **end)
{
    for (size_t i = RC_N_BINARY; i-- > 0;) {
        const char *name = rc_binary_units[i].name;
        size_t n = strlen(name);
        bool is_short =
            n == 3 && starts_with(at, limit, name, 1) && starts_with(at + 1, limit, "B", 1);
        if (!is_short && !starts_with(at, limit, name, n))
            continue;
        *end = at + (is_short ? 2 : n);
        return rc_binary_units[i].factor;
    }
    static const char *const words[] = {"bytes", "byte"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (starts_with(at, limit, words[i], strlen(words[i]))) {
            *end = at + strlen(words[i]);
            return 1;
        }
    return 0;
}
