/* test_experts.c — what a mixture of experts keeps in both Megatron profiles is the sum over its modules.
 *
 * The sums are written here from what each module saves, in bytes of 16-bit training, and share nothing with the
 * builders. T tokens of a rank, each to k of E experts, el of them here; R rows at the experts; p bytes a probability.
 *
 *   router      logits, 4T and its value by z loss; scores of a softmax over all or of sigmoids 4TE; indices 8Tk; what is divided 4Tk + 4T;
 *               one kernel: scores 4TE and a map TE. A loss that balances: its scores 4TE, counts 8E, its value
 *   order       indices 8 a row, and the int64 of a sort of all ET; one kernel: int32, 2E + 1 a token
 *   experts     rows 2R hl, fc1's output, probabilities pR, what fc2 reads
 *   shared      as an MLP; with a gate its output and the score
 *
 * source  Megatron-LM megatron/core/transformer/moe; TransformerEngine pytorch/router.py, permutation.py
 */
#include "law.h"

#include <math.h>

enum { S = 12, B = 2, H = 48, E = 8, FE = 32, FS = 24, HL = 16 };
typedef enum dispatcher { ALLTOALL, ALLGATHER, DEEPEP, HYBRIDEP, N_DISPATCHERS } dispatcher;
typedef enum score { AFTER, BEFORE, SIGMOID, N_SCORES } score;
typedef enum room { ANY, DROP, PAD, N_ROOMS } room;
typedef enum shared { NONE, PLAIN, GATED, OVERLAPPED, N_SHARED } shared;

typedef struct shape {
    bool is_local;
    dispatcher dispatcher;
    score score;
    room room;
    shared shared;
    bool is_router_fused, is_permute_fused, is_grouped, is_gated, is_silu, is_act_fused;
    bool has_latent, has_groups, has_bias, has_z_loss, is_f32, drops;
    int n_losses;
    double imbalance;
    int64_t k, t, ep, et;
    /* of a rank */
    int64_t N, T, el, R, Q, U, hl;
} shape;

static bool has(uint32_t labels, rc_label label)
{
    return labels >> label & 1u;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- rows ---- */

static void count_rows(shape *m)
{
    const int64_t all = m->T * m->k;
    const int64_t capacity = (int64_t)ceil((double)all / E * 0.75) * E;
    int64_t rows = (int64_t)ceil((double)all * m->imbalance);
    rows = least(rows, m->T * m->ep * least(m->k, m->el));
    m->Q = all;
    if (m->room == DROP) {
        m->Q = least(all, capacity);
        rows = least(rows, capacity);
    } else if (m->room == PAD) {
        m->Q = rows = capacity;
    }
    m->R = rows * m->et;
    /* of all ways to choose k experts those that choose none of this rank's */
    double none = m->k == 1 ? (double)(E - m->el) / E
                            : (double)((E - m->el) * (E - m->el - 1)) / (E * (E - 1));
    const double tokens = (double)(m->T * m->ep * m->et);
    m->U = (int64_t)ceil(fmin(tokens * (1 - none) * m->imbalance, tokens));
}

/* ---- the sums ---- */

static int64_t probability(const shape *m)
{
    return m->is_f32 || m->dispatcher == DEEPEP || m->dispatcher == HYBRIDEP ? 4 : 2;
}

static bool is_fused(const shape *m, bool is_asked)
{
    return is_asked && !m->is_local;
}

static int64_t choice(const shape *m)
{
    const int64_t scores = 4 * m->T * E, indices = 8 * m->T * m->k;
    const bool is_masked = m->has_groups && !(m->score == SIGMOID && m->has_bias);
    if (is_fused(m, m->is_router_fused))
        return scores + m->T * E;
    int64_t sum = indices + (is_masked ? m->T * E : 0);
    if (m->score == AFTER)
        return sum + 4 * m->T * m->k;
    return sum + scores + (m->score == SIGMOID && m->k > 1 ? 4 * m->T * m->k + 4 * m->T : 0);
}

static int64_t router(const shape *m)
{
    int64_t sum = choice(m);
    if (m->has_z_loss)
        sum += (m->is_f32 ? 4 : 2) * m->T * E + 4 * m->T + 4;
    if (m->room != ANY)
        sum += m->T * E;
    if (m->n_losses == 0)
        return sum;
    const bool is_divided = m->score == SIGMOID && !is_fused(m, m->is_router_fused);
    return sum + 4 * m->T * E + (is_divided ? 4 * m->T : 0) + m->n_losses * (8 * E + 4);
}

static int64_t order(const shape *m)
{
    const bool is_one = is_fused(m, m->is_permute_fused);
    const int64_t all = m->T * m->ep * m->et;
    switch (m->dispatcher) {
    case ALLTOALL: {
        const int64_t sent =
            is_one ? 4 * m->T * (2 * E + 1) : 8 * m->Q + 8 * (m->room == PAD ? m->Q : E * m->T);
        return sent + (is_one && m->el > 1 && m->room != PAD ? 4 * m->R : 0);
    }
    case ALLGATHER:
        return all * m->el * (1 + probability(m)) +
               (is_one ? 4 * all * (2 * m->el + 1) : 8 * m->R);
    case DEEPEP: {
        const int64_t choices = m->k * m->et;
        return 8 * m->T * choices + m->U * choices + 16 * m->R +
               (is_one ? 4 * m->U * (2 * m->el + 1) : 8 * m->R + 8 * m->el * m->U);
    }
    case HYBRIDEP:
    case N_DISPATCHERS:
        break;
    }
    return 0;
}

/* Widths that stay between the two products, of f: what fc1 gives, and what fc2 reads. */
static int64_t activation(const shape *m, bool is_weighed, bool is_replayed)
{
    const int64_t given = m->is_gated ? 2 : 1;
    const bool is_one = m->is_act_fused && (!is_weighed || (m->is_gated && m->is_silu));
    if (is_replayed)
        return given;
    int64_t widths = given + 1;
    if (!is_one)
        widths += (m->is_gated ? 2 : 0) + (is_weighed ? 1 : 0);
    return widths;
}

static int64_t experts(const shape *m, bool is_replayed)
{
    const int64_t f = FE / m->et;
    return 2 * m->R * m->hl + probability(m) * m->R +
           2 * m->R * f * activation(m, true, is_replayed);
}

static int64_t shared_experts(const shape *m)
{
    if (m->shared == NONE)
        return 0;
    int64_t sum = 2 * m->N * FS / m->t * activation(m, false, false);
    if (m->shared != PLAIN)
        sum += 2 * m->T * H + 2 * m->T;
    if (m->shared == OVERLAPPED && m->t > 1)
        sum += 2 * m->N * H;
    return sum;
}

static int64_t layer(const shape *m, uint32_t labels)
{
    int64_t sum = 2 * m->T * H + (m->drops ? m->T * H : 0);
    if (!has(labels, RC_LABEL_layernorm))
        sum += 2 * m->T * H + 4 * m->T;
    if (has(labels, RC_LABEL_moe))
        return sum;
    sum += router(m) + order(m) + experts(m, has(labels, RC_LABEL_moe_act));
    if (!has(labels, RC_LABEL_shared_experts))
        sum += shared_experts(m);
    return sum + (m->has_latent ? 2 * m->T * m->hl : 0);
}

static uint32_t acting_labels(const shape *m)
{
    uint32_t labels = 1u << RC_LABEL_layernorm | 1u << RC_LABEL_moe;
    if (m->is_grouped && !m->is_local)
        labels |= 1u << RC_LABEL_moe_act;
    if (m->shared == PLAIN || m->shared == GATED)
        labels |= 1u << RC_LABEL_shared_experts;
    return labels;
}

/* ---- the graphs ---- */

static const law_model plain = {
    "experts",
    {"model.num_layers=3", "model.hidden_size=48", "model.num_attention_heads=4",
     "model.seq_length=12", "model.vocab_size=104", "train.micro_batch_size=2",
     "model.bf16=true", "model.make_vocab_size_divisible_by=1", "model.normalization=RMSNorm",
     "model.add_bias_linear=false", "model.attention_dropout=0", "model.num_moe_experts=8",
     "model.moe_ffn_hidden_size=32",
     "model.moe_router_load_balancing_type=[aux_loss, "
     "seq_aux_loss, none]"}};

static void set_losses(rc_config *cfg, int n, rc_arena *mem)
{
    static const char *const weights[] = {"model.moe_aux_loss_coeff=[0, 0, 1]",
                                          "model.moe_aux_loss_coeff=[0, 0.01, 1]",
                                          "model.moe_aux_loss_coeff=[0.01, 0.01, 1]"};
    rc_error err = {0};
    rc_doc *doc;
    rc_config *other;
    law_check(rc_override_read(&weights[n], 1, mem, &doc, &err), &err);
    rc_input input = {doc, RC_FROM_OVERRIDE};
    law_check(rc_config_make(&input, 1, mem, &other, &err), &err);
    cfg->moe_aux_loss_coeff = other->moe_aux_loss_coeff;
}

static void set_router(const shape *m, rc_config *cfg)
{
    cfg->moe_router_topk = m->k;
    cfg->moe_router_score_function = m->score == SIGMOID ? "sigmoid" : "softmax";
    cfg->moe_router_pre_softmax = m->score == BEFORE;
    cfg->moe_router_fusion = m->is_router_fused;
    cfg->moe_router_dtype = m->is_f32 ? "fp32" : NULL;
    cfg->moe_router_enable_expert_bias = m->has_bias;
    cfg->moe_router_num_groups = m->has_groups ? 4 : RC_NULL_INT;
    cfg->moe_router_group_topk = m->has_groups ? 2 : RC_NULL_INT;
    cfg->origin[RC_FIELD_moe_z_loss_coeff].is_null = !m->has_z_loss;
    cfg->moe_z_loss_coeff = m->has_z_loss ? 0.001 : (double)NAN;
    cfg->origin[RC_FIELD_moe_expert_capacity_factor].is_null = m->room == ANY;
    cfg->moe_expert_capacity_factor = m->room == ANY ? (double)NAN : 0.75;
    cfg->moe_pad_expert_input_to_capacity = m->room == PAD;
}

static rc_config *make_config(const shape *m, rc_arena *mem)
{
    static const char *const dispatchers[] = {"alltoall", "allgather", "flex", "flex"};
    rc_config *cfg = law_config(&plain, "auto", mem);
    set_losses(cfg, m->n_losses, mem);
    set_router(m, cfg);
    cfg->moe_token_dispatcher_type = dispatchers[m->dispatcher];
    cfg->moe_flex_dispatcher_backend = m->dispatcher == HYBRIDEP ? "hybridep" : "deepep";
    cfg->moe_permute_fusion = m->is_permute_fused;
    cfg->moe_grouped_gemm = m->is_grouped;
    cfg->gated_linear_unit = m->is_gated;
    cfg->activation_func = m->is_silu ? "silu" : "gelu";
    cfg->bias_activation_fusion = m->is_act_fused;
    cfg->origin[RC_FIELD_bias_activation_fusion].kind = RC_FROM_FILE;
    cfg->hidden_dropout = m->drops ? 0.1 : 0;
    cfg->moe_shared_expert_intermediate_size = m->shared == NONE ? RC_NULL_INT : FS;
    cfg->moe_shared_expert_gate = m->shared == GATED || m->shared == OVERLAPPED;
    cfg->moe_shared_expert_overlap = m->shared == OVERLAPPED;
    cfg->moe_latent_size = m->has_latent ? HL : RC_NULL_INT;
    cfg->origin[RC_FIELD_moe_latent_size].is_null = !m->has_latent;
    cfg->tensor_model_parallel_size = m->t;
    cfg->sequence_parallel = m->t > 1;
    cfg->expert_model_parallel_size = m->ep;
    cfg->expert_tensor_parallel_size = m->et;
    return cfg;
}

static const rc_graph *make_graph(shape *m, rc_arena *mem)
{
    static const rc_layer_run run = {{RC_MIXER_none, RC_MLP_moe}, 3};
    static const rc_chunk chunk = {.runs = &run, .n_runs = 1};
    rc_error err = {0};
    rc_graph *graph;
    m->N = S * B;
    m->T = m->N / m->t;
    m->el = E / m->ep;
    m->hl = m->has_latent ? HL : H;
    count_rows(m);
    const rc_graph_request request = {.cfg = make_config(m, mem),
                                      .profile = m->is_local ? RC_PROFILE_MEGATRON_LOCAL
                                                             : RC_PROFILE_MEGATRON_TE,
                                      .chunk = &chunk,
                                      .imbalance = m->imbalance};
    law_check(rc_graph_make(&request, mem, &graph, &err), &err);
    return graph;
}

/* Shapes by chance: each way of each part meets those of the others. */
static unsigned draw(uint64_t *state, unsigned n)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(*state >> 33) % n;
}

static void draw_router(uint64_t *state, shape *m)
{
    m->score = (score)draw(state, N_SCORES);
    m->room = (room)draw(state, N_ROOMS);
    m->is_router_fused = draw(state, 2);
    m->has_groups = draw(state, 2);
    m->has_bias = draw(state, 2);
    m->has_z_loss = draw(state, 2);
    m->is_f32 = draw(state, 2);
    m->n_losses = (int)draw(state, 3);
    m->imbalance = draw(state, 2) ? 1.3 : 1;
    m->k = 1 + draw(state, 2);
}

static shape draw_shape(uint64_t *state)
{
    static const int64_t ranks[][3] = {{1, 1, 1}, {1, 4, 1}, {1, 8, 1}, {2, 2, 2},
                                       {2, 4, 1}, {4, 1, 4}, {2, 8, 2}};
    const unsigned rank = draw(state, sizeof ranks / sizeof *ranks);
    shape m = {.t = ranks[rank][0], .ep = ranks[rank][1], .et = ranks[rank][2]};
    draw_router(state, &m);
    m.is_local = draw(state, 3) == 0;
    m.dispatcher = (dispatcher)draw(state, N_DISPATCHERS);
    m.shared = (shared)draw(state, N_SHARED);
    m.is_permute_fused = draw(state, 2);
    m.is_grouped = draw(state, 2);
    m.is_gated = draw(state, 2);
    m.is_silu = draw(state, 2);
    m.is_act_fused = draw(state, 2);
    m.has_latent = draw(state, 2);
    m.drops = draw(state, 2);
    return m;
}

typedef void check_shape(const shape *m, const rc_graph *graph, rc_arena *mem);

static void for_shapes(int n, check_shape *check)
{
    uint64_t state = 11;
    for (int i = 0; i < n; i++) {
        rc_arena *mem = rc_arena_open();
        shape m = draw_shape(&state);
        check(&m, make_graph(&m, mem), mem);
        rc_arena_close(mem);
    }
}

static void need_bytes(const shape *m, const rc_graph *graph, const rc_setting *setting,
                       int64_t expected, rc_arena *mem)
{
    rc_error err = {0};
    const rc_policy *policy = law_made(graph, setting, 1, RC_NOUN_POLICY, mem).policy;
    int64_t bytes, stats;
    char name[160];
    law_check(rc_cost_layer(policy, 1, mem, &bytes, &stats, &err), &err);
    if (bytes + stats != expected)
        fail_msg("%s, dispatcher %d, score %d, room %d, shared %d, fused %d %d %d, grouped %d, "
                 "gated %d, silu %d, latent %d, losses %d, f32 %d, k %lld, t %lld, ep %lld, et "
                 "%lld: %lld bytes under %s, not %lld",
                 m->is_local ? "local" : "te", m->dispatcher, m->score, m->room, m->shared,
                 m->is_router_fused, m->is_permute_fused, m->is_act_fused, m->is_grouped,
                 m->is_gated, m->is_silu, m->has_latent, m->n_losses, m->is_f32,
                 (long long)m->k, (long long)m->t, (long long)m->ep, (long long)m->et,
                 (long long)(bytes + stats), rc_setting_name(setting, name),
                 (long long)expected);
}

static void check_labels(const shape *m, const rc_graph *graph, rc_arena *mem)
{
    const uint32_t acting = acting_labels(m);
    for (int label = 0; label < RC_LABEL_COUNT; label++)
        assert_int_equal(rc_graph_count_regions(graph, (rc_label)label) > 0,
                         has(acting, (rc_label)label));
    uint32_t subset = 0;
    do {
        rc_setting setting = {.granularity = RC_GRANULARITY_SELECTIVE, .labels = subset};
        need_bytes(m, graph, &setting, layer(m, subset), mem);
        subset = (subset - acting) & acting;
    } while (subset);
    rc_setting full = {
        .granularity = RC_GRANULARITY_FULL, .method = RC_METHOD_UNIFORM, .num_layers = 1};
    need_bytes(m, graph, &full, 2 * m->T * H, mem);
}

static void every_set_of_acting_labels_keeps_what_its_modules_save(void **state)
{
    (void)state;
    for_shapes(400, check_labels);
}

/* ---- weights and products ---- */

static void check_sums(const shape *m, const rc_graph *graph, rc_arena *mem)
{
    const int64_t products = m->is_gated ? 3 : 2, fe = FE / m->et, fs = FS / m->t;
    const int64_t routed = m->el * products * fe * m->hl;
    const int64_t latent = m->has_latent ? 2 * H * HL : 0;
    const bool has_gate = m->shared == GATED || m->shared == OVERLAPPED;
    const int64_t common = m->shared == NONE ? 0 : products * fs * H;
    int64_t flops = 2 * m->T * H * E + 2 * m->R * m->hl * products * fe + 2 * m->N * common +
                    2 * m->T * latent + (has_gate ? 2 * m->T * H : 0);
    int first, last;
    (void)mem;
    rc_graph_layer_ops(graph, 1, 1, &first, &last);
    for (int i = first; i <= last; i++)
        flops -= rc_graph_op(graph, i).fwd_flops;
    assert_int_equal(flops, 0);
    assert_int_equal(graph->n_parameters,
                     3 * (H + E * H + routed + common + latent + (has_gate ? H : 0)));
    int64_t of_experts = 0;
    for (int i = 0; i < graph->n_tensors; i++)
        of_experts +=
            rc_graph_tensor(graph, i).is_expert ? rc_graph_tensor(graph, i).n_elem : 0;
    assert_int_equal(of_experts, 3 * routed);
}

static void weights_and_products_add_up(void **state)
{
    (void)state;
    for_shapes(200, check_sums);
}

/* ---- what is sent ---- */

typedef struct exchange {
    rc_comm_kind forward, backward;
    rc_comm_group group;
    int64_t bytes;
} exchange;

/* Of rows as they go; the way back is the same the other way round. Messages of a byte and less a row are left out. */
static size_t list_exchanges(const shape *m, exchange *out)
{
    const int64_t all = m->T * m->ep * m->et, p = probability(m);
    const int64_t sent = m->Q > m->R / m->et ? m->Q : m->R / m->et;
    size_t n = 0;
    if (m->dispatcher == ALLTOALL && m->ep > 1) {
        out[n++] =
            (exchange){RC_COMM_ALL_TO_ALL, RC_COMM_ALL_TO_ALL, RC_GROUP_EP, 2 * sent * m->hl};
        out[n++] = (exchange){RC_COMM_ALL_TO_ALL, RC_COMM_ALL_TO_ALL, RC_GROUP_EP, p * sent};
    }
    if (m->dispatcher == ALLTOALL && m->et > 1) {
        out[n++] = (exchange){RC_COMM_ALL_GATHER, RC_COMM_REDUCE_SCATTER, RC_GROUP_ETP,
                              2 * m->R * m->hl};
        out[n++] =
            (exchange){RC_COMM_ALL_GATHER, RC_COMM_REDUCE_SCATTER, RC_GROUP_ETP, p * m->R};
        out[n++] = (exchange){RC_COMM_REDUCE_SCATTER, RC_COMM_ALL_GATHER, RC_GROUP_ETP,
                              2 * m->R * m->hl};
    }
    if (m->dispatcher == ALLTOALL && m->ep > 1)
        out[n++] =
            (exchange){RC_COMM_ALL_TO_ALL, RC_COMM_ALL_TO_ALL, RC_GROUP_EP, 2 * sent * m->hl};
    if (m->dispatcher == ALLGATHER && m->ep * m->et > 1) {
        out[n++] = (exchange){RC_COMM_ALL_GATHER, RC_COMM_REDUCE_SCATTER, RC_GROUP_EP_ETP,
                              2 * all * m->hl};
        out[n++] = (exchange){RC_COMM_ALL_GATHER, RC_COMM_REDUCE_SCATTER, RC_GROUP_EP_ETP,
                              p * all * E};
        out[n++] = (exchange){RC_COMM_REDUCE_SCATTER, RC_COMM_ALL_GATHER, RC_GROUP_EP_ETP,
                              2 * all * m->hl};
    }
    return n;
}

static void check_exchanges(const shape *m, const rc_graph *graph, rc_arena *mem)
{
    exchange right[8];
    const size_t n_right = list_exchanges(m, right);
    int first, last;
    size_t n = 0;
    (void)mem;
    if (m->dispatcher != ALLTOALL && m->dispatcher != ALLGATHER)
        return;
    rc_graph_layer_ops(graph, 1, 1, &first, &last);
    for (int i = first; i <= last; i++) {
        const rc_comm forward = rc_graph_comm(graph, i, false);
        const rc_comm backward = rc_graph_comm(graph, i, true);
        const bool is_dense = forward.group == RC_GROUP_TP || backward.group == RC_GROUP_TP;
        if ((!forward.kind && !backward.kind) || is_dense) /* of the shared experts */
            continue;
        assert_true(n < n_right);
        assert_int_equal(forward.kind, right[n].forward);
        assert_int_equal(backward.kind, right[n].backward);
        assert_int_equal(forward.group, right[n].group);
        assert_int_equal(forward.bytes, right[n].bytes);
        assert_int_equal(backward.bytes, right[n].bytes);
        n++;
    }
    assert_int_equal(n, n_right);
}

static void ranks_exchange_rows(void **state)
{
    (void)state;
    for_shapes(200, check_exchanges);
}

/* ---- scheduled ---- */

static void check_schedules(const shape *m, const rc_graph *graph, rc_arena *mem)
{
    const law_settings settings = law_all_settings(graph, mem);
    (void)m;
    for (size_t i = 0; i < settings.n; i++) {
        rc_error err = {0};
        const rc_schedule *s = law_schedule(graph, settings.at[i], 1, mem);
        law_check(rc_schedule_verify(s, mem, &err), &err);
    }
}

static void every_setting_is_scheduled(void **state)
{
    (void)state;
    for_shapes(30, check_schedules);
}

/* A value alone, with settings beside it in its section, is one loss; a weight of 0 is none. */
static void one_loss_without_a_list_is_one_loss(void **state)
{
    static const struct {
        const char *weight;
        int n;
    } cases[] = {{"model.moe_aux_loss_coeff=0.01", 1}, {"model.moe_aux_loss_coeff=0", 0}};
    static const rc_layer_run run = {{RC_MIXER_attention, RC_MLP_moe}, 1};
    static const rc_chunk chunk = {.runs = &run, .n_runs = 1};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rc_arena *mem = rc_arena_open();
        rc_error err = {0};
        rc_graph *graph;
        law_model model = plain;
        size_t n_words = 0;
        int n = 0;
        while (model.words[n_words])
            n_words++;
        model.words[n_words - 1] = "model.moe_router_load_balancing_type=aux_loss";
        model.words[n_words++] = cases[i].weight;
        model.words[n_words++] = "model.moe_token_dispatcher_type=alltoall";
        law_check(rc_graph_make(&(rc_graph_request){.cfg = law_config(&model, "auto", mem),
                                                    .profile = RC_PROFILE_MEGATRON_TE,
                                                    .chunk = &chunk},
                                mem, &graph, &err),
                  &err);
        for (int op = 0; op < graph->n_ops; op++)
            n += rc_graph_op(graph, op).kind == RC_OP_aux_loss;
        assert_int_equal(n, cases[i].n);
        rc_arena_close(mem);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_loss_without_a_list_is_one_loss),
        cmocka_unit_test(every_set_of_acting_labels_keeps_what_its_modules_save),
        cmocka_unit_test(weights_and_products_add_up),
        cmocka_unit_test(ranks_exchange_rows),
        cmocka_unit_test(every_setting_is_scheduled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
