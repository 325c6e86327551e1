/* test_rates.c — the learning rate of every step of many schedules against a reference.
 *
 * source  Megatron-LM megatron/core/optimizer_param_scheduler.py, get_lr, as its documentation tells
 *         it; cosine: Loshchilov and Hutter 2017, "SGDR", equation 5; inverse square root: Vaswani et
 *         al. 2017, "Attention is all you need", section 5.3; WSD: Hu et al. 2024, "MiniCPM"
 *
 * The reference counts steps where the library counts samples, and writes each curve in another of
 * its forms: with x the share of the way that is left, from 1 to 0,
 *
 *   linear       x                          cosine      sin^2 (x pi / 2)
 *   exponential  2^x - 1, of 2 (1/2)^(1-x) - 1          minus_sqrt  1 - sqrt(1 - x)
 *
 * A few roundings of double precision, and cancellation near the end of a curve: 1e-13 of the top.
 */
#include "law.h"

#include "train/lr.h"

#include <math.h>

/* A schedule as a config says it; steps below 0 are not given. */
typedef struct plan {
    const char *style, *wsd_style;
    double top, bottom, init;
    int64_t n_steps, decay, warmup, wsd;
    double warmup_fraction; /* below 0: not given */
    int64_t n_global;
} plan;

static double curve(const char *style, double left)
{
    const double half_pi = 1.5707963267948966;
    if (strcmp(style, "linear") == 0)
        return left;
    if (strcmp(style, "cosine") == 0)
        return pow(sin(left * half_pi), 2);
    if (strcmp(style, "exponential") == 0)
        return exp2(left) - 1;
    assert_string_equal(style, "minus_sqrt");
    return 1 - sqrt(1 - left);
}

/* The rate of step `at`, counted from 0. */
static double reference(const plan *p, double at)
{
    const double end = (double)(p->decay > 0 ? p->decay : p->n_steps),
                 range = p->top - p->bottom;
    const double warm = p->warmup_fraction >= 0 ? p->warmup_fraction * end
                        : p->warmup > 0         ? (double)p->warmup
                                                : 0;
    if (warm > 0 && at <= warm)
        return p->init * (1 - at / warm) + p->top * (at / warm);
    if (strcmp(p->style, "constant") == 0)
        return p->top;
    if (at > end)
        return p->bottom;
    if (strcmp(p->style, "inverse-square-root") == 0) {
        /* the one curve that is counted in samples: the top is at the first, or at the warm-up's end */
        double from = fmax(warm * (double)p->n_global, 1),
               n = fmax(at * (double)p->n_global, 1);
        return fmax(p->bottom, p->top * sqrt(from / n));
    }
    if (strcmp(p->style, "WSD") != 0)
        return p->bottom + range * curve(p->style, (end - at) / (end - warm));
    double left = (end - at) / (double)p->wsd;
    return left >= 1 ? p->top : p->bottom + range * curve(p->wsd_style, left);
}

static void add_word(char words[16][96], int *n, const char *key, double value)
{
    snprintf(words[(*n)++], sizeof words[0], "%s=%.17g", key, value);
}

static rc_lr make(const plan *p, rc_arena *mem)
{
    char words[16][96];
    const char *list[16];
    int n = 0;
    rc_error err = {0};
    rc_doc *doc;
    rc_config *cfg;
    rc_lr lr;
    snprintf(words[n++], sizeof words[0], "scheduler.lr_decay_style=%s", p->style);
    snprintf(words[n++], sizeof words[0], "scheduler.lr_wsd_decay_style=%s", p->wsd_style);
    add_word(words, &n, "optimizer.lr", p->top);
    add_word(words, &n, "optimizer.min_lr", p->bottom);
    add_word(words, &n, "scheduler.lr_warmup_init", p->init);
    add_word(words, &n, "train.train_iters", (double)p->n_steps);
    if (p->decay > 0)
        add_word(words, &n, "scheduler.lr_decay_iters", (double)p->decay);
    if (p->warmup >= 0)
        add_word(words, &n, "scheduler.lr_warmup_iters", (double)p->warmup);
    if (p->wsd > 0)
        add_word(words, &n, "scheduler.lr_wsd_decay_iters", (double)p->wsd);
    if (p->warmup_fraction >= 0)
        add_word(words, &n, "scheduler.lr_warmup_fraction", p->warmup_fraction);
    for (int i = 0; i < n; i++)
        list[i] = words[i];
    law_check(rc_override_read(list, (size_t)n, mem, &doc, &err), &err);
    rc_input input = {doc, RC_FROM_OVERRIDE};
    law_check(rc_config_make(&input, 1, mem, &cfg, &err), &err);
    law_check(rc_train_refuse_unknown(cfg, &err), &err);
    law_check(rc_lr_make(cfg, p->n_global, &lr, &err), &err);
    return lr;
}

static void follow(const plan *p)
{
    rc_arena *mem = rc_arena_open();
    rc_lr lr = make(p, mem);
    int64_t last = p->n_steps > p->decay ? p->n_steps : p->decay;
    for (int64_t i = 0; i <= last + 3; i++) {
        double got = rc_lr_at(&lr, i * p->n_global), right = reference(p, (double)i);
        if (!(fabs(got - right) <= 1e-13 * p->top))
            fail_msg(
                "%s %s, top %g, bottom %g, first %g; of %lld steps %lld fall, warm-up %lld or "
                "%g, last phase %lld, %lld samples a step: step %lld has %.17g, not %.17g",
                p->style, p->wsd_style, p->top, p->bottom, p->init, (long long)p->n_steps,
                (long long)p->decay, (long long)p->warmup, p->warmup_fraction,
                (long long)p->wsd, (long long)p->n_global, (long long)i, got, right);
    }
    rc_arena_close(mem);
}

static const char *const styles[] = {"constant", "linear", "cosine", "inverse-square-root",
                                     "WSD"};
static const char *const wsd_styles[] = {"linear", "cosine", "exponential", "minus_sqrt"};

static uint32_t next(uint32_t *seed, uint32_t below)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 8) % below;
}

/* Edges: one step; the whole run is the last phase; a warm-up of all steps but one; a bottom that is
 * the top; a decay shorter and longer than the run; one sample a step and many. */
static const plan edges[] = {
    {"linear", "linear", 1, 0, 0, 1, -1, -1, 1, -1, 1},
    {"cosine", "linear", 1, 0.1, 0, 50, -1, 49, 1, -1, 8},
    {"linear", "linear", 3e-4, 3e-4, 3e-4, 20, -1, 3, 1, -1, 4},
    {"cosine", "linear", 3e-4, 3e-5, 0, 40, 25, 5, 1, -1, 3},
    {"cosine", "linear", 3e-4, 3e-5, 1e-5, 25, 40, 0, 1, -1, 512},
    {"inverse-square-root", "linear", 1, 0.2, 0, 60, -1, -1, 1, -1, 1},
    {"inverse-square-root", "linear", 1, 0.2, 0, 60, -1, 7, 1, -1, 16},
    {"WSD", "exponential", 1, 0, 0, 30, -1, -1, 30, -1, 2},
    {"WSD", "minus_sqrt", 1, 0, 0, 30, -1, 10, 1, -1, 2},
    {"WSD", "cosine", 1, 0, 0, 30, 20, -1, 7, 0.123, 2},
    {"constant", "linear", 1, 0.5, 0.25, 12, -1, -1, 1, 0.0625, 2},
    {"linear", "linear", 0, 0, 0, 5, -1, 2, 1, -1, 2},
};

static void edges_follow_their_formulas(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++)
        follow(&edges[i]);
}

/* A warm-up that leaves room, and a last phase within the run. */
static plan some_plan(uint32_t *seed, int i)
{
    plan p = {.style = styles[i % 5],
              .wsd_style = wsd_styles[i / 5 % 4],
              .top = (1 + next(seed, 1000)) * 1e-5,
              .n_steps = 1 + next(seed, 120),
              .decay = -1,
              .warmup = -1,
              .warmup_fraction = -1,
              .n_global = 1 + next(seed, 96)};
    p.bottom = p.top * next(seed, 5) / 5;
    p.init = p.top * next(seed, 4) / 4;
    if (next(seed, 2))
        p.decay = 1 + next(seed, 150);
    int64_t end = p.decay > 0 ? p.decay : p.n_steps;
    if (next(seed, 3) == 0)
        p.warmup_fraction = next(seed, 99) / 100.0;
    else if (next(seed, 3))
        p.warmup = next(seed, (uint32_t)end);
    p.wsd = 1 + next(seed, (uint32_t)end);
    return p;
}

static void hundreds_of_schedules_follow_their_formulas(void **state)
{
    uint32_t seed = 20;
    (void)state;
    for (int i = 0; i < 400; i++) {
        plan p = some_plan(&seed, i);
        follow(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(edges_follow_their_formulas),
        cmocka_unit_test(hundreds_of_schedules_follow_their_formulas),
    };
    return cmocka_run_group_tests_name("rates", tests, NULL, NULL);
}
