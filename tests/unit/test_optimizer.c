/* test_optimizer.c — AdamW against its formula in double, the gradient's norm, scale and fill. */
#include "base/random.h"
#include "exec/cpu/optimizer.h"
#include "exec/cpu/team.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N = 10007 };
static const rc_random stream = {.seed = 1, .id = 3};

static void adamw_follows_its_formula(void **state)
{
    static float p[N], m[N], v[N], g[N];
    static double p64[N], m64[N], v64[N];
    (void)state;
    rc_random_uniform(&stream, 0, N, -1, 1, p);
    for (int i = 0; i < N; i++)
        p64[i] = (double)p[i];
    for (int step = 1; step <= 5; step++) {
        rc_random_uniform(&stream, (uint64_t)step * 2 * N, N, -3, 3, g);
        rc_adamw arg = {.p = p,
                        .m = m,
                        .v = v,
                        .g = g,
                        .n = N,
                        .g_scale = 0.5,
                        .lr = 0.01,
                        .weight_decay = 0.1,
                        .beta1 = 0.9,
                        .beta2 = 0.95,
                        .eps = 1e-8,
                        .step = step};
        rc_cpu_adamw(&arg, 2);
        for (int i = 0; i < N; i++) {
            double grad = 0.5 * (double)g[i];
            p64[i] -= 0.01 * 0.1 * p64[i];
            m64[i] = 0.9 * m64[i] + 0.1 * grad;
            v64[i] = 0.95 * v64[i] + 0.05 * grad * grad;
            double rate = 0.01 / (1 - pow(0.9, step));
            p64[i] -= rate * m64[i] / (sqrt(v64[i] / (1 - pow(0.95, step))) + 1e-8);
        }
    }
    for (int i = 0; i < N; i++) {
        assert_true(fabs((double)p[i] - p64[i]) < 1e-6);
        assert_true(fabs((double)m[i] - m64[i]) < 1e-6);
        assert_true(fabs((double)v[i] - v64[i]) < 1e-6);
    }
}

static void first_step_moves_by_the_rate(void **state)
{
    float p = 1, m = 0, v = 0, g = -123;
    rc_adamw arg = {.p = &p,
                    .m = &m,
                    .v = &v,
                    .g = &g,
                    .n = 1,
                    .g_scale = 1,
                    .lr = 0.25,
                    .beta1 = 0.9,
                    .beta2 = 0.999,
                    .step = 1};
    (void)state;
    rc_cpu_adamw(&arg, 1);
    assert_true(fabsf(p - 1.25f) < 1e-6f);
}

/* Sizes around a block of 4,096 and around 32 chunks of one and of two: every chunk counts. */
static void sum_of_squares_is_exact_and_the_same_on_any_threads(void **state)
{
    static const int64_t sizes[] = {0,      1,      4095,   4096,   4097,  131071,
                                    131072, 131073, 200003, 262143, 262144};
    enum { MOST = 262144 };
    static float whole[MOST], any[MOST];
    double scratch[64];
    (void)state;
    assert_true(rc_cpu_sum_squares_scratch_bytes() <= (int64_t)sizeof scratch);
    for (int i = 0; i < MOST; i++)
        whole[i] = (float)(i % 1000 - 500); /* squares and their sum are whole */
    rc_random_normal(&stream, 0, MOST, 0, 1, any);
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        const int64_t n = sizes[k];
        double exact = 0;
        for (int64_t i = 0; i < n; i++)
            exact += (double)whole[i] * (double)whole[i];
        assert_true(rc_cpu_sum_squares(whole, n, scratch, 1) == exact);
        double one = rc_cpu_sum_squares(any, n, scratch, 1);
        for (int n_threads = 2; n_threads < 5; n_threads++)
            assert_true(rc_cpu_sum_squares(any, n, scratch, n_threads) == one);
    }
}

static void scale_and_fill(void **state)
{
    float x[5] = {1, -2, 3, 4, 7};
    (void)state;
    rc_cpu_scale(x, 4, 0.5f, 2);
    assert_true(x[0] == 0.5f && x[1] == -1.0f && x[3] == 2.0f && x[4] == 7.0f);
    rc_cpu_fill(x, 4, 9.0f, 2);
    assert_true(x[0] == 9.0f && x[3] == 9.0f && x[4] == 7.0f);
}

static void denormals_are_flushed_between_enter_and_leave(void **state)
{
    volatile float tiny = 1e-30f;
    (void)state;
    if (getenv("RC_VALGRIND")) {
        print_message("skipped: valgrind computes denormals whatever the processor is told\n");
        skip();
    }
    assert_int_equal(rc_team_open(2, NULL), RC_OK);
#if defined(__SSE__) || defined(__aarch64__)
    assert_true(tiny * 1e-10f > 0.0f); /* the caller's own mode is as it was */
    const rc_team_mode before = rc_team_enter();
    assert_true(tiny * 1e-10f == 0.0f);
    rc_team_leave(&before);
    assert_true(tiny * 1e-10f > 0.0f);
#else
    (void)tiny;
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adamw_follows_its_formula),
        cmocka_unit_test(first_step_moves_by_the_rate),
        cmocka_unit_test(sum_of_squares_is_exact_and_the_same_on_any_threads),
        cmocka_unit_test(scale_and_fill),
        cmocka_unit_test(denormals_are_flushed_between_enter_and_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
