/* test_arena.c — pieces are aligned, zeroed and apart; rewinding gives back; faults come on time. */
#include "check.h"

#include <string.h>

static void pieces_are_aligned_zeroed_and_apart(void **state)
{
    (void)state;
    rc_arena *mem = rc_arena_open();
    unsigned char *last_end = NULL;
    for (size_t n = 1; n < 3000; n += 37) {
        unsigned char *at;
        assert_ok(RC_NEW(mem, &at, n, NULL));
        assert_int_equal((uintptr_t)at % RC_ALIGN, 0);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(at[i], 0);
        memset(at, 0xEE, n); /* a later piece that overlaps would not be zero */
        assert_ptr_not_equal(at, last_end);
        last_end = at;
    }
    rc_arena_close(mem);
}

static void empty_piece_is_a_valid_pointer(void **state)
{
    (void)state;
    rc_arena *mem = rc_arena_open();
    char *at = NULL;
    assert_ok(RC_NEW(mem, &at, 0, NULL));
    assert_non_null(at);
    rc_arena_close(mem);
}

static void overflowing_size_is_refused(void **state)
{
    (void)state;
    rc_arena *mem = rc_arena_open();
    rc_error err = {0};
    void *at = mem;
    assert_int_equal(rc_arena_take(mem, SIZE_MAX / 4, 8, &at, &err), RC_E_RANGE);
    assert_null(at);
    assert_int_equal(err.code, RC_E_RANGE);
    assert_int_equal(rc_arena_take(mem, SIZE_MAX, 1, &at, NULL), RC_E_RANGE);
    assert_int_equal(rc_arena_used_bytes(mem), 0);
    rc_arena_close(mem);
}

static void arrays_grow_with_what_they_hold(void **state)
{
    (void)state;
    rc_arena *mem = rc_arena_open();
    rc_error err = {0};
    int *at = NULL;
    size_t n_room = 0;
    for (int n = 0; n < 1000; n++) {
        assert_ok(RC_GROW(mem, &at, (size_t)n, &n_room, (size_t)n + 1, &err));
        assert_true(n_room > (size_t)n);
        at[n] = n;
    }
    for (int i = 0; i < 1000; i++)
        assert_int_equal(at[i], i);
    int *before = at;
    assert_ok(RC_GROW(mem, &at, 1000, &n_room, 5, &err)); /* there is room: nothing moves */
    assert_ptr_equal(at, before);
    assert_ok(RC_GROW(mem, &at, 1000, &n_room, 100000, &err));
    assert_true(n_room >= 100000);
    assert_int_equal(at[999], 999);
    assert_int_equal(at[1000], 0);
    assert_int_equal(RC_GROW(mem, &at, 1000, &n_room, SIZE_MAX / 2, &err), RC_E_RANGE);
    assert_int_equal(at[999], 999); /* a refusal leaves the array as it was */
    rc_arena_close(mem);
}

static void rewind_gives_back_and_reuses_the_same_bytes(void **state)
{
    (void)state;
    rc_arena *mem = rc_arena_open();
    char *kept, *first, *again;
    assert_ok(RC_NEW(mem, &kept, 100, NULL));
    memset(kept, 7, 100);
    rc_mark mark = rc_arena_mark(mem);
    size_t used = rc_arena_used_bytes(mem);
    assert_int_equal(used, 128); /* 100 rounded up to RC_ALIGN */
    assert_ok(RC_NEW(mem, &first, 64, NULL));
    for (int i = 0; i < 50; i++) { /* force several blocks */
        char *more;
        assert_ok(RC_NEW(mem, &more, 10000, NULL));
    }
    assert_int_equal(rc_arena_used_bytes(mem), used + 64 + 50 * 10048);
    rc_arena_rewind(mem, mark);
    assert_int_equal(rc_arena_used_bytes(mem), used);
    assert_ok(RC_NEW(mem, &again, 64, NULL));
    assert_ptr_equal(first, again);
    for (int i = 0; i < 100; i++)
        assert_int_equal(kept[i], 7);
    rc_arena_rewind(mem, (rc_mark){0});
    assert_int_equal(rc_arena_used_bytes(mem), 0);
    rc_arena_close(mem);
    rc_arena_close(NULL);
}

static void injected_failure_comes_after_n_pieces_and_can_be_turned_off(void **state)
{
    (void)state;
    rc_arena *mem = rc_arena_open();
    rc_error err = {0};
    char *at;
    rc_arena_fail_after(mem, 2);
    assert_ok(RC_NEW(mem, &at, 1, &err));
    assert_ok(RC_NEW(mem, &at, 1, &err));
    assert_int_equal(RC_NEW(mem, &at, 1, &err), RC_E_MEMORY);
    assert_null(at);
    assert_int_equal(RC_NEW(mem, &at, 1, &err), RC_E_MEMORY);
    assert_non_null(strstr(err.msg, "injected"));
    rc_arena_fail_after(mem, -1);
    assert_ok(RC_NEW(mem, &at, 1, NULL));
    rc_arena_close(mem);
}

static void copies_and_printed_text_are_terminated(void **state)
{
    (void)state;
    rc_arena *mem = rc_arena_open();
    const char *text;
    assert_ok(rc_arena_copy(mem, "abcdef", 3, &text, NULL));
    assert_string_equal(text, "abc");
    assert_ok(rc_arena_copy(mem, NULL, 0, &text, NULL));
    assert_string_equal(text, "");
    assert_ok(rc_arena_printf(mem, &text, NULL, "%s has %d layers", "m", 12));
    assert_string_equal(text, "m has 12 layers");
    rc_arena_fail_after(mem, 0);
    assert_int_equal(rc_arena_printf(mem, &text, NULL, "x"), RC_E_MEMORY);
    rc_arena_close(mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_aligned_zeroed_and_apart),
        cmocka_unit_test(empty_piece_is_a_valid_pointer),
        cmocka_unit_test(overflowing_size_is_refused),
        cmocka_unit_test(arrays_grow_with_what_they_hold),
        cmocka_unit_test(rewind_gives_back_and_reuses_the_same_bytes),
        cmocka_unit_test(injected_failure_comes_after_n_pieces_and_can_be_turned_off),
        cmocka_unit_test(copies_and_printed_text_are_terminated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
