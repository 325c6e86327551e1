/* test_padding_law.c — rows that only make the vocabulary a round number are no words: the same
 * model trains the same with and without them. */
#include "law.h"

#define MODEL                                                                                  \
    "model.num_layers=2", "model.hidden_size=24", "model.num_attention_heads=2",               \
        "model.seq_length=19", "train.micro_batch_size=2", "model.hidden_dropout=0.1",         \
        "model.attention_dropout=0"

enum { W = 101, H = 24, N_STEPS = 3, N_TOKENS = 38 };

/* Initial weights are large, so that a padded row that took part would be seen in the loss. */
static const law_model models[][2] = {
    {{"tied",
      {MODEL, "model.vocab_size=101", "model.init_method_std=0.5",
       "model.make_vocab_size_divisible_by=1"}},
     {"tied, padded",
      {MODEL, "model.vocab_size=101", "model.init_method_std=0.5",
       "model.make_vocab_size_divisible_by=128"}}},
    {{"untied",
      {MODEL, "model.vocab_size=101", "model.share_embeddings_and_output_weights=false",
       "model.make_vocab_size_divisible_by=1"}},
     {"untied, padded",
      {MODEL, "model.vocab_size=101", "model.share_embeddings_and_output_weights=false",
       "model.make_vocab_size_divisible_by=128"}}},
};

typedef struct trained {
    double losses[N_STEPS], norms[N_STEPS], eval;
    rc_run *run;
    const rc_graph *graph;
} trained;

static trained train(const law_model *model, const char *core, const char *backend, int threads,
                     rc_arena *mem)
{
    trained out = {.graph = law_graph(model, core, mem)};
    rc_error err = {0};
    int32_t tokens[N_TOKENS], targets[N_TOKENS];
    rc_run_options options = {
        .backend = backend, .seed = 5, .n_micro_batches = 1, .is_poisoned = true};
    law_check(
        rc_run_open(law_schedule(out.graph, "none", threads, mem), &options, &out.run, &err),
        &err);
    rc_run_init_weights(out.run);
    for (int i = 0; i < N_TOKENS; i++) {
        tokens[i] = i * 37 % W;
        targets[i] = i == 4 ? -1 : (i * 53 + W - 1) % W;
    }
    for (int step = 0; step < N_STEPS; step++) {
        out.losses[step] = law_micro(out.run, tokens, targets, step, 0);
        out.norms[step] = law_update(out.run, &(rc_update){.lr = 0.01,
                                                           .weight_decay = 0.1,
                                                           .beta1 = 0.9,
                                                           .beta2 = 0.95,
                                                           .eps = 1e-8,
                                                           .clip_grad = 0,
                                                           .step = step + 1});
    }
    rc_batch batch = {tokens, targets, 0, 0};
    law_check(rc_run_eval(out.run, &batch, &out.eval, &err), &err);
    return out;
}

static void need_zero(const float *at, int64_t first, int64_t end, const char *what,
                      const char *name)
{
    for (int64_t i = first; i < end; i++)
        if (!(at[i] <= 0 && at[i] >= 0))
            fail_msg("%s: %s of padding is %g", name, what, (double)at[i]);
}

/* Gradients of the last step, weights and moments behind it. */
static void need_same(const rc_run_param *plain, const rc_run_param *padded, const char *name)
{
    int64_t n = plain->tensor.n_elem, n_padded = padded->tensor.n_elem;
    assert_string_equal(plain->name, padded->name);
    if (memcmp(plain->grad, padded->grad, (size_t)n * sizeof(float)) != 0 ||
        memcmp(plain->weight, padded->weight, (size_t)n * sizeof(float)) != 0 ||
        memcmp(plain->moment1, padded->moment1, (size_t)n * sizeof(float)) != 0 ||
        memcmp(plain->moment2, padded->moment2, (size_t)n * sizeof(float)) != 0)
        fail_msg("%s: %s is not what it is without padding", name, plain->name);
    need_zero(padded->grad, n, n_padded, "a gradient", name);
    need_zero(padded->weight, n, n_padded, "a weight", name);
    need_zero(padded->moment1, n, n_padded, "a moment", name);
    need_zero(padded->moment2, n, n_padded, "a moment", name);
}

static void compare(size_t m, const char *core, const char *backend, int threads)
{
    char name[100];
    int n, n_padded;
    rc_arena *mem = rc_arena_open();
    trained plain = train(&models[m][0], core, backend, threads, mem);
    trained padded = train(&models[m][1], core, backend, threads, mem);
    snprintf(name, sizeof name, "%s %s %s, %d threads", models[m][1].name, core, backend,
             threads);
    assert_int_equal(plain.graph->dims.V, W);
    assert_int_equal(padded.graph->dims.V, 128);
    if (memcmp(plain.losses, padded.losses, sizeof plain.losses) != 0 ||
        plain.eval != padded.eval)
        fail_msg("%s: loss %.9g, without padding %.9g", name, padded.losses[0],
                 plain.losses[0]);
    for (int i = 0; i < N_STEPS; i++) /* zeros among its terms may group them in another way */
        if (!(plain.norms[i] > 0 &&
              (plain.norms[i] - padded.norms[i]) / plain.norms[i] < 1e-6 &&
              (padded.norms[i] - plain.norms[i]) / plain.norms[i] < 1e-6))
            fail_msg("%s: norm %.9g, without padding %.9g", name, padded.norms[i],
                     plain.norms[i]);
    assert_memory_equal(rc_run_logits(plain.run), rc_run_logits(padded.run),
                        N_TOKENS * W * sizeof(float));
    const rc_run_param *a = rc_run_params(plain.run, &n);
    const rc_run_param *b = rc_run_params(padded.run, &n_padded);
    int n_wider = 0;
    assert_int_equal(n, n_padded);
    for (int i = 0; i < n; i++) {
        need_same(&a[i], &b[i], name);
        n_wider += b[i].tensor.n_elem - a[i].tensor.n_elem == (128 - W) * H;
    }
    assert_int_equal(n_wider, m == 0 ? 1 : 2); /* the comparison compared something */
    rc_run_close(plain.run);
    rc_run_close(padded.run);
    rc_arena_close(mem);
}

static void a_padded_vocabulary_trains_as_the_bare_one(void **state)
{
    static const char *const backends[] = {"cpu", "naive"};
    (void)state;
    for (size_t m = 0; m < sizeof models / sizeof *models; m++)
        for (size_t c = 0; c < 2; c++)
            for (size_t k = 0; k < 2; k++)
                for (int threads = 1; threads <= (k ? 1 : 3); threads++)
                    compare(m, law_cores[c], backends[k], threads);
}

static void a_token_of_the_padding_is_refused(void **state)
{
    (void)state;
    rc_arena *mem = rc_arena_open();
    trained it = train(&models[0][1], "fused", "cpu", 1, mem);
    static const int32_t good[N_TOKENS] = {0}, masked[N_TOKENS] = {-1, -7};
    int32_t word[N_TOKENS] = {0}, pad[N_TOKENS] = {0};
    word[3] = W - 1;
    pad[3] = W;
    const struct {
        const int32_t *tokens, *targets;
        bool is_good;
    } cases[] = {{good, good, true}, {word, word, true}, {good, masked, true},
                 {pad, good, false}, {good, pad, false}, {masked, good, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rc_error err = {0};
        double loss;
        rc_batch batch = {cases[i].tokens, cases[i].targets, 0, 0};
        rc_code want = cases[i].is_good ? RC_OK : RC_E_INPUT;
        if (rc_run_eval(it.run, &batch, &loss, &err) != want)
            fail_msg("evaluation of case %zu: %s", i, err.msg);
        err = (rc_error){0};
        if (rc_run_micro(it.run, &batch, &loss, &err) != want)
            fail_msg("step of case %zu: %s", i, err.msg);
        if (!cases[i].is_good && !strstr(err.msg, "the vocabulary has 0 to 100"))
            fail_msg("case %zu: %s", i, err.msg);
    }
    rc_run_close(it.run);
    rc_arena_close(mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_padded_vocabulary_trains_as_the_bare_one),
        cmocka_unit_test(a_token_of_the_padding_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
