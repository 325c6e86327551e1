/* test_draws.c — dropout draws are unique over (seed, step, micro-batch, layer, op), the same in a
 * recompute, and drop the share they should.
 *
 * The linker hands this program every draw that a kernel asks for (--wrap, as cmocka's mocks do):
 * what is counted is the key under which random numbers were really drawn. What the key is worth,
 * that another one gives another mask, is seen on the kernels' own output.
 */
#include "step.h"

#include "base/random.h"
#include "exec/kernel.h"

enum { MOST_KEYS = 64, N_STEPS = 3, N_MICRO = 2, N_SEEDS = 2, N_BATCHES = N_STEPS * N_MICRO };

/* Distinct keys since it was emptied; one thread draws. */
static struct {
    rc_random at[MOST_KEYS];
    int n;
} drawn;

static bool is_same(const rc_random *a, const rc_random *b)
{
    return a->seed == b->seed && a->draw == b->draw && a->id == b->id;
}

static bool is_in(const rc_random *keys, int n, const rc_random *key)
{
    for (int i = 0; i < n; i++)
        if (is_same(&keys[i], key))
            return true;
    return false;
}

static void note(const rc_random *key)
{
    if (is_in(drawn.at, drawn.n, key))
        return;
    assert_true(drawn.n < MOST_KEYS);
    drawn.at[drawn.n++] = *key;
}

void __real_rc_random_keep(const rc_random *random, uint64_t first, int64_t n, double p,
                           float *keep);
void __wrap_rc_random_keep(const rc_random *random, uint64_t first, int64_t n, double p,
                           float *keep);
void __real_rc_random_lanes(const rc_random *random, uint64_t first, uint64_t step, int n,
                            uint32_t out[4][RC_RANDOM_LANES]);
void __wrap_rc_random_lanes(const rc_random *random, uint64_t first, uint64_t step, int n,
                            uint32_t out[4][RC_RANDOM_LANES]);

void __wrap_rc_random_keep(const rc_random *random, uint64_t first, int64_t n, double p,
                           float *keep)
{
    note(random);
    __real_rc_random_keep(random, first, n, p, keep);
}

void __wrap_rc_random_lanes(const rc_random *random, uint64_t first, uint64_t step, int n,
                            uint32_t out[4][RC_RANDOM_LANES])
{
    note(random);
    __real_rc_random_lanes(random, first, step, n, out);
}

/* The keys of one micro-batch, forward, recomputes and backward together. */
typedef struct keys {
    rc_random at[MOST_KEYS];
    int n;
} keys;

static int count_dropouts(const rc_graph *graph)
{
    int n = 0;
    for (int i = 0; i < graph->n_ops; i++)
        n += rc_graph_op(graph, i).attr.p > 0;
    return n;
}

/* All micro-batches of all seeds: keys `out`, and where wanted the losses. */
static void draw_all(const law_model *model, law_options options, keys *out, double *loss)
{
    law_batch batch, other;
    for (int i = 0; i < N_SEEDS * N_BATCHES; i += N_BATCHES) {
        options.seed = (uint64_t)(i / N_BATCHES);
        options.n_micro = N_MICRO;
        law_run run = law_open(model, &options);
        law_fill(run.graph, 0, &batch); /* the same tokens: nothing but the key may differ */
        law_fill(run.graph, 9, &other);
        for (int k = 0; k < N_BATCHES; k++) {
            drawn.n = 0;
            step_eval(&run, &other);
            assert_int_equal(drawn.n, 0); /* an evaluation draws nothing, and moves nothing */
            loss[i + k] = step_micro(&run, &batch, k / N_MICRO, k % N_MICRO);
            memcpy(out[i + k].at, drawn.at, sizeof drawn.at);
            out[i + k].n = drawn.n;
        }
        for (int k = N_BATCHES - 1; k >= 0; k--) { /* asked for again, it comes again */
            drawn.n = 0;
            assert_true(step_micro(&run, &batch, k / N_MICRO, k % N_MICRO) == loss[i + k]);
        }
        law_close(&run);
    }
}

enum { N_DRAWS = N_SEEDS * N_BATCHES };

static void need_unique(const keys *all, const double *loss, int n_dropouts, const char *name)
{
    for (int i = 0; i < N_DRAWS; i++) {
        if (all[i].n != n_dropouts)
            fail_msg("%s: %d dropouts draw under %d keys", name, n_dropouts, all[i].n);
        for (int j = 0; j < i; j++) {
            for (int k = 0; k < all[i].n; k++)
                if (is_in(all[j].at, all[j].n, &all[i].at[k]))
                    fail_msg("%s: micro-batch %d draws under a key that %d had", name, i, j);
            if (loss[i] == loss[j])
                fail_msg("%s: micro-batches %d and %d have the same loss", name, i, j);
        }
    }
}

/* Each dropout of each layer draws under a key of its own, which no other seed, step, micro-batch,
 * layer or op ever has; backward and any recompute draw under the same one. */
static void every_key_is_used_once(void **state)
{
    static const char *const settings[] = {"selective/core_attn+layernorm+mlp",
                                           "full/uniform/2", "full/block/1"};
    static const int models[] = {0, 2, 4};
    (void)state;
    for (size_t m = 0; m < 3; m++)
        for (size_t c = 0; c < 2; c++) {
            const law_model *model = &law_models[models[m]];
            law_options options = {.words = {"model.seq_length=13"}, .core = law_cores[c]};
            keys plain[N_DRAWS], other[N_DRAWS];
            double loss[N_DRAWS], again[N_DRAWS];
            law_run run = law_open(model, &options);
            int n_dropouts = count_dropouts(run.graph);
            assert_true(n_dropouts == 1 + 3 * (int)run.graph->dims.L);
            law_close(&run);
            draw_all(model, options, plain, loss);
            need_unique(plain, loss, n_dropouts, model->name);
            options.setting = settings[m];
            draw_all(model, options, other, again);
            assert_memory_equal(loss, again, sizeof loss);
            for (int i = 0; i < N_DRAWS; i++) {
                assert_int_equal(other[i].n, n_dropouts);
                for (int k = 0; k < n_dropouts; k++)
                    assert_true(is_in(plain[i].at, n_dropouts, &other[i].at[k]));
            }
        }
}

/* Each kind of dropout moves the loss by itself: another loss for every key, and without any the
 * same one throughout. */
static void every_kind_of_dropout_shows_in_the_loss(void **state)
{
    static const char *const alone[][2] = {
        {"model.hidden_dropout=0.1", "model.attention_dropout=0"},
        {"model.hidden_dropout=0", "model.attention_dropout=0.1"},
        {"model.hidden_dropout=0", "model.attention_dropout=0"}};
    (void)state;
    for (size_t k = 0; k < 3; k++)
        for (size_t c = 0; c < 2; c++) {
            keys all[N_DRAWS];
            double loss[N_DRAWS];
            law_options options = {.words = {alone[k][0], alone[k][1], "model.seq_length=13"},
                                   .core = law_cores[c]};
            draw_all(&law_models[0], options, all, loss);
            if (k < 2)
                need_unique(all, loss, k == 0 ? 7 : 3, alone[k][0]);
            for (int i = 1; i < N_DRAWS && k == 2; i++)
                assert_true(all[i].n == 0 && (loss[i] == loss[0]) == (i < N_BATCHES));
        }
}

/* ---- initial weights ---- */

/* Megatron's init_method_std, and for what ends a residual branch that over sqrt(2 layers)
 * (megatron/core/utils.py, scaled_init_method_normal). */
static double deviation_of(const char *name, int64_t n_layers)
{
    bool ends_branch = strstr(name, "linear_proj.weight") || strstr(name, "linear_fc2.weight");
    return ends_branch ? 0.02 / sqrt(2.0 * (double)n_layers) : 0.02;
}

/* Each normal weight has its own stream, with mean 0 and its deviation; another seed gives others, the
 * same seed the same. */
static void initial_weights_are_independent_streams(void **state)
{
    (void)state;
    for (size_t m = 0; m < LAW_N_MODELS; m++) {
        int n_params;
        law_run runs[] = {law_open(&law_models[m], &(law_options){.seed = 1}),
                          law_open(&law_models[m], &(law_options){.seed = 1}),
                          law_open(&law_models[m], &(law_options){.seed = 1 + (1ull << 32)})};
        const rc_run_param *params = rc_run_params(runs[0].run, &n_params);
        const rc_run_param *same = rc_run_params(runs[1].run, &n_params);
        const rc_run_param *others = rc_run_params(runs[2].run, &n_params);
        for (int i = 0; i < n_params; i++) {
            const rc_tensor *tensor = &params[i].tensor;
            const float *x = params[i].weight;
            assert_memory_equal(x, same[i].weight, (size_t)tensor->bytes);
            if (tensor->init != RC_INIT_NORMAL)
                continue;
            assert_memory_not_equal(x, others[i].weight, 64);
            double sum = 0, squares = 0, n = (double)tensor->n_used;
            double std = deviation_of(params[i].name, runs[0].graph->dims.L);
            for (int64_t e = 0; e < tensor->n_used; e++) {
                sum += (double)x[e];
                squares += (double)x[e] * (double)x[e];
            }
            assert_true(fabs(sum / n) <= 6 * std / sqrt(n));
            assert_true(fabs(squares / n / (std * std) - 1) <= 6 * sqrt(2 / n));
            for (int j = 0; j < i; j++) {
                const float *y = params[j].weight;
                if (params[j].tensor.init != RC_INIT_NORMAL)
                    continue;
                double ratio = params[j].tensor.init_std / std;
                for (int e = 0; e < 8;
                     e++) /* streams of one shape differ in their first numbers */
                    if (fabs((double)x[e] * ratio - (double)y[e]) <= 1e-6 * fabs((double)y[e]))
                        fail_msg("%s starts as %s", params[i].name, params[j].name);
            }
        }
        for (int i = 0; i < 3; i++)
            law_close(&runs[i]);
    }
}

/* ---- the kernels' own output ---- */

enum { S = 64, N_ELEMENTS = S * S };

typedef struct key {
    uint64_t seed, draw;
    uint32_t id;
} key;

/* keep / (1 - p) of every element, as each of the kernels applies it. */
static void mask_of_dropout(const key *at, double p, float *keep)
{
    float ones[N_ELEMENTS];
    rc_op_attr attr = {.n_elem = N_ELEMENTS, .p = p, .random_id = at->id};
    rc_call call = {.attr = &attr,
                    .in = {{.at = ones}},
                    .out = {{.at = keep}},
                    .n_threads = 1,
                    .seed = at->seed,
                    .draw = at->draw};
    for (int i = 0; i < N_ELEMENTS; i++)
        ones[i] = 1;
    rc_backend_cpu.fwd[RC_OP_dropout](&call);
}

static void mask_of_residual(const key *at, double p, float *keep)
{
    float ones[N_ELEMENTS], residual[N_ELEMENTS] = {0};
    rc_op_attr attr = {.n = S, .h = S, .p = p, .random_id = at->id};
    rc_call call = {.attr = &attr,
                    .in = {{.at = ones, .ld = S}, {.at = residual, .ld = S}},
                    .out = {{.at = keep, .ld = S}},
                    .n_threads = 1,
                    .seed = at->seed,
                    .draw = at->draw};
    for (int i = 0; i < N_ELEMENTS; i++)
        ones[i] = 1;
    rc_backend_cpu.fwd[RC_OP_bias_dropout_add](&call);
}

/* Queries of 0 look at every key alike, 1/S; values S times the unit matrix bring out each place. */
static void mask_of_attention(const key *at, double p, float *keep)
{
    float zeros[N_ELEMENTS] = {0}, values[N_ELEMENTS] = {0}, lse[S];
    rc_op_attr attr = {.s = S,
                       .b = 1,
                       .n = S,
                       .a = 1,
                       .g = 1,
                       .d = S,
                       .scale = 1,
                       .p = p,
                       .random_id = at->id};
    rc_arena *mem = rc_arena_open();
    rc_error err = {0};
    char *scratch;
    int64_t bytes = rc_op_find(RC_OP_attention)->fwd_scratch_bytes(&attr, RC_F32, 1);
    law_check(RC_NEW(mem, &scratch, bytes + RC_ALIGN, &err), &err);
    scratch += (RC_ALIGN - (uintptr_t)scratch % RC_ALIGN) % RC_ALIGN;
    for (int i = 0; i < S; i++)
        values[i * S + i] = S;
    rc_call call = {
        .attr = &attr,
        .in = {{.at = zeros, .ld = S}, {.at = zeros, .ld = S}, {.at = values, .ld = S}},
        .out = {{.at = keep, .ld = S}, {.at = lse}},
        .scratch = scratch,
        .n_threads = 1,
        .seed = at->seed,
        .draw = at->draw};
    rc_backend_cpu.fwd[RC_OP_attention](&call);
    rc_arena_close(mem);
}

static const struct {
    const char *name;
    void (*draw)(const key *at, double p, float *keep);
} kernels[] = {{"dropout", mask_of_dropout},
               {"bias_dropout_add", mask_of_residual},
               {"attention", mask_of_attention}};

/* Within six deviations of what independent draws of probability `share` give. */
static bool is_likely(int n_seen, int n, double share)
{
    return fabs(n_seen - n * share) <= 6 * sqrt(n * share * (1 - share));
}

/* Each part of the key, its upper bits too, gives a mask that is independent of the others; one key
 * gives one mask. It drops its share, neighbours drop apart, and what is kept is 1 / (1 - p). */
static void masks_are_independent_and_drop_their_share(void **state)
{
    static const key all[] = {{7, 3, 5}, {8, 3, 5}, {7 + (1ull << 32), 3, 5},
                              {7, 4, 5}, {7, 2, 5}, {7, 3 + (1ull << 40), 5},
                              {7, 3, 6}, {7, 3, 4}, {7, 3, 5 + (1u << 31)},
                              {3, 7, 5}, {5, 3, 7}, {7, 5, 3}};
    static const double shares[] = {0.1, 0.25, 0.5, 0.9};
    enum { N_KEYS = sizeof all / sizeof *all };
    static float keep[N_KEYS][N_ELEMENTS], again[N_ELEMENTS];
    (void)state;
    for (size_t kernel = 0; kernel < 3; kernel++)
        for (size_t k = 0; k < 4; k++) {
            const double p = shares[k];
            const float kept = (float)(1 / (1 - p));
            for (int i = 0; i < N_KEYS; i++) {
                int n_dropped = 0, n_apart = 0;
                kernels[kernel].draw(&all[i], p, keep[i]);
                kernels[kernel].draw(&all[i], p, again);
                assert_memory_equal(keep[i], again, sizeof again);
                for (int e = 0; e < N_ELEMENTS; e++) {
                    bool is_dropped = keep[i][e] == 0;
                    n_dropped += is_dropped;
                    n_apart += e > 0 && is_dropped != (keep[i][e - 1] == 0);
                    assert_true(is_dropped || fabsf(keep[i][e] - kept) <= 1e-6f * kept);
                }
                assert_true(is_likely(n_dropped, N_ELEMENTS, p));
                assert_true(is_likely(n_apart, N_ELEMENTS - 1, 2 * p * (1 - p)));
                for (int j = 0; j < i; j++) {
                    int n_differ = 0;
                    for (int e = 0; e < N_ELEMENTS; e++)
                        n_differ += (keep[i][e] == 0) != (keep[j][e] == 0);
                    if (!is_likely(n_differ, N_ELEMENTS, 2 * p * (1 - p)))
                        fail_msg("%s, p %g: keys %d and %d differ in %d of %d",
                                 kernels[kernel].name, p, i, j, n_differ, N_ELEMENTS);
                }
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key_is_used_once),
        cmocka_unit_test(every_kind_of_dropout_shows_in_the_loss),
        cmocka_unit_test(initial_weights_are_independent_streams),
        cmocka_unit_test(masks_are_independent_and_drop_their_share),
    };
    return cmocka_run_group_tests_name("draws", tests, NULL, NULL);
}
