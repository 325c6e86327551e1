/* source.c — a stranger's text: no NULs, in UTF-8, with a position for every byte.
 *
 * takes  bytes of a stranger
 * gives  rc_source
 * next   the readers of read/ and args/
 */
#include "base/source.h"

#include "base/text.h"

#include <string.h>

static rc_code check_text(rc_source *source, rc_error *err)
{
    const unsigned char *at = (const unsigned char *)source->bytes;
    size_t n = source->n_bytes;
    if (n >= 2 && ((at[0] == 0xFF && at[1] == 0xFE) || (at[0] == 0xFE && at[1] == 0xFF)))
        return RC_FAIL(err, RC_E_INPUT, rc_source_where(source, 0, 2),
                       "the file is UTF-16; save it as UTF-8");
    for (size_t i = 0; i < n;) {
        size_t length = rc_text_utf8_length(at + i, n - i);
        if (i < 2 && at[i] == 0)
            return RC_FAIL(err, RC_E_INPUT, rc_source_where(source, i, 1),
                           "the file looks like UTF-16; save it as UTF-8");
        if (at[i] == 0)
            return RC_FAIL(err, RC_E_INPUT, rc_source_where(source, i, 1),
                           "a NUL byte; a configuration is text in UTF-8");
        if (!length)
            return RC_FAIL(err, RC_E_INPUT, rc_source_where(source, i, 1),
                           "byte 0x%02X is not UTF-8 here; save the file as UTF-8", at[i]);
        i += length;
    }
    return RC_OK;
}

static rc_code copy_source(const char *path, const char *bytes, size_t n_bytes, rc_arena *mem,
                           rc_source *out, rc_error *err)
{
    *out = (rc_source){.line = 1};
    if (path)
        RC_TRY(rc_arena_copy(mem, path, strlen(path), &out->path, err));
    if (n_bytes > RC_READ_MAX_BYTES)
        return RC_FAIL(err, RC_E_RANGE, ((rc_where){.file = out->path}),
                       "%zu bytes; a configuration has at most %d", n_bytes, RC_READ_MAX_BYTES);
    RC_TRY(rc_arena_copy(mem, bytes, n_bytes, &out->bytes, err));
    out->n_bytes = n_bytes;
    return RC_OK;
}

rc_code rc_source_open(const char *path, const char *bytes, size_t n_bytes, rc_arena *mem,
                       rc_source *out, rc_error *err)
{
    RC_TRY(copy_source(path, bytes, n_bytes, mem, out, err));
    return check_text(out, err);
}

rc_code rc_source_open_log(const char *path, const char *bytes, size_t n_bytes, rc_arena *mem,
                           rc_source *out, rc_error *err)
{
    char *clean;
    RC_TRY(RC_NEW(mem, &clean, n_bytes + 1, err));
    for (size_t i = 0; i < n_bytes;) {
        size_t length = rc_text_utf8_length((const unsigned char *)bytes + i, n_bytes - i);
        if (length && bytes[i])
            memcpy(clean + i, bytes + i, length);
        else
            clean[i] = '?';
        i += length ? length : 1;
    }
    return copy_source(path, clean, n_bytes, mem, out, err);
}

size_t rc_source_start(const rc_source *source)
{
    return strncmp(source->bytes, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
}

static void move_cursor(rc_source *source, size_t offset)
{
    const char *bytes = source->bytes;
    while (source->line_start > offset) {
        source->line--;
        source->line_start--; /* onto the LF that ends the line before */
        while (source->line_start > 0 && bytes[source->line_start - 1] != '\n')
            source->line_start--;
    }
    size_t from = source->at < source->line_start ? source->line_start : source->at;
    while (from < offset) {
        const char *end = memchr(bytes + from, '\n', offset - from);
        if (!end)
            break;
        from = (size_t)(end - bytes) + 1;
        source->line_start = from;
        source->line++;
    }
    source->at = offset;
}

rc_where rc_source_where(rc_source *source, size_t offset, size_t n_cols)
{
    if (offset > source->n_bytes)
        offset = source->n_bytes;
    move_cursor(source, offset);
    size_t col = offset - source->line_start + 1;
    const char *line = source->bytes + source->line_start;
    return (rc_where){.file = source->path,
                      .line = source->line,
                      .col = (int)col,
                      .n_cols = (int)n_cols,
                      .text = line};
}
