/* train/weights.c — our own files of weights: the same names, types and shapes both ways. */
#include "train/weights.h"

#include "base/checksum.h"
#include "base/simd.h"

#include <inttypes.h>
#include <string.h>

static rc_file_dtype file_dtype(rc_dtype dtype)
{
    static const rc_file_dtype of[RC_DTYPE_COUNT] = {
        [RC_F32] = RC_FILE_F32, [RC_BF16] = RC_FILE_BF16, [RC_F16] = RC_FILE_F16,
        [RC_U8] = RC_FILE_U8,   [RC_I32] = RC_FILE_I32,   [RC_I64] = RC_FILE_I64,
    };
    return of[dtype];
}

/* --- values --- */

enum { BLOCK = 1 << 16 };

/* By the bits: an exponent of ones is infinity or NaN; above the bits of -0 lies what is negative.
 * Counts of a block fit the lanes that hold the values, so that the loop is as fast as memory. */
RC_CLONES static uint32_t count_bad_f32(const unsigned char *at, int n, uint32_t most)
{
    const uint32_t ones = UINT32_C(0x7f800000);
    uint32_t n_bad = 0;
    for (int i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, at + 4 * (size_t)i, sizeof bits);
        n_bad += (uint32_t)((bits & ones) == ones) | (uint32_t)(bits > most);
    }
    return n_bad;
}

/* bf16 is the upper half of f32. */
RC_CLONES static uint32_t count_bad_bf16(const unsigned char *at, int n)
{
    uint32_t n_bad = 0;
    for (int i = 0; i < n; i++) {
        uint16_t bits;
        memcpy(&bits, at + 2 * (size_t)i, sizeof bits);
        n_bad += (bits & 0x7f80u) == 0x7f80u;
    }
    return n_bad;
}

static int64_t count_bad(const void *at, rc_dtype dtype, int64_t n, bool is_square,
                         int n_threads)
{
    const unsigned char *bytes = at; /* unaligned in a file */
    const uint32_t most = is_square ? UINT32_C(0x80000000) : UINT32_MAX; /* -0, or anything */
    int64_t n_bad = 0, n_blocks = (n + BLOCK - 1) / BLOCK;
    if (dtype != RC_F32 && dtype != RC_BF16) /* weights are of no other type */
        return 0;
#pragma omp parallel for num_threads(n_threads) schedule(static) reduction(+ : n_bad)
    for (int64_t i = 0; i < n_blocks; i++) {
        int64_t first = i * BLOCK;
        int n_here = n - first < BLOCK ? (int)(n - first) : BLOCK;
        n_bad += dtype == RC_F32 ? count_bad_f32(bytes + 4 * first, n_here, most)
                                 : count_bad_bf16(bytes + 2 * first, n_here);
    }
    return n_bad;
}

static int64_t count_elem(const rc_weight *weight)
{
    int64_t n = 1;
    for (int i = 0; i < weight->n_dims; i++)
        n *= weight->dims[i];
    return n;
}

/* Weight `i` of the list, with its values `at`: in memory, or in a file (RC_E_INPUT). */
static rc_code check_values(const rc_weights_io *of, size_t i, const void *at, rc_code failure,
                            rc_where where, rc_error *err)
{
    const rc_weight *weight = &of->at[i];
    bool is_square = of->is_moments && i % 2 == 1;
    int64_t n = count_elem(weight);
    int64_t n_bad = count_bad(at, weight->dtype, n, is_square, of->n_threads);
    if (n_bad == 0)
        return RC_OK;
    return RC_FAIL(err, failure, where,
                   "%s has %" PRId64 " of %" PRId64 " values that are not finite%s",
                   weight->name, n_bad, n, is_square ? " or below 0" : "");
}

rc_code rc_weights_check(const rc_weights_io *of, rc_error *err)
{
    for (size_t i = 0; i < of->n; i++)
        RC_TRY(check_values(of, i, of->at[i].at, RC_E_RANGE, RC_NOWHERE, err));
    return RC_OK;
}

/* --- files --- */

rc_code rc_weights_save(const char *path, const rc_weights_io *of, rc_file_seal *seal,
                        rc_arena *tmp, rc_error *err)
{
    /* Without it PyTorch libraries refuse to load. */
    static const rc_pair format = {"format", "pt"};
    rc_file_tensor *tensors;
    rc_mark mark = rc_arena_mark(tmp);
    RC_TRY(RC_NEW(tmp, &tensors, of->n, err));
    for (size_t i = 0; i < of->n; i++) {
        const rc_weight *weight = &of->at[i];
        tensors[i] = (rc_file_tensor){.name = weight->name,
                                      .dtype = file_dtype(weight->dtype),
                                      .n_dims = weight->n_dims,
                                      .at = weight->at};
        memcpy(tensors[i].dims, weight->dims, sizeof weight->dims);
    }
    rc_file_content content = {tensors, of->n, &format, 1};
    rc_code code = rc_safetensors_write_sealed(path, &content, of->n_threads, seal, tmp, err);
    rc_arena_rewind(tmp, mark);
    return code;
}

static bool has_same_shape(const rc_file_tensor *tensor, const rc_weight *weight)
{
    if (tensor->n_dims != weight->n_dims)
        return false;
    for (int i = 0; i < weight->n_dims; i++)
        if (tensor->dims[i] != weight->dims[i])
            return false;
    return true;
}

static rc_code match(const rc_safetensors *file, const rc_weights_io *of, rc_error *err)
{
    rc_where where = {.file = file->path};
    for (size_t i = 0; i < of->n; i++) {
        const rc_weight *weight = &of->at[i];
        const rc_file_tensor *tensor = rc_safetensors_find(file, weight->name);
        if (!tensor)
            return RC_FAIL(err, RC_E_INPUT, where, "has no tensor %s", weight->name);
        if (!has_same_shape(tensor, weight))
            return RC_FAIL(err, RC_E_INPUT, where,
                           "tensor %s has another shape than the model's", weight->name);
        if (tensor->dtype != file_dtype(weight->dtype))
            return RC_FAIL(err, RC_E_INPUT, where, "tensor %s is %s and the model's is %s",
                           weight->name, rc_file_dtype_name(tensor->dtype),
                           rc_file_dtype_name(file_dtype(weight->dtype)));
    }
    if (file->n != of->n)
        return RC_FAIL(err, RC_E_INPUT, where, "has %zu tensors, the model has %zu", file->n,
                       of->n);
    return RC_OK;
}

static rc_code verify(const rc_safetensors *file, const rc_weights_io *of,
                      const rc_file_seal *seal, rc_error *err)
{
    rc_where where = {.file = file->path};
    rc_file_seal is;
    char was_digits[RC_CRC32_DIGITS + 1], is_digits[RC_CRC32_DIGITS + 1];
    RC_TRY(match(file, of, err));
    RC_TRY(rc_safetensors_verify(file, of->n_threads, seal ? &is : NULL, err));
    if (seal && (is.crc32 != seal->crc32 || is.n_bytes != seal->n_bytes))
        return RC_FAIL(err, RC_E_INPUT, where,
                       "is not the file that was written with its state.json: it has %" PRId64
                       " bytes with the checksum %s, that one %" PRId64 " with %s",
                       is.n_bytes, rc_crc32_print(is.crc32, is_digits), seal->n_bytes,
                       rc_crc32_print(seal->crc32, was_digits));
    for (size_t i = 0; i < of->n; i++)
        RC_TRY(check_values(of, i, rc_safetensors_find(file, of->at[i].name)->at, RC_E_INPUT,
                            where, err));
    return RC_OK;
}

rc_code rc_weights_open(const char *path, const rc_weights_io *of, const rc_file_seal *seal,
                        rc_safetensors *file, rc_arena *tmp, rc_error *err)
{
    RC_TRY(rc_safetensors_open(path, tmp, file, err));
    rc_code code = verify(file, of, seal, err);
    if (code != RC_OK)
        rc_safetensors_close(file);
    return code;
}

void rc_weights_take(const rc_safetensors *file, const rc_weights_io *to)
{
    for (size_t i = 0; i < to->n; i++) {
        const rc_file_tensor *tensor = rc_safetensors_find(file, to->at[i].name);
        memcpy(to->at[i].at, tensor->at, (size_t)tensor->n_bytes);
    }
}
