/* test_vectors.c — bytes that two layers of published sizes keep a token, worked out by hand, module by module.
 *
 * A  a Llama layer (h 4096, 32 heads in 8 groups of 128, f 14336): input 8192, norms 8192 + 4 each, q 8192, k and v
 *    2048 each, output 8192, log-sum-exp 128, the sum behind attention 8192, fc1 57344, activation 28672
 * B  a layer of DeepSeek-V3's sizes on one rank, tokens dealt out evenly: input, both norms 2 x 14340 and the sum; latents
 *    of 1536 and 512 with their norms; 128 heads of 192, values of 128; scores and map of 256 experts, a map of
 *    2 x 256 + 1 int32, an int32 a row; of 8 rows 7168 in, 4096 and 2048 inside; a shared expert
 *
 * A layer's input and what it hands on are as large, and one of them is counted.
 * source  Megatron-LM megatron/core/transformer, TransformerEngine transformer_engine/pytorch at d98e8a64 and d0067d0d
 */
#include "law.h"

static const law_model dense = {
    "dense",
    {"model.num_layers=3", "model.hidden_size=4096", "model.num_attention_heads=32",
     "model.num_query_groups=8", "model.ffn_hidden_size=14336", "model.seq_length=8192",
     "model.vocab_size=128", "train.micro_batch_size=1", "model.bf16=true",
     "model.normalization=RMSNorm", "model.position_embedding_type=rope",
     "model.gated_linear_unit=true", "model.activation_func=silu",
     "model.add_bias_linear=false", "model.hidden_dropout=0", "model.attention_dropout=0"}};

static const law_model experts = {"experts",
                                  {"model.num_layers=3",
                                   "model.hidden_size=7168",
                                   "model.num_attention_heads=128",
                                   "model.seq_length=4096",
                                   "model.vocab_size=128",
                                   "train.micro_batch_size=1",
                                   "model.bf16=true",
                                   "model.normalization=RMSNorm",
                                   "model.position_embedding_type=rope",
                                   "model.gated_linear_unit=true",
                                   "model.activation_func=silu",
                                   "model.add_bias_linear=false",
                                   "model.hidden_dropout=0",
                                   "model.attention_dropout=0",
                                   "model.multi_latent_attention=true",
                                   "model.qk_layernorm=true",
                                   "model.q_lora_rank=1536",
                                   "model.kv_lora_rank=512",
                                   "model.qk_head_dim=128",
                                   "model.qk_pos_emb_head_dim=64",
                                   "model.v_head_dim=128",
                                   "model.num_moe_experts=256",
                                   "model.moe_router_topk=8",
                                   "model.moe_ffn_hidden_size=2048",
                                   "model.moe_shared_expert_intermediate_size=2048",
                                   "model.moe_token_dispatcher_type=alltoall",
                                   "model.moe_grouped_gemm=true",
                                   "model.moe_permute_fusion=true",
                                   "model.moe_router_fusion=true",
                                   "model.moe_router_dtype=fp32",
                                   "model.moe_router_score_function=sigmoid"}};

static const struct vector {
    const law_model *model;
    const char *setting;
    int64_t per_token;
} vectors[] = {
    {&dense, "none", 139400},
    {&dense, "full/uniform/1", 8192},
    {&dense, "selective/mlp", 45188},
    /* the whole product of queries, keys and values stays for a slice of it */
    {&dense, "selective/core_attn", 139400 + 10112},
    {&dense, "selective/layernorm", 139400},
    {&experts, "none", 458580},
    {&experts, "selective/mla_up_proj", 458580 - 136200 + 1152},
    {&experts, "selective/moe_act", 458580 - 32768},
    {&experts, "selective/layernorm", 458580 - 28680},
    {&experts, "selective/shared_experts", 458580 - 12288},
    {&experts, "selective/moe", 458580 - 228676},
    {&experts, "selective/mla_up_proj+moe_act+layernorm", 458580 - 196496},
    {&experts, "full/uniform/1", 14336},
};

static void a_layer_keeps_as_many_bytes_a_token(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        rc_error err = {0};
        rc_arena *mem = rc_arena_open();
        int64_t bytes, stats;
        const rc_graph *graph = law_passes(law_config(vectors[i].model, "auto", mem),
                                           RC_PROFILE_MEGATRON_TE, RC_NOUN_GRAPH, mem)
                                    .graph;
        law_check(rc_cost_layer(law_policy(graph, vectors[i].setting, mem), 1, mem, &bytes,
                                &stats, &err),
                  &err);
        if (bytes + stats != vectors[i].per_token * graph->dims.N)
            fail_msg("%s, %s: %g bytes a token, not %lld", vectors[i].model->name,
                     vectors[i].setting, (double)(bytes + stats) / (double)graph->dims.N,
                     (long long)vectors[i].per_token);
        rc_arena_close(mem);
    }
}

/* With several samples FlashAttention keeps turned copies, and its output in its own order besides. */
static void flash_attention_keeps_its_output_twice(void **state)
{
    (void)state;
    for (int64_t b = 1; b <= 2; b++) {
        rc_error err = {0};
        rc_arena *mem = rc_arena_open();
        int64_t bytes, stats;
        rc_config *cfg = law_config(&dense, "flash", mem);
        cfg->micro_batch_size = b;
        const rc_graph *graph =
            law_passes(cfg, RC_PROFILE_MEGATRON_TE, RC_NOUN_GRAPH, mem).graph;
        law_check(rc_cost_layer(law_policy(graph, "none", mem), 1, mem, &bytes, &stats, &err),
                  &err);
        assert_int_equal(bytes + stats, (139400 + (b > 1 ? 8192 : 0)) * graph->dims.N);
        rc_arena_close(mem);
    }
}

/* Of several kernels act(gate), the linear half and their product stay beside what fc1 gave: 5 widths, not 3. */
static void a_gated_activation_of_several_kernels_keeps_each_step(void **state)
{
    rc_error err = {0};
    rc_arena *mem = rc_arena_open();
    law_model model = dense;
    int64_t bytes, stats;
    size_t n = 0;
    (void)state;
    while (model.words[n])
        n++;
    model.words[n] = "model.bias_activation_fusion=false";
    const rc_graph *graph =
        law_passes(law_config(&model, "auto", mem), RC_PROFILE_MEGATRON_TE, RC_NOUN_GRAPH, mem)
            .graph;
    law_check(rc_cost_layer(law_policy(graph, "none", mem), 1, mem, &bytes, &stats, &err),
              &err);
    assert_int_equal(bytes + stats, (139400 + 2 * 28672) * graph->dims.N);
    rc_arena_close(mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_layer_keeps_as_many_bytes_a_token),
        cmocka_unit_test(flash_attention_keeps_its_output_twice),
        cmocka_unit_test(a_gated_activation_of_several_kernels_keeps_each_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
