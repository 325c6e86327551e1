/* read/safetensors.c — reads the header of a safetensors file, mistrusting every number in it.
 *
 * takes  a path
 * gives  names, types, shapes and places inside the mapping
 * next   train/weights.c copies values into parameters
 */
#include "read/safetensors.h"

#include "base/checksum.h"
#include "base/num.h"
#include "base/text.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* The format's own limit; a header of more is refused by the reference reader too. */
enum { MOST_HEADER_BYTES = 100 * 1000 * 1000 };

static const struct {
    const char *name;
    int64_t bytes;
} types[RC_FILE_DTYPE_COUNT] = {
    {"F32", 4}, {"BF16", 2}, {"F16", 2}, {"I64", 8},     {"I32", 4},
    {"U8", 1},  {"F64", 8},  {"I16", 2}, {"I8", 1},      {"BOOL", 1},
    {"U16", 2}, {"U32", 4},  {"U64", 8}, {"F8_E4M3", 1}, {"F8_E5M2", 1},
};

const char *rc_file_dtype_name(rc_file_dtype dtype)
{
    return types[dtype].name;
}

int64_t rc_file_dtype_bytes(rc_file_dtype dtype)
{
    return types[dtype].bytes;
}

typedef struct header {
    const char *path;
    const unsigned char *data; /* after the JSON */
    int64_t data_bytes;
    rc_arena *mem;
} header;

static rc_code bad(const header *from, const char *name, const char *what, rc_error *err)
{
    char safe[160];
    rc_text_printable(name, strlen(name), safe, sizeof safe);
    return RC_FAIL(err, RC_E_INPUT, (rc_where){.file = from->path}, "tensor %s %s", safe, what);
}

static rc_code read_shape(const header *from, const json_t *shape, rc_file_tensor *tensor,
                          int64_t *n_elem, rc_error *err)
{
    *n_elem = 1;
    if (!json_is_array(shape))
        return bad(from, tensor->name, "has no shape; a list of sizes is needed", err);
    if (json_array_size(shape) > RC_TENSOR_MAX_DIMS)
        return bad(from, tensor->name, "has more than 8 dimensions", err);
    tensor->n_dims = (int)json_array_size(shape);
    for (int i = 0; i < tensor->n_dims; i++) {
        const json_t *dim = json_array_get(shape, (size_t)i);
        tensor->dims[i] = json_integer_value(dim);
        if (!json_is_integer(dim) || tensor->dims[i] < 0)
            return bad(from, tensor->name, "has a size that is no integer at or above 0", err);
        if (!rc_mul(*n_elem, tensor->dims[i], n_elem))
            return bad(from, tensor->name, "has more than 2^63 elements", err);
    }
    return RC_OK;
}

static rc_code read_place(const header *from, const json_t *offsets, int64_t n_bytes,
                          rc_file_tensor *tensor, rc_error *err)
{
    const json_t *begin = json_array_get(offsets, 0), *end = json_array_get(offsets, 1);
    if (!json_is_array(offsets) || json_array_size(offsets) != 2 || !json_is_integer(begin) ||
        !json_is_integer(end))
        return bad(from, tensor->name, "has no data_offsets; [begin, end] is needed", err);
    int64_t first = json_integer_value(begin), after = json_integer_value(end);
    if (first < 0 || after < first || after > from->data_bytes)
        return bad(from, tensor->name, "lies outside the file; it is cut off or damaged", err);
    if (after - first != n_bytes)
        return bad(from, tensor->name, "has a shape that does not match its number of bytes",
                   err);
    tensor->at = from->data + first;
    tensor->n_bytes = n_bytes;
    return RC_OK;
}

static rc_code read_tensor(const header *from, const char *name, const json_t *entry,
                           rc_file_tensor *tensor, rc_error *err)
{
    int64_t n_elem, n_bytes;
    int type = 0;
    RC_TRY(rc_arena_copy(from->mem, name, strlen(name), &tensor->name, err));
    const char *dtype = json_string_value(json_object_get(entry, "dtype"));
    if (!dtype)
        return bad(from, name, "has no dtype", err);
    while (type < RC_FILE_DTYPE_COUNT && strcmp(types[type].name, dtype) != 0)
        type++;
    if (type == RC_FILE_DTYPE_COUNT)
        return bad(from, name, "has a dtype that the format does not know", err);
    tensor->dtype = (rc_file_dtype)type;
    RC_TRY(read_shape(from, json_object_get(entry, "shape"), tensor, &n_elem, err));
    if (!rc_mul(n_elem, types[type].bytes, &n_bytes))
        return bad(from, name, "has more than 2^63 bytes", err);
    return read_place(from, json_object_get(entry, "data_offsets"), n_bytes, tensor, err);
}

static int by_place(const void *a, const void *b)
{
    const rc_file_tensor *x = a, *y = b;
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return x->n_bytes < y->n_bytes ? -1 : x->n_bytes > y->n_bytes; /* empty ones first */
}

/* Every byte of the data belongs to exactly one tensor. */
static rc_code check_cover(const header *from, const rc_safetensors *file, rc_error *err)
{
    const unsigned char *at = from->data;
    for (size_t i = 0; i < file->n; i++) {
        if (file->at[i].at != at)
            return bad(from, file->at[i].name,
                       file->at[i].at < (const void *)at ? "overlaps another one"
                                                         : "leaves a gap before it",
                       err);
        at += file->at[i].n_bytes;
    }
    if (at != from->data + from->data_bytes)
        return RC_FAIL(err, RC_E_INPUT, (rc_where){.file = from->path},
                       "has %" PRId64 " bytes behind its last tensor",
                       (int64_t)(from->data + from->data_bytes - at));
    return RC_OK;
}

/* All tensors have a checksum, or none has: where one is missing, its name was damaged. */
static rc_code read_checksums(const header *from, const json_t *metadata, rc_safetensors *file,
                              rc_error *err)
{
    static const char prefix[] = "crc32.";
    const char *key;
    json_t *value;
    size_t n_keys = 0;
    json_object_foreach((json_t *)(uintptr_t)metadata, key, value) n_keys +=
        strncmp(key, prefix, sizeof prefix - 1) == 0;
    for (size_t i = 0; n_keys > 0 && i < file->n; i++) {
        rc_file_tensor *tensor = &file->at[i];
        rc_mark mark = rc_arena_mark(from->mem);
        RC_TRY(rc_arena_printf(from->mem, &key, err, "%s%s", prefix, tensor->name));
        const char *text = json_string_value(json_object_get(metadata, key));
        rc_arena_rewind(from->mem, mark);
        if (!text)
            return bad(from, tensor->name, "has no checksum and others have", err);
        if (!rc_crc32_parse(text, strlen(text), &tensor->crc32))
            return bad(from, tensor->name, "has a checksum that is not 8 hex digits", err);
        tensor->has_crc32 = true;
        file->n_checked++;
    }
    if (n_keys > file->n_checked)
        return RC_FAIL(err, RC_E_INPUT, (rc_where){.file = from->path},
                       "has %zu checksums for %zu tensors; it is damaged", n_keys, file->n);
    return RC_OK;
}

static rc_code read_tensors(const header *from, json_t *root, rc_safetensors *file,
                            rc_error *err)
{
    const char *name;
    json_t *entry;
    RC_TRY(RC_NEW(from->mem, &file->at, json_object_size(root), err));
    json_object_foreach(root, name, entry)
    {
        if (strcmp(name, "__metadata__") == 0)
            continue;
        if (!json_is_object(entry))
            return bad(from, name, "is no object with dtype, shape and data_offsets", err);
        RC_TRY(read_tensor(from, name, entry, &file->at[file->n], err));
        file->n++;
    }
    if (file->n > 0)
        qsort(file->at, file->n, sizeof *file->at, by_place);
    RC_TRY(read_checksums(from, json_object_get(root, "__metadata__"), file, err));
    return check_cover(from, file, err);
}

static rc_code read_header(rc_arena *mem, rc_safetensors *file, rc_error *err)
{
    const unsigned char *at = file->map.at;
    rc_where where = {.file = file->path};
    uint64_t n = 0;
    if (file->map.n_bytes < 8)
        return RC_FAIL(err, RC_E_INPUT, where, "is too short for a safetensors file");
    for (int i = 0; i < 8; i++)
        n |= (uint64_t)at[i] << (8 * i);
    if (n > MOST_HEADER_BYTES || n > file->map.n_bytes - 8)
        return RC_FAIL(err, RC_E_INPUT, where,
                       "is no safetensors file: its header would have %" PRIu64
                       " bytes, the file has %zu",
                       n, file->map.n_bytes);
    json_error_t why;
    json_t *root = json_loadb((const char *)at + 8, (size_t)n, JSON_REJECT_DUPLICATES, &why);
    if (!root || !json_is_object(root)) {
        char safe[200];
        rc_text_printable(why.text, root ? 0 : strlen(why.text), safe, sizeof safe);
        json_decref(root);
        return RC_FAIL(err, RC_E_INPUT, where, "has a header that is no JSON object: %s", safe);
    }
    header from = {.path = file->path,
                   .data = at + 8 + n,
                   .data_bytes = (int64_t)(file->map.n_bytes - 8 - n),
                   .mem = mem};
    rc_code code = read_tensors(&from, root, file, err);
    json_decref(root);
    return code;
}

rc_code rc_safetensors_open(const char *path, rc_arena *mem, rc_safetensors *out, rc_error *err)
{
    *out = (rc_safetensors){0};
    RC_TRY(rc_arena_copy(mem, path, strlen(path), &out->path, err));
    RC_TRY(rc_map_open(out->path, &out->map, err));
    rc_code code = read_header(mem, out, err);
    if (code != RC_OK)
        rc_safetensors_close(out);
    return code;
}

void rc_safetensors_close(rc_safetensors *file)
{
    if (file->map.at)
        rc_map_close(&file->map);
    file->n = 0;
}

rc_code rc_safetensors_verify(const rc_safetensors *file, int n_threads, rc_file_seal *seal,
                              rc_error *err)
{
    const unsigned char *start = file->map.at;
    int64_t n_data = 0;
    uint32_t all = 0;
    char safe[160], was[RC_CRC32_DIGITS + 1], is[RC_CRC32_DIGITS + 1];
    if (file->n_checked == 0 && !seal)
        return RC_OK;
    for (size_t i = 0; i < file->n; i++)
        n_data += file->at[i].n_bytes;
    if (seal)
        all = rc_crc32(0, start, file->map.n_bytes - (size_t)n_data);
    for (size_t i = 0; i < file->n; i++) {
        const rc_file_tensor *tensor = &file->at[i];
        uint32_t crc32 = rc_crc32_of(tensor->at, (size_t)tensor->n_bytes, n_threads);
        if (tensor->has_crc32 && crc32 != tensor->crc32)
            return RC_FAIL(
                err, RC_E_INPUT, (rc_where){.file = file->path},
                "tensor %s was damaged after it was written: its checksum is %s, that "
                "of its data %s",
                rc_text_printable(tensor->name, strlen(tensor->name), safe, sizeof safe),
                rc_crc32_print(tensor->crc32, was), rc_crc32_print(crc32, is));
        all = rc_crc32_join(all, crc32, tensor->n_bytes);
    }
    if (seal)
        *seal = (rc_file_seal){.n_bytes = (int64_t)file->map.n_bytes, .crc32 = all};
    return RC_OK;
}

const rc_file_tensor *rc_safetensors_find(const rc_safetensors *file, const char *name)
{
    for (size_t i = 0; i < file->n; i++)
        if (strcmp(file->at[i].name, name) == 0)
            return &file->at[i];
    return NULL;
}

/* IEEE half to single: a subnormal half is m * 2^-24, everything else moves its fields. */
static float half_to_f32(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16, exponent = (half >> 10) & 31u;
    uint32_t fraction = half & 1023u, bits;
    float value;
    if (exponent == 0) {
        value = (float)fraction * 0x1p-24f;
        return sign ? -value : value;
    }
    exponent = exponent == 31 ? 255 : exponent + 112;
    bits = sign | exponent << 23 | fraction << 13;
    memcpy(&value, &bits, sizeof value);
    return value;
}

void rc_file_tensor_to_f32(const rc_file_tensor *tensor, int64_t first, int64_t n, float *out)
{
    const unsigned char *at = tensor->at;
    at += first * types[tensor->dtype].bytes;
    if (tensor->dtype == RC_FILE_F32) {
        memcpy(out, at, (size_t)n * sizeof *out);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        uint16_t half;
        memcpy(&half, at + 2 * i, sizeof half);
        uint32_t bits = (uint32_t)half << 16;
        if (tensor->dtype == RC_FILE_BF16)
            memcpy(&out[i], &bits, sizeof bits);
        else
            out[i] = half_to_f32(half);
    }
}
