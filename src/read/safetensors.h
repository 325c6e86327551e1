/* safetensors.h — the file format of weights: read from strangers, written for everyone.
 *
 * A file is u64 n (little-endian) | n bytes of JSON | data. The JSON is one object: name ->
 * {"dtype": "F32", "shape": [..], "data_offsets": [begin, end)} relative to the data, and
 * optionally "__metadata__": {string: string}. In files of ours that holds, for every tensor,
 * "crc32.NAME": the CRC-32 of its data in 8 hex digits, lower case.
 */
#ifndef RC_READ_SAFETENSORS_H
#define RC_READ_SAFETENSORS_H

#include "base/file.h"

/* The format's element types; ORDER is that of `types` in safetensors.c. */
typedef enum rc_file_dtype {
    RC_FILE_F32,
    RC_FILE_BF16,
    RC_FILE_F16,
    RC_FILE_I64,
    RC_FILE_I32,
    RC_FILE_U8,
    RC_FILE_F64,
    RC_FILE_I16,
    RC_FILE_I8,
    RC_FILE_BOOL,
    RC_FILE_U16,
    RC_FILE_U32,
    RC_FILE_U64,
    RC_FILE_F8_E4M3,
    RC_FILE_F8_E5M2,
    RC_FILE_DTYPE_COUNT
} rc_file_dtype;
const char *rc_file_dtype_name(rc_file_dtype dtype); /* "F32" */
int64_t rc_file_dtype_bytes(rc_file_dtype dtype);

enum { RC_TENSOR_MAX_DIMS = 8 };

typedef struct rc_file_tensor {
    const char *name;
    rc_file_dtype dtype;
    int n_dims;
    int64_t dims[RC_TENSOR_MAX_DIMS];
    /* into the mapping, or what is to be written; may be unaligned when read */
    const void *at;
    int64_t n_bytes;
    /* the file says what the data's CRC-32 was when it was written */
    bool has_crc32;
    uint32_t crc32;
} rc_file_tensor;

typedef struct rc_safetensors {
    const char *path;
    rc_map map;
    /* in the order of the data */
    rc_file_tensor *at;
    size_t n;
    /* with a checksum: all, or none in files of others and older ones */
    size_t n_checked;
} rc_safetensors;

/* What a file was when it was written. */
typedef struct rc_file_seal {
    int64_t n_bytes;
    /* of all its bytes */
    uint32_t crc32;
} rc_file_seal;

/**
 * Opens a file and checks all of its header.
 *
 * errors  RC_E_IO, RC_E_MEMORY; RC_E_INPUT when the header is no JSON of this form, when a shape
 *         does not match its bytes, or when tensors overlap, leave gaps or pass the file's end;
 *         *out then needs no close
 * source  the format's description in huggingface/safetensors README.md, "Format"
 */
RC_MUST_CHECK
rc_code rc_safetensors_open(const char *path, rc_arena *mem, rc_safetensors *out,
                            rc_error *err);
void rc_safetensors_close(rc_safetensors *file);

/**
 * Compares the data with the checksums that the file carries, where it does.
 *
 * gives   *seal  of the whole file as it is now; may be NULL
 * errors  RC_E_INPUT naming the first tensor that was damaged
 * cost    reads all of the data once; not at all without checksums and `seal`
 */
RC_MUST_CHECK
rc_code rc_safetensors_verify(const rc_safetensors *file, int n_threads, rc_file_seal *seal,
                              rc_error *err);

/* The tensor of that name, or NULL. */
const rc_file_tensor *rc_safetensors_find(const rc_safetensors *file, const char *name);

/* `n` elements of a floating tensor from element `first` on, as f32; the range lies inside.
 * takes  tensor  F32, BF16 or F16 */
void rc_file_tensor_to_f32(const rc_file_tensor *tensor, int64_t first, int64_t n, float *out);

/* What a file is to hold. Of each tensor `name`, `dtype`, `n_dims`, `dims` and `at` are read. */
typedef struct rc_pair {
    const char *key, *value;
} rc_pair;
typedef struct rc_file_content {
    const rc_file_tensor *tensors;
    size_t n_tensors;
    /* may be NULL with n_metadata 0 */
    const rc_pair *metadata;
    size_t n_metadata;
} rc_file_content;

/**
 * Writes a file atomically, the tensors in the given order and with their checksums.
 *
 * takes   tmp    for the header; rewound
 * gives   *seal  of the file
 * errors  RC_E_IO, RC_E_MEMORY, RC_E_RANGE
 */
RC_MUST_CHECK
rc_code rc_safetensors_write_sealed(const char *path, const rc_file_content *content,
                                    int n_threads, rc_file_seal *seal, rc_arena *tmp,
                                    rc_error *err);
/* The same by one thread, where the seal is not asked for. */
RC_MUST_CHECK
rc_code rc_safetensors_write(const char *path, const rc_file_content *content, rc_arena *tmp,
                             rc_error *err);

#endif
