/* test_model.c — the function that a model computes, against loops in double precision.
 *
 * source  Radford et al. 2019 (GPT-2: norms before each branch, learned positions), Touvron et al.
 *         2023 (Llama: RMSNorm, rotary positions, SwiGLU), Su et al. 2021 (rotary), Ainslie et al.
 *         2023 (grouped queries), Dehghani et al. 2023 (norms of query and key)
 *
 * Weights are found by name, and what a model has is said here once more, apart from the graph. That
 * forward is right is shown here; that backward is its slope, by law.gradient_law; that the same
 * weights give what PyTorch makes of them, by peer.model.
 *
 * Rounding: some 30 ops of up to 192 terms, sqrt(30 * 192) 2^-24 = 5e-6 of the largest logit, times four.
 */
#include "step.h"

static const double TOLERANCE = 2e-5;

typedef enum activation { GELU_TANH, GELU, SILU, SQUARED_RELU } activation;

static const law_model qk_norm = {
    "one group, norms of query and key",
    {LAW_COMMON, "model.normalization=RMSNorm", "model.position_embedding_type=rope",
     "model.gated_linear_unit=true", "model.activation_func=silu", "model.num_query_groups=1",
     "model.add_bias_linear=false", "model.qk_layernorm=true", "model.kv_channels=20",
     "model.layernorm_zero_centered_gamma=true"}};

/* What a model is. */
typedef struct facts {
    const law_model *model;
    int L, a, g, d, f, rotary_dim;
    activation act;
    bool is_rms, is_gated, is_tied, has_qk_norm;
    double shift; /* of the norms' weights: 1 where they are stored around 0 */
    double scale; /* of scores */
} facts;

enum { H = 48, S = 37, B = 2, N = S * B, WORDS = 101, MOST_WIDE = 2 * 192 };

static const facts all[] = {
    {&law_models[0], 3, 4, 4, 12, 192, 0, GELU_TANH, false, false, true, false, 0, 0},
    {&law_models[1], 3, 4, 4, 12, 192, 0, GELU, false, false, true, false, 0, 0.2},
    {&law_models[2], 3, 4, 2, 12, 80, 12, SILU, true, true, false, false, 0, 0},
    {&qk_norm, 3, 4, 1, 20, 192, 20, SILU, true, true, true, true, 1, 0},
    {&law_models[4], 5, 4, 4, 12, 192, 6, SQUARED_RELU, false, false, true, true, 1, 0},
};

typedef struct model {
    const facts *is;
    const law_run *run;
} model;

/* Rows of doubles; one array each, large enough for every width. */
typedef struct values {
    double at[N][MOST_WIDE];
} values;

static const float *find_weight(const model *of, const char *name)
{
    int n;
    const rc_run_param *params = rc_run_params(of->run->run, &n);
    for (int i = 0; i < n; i++)
        if (strcmp(params[i].name, name) == 0)
            return params[i].weight;
    return NULL;
}

/* "decoder.layers.LAYER.PART.SUFFIX"; without a layer below 0. */
static const float *layer_weight(const model *of, int layer, const char *part,
                                 const char *suffix)
{
    char name[120];
    if (layer < 0)
        snprintf(name, sizeof name, "%s.%s", part, suffix);
    else
        snprintf(name, sizeof name, "decoder.layers.%d.%s.%s", layer, part, suffix);
    return find_weight(of, name);
}

/* One group of `width` numbers. */
static void norm(const model *of, int layer, const char *part, int width, double *x)
{
    const float *w = layer_weight(of, layer, part, "weight");
    const float *b = layer_weight(of, layer, part, "bias");
    double mean = 0, square = 0;
    assert_non_null(w);
    assert_true((b == NULL) == of->is->is_rms);
    for (int i = 0; i < width && b; i++)
        mean += x[i] / width;
    for (int i = 0; i < width; i++)
        square += (x[i] - mean) * (x[i] - mean) / width;
    for (int i = 0; i < width; i++)
        x[i] = (x[i] - mean) / sqrt(square + 1e-5) * ((double)w[i] + of->is->shift) +
               (b ? (double)b[i] : 0);
}

static void linear(const model *of, int layer, const char *part, const int sizes[2],
                   const values *x, values *y)
{
    const float *w = layer_weight(of, layer, part, "weight");
    const float *b = layer_weight(of, layer, part, "bias");
    assert_non_null(w);
    for (int r = 0; r < N; r++)
        for (int o = 0; o < sizes[1]; o++) {
            double sum = b ? (double)b[o] : 0;
            for (int i = 0; i < sizes[0]; i++)
                sum += x->at[r][i] * (double)w[o * sizes[0] + i];
            y->at[r][o] = sum;
        }
}

/* Rotates pairs (i, i + rotary_dim / 2) of a head by position * 10000^(-2 i / rotary_dim). */
static void rotate(const model *of, int position, double *head)
{
    const int half = of->is->rotary_dim / 2;
    for (int i = 0; i < half; i++) {
        double angle = position * pow(10000, -(double)i / half);
        double x = head[i], y = head[i + half];
        head[i] = x * cos(angle) - y * sin(angle);
        head[i + half] = x * sin(angle) + y * cos(angle);
    }
}

/* Of the rows [query | key | value] of all heads, one query row against the keys up to its own. */
static void attend(const model *of, const values *qkv, int row, int head, double *out)
{
    const facts *is = of->is;
    const int first = row / S * S, group = head / (is->a / is->g);
    const int key = (is->a + group) * is->d, value = (is->a + is->g + group) * is->d;
    const double scale = is->scale > 0 ? is->scale : 1 / sqrt(is->d);
    double p[S], sum = 0;
    for (int j = first; j <= row; j++) {
        double score = 0;
        for (int i = 0; i < is->d; i++)
            score += qkv->at[row][head * is->d + i] * qkv->at[j][key + i];
        sum += p[j - first] = exp(scale * score);
    }
    for (int i = 0; i < is->d; i++) {
        out[i] = 0;
        for (int j = first; j <= row; j++)
            out[i] += p[j - first] / sum * qkv->at[j][value + i];
    }
}

static void attention(const model *of, int layer, values *x)
{
    static values y, qkv, o;
    const facts *is = of->is;
    const int into[] = {H, (is->a + 2 * is->g) * is->d}, out_of[] = {is->a * is->d, H};
    y = *x;
    for (int r = 0; r < N; r++)
        norm(of, layer, "input_layernorm", H, y.at[r]);
    linear(of, layer, "self_attention.linear_qkv", into, &y, &qkv);
    for (int r = 0; r < N; r++)
        for (int head = 0; head < is->a + is->g; head++) {
            double *at = qkv.at[r] + head * is->d;
            if (is->has_qk_norm)
                norm(of, layer,
                     head < is->a ? "self_attention.q_layernorm" : "self_attention.k_layernorm",
                     is->d, at);
            rotate(of, r % S, at);
        }
    for (int r = 0; r < N; r++)
        for (int head = 0; head < is->a; head++)
            attend(of, &qkv, r, head, o.at[r] + head * is->d);
    linear(of, layer, "self_attention.linear_proj", out_of, &o, &y);
    for (int r = 0; r < N; r++)
        for (int i = 0; i < H; i++)
            x->at[r][i] += y.at[r][i];
}

static double activate(activation act, double x)
{
    switch (act) {
    case GELU_TANH:
        return 0.5 * x * (1 + tanh(sqrt(2 / acos(-1.0)) * (x + 0.044715 * x * x * x)));
    case GELU:
        return 0.5 * x * (1 + erf(x / sqrt(2)));
    case SILU:
        return x / (1 + exp(-x));
    case SQUARED_RELU:
    default:
        return x > 0 ? x * x : 0;
    }
}

static void mlp(const model *of, int layer, values *x)
{
    static values y, wide;
    const facts *is = of->is;
    const int into[] = {H, is->is_gated ? 2 * is->f : is->f}, out_of[] = {is->f, H};
    y = *x;
    for (int r = 0; r < N; r++)
        norm(of, layer, "pre_mlp_layernorm", H, y.at[r]);
    linear(of, layer, "mlp.linear_fc1", into, &y, &wide);
    for (int r = 0; r < N; r++)
        for (int i = 0; i < is->f; i++)
            wide.at[r][i] =
                activate(is->act, wide.at[r][i]) * (is->is_gated ? wide.at[r][is->f + i] : 1);
    linear(of, layer, "mlp.linear_fc2", out_of, &wide, &y);
    for (int r = 0; r < N; r++)
        for (int i = 0; i < H; i++)
            x->at[r][i] += y.at[r][i];
}

/* Logits in x; gives the loss. */
static double forward(const model *of, const law_batch *batch, values *x)
{
    static values y;
    const facts *is = of->is;
    const float *words = find_weight(of, "embedding.word_embeddings.weight");
    const float *positions = find_weight(of, "embedding.position_embeddings.weight");
    const int sizes[] = {H, WORDS};
    double loss = 0;
    int n_counted = 0;
    assert_true((positions == NULL) == (is->rotary_dim > 0));
    for (int r = 0; r < N; r++)
        for (int i = 0; i < H; i++)
            y.at[r][i] = (double)words[batch->tokens[r] * H + i] +
                         (positions ? (double)positions[r % S * H + i] : 0);
    for (int layer = 0; layer < is->L; layer++) {
        attention(of, layer, &y);
        mlp(of, layer, &y);
    }
    for (int r = 0; r < N; r++)
        norm(of, -1, "decoder.final_layernorm", H, y.at[r]);
    linear(of, -1, is->is_tied ? "embedding.word_embeddings" : "output_layer", sizes, &y, x);
    for (int r = 0; r < N; r++) {
        double sum = 0;
        for (int i = 0; i < WORDS; i++)
            sum += exp(x->at[r][i]);
        if (batch->targets[r] < 0)
            continue;
        loss += log(sum) - x->at[r][batch->targets[r]];
        n_counted++;
    }
    return loss / n_counted;
}

/* No weight at its usual first value: a swapped or forgotten one shows. */
static void move_weights(const law_run *run)
{
    int n;
    const rc_run_param *params = rc_run_params(run->run, &n);
    for (int i = 0; i < n; i++)
        for (int64_t e = 0; e < params[i].tensor.n_used; e++)
            ((float *)params[i].weight)[e] += 0.15f * sinf((float)(e * 131 + i * 17) * 0.7f);
}

static void check(const facts *is, const char *core)
{
    static values logits;
    law_options options = {.core = core, .n_threads = 2, .seed = 6};
    law_batch batch;
    law_run run = law_open(is->model, &options);
    assert_true(run.graph->dims.n == N && run.graph->dims.W == WORDS);
    move_weights(&run);
    law_fill(run.graph, 3, &batch);
    for (int r = 0; r < N; r += 9)
        batch.targets[r] = -1;
    double loss = step_eval(&run, &batch);
    double right = forward(&(model){is, &run}, &batch, &logits);
    if (!(fabs(loss - right) <= TOLERANCE * right))
        fail_msg("%s %s: the loss is %.9g, not %.9g", is->model->name, core, loss, right);
    const float *got = rc_run_logits(run.run);
    double most = 0, off = 0;
    for (int r = 0; r < N; r++)
        for (int i = 0; i < WORDS; i++) {
            most = fmax(most, fabs(logits.at[r][i]));
            off = fmax(off, fabs((double)got[r * WORDS + i] - logits.at[r][i]));
        }
    assert_true(most > 1);
    if (!(off <= TOLERANCE * most))
        fail_msg("%s %s: a logit is off by %.2g of the largest", is->model->name, core,
                 off / most);
    law_close(&run);
}

static void every_model_computes_its_function(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (int c = 0; c < 2; c++)
            check(&all[i], law_cores[c]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_model_computes_its_function)};
    return cmocka_run_group_tests_name("model", tests, NULL, NULL);
}
