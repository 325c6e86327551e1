/* test_labels.c — what labels do in the models of public studies comes out with their sign and order.
 *
 * source  Megatron-Bridge, performance studies of selective recompute: Moonlight 16B (moe_act cheap and of use, core_attn
 *         of none, mla_up_proj frees more at more cost), Qwen3-30B-A3B (core_attn raises the peak), Llama 3 70B (mlp frees
 *         most and costs most of the labels)
 */
#include "law.h"

#include <recompute/estimate.h>

static rc_estimate_request request_of(const char *const *words, size_t n, rc_arena *mem)
{
    rc_error err = {0};
    rc_inputs said;
    rc_config *cfg;
    law_check(rc_inputs_read(words, n, mem, &said, &err), &err);
    law_check(rc_config_make(said.at, said.n, mem, &cfg, &err), &err);
    return (rc_estimate_request){.cfg = cfg, .profile = RC_PROFILE_MEGATRON_TE};
}

static const rc_label_effects *effects_of(const char *const *words, size_t n, rc_arena *mem)
{
    rc_error err = {0};
    rc_label_effects *effects;
    const rc_estimate_request request = request_of(words, n, mem);
    law_check(rc_label_effects_make(&request, mem, &effects, &err), &err);
    return effects;
}

#define JOB(...)                                                                               \
    {                                                                                          \
        "model.bf16=true", "train.micro_batch_size=1",                                         \
            "optimizer.use_distributed_optimizer=true", "model.seq_length=4096", __VA_ARGS__   \
    }
#define N_OF(words) (sizeof(words) / sizeof *(words))

static void moonlight_gains_by_its_experts_and_latents(void **state)
{
    static const char *const words[] =
        JOB("--model", "moonlight-16b-a3b", "engine.world_size=8",
            "model.tensor_model_parallel_size=2", "model.sequence_parallel=true",
            "model.expert_model_parallel_size=8", "model.expert_tensor_parallel_size=1",
            "train.global_batch_size=4");
    rc_arena *mem = rc_arena_open();
    const rc_label_effect *at = effects_of(words, N_OF(words), mem)->at;
    const rc_label_effect *core = &at[RC_LABEL_core_attn], *act = &at[RC_LABEL_moe_act],
                          *up = &at[RC_LABEL_mla_up_proj];
    (void)state;
    assert_int_equal(act->verdict, RC_LABEL_FREES);
    assert_int_equal(up->verdict, RC_LABEL_FREES);
    assert_true(up->freed_at_peak_bytes > act->freed_at_peak_bytes);
    assert_true(up->added_share > act->added_share);
    assert_true(core->freed_at_peak_bytes < act->freed_at_peak_bytes / 10);
    assert_true(core->added_share > act->added_share);
    assert_int_equal(at[RC_LABEL_gdn_norm_out].verdict, RC_LABEL_NO_LAYER);
    rc_arena_close(mem);
}

static void core_attn_harms_grouped_queries(void **state)
{
    static const char *const words[] =
        JOB("--model", "qwen3-30b-a3b", "engine.world_size=16",
            "model.expert_model_parallel_size=16", "train.global_batch_size=1024");
    rc_arena *mem = rc_arena_open();
    const rc_label_effect *at = effects_of(words, N_OF(words), mem)->at;
    (void)state;
    assert_int_equal(at[RC_LABEL_core_attn].verdict, RC_LABEL_HARMFUL);
    assert_int_equal(at[RC_LABEL_moe].verdict, RC_LABEL_FREES);
    assert_true(at[RC_LABEL_moe].freed_at_peak_bytes >
                at[RC_LABEL_moe_act].freed_at_peak_bytes);
    rc_arena_close(mem);
}

/* The study saw 16 % less throughput. */
static void mlp_is_dear_in_a_dense_model(void **state)
{
    static const char *const words[] = JOB(
        "--model", "llama3-70b", "engine.world_size=64", "model.tensor_model_parallel_size=4",
        "model.sequence_parallel=true", "model.pipeline_model_parallel_size=4",
        "model.virtual_pipeline_model_parallel_size=5", "train.global_batch_size=128");
    rc_arena *mem = rc_arena_open();
    const rc_label_effect *at = effects_of(words, N_OF(words), mem)->at;
    (void)state;
    assert_int_equal(at[RC_LABEL_mlp].verdict, RC_LABEL_FREES);
    assert_true(at[RC_LABEL_mlp].added_share > 0.10 && at[RC_LABEL_mlp].added_share < 0.22);
    assert_int_equal(at[RC_LABEL_core_attn].verdict, RC_LABEL_HARMFUL);
    assert_true(at[RC_LABEL_COUNT].freed_at_peak_bytes > at[RC_LABEL_mlp].freed_at_peak_bytes);
    rc_arena_close(mem);
}

/* What moe_act frees are rows of experts: twice the rows, twice the bytes. */
static void imbalance_multiplies_the_rows_of_experts(void **state)
{
    static const char *const words[] =
        JOB("--model", "qwen3-30b-a3b", "engine.world_size=16",
            "model.expert_model_parallel_size=16", "train.global_batch_size=16");
    rc_arena *mem = rc_arena_open();
    rc_error err = {0};
    rc_label_effects *even, *twice;
    rc_estimate_request request = request_of(words, N_OF(words), mem);
    (void)state;
    law_check(rc_label_effects_make(&request, mem, &even, &err), &err);
    request.imbalance = 2;
    law_check(rc_label_effects_make(&request, mem, &twice, &err), &err);
    assert_int_equal(twice->at[RC_LABEL_moe_act].freed_bytes,
                     2 * even->at[RC_LABEL_moe_act].freed_bytes);
    assert_int_equal(twice->at[RC_LABEL_layernorm].freed_bytes,
                     even->at[RC_LABEL_layernorm].freed_bytes);
    rc_arena_close(mem);
}

/* One stands in for the gradients of all experts, however many a rank has; before 2.10 of Transformer Engine none did. */
static void experts_share_a_stand_in(void **state)
{
    static const char *const ep[] = {"model.expert_model_parallel_size=8",
                                     "model.expert_model_parallel_size=16"};
    int64_t bytes[2], older[2];
    (void)state;
    for (int i = 0; i < 2; i++) {
        const char *const words[] =
            JOB("--model", "qwen3-30b-a3b", "engine.world_size=16", ep[i],
                "train.global_batch_size=16", "model.gradient_accumulation_fusion=true");
        rc_arena *mem = rc_arena_open();
        rc_error err = {0};
        rc_estimate *estimate;
        rc_estimate_request request = request_of(words, N_OF(words), mem);
        law_check(rc_estimate_make(&request, mem, &estimate, &err), &err);
        bytes[i] = estimate->ranks[0].later.of[RC_COMPONENT_grad_stand_ins];
        request.te_version = 209;
        law_check(rc_estimate_make(&request, mem, &estimate, &err), &err);
        older[i] = estimate->ranks[0].later.of[RC_COMPONENT_grad_stand_ins];
        rc_arena_close(mem);
    }
    assert_int_equal(bytes[0], bytes[1]);
    assert_int_equal(older[0], older[1]);
    /* h 2048, experts of 768, gated: both of their products */
    assert_int_equal(bytes[0] - older[0], 2 * (2048 * 2 * 768 + 2048 * 768));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(moonlight_gains_by_its_experts_and_latents),
        cmocka_unit_test(core_attn_harms_grouped_queries),
        cmocka_unit_test(mlp_is_dear_in_a_dense_model),
        cmocka_unit_test(imbalance_multiplies_the_rows_of_experts),
        cmocka_unit_test(experts_share_a_stand_in),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
