/* test_run_laws.c — what holds when schedules run: predicted is used, recompute is retain. */
#include "law.h"

enum { MOST_MICRO = 3, N_STEPS = 2 };

/* Everything a setting may not change: losses, gradients and weights of two steps. */
typedef struct outcome {
    double losses[N_STEPS * MOST_MICRO];
    double norms[N_STEPS];
    float *grads, *weights;
    int64_t n;
} outcome;

static void fill_tokens(const rc_graph *graph, int draw, int32_t *tokens, int32_t *targets)
{
    uint32_t x = 12345u + 777u * (uint32_t)draw;
    for (int64_t i = 0; i < graph->dims.N; i++) {
        x = x * 1664525u + 1013904223u;
        tokens[i] = (int32_t)(x >> 8) % (int32_t)graph->dims.W;
        x = x * 1664525u + 1013904223u;
        targets[i] = i % 11 == 3 ? -1 : (int32_t)(x >> 8) % (int32_t)graph->dims.W;
    }
}

static void copy_params(const rc_run *run, outcome *out, rc_arena *mem)
{
    int n_params;
    rc_error err = {0};
    const rc_run_param *params = rc_run_params(run, &n_params);
    out->n = 0;
    for (int i = 0; i < n_params; i++)
        out->n += params[i].tensor.n_elem;
    law_check(RC_NEW(mem, &out->grads, out->n, &err), &err);
    law_check(RC_NEW(mem, &out->weights, out->n, &err), &err);
    int64_t at = 0;
    for (int i = 0; i < n_params; i++) {
        size_t bytes = (size_t)params[i].tensor.bytes;
        memcpy(out->grads + at, params[i].grad, bytes);
        memcpy(out->weights + at, params[i].weight, bytes);
        at += params[i].tensor.n_elem;
    }
}

static outcome run_steps(const rc_schedule *schedule, int n_micro, const char *name,
                         rc_arena *mem)
{
    rc_error err = {0};
    rc_run *run;
    outcome out = {.n = 0}; /* losses beyond n_micro stay 0 */
    int32_t tokens[4096], targets[4096];
    rc_run_options options = {.seed = 42, .n_micro_batches = n_micro, .is_poisoned = true};
    law_check(rc_run_open(schedule, &options, &run, &err), &err);
    rc_run_init_weights(run);
    for (int step = 0; step < N_STEPS; step++) {
        for (int micro = 0; micro < n_micro; micro++) {
            int at = step * n_micro + micro;
            fill_tokens(schedule->graph, at, tokens, targets);
            out.losses[at] = law_micro(run, tokens, targets, step, micro);
        }
        rc_update update = {.lr = 1e-3,
                            .weight_decay = 0.1,
                            .beta1 = 0.9,
                            .beta2 = 0.95,
                            .eps = 1e-8,
                            .clip_grad = 1,
                            .step = step + 1};
        out.norms[step] = law_update(run, &update);
    }
    copy_params(run, &out, mem);
    for (int i = 0; i < N_STEPS * n_micro; i++)
        if (!(out.losses[i] > 0 && out.losses[i] < 20))
            fail_msg("%s: loss %g", name, out.losses[i]);
    rc_run_close(run);
    return out;
}

static void need_same(const outcome *control, const outcome *other, const char *name)
{
    if (memcmp(control->losses, other->losses, sizeof control->losses) != 0)
        fail_msg("%s: the losses differ: %.9g, not %.9g", name, other->losses[0],
                 control->losses[0]);
    assert_int_equal(control->n, other->n);
    for (int64_t i = 0; i < control->n; i++)
        if (memcmp(&control->grads[i], &other->grads[i], sizeof(float)) != 0)
            fail_msg("%s: gradient %lld is %.9g, not %.9g", name, (long long)i,
                     (double)other->grads[i], (double)control->grads[i]);
    if (memcmp(control->weights, other->weights, (size_t)control->n * sizeof(float)) != 0 ||
        memcmp(control->norms, other->norms, sizeof control->norms) != 0)
        fail_msg("%s: weights differ", name);
}

/* Loss, every gradient and every weight after two steps of two micro-batches, dropouts on, are the
 * same bits under every setting. */
static void every_setting_gives_the_same_bits(void **state)
{
    (void)state;
    for (size_t m = 0; m < LAW_N_MODELS; m++)
        for (size_t c = 0; c < 2; c++)
            for (int threads = 1; threads <= 2; threads++) {
                rc_arena *mem = rc_arena_open();
                const rc_graph *graph = law_graph(&law_models[m], law_cores[c], mem);
                law_settings settings = law_all_settings(graph, mem);
                outcome control =
                    run_steps(law_schedule(graph, "none", threads, mem), 2, "none", mem);
                for (size_t i = 1; i < settings.n; i++) {
                    char name[200];
                    snprintf(name, sizeof name, "%s %s %s, %d threads", law_models[m].name,
                             law_cores[c], settings.at[i], threads);
                    outcome other = run_steps(law_schedule(graph, settings.at[i], threads, mem),
                                              2, name, mem);
                    need_same(&control, &other, name);
                }
                rc_arena_close(mem);
            }
}

/* A fate for every tensor, drawn from `seed`: a third of what ops compute is discarded, a tenth pinned. */
static rc_policy *draw_policy(const rc_graph *graph, uint32_t seed, rc_arena *mem)
{
    rc_error err = {0};
    rc_tensor_fate *fates;
    rc_policy *policy;
    char name[40];
    uint32_t x = seed * 2654435761u + 1;
    law_check(RC_NEW(mem, &fates, graph->n_tensors, &err), &err);
    for (int i = 0; i < graph->n_tensors; i++) {
        const rc_tensor tensor = rc_graph_tensor(graph, i);
        x = x * 1664525u + 1013904223u;
        if (tensor.producer < 0 || tensor.kind == RC_TENSOR_LOSS)
            continue;
        if (x >> 16 < 65536 / 3)
            fates[i] = (rc_tensor_fate){RC_FATE_DISCARD, RC_BY_CALLER};
        else if (x >> 16 < 65536 / 3 + 65536 / 10)
            fates[i] = (rc_tensor_fate){RC_FATE_PIN, 0};
    }
    snprintf(name, sizeof name, "drawn %u", seed);
    law_check(rc_policy_make_of(graph, fates, name, mem, &policy, &err), &err);
    return policy;
}

static void need_predicted(const rc_schedule *schedule, const char *name, rc_arena *mem);

/* Whatever is discarded and whatever stays: the same bits, in the bytes that were predicted. */
static void every_policy_gives_the_same_bits(void **state)
{
    (void)state;
    for (size_t m = 0; m < LAW_N_MODELS; m++)
        for (size_t c = 0; c < 2; c++) {
            rc_arena *mem = rc_arena_open();
            const rc_graph *graph = law_graph(&law_models[m], law_cores[c], mem);
            outcome control = run_steps(law_schedule(graph, "none", 1, mem), 2, "none", mem);
            for (uint32_t seed = 0; seed < 8; seed++) {
                rc_error err = {0};
                rc_schedule *schedule;
                char name[200];
                rc_policy *policy = draw_policy(graph, seed, mem);
                snprintf(name, sizeof name, "%s %s, %s", law_models[m].name, law_cores[c],
                         policy->name);
                law_check(rc_schedule_make(policy, 1, mem, &schedule, &err), &err);
                law_check(rc_schedule_verify(schedule, mem, &err), &err);
                outcome other = run_steps(schedule, 2, name, mem);
                need_same(&control, &other, name);
                need_predicted(schedule, name, mem);
            }
            rc_arena_close(mem);
        }
}

/* What cost predicts, what the arena holds and what kernels really wrote are one number. */
static void need_predicted(const rc_schedule *schedule, const char *name, rc_arena *mem)
{
    rc_error err = {0};
    rc_run *run;
    rc_cost *cost;
    int32_t tokens[4096], targets[4096];
    law_check(rc_cost_make(schedule, mem, &cost, &err), &err);
    rc_run_options options = {.seed = 1, .n_micro_batches = 1};
    law_check(rc_run_open(schedule, &options, &run, &err), &err);
    rc_run_init_weights(run);
    fill_tokens(schedule->graph, 0, tokens, targets);
    law_micro(run, tokens, targets, 0, 0);
    law_update(run, &(rc_update){.lr = 1e-3, .eps = 1e-8, .step = 1});
    int64_t touched = rc_run_touched_bytes(run);
    if (touched != cost->peak_bytes || rc_run_arena_bytes(run) != touched)
        fail_msg("%s: predicted %lld, touched %lld", name, (long long)cost->peak_bytes,
                 (long long)touched);
    rc_run_close(run);
}

static void predicted_peak_is_what_a_run_touches(void **state)
{
    (void)state;
    for (size_t m = 0; m < LAW_N_MODELS; m++)
        for (size_t c = 0; c < 2; c++)
            for (int threads = 1; threads <= 2; threads++) {
                rc_arena *mem = rc_arena_open();
                const rc_graph *graph = law_graph(&law_models[m], law_cores[c], mem);
                law_settings settings = law_all_settings(graph, mem);
                for (size_t i = 0; i < settings.n; i++) {
                    char name[200];
                    snprintf(name, sizeof name, "%s %s %s, %d threads", law_models[m].name,
                             law_cores[c], settings.at[i], threads);
                    need_predicted(law_schedule(graph, settings.at[i], threads, mem), name,
                                   mem);
                }
                rc_arena_close(mem);
            }
}

#define ODD                                                                                    \
    "model.num_layers=3", "model.make_vocab_size_divisible_by=1", "model.hidden_dropout=0",    \
        "model.attention_dropout=0"

/* Sizes that no vector, tile or thread count divides; sizes of one; one kind of dropout alone. */
static const law_model odd_models[] = {
    {"one token",
     {ODD, "model.hidden_size=91", "model.num_attention_heads=7", "model.seq_length=1",
      "model.vocab_size=53", "train.micro_batch_size=1"}},
    {"primes",
     {ODD, "model.hidden_size=23", "model.num_attention_heads=5", "model.kv_channels=11",
      "model.num_query_groups=1", "model.seq_length=17", "model.vocab_size=97",
      "model.ffn_hidden_size=31", "model.gated_linear_unit=true", "model.activation_func=silu",
      "train.micro_batch_size=3", "model.qk_layernorm=true"}},
    {"attention dropout alone",
     {ODD, "model.hidden_size=33", "model.num_attention_heads=3", "model.seq_length=19",
      "model.vocab_size=61", "train.micro_batch_size=1", "model.attention_dropout=0.3"}},
    {"hidden dropout alone",
     {ODD, "model.hidden_size=26", "model.num_attention_heads=13", "model.seq_length=67",
      "model.vocab_size=257", "train.micro_batch_size=1", "model.hidden_dropout=0.3",
      "model.position_embedding_type=rope", "model.normalization=RMSNorm"}},
    {"ones",
     {ODD, "model.hidden_size=1", "model.num_attention_heads=1", "model.seq_length=1",
      "model.vocab_size=2", "model.ffn_hidden_size=1", "train.micro_batch_size=5",
      "model.hidden_dropout=0.3", "model.attention_dropout=0.3"}},
};

static void odd_sizes_obey_both(void **state)
{
    (void)state;
    static const char *const settings[] = {"selective/core_attn+layernorm+mlp",
                                           "full/uniform/2", "full/block/1"};
    for (size_t m = 0; m < sizeof odd_models / sizeof *odd_models; m++)
        for (size_t c = 0; c < 2; c++)
            for (int threads = 2; threads <= 4; threads++) {
                rc_arena *mem = rc_arena_open();
                const rc_graph *graph = law_graph(&odd_models[m], law_cores[c], mem);
                rc_schedule *none = law_schedule(graph, "none", threads, mem);
                outcome control = run_steps(none, MOST_MICRO, odd_models[m].name, mem);
                need_predicted(none, odd_models[m].name, mem);
                for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
                    char name[200];
                    snprintf(name, sizeof name, "%s %s %s, %d threads", odd_models[m].name,
                             law_cores[c], settings[i], threads);
                    rc_schedule *schedule = law_schedule(graph, settings[i], threads, mem);
                    outcome other = run_steps(schedule, MOST_MICRO, name, mem);
                    need_same(&control, &other, name);
                    need_predicted(schedule, name, mem);
                }
                rc_arena_close(mem);
            }
}

/* 16,384 tokens, fused attention: the step runs, and full recompute gives the same bits. */
static void a_long_sequence_trains(void **state)
{
    static const law_model model = {
        "long",
        {"model.num_layers=2", "model.hidden_size=32", "model.num_attention_heads=2",
         "model.num_query_groups=1", "model.seq_length=16384", "model.vocab_size=64",
         "train.micro_batch_size=1", "model.make_vocab_size_divisible_by=1",
         "model.position_embedding_type=rope", "model.ffn_hidden_size=48"}};
    (void)state;
    enum { N = 16384 };
    static const char *const settings[] = {"none", "full/uniform/1"};
    double losses[2];
    rc_arena *mem = rc_arena_open();
    const rc_graph *graph = law_graph(&model, "fused", mem);
    int32_t *tokens;
    float *grads[2];
    rc_error err = {0};
    law_check(RC_NEW(mem, &tokens, N, &err), &err);
    for (int32_t i = 0; i < N; i++)
        tokens[i] = i * 7 % 64;
    for (int k = 0; k < 2; k++) {
        rc_run *run;
        int n_params;
        rc_schedule *schedule = law_schedule(graph, settings[k], 2, mem);
        assert_true(schedule->arena_bytes < (int64_t)64 << 20); /* s^2 alone would be 1 GiB */
        law_check(rc_run_open(schedule, &(rc_run_options){.seed = 3, .n_micro_batches = 1},
                              &run, &err),
                  &err);
        rc_run_init_weights(run);
        losses[k] = law_micro(run, tokens, tokens, 0, 0);
        const rc_run_param *embedding = rc_run_params(run, &n_params);
        law_check(RC_NEW(mem, &grads[k], embedding->tensor.n_elem, &err), &err);
        memcpy(grads[k], embedding->grad, (size_t)embedding->tensor.bytes);
        rc_run_close(run);
    }
    assert_true(losses[0] > 1 && losses[0] < 10);
    assert_memory_equal(&losses[0], &losses[1], sizeof losses[0]);
    assert_memory_equal(grads[0], grads[1], (size_t)rc_graph_tensor(graph, 2).bytes);
    rc_arena_close(mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_setting_gives_the_same_bits),
        cmocka_unit_test(every_policy_gives_the_same_bits),
        cmocka_unit_test(predicted_peak_is_what_a_run_touches),
        cmocka_unit_test(odd_sizes_obey_both),
        cmocka_unit_test(a_long_sequence_trains),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
