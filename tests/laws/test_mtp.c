/* test_mtp.c — multi-token prediction keeps what its modules save, and adds the parameters it says.
 *
 *   a depth        norms of two inputs, their sum of widths, the projection's shard of it, a layer, a norm
 *                  2nh + 2nh embedded and hidden (the latter is what the depth before ends with), 2 * 2nh normed,
 *                  side by side 2 * 2nh, and statistics of two norms
 *   its loss       a softmax of its own in fp32, 4N V/t, until backward
 *
 * source  megatron/core/transformer/multi_token_prediction.py, common/language_module/language_module.py
 */
#include "law.h"

static const law_model model = {
    "depths",
    {"model.num_layers=2", "model.hidden_size=48", "model.num_attention_heads=4",
     "model.ffn_hidden_size=80", "model.seq_length=12", "model.vocab_size=104",
     "train.micro_batch_size=2", "model.bf16=true", "model.make_vocab_size_divisible_by=1",
     "model.normalization=RMSNorm", "model.position_embedding_type=rope",
     "model.gated_linear_unit=true", "model.activation_func=silu",
     "model.add_bias_linear=false", "model.hidden_dropout=0", "model.attention_dropout=0",
     "model.share_embeddings_and_output_weights=false"}};

static const rc_layer_run layer = {.n_layers = 1};

static const rc_graph *make(const rc_config *cfg, int n_depths, bool has_embedding,
                            rc_arena *mem)
{
    rc_error err = {0};
    rc_graph *graph;
    const rc_chunk chunk = {.runs = &layer,
                            .n_runs = 1,
                            .has_embedding = has_embedding,
                            .has_loss = true,
                            .n_mtp = n_depths,
                            .mtp_runs = &layer,
                            .n_mtp_runs = 1};
    law_check(
        rc_graph_make(
            &(rc_graph_request){.cfg = cfg, .profile = RC_PROFILE_MEGATRON_TE, .chunk = &chunk},
            mem, &graph, &err),
        &err);
    return graph;
}

static rc_config *config_of(int64_t t, rc_arena *mem)
{
    rc_config *cfg = law_config(&model, "auto", mem);
    cfg->tensor_model_parallel_size = t;
    cfg->sequence_parallel = t > 1;
    return cfg;
}

static int64_t kept_by_head(const rc_graph *graph, rc_arena *mem)
{
    rc_error err = {0};
    int64_t bytes, stats;
    law_check(rc_cost_layer(law_policy(graph, "none", mem), 1, mem, &bytes, &stats, &err),
              &err);
    return bytes + stats;
}

static int64_t kept_by_layer(const rc_graph *graph, rc_arena *mem)
{
    rc_error err = {0};
    int64_t bytes, stats;
    law_check(rc_cost_layer(law_policy(graph, "none", mem), 0, mem, &bytes, &stats, &err),
              &err);
    return bytes + stats;
}

/* The layer's own output is what the depth's norm starts from; its input what the projection leaves, of which a rank
 * takes the first rows: no copy, so the whole stays. source  megatron/core/tensor_parallel/mappings.py,
 * _split_along_first_dim */
static int64_t depth_bytes(const rc_graph *graph, rc_arena *mem)
{
    const rc_dims *dims = &graph->dims;
    const int64_t hidden = 2 * dims->n * dims->h, stats = 4 * dims->n;
    const int64_t softmax = 4 * dims->N * dims->V / dims->t;
    const int64_t norms = 2 * stats, joined = 2 * hidden, embedded = hidden;
    const int64_t last_norm = hidden + stats, input = 2 * dims->N * dims->h;
    return embedded + norms + joined + input + kept_by_layer(graph, mem) + last_norm + softmax;
}

static void a_depth_keeps_what_its_modules_save(void **state)
{
    (void)state;
    for (int64_t t = 1; t <= 4; t *= 2) {
        rc_arena *mem = rc_arena_open();
        const rc_config *cfg = config_of(t, mem);
        const int64_t without = kept_by_head(make(cfg, 0, true, mem), mem);
        for (int n = 1; n <= 3; n++) {
            const rc_graph *graph = make(cfg, n, true, mem);
            assert_int_equal(kept_by_head(graph, mem), without + n * depth_bytes(graph, mem));
        }
        rc_arena_close(mem);
    }
}

/* Norms of two inputs and one output, the projection, a layer; a table of words where the chunk has none. */
static void a_depth_adds_its_parameters(void **state)
{
    enum { H = 48, F = 80, V = 104 };
    const int64_t one = 3 * H + 2 * H * H + 4 * H * H + 3 * H * F + 2 * H;
    (void)state;
    rc_arena *mem = rc_arena_open();
    const rc_config *cfg = config_of(1, mem);
    for (int n = 1; n <= 2; n++) {
        assert_int_equal(make(cfg, n, true, mem)->n_parameters,
                         make(cfg, 0, true, mem)->n_parameters + n * one);
        assert_int_equal(make(cfg, n, false, mem)->n_parameters,
                         make(cfg, 0, false, mem)->n_parameters + n * one + V * H);
    }
    rc_arena_close(mem);
}

static void depths_are_scheduled_under_every_setting(void **state)
{
    (void)state;
    for (int64_t t = 1; t <= 2; t++) {
        rc_arena *mem = rc_arena_open();
        const rc_graph *graph = make(config_of(t, mem), 2, t == 1, mem);
        const law_settings settings = law_all_settings(graph, mem);
        assert_int_equal(rc_graph_count_regions(graph, RC_LABEL_mlp), 3);
        for (size_t i = 0; i < settings.n; i++) {
            rc_error err = {0};
            law_check(
                rc_schedule_verify(law_schedule(graph, settings.at[i], 1, mem), mem, &err),
                &err);
        }
        rc_arena_close(mem);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_depth_keeps_what_its_modules_save),
        cmocka_unit_test(a_depth_adds_its_parameters),
        cmocka_unit_test(depths_are_scheduled_under_every_setting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
