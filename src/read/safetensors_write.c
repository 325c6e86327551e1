/* read/safetensors_write.c — the writing half, beside the reader that must accept it. */
#include "read/safetensors.h"

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

static rc_code make_header(const rc_file_content *content, json_t *root, rc_error *err)
{
    json_t *pairs = json_object();
    int64_t at = 0, n_bytes;
    bool is_made = true;
    for (size_t i = 0; i < content->n_metadata; i++)
        is_made &= json_object_set_new(pairs, content->metadata[i].key,
                                       json_string(content->metadata[i].value)) == 0;
    is_made &= json_object_set_new(root, "__metadata__", pairs) == 0;
    for (size_t i = 0; i < content->n_tensors; i++) {
        const rc_file_tensor *tensor = &content->tensors[i];
        RC_TRY(count_bytes(tensor, &n_bytes, err));
        is_made &=
            json_object_set_new(root, tensor->name, describe(tensor, at, at + n_bytes)) == 0;
        at += n_bytes;
    }
    if (!is_made)
        return RC_FAIL(err, RC_E_MEMORY, RC_NOWHERE,
                       "no memory for the header of a checkpoint");
    return RC_OK;
}

/* The JSON as text in `tmp`. */
static rc_code print_header(const rc_file_content *content, rc_arena *tmp, const char **out,
                            rc_error *err)
{
    json_t *root = json_object();
    char *text = NULL;
    rc_code code = make_header(content, root, err);
    size_t n = code == RC_OK ? json_dumpb(root, NULL, 0, JSON_COMPACT) : 0;
    if (code == RC_OK)
        code = RC_NEW(tmp, &text, n + 1, err);
    if (code == RC_OK && (n == 0 || json_dumpb(root, text, n, JSON_COMPACT) != n))
        code =
            RC_FAIL(err, RC_E_MEMORY, RC_NOWHERE, "no memory for the header of a checkpoint");
    json_decref(root);
    *out = text;
    return code;
}

/* The header is padded with spaces, so that the data starts at a multiple of 8 bytes. */
static rc_code write_all(FILE *to, const char *header, const rc_file_content *content,
                         rc_error *err)
{
    size_t n_header = strlen(header), n_padded = (n_header + 7) / 8 * 8;
    unsigned char length[8];
    for (int i = 0; i < 8; i++)
        length[i] = (unsigned char)((uint64_t)n_padded >> (8 * i));
    fwrite(length, 1, sizeof length, to);
    fwrite(header, 1, n_header, to);
    fprintf(to, "%*s", (int)(n_padded - n_header), "");
    for (size_t i = 0; i < content->n_tensors; i++) {
        int64_t n_bytes;
        RC_TRY(count_bytes(&content->tensors[i], &n_bytes, err));
        fwrite(content->tensors[i].at, 1, (size_t)n_bytes, to);
    }
    return RC_OK; /* a failed write shows at commit */
}

static rc_code write_file(const char *path, const char *header, const rc_file_content *content,
                          rc_error *err)
{
    rc_out_file file;
    RC_TRY(rc_out_file_open(path, &file, err));
    rc_code code = write_all(file.to, header, content, err);
    if (code == RC_OK)
        return rc_out_file_commit(&file, err);
    rc_out_file_abort(&file);
    return code;
}

rc_code rc_safetensors_write(const char *path, const rc_file_content *content, rc_arena *tmp,
                             rc_error *err)
{
    const char *header;
    rc_mark mark = rc_arena_mark(tmp);
    rc_code code = print_header(content, tmp, &header, err);
    if (code == RC_OK)
        code = write_file(path, header, content, err);
    rc_arena_rewind(tmp, mark);
    return code;
}
