/* test_fmath.c — the errors fmath.h states, over every 64th float of each range. */
#include "exec/cpu/fmath.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static float from_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Every 64th float with |x| <= most, of one sign. */
#define FOR_FLOATS(x, sign, most)                                                              \
    for (uint32_t bits = 0; from_bits(bits) <= (most); bits += 64)                             \
        for (float x = (sign)*from_bits(bits), once = 1; once > 0; once = 0)

static void exp_is_within_its_error(void **state)
{
    double worst = 0;
    (void)state;
    FOR_FLOATS(x, 1.0f, 88.37f)
    worst = fmax(worst, fabs((double)rc_exp(x) / exp((double)x) - 1));
    FOR_FLOATS(x, -1.0f, 87.3f)
    worst = fmax(worst, fabs((double)rc_exp(x) / exp((double)x) - 1));
    print_message("exp: %.3g\n", worst);
    assert_true(worst <= 2e-7);
}

static void exp_has_exact_ends(void **state)
{
    (void)state;
    assert_true(rc_exp(0) == 1.0f);
    assert_true(rc_exp(-88) == 0.0f);
    assert_true(rc_exp(-1e30f) == 0.0f);
    assert_true(rc_exp(-INFINITY) == 0.0f);
    assert_true(isfinite(rc_exp(1e30f)));
    assert_true(isnan(rc_exp(NAN)));
}

static void sigmoid_is_within_its_error(void **state)
{
    double worst = 0;
    (void)state;
    FOR_FLOATS(x, 1.0f, 80.0f)
    worst = fmax(worst, fabs((double)rc_sigmoid(x) * (1 + exp(-(double)x)) - 1));
    FOR_FLOATS(x, -1.0f, 80.0f)
    worst = fmax(worst, fabs((double)rc_sigmoid(x) * (1 + exp(-(double)x)) - 1));
    print_message("sigmoid: %.3g\n", worst);
    assert_true(worst <= 3e-7);
}

static void normal_cdf_is_within_its_error(void **state)
{
    double worst = 0;
    (void)state;
    FOR_FLOATS(x, 1.0f, 10.0f)
    worst = fmax(worst, fabs((double)rc_normal_cdf(x) - 0.5 * erfc(-(double)x / sqrt(2))));
    FOR_FLOATS(x, -1.0f, 10.0f)
    worst = fmax(worst, fabs((double)rc_normal_cdf(x) - 0.5 * erfc(-(double)x / sqrt(2))));
    print_message("normal_cdf: %.3g\n", worst);
    assert_true(worst <= 4e-7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exp_is_within_its_error),
        cmocka_unit_test(exp_has_exact_ends),
        cmocka_unit_test(sigmoid_is_within_its_error),
        cmocka_unit_test(normal_cdf_is_within_its_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
