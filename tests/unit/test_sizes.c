/* test_sizes.c — the sizes that advice states, against sums made by hand from what each module saves
 * (Korthikanti et al. 2022 for the method; Megatron-LM d98e8a64 and Transformer Engine d0067d0d for
 * the tensors), in bytes a token. */
#include "check/sizes.h"

#include <recompute/read.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

typedef struct model {
    rc_arena *mem;
    rc_checking *checking;
    rc_sizes sizes;
} model;

static model open_model(const char *yaml)
{
    model out = {.mem = rc_arena_open()};
    rc_error err = {0};
    rc_doc *doc;
    rc_config *cfg;
    assert_int_equal(rc_yaml_read("test", yaml, strlen(yaml), out.mem, &doc, &err), RC_OK);
    rc_input input = {doc, RC_FROM_FILE};
    assert_int_equal(rc_config_make(&input, 1, out.mem, &cfg, &err), RC_OK);
    assert_int_equal(
        rc_checking_make(out.mem, cfg->multi_latent_attention, &out.checking, &err), RC_OK);
    assert_int_equal(rc_checking_fill(out.checking, cfg, &err), RC_OK);
    out.checking->cfg = cfg;
    rc_sizes_find(out.checking, &out.sizes);
    return out;
}

/* What a layer retains of the 3 tokens of the models below, in bytes a token. */
static void expect_layer(const char *yaml, const char *recompute, double bytes)
{
    char text[2048];
    snprintf(text, sizeof text, "%s%s", yaml, recompute);
    model one = open_model(text);
    double layer = rc_sizes_layer(one.checking, &one.sizes), expected = 3.0 * bytes;
    assert_true(layer >= expected && layer <= expected);
    rc_arena_close(one.mem);
}

static const char dense[] = "train: {micro_batch_size: 1}\n"
                            "model:\n"
                            "  num_layers: 32\n"
                            "  hidden_size: 4096\n"
                            "  num_attention_heads: 32\n"
                            "  num_query_groups: 8\n"
                            "  ffn_hidden_size: 14336\n"
                            "  gated_linear_unit: true\n"
                            "  attention_dropout: 0.0\n"
                            "  seq_length: 3\n";

static const char experts[] = "train: {micro_batch_size: 1}\n"
                              "model:\n"
                              "  num_layers: 61\n"
                              "  hidden_size: 7168\n"
                              "  num_attention_heads: 128\n"
                              "  multi_latent_attention: true\n"
                              "  q_lora_rank: 1536\n"
                              "  kv_lora_rank: 512\n"
                              "  gated_linear_unit: true\n"
                              "  num_moe_experts: 256\n"
                              "  moe_router_topk: 8\n"
                              "  moe_ffn_hidden_size: 2048\n"
                              "  moe_shared_expert_intermediate_size: 2048\n"
                              "  moe_permute_fusion: true\n"
                              "  seq_length: 3\n";

static void dense_layer(void **state)
{
    (void)state;
    expect_layer(dense, "", 139400);
    expect_layer(dense, "  recompute_granularity: full\n", 8192);
    expect_layer(dense, "  recompute_granularity: selective\n  recompute_modules: [mlp]\n",
                 45188);
    expect_layer(dense,
                 "  recompute_granularity: selective\n  recompute_modules: [layernorm]\n",
                 139400);
    expect_layer(dense,
                 "  transformer_impl: local\n  attention_backend: flash\n"
                 "  recompute_granularity: selective\n  recompute_modules: [layernorm]\n",
                 123008);
    expect_layer(dense, "  fp32_residual_connection: true\n  recompute_granularity: full\n",
                 16384);
}

/* 128 bytes of the softmax's statistics, or 2 * 3 tokens * 32 heads of scores, 5 with dropout, and key
 * and value of 24 heads more. */
static void attention_kinds(void **state)
{
    (void)state;
    const char *const core_attn =
        "  recompute_granularity: selective\n  recompute_modules: [core_attn]\n";
    expect_layer(dense, core_attn, 139400 - 128);
    expect_layer(dense,
                 "  position_embedding_type: rope\n  recompute_granularity: selective\n"
                 "  recompute_modules: [core_attn]\n",
                 139400 - 128 + 2 * 128 * (32 + 8));
    expect_layer(dense, "  attention_backend: unfused\n", 139400 - 128 + 192 + 12288);
    expect_layer(dense,
                 "  attention_backend: unfused\n  recompute_granularity: selective\n"
                 "  recompute_modules: [core_attn]\n",
                 139400 - 128);
}

/* A byte instead of two for what linears keep: both norms' outputs and the activation's. */
static void quantised_layer(void **state)
{
    (void)state;
    expect_layer(dense, "  fp8: hybrid\n", 139400 - 2 * 4096 - 14336);
    /* first norm, latents, rows of 7168 and 2048 for 8 experts, shared ones; not the router's input */
    expect_layer(experts, "  fp8: hybrid\n", 458580 - 7168 - 2048 - 8 * (7168 + 2048) - 2048);
}

static void expert_layer(void **state)
{
    (void)state;
    expect_layer(experts, "", 458580);
    expect_layer(experts,
                 "  recompute_granularity: selective\n  recompute_modules: [mla_up_proj]\n",
                 458580 - 135048);
    expect_layer(experts,
                 "  recompute_granularity: selective\n  recompute_modules: [moe_act]\n",
                 458580 - 32768);
    expect_layer(experts,
                 "  recompute_granularity: selective\n  recompute_modules: [layernorm]\n",
                 458580 - 28680);
    expect_layer(experts,
                 "  recompute_granularity: selective\n  recompute_modules: [shared_experts]\n",
                 458580 - 12288);
    expect_layer(experts, "  recompute_granularity: selective\n  recompute_modules: [moe]\n",
                 458580 - 228676);
    expect_layer(experts,
                 "  recompute_granularity: selective\n"
                 "  recompute_modules: [mla_up_proj, moe_act, layernorm]\n",
                 262084);
    expect_layer(experts, "  recompute_granularity: full\n", 14336);
}

/* Their routing, width and ranks in other words. */
static void expert_kinds(void **state)
{
    (void)state;
    /* rows of 8 experts for 7168 channels and half of 2048, two ranks' tokens; else by halves */
    expect_layer(experts, "  tensor_model_parallel_size: 2\n  sequence_parallel: true\n",
                 100614 + 14338 + (1280 + 2052 + 64) / 2.0 + 8 * 20484 + 6144);
    expect_layer(experts,
                 "  tensor_model_parallel_size: 2\n  sequence_parallel: true\n"
                 "  expert_tensor_parallel_size: 1\n",
                 100614 + 14338 + (1280 + 2052 + 32) / 2.0 + 4 * 26628 + 6144);
    /* the way of the rows by indices: 8 bytes twice */
    char by_index[sizeof experts];
    snprintf(by_index, sizeof by_index, "%.*s  seq_length: 3\n",
             (int)(strstr(experts, "  moe_permute_fusion") - experts), experts);
    expect_layer(by_index, "", 458580 - 2052 - 32 + 2 * 64);
    /* no rank for the query, no norm of it */
    char no_rank[sizeof experts];
    const char *rank = strstr(experts, "  q_lora_rank");
    snprintf(no_rank, sizeof no_rank, "%.*s%s", (int)(rank - experts), experts,
             strchr(rank, '\n') + 1);
    expect_layer(no_rank, "", 458580 - 2 * 3072 - 4);
    /* latent rows, and the input of the way back */
    expect_layer(experts, "  moe_latent_size: 2048\n", 458580 - 8 * 2 * 5120 + 4096);
}

/* Tensor parallelism halves what lies inside its regions, with sequence parallelism all of it. */
static void parallel_layer(void **state)
{
    (void)state;
    expect_layer(dense, "  tensor_model_parallel_size: 2\n  sequence_parallel: true\n", 69700);
    expect_layer(dense, "  tensor_model_parallel_size: 2\n", 32776 + (139400 - 32776) / 2.0);
}

static void expect_held(const char *settings, double n_plain, double n_held)
{
    char text[2048];
    snprintf(text, sizeof text, "%s%s", dense, settings);
    model one = open_model(text);
    assert_true(one.sizes.n_plain >= n_plain && one.sizes.n_plain <= n_plain);
    assert_true(one.sizes.n_held >= n_held && one.sizes.n_held <= n_held);
    rc_arena_close(one.mem);
}

static void schedules(void **state)
{
    (void)state;
    expect_held("", 1, 1);
    expect_held("  pipeline_model_parallel_size: 4\n", 4, 4);
    expect_held("  pipeline_model_parallel_size: 4\n"
                "  virtual_pipeline_model_parallel_size: 2\n",
                4, 11 / 2.0);
    expect_held("  pipeline_model_parallel_size: 8\n"
                "  virtual_pipeline_model_parallel_size: 4\n",
                8, 39 / 4.0);
    /* capped by the micro-batches of a step */
    expect_held("  pipeline_model_parallel_size: 8\n"
                "  virtual_pipeline_model_parallel_size: 2\n"
                "data_parallel_size: 1\n"
                "global_batch_size: 8\n",
                8, 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dense_layer),     cmocka_unit_test(attention_kinds),
        cmocka_unit_test(quantised_layer), cmocka_unit_test(expert_layer),
        cmocka_unit_test(expert_kinds),    cmocka_unit_test(parallel_layer),
        cmocka_unit_test(schedules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
