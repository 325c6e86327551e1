/* test_estimate.c — a rank of a Megatron job is the sum of its parts, and the parts are those of its graph. */
#include "law.h"

#include <recompute/estimate.h>

#include "estimate/chunk.h"
#include "estimate/state.h"

static const law_model model = {
    "estimate",
    {"model.num_layers=12", "model.hidden_size=512", "model.num_attention_heads=8",
     "model.num_query_groups=4", "model.ffn_hidden_size=1280", "model.seq_length=256",
     "model.vocab_size=4096", "train.micro_batch_size=2", "model.bf16=true",
     "model.make_vocab_size_divisible_by=1", "model.normalization=RMSNorm",
     "model.position_embedding_type=rope", "model.gated_linear_unit=true",
     "model.activation_func=silu", "model.add_bias_linear=false", "model.hidden_dropout=0",
     "model.attention_dropout=0", "model.share_embeddings_and_output_weights=false"}};

static const rc_profile profiles[] = {RC_PROFILE_MEGATRON_TE, RC_PROFILE_MEGATRON_LOCAL};

/* ---- chunks ---- */

/* One kind, and kinds in turn: groups of full recompute lie across them. */
static const rc_layer_run alike[] = {{.n_layers = 7}},
                          mixed[] = {{.n_layers = 2},
                                     {{RC_MIXER_attention, RC_MLP_none}, 3},
                                     {{RC_MIXER_none, RC_MLP_mlp}, 1},
                                     {.n_layers = 3}};
static const rc_chunk chunks[] = {
    {.runs = alike, .n_runs = 1},
    {.runs = alike, .n_runs = 1, .has_embedding = true},
    {.runs = mixed, .n_runs = 4, .has_loss = true},
    {.runs = mixed, .n_runs = 4, .has_embedding = true, .has_loss = true},
};

static const char *const settings[] = {"none",           "selective/core_attn",
                                       "selective/mlp",  "selective/core_attn+layernorm+mlp",
                                       "full/uniform/1", "full/uniform/2",
                                       "full/uniform/3", "full/uniform/100",
                                       "full/block/1",   "full/block/4",
                                       "full/block/100"};

static rc_setting setting_of(const char *name)
{
    rc_setting setting;
    assert_true(rc_setting_parse(name, &setting));
    return setting;
}

static rc_chunk_cost price(rc_segments *segments, const char *name, const rc_chunk *chunk,
                           rc_arena *mem)
{
    rc_error err = {0};
    rc_chunk_cost cost;
    const rc_setting setting = setting_of(name);
    law_check(rc_chunk_price(segments, &setting, chunk, mem, &cost, &err), &err);
    return cost;
}

/* The whole chunk as one segment, under a setting of its own. */
static rc_segment price_whole(const rc_config *cfg, rc_profile profile, const char *name,
                              const rc_chunk *chunk, rc_arena *mem)
{
    rc_error err = {0};
    const rc_setting setting = setting_of(name);
    rc_segments all = {.cfg = cfg, .profile = profile, .setting = &setting};
    int at;
    law_check(rc_segment_find(&all, chunk, false, mem, &at, &err), &err);
    return all.at[at];
}

static void check_chunk(const rc_config *cfg, rc_profile profile, const rc_chunk *chunk,
                        const char *name, rc_arena *mem)
{
    const rc_setting none = {.granularity = RC_GRANULARITY_NONE}, own = setting_of(name);
    rc_segments segments = {.cfg = cfg,
                            .profile = profile,
                            .setting = own.granularity == RC_GRANULARITY_FULL ? &none : &own};
    const rc_chunk_cost parts = price(&segments, name, chunk, mem);
    const rc_segment whole = price_whole(cfg, profile, name, chunk, mem);
    if (parts.retained_bytes != whole.retained_bytes ||
        parts.fwd.bytes != whole.fwd_peak_bytes || parts.bwd.bytes != whole.bwd_peak_bytes)
        fail_msg(
            "%s, %s, chunk %d, t %lld: retained %lld, forward %lld, backward %lld in parts; "
            "%lld, %lld, %lld whole",
            rc_profile_name(profile), name, (int)(chunk - chunks),
            (long long)cfg->tensor_model_parallel_size, (long long)parts.retained_bytes,
            (long long)parts.fwd.bytes, (long long)parts.bwd.bytes,
            (long long)whole.retained_bytes, (long long)whole.fwd_peak_bytes,
            (long long)whole.bwd_peak_bytes);
    assert_true(parts.fwd.bytes > 0 && parts.bwd.bytes >= parts.retained_bytes);
    if (segments.n > 8)
        fail_msg("%d segments of layers that are alike", segments.n);
}

static void a_chunk_is_the_sum_of_its_segments(void **state)
{
    static const struct {
        int64_t t;
        bool has_sequence_parallel;
    } ranks[] = {{1, false}, {2, false}, {4, true}};
    (void)state;
    for (size_t r = 0; r < sizeof ranks / sizeof *ranks; r++)
        for (size_t p = 0; p < 2; p++)
            for (size_t c = 0; c < sizeof chunks / sizeof *chunks; c++)
                for (size_t s = 0; s < sizeof settings / sizeof *settings; s++) {
                    rc_arena *mem = rc_arena_open();
                    rc_config *cfg = law_config(&model, "auto", mem);
                    cfg->tensor_model_parallel_size = ranks[r].t;
                    cfg->sequence_parallel = ranks[r].has_sequence_parallel;
                    check_chunk(cfg, profiles[p], &chunks[c], settings[s], mem);
                    rc_arena_close(mem);
                }
}

/* ---- the pipeline ---- */

/* Of the model with more settings, ended by NULL; long sequences outweigh the optimizer's step. */
static const rc_estimate *estimate_of(const char *const *more, rc_arena *mem)
{
    law_model with = model;
    rc_estimate *estimate;
    rc_error err = {0};
    size_t n = 0;
    while (with.words[n])
        n++;
    with.words[n++] = "model.seq_length=16384";
    for (; *more; more++)
        with.words[n++] = *more;
    const rc_estimate_request request = {.cfg = law_config(&with, "auto", mem),
                                         .profile = RC_PROFILE_MEGATRON_TE};
    law_check(rc_estimate_make(&request, mem, &estimate, &err), &err);
    return estimate;
}

/* At their worst moment stages wait for as many backwards as the schedule says, the running one left out; a batch
 * that no walk over its events would end is no heavier than a small one. */
static void stages_hold_what_their_schedule_says(void **state)
{
    static const struct {
        const char *more[6];
        int64_t in_flight[4];
    } cases[] = {
        {{"train.global_batch_size=2"}, {0}},
        {{"model.pipeline_model_parallel_size=4", "train.global_batch_size=64"}, {3, 2, 1, 0}},
        {{"model.pipeline_model_parallel_size=4", "train.global_batch_size=2147483644"},
         {3, 2, 1, 0}},
        {{"model.pipeline_model_parallel_size=2", "train.global_batch_size=64",
          "model.virtual_pipeline_model_parallel_size=3"},
         {6, 4}},
        {{"train.global_batch_size=64", "model.overlap_moe_expert_parallel_comm=true"}, {1}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rc_arena *mem = rc_arena_open();
        const rc_estimate *estimate = estimate_of(cases[i].more, mem);
        for (int r = 0; r < estimate->n_ranks; r++) {
            assert_int_not_equal(estimate->ranks[r].first.phase, RC_PHASE_STEP);
            assert_int_equal(estimate->ranks[r].first.n_in_flight, cases[i].in_flight[r]);
        }
        rc_arena_close(mem);
    }
}

/* ---- state ---- */

/* Bytes of all weights of a chunk, by role, shared by so many ranks. */
static rc_model_state state_of(rc_config *cfg, int64_t n_shards, rc_arena *mem)
{
    const rc_setting none = {.granularity = RC_GRANULARITY_NONE};
    rc_segments segments = {.cfg = cfg, .profile = RC_PROFILE_MEGATRON_TE, .setting = &none};
    const rc_chunk_cost cost = price(&segments, "none", &chunks[3], mem);
    const rc_state_request request = {
        .cfg = cfg, .n_shards = n_shards, .n_expert_shards = n_shards, .is_first_stage = true};
    rc_model_state state;
    rc_state_count(&request, &segments, &cost, 1, &state);
    return state;
}

static int64_t total(const rc_model_state *state)
{
    int64_t sum = 0;
    for (int role = 0; role < RC_PARAM_ROLE_COUNT; role++)
        sum += state->bytes[role];
    return sum;
}

/* 18 bytes a parameter, 16 with gradients in 16 bits and a float32 copy at the step; shared 6 + 12/D, or 4 + 12/D.
 * The sizes here are multiples of every padding but that of 2^16 elements a bucket.
 * source  megatron/core/optimizer/distrib_optimizer.py, param_and_grad_buffer.py */
static void state_is_shared_as_the_optimizer_shares_it(void **state)
{
    rc_arena *mem = rc_arena_open();
    rc_config *cfg = law_config(&model, "auto", mem);
    (void)state;
    for (int is_fp32 = 0; is_fp32 < 2; is_fp32++)
        for (int64_t shards = 1; shards <= 4; shards *= 2) {
            cfg->grad_reduce_in_fp32 = is_fp32;
            const rc_model_state held = state_of(cfg, shards, mem);
            const int64_t n = held.n_parameters;
            assert_true(n > 8000000 && n % (128 * 4) == 0);
            assert_int_equal(total(&held), n * (is_fp32 ? 6 : 4) + n * 12 / shards);
            assert_int_equal(held.step_bytes, is_fp32 ? 0 : n * 4 / shards);
        }
    rc_arena_close(mem);
}

/* A buffer ends at a multiple of what the ranks divide, and every rank has its part of the padding. */
static void padding_is_counted(void **state)
{
    rc_arena *mem = rc_arena_open();
    rc_config *cfg = law_config(&model, "auto", mem);
    (void)state;
    cfg->grad_reduce_in_fp32 = true;
    const int64_t n = state_of(cfg, 1, mem).n_parameters;
    rc_model_state held = state_of(cfg, 24, mem); /* a multiple of 384 elements */
    int64_t padded = (n + 383) / 384 * 384;
    assert_true(padded > n);
    assert_int_equal(total(&held), padded * 6 + padded / 24 * 12);
    cfg->pad_buckets_for_high_nccl_busbw = true;
    held = state_of(cfg, 16, mem);
    padded = (n + 65535) / 65536 * 65536;
    assert_int_equal(total(&held), padded * 6 + padded / 16 * 12);
    /* Every weight of a bucket of one element ends a bucket of its own. */
    cfg->overlap_grad_reduce = true;
    cfg->ddp_bucket_size = 1;
    const rc_model_state split = state_of(cfg, 16, mem);
    assert_true(total(&split) > total(&held));
    rc_arena_close(mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chunk_is_the_sum_of_its_segments),
        cmocka_unit_test(stages_hold_what_their_schedule_says),
        cmocka_unit_test(state_is_shared_as_the_optimizer_shares_it),
        cmocka_unit_test(padding_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
