/* text.c — growing strings in an arena, and comparing names people typed. */
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static rc_code text_reserve(rc_text *text, size_t n_more, rc_error *err)
{
    size_t needed = text->n + n_more + 1;
    if (needed <= text->n_room)
        return RC_OK;
    size_t room = text->n_room ? text->n_room : 256;
    while (room < needed)
        room *= 2;
    char *bytes;
    RC_TRY(RC_NEW(text->mem, &bytes, room, err));
    if (text->n)
        memcpy(bytes, text->at, text->n);
    text->at = bytes;
    text->n_room = room;
    return RC_OK;
}

rc_code rc_text_add(rc_text *text, const char *bytes, size_t n, rc_error *err)
{
    RC_TRY(text_reserve(text, n, err));
    if (n)
        memcpy(text->at + text->n, bytes, n);
    text->n += n;
    text->at[text->n] = '\0';
    return RC_OK;
}

rc_code rc_text_printf(rc_text *text, rc_error *err, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (n < 0)
        return RC_FAIL(err, RC_E_BUG, RC_NOWHERE, "bad format string");
    RC_TRY(text_reserve(text, (size_t)n, err));
    va_start(args, fmt);
    vsnprintf(text->at + text->n, (size_t)n + 1, fmt, args);
    va_end(args);
    text->n += (size_t)n;
    return RC_OK;
}

const char *rc_text_last_part(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot ? dot + 1 : path;
}

static size_t min3(size_t a, size_t b, size_t c)
{
    size_t ab = a < b ? a : b;
    return ab < c ? ab : c;
}

enum { MOST_LETTERS = 128 };

/* One row of the classic table, i letters of `a` used, in the band of `most` beside the diagonal; gives
 * the row's least value. rows[0] is the row to fill, rows[1] the one above, rows[2] above that. */
static size_t fill_row(size_t *const rows[3], const char *a, const char *b, size_t i,
                       size_t most)
{
    size_t nb = strlen(b), first = i > most ? i - most : 1;
    size_t last = i + most < nb ? i + most : nb;
    size_t *now = rows[0], *above = rows[1], *above2 = rows[2];
    size_t least = now[first - 1] = first > 1 ? most + 1 : i;
    for (size_t j = first; j <= last; j++) {
        size_t up = j < i + most ? above[j] + 1 : most + 1;
        bool is_swap = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
        now[j] = min3(up, now[j - 1] + 1, above[j - 1] + (a[i - 1] != b[j - 1]));
        if (is_swap && above2[j - 2] + 1 < now[j])
            now[j] = above2[j - 2] + 1;
        least = now[j] < least ? now[j] : least;
    }
    return least;
}

/* A row without a value up to `most` ends it. Names longer than the rows are never near anything. */
size_t rc_text_distance_within(const char *a, const char *b, size_t most)
{
    size_t row[3][MOST_LETTERS + 1] = {{0}};
    while (*a && *a == *b) /* a common start costs nothing */
        a++, b++;
    size_t na = strlen(a), nb = strlen(b);
    if (na > MOST_LETTERS || nb > MOST_LETTERS)
        return MOST_LETTERS;
    if ((na > nb ? na - nb : nb - na) > most)
        return most + 1;
    for (size_t j = 0; j <= nb; j++)
        row[0][j] = j;
    for (size_t i = 1; i <= na; i++) {
        size_t *const rows[3] = {row[i % 3], row[(i - 1) % 3], row[(i + 1) % 3]};
        if (fill_row(rows, a, b, i, most) > most)
            return most + 1;
    }
    size_t distance = row[na % 3][nb];
    return distance <= most ? distance : most + 1;
}

size_t rc_text_distance(const char *a, const char *b)
{
    return rc_text_distance_within(a, b, MOST_LETTERS);
}

const char *rc_text_nearest(const char *typed, const char *const *names, size_t n)
{
    const char *best = NULL;
    size_t best_distance = strlen(typed) / 3 + 1; /* a third of the letters may be wrong */
    for (size_t i = 0; i < n; i++) {
        size_t distance = rc_text_distance(typed, names[i]);
        if (distance <= best_distance && (!best || distance < best_distance)) {
            best = names[i];
            best_distance = distance;
        }
    }
    return best;
}

/* The first byte gives the length and the least and largest second byte (RFC 3629, section 4): that
 * excludes overlong forms, surrogates and what lies past U+10FFFF. */
size_t rc_text_utf8_length(const unsigned char *at, size_t n)
{
    static const struct {
        unsigned char first, last, second_low, second_high;
        size_t length;
    } rows[] = {{0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3},
                {0xE1, 0xEC, 0x80, 0xBF, 3}, {0xED, 0xED, 0x80, 0x9F, 3},
                {0xEE, 0xEF, 0x80, 0xBF, 3}, {0xF0, 0xF0, 0x90, 0xBF, 4},
                {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4}};
    if (n == 0 || at[0] < 0x80)
        return n > 0;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        if (at[0] < rows[r].first || at[0] > rows[r].last)
            continue;
        if (rows[r].length > n || at[1] < rows[r].second_low || at[1] > rows[r].second_high)
            return 0;
        for (size_t i = 2; i < rows[r].length; i++)
            if ((at[i] & 0xC0) != 0x80)
                return 0;
        return rows[r].length;
    }
    return 0;
}

size_t rc_text_printable_length(const unsigned char *at, size_t n)
{
    bool is_c1 = n >= 2 && at[0] == 0xC2 && at[1] < 0xA0;
    if (n == 0 || at[0] < 0x20 || at[0] == 0x7F || is_c1)
        return 0;
    return rc_text_utf8_length(at, n);
}

const char *rc_text_printable(const char *bytes, size_t n, char *buf, size_t room)
{
    const unsigned char *at = (const unsigned char *)bytes;
    size_t used = 0;
    for (size_t i = 0; i < n;) {
        size_t length = rc_text_printable_length(at + i, n - i);
        if (used + (length ? length : 4) + 1 > room)
            break;
        if (length) {
            memcpy(buf + used, at + i, length);
            used += length;
            i += length;
        } else {
            used += (size_t)snprintf(buf + used, room - used, "\\x%02X", at[i]);
            i++;
        }
    }
    if (room)
        buf[used] = '\0';
    return buf;
}

static uint32_t decode_utf8(const unsigned char *at, size_t length)
{
    if (length == 1)
        return at[0];
    uint32_t point = at[0] & (0x7Fu >> length);
    for (size_t i = 1; i < length; i++)
        point = point << 6 | (at[i] & 0x3Fu);
    return point;
}

typedef struct code_range {
    uint32_t first, last;
} code_range;

static bool is_within(uint32_t point, const code_range *ranges, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (point >= ranges[i].first && point <= ranges[i].last)
            return true;
    return false;
}

/* The blocks of Unicode that matter in practice (Unicode 15, EastAsianWidth W and F, and the
 * general categories Mn and Cf), not every single code point. */
size_t rc_text_width(const char *text)
{
    static const code_range none[] = {{0x0300, 0x036F}, {0x0483, 0x0489}, {0x0591, 0x05BD},
                                      {0x0610, 0x061A}, {0x064B, 0x065F}, {0x1AB0, 0x1AFF},
                                      {0x1DC0, 0x1DFF}, {0x200B, 0x200F}, {0x2060, 0x2064},
                                      {0x20D0, 0x20FF}, {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F},
                                      {0xFEFF, 0xFEFF}};
    static const code_range wide[] = {
        {0x1100, 0x115F},  {0x2E80, 0x303E},   {0x3041, 0xA4CF},   {0xA960, 0xA97F},
        {0xAC00, 0xD7A3},  {0xF900, 0xFAFF},   {0xFE30, 0xFE6F},   {0xFF00, 0xFF60},
        {0xFFE0, 0xFFE6},  {0x1F300, 0x1F64F}, {0x1F680, 0x1F6FF}, {0x1F900, 0x1F9FF},
        {0x20000, 0x3FFFD}};
    const unsigned char *at = (const unsigned char *)text;
    size_t n = strlen(text), width = 0;
    for (size_t i = 0; i < n;) {
        size_t length = rc_text_printable_length(at + i, n - i);
        uint32_t point = decode_utf8(at + i, length ? length : 1);
        if (is_within(point, wide, sizeof wide / sizeof *wide))
            width += 2;
        else if (!is_within(point, none, sizeof none / sizeof *none))
            width++;
        i += length ? length : 1;
    }
    return width;
}

static void write_escaped(unsigned char c, FILE *to)
{
    static const char from[] = "\"\\\b\f\n\r\t", names[] = "\"\\bfnrt";
    const char *at = c ? strchr(from, c) : NULL;
    if (at)
        fprintf(to, "\\%c", names[at - from]);
    else
        fprintf(to, "\\u%04x", c);
}

void rc_json_write_string(const char *text, FILE *to)
{
    const unsigned char *at = (const unsigned char *)text;
    size_t n = strlen(text);
    fputc('"', to);
    for (size_t i = 0; i < n;) {
        size_t length = at[i] < 0x80 ? 1 : rc_text_printable_length(at + i, n - i);
        if (at[i] < 0x20 || at[i] == 0x7F || at[i] == '"' || at[i] == '\\')
            write_escaped(at[i], to);
        else if (length)
            fwrite(at + i, 1, length, to);
        else
            fputs("\\ufffd", to);
        i += length ? length : 1;
    }
    fputc('"', to);
}
