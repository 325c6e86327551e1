/* unpack.c — bytes of a file, gzip and zstd undone on the way.
 *
 * takes  a path, standard input or memory
 * gives  plain bytes in the sizes the caller asks for; members or frames one after another are
 *        one stream, as the command-line tools treat them
 */
#define _POSIX_C_SOURCE 200809L
#include "read/unpack.h"

#include "base/file.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>
#include <zstd.h>

enum { PACKED_ROOM_BYTES = 1 << 16, SNIFF_BYTES = 4 };

struct rc_unpack {
    const char *path; /* for messages */
    FILE *file;       /* NULL when reading memory */
    const unsigned char *bytes;
    size_t n_bytes, at_byte;
    int64_t total_bytes;    /* -1 unknown */
    int64_t consumed_bytes; /* from the file */
    rc_packing packing;

    unsigned char *packed; /* [PACKED_ROOM_BYTES] what was read and not yet undone */
    size_t n_packed, at_packed;
    bool is_file_end;
    bool is_inside; /* a gzip member or zstd frame has begun and not ended */

    z_stream gzip;
    bool has_gzip;
    ZSTD_DStream *zstd;
};

static rc_where here(const rc_unpack *from)
{
    return (rc_where){.file = from->path};
}

/* Raw bytes; fewer than `room` only at the end. */
static rc_code read_raw(rc_unpack *from, unsigned char *to, size_t room, size_t *n,
                        rc_error *err)
{
    if (from->file) {
        *n = fread(to, 1, room, from->file);
        if (*n < room && ferror(from->file))
            return RC_FAIL(err, RC_E_IO, here(from), "cannot read: %s", strerror(errno));
    } else {
        *n = from->n_bytes - from->at_byte < room ? from->n_bytes - from->at_byte : room;
        if (*n)
            memcpy(to, from->bytes + from->at_byte, *n);
        from->at_byte += *n;
    }
    from->consumed_bytes += (int64_t)*n;
    if (*n < room)
        from->is_file_end = true;
    return RC_OK;
}

static rc_code refill(rc_unpack *from, rc_error *err)
{
    from->at_packed = 0;
    return read_raw(from, from->packed, PACKED_ROOM_BYTES, &from->n_packed, err);
}

static rc_code start_unpacking(rc_unpack *from, rc_error *err)
{
    const unsigned char *b = from->packed;
    if (from->n_packed >= 2 && b[0] == 0x1F && b[1] == 0x8B) {
        from->packing = RC_PACKING_GZIP;
        from->has_gzip = inflateInit2(&from->gzip, 15 + 16) == Z_OK;
        if (!from->has_gzip)
            return RC_FAIL(err, RC_E_MEMORY, here(from), "no memory to unpack gzip");
    } else if (from->n_packed >= 4 && memcmp(b, "\x28\xB5\x2F\xFD", 4) == 0) {
        from->packing = RC_PACKING_ZSTD;
        from->zstd = ZSTD_createDStream();
        if (!from->zstd)
            return RC_FAIL(err, RC_E_MEMORY, here(from), "no memory to unpack zstd");
    }
    if (from->packing != RC_PACKING_NONE)
        from->total_bytes = -1;
    return RC_OK;
}

static rc_code open_file(rc_unpack *from, rc_error *err)
{
    if (strcmp(from->path, "-") == 0) {
        from->path = "standard input";
        from->file = stdin;
        return RC_OK;
    }
    RC_TRY(rc_stream_open(from->path, "rb", &from->file, err));
    /* large reads go straight to the caller's buffer */
    setvbuf(from->file, NULL, _IONBF, 0);
    struct stat info;
    if (fstat(fileno(from->file), &info) == 0 && S_ISREG(info.st_mode))
        from->total_bytes = info.st_size;
    return RC_OK;
}

static rc_code open_any(rc_unpack *from, rc_arena *mem, rc_error *err)
{
    RC_TRY(RC_NEW(mem, &from->packed, PACKED_ROOM_BYTES, err));
    if (!from->bytes)
        RC_TRY(open_file(from, err));
    RC_TRY(refill(from, err));
    return start_unpacking(from, err);
}

static rc_code finish_open(rc_unpack *from, rc_arena *mem, rc_unpack **out, rc_error *err)
{
    rc_code code = open_any(from, mem, err);
    if (code != RC_OK) {
        rc_unpack_close(from);
        return code;
    }
    *out = from;
    return RC_OK;
}

rc_code rc_unpack_open(const char *path, rc_arena *mem, rc_unpack **out, rc_error *err)
{
    *out = NULL;
    rc_unpack *from;
    RC_TRY(RC_NEW(mem, &from, 1, err));
    from->path = path;
    from->total_bytes = -1;
    return finish_open(from, mem, out, err);
}

rc_code rc_unpack_open_bytes(const void *bytes, size_t n_bytes, rc_arena *mem, rc_unpack **out,
                             rc_error *err)
{
    *out = NULL;
    rc_unpack *from;
    RC_TRY(RC_NEW(mem, &from, 1, err));
    from->path = "memory";
    from->bytes = bytes;
    from->n_bytes = n_bytes;
    from->total_bytes = (int64_t)n_bytes;
    return finish_open(from, mem, out, err);
}

void rc_unpack_close(rc_unpack *from)
{
    if (!from)
        return;
    if (from->has_gzip)
        inflateEnd(&from->gzip);
    from->has_gzip = false;
    ZSTD_freeDStream(from->zstd);
    from->zstd = NULL;
    if (from->file && from->file != stdin)
        fclose(from->file);
    from->file = NULL;
}

/* What was read while looking at the first bytes comes first. */
static rc_code read_plain(rc_unpack *from, unsigned char *to, size_t room, size_t *n,
                          rc_error *err)
{
    size_t kept = from->n_packed - from->at_packed;
    *n = kept < room ? kept : room;
    if (*n)
        memcpy(to, from->packed + from->at_packed, *n);
    from->at_packed += *n;
    if (*n == room || from->is_file_end)
        return RC_OK;
    size_t more;
    RC_TRY(read_raw(from, to + *n, room - *n, &more, err));
    *n += more;
    return RC_OK;
}

/* One step of inflate. A gzip member that ends may be followed by another. */
static rc_code step_gzip(rc_unpack *from, unsigned char *to, size_t room, size_t *n,
                         rc_error *err)
{
    z_stream *z = &from->gzip;
    z->next_in = from->packed + from->at_packed;
    z->avail_in = (uInt)(from->n_packed - from->at_packed);
    z->next_out = to;
    z->avail_out = room > UINT_MAX ? UINT_MAX : (uInt)room;
    uInt room_in = z->avail_in, room_out = z->avail_out;
    if (!from->is_inside && room_in >= 2 &&
        (from->packed[from->at_packed] != 0x1F || from->packed[from->at_packed + 1] != 0x8B)) {
        /* what follows the last member is padding, as gzip itself treats it */
        from->at_packed = from->n_packed;
        from->is_file_end = true;
        *n = 0;
        return RC_OK;
    }
    from->is_inside = true;
    int result = inflate(z, Z_NO_FLUSH);
    from->at_packed += room_in - z->avail_in;
    *n = room_out - z->avail_out;
    if (result == Z_STREAM_END) {
        from->is_inside = false;
        return inflateReset(z) == Z_OK
                   ? RC_OK
                   : RC_FAIL(err, RC_E_BUG, here(from), "inflateReset failed");
    }
    if (result != Z_OK && result != Z_BUF_ERROR)
        return RC_FAIL(err, RC_E_INPUT, here(from), "damaged gzip data near packed byte %lld",
                       (long long)from->consumed_bytes);
    return RC_OK;
}

static rc_code step_zstd(rc_unpack *from, unsigned char *to, size_t room, size_t *n,
                         rc_error *err)
{
    ZSTD_inBuffer in = {from->packed, from->n_packed, from->at_packed};
    ZSTD_outBuffer out = {to, room, 0};
    size_t result = ZSTD_decompressStream(from->zstd, &out, &in);
    from->at_packed = in.pos;
    *n = out.pos;
    if (ZSTD_isError(result))
        return RC_FAIL(err, RC_E_INPUT, here(from), "damaged zstd data: %s",
                       ZSTD_getErrorName(result));
    from->is_inside = result != 0;
    return RC_OK;
}

static rc_code read_packed(rc_unpack *from, unsigned char *to, size_t room, size_t *n,
                           rc_error *err)
{
    while (*n < room) {
        if (from->at_packed == from->n_packed && !from->is_file_end)
            RC_TRY(refill(from, err));
        bool had_input = from->at_packed < from->n_packed;
        if (!had_input && !from->is_inside)
            return RC_OK;
        size_t got;
        if (from->packing == RC_PACKING_GZIP)
            RC_TRY(step_gzip(from, to + *n, room - *n, &got, err));
        else
            RC_TRY(step_zstd(from, to + *n, room - *n, &got, err));
        *n += got;
        if (!had_input && got == 0)
            return RC_FAIL(err, RC_E_INPUT, here(from),
                           "the %s data ends early: the file is cut off",
                           from->packing == RC_PACKING_GZIP ? "gzip" : "zstd");
    }
    return RC_OK;
}

rc_code rc_unpack_read(rc_unpack *from, unsigned char *to, size_t room, size_t *n,
                       rc_error *err)
{
    *n = 0;
    if (from->packing == RC_PACKING_NONE)
        return read_plain(from, to, room, n, err);
    return read_packed(from, to, room, n, err);
}

rc_packing rc_unpack_packing(const rc_unpack *from)
{
    return from->packing;
}

int64_t rc_unpack_total_bytes(const rc_unpack *from)
{
    return from->total_bytes;
}

int64_t rc_unpack_consumed_bytes(const rc_unpack *from)
{
    return from->consumed_bytes;
}
