/* test_accumulation.c — k micro-batches are the mean of k, and one batch of all.
 *
 * A micro-batch's loss is the mean over its targets that have one, and a step's loss and gradient
 * are the mean over its micro-batches, whatever each counts (Megatron's default,
 * calculate_per_token_loss false). So one batch of all k is the same number where all count alike,
 * and else weighs each micro-batch by its count.
 *
 * Rounding: single precision, u = 2^-24 = 6e-8. A gradient is a sum over up to 296 tokens behind
 * products of up to 192 terms in some 20 ops; errors of random sign grow with the square root,
 * sqrt(296 * 20) u = 4.6e-6 of a tensor's largest element. Four times that is allowed; a forgotten
 * divisor, or a micro-batch too few, is off by a tenth at least.
 */
#include "step.h"

enum { MOST_K = 4, B = 2 };
static const double TOLERANCE = 2e-5, LOSS_TOLERANCE = 2e-6;

typedef enum masking {
    EVERY_TARGET,   /* all have a loss */
    AS_MANY_EACH,   /* each micro-batch lacks the same number */
    ANOTHER_NUMBER, /* micro-batch i lacks 10 + 20 i */
    ONE_HAS_NONE    /* the second has no target at all */
} masking;

typedef struct trial {
    const law_model *model;
    const char *core;
    int k;
    masking masked;
    char name[160];
} trial;

static void fill(const trial *at, const rc_graph *graph, int micro, law_batch *batch)
{
    const int64_t n = graph->dims.s * B;
    law_fill(graph, micro * B, batch);
    if (at->masked == EVERY_TARGET)
        return;
    int64_t n_masked = at->masked == AS_MANY_EACH ? 9 : 10 + 20 * micro;
    if (at->masked == ONE_HAS_NONE)
        n_masked = micro == 1 ? n : 0;
    for (int64_t i = 0; i < n_masked; i++) /* 7 and 74 share no divisor: each another one */
        batch->targets[(i * 7 + micro) % n] = -1;
}

static int64_t count_targets(const law_batch *batch, int64_t n)
{
    int64_t n_counted = 0;
    for (int64_t i = 0; i < n; i++)
        n_counted += batch->targets[i] >= 0;
    return n_counted;
}

/* All k micro-batches as one. */
static void fill_whole(const trial *at, const law_run *part, law_batch *whole)
{
    const int64_t n = part->graph->dims.s * B;
    law_batch batch;
    for (int i = 0; i < at->k; i++) {
        fill(at, part->graph, i, &batch);
        memcpy(whole->tokens + i * n, batch.tokens, (size_t)n * sizeof *batch.tokens);
        memcpy(whole->targets + i * n, batch.targets, (size_t)n * sizeof *batch.targets);
    }
}

/* What must come out, from each micro-batch by itself. */
typedef struct sums {
    double *mean,
        *by_count; /* of gradients: every micro-batch alike; weighted by its targets */
    double mean_loss, loss_by_count;
} sums;

static sums add_single_ones(const trial *at, const law_run *single)
{
    rc_error err = {0};
    const int64_t n = law_count(single), n_tokens = single->graph->dims.n;
    int64_t counted[MOST_K], n_counted = 0;
    sums out = {.mean_loss = 0};
    law_batch batch;
    law_check(RC_NEW(single->mem, &out.mean, n, &err), &err);
    law_check(RC_NEW(single->mem, &out.by_count, n, &err), &err);
    for (int i = 0; i < at->k; i++) {
        fill(at, single->graph, i, &batch);
        n_counted += counted[i] = count_targets(&batch, n_tokens);
    }
    for (int i = 0; i < at->k; i++) {
        fill(at, single->graph, i, &batch);
        double share = (double)counted[i] / (double)n_counted;
        double loss = step_micro(single, &batch, 0, 0);
        const float *grad = law_copy(single, LAW_GRAD);
        out.mean_loss += loss / at->k;
        out.loss_by_count += loss * share;
        for (int64_t e = 0; e < n; e++) {
            out.mean[e] += (double)grad[e] / at->k;
            out.by_count[e] += (double)grad[e] * share;
        }
    }
    return out;
}

static void need_close(const trial *at, const law_run *run, const double *right,
                       const char *what)
{
    int n_params;
    const rc_run_param *params = rc_run_params(run->run, &n_params);
    for (int i = 0; i < n_params; i++) {
        const float *grad = params[i].grad;
        double most = 0, off = 0;
        for (int64_t e = 0; e < params[i].tensor.n_elem; e++) {
            most = fmax(most, fabs(right[e]));
            off = fmax(off, fabs((double)grad[e] - right[e]));
        }
        assert_true(most > 0); /* a tensor without a gradient would prove nothing */
        if (!(off <= TOLERANCE * most))
            fail_msg("%s: the gradient of %s is off by %.2g of its largest from %s", at->name,
                     params[i].name, off / most, what);
        right += params[i].tensor.n_elem;
    }
}

static void need_loss(const trial *at, double loss, double right, const char *what)
{
    if (!(fabs(loss - right) <= LOSS_TOLERANCE * right))
        fail_msg("%s: the loss is %.9g, %s %.9g", at->name, loss, what, right);
}

static double accumulate(const trial *at, const law_run *run, int64_t step)
{
    law_batch batch;
    double loss = 0;
    for (int i = 0; i < at->k; i++) {
        fill(at, run->graph, i, &batch);
        loss += step_micro(run, &batch, step, i) / at->k;
    }
    return loss;
}

static void try_one(trial *at)
{
    char words[64];
    law_batch batch;
    snprintf(at->name, sizeof at->name, "%s %s, %d micro-batches, masking %d", at->model->name,
             at->core, at->k, (int)at->masked);
    snprintf(words, sizeof words, "train.micro_batch_size=%d", B * at->k);
    law_options options = {.words = {"model.hidden_dropout=0", "model.attention_dropout=0"},
                           .core = at->core,
                           .seed = 11};
    law_run single = law_open(at->model, &options);
    sums right = add_single_ones(at, &single);

    options.n_micro = at->k;
    law_run parts = law_open(at->model, &options);
    double loss = accumulate(at, &parts, 0);
    need_close(at, &parts, right.mean, "the mean of the micro-batches'");
    need_loss(at, loss, right.mean_loss, "the micro-batches' mean");
    /* The next step begins at zero again, or it would hold this one's gradient as well. */
    const float *first = law_copy(&parts, LAW_GRAD);
    accumulate(at, &parts, 1);
    assert_memory_equal(first, law_copy(&parts, LAW_GRAD),
                        (size_t)law_count(&parts) * sizeof *first);

    options.n_micro = 1;
    options.words[2] = words;
    law_run whole = law_open(at->model, &options);
    fill_whole(at, &single, &batch);
    loss = step_micro(&whole, &batch, 0, 0);
    need_close(at, &whole, right.by_count, "the micro-batches', weighted by their targets");
    need_loss(at, loss, right.loss_by_count, "weighted by targets");
    if (at->masked == EVERY_TARGET || at->masked == AS_MANY_EACH)
        need_close(at, &whole, right.mean, "the accumulated one");
    law_close(&whole);
    law_close(&parts);
    law_close(&single);
}

static void micro_batches_are_their_mean_and_one_batch(void **state)
{
    static const struct {
        int k;
        masking masked;
    } rows[] = {{1, EVERY_TARGET}, {2, ANOTHER_NUMBER}, {2, ONE_HAS_NONE},
                {3, AS_MANY_EACH}, {4, EVERY_TARGET},   {4, ANOTHER_NUMBER}};
    (void)state;
    for (size_t m = 0; m < LAW_N_MODELS; m++)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            trial at = {.model = &law_models[m],
                        .core = law_cores[(m + i) % 2],
                        .k = rows[i].k,
                        .masked = rows[i].masked};
            try_one(&at);
        }
}

/* Without a single target the loss is 0 and so is every gradient: not 0/0. */
static void a_step_without_targets_has_no_gradient(void **state)
{
    law_batch batch;
    (void)state;
    law_run run = law_open(&law_models[0], &(law_options){.n_micro = 2});
    law_fill(run.graph, 0, &batch);
    memset(batch.targets, 0xFF, sizeof batch.targets);
    for (int i = 0; i < 2; i++)
        assert_true(step_micro(&run, &batch, 0, i) == 0);
    const float *grad = law_copy(&run, LAW_GRAD);
    for (int64_t e = 0; e < law_count(&run); e++)
        assert_true(grad[e] == 0);
    law_close(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(micro_batches_are_their_mean_and_one_batch),
        cmocka_unit_test(a_step_without_targets_has_no_gradient),
    };
    return cmocka_run_group_tests_name("accumulation", tests, NULL, NULL);
}
