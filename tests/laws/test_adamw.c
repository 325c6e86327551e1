/* test_adamw.c — the optimizer step of whole models against AdamW in double precision.
 *
 * source  Loshchilov and Hutter 2019, "Decoupled weight decay regularization", algorithm 2, with
 *         the schedule multiplier and alpha as one rate, which the decay is multiplied by too (as
 *         torch.optim.AdamW and Megatron do):
 *
 *           m = beta1 m + (1 - beta1) g          m^ = m / (1 - beta1^t)
 *           v = beta2 v + (1 - beta2) g^2        v^ = v / (1 - beta2^t)
 *           p = p - rate (m^ / (sqrt(v^) + eps) + lambda p)
 *
 * Rounding, u = 2^-24, is added up beside the reference. A moment is a sum of terms that shrink with
 * beta, each rounded: 4 u / (1 - beta) of the largest gradient. A step then rounds the weight twice and
 * its own move by some 16 u, by 2 u t more for what v gathered in t steps, and by what m is off. What
 * stands in the wrong place is off by a thousandth of a move at least, a thousand times as much.
 */
#include "step.h"

enum { N_STEPS = 20 };

/* Every kind of parameter, few elements each; some enough for two threads to share. */
static law_run open_small(const law_model *model, int n_threads)
{
    return law_open(model,
                    &(law_options){.words = {"model.num_layers=1", "model.hidden_size=48"},
                                   .n_threads = n_threads,
                                   .seed = 4});
}

typedef struct hyper {
    const char *name;
    double lr, weight_decay, beta1, beta2, eps;
    double size; /* of the gradients */
} hyper;

static const hyper hypers[] = {
    {"usual", 1e-2, 0.1, 0.9, 0.95, 1e-8, 1},
    {"slow moments", 3e-3, 0.01, 0.95, 0.999, 1e-8, 1e-3},
    {"no decay", 1e-2, 0, 0.9, 0.95, 1e-8, 1},
    {"strong decay", 1e-2, 10, 0.9, 0.95, 1e-8, 1},
    {"no first moment", 1e-2, 0.1, 0, 0.95, 1e-8, 1},
    {"no second moment", 1e-2, 0.1, 0.9, 0, 1e-8, 1},
    {"no moments", 1e-2, 0.1, 0, 0, 1e-8, 1},
    {"eps as large as the gradients", 1e-2, 0.1, 0.9, 0.95, 1e-2, 1e-2},
    {"eps far above them", 1e-2, 0.1, 0.9, 0.95, 1, 1e-2},
    {"rate 0", 0, 0.1, 0.9, 0.95, 1e-8, 1},
};
enum { N_HYPERS = sizeof hypers / sizeof *hypers };

/* Megatron's rule by name (megatron/core/optimizer/__init__.py: no decay for biases and for what has
 * one dimension, which is the norms): written apart from the shapes that our graph goes by. */
static bool has_decay(const char *name)
{
    size_t n = strlen(name);
    bool is_bias = n >= 5 && strcmp(name + n - 5, ".bias") == 0;
    return !is_bias && !strstr(name, "norm");
}

/* Gradient of element e in step t: signs change, a seventh is always 0, another gets one step. */
static float gradient(int64_t e, int t, double size)
{
    uint32_t x = (uint32_t)(e * 31 + t * 1009) * 2654435761u;
    x ^= x >> 15;
    double value = size * ((double)(x % 20001u) / 1e4 - 1);
    bool is_still = e % 7 == 3 || (e % 7 == 4 && t != 5);
    return is_still ? 0.0f : (float)value;
}

typedef struct reference {
    double *p, *m, *v;
    double *off; /* how far rounding may have taken p */
} reference;

static double moment_off(double beta)
{
    return 4 * law_unit / (1 - beta);
}

static reference start(const law_run *of)
{
    rc_error err = {0};
    reference ref;
    int64_t n = law_count(of);
    const float *p = law_copy(of, LAW_WEIGHT);
    law_check(RC_NEW(of->mem, &ref.p, n, &err), &err);
    law_check(RC_NEW(of->mem, &ref.m, n, &err), &err);
    law_check(RC_NEW(of->mem, &ref.v, n, &err), &err);
    law_check(RC_NEW(of->mem, &ref.off, n, &err), &err);
    for (int64_t i = 0; i < n; i++)
        ref.p[i] = (double)p[i];
    return ref;
}

static void reference_step(const law_run *of, const hyper *h, int t, reference *ref)
{
    int n_params;
    int64_t at = 0;
    const rc_run_param *params = rc_run_params(of->run, &n_params);
    double left1 = 1 - pow(h->beta1, t), left2 = 1 - pow(h->beta2, t);
    for (int i = 0; i < n_params; i++) {
        double lambda = has_decay(params[i].name) ? h->weight_decay : 0;
        for (int64_t end = at + params[i].tensor.n_elem; at < end; at++) {
            double g = (double)gradient(at, t, h->size), *m = &ref->m[at], *v = &ref->v[at];
            *m = h->beta1 * *m + (1 - h->beta1) * g;
            *v = h->beta2 * *v + (1 - h->beta2) * g * g;
            double under = left1 * (sqrt(*v / left2) + h->eps);
            ref->p[at] -= h->lr * (*m / under + lambda * ref->p[at]);
            ref->off[at] +=
                2 * law_unit * fabs(ref->p[at]) +
                h->lr / under *
                    ((16 + 2 * t) * law_unit * fabs(*m) + moment_off(h->beta1) * h->size);
        }
    }
}

static void our_step(const law_run *of, const hyper *h, int t)
{
    int n_params;
    int64_t at = 0;
    const rc_run_param *params = rc_run_params(of->run, &n_params);
    for (int i = 0; i < n_params; i++) {
        float *grad = params[i].grad;
        for (int64_t e = 0; e < params[i].tensor.n_elem; e++)
            grad[e] = gradient(at++, t, h->size);
    }
    step_update(of, &(rc_update){.lr = h->lr,
                                 .weight_decay = h->weight_decay,
                                 .beta1 = h->beta1,
                                 .beta2 = h->beta2,
                                 .eps = h->eps,
                                 .step = t});
}

static void need_close(const law_run *of, const hyper *h, const reference *ref,
                       const char *name)
{
    const float *p = law_copy(of, LAW_WEIGHT), *m = law_copy(of, LAW_MOMENT1),
                *v = law_copy(of, LAW_MOMENT2);
    const double m_off = moment_off(h->beta1) * h->size;
    const double v_off = moment_off(h->beta2) * h->size * h->size;
    for (int64_t i = 0; i < law_count(of); i++) {
        if (!(fabs((double)p[i] - ref->p[i]) <= ref->off[i]))
            fail_msg("%s: weight %lld is %.9g, not %.9g", name, (long long)i, (double)p[i],
                     ref->p[i]);
        if (!(fabs((double)m[i] - ref->m[i]) <= m_off &&
              fabs((double)v[i] - ref->v[i]) <= v_off))
            fail_msg("%s: the moments of weight %lld are %.9g and %.9g, not %.9g and %.9g",
                     name, (long long)i, (double)m[i], (double)v[i], ref->m[i], ref->v[i]);
    }
}

static void follow(const law_model *model, const hyper *h, int n_threads)
{
    char name[160];
    law_run run = open_small(model, n_threads);
    reference ref = start(&run);
    for (int t = 1; t <= N_STEPS; t++) {
        our_step(&run, h, t);
        reference_step(&run, h, t, &ref);
        snprintf(name, sizeof name, "%s, %s, %d threads, step %d", model->name, h->name,
                 n_threads, t);
        if (t < 4 || t == N_STEPS) /* what is wrong at first and fades is looked at early */
            need_close(&run, h, &ref, name);
    }
    law_close(&run);
}

static void every_step_follows_the_paper(void **state)
{
    (void)state;
    for (int i = 0; i < N_HYPERS; i++)
        follow(&law_models[i % 2 ? 2 : 0], &hypers[i], 1 + i / 2 % 2);
    for (size_t m = 0; m < LAW_N_MODELS; m++)
        follow(&law_models[m], &hypers[0], 2);
}

/* The threads share the work, not the result. */
static void every_thread_count_gives_the_same_bits(void **state)
{
    (void)state;
    for (int n_threads = 2; n_threads <= 4; n_threads++) {
        law_run one = open_small(&law_models[0], 1),
                many = open_small(&law_models[0], n_threads);
        for (int t = 1; t <= 3; t++) {
            our_step(&one, &hypers[0], t);
            our_step(&many, &hypers[0], t);
        }
        law_need_same(&one, &many, "threads");
        law_close(&many);
        law_close(&one);
    }
}

/* With a gradient of 0, rate 1/2 and decay 1/2, a weight of 1 becomes 3/4 or stays. */
static void decay_is_on_matrices_alone(void **state)
{
    (void)state;
    for (size_t m = 0; m < LAW_N_MODELS; m++) {
        int n_params, n_decayed = 0;
        law_run run = open_small(&law_models[m], 1);
        const rc_run_param *params = rc_run_params(run.run, &n_params);
        for (int i = 0; i < n_params; i++)
            for (int64_t e = 0; e < params[i].tensor.n_elem; e++)
                ((float *)params[i].weight)[e] = 1;
        step_update(&run, &(rc_update){.lr = 0.5,
                                       .weight_decay = 0.5,
                                       .beta1 = 0.9,
                                       .beta2 = 0.95,
                                       .eps = 1e-8,
                                       .step = 1});
        for (int i = 0; i < n_params; i++) {
            const char *name = params[i].name;
            const float right = has_decay(name) ? 0.75f : 1.0f;
            n_decayed += has_decay(name);
            for (int64_t e = 0; e < params[i].tensor.n_elem; e++)
                if (((float *)params[i].weight)[e] != right)
                    fail_msg("%s: a weight of %s is %g, not %g", law_models[m].name, name,
                             (double)((float *)params[i].weight)[e], (double)right);
        }
        assert_true(n_decayed > 4 && n_decayed < n_params);
        law_close(&run);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_step_follows_the_paper),
        cmocka_unit_test(every_thread_count_gives_the_same_bits),
        cmocka_unit_test(decay_is_on_matrices_alone),
    };
    return cmocka_run_group_tests_name("adamw", tests, NULL, NULL);
}
