/* test_graph.c — shapes in symbols, and what a graph refuses. */
#include "../laws/law.h"

#include "graph/shape.h"

#include <math.h>

static const rc_dims dims = {.s = 10,
                             .b = 3,
                             .h = 8,
                             .a = 4,
                             .g = 2,
                             .d = 2,
                             .f = 32,
                             .V = 7,
                             .L = 5,
                             .t = 2,
                             .c = 1,
                             .E = 8,
                             .p = 3,
                             .ep = 4,
                             .S = 10,
                             .N = 30,
                             .n = 15};

static void shape_evaluates_symbols(void **state)
{
    static const struct {
        const char *text;
        int n_dims;
        int64_t first, n_elem;
    } cases[] = {
        {"[h]", 1, 8, 8},
        {"[n, h]", 2, 15, 120},
        {"[N, (a+2g)d/t]", 2, 30, 30 * 8},
        {"[b, a/t, S, S]", 4, 3, 3 * 2 * 100},
        {"[2f/t, h]", 2, 32, 256},
        {"[1]", 1, 1, 1},
        {"[12 + 3h]", 1, 36, 36},
        {"[E/ep, hp]", 2, 2, 2 * 24}, /* `ep` is a symbol of its own, `hp` is two */
        {"[2ep]", 1, 8, 8},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rc_shape shape;
        rc_error err = {0};
        law_check(rc_shape_eval(cases[i].text, &dims, &shape, &err), &err);
        assert_int_equal(shape.n_dims, cases[i].n_dims);
        assert_int_equal(shape.dim[0], cases[i].first);
        assert_int_equal(shape.n_elem, cases[i].n_elem);
    }
}

static void shape_refuses_a_remainder_and_an_overflow(void **state)
{
    rc_shape shape;
    rc_error err = {0};
    rc_dims large = dims;
    large.h = (int64_t)1 << 40;
    (void)state;
    assert_int_equal(rc_shape_eval("[V/t]", &dims, &shape, &err), RC_E_INPUT);
    assert_non_null(strstr(err.msg, "7 does not divide by 2"));
    assert_int_equal(rc_shape_eval("[h, h]", &large, &shape, NULL), RC_E_RANGE);
    assert_int_equal(rc_shape_eval("[hh]", &large, &shape, NULL), RC_E_RANGE);
    assert_int_equal(rc_shape_eval("[q]", &dims, &shape, NULL), RC_E_BUG);
}

/* In a Megatron profile, since the engine's refuses every parallel size but 1 before it divides. */
static rc_code make_with(const char *word, rc_arena *mem, rc_error *err)
{
    law_model model = law_models[0];
    rc_graph *graph;
    size_t n = 0;
    while (model.words[n])
        n++;
    model.words[n] = word;
    return rc_graph_make(&(rc_graph_request){.cfg = law_config(&model, "fused", mem),
                                             .profile = RC_PROFILE_MEGATRON_TE},
                         mem, &graph, err);
}

static void graph_names_the_setting_that_is_wrong(void **state)
{
    static const struct {
        const char *word, *said;
        rc_code code;
    } cases[] = {
        {"model.num_layers=0", "num_layers is 0; it must be at least 1", RC_E_INPUT},
        {"model.num_layers=null", "num_layers is not set", RC_E_INPUT},
        {"model.num_query_groups=3", "num_attention_heads is 4", RC_E_INPUT},
        {"model.hidden_size=50", "hidden_size is 50, which is no multiple", RC_E_INPUT},
        {"model.normalization=BatchNorm", "known here are: LayerNorm, RMSNorm",
         RC_E_UNSUPPORTED},
        {"model.activation_func=swish9", "known here are: gelu", RC_E_UNSUPPORTED},
        {"model.hidden_dropout=1.0", "at least 0 and below 1", RC_E_INPUT},
        {"model.vocab_size=null", "vocab_size is not set", RC_E_INPUT},
        {"model.tensor_model_parallel_size=3", "no multiple of tensor_model_parallel_size",
         RC_E_INPUT},
        {"model.vocab_size=-1", "vocab_size is -1; it must be at least 1", RC_E_INPUT},
        {"model.rotary_percent=5", "rotary_percent is 5; it must be from 0 to 1", RC_E_INPUT},
        {"model.rotary_percent=-1", "rotary_percent is -1", RC_E_INPUT},
        {"model.rotary_percent=.nan", "rotary_percent is nan", RC_E_INPUT},
        {"model.rotary_base=0", "rotary_base is 0; it must be at least 1", RC_E_INPUT},
        {"model.layernorm_epsilon=-1", "layernorm_epsilon is -1", RC_E_INPUT},
        {"model.init_method_std=.inf", "init_method_std is inf", RC_E_INPUT},
        {"model.seq_length=9223372036854775807", "at most 1099511627776", RC_E_RANGE},
        {"model.num_layers=4097", "at most 4096", RC_E_RANGE},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rc_error err = {0};
        rc_arena *mem = rc_arena_open();
        rc_code code = make_with(cases[i].word, mem, &err);
        if (code != cases[i].code || !strstr(err.msg, cases[i].said))
            fail_msg("%s: code %d, %s", cases[i].word, (int)code, err.msg);
        rc_arena_close(mem);
    }
}

/* Sizes that fit one by one but whose sums and products do not: refused, not computed wrongly. */
static void graph_refuses_sums_past_its_range(void **state)
{
    static const struct {
        const char *words[8], *said;
    } cases[] = {
        {{"model.seq_length=1099511627776"}, "2^62 FLOP"},
        {{"train.micro_batch_size=1099511627776", "model.seq_length=1099511627776"}, "2^63-1"},
        {{"model.vocab_size=1099511627776", "model.seq_length=64",
          "train.micro_batch_size=1024"},
         "2^57 bytes"},
        {{"model.kv_channels=1099511627776"}, "times kv_channels"},
        {{"model.num_attention_heads=1099511627776", "model.kv_channels=1099511627776"},
         "times kv_channels"},
        {{"model.hidden_size=1099511627776", "model.ffn_hidden_size=1099511627776"}, "2^63-1"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        law_model model = law_models[0];
        size_t n = 0;
        while (model.words[n])
            n++;
        for (size_t k = 0; cases[i].words[k]; k++)
            model.words[n++] = cases[i].words[k];
        for (size_t k = 0; k < 2; k++) {
            rc_error err = {0};
            rc_arena *mem = rc_arena_open();
            rc_graph *graph;
            rc_config *cfg = law_config(&model, k ? "unfused" : "fused", mem);
            rc_code code = rc_graph_make(&(rc_graph_request){.cfg = cfg}, mem, &graph, &err);
            if (code != RC_E_RANGE || (k == 0 && !strstr(err.msg, cases[i].said)))
                fail_msg("%s: code %d, %s", cases[i].words[0], (int)code, err.msg);
            rc_arena_close(mem);
        }
    }
}

/* 16,384 tokens with fused attention: nothing of size s^2 exists. */
static void fused_attention_has_no_square_tensor(void **state)
{
    (void)state;
    static const law_model long_model = {
        "long",
        {"model.num_layers=1", "model.hidden_size=64", "model.num_attention_heads=2",
         "model.seq_length=16384", "model.vocab_size=300", "train.micro_batch_size=1"}};
    rc_arena *mem = rc_arena_open();
    const rc_graph *graph = law_graph(&long_model, "fused", mem);
    for (int i = 0; i < graph->n_tensors; i++)
        assert_true(rc_graph_tensor(graph, i).n_elem < (int64_t)16384 * 16384 / 8);
    graph = law_graph(&long_model, "unfused", mem);
    int n_square = 0;
    for (int i = 0; i < graph->n_tensors; i++)
        n_square += rc_graph_tensor(graph, i).n_elem == (int64_t)2 * 16384 * 16384;
    assert_int_equal(n_square, 3); /* scores, softmax in their place, dropped probabilities */
    rc_arena_close(mem);
}

static void parameters_are_counted_as_published(void **state)
{
    (void)state;
    /* GPT-2 small: 124,439,808 parameters (Radford et al. 2019, as released by OpenAI) */
    static const law_model gpt2 = {"gpt2",
                                   {"model.num_layers=12", "model.hidden_size=768",
                                    "model.num_attention_heads=12", "model.seq_length=1024",
                                    "model.vocab_size=50257", "train.micro_batch_size=1",
                                    "model.make_vocab_size_divisible_by=1"}};
    /* Llama 3 8B: 8,030,261,248 parameters (Llama 3 model card) */
    static const law_model llama = {
        "llama3-8b",
        {"model.num_layers=32", "model.hidden_size=4096", "model.num_attention_heads=32",
         "model.num_query_groups=8", "model.ffn_hidden_size=14336", "model.seq_length=8192",
         "model.vocab_size=128256", "train.micro_batch_size=1", "model.normalization=RMSNorm",
         "model.position_embedding_type=rope", "model.gated_linear_unit=true",
         "model.activation_func=silu", "model.add_bias_linear=false",
         "model.share_embeddings_and_output_weights=false"}};
    rc_arena *mem = rc_arena_open();
    assert_int_equal(law_graph(&gpt2, "fused", mem)->n_parameters, 124439808);
    assert_int_equal(law_graph(&llama, "fused", mem)->n_parameters, 8030261248);
    rc_arena_close(mem);
}

/* 1 + w with w = 0 is w = 1: the same loss and gradients, to the bit; and norms have no decay. */
static void norms_around_0_start_as_the_same_model(void **state)
{
    (void)state;
    for (size_t m = 0; m < LAW_N_MODELS; m++) {
        rc_run *runs[2];
        double loss[2];
        int32_t tokens[256], targets[256];
        rc_arena *mem = rc_arena_open();
        for (int k = 0; k < 2; k++) {
            law_model model = law_models[m];
            rc_error err = {0};
            size_t n = 0;
            while (model.words[n])
                n++;
            model.words[n] = k ? "model.layernorm_zero_centered_gamma=true"
                               : "model.layernorm_zero_centered_gamma=false";
            const rc_graph *graph = law_graph(&model, "fused", mem);
            for (int64_t i = 0; i < graph->dims.N; i++)
                tokens[i] = targets[i] = (int32_t)(i * 37 % graph->dims.W);
            law_check(rc_run_open(law_schedule(graph, "none", 1, mem),
                                  &(rc_run_options){.seed = 7, .n_micro_batches = 1}, &runs[k],
                                  &err),
                      &err);
            rc_run_init_weights(runs[k]);
            law_check(rc_run_micro(runs[k], &(rc_batch){.tokens = tokens, .targets = targets},
                                   &loss[k], &err),
                      &err);
        }
        int n_params;
        const rc_run_param *plain = rc_run_params(runs[0], &n_params),
                           *around_0 = rc_run_params(runs[1], &n_params);
        assert_memory_equal(&loss[0], &loss[1], sizeof loss[0]);
        for (int i = 0; i < n_params; i++) {
            const rc_tensor *tensor = &around_0[i].tensor;
            size_t n_bytes = (size_t)tensor->n_elem * sizeof(float);
            bool is_gamma = strstr(around_0[i].name, "layernorm.weight") != NULL;
            assert_memory_equal(plain[i].grad, around_0[i].grad, n_bytes);
            for (int64_t k = 0; k < tensor->n_elem && is_gamma; k++)
                assert_true(((float *)around_0[i].weight)[k] == 0 &&
                            ((float *)plain[i].weight)[k] == 1);
            assert_true(!is_gamma || !tensor->has_weight_decay);
        }
        rc_run_close(runs[0]);
        rc_run_close(runs[1]);
        rc_arena_close(mem);
    }
}

static void softmax_scale_replaces_the_usual_one(void **state)
{
    (void)state;
    for (size_t m = 0; m < LAW_N_MODELS; m++)
        for (size_t c = 0; c < 2; c++) {
            rc_arena *mem = rc_arena_open();
            const rc_config *cfg = law_config(&law_models[m], law_cores[c], mem);
            const rc_graph *graph = law_graph(&law_models[m], law_cores[c], mem);
            bool is_given = !cfg->origin[RC_FIELD_softmax_scale].is_null;
            double usual = pow((double)graph->dims.d, -0.5);
            int n = 0;
            for (int i = 0; i < graph->n_ops; i++) {
                const rc_op row = rc_graph_op(graph, i), *op = &row;
                if (op->kind != RC_OP_attention && op->kind != RC_OP_attn_scores)
                    continue;
                n++;
                assert_true(is_given ? op->attr.scale == 0.2
                                     : fabs(op->attr.scale - usual) < 1e-15);
            }
            assert_int_equal(n, graph->dims.L);
            rc_arena_close(mem);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shape_evaluates_symbols),
        cmocka_unit_test(shape_refuses_a_remainder_and_an_overflow),
        cmocka_unit_test(graph_names_the_setting_that_is_wrong),
        cmocka_unit_test(graph_refuses_sums_past_its_range),
        cmocka_unit_test(fused_attention_has_no_square_tensor),
        cmocka_unit_test(parameters_are_counted_as_published),
        cmocka_unit_test(norms_around_0_start_as_the_same_model),
        cmocka_unit_test(softmax_scale_replaces_the_usual_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
