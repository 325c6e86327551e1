/* test_unpack.c — plain, gzip and zstd bytes come out as they went in, and damage is an error. */
#include "read/unpack.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include <cmocka.h>

enum { N = 300000 };

static unsigned char sample_byte(size_t i)
{
    return (unsigned char)((i * 7 + i / 251) & 0x3F);
}

static void fill_sample(unsigned char *to)
{
    for (size_t i = 0; i < N; i++)
        to[i] = sample_byte(i);
}

static size_t pack_gzip(const unsigned char *from, size_t n, unsigned char *to, size_t room)
{
    z_stream z = {0};
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    unsigned char *in = test_malloc(n);
    memcpy(in, from, n);
    z.next_in = in;
    z.avail_in = (uInt)n;
    z.next_out = to;
    z.avail_out = (uInt)room;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    size_t used = room - z.avail_out;
    deflateEnd(&z);
    test_free(in);
    return used;
}

/* Reads all in steps of `step` bytes and compares with the sample repeated. */
static void expect_sample(const void *packed, size_t n_packed, size_t step, size_t n_samples)
{
    rc_arena *mem = rc_arena_open();
    rc_unpack *from;
    assert_int_equal(rc_unpack_open_bytes(packed, n_packed, mem, &from, NULL), RC_OK);
    unsigned char *buf = test_malloc(step);
    size_t at = 0, n;
    do {
        assert_int_equal(rc_unpack_read(from, buf, step, &n, NULL), RC_OK);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(buf[i], sample_byte((at + i) % N));
        at += n;
    } while (n == step);
    assert_int_equal(at, N * n_samples);
    assert_int_equal(rc_unpack_consumed_bytes(from), n_packed);
    test_free(buf);
    rc_unpack_close(from);
    rc_arena_close(mem);
}

static void plain_and_packed_bytes_come_out_whole(void **state)
{
    (void)state;
    unsigned char *plain = test_malloc(N), *packed = test_malloc(4 * N);
    fill_sample(plain);
    const size_t steps[] = {1, 1000, 65536, 400000};
    for (size_t i = 0; i < 4; i++)
        expect_sample(plain, N, steps[i], 1);
    size_t n = pack_gzip(plain, N, packed, 2 * N);
    for (size_t i = 0; i < 4; i++)
        expect_sample(packed, n, steps[i], 1);
    n += pack_gzip(plain, N, packed + n, 2 * N);
    expect_sample(packed, n, 777, 2);
    n = ZSTD_compress(packed, 4 * N, plain, N, 3);
    for (size_t i = 0; i < 4; i++)
        expect_sample(packed, n, steps[i], 1);
    memcpy(packed + n, packed, n);
    expect_sample(packed, 2 * n, 777, 2);
    test_free(plain);
    test_free(packed);
}

static rc_code read_all(const void *packed, size_t n_packed, rc_error *err)
{
    rc_arena *mem = rc_arena_open();
    rc_unpack *from;
    rc_code code = rc_unpack_open_bytes(packed, n_packed, mem, &from, err);
    static unsigned char buf[4096];
    size_t n = sizeof buf;
    while (code == RC_OK && n == sizeof buf)
        code = rc_unpack_read(from, buf, sizeof buf, &n, err);
    rc_unpack_close(from);
    rc_arena_close(mem);
    return code;
}

static void cut_and_damaged_data_is_an_input_error(void **state)
{
    (void)state;
    unsigned char *plain = test_malloc(N), *packed = test_malloc(2 * N);
    fill_sample(plain);
    rc_error err = {0};
    size_t n = pack_gzip(plain, N, packed, 2 * N);
    assert_int_equal(read_all(packed, n, NULL), RC_OK);
    assert_int_equal(read_all(packed, n - 1, &err), RC_E_INPUT);
    assert_non_null(strstr(err.msg, "ends early"));
    packed[n / 2] ^= 0x55;
    assert_int_equal(read_all(packed, n, NULL), RC_E_INPUT);
    n = ZSTD_compress(packed, 2 * N, plain, N, 3);
    assert_int_equal(read_all(packed, n, NULL), RC_OK);
    assert_int_equal(read_all(packed, n - 1, NULL), RC_E_INPUT);
    packed[5] ^= 0xFF;
    assert_int_equal(read_all(packed, n, NULL), RC_E_INPUT);
    test_free(plain);
    test_free(packed);
}

static void an_empty_input_gives_nothing(void **state)
{
    (void)state;
    assert_int_equal(read_all("", 0, NULL), RC_OK);
}

static void a_missing_file_says_why(void **state)
{
    (void)state;
    rc_arena *mem = rc_arena_open();
    rc_unpack *from;
    rc_error err = {0};
    assert_int_equal(rc_unpack_open("/nonexistent/file", mem, &from, &err), RC_E_IO);
    assert_null(from);
    assert_non_null(strstr(err.msg, "No such file"));
    rc_arena_close(mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_and_packed_bytes_come_out_whole),
        cmocka_unit_test(cut_and_damaged_data_is_an_input_error),
        cmocka_unit_test(an_empty_input_gives_nothing),
        cmocka_unit_test(a_missing_file_says_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
