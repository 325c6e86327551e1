/* read/safetensors_write.c — the writing half, beside the reader that must accept it. */
#include "read/safetensors.h"

#include "base/checksum.h"
#include "base/num.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

static rc_code count_bytes(const rc_file_tensor *tensor, int64_t *n_bytes, rc_error *err)
{
    *n_bytes = rc_file_dtype_bytes(tensor->dtype);
    for (int i = 0; i < tensor->n_dims; i++)
        if (!rc_mul(*n_bytes, tensor->dims[i], n_bytes))
            return RC_FAIL(err, RC_E_RANGE, RC_NOWHERE, "tensor %s passes 2^63 bytes",
                           tensor->name);
    return RC_OK;
}

static json_t *describe(const rc_file_tensor *tensor, int64_t first, int64_t after)
{
    json_t *shape = json_array();
    for (int i = 0; i < tensor->n_dims; i++)
        json_array_append_new(shape, json_integer(tensor->dims[i]));
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", rc_file_dtype_name(tensor->dtype),
                     "shape", shape, "data_offsets", (json_int_t)first, (json_int_t)after);
}

/* What is written, and what was found out about it on the way. */
typedef struct writing {
    const rc_file_content *content;
    int64_t *n_bytes; /* [n_tensors] */
    uint32_t *crc32;  /* [n_tensors] */
    char *header;     /* with its length in front and its padding behind */
    size_t header_bytes;
    rc_arena *tmp;
} writing;

/* The checksums stand in the header, which comes first; so the data is read once for them alone,
 * by all threads, and not while it is written. */
static rc_code measure(writing *w, int n_threads, rc_error *err)
{
    size_t n = w->content->n_tensors;
    RC_TRY(RC_NEW(w->tmp, &w->n_bytes, n, err));
    RC_TRY(RC_NEW(w->tmp, &w->crc32, n, err));
    for (size_t i = 0; i < n; i++) {
        const rc_file_tensor *tensor = &w->content->tensors[i];
        RC_TRY(count_bytes(tensor, &w->n_bytes[i], err));
        w->crc32[i] = rc_crc32_of(tensor->at, (size_t)w->n_bytes[i], n_threads);
    }
    return RC_OK;
}

static rc_code make_metadata(const writing *w, json_t *pairs, rc_error *err)
{
    const rc_file_content *content = w->content;
    char digits[RC_CRC32_DIGITS + 1];
    const char *key;
    bool is_made = true;
    for (size_t i = 0; i < content->n_metadata; i++)
        is_made &= json_object_set_new(pairs, content->metadata[i].key,
                                       json_string(content->metadata[i].value)) == 0;
    for (size_t i = 0; i < content->n_tensors; i++) {
        RC_TRY(rc_arena_printf(w->tmp, &key, err, "crc32.%s", content->tensors[i].name));
        is_made &= json_object_set_new(pairs, key,
                                       json_string(rc_crc32_print(w->crc32[i], digits))) == 0;
    }
    return is_made ? RC_OK
                   : RC_FAIL(err, RC_E_MEMORY, RC_NOWHERE,
                             "no memory for the header of a checkpoint");
}

static rc_code make_header(const writing *w, json_t *root, rc_error *err)
{
    json_t *pairs = json_object();
    int64_t at = 0;
    rc_code code = make_metadata(w, pairs, err);
    bool is_made = json_object_set_new(root, "__metadata__", pairs) == 0;
    for (size_t i = 0; i < w->content->n_tensors; i++) {
        const rc_file_tensor *tensor = &w->content->tensors[i];
        is_made &= json_object_set_new(root, tensor->name,
                                       describe(tensor, at, at + w->n_bytes[i])) == 0;
        at += w->n_bytes[i];
    }
    if (code == RC_OK && !is_made)
        return RC_FAIL(err, RC_E_MEMORY, RC_NOWHERE,
                       "no memory for the header of a checkpoint");
    return code;
}

/* Padded with spaces, so that the data starts at a multiple of 8 bytes. */
static rc_code print_header(writing *w, rc_error *err)
{
    json_t *root = json_object();
    rc_code code = make_header(w, root, err);
    size_t n = code == RC_OK ? json_dumpb(root, NULL, 0, JSON_COMPACT) : 0;
    size_t n_padded = (n + 7) / 8 * 8;
    w->header_bytes = 8 + n_padded;
    if (code == RC_OK)
        code = RC_NEW(w->tmp, &w->header, w->header_bytes, err);
    if (code == RC_OK && (n == 0 || json_dumpb(root, w->header + 8, n, JSON_COMPACT) != n))
        code =
            RC_FAIL(err, RC_E_MEMORY, RC_NOWHERE, "no memory for the header of a checkpoint");
    json_decref(root);
    if (code != RC_OK)
        return code;
    for (int i = 0; i < 8; i++)
        w->header[i] = (char)(unsigned char)((uint64_t)n_padded >> (8 * i));
    memset(w->header + 8 + n, ' ', n_padded - n);
    return RC_OK;
}

static rc_code write_all(const writing *w, rc_out_file *file, rc_error *err)
{
    RC_TRY(rc_out_file_write(file, w->header, w->header_bytes, err));
    for (size_t i = 0; i < w->content->n_tensors; i++)
        RC_TRY(rc_out_file_write(file, w->content->tensors[i].at, (size_t)w->n_bytes[i], err));
    return RC_OK;
}

static rc_file_seal seal_of(const writing *w)
{
    rc_file_seal seal = {.n_bytes = (int64_t)w->header_bytes,
                         .crc32 = rc_crc32(0, w->header, w->header_bytes)};
    for (size_t i = 0; i < w->content->n_tensors; i++) {
        seal.crc32 = rc_crc32_join(seal.crc32, w->crc32[i], w->n_bytes[i]);
        seal.n_bytes += w->n_bytes[i];
    }
    return seal;
}

static rc_code write_file(const char *path, const rc_file_content *content, int n_threads,
                          rc_file_seal *seal, rc_arena *tmp, rc_error *err)
{
    writing w = {.content = content, .tmp = tmp};
    rc_out_file file;
    RC_TRY(measure(&w, n_threads, err));
    RC_TRY(print_header(&w, err));
    RC_TRY(rc_out_file_open(path, &file, err));
    rc_code code = write_all(&w, &file, err);
    *seal = seal_of(&w);
    if (code == RC_OK)
        return rc_out_file_commit(&file, err);
    rc_out_file_abort(&file);
    return code;
}

rc_code rc_safetensors_write_sealed(const char *path, const rc_file_content *content,
                                    int n_threads, rc_file_seal *seal, rc_arena *tmp,
                                    rc_error *err)
{
    rc_mark mark = rc_arena_mark(tmp);
    rc_code code = write_file(path, content, n_threads, seal, tmp, err);
    rc_arena_rewind(tmp, mark);
    return code;
}

rc_code rc_safetensors_write(const char *path, const rc_file_content *content, rc_arena *tmp,
                             rc_error *err)
{
    rc_file_seal seal;
    return rc_safetensors_write_sealed(path, content, 1, &seal, tmp, err);
}
