/* test_lr.c — the learning rate against values worked out by hand. */
#define _POSIX_C_SOURCE 200809L
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "train/lr.h"

#include "train_files.h"

#include <math.h>

static rc_config config_of(const char *style)
{
    rc_config cfg = empty_config();
    SET(&cfg, train_iters, 100);
    SET(&cfg, lr, 1.0);
    SET(&cfg, min_lr, 0.2);
    SET(&cfg, lr_decay_style, style);
    return cfg;
}

static void expect_close(const char *name, double got, double right)
{
    if (!(fabs(got - right) <= 1e-15 * fabs(right)))
        fail_msg("%s: %.17g is not %.17g", name, got, right);
}

/* 100 steps of 8 samples: decay over 800; warm-up of 20 steps: 160; span 640; max - min = 0.8.
 * Halfway, 480 samples: ratio (480-160)/640 = 1/2. At 3/4, 640: ratio 3/4.
 *   linear   1/2 -> 0.2 + 0.8/2 = 0.6,  3/4 -> 0.2 + 0.8/4 = 0.4
 *   cosine   1/2 -> 0.6,  3/4 -> 0.2 + 0.4 (1 - sqrt(1/2))
 *   root     480 -> sqrt(160/480) = sqrt(1/3),  640 -> 1/2
 * Warm-up from 0.1: at 40 of 160, 0.1 + 0.9/4 = 0.325; at 160 the top. */
static void every_style_hits_its_points(void **state)
{
    static const struct {
        const char *style;
        double at_480, at_640, at_800, at_808;
    } cases[] = {
        {"constant", 1.0, 1.0, 1.0, 1.0},
        {"linear", 0.6, 0.4, 0.2, 0.2},
        {"cosine", 0.6, 0.31715728752538099, 0.2, 0.2},
        {"inverse-square-root", 0.57735026918962576, 0.5, 0.44721359549995793, 0.2},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rc_lr lr;
        rc_error err = {0};
        rc_config cfg = config_of(cases[i].style);
        SET(&cfg, lr_warmup_iters, 20);
        SET(&cfg, lr_warmup_init, 0.1);
        assert_int_equal(rc_lr_make(&cfg, 8, &lr, &err), RC_OK);
        expect_close(cases[i].style, rc_lr_at(&lr, 0), 0.1);
        expect_close(cases[i].style, rc_lr_at(&lr, 40), 0.325);
        expect_close(cases[i].style, rc_lr_at(&lr, 160), 1.0);
        expect_close(cases[i].style, rc_lr_at(&lr, 480), cases[i].at_480);
        expect_close(cases[i].style, rc_lr_at(&lr, 640), cases[i].at_640);
        expect_close(cases[i].style, rc_lr_at(&lr, 800), cases[i].at_800);
        expect_close(cases[i].style, rc_lr_at(&lr, 808), cases[i].at_808);
    }
}

/* Without warm-up the first step has the full rate, and 50 of 100 steps is ratio 1/2. */
static void decay_without_warmup_starts_at_the_top(void **state)
{
    rc_lr lr;
    rc_config cfg = config_of("linear");
    (void)state;
    assert_int_equal(rc_lr_make(&cfg, 4, &lr, NULL), RC_OK);
    expect_close("first", rc_lr_at(&lr, 0), 1.0);
    expect_close("half", rc_lr_at(&lr, 200), 0.6);
    expect_close("last", rc_lr_at(&lr, 400), 0.2);
}

/* WSD: 800 samples, the last 400 fall; at 500 the ratio is 1/4, at 800 it is 1.
 *   linear 3/4, cosine (1 + sqrt(1/2))/2, exponential 2^(3/4) - 1, minus_sqrt 1/2; all end at 0 */
static void wsd_stays_then_falls(void **state)
{
    static const struct {
        const char *style;
        double share;
    } cases[] = {
        {"linear", 0.75},
        {"cosine", 0.85355339059327378},
        {"exponential", 0.68179283050742912},
        {"minus_sqrt", 0.5},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rc_lr lr;
        rc_config cfg = config_of("WSD");
        SET(&cfg, lr_wsd_decay_iters, 50);
        SET(&cfg, lr_wsd_decay_style, cases[i].style);
        assert_int_equal(rc_lr_make(&cfg, 8, &lr, NULL), RC_OK);
        expect_close(cases[i].style, rc_lr_at(&lr, 0), 1.0);
        expect_close(cases[i].style, rc_lr_at(&lr, 400), 1.0);
        expect_close(cases[i].style, rc_lr_at(&lr, 500), 0.2 + 0.8 * cases[i].share);
        expect_close(cases[i].style, rc_lr_at(&lr, 800), 0.2);
        expect_close(cases[i].style, rc_lr_at(&lr, 801), 0.2);
    }
}

/* 0.0625 of 100 steps of 2 samples is 12.5 samples: at 5, 5/12.5 of the top. */
static void warmup_fraction_may_end_between_samples(void **state)
{
    rc_lr lr;
    rc_config cfg = config_of("constant");
    (void)state;
    SET(&cfg, lr_warmup_fraction, 0.0625);
    assert_int_equal(rc_lr_make(&cfg, 2, &lr, NULL), RC_OK);
    expect_close("in", rc_lr_at(&lr, 5), 0.4);
    expect_close("out", rc_lr_at(&lr, 13), 1.0);
}

static void lr_decay_iters_wins_over_train_iters(void **state)
{
    rc_lr lr;
    rc_config cfg = config_of("linear");
    (void)state;
    SET(&cfg, lr_decay_iters, 50);
    assert_int_equal(rc_lr_make(&cfg, 1, &lr, NULL), RC_OK);
    expect_close("half", rc_lr_at(&lr, 25), 0.6);
    expect_close("beyond", rc_lr_at(&lr, 51), 0.2);
}

static void bad_schedules_are_refused(void **state)
{
    (void)state;
#define EXPECT(says, ...)                                                                      \
    do {                                                                                       \
        rc_config cfg = config_of("linear");                                                   \
        rc_lr lr;                                                                              \
        rc_error err = {0};                                                                    \
        __VA_ARGS__;                                                                           \
        assert_int_equal(rc_lr_make(&cfg, 8, &lr, &err), RC_E_INPUT);                          \
        if (!strstr(err.msg, says))                                                            \
            fail_msg("\"%s\" does not say \"%s\"", err.msg, says);                             \
    } while (0)
    EXPECT("must be one of constant, linear, cosine", cfg.lr_decay_style = "exponential");
    EXPECT("optimizer.lr is -1", cfg.lr = -1);
    EXPECT("optimizer.lr is nan", cfg.lr = (double)NAN);
    EXPECT("min_lr is 2", cfg.min_lr = 2);
    EXPECT("lr_warmup_init is 3", cfg.lr_warmup_init = 3);
    EXPECT("the warm-up must be shorter", SET(&cfg, lr_warmup_iters, 100));
    EXPECT("give one", SET(&cfg, lr_warmup_iters, 1), SET(&cfg, lr_warmup_fraction, 0.1));
    EXPECT("below 1", SET(&cfg, lr_warmup_fraction, 1.0));
    EXPECT("must be 0 or more", SET(&cfg, lr_warmup_iters, -1));
    EXPECT("train.train_iters is 0", cfg.train_iters = 0);
    EXPECT("lr_decay_iters is 0", SET(&cfg, lr_decay_iters, 0));
    EXPECT("needs scheduler.lr_wsd_decay_iters", cfg.lr_decay_style = "WSD");
    EXPECT("must be 1 to 100", cfg.lr_decay_style = "WSD", SET(&cfg, lr_wsd_decay_iters, 101));
#undef EXPECT
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_style_hits_its_points),
        cmocka_unit_test(decay_without_warmup_starts_at_the_top),
        cmocka_unit_test(wsd_stays_then_falls),
        cmocka_unit_test(warmup_fraction_may_end_between_samples),
        cmocka_unit_test(lr_decay_iters_wins_over_train_iters),
        cmocka_unit_test(bad_schedules_are_refused),
    };
    return cmocka_run_group_tests_name("lr", tests, NULL, NULL);
}
