/* test_rope.c — how fast each pair turns, from settings to the op, against references written from the
 * definitions: by wavelength for Llama 3.1 (its reference code), by dimension for YaRN (Peng et al.
 * 2023, section 3.2), by the base for dynamic scaling. */
#include "../laws/law.h"

#include "op/rope.h"

#include <math.h>

static const double pi = 3.14159265358979323846;

typedef struct rope_model {
    double base;
    int dim, s;
} rope_model;

#define ROPE_COMMON                                                                            \
    "model.num_layers=1", "model.num_attention_heads=2", "model.vocab_size=300",               \
        "train.micro_batch_size=1", "model.normalization=RMSNorm",                             \
        "model.max_position_embeddings=2048"

/* The attributes of the first rope op that these settings make, or the error. */
static rc_code read_rope(const rope_model *of, const char *const *words, rc_arena *mem,
                         rc_op_attr *out, rc_error *err)
{
    static const char *const common[] = {ROPE_COMMON};
    const char *all[40];
    char size[4][64];
    size_t n = 0;
    rc_doc *doc;
    rc_config *cfg;
    for (; n < sizeof common / sizeof *common; n++)
        all[n] = common[n];
    snprintf(size[0], 64, "model.hidden_size=%d", 2 * of->dim);
    snprintf(size[1], 64, "model.seq_length=%d", of->s);
    snprintf(size[2], 64, "model.rotary_base=%.17g", of->base);
    snprintf(size[3], 64, "model.position_embedding_type=rope");
    for (int i = 0; i < 4; i++)
        all[n++] = size[i];
    for (size_t i = 0; words[i]; i++)
        all[n++] = words[i];
    RC_TRY(rc_override_read(all, n, mem, &doc, err));
    rc_input input = {doc, RC_FROM_OVERRIDE};
    RC_TRY(rc_config_make(&input, 1, mem, &cfg, err));
    RC_TRY(rc_train_refuse_unknown(cfg, err));
    rc_passes passes = {.cfg = cfg};
    RC_TRY(rc_passes_make(&passes, RC_NOUN_GRAPH, mem, err));
    const rc_graph *graph = passes.graph;
    for (int i = 0; i < graph->n_ops; i++)
        if (rc_graph_op(graph, i).kind == RC_OP_rope)
            *out = rc_graph_op(graph, i).attr;
    return RC_OK;
}

static double plain_rate(double base, int dim, int i)
{
    return 1 / exp(log(base) * 2 * i / dim);
}

static double llama3_rate(const rope_model *of, int i, const double by[4])
{
    const double factor = by[0], low = by[1], high = by[2], old = by[3];
    double rate = plain_rate(of->base, of->dim, i), wave = 2 * pi / rate;
    if (wave < old / high)
        return rate;
    if (wave > old / low)
        return rate / factor;
    double smooth = (old / wave - low) / (high - low);
    return (1 - smooth) * rate / factor + smooth * rate;
}

/* The dimension d at which base^(-2d/dim) * old / (2 pi) turns are made. */
static double yarn_dimension(const rope_model *of, double old, double turns)
{
    return of->dim * log(old / (2 * pi * turns)) / (2 * log(of->base));
}

static double yarn_rate(const rope_model *of, int i, const double by[5])
{
    const double factor = by[0], fast = by[1], slow = by[2], old = by[3];
    double low = yarn_dimension(of, old, fast), high = yarn_dimension(of, old, slow);
    if (by[4] > 0) {
        low = floor(low);
        high = ceil(high);
    }
    low = low < 0 ? 0 : low;
    high = high > of->dim - 1 ? of->dim - 1 : high;
    high += low == high ? 0.001 : 0;
    double ramp = (i - low) / (high - low);
    ramp = ramp < 0 ? 0 : ramp > 1 ? 1 : ramp;
    double gamma = 1 - ramp, rate = plain_rate(of->base, of->dim, i);
    return (1 - gamma) * rate / factor + gamma * rate;
}

typedef struct rope_case {
    const char *words[10];
    rope_model model;
    enum { PLAIN, LINEAR, DYNAMIC, LLAMA3, YARN } kind;
    double by[5]; /* of the reference */
    double amplitude;
} rope_case;

#define LLAMA3_WORDS(FACTOR, LOW, HIGH, OLD)                                                   \
    "model.rope_scaling=true", "model.rope_scaling_factor=" FACTOR,                            \
        "model.rope_scaling_low_freq_factor=" LOW,                                             \
        "model.rope_scaling_high_freq_factor=" HIGH,                                           \
        "model.rope_scaling_original_max_position_embeddings=" OLD
#define YARN_WORDS(FACTOR, FAST, SLOW, OLD, ROUND)                                             \
    "model.position_embedding_type=yarn", "model.yarn_rotary_scaling_factor=" FACTOR,          \
        "model.yarn_beta_fast=" FAST, "model.yarn_beta_slow=" SLOW,                            \
        "model.yarn_original_max_position_embeddings=" OLD,                                    \
        "model.yarn_correction_range_round_to_int=" ROUND

static const rope_case rope_cases[] = {
    {{NULL}, {10000, 64, 64}, PLAIN, {0}, 1},
    {{"model.seq_len_interpolation_factor=4"}, {10000, 64, 64}, LINEAR, {4}, 1},
    {{"model.seq_len_interpolation_factor=1"}, {500, 32, 64}, LINEAR, {1}, 1},
    /* Llama 3.1, 3.2, and bounds so near that every pair is on one side */
    {{LLAMA3_WORDS("8", "1", "4", "8192")}, {500000, 128, 64}, LLAMA3, {8, 1, 4, 8192}, 1},
    {{LLAMA3_WORDS("32", "1", "4", "8192")}, {500000, 64, 64}, LLAMA3, {32, 1, 4, 8192}, 1},
    {{LLAMA3_WORDS("2", "0.5", "9.5", "64")}, {10000, 32, 64}, LLAMA3, {2, 0.5, 9.5, 64}, 1},
    {{LLAMA3_WORDS("3", "1", "1.001", "100")}, {100, 32, 64}, LLAMA3, {3, 1, 1.001, 100}, 1},
    /* Qwen2.5's card, DeepSeek's two weights, the authors' unrounded ramp, ends that are clamped */
    {{YARN_WORDS("4", "32", "1", "32768", "true")},
     {1000000, 128, 64},
     YARN,
     {4, 32, 1, 32768, 1},
     1.1386294361119891},
    {{YARN_WORDS("40", "32", "1", "4096", "true"), "model.yarn_mscale=0.707",
      "model.yarn_mscale_all_dim=1.0"},
     {10000, 64, 64},
     YARN,
     {40, 32, 1, 4096, 1},
     (0.0707 * 3.6888794541139363 + 1) / (0.1 * 3.6888794541139363 + 1)},
    {{YARN_WORDS("40", "32", "1", "4096", "false"), "model.yarn_mscale=1",
      "model.yarn_mscale_all_dim=0"},
     {10000, 64, 64},
     YARN,
     {40, 32, 1, 4096, 0},
     1.3688879454113936},
    {{YARN_WORDS("16", "300", "0.01", "64", "true"), "engine.yarn_attention_factor=0.75"},
     {20, 32, 64},
     YARN,
     {16, 300, 0.01, 64, 1},
     0.75},
    {{YARN_WORDS("1", "32", "1", "64", "true")}, {10000, 32, 64}, YARN, {1, 32, 1, 64, 1}, 1},
    /* Dynamic: as trained up to max_position_embeddings (2048), another base beyond. */
    {{"engine.rope_dynamic_factor=2"}, {10000, 64, 2048}, DYNAMIC, {2, 2048}, 1},
    {{"engine.rope_dynamic_factor=2"}, {10000, 64, 100}, DYNAMIC, {2, 2048}, 1},
    {{"engine.rope_dynamic_factor=2"}, {10000, 64, 4096}, DYNAMIC, {2, 2048}, 1},
    {{"engine.rope_dynamic_factor=8"}, {500, 32, 2049}, DYNAMIC, {8, 2048}, 1},
};

static double reference(const rope_case *at, int i)
{
    const rope_model *of = &at->model;
    double base = of->base, over = of->s / at->by[1];
    switch (at->kind) {
    case LINEAR:
        return plain_rate(base, of->dim, i) / at->by[0];
    case LLAMA3:
        return llama3_rate(of, i, at->by);
    case YARN:
        return yarn_rate(of, i, at->by);
    case DYNAMIC:
        if (over > 1)
            base *= pow(at->by[0] * over - at->by[0] + 1, of->dim / (of->dim - 2.0));
        return plain_rate(base, of->dim, i);
    case PLAIN:
        break;
    }
    return plain_rate(base, of->dim, i);
}

static void every_pair_turns_as_defined(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof rope_cases / sizeof *rope_cases; k++) {
        const rope_case *at = &rope_cases[k];
        rc_error err = {0};
        rc_op_attr attr = {0};
        rc_arena *mem = rc_arena_open();
        law_check(read_rope(&at->model, at->words, mem, &attr, &err), &err);
        assert_int_equal(attr.rotary_dim, at->model.dim);
        for (int i = 0; i < at->model.dim / 2; i++) {
            double got = rc_rope_rate(&attr, i), right = reference(at, i);
            if (!(fabs(got - right) <= 1e-12 * right))
                fail_msg("case %zu, pair %d: %.17g, not %.17g", k, i, got, right);
        }
        double got = rc_rope_amplitude(&attr);
        if (!(fabs(got - at->amplitude) <= 1e-12))
            fail_msg("case %zu: amplitude %.17g, not %.17g", k, got, at->amplitude);
        rc_arena_close(mem);
    }
}

/* What scaling is for: a case whose rates were those of no scaling would prove nothing. */
static void scaled_rates_differ_from_plain_ones(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof rope_cases / sizeof *rope_cases; k++) {
        const rope_case *at = &rope_cases[k];
        const int last = at->model.dim / 2 - 1;
        bool is_plain = at->kind == PLAIN || at->by[0] <= 1 ||
                        (at->kind == DYNAMIC && at->model.s <= at->by[1]);
        double ratio = reference(at, last) / plain_rate(at->model.base, at->model.dim, last);
        assert_true(is_plain ? ratio == 1 : ratio < 1);
    }
}

static void wrong_scaling_is_refused_by_name(void **state)
{
    static const struct {
        const char *words[10], *said;
        rc_code code;
    } cases[] = {
        {{"model.seq_len_interpolation_factor=0.5"},
         "model.seq_len_interpolation_factor is 0.5; it must be at least 1",
         RC_E_INPUT},
        {{"model.seq_len_interpolation_factor=.nan", "model.rope_scaling=true",
          "model.rope_scaling_factor=.nan"},
         "model.rope_scaling_factor is nan",
         RC_E_INPUT},
        {{LLAMA3_WORDS("8", "4", "4", "8192")}, "it must be above", RC_E_INPUT},
        {{LLAMA3_WORDS("8", "0", "4", "8192")}, "low_freq_factor is 0", RC_E_INPUT},
        {{LLAMA3_WORDS("8", "1", ".inf", "8192")}, "high_freq_factor is inf", RC_E_INPUT},
        {{LLAMA3_WORDS("8", "1", "4", "0")}, "embeddings is 0", RC_E_INPUT},
        {{"model.rope_scaling=true", "model.seq_len_interpolation_factor=2"},
         "model.seq_len_interpolation_factor scales rotary positions, and model.rope_scaling "
         "does already",
         RC_E_INPUT},
        {{YARN_WORDS("4", "32", "1", "64", "true"), "model.rope_scaling=true"},
         "model.rope_scaling scales rotary positions",
         RC_E_INPUT},
        {{YARN_WORDS("4", "32", "1", "64", "true"), "model.rotary_percent=0.5"},
         "YaRN rotates whole heads",
         RC_E_UNSUPPORTED},
        {{YARN_WORDS("4", "32", "1", "64", "null")},
         "yarn_correction_range_round_to_int is not set",
         RC_E_INPUT},
        {{YARN_WORDS("null", "32", "1", "64", "true")},
         "yarn_rotary_scaling_factor is not set",
         RC_E_INPUT},
        {{YARN_WORDS("4", "32", "1", "null", "true")}, "is not set", RC_E_INPUT},
        {{YARN_WORDS("4", "1", "32", "64", "true")}, "it must be above", RC_E_INPUT},
        {{YARN_WORDS("4", "32", "1", "64", "true"), "engine.yarn_attention_factor=0"},
         "comes out as 0",
         RC_E_INPUT},
        {{YARN_WORDS("4", "32", "1", "64", "true"), "model.rotary_base=1"},
         "YaRN needs more than 1",
         RC_E_INPUT},
        {{"model.yarn_rotary_scaling_factor=4"},
         "position_embedding_type is not yarn",
         RC_E_UNSUPPORTED},
        {{"engine.rope_dynamic_factor=2", "model.max_position_embeddings=null"},
         "model.max_position_embeddings is not set",
         RC_E_INPUT},
        {{"model.rotary_percent=0.1"}, "3 of a head's 32 elements rotate", RC_E_INPUT},
        {{"model.kv_channels=1"}, "1 of a head's 1 elements rotate", RC_E_INPUT},
        {{"engine.rope_dynamic_factor=0"}, "engine.rope_dynamic_factor is 0", RC_E_INPUT},
    };
    static const rope_model model = {10000, 32, 64};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rc_error err = {0};
        rc_op_attr attr;
        rc_arena *mem = rc_arena_open();
        rc_code code = read_rope(&model, cases[i].words, mem, &attr, &err);
        if (code != cases[i].code || !strstr(err.msg, cases[i].said))
            fail_msg("%s: code %d, %s", cases[i].said, (int)code, err.msg);
        rc_arena_close(mem);
    }
}

/* Megatron-LM's own defaults: 8 for Llama 3.1's factor, YaRN's as its class has them. */
static void flags_of_megatron_lm_are_read(void **state)
{
    static const struct {
        const char *words[8];
        double factor, amplitude;
        rc_rope_kind kind;
        bool is_rounded;
    } cases[] = {
        {{"--position-embedding-type", "rope"}, 0, 1, RC_ROPE_PLAIN, false},
        {{"--position-embedding-type", "rope", "--use-rope-scaling"},
         8,
         1,
         RC_ROPE_LLAMA3,
         false},
        {{"--position-embedding-type", "rope", "--use-rope-scaling", "--rope-scaling-factor",
          "32"},
         32,
         1,
         RC_ROPE_LLAMA3,
         false},
        {{"--position-embedding-type", "rope", "--rotary-seq-len-interpolation-factor", "4"},
         4,
         1,
         RC_ROPE_LINEAR,
         false},
        {{"--position-embedding-type", "yarn", "--rotary-scaling-factor", "4"},
         4,
         1.1386294361119891,
         RC_ROPE_YARN,
         true},
        {{"--position-embedding-type", "yarn", "--rotary-scaling-factor", "4",
          "--no-yarn-correction-range-round-to-int", "--mscale", "2"},
         4,
         1.2772588722239781,
         RC_ROPE_YARN,
         false},
    };
    static const char *const common[] = {
        "--num-layers", "1",  "--hidden-size", "64",  "--num-attention-heads", "2",
        "--seq-length", "64", "--vocab-size",  "300", "--micro-batch-size",    "1"};
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const char *words[24];
        size_t n = 0;
        rc_error err = {0};
        rc_inputs inputs;
        rc_config *cfg;
        rc_arena *mem = rc_arena_open();
        for (; n < sizeof common / sizeof *common; n++)
            words[n] = common[n];
        for (size_t i = 0; i < 8 && cases[k].words[i]; i++)
            words[n++] = cases[k].words[i];
        law_check(rc_inputs_read(words, n, mem, &inputs, &err), &err);
        law_check(rc_config_make(inputs.at, inputs.n, mem, &cfg, &err), &err);
        const rc_graph *graph = law_passes(cfg, RC_PROFILE_ENGINE, RC_NOUN_GRAPH, mem).graph;
        for (int i = 0; i < graph->n_ops; i++) {
            const rc_op op = rc_graph_op(graph, i);
            const rc_op_attr *attr = &op.attr;
            if (op.kind != RC_OP_rope)
                continue;
            assert_int_equal(attr->rope_scaling.kind, cases[k].kind);
            assert_true(attr->rope_scaling.factor == cases[k].factor);
            assert_int_equal(attr->rope_scaling.is_rounded, cases[k].is_rounded);
            assert_true(fabs(rc_rope_amplitude(attr) - cases[k].amplitude) < 1e-12);
        }
        rc_arena_close(mem);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pair_turns_as_defined),
        cmocka_unit_test(scaled_rates_differ_from_plain_ones),
        cmocka_unit_test(wrong_scaling_is_refused_by_name),
        cmocka_unit_test(flags_of_megatron_lm_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
