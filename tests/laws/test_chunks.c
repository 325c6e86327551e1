/* test_chunks.c — a chunk's graph is its part of the model's graph, between what it receives and sends. */
#include "law.h"

static const law_model model = {
    "chunks",
    {"model.num_layers=6", "model.hidden_size=48", "model.num_attention_heads=4",
     "model.num_query_groups=2", "model.ffn_hidden_size=80", "model.seq_length=12",
     "model.vocab_size=104", "train.micro_batch_size=2", "model.bf16=true",
     "model.make_vocab_size_divisible_by=1", "model.normalization=RMSNorm",
     "model.position_embedding_type=rope", "model.gated_linear_unit=true",
     "model.activation_func=silu", "model.add_bias_linear=false", "model.hidden_dropout=0.1"}};

/* Six layers over three stages, the last of which has one. */
static const rc_layer_run two = {.n_layers = 2}, three = {.n_layers = 3}, one = {.n_layers = 1};
static const rc_chunk chunks[] = {
    {.runs = &two, .n_runs = 1, .has_embedding = true},
    {.runs = &three, .n_runs = 1, .first_layer = 2},
    {.runs = &one, .n_runs = 1, .first_layer = 5, .has_loss = true},
};
enum { N_CHUNKS = sizeof chunks / sizeof *chunks };

static const rc_profile profiles[] = {RC_PROFILE_MEGATRON_TE, RC_PROFILE_MEGATRON_LOCAL};
static const struct {
    int64_t t;
    bool has_sequence_parallel, is_tied;
} ranks[] = {{1, false, true}, {2, false, false}, {2, true, true}, {4, true, false}};

typedef struct job {
    rc_config *cfg;
    rc_profile profile;
    const rc_graph *whole;
    rc_arena *mem;
} job;

static const rc_graph *make(const rc_config *cfg, rc_profile profile, const rc_chunk *chunk,
                            rc_arena *mem)
{
    rc_error err = {0};
    rc_graph *graph;
    law_check(rc_graph_make(&(rc_graph_request){.cfg = cfg, .profile = profile, .chunk = chunk},
                            mem, &graph, &err),
              &err);
    return graph;
}

static void for_every_job(void (*check)(const job *of))
{
    for (size_t r = 0; r < sizeof ranks / sizeof *ranks; r++)
        for (size_t p = 0; p < sizeof profiles / sizeof *profiles; p++) {
            rc_arena *mem = rc_arena_open();
            job of = {
                .cfg = law_config(&model, "auto", mem), .profile = profiles[p], .mem = mem};
            of.cfg->tensor_model_parallel_size = ranks[r].t;
            of.cfg->num_query_groups = ranks[r].t == 4 ? 4 : 2;
            of.cfg->sequence_parallel = ranks[r].has_sequence_parallel;
            of.cfg->share_embeddings_and_output_weights = ranks[r].is_tied;
            of.whole = make(of.cfg, of.profile, NULL, mem);
            of.cfg->pipeline_model_parallel_size = N_CHUNKS;
            check(&of);
            rc_arena_close(mem);
        }
}

/* ---- op for op ---- */

static void need_same_op(const rc_graph *a, int i, const rc_graph *b, int k)
{
    char of_a[RC_GRAPH_NAME_BYTES], of_b[RC_GRAPH_NAME_BYTES];
    const rc_op x = rc_graph_op(a, i), y = rc_graph_op(b, k);
    assert_string_equal(rc_graph_op_name(a, i, of_a), rc_graph_op_name(b, k, of_b));
    assert_int_equal(x.kind, y.kind);
    assert_int_equal(x.needs_in, y.needs_in);
    assert_int_equal(x.fwd_flops, y.fwd_flops);
    assert_int_equal(x.fwd_bytes, y.fwd_bytes);
    assert_int_equal(rc_graph_comm(a, i, true).bytes, rc_graph_comm(b, k, true).bytes);
}

static void need_layer(const rc_graph *whole, int layer, const rc_graph *part, int local)
{
    int first, last, part_first, part_last;
    rc_graph_layer_ops(whole, layer, layer, &first, &last);
    rc_graph_layer_ops(part, local, local, &part_first, &part_last);
    assert_int_equal(last - first, part_last - part_first);
    for (int i = 0; i <= last - first; i++)
        need_same_op(whole, first + i, part, part_first + i);
}

static void check_ops(const job *of)
{
    for (int c = 0; c < N_CHUNKS; c++) {
        const rc_graph *part = make(of->cfg, of->profile, &chunks[c], of->mem);
        const rc_op first = rc_graph_op(part, 0), last = rc_graph_op(part, part->n_ops - 1);
        for (int i = 0; i < chunks[c].runs->n_layers; i++)
            need_layer(of->whole, chunks[c].first_layer + i, part, i);
        assert_int_equal(first.kind, c == 0 ? RC_OP_embedding : RC_OP_recv);
        assert_int_equal(last.kind, c == N_CHUNKS - 1 ? RC_OP_cross_entropy : RC_OP_send);
        assert_int_equal(part->tokens >= 0, c == 0);
        assert_int_equal(part->targets >= 0, c == N_CHUNKS - 1);
    }
}

static void a_chunk_has_the_layers_of_the_model(void **state)
{
    (void)state;
    for_every_job(check_ops);
}

/* The words of a tied model stand on both ends. */
static void check_parameters(const job *of)
{
    int64_t sum = 0, words = of->whole->dims.V / of->whole->dims.t * of->whole->dims.h;
    for (int c = 0; c < N_CHUNKS; c++)
        sum += make(of->cfg, of->profile, &chunks[c], of->mem)->n_parameters;
    const bool is_tied = of->cfg->share_embeddings_and_output_weights;
    assert_int_equal(sum, of->whole->n_parameters + (is_tied ? words : 0));
}

static void the_parameters_of_all_chunks_are_the_models(void **state)
{
    (void)state;
    for_every_job(check_parameters);
}

/* ---- kept, and scheduled ---- */

static int64_t kept_by(const rc_graph *graph, const char *setting, int layer, rc_arena *mem)
{
    rc_error err = {0};
    int64_t bytes, stats;
    law_check(rc_cost_layer(law_policy(graph, setting, mem), layer, mem, &bytes, &stats, &err),
              &err);
    return bytes + stats;
}

/* A layer keeps as much as in the whole model. What it hands on is counted where it is made; so the first
 * layer's input is what the chunk received. Layers in groups of three differ where a chunk cuts the group. */
static void check_kept(const job *of)
{
    static const char *const settings[] = {"none",
                                           "selective/core_attn",
                                           "selective/layernorm",
                                           "selective/mlp",
                                           "selective/core_attn+layernorm+mlp",
                                           "full/uniform/1"};
    for (size_t s = 0; s < sizeof settings / sizeof *settings; s++)
        for (int c = 0; c < N_CHUNKS; c++) {
            const rc_graph *part = make(of->cfg, of->profile, &chunks[c], of->mem);
            for (int i = 0; i < (int)part->dims.L; i++) {
                const int layer = chunks[c].first_layer + i;
                const bool is_handed_on = i + 1 == part->dims.L && c + 1 < N_CHUNKS;
                const int64_t hidden = is_handed_on ? 2 * part->dims.n * part->dims.h : 0;
                assert_int_equal(kept_by(part, settings[s], i, of->mem) + hidden,
                                 kept_by(of->whole, settings[s], layer, of->mem));
            }
            if (c > 0)
                assert_int_equal(kept_by(part, settings[s], -1, of->mem),
                                 2 * part->dims.n * part->dims.h);
        }
}

static void a_layer_of_a_chunk_keeps_what_it_keeps_in_the_model(void **state)
{
    (void)state;
    for_every_job(check_kept);
}

static void check_schedules(const job *of)
{
    for (int c = 0; c < N_CHUNKS; c++) {
        const rc_graph *part = make(of->cfg, of->profile, &chunks[c], of->mem);
        const law_settings settings = law_all_settings(part, of->mem);
        for (size_t i = 0; i < settings.n; i++) {
            rc_error err = {0};
            const rc_schedule *s = law_schedule(part, settings.at[i], 1, of->mem);
            const rc_instr *last = &s->instrs[s->micro_last];
            law_check(rc_schedule_verify(s, of->mem, &err), &err);
            assert_int_equal(last->op, 0); /* what came in hands its gradient back */
            assert_int_equal(s->loss >= 0, c == N_CHUNKS - 1);
            if (c > 0)
                assert_true(last->d_out.buffer >= 0);
        }
    }
}

static void every_chunk_is_scheduled_under_every_setting(void **state)
{
    (void)state;
    for_every_job(check_schedules);
}

/* ---- kinds ---- */

static const rc_layer_run halves[] = {{{RC_MIXER_attention, RC_MLP_none}, 1},
                                      {{RC_MIXER_none, RC_MLP_mlp}, 1}};

static void check_halves(const job *of)
{
    const rc_chunk chunk = {.runs = halves, .n_runs = 2};
    const rc_graph *part = make(of->cfg, of->profile, &chunk, of->mem);
    int first, last, n = 0;
    rc_graph_layer_ops(of->whole, 0, 0, &first, &last);
    for (int half = 0; half < 2; half++) {
        int from, to;
        rc_graph_layer_ops(part, half, half, &from, &to);
        for (int i = from; i <= to; i++, n++)
            assert_int_equal(rc_graph_op(part, i).kind, rc_graph_op(of->whole, first + n).kind);
    }
    assert_int_equal(n, last - first + 1);
    assert_int_equal(kept_by(part, "none", 0, of->mem) + kept_by(part, "none", 1, of->mem) +
                         2 * part->dims.n * part->dims.h,
                     kept_by(of->whole, "none", 0, of->mem));
}

static void a_mixer_and_an_mlp_alone_are_the_halves_of_a_layer(void **state)
{
    (void)state;
    for_every_job(check_halves);
}

/* A stage may be the embedding or the loss alone. */
static void check_empty(const job *of)
{
    static const rc_chunk empty[] = {{.has_embedding = true}, {0}, {.has_loss = true}};
    const bool is_cut = of->cfg->tensor_model_parallel_size > 1;
    const int n_ops[] = {
        /* embedding, sum over ranks, dropout, what is sent */
        3 + is_cut,
        /* received, sent */
        2,
        /* received, norm, gathered, product, loss */
        4 + of->cfg->sequence_parallel,
    };
    for (int c = 0; c < 3; c++) {
        const rc_graph *part = make(of->cfg, of->profile, &empty[c], of->mem);
        const rc_schedule *s = law_schedule(part, "full/uniform/1", 1, of->mem);
        rc_error err = {0};
        law_check(rc_schedule_verify(s, of->mem, &err), &err);
        assert_int_equal(part->dims.L, 0);
        assert_int_equal(part->n_ops, n_ops[c]);
    }
}

static void a_chunk_may_have_no_layers(void **state)
{
    (void)state;
    for_every_job(check_empty);
}

static void need_refusal(const rc_config *cfg, const rc_chunk *chunk, rc_code code,
                         const char *said, rc_arena *mem)
{
    rc_error err = {0};
    rc_graph *graph;
    const rc_graph_request request = {
        .cfg = cfg, .profile = RC_PROFILE_MEGATRON_TE, .chunk = chunk};
    assert_int_equal(rc_graph_make(&request, mem, &graph, &err), code);
    if (!strstr(err.msg, said))
        fail_msg("\"%s\" lacks \"%s\"", err.msg, said);
}

static void what_is_no_chunk_is_refused(void **state)
{
    static const rc_layer_run nothing = {{RC_MIXER_none, RC_MLP_none}, 2}, no_layers = {0},
                              many = {.n_layers = 4097}, latent = {{.mixer = RC_MIXER_mla}, 1};
    rc_arena *mem = rc_arena_open();
    rc_config *cfg = law_config(&model, "auto", mem);
    (void)state;
    cfg->pipeline_model_parallel_size = 2;
    need_refusal(cfg, &(rc_chunk){.runs = &nothing, .n_runs = 1}, RC_E_UNSUPPORTED,
                 "2 layers of none and none", mem);
    need_refusal(cfg, &(rc_chunk){.runs = &no_layers, .n_runs = 1}, RC_E_UNSUPPORTED,
                 "0 layers of attention and mlp", mem);
    need_refusal(cfg, &(rc_chunk){.runs = &latent, .n_runs = 1}, RC_E_UNSUPPORTED,
                 "multi_latent_attention is false, and a layer has mla", mem);
    need_refusal(cfg, &(rc_chunk){.runs = &many, .n_runs = 1}, RC_E_RANGE, "4097 layers", mem);
    rc_arena_close(mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chunk_has_the_layers_of_the_model),
        cmocka_unit_test(the_parameters_of_all_chunks_are_the_models),
        cmocka_unit_test(a_layer_of_a_chunk_keeps_what_it_keeps_in_the_model),
        cmocka_unit_test(every_chunk_is_scheduled_under_every_setting),
        cmocka_unit_test(a_mixer_and_an_mlp_alone_are_the_halves_of_a_layer),
        cmocka_unit_test(a_chunk_may_have_no_layers),
        cmocka_unit_test(what_is_no_chunk_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
