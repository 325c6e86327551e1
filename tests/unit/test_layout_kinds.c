/* test_layout_kinds.c — what layers are made of, in settings and in the built-in models; sizes, ranks, vocabulary. */
#include "layout_cases.h"

#include <recompute/graph.h>

/* "3 mla+mlp, 58 mla+moe": of the whole model. */
static const char *kinds_of(const rc_layout *layout, rc_arena *mem)
{
    rc_table *table;
    assert_ok(rc_layout_facts(layout, mem, &table, NULL));
    return table->cells[13].text;
}

/* Of the depths of token prediction on the last chunk. */
static const char *depths_of(const rc_layout *layout, rc_arena *mem)
{
    rc_table *table;
    assert_ok(rc_layout_table(layout, mem, &table, NULL));
    return table->cells[(table->n_rows - 1) * table->n_columns + 6].text;
}

#define VARIANT(name) "model.experimental_attention_variant=" #name " "
#define LINEAR(freq) "model.linear_attention_freq=" freq " "
#define MOE(freq) "model.moe_layer_freq=" freq " "
#define LATENT "model.multi_latent_attention=true "

static const struct kind_case {
    const char *line, *kinds, *mtp;
} kind_cases[] = {
    {LAYERS(4), "4 attention+mlp", NULL},
    {LAYERS(4) LATENT, "4 mla+mlp", NULL},
    {LAYERS(4) EXPERTS(4), "4 attention+moe", NULL},
    {LAYERS(4) EXPERTS(0), "4 attention+mlp", NULL},
    {LAYERS(5) EXPERTS(4) MOE("2"), "3 attention+moe, 2 attention+mlp", NULL},
    {LAYERS(3) EXPERTS(4) MOE("[0,0,1]") DEPTHS(1), "2 attention+mlp, 1 attention+moe",
     "1 attention+moe"},
    {LAYERS(3) EXPERTS(4) MOE("[1,1,0]") DEPTHS(2), "2 attention+moe, 1 attention+mlp",
     "2 attention+mlp"},
    {LAYERS(3) MOE("[1,0]"), "3 attention+mlp", NULL}, /* without experts it is not read */
    {"--num-layers 4 --num-experts 4 --moe-layer-freq ([0]*1+[1]*3)",
     "1 attention+mlp, 3 attention+moe", NULL},
    {LAYERS(8) VARIANT(gdn) LINEAR("4") EXPERTS(4), "6 gated_delta_net+moe, 2 attention+moe",
     NULL},
    {LAYERS(3) VARIANT(gated_delta_net) LINEAR("[1,0,1]") LATENT,
     "2 gated_delta_net+mlp, 1 mla+mlp", NULL},
    {LAYERS(2) VARIANT(gdn2) LINEAR("9"), "2 gated_delta_net2+mlp", NULL},
    {LAYERS(2) VARIANT(dsa), "2 dsa+mlp", NULL},
    {LAYERS(2) LINEAR("2"), "2 attention+mlp", NULL}, /* without a variant it is not read */
    {PATTERN("M-M*E-") EXPERTS(4), "2 mamba, 2 mlp, 1 attention, 1 moe", NULL},
    {"model.hybrid_override_pattern=G+- " LAYERS(3), "1 gated_delta_net, 1 mla, 1 mlp", NULL},
    {PATTERN("MD/*-/*-") DEPTHS(2), "1 mamba, 1 dsa", "2 attention, 2 mlp"},
    {PATTERN("M-//"), "1 mamba, 1 mlp", NULL},
    /* on Megatron-LM's command line the pattern decides, whatever the numbers say */
    {"--hybrid-layer-pattern MM-/* --num-layers 7 "
     "--spec megatron.core.models.hybrid.hybrid_layer_specs gdp_stack_spec",
     "2 gated_delta_product, 1 mlp", "1 attention"},
    {"--hybrid-override-pattern M- --spec megatron.core.models.mamba.mamba_layer_specs "
     "mamba_stack_spec",
     "1 mamba, 1 mlp", NULL},
    /* behind a stage without layers Megatron-LM makes its plain layer, Bridge the model's last */
    {"--num-layers 2 --num-experts 2 --moe-layer-freq [1,0] --mtp-num-layers 1 "
     "--pipeline-model-parallel-size 2 --pipeline-model-parallel-layout Ett|mL",
     "1 attention+moe, 1 attention+mlp", "1 attention+moe"},
    {LAYERS(2) EXPERTS(2) MOE("[1,0]") DEPTHS(1) STAGES(2) WRITTEN("Ett|mL"),
     "1 attention+moe, 1 attention+mlp", "1 attention+mlp"},
};

static void layers_are_of_the_kinds_that_settings_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof kind_cases / sizeof *kind_cases; i++) {
        const struct kind_case *c = &kind_cases[i];
        rc_arena *mem = rc_arena_open();
        const rc_layout *layout = need_layout(c->line, mem);
        need_text(kinds_of(layout, mem), c->kinds, c->line);
        need_text(depths_of(layout, mem), c->mtp, c->line);
        rc_arena_close(mem);
    }
}

static void runs_keep_their_order_and_stop_at_chunks(void **state)
{
    static const int n_runs[] = {2, 3, 1, 0};
    rc_arena *mem = rc_arena_open();
    const rc_layout *layout = need_layout(PATTERN("MM-|-*M|M|") STAGES(2), mem);
    (void)state;
    for (int i = 0; i < 4; i++)
        assert_int_equal(layout->chunks[i].n_runs, n_runs[i]);
    assert_int_equal(layout->chunks[0].runs[0].n_layers, 2);
    assert_int_equal(layout->chunks[1].runs[0].kind.mlp, RC_MLP_mlp);
    assert_int_equal(layout->chunks[1].runs[1].kind.mixer, RC_MIXER_attention);
    assert_int_equal(layout->chunks[1].runs[1].kind.mlp, RC_MLP_none);
    assert_int_equal(layout->n_runs, 4); /* MM, --, *, MM */
    rc_arena_close(mem);
}

static void depths_may_share_their_weights(void **state)
{
    static const struct {
        const char *line;
        int n_mtp;
        bool is_shared;
    } cases[] = {
        {LAYERS(4) DEPTHS(2), 2, false},
        {LAYERS(4) DEPTHS(2) "model.mtp_use_repeated_layer=true", 2, true},
        {LAYERS(4) "model.mtp_use_repeated_layer=true", 0, false},
        {"--num-layers 4 --mtp-num-layers 3 --mtp-use-repeated-layer", 3, true},
        {PATTERN("M-/M") DEPTHS(3) "model.mtp_use_repeated_layer=true", 3, true},
        {"--hybrid-layer-pattern M-/M/M", 2, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rc_arena *mem = rc_arena_open();
        const rc_layout *layout = need_layout(cases[i].line, mem);
        assert_int_equal(layout->n_mtp, cases[i].n_mtp);
        assert_int_equal(layout->chunks[0].n_mtp, cases[i].n_mtp);
        assert_int_equal(layout->chunks[0].is_mtp_shared, cases[i].is_shared);
        rc_arena_close(mem);
    }
}

/* Models whose layers are not all plain attention and a dense MLP, as their papers and config.json say: DeepSeek-AI
 * 2024, Moonshot AI 2025, Qwen Team 2024 and 2025, Jiang et al. 2024, OpenAI 2025, GLM-4.5 Team 2025, NVIDIA 2025. */
static const struct model_case {
    const char *name, *kinds, *mtp;
} model_cases[] = {
    {"qwen2-57b-a14b", "28 attention+moe", NULL},
    {"qwen3-30b-a3b", "48 attention+moe", NULL},
    {"qwen3-235b-a22b", "94 attention+moe", NULL},
    {"mixtral-8x7b", "32 attention+moe", NULL},
    {"mixtral-8x22b", "56 attention+moe", NULL},
    {"deepseek-v2-lite", "1 mla+mlp, 26 mla+moe", NULL},
    {"deepseek-v2", "1 mla+mlp, 59 mla+moe", NULL},
    {"deepseek-v3", "3 mla+mlp, 58 mla+moe", "1 mla+moe"},
    {"moonlight-16b-a3b", "1 mla+mlp, 26 mla+moe", NULL},
    {"kimi-k2", "1 mla+mlp, 60 mla+moe", NULL},
    {"gpt-oss-20b", "24 attention+moe", NULL},
    {"gpt-oss-120b", "36 attention+moe", NULL},
    {"nemotron-h-8b", "24 mamba, 24 mlp, 4 attention", NULL},
    {"nemotron-h-47b", "45 mamba, 48 mlp, 5 attention", NULL},
    {"nemotron-h-56b", "54 mamba, 54 mlp, 10 attention", NULL},
    {"glm4.5", "3 attention+mlp, 89 attention+moe", "1 attention+moe"},
    {"glm4.5-air", "1 attention+mlp, 45 attention+moe", "1 attention+moe"},
};

/* Every other one is of families that have neither experts nor other mixers. */
static const char *const plain_families[] = {"llama",       "qwen2", "qwen3",  "mistral",
                                             "gpt2",        "gemma", "gemma2", "gemma3",
                                             "gemma3_text", "phi",   "phi3"};

static const struct model_case *find_model(const char *name)
{
    for (size_t i = 0; i < sizeof model_cases / sizeof *model_cases; i++)
        if (strcmp(model_cases[i].name, name) == 0)
            return &model_cases[i];
    return NULL;
}

static bool is_plain(const char *family)
{
    for (size_t i = 0; i < sizeof plain_families / sizeof *plain_families; i++)
        if (strcmp(plain_families[i], family) == 0)
            return true;
    return false;
}

static void built_in_models_have_their_published_layers(void **state)
{
    size_t n, n_found = 0;
    const rc_preset *presets = rc_preset_list(&n);
    (void)state;
    for (size_t i = 0; i < n; i++) {
        const struct model_case *c = find_model(presets[i].name);
        char line[80], plain[40];
        rc_arena *mem = rc_arena_open();
        snprintf(line, sizeof line, "--model %s", presets[i].name);
        const rc_layout *layout = need_layout(line, mem);
        snprintf(plain, sizeof plain, "%d attention+mlp", layout->n_layers);
        if (!c && !is_plain(presets[i].family))
            fail_msg("%s stands in no row here", presets[i].name);
        need_text(kinds_of(layout, mem), c ? c->kinds : plain, line);
        need_text(depths_of(layout, mem), c ? c->mtp : NULL, line);
        n_found += c != NULL;
        rc_arena_close(mem);
    }
    assert_int_equal(n_found, sizeof model_cases / sizeof *model_cases);
}

/* A kind without a builder is refused, not left out. */
static void a_graph_refuses_kinds_that_have_no_builder(void **state)
{
    static const struct {
        rc_layer_kind kind;
        const char *said;
    } cases[] = {{{RC_MIXER_mamba, RC_MLP_none}, "mamba"},
                 {{RC_MIXER_mla, RC_MLP_mlp}, "mla"},
                 {{RC_MIXER_attention, RC_MLP_moe}, "moe"},
                 {{RC_MIXER_attention, RC_MLP_mlp}, NULL}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rc_error err = {0};
        rc_arena *mem = rc_arena_open();
        rc_config *cfg;
        rc_graph *graph;
        assert_ok(make_config(LAYERS(2) MICRO(1) "model.hidden_size=8 model.seq_length=8 "
                                                 "model.num_attention_heads=2 "
                                                 "model.vocab_size=16",
                              mem, &cfg, &err));
        const rc_layer_run run = {.kind = cases[i].kind, .n_layers = 2};
        const rc_chunk chunk = {
            .runs = &run, .n_runs = 1, .has_embedding = true, .has_loss = true};
        const rc_graph_request request = {
            .cfg = cfg, .profile = RC_PROFILE_MEGATRON_TE, .chunk = &chunk};
        rc_code code = rc_graph_make(&request, mem, &graph, &err);
        if (cases[i].said && (code != RC_E_UNSUPPORTED || !strstr(err.msg, cases[i].said)))
            fail_msg("%s: %d %s", cases[i].said, (int)code, err.msg);
        if (!cases[i].said && code != RC_OK)
            fail_msg("%s", err.msg);
        rc_arena_close(mem);
    }
}

/* --- sizes and ranks */

static const struct size_case {
    const char *line;
    int64_t world, dp, ep, etp, edp, gtp, n_micro, group;
    bool is_given;
} size_cases[] = {
    {LAYERS(4), 1, 1, 1, 1, 1, 1, 0, 1, false},
    {LAYERS(4) TENSOR(2) STAGES(2) "model.context_parallel_size=2 " WORLD(16) MICRO(2)
         GLOBAL(16),
     16, 2, 1, 2, 4, 1, 4, 2, true},
    {LAYERS(4) STAGES(2) "data_parallel_size=3 " MICRO(2), 6, 3, 1, 1, 3, 1, 1, 2, true},
    /* experts need more ranks than the layers around them */
    {LAYERS(4) STAGES(2) EXPERTS(8) EXPERT_PARALLEL(8)
         TENSOR(4) "model.expert_tensor_parallel_size=1",
     16, 2, 8, 1, 1, 1, 0, 2, false},
    {LAYERS(4) EXPERTS(6) EXPERT_PARALLEL(6) TENSOR(4) "model.expert_tensor_parallel_size=1",
     12, 3, 6, 1, 2, 1, 0, 1, false},
    {LAYERS(4) TENSOR(2) "model.tensor_parallel_num_weight_shards=8 " WORLD(16) MICRO(1)
         GLOBAL(24),
     16, 2, 1, 2, 8, 4, 3, 1, true},
    {LAYERS(4) STAGES(2) VIRTUAL(2) MICRO(1)
         GLOBAL(8) "model.microbatch_group_size_per_vp_stage=3",
     2, 1, 1, 1, 1, 1, 8, 3, false},
    {LAYERS(4) MICRO(2)
         GLOBAL(11) "data_parallel_size=2 train.decrease_batch_size_if_needed=true",
     2, 2, 1, 1, 2, 1, 2, 1, true},
};

static void sizes_follow_from_those_that_are_set(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof size_cases / sizeof *size_cases; i++) {
        const struct size_case *c = &size_cases[i];
        rc_arena *mem = rc_arena_open();
        const rc_layout *layout = need_layout(c->line, mem);
        const rc_parallel *s = &layout->sizes;
        assert_int_equal(s->world, c->world);
        assert_int_equal(s->dp, c->dp);
        assert_int_equal(s->ep, c->ep);
        assert_int_equal(s->etp, c->etp);
        assert_int_equal(s->edp, c->edp);
        assert_int_equal(s->gtp, c->gtp);
        assert_int_equal(layout->n_micro_batches, c->n_micro);
        assert_int_equal(layout->micro_batch_group, c->group);
        assert_int_equal(s->is_world_given, c->is_given);
        rc_arena_close(mem);
    }
}

/* A billion ranks take no more room than a thousand. */
static void ranks_of_a_huge_job_are_a_row_a_stage(void **state)
{
    static const int64_t worlds[] = {1024, (int64_t)1024 << 20};
    rc_error err = {0};
    rc_arena *mem = rc_arena_open();
    rc_config *cfg;
    rc_layout *layout;
    size_t taken[2];
    (void)state;
    assert_ok(make_config("--model deepseek-v3 " STAGES(16) FIRST(3) LAST(2)
                              EXPERT_PARALLEL(64),
                          mem, &cfg, &err));
    for (int i = 0; i < 2; i++) {
        const size_t before = rc_arena_used_bytes(mem);
        assert_ok(rc_layout_make(cfg, worlds[i], mem, &layout, &err));
        taken[i] = rc_arena_used_bytes(mem) - before;
        assert_int_equal(layout->n_rank_kinds, 16);
        assert_int_equal(layout->rank_kinds[7].rank.pp, 7);
        assert_int_equal(layout->rank_kinds[7].n_ranks, worlds[i] / 16);
        assert_int_equal(layout->sizes.edp, worlds[i] / 1024);
        assert_int_equal(layout->n_local_experts, 4);
    }
    assert_int_equal(taken[0], taken[1]);
    assert_int_equal(rc_layout_make(cfg, 1000, mem, &layout, NULL), RC_E_INPUT);
    rc_arena_close(mem);
}

/* By hand, after the formula of RankGenerator: 24 ranks, of 2 tensor x 2 context x 2 stages x 3 replicas, and of
 * 1 x 4 experts x 3 replicas x 2 stages. */
static void a_number_says_where_its_rank_stands(void **state)
{
    static const struct {
        const char *more;
        int64_t number;
        rc_rank rank;
    } cases[] = {
        {"", 0, {0}},
        {"", 1, {.tp = 1, .ep = 1}},
        {"", 7, {.tp = 1, .cp = 1, .ep = 3, .dp = 1}},
        {"", 11, {.tp = 1, .cp = 1, .ep = 3, .dp = 2}},
        {"", 14, {.cp = 1, .ep = 2, .pp = 1}},
        {"", 23, {.tp = 1, .cp = 1, .ep = 3, .dp = 2, .pp = 1}},
        {"dist.use_tp_pp_dp_mapping=false", 14, {.cp = 1, .ep = 2, .pp = 1}},
        {"dist.use_tp_pp_dp_mapping=true", 7, {.tp = 1, .cp = 1, .ep = 3, .pp = 1}},
        {"dist.use_tp_pp_dp_mapping=true", 14, {.cp = 1, .ep = 2, .dp = 1, .pp = 1}},
        {"--use-tp-pp-dp-mapping", 16, {.dp = 2}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char line[512];
        rc_arena *mem = rc_arena_open();
        snprintf(line, sizeof line, "%s%s",
                 LAYERS(4) STAGES(2) TENSOR(2) "model.context_parallel_size=2 " EXPERTS(4)
                     EXPERT_PARALLEL(4) "model.expert_tensor_parallel_size=1 " WORLD(24),
                 cases[i].more);
        const rc_layout *layout = need_layout(line, mem);
        const rc_rank is = rc_layout_rank_at(layout, cases[i].number);
        if (memcmp(&is, &cases[i].rank, sizeof is) != 0)
            fail_msg("%s: rank %d is tp %d cp %d ep %d dp %d pp %d", cases[i].more,
                     (int)cases[i].number, (int)is.tp, (int)is.cp, (int)is.ep, (int)is.dp,
                     (int)is.pp);
        for (int k = 0; k < layout->n_rank_kinds; k++) {
            const rc_rank first = rc_layout_rank_at(layout, layout->rank_kinds[k].number);
            assert_memory_equal(&first, &layout->rank_kinds[k].rank, sizeof first);
        }
        rc_arena_close(mem);
    }
}

#define TIED "model.share_embeddings_and_output_weights=true "
#define UNTIED "model.share_embeddings_and_output_weights=false "

/* Tied on one stage it is one weight, on several the last has a copy; token prediction embeds for itself. */
static void vocabulary_weights_stand_where_they_are_allocated(void **state)
{
    static const struct {
        const char *line;
        int n_embeddings, n_outputs;
    } cases[] = {
        {LAYERS(4) TIED, 1, 0},
        {LAYERS(4) UNTIED, 1, 1},
        {LAYERS(4) STAGES(2) TIED, 1, 1},
        {LAYERS(4) STAGES(2) DEPTHS(1) TIED, 2, 1},
        {LAYERS(4) DEPTHS(1) TIED, 1, 0},
        {LAYERS(4) STAGES(3) DEPTHS(1) WRITTEN("Ett|ttm|L"), 2, 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rc_arena *mem = rc_arena_open();
        const rc_layout *layout = need_layout(cases[i].line, mem);
        int n_embeddings = 0, n_outputs = 0;
        for (int k = 0; k < layout->n_chunks; k++) {
            n_embeddings += layout->chunks[k].has_word_embedding;
            n_outputs += layout->chunks[k].has_output_weight;
        }
        assert_int_equal(n_embeddings, cases[i].n_embeddings);
        assert_int_equal(n_outputs, cases[i].n_outputs);
        rc_arena_close(mem);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_are_of_the_kinds_that_settings_name),
        cmocka_unit_test(runs_keep_their_order_and_stop_at_chunks),
        cmocka_unit_test(depths_may_share_their_weights),
        cmocka_unit_test(built_in_models_have_their_published_layers),
        cmocka_unit_test(a_graph_refuses_kinds_that_have_no_builder),
        cmocka_unit_test(sizes_follow_from_those_that_are_set),
        cmocka_unit_test(ranks_of_a_huge_job_are_a_row_a_stage),
        cmocka_unit_test(a_number_says_where_its_rank_stands),
        cmocka_unit_test(vocabulary_weights_stand_where_they_are_allocated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
