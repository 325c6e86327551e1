/* test_expert_models.c — models with experts have their published parameters; what cannot be one is refused. */
#include "law.h"

/* ---- published sizes ---- */

#define TEN ",1,1,1,1,1,1,1,1,1,1"
#define SIZES(layers, h, heads, ffn, words)                                                    \
    "model.num_layers=" layers, "model.hidden_size=" h, "model.num_attention_heads=" heads,    \
        "model.ffn_hidden_size=" ffn, "model.vocab_size=" words, "model.seq_length=64",        \
        "train.micro_batch_size=1", "model.make_vocab_size_divisible_by=1",                    \
        "model.normalization=RMSNorm", "model.position_embedding_type=rope",                   \
        "model.gated_linear_unit=true", "model.activation_func=silu",                          \
        "model.add_bias_linear=false", "model.share_embeddings_and_output_weights=false"

/* Elements in the files on the models' pages at Hugging Face; of DeepSeek-V3 without its layer of multi-token prediction
 * and the biases of its routers, 256 in each of 58 layers, which are no parameters in Megatron. */
static const struct published {
    law_model model;
    int64_t n_parameters;
} published[] = {
    {{"DeepSeek-V3",
      {SIZES("61", "7168", "128", "18432", "129280"), "model.multi_latent_attention=true",
       "model.qk_layernorm=true", "model.q_lora_rank=1536", "model.kv_lora_rank=512",
       "model.qk_head_dim=128", "model.qk_pos_emb_head_dim=64", "model.v_head_dim=128",
       "model.num_moe_experts=256", "model.moe_router_topk=8", "model.moe_ffn_hidden_size=2048",
       "model.moe_shared_expert_intermediate_size=2048",
       "model.moe_layer_freq=[0,0,0" TEN TEN TEN TEN TEN ",1,1,1,1,1,1,1,1]"}},
     671026419200 - 58 * 256},
    {{"Qwen3-30B-A3B",
      {SIZES("48", "2048", "32", "6144", "151936"), "model.num_query_groups=4",
       "model.kv_channels=128", "model.qk_layernorm=true", "model.num_moe_experts=128",
       "model.moe_router_topk=8", "model.moe_ffn_hidden_size=768"}},
     30532122624},
    {{"Mixtral-8x7B",
      {SIZES("32", "4096", "32", "14336", "32000"), "model.num_query_groups=8",
       "model.num_moe_experts=8", "model.moe_router_topk=2"}},
     46702792704},
};

static void models_have_their_published_parameters(void **state)
{
    static const rc_profile profiles[] = {RC_PROFILE_MEGATRON_TE, RC_PROFILE_MEGATRON_LOCAL};
    (void)state;
    for (size_t i = 0; i < sizeof published / sizeof *published; i++)
        for (int p = 0; p < 2; p++) {
            rc_arena *mem = rc_arena_open();
            const rc_graph *graph = law_passes(law_config(&published[i].model, "auto", mem),
                                               profiles[p], RC_NOUN_GRAPH, mem)
                                        .graph;
            if (graph->n_parameters != published[i].n_parameters)
                fail_msg("%s: %lld parameters, not %lld", published[i].model.name,
                         (long long)graph->n_parameters, (long long)published[i].n_parameters);
            rc_arena_close(mem);
        }
}

/* ---- refused ---- */

static const law_model plain = {
    "experts",
    {"model.num_layers=3", "model.hidden_size=48", "model.num_attention_heads=4",
     "model.seq_length=12", "model.vocab_size=104", "train.micro_batch_size=2",
     "model.bf16=true", "model.make_vocab_size_divisible_by=1", "model.normalization=RMSNorm",
     "model.add_bias_linear=false", "model.attention_dropout=0", "model.num_moe_experts=8",
     "model.moe_ffn_hidden_size=32",
     "model.moe_router_load_balancing_type=[aux_loss, "
     "seq_aux_loss, none]"}};

static void what_no_expert_can_be_made_of_is_refused(void **state)
{
    static const struct {
        const char *words[3];
        rc_code code;
        const char *said;
    } cases[] = {
        {{"model.num_moe_experts=0"}, RC_E_UNSUPPORTED, "a layer has moe"},
        {{"model.moe_router_topk=9"}, RC_E_INPUT, "moe_router_topk is 9"},
        {{"model.moe_router_topk=0"}, RC_E_INPUT, "moe_router_topk is 0"},
        {{"model.expert_model_parallel_size=3"}, RC_E_INPUT, "expert_model_parallel_size, 3"},
        {{"model.expert_tensor_parallel_size=5"}, RC_E_INPUT, "moe_ffn_hidden_size is 32"},
        {{"model.tensor_model_parallel_size=2"}, RC_E_INPUT, "sequence_parallel is false"},
        {{"model.add_bias_linear=true"}, RC_E_UNSUPPORTED, "add_bias_linear is true"},
        {{"model.moe_expert_capacity_factor=0"}, RC_E_INPUT, "must be above 0"},
        {{"model.moe_router_load_balancing_type=sinkhorn"}, RC_E_UNSUPPORTED, "is sinkhorn"},
        {{"model.moe_aux_loss_coeff=[0.1]", "model.moe_router_load_balancing_type=[7]"},
         RC_E_UNSUPPORTED,
         "is 7"},
        {{"model.seq_length=1099511627776"}, RC_E_RANGE, "rows"},
    };
    static const rc_layer_run run = {{RC_MIXER_none, RC_MLP_moe}, 1};
    static const rc_chunk chunk = {.runs = &run, .n_runs = 1};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        law_model model = plain;
        rc_error err = {0};
        rc_graph *graph;
        rc_arena *mem = rc_arena_open();
        size_t n = 0;
        while (model.words[n])
            n++;
        for (size_t k = 0; k < 3 && cases[i].words[k]; k++)
            model.words[n + k] = cases[i].words[k];
        const rc_graph_request request = {.cfg = law_config(&model, "auto", mem),
                                          .profile = RC_PROFILE_MEGATRON_TE,
                                          .chunk = &chunk};
        const rc_code code = rc_graph_make(&request, mem, &graph, &err);
        if (code != cases[i].code || !strstr(err.msg, cases[i].said))
            fail_msg("%s: code %d, \"%s\"", cases[i].words[0], (int)code, err.msg);
        rc_arena_close(mem);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models_have_their_published_parameters),
        cmocka_unit_test(what_no_expert_can_be_made_of_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
