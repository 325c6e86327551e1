/* train/weights.c — our own files of weights: the same names, types and shapes both ways. */
#include "train/weights.h"

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

rc_code rc_weights_save(const char *path, const rc_weight *weights, size_t n,
                        const rc_pair *metadata, rc_arena *tmp, rc_error *err)
{
    rc_file_tensor *tensors;
    rc_mark mark = rc_arena_mark(tmp);
    RC_TRY(RC_NEW(tmp, &tensors, n, err));
    for (size_t i = 0; i < n; i++) {
        tensors[i] = (rc_file_tensor){.name = weights[i].name,
                                      .dtype = file_dtype(weights[i].dtype),
                                      .n_dims = weights[i].n_dims,
                                      .at = weights[i].at};
        memcpy(tensors[i].dims, weights[i].dims, sizeof weights[i].dims);
    }
    rc_file_content content = {tensors, n, metadata, metadata ? 1 : 0};
    rc_code code = rc_safetensors_write(path, &content, tmp, err);
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

static rc_code copy_weights(const rc_safetensors *file, const rc_weight *weights, size_t n,
                            rc_error *err)
{
    rc_where where = {.file = file->path};
    for (size_t i = 0; i < n; i++) {
        const rc_file_tensor *tensor = rc_safetensors_find(file, weights[i].name);
        if (!tensor)
            return RC_FAIL(err, RC_E_INPUT, where, "has no tensor %s", weights[i].name);
        if (!has_same_shape(tensor, &weights[i]))
            return RC_FAIL(err, RC_E_INPUT, where,
                           "tensor %s has another shape than the model's", weights[i].name);
        if (tensor->dtype != file_dtype(weights[i].dtype))
            return RC_FAIL(err, RC_E_INPUT, where, "tensor %s is %s and the model's is %s",
                           weights[i].name, rc_file_dtype_name(tensor->dtype),
                           rc_file_dtype_name(file_dtype(weights[i].dtype)));
        memcpy(weights[i].at, tensor->at, (size_t)tensor->n_bytes);
    }
    if (file->n != n)
        return RC_FAIL(err, RC_E_INPUT, where, "has %zu tensors, the model has %zu", file->n,
                       n);
    return RC_OK;
}

rc_code rc_weights_load(const char *path, const rc_weight *weights, size_t n, rc_arena *tmp,
                        rc_error *err)
{
    rc_safetensors file;
    RC_TRY(rc_safetensors_open(path, tmp, &file, err));
    rc_code code = copy_weights(&file, weights, n, err);
    rc_safetensors_close(&file);
    return code;
}
