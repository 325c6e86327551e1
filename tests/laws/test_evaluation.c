/* test_evaluation.c — an evaluation is the model without dropout, and leaves no trace. */
#include "step.h"

static const char *const settings[] = {"none", "selective/core_attn+layernorm+mlp",
                                       "full/uniform/2"};
enum { N_SETTINGS = sizeof settings / sizeof *settings, N_MICRO = 2, N_STEPS = 3 };

static void need_same_loss(const law_model *model, law_options options)
{
    law_batch batch;
    law_run wet = law_open(model, &options);
    options.words[0] = "model.hidden_dropout=0";
    options.words[1] = "model.attention_dropout=0";
    law_run dry = law_open(model, &options);
    law_fill(wet.graph, 0, &batch);
    double loss = step_eval(&wet, &batch), right = step_eval(&dry, &batch);
    assert_true(right > 1 && right < 20);
    if (memcmp(&loss, &right, sizeof loss) != 0)
        fail_msg("%s %s %s: evaluated %.9g, without dropout %.9g", model->name, options.core,
                 options.setting, loss, right);
    size_t n = (size_t)(wet.graph->dims.N * wet.graph->dims.W);
    assert_memory_equal(rc_run_logits(wet.run), rc_run_logits(dry.run), n * sizeof(float));
    /* and a training step is not: the model has its dropout back */
    bool has_dropout = strcmp(model->name, "gpt-no-dropout") != 0;
    assert_true((step_micro(&wet, &batch, 0, 0) != right) == has_dropout);
    law_close(&dry);
    law_close(&wet);
}

/* The same bits of loss and logits as the model that was built with dropout 0, after the same seed. */
static void evaluation_is_the_model_without_dropout(void **state)
{
    (void)state;
    for (size_t m = 0; m < LAW_N_MODELS; m++)
        for (size_t c = 0; c < 2; c++)
            need_same_loss(&law_models[m], (law_options){.core = law_cores[c],
                                                         .setting = settings[(m + c) % 3],
                                                         .seed = 5 + m});
}

typedef struct losses {
    double of_micro[N_STEPS][N_MICRO], norm[N_STEPS];
} losses;

/* Steps; where asked, an evaluation at every moment that there is. */
static losses take_steps(const law_run *of, bool is_evaluated)
{
    losses out;
    law_batch batch, other;
    law_fill(of->graph, 1000, &other);
    double first = is_evaluated ? step_eval(of, &other) : 0;
    for (int step = 0; step < N_STEPS; step++) {
        for (int micro = 0; micro < N_MICRO; micro++) {
            law_fill(of->graph, (step * N_MICRO + micro) * 2, &batch);
            out.of_micro[step][micro] = step_micro(of, &batch, step, micro);
            if (is_evaluated && step == 0)
                assert_true(step_eval(of, &other) == first); /* no weight has moved */
            else if (is_evaluated)
                step_eval(of, &other);
        }
        rc_update update = {.lr = 1e-2,
                            .weight_decay = 0.1,
                            .beta1 = 0.9,
                            .beta2 = 0.95,
                            .eps = 1e-8,
                            .clip_grad = 1,
                            .step = step + 1};
        out.norm[step] = step_update(of, &update);
        if (is_evaluated)
            assert_true(step_eval(of, &other) != first);
    }
    return out;
}

static void evaluation_leaves_no_trace(void **state)
{
    (void)state;
    for (size_t m = 0; m < LAW_N_MODELS; m++) {
        char name[160];
        law_options options = {.core = law_cores[m % 2],
                               .setting = settings[m % N_SETTINGS],
                               .n_micro = N_MICRO,
                               .n_threads = 1 + (int)(m / 2 % 2),
                               .is_poisoned = true};
        snprintf(name, sizeof name, "%s %s", law_models[m].name, options.setting);
        law_run with = law_open(&law_models[m], &options);
        law_run without = law_open(&law_models[m], &options);
        losses a = take_steps(&with, true), b = take_steps(&without, false);
        if (memcmp(&a, &b, sizeof a) != 0)
            fail_msg("%s: losses or norms differ", name);
        law_need_same(&with, &without, name);
        law_close(&without);
        law_close(&with);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(evaluation_is_the_model_without_dropout),
        cmocka_unit_test(evaluation_leaves_no_trace),
    };
    return cmocka_run_group_tests_name("evaluation", tests, NULL, NULL);
}
