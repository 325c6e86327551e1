/* test_gradient_law.c — a whole model's gradients are the slopes of its loss.
 *
 * For every weight w of every sample model, with dropout on (the same draw each time): along a
 * direction u, (loss(w + e u) - loss(w - e u)) / 2e equals dw . u. The direction mixes the gradient
 * itself with signs of a fixed sequence, so that a wrong scale, a missing part and a part too many
 * all show. Two steps e and e/2 are extrapolated (Richardson), which leaves an error of order e^4.
 * The loss is f32, good to about 3e-7; divided by e that is the noise below.
 */
#include "law.h"

#include <math.h>

static const double EPSILON = 2.5e-3, NOISE = 1e-6 / 2.5e-3;

typedef struct subject {
    rc_run *run;
    int32_t tokens[256], targets[256];
} subject;

static double loss_of(subject *s)
{
    return law_micro(s->run, s->tokens, s->targets, 0, 0);
}

static double direction_of(const float *grad, double norm, int64_t n, int64_t i)
{
    double sign = (i * 2654435761u >> 7 & 1) ? 1 : -1;
    return (norm > 0 ? (double)grad[i] / norm : 0) + sign / sqrt((double)n);
}

static void move(float *weight, const float *start, const double *u, double by, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        weight[i] = (float)((double)start[i] + by * u[i]);
}

static double slope_at(subject *s, float *weight, const float *start, const double *u, double e,
                       int64_t n)
{
    move(weight, start, u, e, n);
    double above = loss_of(s);
    move(weight, start, u, -e, n);
    return (above - loss_of(s)) / (2 * e);
}

static void check_weight(subject *s, const rc_run_param *param, const char *model,
                         rc_arena *mem)
{
    rc_error err = {0};
    int64_t n = param->tensor.n_elem;
    float *weight = param->weight, *grad = param->grad, *start;
    double *u, norm = 0, expected = 0;
    law_check(RC_NEW(mem, &start, n, &err), &err);
    law_check(RC_NEW(mem, &u, n, &err), &err);
    memcpy(start, weight, (size_t)n * sizeof *start);
    loss_of(s); /* leaves the gradients of the weights as they stand */
    for (int64_t i = 0; i < n; i++)
        norm += (double)grad[i] * (double)grad[i];
    norm = sqrt(norm);
    for (int64_t i = 0; i < n; i++) {
        u[i] = direction_of(grad, norm, n, i);
        expected += (double)grad[i] * u[i];
    }
    double wide = slope_at(s, weight, start, u, EPSILON, n);
    double slope = (4 * slope_at(s, weight, start, u, EPSILON / 2, n) - wide) / 3;
    memcpy(weight, start, (size_t)n * sizeof *start);
    if (!(fabs(slope - expected) <= 0.002 * fabs(expected) + NOISE))
        fail_msg("%s, %s: the slope is %.6g, the gradient says %.6g", model, param->name, slope,
                 expected);
}

static void gradients_are_slopes_of_the_loss(void **state)
{
    (void)state;
    for (size_t m = 0; m < LAW_N_MODELS; m++)
        for (size_t c = 0; c < 2; c++) {
            rc_error err = {0};
            rc_arena *mem = rc_arena_open();
            const rc_graph *graph = law_graph(&law_models[m], law_cores[c], mem);
            subject s;
            int n_params;
            assert_true(graph->dims.N <= 256);
            for (int64_t i = 0; i < graph->dims.N; i++) {
                s.tokens[i] = (int32_t)(i * 37 % graph->dims.W);
                s.targets[i] = i % 13 == 5 ? -1 : (int32_t)((i * 53 + 11) % graph->dims.W);
            }
            law_check(rc_run_open(law_schedule(graph, "none", 1, mem),
                                  &(rc_run_options){.seed = 7, .n_micro_batches = 1}, &s.run,
                                  &err),
                      &err);
            rc_run_init_weights(s.run);
            const rc_run_param *params = rc_run_params(s.run, &n_params);
            /* larger weights than at the start: every path must carry a slope worth seeing */
            for (int i = 0; i < n_params; i++)
                for (int64_t k = 0; k < params[i].tensor.n_elem; k++)
                    ((float *)params[i].weight)[k] +=
                        0.1f * sinf((float)(k * 131 + i) * 0.7f) * (i % 2 ? 0.5f : 1.0f);
            for (int i = 0; i < n_params; i++)
                check_weight(&s, &params[i], law_models[m].name, mem);
            rc_run_close(s.run);
            rc_arena_close(mem);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(gradients_are_slopes_of_the_loss)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
