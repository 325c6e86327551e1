/* test_closed_forms.c — the published per-layer formulas come out of the graph.
 *
 * Korthikanti et al. 2022, "Reducing Activation Recomputation in Large Transformer Models", tables
 * 2 and equations 1 to 6: bytes a layer retains in 16-bit training with dropout.
 */
#include "law.h"

typedef struct form_case {
    const char *name;
    const char *setting;
    int64_t t;
    bool has_sequence_parallel;
    /* sbh (plain + over_t / t) + scores a s^2 b / t */
    int64_t plain, over_t, scores;
} form_case;

static const form_case forms[] = {
    {"no parallelism", "none", 1, false, 34, 0, 5},
    {"empty list is a control", "selective/[]", 1, false, 34, 0, 5},
    {"selective core_attn", "selective/core_attn", 1, false, 34, 0, 0},
    {"full", "full/uniform/1", 1, false, 2, 0, 0},
    {"tensor parallel", "none", 8, false, 10, 24, 5},
    {"tensor + sequence parallel", "none", 8, true, 0, 34, 5},
    {"tensor + sequence parallel, selective", "selective/core_attn", 8, true, 0, 34, 0},
    {"tensor + sequence parallel, full", "full/uniform/1", 8, true, 0, 2, 0},
};

static const law_model gpt3 = {"gpt-3 175B shape",
                               {"model.num_layers=3", "model.hidden_size=12288",
                                "model.num_attention_heads=96", "model.seq_length=2048",
                                "model.vocab_size=51200", "train.micro_batch_size=2",
                                "model.bf16=true", "model.activation_func=gelu_tanh"}};

static void retained_bytes_match_korthikanti(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        const form_case *form = &forms[i];
        rc_error err = {0};
        rc_arena *mem = rc_arena_open();
        int64_t bytes, stats;
        rc_config *cfg = law_config(&gpt3, "unfused", mem);
        cfg->tensor_model_parallel_size = form->t;
        cfg->sequence_parallel = form->has_sequence_parallel;
        const rc_graph *graph =
            law_passes(cfg, RC_PROFILE_MEGATRON_LOCAL, RC_NOUN_GRAPH, mem).graph;
        law_check(
            rc_cost_layer(law_policy(graph, form->setting, mem), 1, mem, &bytes, &stats, &err),
            &err);
        const int64_t s = 2048, b = 2, h = 12288, a = 96;
        int64_t expected = s * b * h * form->plain + s * b * h * form->over_t / form->t +
                           form->scores * a * s * s * b / form->t;
        if (bytes != expected)
            fail_msg("%s: %lld bytes, the paper has %lld", form->name, (long long)bytes,
                     (long long)expected);
        rc_arena_close(mem);
    }
}

/* A dense Llama-like layer under Transformer Engine's modules: h 4096, a 32, g 8, d 128, f 14336,
 * SwiGLU, fused norms, fused attention with rotary embedding, no dropout. Bytes per token, derived
 * from what Megatron-LM's and TransformerEngine's autograd functions save: x and x1 8192 each, both
 * norm outputs 8192 each and 4 of statistics, q 8192, k and v 2048 each, o 8192, log-sum-exp 128,
 * fc1 57344, activation 28672. */
static void retained_bytes_of_a_llama_layer_under_transformer_engine(void **state)
{
    static const law_model llama = {
        "llama-8b shape",
        {"model.num_layers=3", "model.hidden_size=4096", "model.num_attention_heads=32",
         "model.num_query_groups=8", "model.ffn_hidden_size=14336", "model.seq_length=8192",
         "model.vocab_size=128256", "train.micro_batch_size=1", "model.bf16=true",
         "model.normalization=RMSNorm", "model.position_embedding_type=rope",
         "model.gated_linear_unit=true", "model.activation_func=silu",
         "model.add_bias_linear=false", "model.hidden_dropout=0", "model.attention_dropout=0"}};
    static const struct {
        const char *setting;
        int64_t bytes_per_token;
    } cases[] = {
        {"none", 139400},
        {"full/uniform/1", 8192},
        {"selective/mlp", 45188},
        {"selective/core_attn", 149512}, /* pins the whole qkv buffer: more than without */
        {"selective/layernorm", 139400}, /* the norms are fused: acts nowhere */
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rc_error err = {0};
        rc_arena *mem = rc_arena_open();
        int64_t bytes, stats;
        rc_config *cfg = law_config(&llama, "fused", mem);
        const rc_graph *graph =
            law_passes(cfg, RC_PROFILE_MEGATRON_TE, RC_NOUN_GRAPH, mem).graph;
        law_check(rc_cost_layer(law_policy(graph, cases[i].setting, mem), 1, mem, &bytes,
                                &stats, &err),
                  &err);
        if (bytes + stats != 8192 * cases[i].bytes_per_token)
            fail_msg("%s: %lld bytes a token, not %lld", cases[i].setting,
                     (long long)(bytes + stats) / 8192, (long long)cases[i].bytes_per_token);
        rc_arena_close(mem);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(retained_bytes_match_korthikanti),
        cmocka_unit_test(retained_bytes_of_a_llama_layer_under_transformer_engine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
