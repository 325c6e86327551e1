/* test_choices.c — the plan of a Megatron job: every setting is there, each at the price it has alone, and the best is
 * the cheapest of those that fit. */
#include "law.h"

#include <recompute/estimate.h>

#include <math.h>

static const law_model jobs[] = {
    {"stages",
     {"model.num_layers=12", "model.hidden_size=512", "model.num_attention_heads=8",
      "model.num_query_groups=4", "model.ffn_hidden_size=1280", "model.seq_length=512",
      "model.vocab_size=4096", "train.micro_batch_size=2", "model.bf16=true",
      "train.global_batch_size=32", "model.pipeline_model_parallel_size=2",
      "model.make_vocab_size_divisible_by=1", "model.normalization=RMSNorm",
      "model.position_embedding_type=rope", "model.gated_linear_unit=true",
      "model.activation_func=silu", "model.add_bias_linear=false"}},
    {"interleaved",
     {"model.num_layers=16", "model.hidden_size=256", "model.num_attention_heads=8",
      "model.seq_length=512", "model.vocab_size=1024", "train.micro_batch_size=1",
      "train.global_batch_size=16", "model.bf16=true", "model.pipeline_model_parallel_size=4",
      "model.virtual_pipeline_model_parallel_size=2", "model.make_vocab_size_divisible_by=1",
      "model.transformer_impl=local", "model.hidden_dropout=0"}},
};
enum { N_JOBS = sizeof jobs / sizeof *jobs };

static rc_estimate_request request_of(int job, rc_arena *mem)
{
    const rc_config *cfg = law_config(&jobs[job], "auto", mem);
    return (rc_estimate_request){
        .cfg = cfg, .profile = job == 1 ? RC_PROFILE_MEGATRON_LOCAL : RC_PROFILE_MEGATRON_TE};
}

static rc_choices *choices_of(const rc_estimate_request *request, int64_t room, rc_arena *mem)
{
    rc_error err = {0};
    rc_choices *choices;
    law_check(rc_choices_make(request, room, mem, &choices, &err), &err);
    return choices;
}

/* Labels: core_attn and mlp in Transformer Engine's layers; in Megatron's own layernorm too. */
static void every_setting_is_priced_once(void **state)
{
    static const int n_labels[] = {2, 3}, n_layers[] = {6, 2};
    (void)state;
    for (int job = 0; job < N_JOBS; job++) {
        rc_arena *mem = rc_arena_open();
        const rc_estimate_request request = request_of(job, mem);
        const rc_choices *choices = choices_of(&request, 0, mem);
        assert_int_equal(choices->n, (1 << n_labels[job]) + 2 * n_layers[job] - 1);
        for (int i = 0; i < choices->n; i++)
            for (int k = 0; k < i; k++) {
                char a[160], b[160];
                assert_string_not_equal(rc_setting_name(&choices->at[i].setting, a),
                                        rc_setting_name(&choices->at[k].setting, b));
            }
        rc_arena_close(mem);
    }
}

static void a_price_is_what_the_setting_has_alone(void **state)
{
    (void)state;
    for (int job = 0; job < N_JOBS; job++) {
        rc_arena *mem = rc_arena_open();
        rc_estimate_request request = request_of(job, mem);
        const rc_choices *choices = choices_of(&request, 0, mem);
        for (int i = 0; i < choices->n; i++) {
            rc_error err = {0};
            rc_estimate *alone;
            request.setting = &choices->at[i].setting;
            law_check(rc_estimate_make(&request, mem, &alone, &err), &err);
            assert_int_equal(alone->ranks[alone->hottest].later.bytes,
                             choices->at[i].peak_bytes);
            assert_true(alone->replay_seconds / alone->step_seconds ==
                        choices->at[i].added_share);
        }
        rc_arena_close(mem);
    }
}

/* Every room that makes a difference, and one byte less: the best fits, and nothing cheaper does. */
static void check_room(const rc_estimate_request *request, int64_t room, double *least,
                       rc_arena *mem)
{
    const rc_choices *choices = choices_of(request, room, mem);
    const double added = choices->best < 0 ? HUGE_VAL : choices->at[choices->best].added_share;
    for (int i = 0; i < choices->n; i++) {
        assert_int_equal(choices->at[i].is_fitting, choices->at[i].peak_bytes <= room);
        assert_true(!choices->at[i].is_fitting || choices->at[i].added_share >= added);
        assert_true(choices->at[choices->smallest].peak_bytes <= choices->at[i].peak_bytes);
    }
    if (choices->best >= 0)
        assert_true(choices->at[choices->best].peak_bytes <= room);
    assert_true(added >= *least); /* rooms come from large to small */
    *least = added;
}

static int downwards(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

static void the_best_is_the_cheapest_that_fits(void **state)
{
    (void)state;
    for (int job = 0; job < N_JOBS; job++) {
        rc_arena *mem = rc_arena_open();
        const rc_estimate_request request = request_of(job, mem);
        const rc_choices *all = choices_of(&request, 0, mem);
        int64_t rooms[64];
        double least = 0;
        assert_true(all->n <= 64);
        for (int i = 0; i < all->n; i++)
            rooms[i] = all->at[i].peak_bytes;
        qsort(rooms, (size_t)all->n, sizeof *rooms, downwards);
        for (int i = 0; i < all->n; i++) {
            if (i > 0 && rooms[i] == rooms[i - 1])
                continue;
            check_room(&request, rooms[i], &least, mem);
            check_room(&request, rooms[i] - 1, &least, mem);
        }
        assert_true(isinf(least)); /* less than the least: nothing fits */
        rc_arena_close(mem);
    }
}

static void the_front_is_what_nothing_beats(void **state)
{
    (void)state;
    for (int job = 0; job < N_JOBS; job++) {
        rc_arena *mem = rc_arena_open();
        const rc_estimate_request request = request_of(job, mem);
        const rc_choices *all = choices_of(&request, 0, mem);
        for (int i = 0; i < all->n; i++) {
            bool is_beaten = false;
            for (int k = 0; k < all->n; k++) {
                const bool is_no_worse = all->at[k].peak_bytes <= all->at[i].peak_bytes &&
                                         all->at[k].added_share <= all->at[i].added_share;
                const bool is_better = all->at[k].peak_bytes < all->at[i].peak_bytes ||
                                       all->at[k].added_share < all->at[i].added_share;
                is_beaten = is_beaten || (is_no_worse && is_better);
            }
            assert_true(!all->at[i].is_front || !is_beaten);
            assert_true(all->at[i].is_front || is_beaten || i > 0);
        }
        rc_arena_close(mem);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_setting_is_priced_once),
        cmocka_unit_test(a_price_is_what_the_setting_has_alone),
        cmocka_unit_test(the_best_is_the_cheapest_that_fits),
        cmocka_unit_test(the_front_is_what_nothing_beats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
