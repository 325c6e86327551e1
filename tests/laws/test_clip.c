/* test_clip.c — clipping by the global norm: never up, and down by clip / (norm + 1e-6).
 *
 * source  Pascanu, Mikolov and Bengio 2013, "On the difficulty of training recurrent neural
 *         networks", algorithm 1; Megatron-LM megatron/core/optimizer/clip_grads.py,
 *         clip_grad_by_total_norm_fp32: where clip / (norm + 1e-6) is below 1, and only there,
 *         every gradient is multiplied by it
 *
 * With beta1 = 0 the first moment after an update is the gradient that AdamW was handed.
 */
#include "step.h"

static const rc_update plain = {
    .lr = 1e-2, .weight_decay = 0.1, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .step = 1};

static law_run one_step(const law_model *model, int n_threads)
{
    law_batch batch;
    law_run out = law_open(model, &(law_options){.n_threads = n_threads, .seed = 2});
    law_fill(out.graph, 0, &batch);
    step_micro(&out, &batch, 0, 0);
    return out;
}

static double norm_of(const law_run *of)
{
    const float *grad = law_copy(of, LAW_GRAD);
    double sum = 0;
    for (int64_t i = 0; i < law_count(of); i++)
        sum += (double)grad[i] * (double)grad[i];
    return sqrt(sum);
}

/* Both add n squares in double, each sum off by at most n 2^-53. */
static void norm_is_that_of_all_gradients(void **state)
{
    (void)state;
    for (size_t m = 0; m < LAW_N_MODELS; m++)
        for (int n_threads = 1; n_threads <= 2; n_threads++) {
            law_run run = one_step(&law_models[m], n_threads);
            double right = norm_of(&run), norm = step_update(&run, &plain);
            double allowed = (double)law_count(&run) * ldexp(1, -52);
            assert_true(right > 0.1);
            if (!(fabs(norm - right) <= allowed * right))
                fail_msg("%s: the norm is %.17g, not %.17g", law_models[m].name, norm, right);
            law_close(&run);
        }
}

/* No clip at all, one far above and one just above the norm: the same bits everywhere. */
static void norm_below_the_clip_changes_nothing(void **state)
{
    (void)state;
    for (size_t m = 0; m < LAW_N_MODELS; m++) {
        law_run never = one_step(&law_models[m], 1);
        double norm = step_update(&never, &plain);
        const double clips[] = {norm * (1 + 1e-9) + 1e-6, 2 * norm, 1e6 * norm, 1e300};
        for (size_t i = 0; i < sizeof clips / sizeof *clips; i++) {
            char name[100];
            law_run run = one_step(&law_models[m], 1);
            rc_update update = plain;
            update.clip_grad = clips[i];
            snprintf(name, sizeof name, "%s, clip %g above norm %g", law_models[m].name,
                     clips[i], norm);
            assert_true(step_update(&run, &update) == norm);
            law_need_same(&never, &run, name);
            law_close(&run);
        }
        law_close(&never);
    }
}

/* Above it every gradient is multiplied by clip / (norm + 1e-6), in single precision and to the bit:
 * 1e-6 is 17 units of the last place. A clip at the norm itself already takes that millionth. */
static void norm_above_the_clip_is_brought_down_to_it(void **state)
{
    static const double shares[] = {1, 0.5, 1e-3, 1e-9};
    (void)state;
    for (size_t m = 0; m < LAW_N_MODELS; m++)
        for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
            law_run run = one_step(&law_models[m], 1);
            const float *grad = law_copy(&run, LAW_GRAD);
            double norm = norm_of(&run);
            rc_update update = plain;
            update.beta1 = 0;
            update.clip_grad = shares[i] * norm;
            double told = step_update(&run, &update);
            assert_true(fabs(told - norm) <= 1e-9 * norm); /* as it was before clipping */
            const float *handed = law_copy(&run, LAW_MOMENT1);
            const float *square = law_copy(&run, LAW_MOMENT2);
            const float factor = (float)(update.clip_grad / (told + 1e-6));
            assert_true(factor < 1);
            for (int64_t e = 0; e < law_count(&run); e++) {
                double right = (1 - plain.beta2) * (double)handed[e] * (double)handed[e];
                assert_true(fabs((double)square[e] - right) <= 8 * law_unit * right + 1e-36);
                if (handed[e] != grad[e] * factor)
                    fail_msg("%s: AdamW was handed %.9g for %.9g, factor %.9g",
                             law_models[m].name, (double)handed[e], (double)grad[e],
                             (double)factor);
            }
            assert_memory_equal(grad, law_copy(&run, LAW_GRAD),
                                (size_t)law_count(&run) * sizeof *grad);
            law_close(&run);
        }
}

/* A gradient of 0 has norm 0 and stays 0 under any clip: decay alone moves the weights. */
static void gradient_of_zero_stays_zero(void **state)
{
    law_batch batch;
    rc_update update = plain;
    (void)state;
    law_run run = law_open(&law_models[0], &(law_options){.seed = 2});
    law_fill(run.graph, 0, &batch);
    memset(batch.targets, 0xFF, sizeof batch.targets);
    step_micro(&run, &batch, 0, 0);
    update.clip_grad = 1e-3;
    update.weight_decay = 0;
    const float *before = law_copy(&run, LAW_WEIGHT);
    assert_true(step_update(&run, &update) == 0);
    assert_memory_equal(before, law_copy(&run, LAW_WEIGHT),
                        (size_t)law_count(&run) * sizeof *before);
    law_close(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(norm_is_that_of_all_gradients),
        cmocka_unit_test(norm_below_the_clip_changes_nothing),
        cmocka_unit_test(norm_above_the_clip_is_brought_down_to_it),
        cmocka_unit_test(gradient_of_zero_stays_zero),
    };
    return cmocka_run_group_tests_name("clip", tests, NULL, NULL);
}
