/* test_safetensors.c — weights go out and come back; bad headers do not get in. */
#define _POSIX_C_SOURCE 200809L
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "read/safetensors.h"

#include "train_files.h"

#include <math.h>

static char folder[64];

static void what_is_written_is_read(void **state)
{
    rc_arena *mem = *state;
    rc_error err = {0};
    float matrix[2][3] = {{1, -2, 3}, {0.5f, -0.0f, INFINITY}};
    uint16_t halves[2] = {0x3f80, 0xc000};
    rc_file_tensor tensors[] = {
        {.name = "w \"quoted\"",
         .dtype = RC_FILE_F32,
         .n_dims = 2,
         .dims = {2, 3},
         .at = matrix},
        {.name = "empty", .dtype = RC_FILE_I64, .n_dims = 1, .dims = {0}, .at = matrix},
        {.name = "b", .dtype = RC_FILE_BF16, .n_dims = 1, .dims = {2}, .at = halves},
        {.name = "scalar", .dtype = RC_FILE_F32, .n_dims = 0, .at = &matrix[0][2]},
    };
    rc_pair pairs[] = {{"format", "pt"}};
    rc_file_content content = {tensors, 4, pairs, 1};
    const char *path = path_in(folder, "m.safetensors");
    assert_int_equal(rc_safetensors_write(path, &content, mem, &err), RC_OK);
    rc_safetensors file;
    assert_int_equal(rc_safetensors_open(path, mem, &file, &err), RC_OK);
    assert_int_equal(file.n, 4);
    const rc_file_tensor *w = rc_safetensors_find(&file, "w \"quoted\"");
    assert_non_null(w);
    assert_int_equal(w->n_dims, 2);
    assert_int_equal(w->dims[1], 3);
    float back[6];
    rc_file_tensor_to_f32(w, 0, 6, back);
    assert_memory_equal(back, matrix, sizeof back);
    rc_file_tensor_to_f32(rc_safetensors_find(&file, "b"), 0, 2, back);
    assert_true(back[0] == 1.0f && back[1] == -2.0f);
    rc_file_tensor_to_f32(rc_safetensors_find(&file, "scalar"), 0, 1, back);
    assert_true(back[0] == 3.0f);
    assert_null(rc_safetensors_find(&file, "w"));
    rc_safetensors_close(&file);
}

/* IEEE 754 binary16: 1, -2, the largest 65504, the smallest normal 2^-14, the smallest
 * subnormal 2^-24, infinity, -0. */
static void halves_become_singles(void **state)
{
    static const uint16_t halves[] = {0x3c00, 0xc000, 0x7bff, 0x0400, 0x0001, 0x7c00, 0x8000};
    static const float right[] = {1, -2, 65504, 0x1p-14f, 0x1p-24f, INFINITY, -0.0f};
    rc_file_tensor tensor = {.dtype = RC_FILE_F16, .at = halves};
    float got[7];
    uint16_t nan_half = 0x7e00;
    (void)state;
    rc_file_tensor_to_f32(&tensor, 0, 7, got);
    assert_memory_equal(got, right, sizeof right);
    tensor.at = &nan_half;
    rc_file_tensor_to_f32(&tensor, 0, 1, got);
    assert_true(isnan(got[0]));
}

static rc_code open_bytes(rc_arena *mem, uint64_t n_header, const char *json, size_t n_data,
                          rc_error *err)
{
    index_bytes bytes = {.n = 0};
    put_number(&bytes, n_header, 8);
    memcpy(bytes.at + 8, json, strlen(json));
    bytes.n += strlen(json) + n_data;
    const char *path = path_in(folder, "hostile.safetensors");
    write_bytes(path, bytes.at, bytes.n);
    rc_safetensors file;
    rc_code code = rc_safetensors_open(path, mem, &file, err);
    if (code == RC_OK)
        rc_safetensors_close(&file);
    return code;
}

static void hostile_headers_are_refused(void **state)
{
    static const struct {
        const char *json;
        size_t n_data;
        const char *says; /* NULL: it is fine */
    } cases[] = {
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, NULL},
        {"{}", 0, NULL},
        {"[]", 0, "no JSON object"},
        {"{\"a\":1}", 0, "is no object"},
        {"{\"a\":{}}", 0, "has no dtype"},
        {"{\"a\":{\"dtype\":\"F31\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8,
         "does not know"},
        {"{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,8]}}", 8, "has no shape"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-2],\"data_offsets\":[0,8]}}", 8, "no integer"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2.0],\"data_offsets\":[0,8]}}", 8, "no integer"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8, "no data_offsets"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0]}}", 8,
         "no data_offsets"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,9]}}", 8,
         "outside the file"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}}", 8,
         "outside the file"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[-8,0]}}", 8,
         "outside the file"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,8]}}", 8,
         "does not match"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,8]}}",
         8, "more than 2^63"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904],\"data_offsets\":[0,8]}}",
         8, "more than 2^63"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,1,8],\"data_offsets\":[0,8]}}", 8,
         "more than 8 dimensions"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8]},"
         "\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[4,8]}}",
         8, "overlaps"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
         "\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[4,8]}}",
         8, "leaves a gap"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]}}", 8,
         "6 bytes behind"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8]},"
         "\"a\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8]}}",
         8, "no JSON object"},
        {"{\"a\\u0000b\":{}}", 0, "no JSON object"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[99999999999999999999],\"data_offsets\":[0,8]}}",
         8, "no JSON object"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rc_error err = {0};
        rc_code code =
            open_bytes(*state, strlen(cases[i].json), cases[i].json, cases[i].n_data, &err);
        bool is_right = cases[i].says ? code == RC_E_INPUT && strstr(err.msg, cases[i].says)
                                      : code == RC_OK;
        if (!is_right)
            fail_msg("%s: code %d, \"%s\"", cases[i].json, (int)code, err.msg);
    }
    assert_int_equal(open_bytes(*state, UINT64_MAX, "{}", 0, NULL), RC_E_INPUT);
    assert_int_equal(open_bytes(*state, 3, "{}", 0, NULL), RC_E_INPUT);
    assert_int_equal(open_bytes(*state, 100000001, "{}", 0, NULL), RC_E_INPUT);
}

static void deep_nesting_ends_cleanly(void **state)
{
    char json[4000];
    memset(json, '[', sizeof json - 1);
    json[sizeof json - 1] = '\0';
    assert_int_equal(open_bytes(*state, strlen(json), json, 0, NULL), RC_E_INPUT);
}

static void untrusted_names_cannot_drive_the_terminal(void **state)
{
    rc_error err = {0};
    const char *json = "{\"\\u001b[2J\":{}}";
    assert_int_equal(open_bytes(*state, strlen(json), json, 0, &err), RC_E_INPUT);
    assert_non_null(strstr(err.msg, "\\x1B[2J"));
}

static int open_all(void **state)
{
    *state = rc_arena_open();
    make_temp_folder(folder);
    return 0;
}

static int close_all(void **state)
{
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", folder);
    rc_arena_close(*state);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(halves_become_singles),
        cmocka_unit_test(hostile_headers_are_refused),
        cmocka_unit_test(deep_nesting_ends_cleanly),
        cmocka_unit_test(untrusted_names_cannot_drive_the_terminal),
    };
    return cmocka_run_group_tests_name("safetensors", tests, open_all, close_all);
}
