/* test_retained.c — what a layer keeps in both Megatron profiles is the sum over its modules.
 *
 * The sums are written here from what each module's autograd function saves, in bytes of 16-bit
 * training, and share nothing with the builders. N tokens inside tensor-parallel regions, n outside;
 * of the heads a and groups g a rank has al and gl.
 *
 *   norm                 input 2nh, output 2nh, 4n of statistics (RMSNorm) or 8n (LayerNorm)
 *   norms of q and k     copies 2N al d and 2N gl d, statistics of every head
 *   attention, fused     q, k, v: 2N (al + 2 gl) d; output 2N al d; log-sum-exp 4 b al S
 *   attention, unfused   probabilities 2 b al S^2, with dropout its mask and what is left: 5 b al S^2
 *   linear               its input, a shard under sequence parallelism; never its output
 *   MLP                  fc1's output 2N f/t, or 4N f/t gated, and the activation's 2N f/t
 *   bias, dropout, add   a mask of nh where something is dropped
 *
 * source  Megatron-LM megatron/core: transformer/attention.py, dot_product_attention.py, mlp.py,
 *         fusions/, tensor_parallel/layers.py, cross_entropy.py; TransformerEngine
 *         transformer_engine/pytorch: module/layernorm_linear.py, attention/dot_product_attention
 */
#include "law.h"

typedef struct shape {
    rc_profile profile;
    bool is_rms, is_gated, has_rope, has_qk_norm, drops_hidden, drops_attention;
    /* attention is not one kernel: so always in Megatron's own modules, in Transformer Engine where it is so asked */
    bool has_scores;
    int64_t g, t;
    bool has_sequence_parallel;
    /* context-parallel ranks, and how they meet each other's keys */
    int64_t c;
    const char *exchange;
    int64_t N, n, h, al, gl, d, f, b, S, V; /* f and V of a rank */
} shape;

enum { N_LAYERS = 3, H = 48, A = 8, D = 10, F = 64, VOCABULARY = 104, S = 12, B = 2 };

/* ---- the sums ---- */

static int64_t norm_stats(const shape *m, int64_t rows)
{
    return (m->is_rms ? 4 : 8) * rows;
}

static bool is_own_module(const shape *m) /* else fused into the linear behind it */
{
    return m->profile == RC_PROFILE_MEGATRON_LOCAL;
}

static int64_t hidden(const shape *m)
{
    return 2 * m->n * m->h;
}

/* Output and statistics; the input is the residual stream, and counted there. */
static int64_t norm(const shape *m)
{
    return hidden(m) + norm_stats(m, m->n);
}

static int64_t heads(const shape *m, int64_t n_heads)
{
    return 2 * m->N * n_heads * m->d;
}

/* Values of the product that the core reads in place: the whole product stays for a slice of it. */
static int64_t product(const shape *m)
{
    return heads(m, m->al + 2 * m->gl);
}

/* Whether queries and keys leave the product before the core: norms and rotation write new ones. */
static bool are_moved(const shape *m)
{
    return m->has_rope || m->has_qk_norm;
}

static bool is_grouped(const shape *m)
{
    return m->gl < m->al;
}

/* What a replay of the core starts from. The value is a slice of the product, so all of it stays.
 * Megatron reshapes a grouped query to its heads, which copies it. */
static int64_t core_inputs(const shape *m)
{
    if (are_moved(m))
        return heads(m, m->al + m->gl) + product(m);
    return product(m) + (is_grouped(m) ? heads(m, m->al) : 0);
}

/* Queries, keys and values as the core saves them. */
static int64_t core_saves(const shape *m)
{
    if (m->c > 1 &&
        strcmp(m->exchange, "p2p") == 0) /* the pair that came last, not a rank's own */
        return heads(m, m->al) + heads(m, 2 * m->gl);
    if (m->c > 1 && strcmp(m->exchange, "a2a") == 0) /* the output before it goes back, too */
        return heads(m, 2 * m->al + 2 * m->gl);
    if (!m->has_scores) /* copies of what is no interleaved buffer */
        return heads(m, m->al + 2 * m->gl);
    if (is_grouped(m)) /* keys and values repeated for every query head */
        return heads(m, 3 * m->al);
    return are_moved(m) ? heads(m, 2 * m->al) + product(m) : product(m);
}

static int64_t core_statistics(const shape *m)
{
    if (!m->has_scores)
        return 4 * m->b * m->al * m->S;
    return (m->drops_attention ? 5 : 2) * m->b * m->al * m->S * m->S;
}

static int64_t mask(const shape *m)
{
    return m->drops_hidden ? m->n * m->h : 0;
}

static bool has(uint32_t labels, rc_label label)
{
    return labels >> label & 1u;
}

static int64_t attention(const shape *m, uint32_t labels)
{
    int64_t sum = hidden(m) + mask(m) + heads(m, m->al);
    if (!has(labels, RC_LABEL_layernorm))
        sum += norm(m);
    if (m->has_qk_norm)
        sum += heads(m, m->al + m->gl) + norm_stats(m, m->N * (m->al + m->gl));
    return sum + (has(labels, RC_LABEL_core_attn) ? core_inputs(m)
                                                  : core_saves(m) + core_statistics(m));
}

/* Label mlp covers a norm that is fused into fc1; of one that is not it starts at the output. */
static int64_t mlp(const shape *m, uint32_t labels)
{
    int64_t sum = hidden(m) + mask(m);
    bool is_norm_covered = has(labels, RC_LABEL_mlp) && !is_own_module(m);
    if (!is_norm_covered && !has(labels, RC_LABEL_layernorm))
        sum += norm(m);
    return has(labels, RC_LABEL_mlp) ? sum : sum + (m->is_gated ? 6 : 4) * m->N * m->f;
}

/* The labels that the sums above know; one more that acts here needs its sum. */
static const uint32_t known_labels =
    1u << RC_LABEL_core_attn | 1u << RC_LABEL_layernorm | 1u << RC_LABEL_mlp;

/* ---- the graphs ---- */

static const rc_doc *exchange_doc(const char *word, rc_arena *mem)
{
    rc_error err = {0};
    rc_doc *map, *doc;
    law_check(rc_doc_new(mem, RC_DOC_MAP, RC_NOWHERE, &map, &err), &err);
    law_check(
        rc_doc_add_string(mem, map, "cp_comm_type", RC_NOWHERE, word, strlen(word), &doc, &err),
        &err);
    return doc;
}

static const rc_graph *make_graph(shape *m, rc_arena *mem)
{
    static const law_model plain = {
        "plain",
        {"model.num_layers=3", "model.hidden_size=48", "model.num_attention_heads=8",
         "model.kv_channels=10", "model.ffn_hidden_size=64", "model.seq_length=12",
         "model.vocab_size=104", "train.micro_batch_size=2", "model.bf16=true",
         "model.make_vocab_size_divisible_by=1", "model.activation_func=silu"}};
    rc_config *cfg = law_config(&plain, m->has_scores ? "unfused" : "auto", mem);
    cfg->normalization = m->is_rms ? "RMSNorm" : "LayerNorm";
    cfg->gated_linear_unit = m->is_gated;
    cfg->position_embedding_type = m->has_rope ? "rope" : "learned_absolute";
    cfg->qk_layernorm = m->has_qk_norm;
    cfg->hidden_dropout = m->drops_hidden ? 0.1 : 0;
    cfg->attention_dropout = m->drops_attention ? 0.1 : 0;
    cfg->num_query_groups = m->g;
    cfg->tensor_model_parallel_size = m->t;
    cfg->sequence_parallel = m->has_sequence_parallel;
    cfg->context_parallel_size = m->c;
    cfg->cp_comm_type = exchange_doc(m->exchange, mem);
    const rc_graph *graph = law_passes(cfg, m->profile, RC_NOUN_GRAPH, mem).graph;
    m->N = S / m->c * B;
    m->n = m->has_sequence_parallel ? m->N / m->t : m->N;
    m->h = H;
    m->al = A / m->t;
    m->gl = m->g / m->t;
    m->d = D;
    m->f = F / m->t;
    m->b = B;
    m->S = S / m->c;
    m->V = VOCABULARY / m->t;
    return graph;
}

typedef void check_shape(const shape *m, const rc_graph *graph, rc_arena *mem);

/* Every layer that can be told apart by what it keeps. */
static void for_every_shape(check_shape *check)
{
    static const struct {
        int64_t t;
        bool has_sequence_parallel;
        int64_t c;
        const char *exchange;
    } ranks[] = {{1, false, 1, "p2p"},        {2, false, 1, "p2p"}, {2, true, 1, "a2a"},
                 {4, true, 1, "all_gather"},  {1, false, 2, "p2p"}, {2, true, 3, "p2p"},
                 {1, false, 2, "all_gather"}, {2, true, 2, "a2a"}};
    for (size_t r = 0; r < sizeof ranks / sizeof *ranks; r++)
        for (unsigned bits = 0; bits < 1u << 9; bits++) {
            const bool is_te = bits & 1u;
            const bool is_in_ring = ranks[r].c > 1, is_asked = bits & 256u;
            /* Norms, gates and dropout have nothing to do with how attention runs. */
            if ((is_in_ring || is_asked) && bits & (2u | 4u | 32u))
                continue;
            /* Megatron's own attention has no context parallelism, nor has what keeps scores. */
            if ((is_in_ring && (!is_te || is_asked)) || (is_asked && !is_te))
                continue;
            rc_arena *mem = rc_arena_open();
            shape m = {.profile = is_te ? RC_PROFILE_MEGATRON_TE : RC_PROFILE_MEGATRON_LOCAL,
                       .is_rms = bits & 2u,
                       .is_gated = bits & 4u,
                       .has_rope = bits & 8u,
                       .has_qk_norm = bits & 16u,
                       .drops_hidden = bits & 32u,
                       .drops_attention = bits & 64u,
                       .has_scores = !is_te || is_asked,
                       .g = bits & 128u ? A / 2 : A,
                       .t = ranks[r].t,
                       .has_sequence_parallel = ranks[r].has_sequence_parallel,
                       .c = ranks[r].c,
                       .exchange = ranks[r].exchange};
            const rc_graph *graph = make_graph(&m, mem);
            check(&m, graph, mem);
            rc_arena_close(mem);
        }
}

static void need_bytes(const shape *m, const rc_graph *graph, const rc_setting *setting,
                       int layer, int64_t expected, rc_arena *mem)
{
    rc_error err = {0};
    const rc_policy *policy = law_made(graph, setting, 1, RC_NOUN_POLICY, mem).policy;
    int64_t bytes, stats;
    char name[160];
    law_check(rc_cost_layer(policy, layer, mem, &bytes, &stats, &err), &err);
    if (bytes + stats != expected)
        fail_msg(
            "%s%s%s%s%s%s%s, g %lld, t %lld%s: layer %d keeps %lld bytes under %s, not %lld",
            rc_profile_name(m->profile), m->is_rms ? ", RMSNorm" : "",
            m->is_gated ? ", gated" : "", m->has_rope ? ", rope" : "",
            m->has_qk_norm ? ", norms of q and k" : "",
            m->drops_hidden ? ", hidden dropout" : "",
            m->drops_attention ? ", attention dropout" : "", (long long)m->g, (long long)m->t,
            m->has_sequence_parallel ? " with sequence parallelism" : "", layer,
            (long long)(bytes + stats), rc_setting_name(setting, name), (long long)expected);
}

static uint32_t find_acting(const rc_graph *graph)
{
    uint32_t acting = 0;
    for (int label = 0; label < RC_LABEL_COUNT; label++)
        if (rc_graph_count_regions(graph, (rc_label)label) > 0)
            acting |= 1u << label;
    return acting;
}

/* Every set of the labels that act, and each that does not, which changes nothing. */
static void check_labels(const shape *m, const rc_graph *graph, rc_arena *mem)
{
    uint32_t acting = find_acting(graph), subset = 0;
    if (acting & ~known_labels)
        fail_msg("a label acts that has no sum here: %x", acting & ~known_labels);
    assert_int_equal(has(acting, RC_LABEL_layernorm), is_own_module(m));
    do {
        rc_setting setting = {.granularity = RC_GRANULARITY_SELECTIVE, .labels = subset};
        need_bytes(m, graph, &setting, 1, attention(m, subset) + mlp(m, subset), mem);
        subset = (subset - acting) & acting;
    } while (subset);
    for (int label = 0; label < RC_LABEL_COUNT; label++) {
        rc_setting setting = {.granularity = RC_GRANULARITY_SELECTIVE, .labels = 1u << label};
        if (!has(acting, (rc_label)label))
            need_bytes(m, graph, &setting, 1, attention(m, 0) + mlp(m, 0), mem);
    }
}

static void every_set_of_acting_labels_keeps_what_its_modules_save(void **state)
{
    (void)state;
    for_every_shape(check_labels);
}

/* A group keeps its input, which is the output of the layer before. */
static void check_full(const shape *m, const rc_graph *graph, rc_arena *mem)
{
    int64_t whole = attention(m, 0) + mlp(m, 0);
    rc_setting setting = {.granularity = RC_GRANULARITY_FULL, .num_layers = 1};
    setting.method = RC_METHOD_UNIFORM;
    need_bytes(m, graph, &setting, 1, hidden(m), mem);
    setting.method = RC_METHOD_BLOCK;
    need_bytes(m, graph, &setting, 0, hidden(m), mem);
    need_bytes(m, graph, &setting, 1, whole, mem);
    setting.method = RC_METHOD_UNIFORM;
    setting.num_layers = 2; /* layers 0 and 1 are a group: nothing between them stays */
    need_bytes(m, graph, &setting, 0, 0, mem);
    need_bytes(m, graph, &setting, 1, hidden(m), mem);
}

static void full_keeps_the_inputs_of_its_groups(void **state)
{
    (void)state;
    for_every_shape(check_full);
}

/* The loss keeps its softmax in fp32 and no logits; the final norm its output and statistics. */
static void check_ends(const shape *m, const rc_graph *graph, rc_arena *mem)
{
    rc_setting none = {.granularity = RC_GRANULARITY_NONE};
    need_bytes(m, graph, &none, -1, hidden(m) + mask(m), mem);
    need_bytes(m, graph, &none, N_LAYERS, norm(m) + 4 * m->N * m->V, mem);
}

static void ends_keep_masks_the_final_norm_and_one_softmax(void **state)
{
    (void)state;
    for_every_shape(check_ends);
}

/* ---- what is sent ---- */

typedef struct exchange {
    const char *part;
    /* forward and backward, without sequence parallelism and with it */
    rc_comm_kind alone[2], sequence[2];
} exchange;

/* The whole tensor [N,h] goes over the group. Before a column-parallel linear it is gathered, or its gradient
 * is summed; behind a row-parallel one it is summed. source  megatron/core/tensor_parallel/layers.py,
 * mappings.py */
#define GATHER                                                                                 \
    {                                                                                          \
        RC_COMM_ALL_GATHER, RC_COMM_REDUCE_SCATTER                                             \
    }
#define SCATTER                                                                                \
    {                                                                                          \
        RC_COMM_REDUCE_SCATTER, RC_COMM_ALL_GATHER                                             \
    }
static const exchange exchanges[] = {
    {"self_attention.linear_qkv.gathered", {0}, GATHER},
    {"self_attention.linear_qkv", {RC_COMM_NONE, RC_COMM_ALL_REDUCE}, {0}},
    {"self_attention.linear_proj.reduced", {RC_COMM_ALL_REDUCE, RC_COMM_NONE}, SCATTER},
    {"mlp.linear_fc1.gathered", {0}, GATHER},
    {"mlp.linear_fc1", {RC_COMM_NONE, RC_COMM_ALL_REDUCE}, {0}},
    {"mlp.linear_fc2.reduced", {RC_COMM_ALL_REDUCE, RC_COMM_NONE}, SCATTER},
};
enum { N_EXCHANGES = sizeof exchanges / sizeof *exchanges };

static rc_comm_kind expected_exchange(const shape *m, const char *part, bool is_backward)
{
    for (size_t i = 0; i < N_EXCHANGES; i++)
        if (m->t > 1 && strcmp(exchanges[i].part, part) == 0)
            return (m->has_sequence_parallel ? exchanges[i].sequence
                                             : exchanges[i].alone)[is_backward];
    return RC_COMM_NONE;
}

/* How many exchanges an op should have, and has. */
static int check_exchange(const shape *m, const rc_graph *graph, int op, bool is_backward)
{
    static const char prefix[] = "decoder.layers.1.";
    char buf[RC_GRAPH_NAME_BYTES];
    const char *part = rc_graph_op_name(graph, op, buf) + sizeof prefix - 1;
    const rc_comm comm = rc_graph_comm(graph, op, is_backward);
    const rc_comm_kind right = expected_exchange(m, part, is_backward);
    const int64_t bytes = right ? 2 * m->N * m->h : 0;
    if (comm.group == RC_GROUP_CP)
        return 0;
    if (comm.kind != right || comm.bytes != bytes || (right && comm.group != RC_GROUP_TP))
        fail_msg("%s of t %lld%s: %s of %lld bytes, not %s of %lld", part, (long long)m->t,
                 m->has_sequence_parallel ? " and sequence parallel" : "",
                 rc_comm_kind_name(comm.kind), (long long)comm.bytes, rc_comm_kind_name(right),
                 (long long)bytes);
    return right != RC_COMM_NONE;
}

static void check_exchanges(const shape *m, const rc_graph *graph, rc_arena *mem)
{
    int first, last, n = 0;
    (void)mem;
    rc_graph_layer_ops(graph, 1, 1, &first, &last);
    for (int i = first; i <= last; i++)
        n += check_exchange(m, graph, i, false) + check_exchange(m, graph, i, true);
    assert_int_equal(n, m->t == 1 ? 0 : m->has_sequence_parallel ? 8 : 4);
}

/* Backward gathers what the linears read again, whatever the setting: twice a layer and once at the output
 * layer, and keys and values of context-parallel ranks; and that is no cost of the setting. */
static void check_gathers(const shape *m, const rc_graph *graph, rc_arena *mem)
{
    rc_error err = {0};
    rc_schedule *schedule = law_schedule(graph, "none", 1, mem);
    int n = 0;
    law_check(rc_schedule_verify(schedule, mem, &err), &err);
    for (int i = 0; i < schedule->n_instrs; i++) {
        const rc_instr *instr = &schedule->instrs[i];
        if (instr->kind != RC_INSTR_RECOMPUTE)
            continue;
        assert_int_equal(rc_graph_op(graph, instr->op).kind, RC_OP_all_gather);
        n++;
    }
    const bool gathers_keys = m->c > 1 && strcmp(m->exchange, "all_gather") == 0;
    assert_int_equal(n, (m->has_sequence_parallel ? 2 * N_LAYERS + 1 : 0) +
                            (gathers_keys ? 2 * N_LAYERS : 0));
    assert_int_equal(schedule->recompute_flops, 0);
    assert_int_equal(schedule->recompute_moved_bytes, 0);
}

static void what_is_gathered_is_gathered_again(void **state)
{
    (void)state;
    for_every_shape(check_gathers);
}

static void linears_send_the_whole_hidden_state(void **state)
{
    (void)state;
    for_every_shape(check_exchanges);
}

/* ---- measured ---- */

/* Bytes that autograd of Megatron Core 0.19.2 held for one layer on a CPU, fp32, counted by storage
 * with saved-tensor hooks (the difference of a model of 3 layers and one of 2): a Llama of h 64, 4
 * heads of 16, f 192, s 32, b 2. There no kernel was fused, so it kept more than this profile's
 * kernels do: a gated activation 2Nf elements more, torch's RMSNorm its normalised input, rotary
 * embedding its cosines and sines. A checkpoint of attention adds a scalar of 4 bytes. */
static void retained_bytes_match_what_megatron_core_held(void **state)
{
    static const law_model measured = {
        "measured",
        {"model.num_layers=3", "model.hidden_size=64", "model.num_attention_heads=4",
         "model.ffn_hidden_size=192", "model.seq_length=32", "model.vocab_size=128",
         "train.micro_batch_size=2", "model.normalization=RMSNorm",
         "model.position_embedding_type=rope", "model.gated_linear_unit=true",
         "model.activation_func=silu", "model.add_bias_linear=false", "model.hidden_dropout=0",
         "model.attention_dropout=0", "model.share_embeddings_and_output_weights=false"}};
    static const struct {
        const char *setting;
        int64_t t;
        bool has_sequence_parallel;
        int64_t held, activation, norms, rotary, scalar;
    } cases[] = {
        {"none", 1, false, 483840, 98304, 32768, 8192, 0},
        {"selective/core_attn", 1, false, 451076, 98304, 32768, 8192, 4},
        {"selective/layernorm", 1, false, 417792, 98304, 0, 8192, 0},
        {"selective/mlp", 1, false, 238080, 0, 32768, 8192, 0},
        {"selective/core_attn+layernorm+mlp", 1, false, 139268, 0, 0, 8192, 4},
        {"full/uniform/1", 1, false, 16384, 0, 0, 0, 0},
        {"none", 2, false, 295424, 49152, 32768, 8192, 0},
        {"none", 2, true, 246016, 49152, 16384, 8192, 0},
        {"selective/core_attn", 2, true, 229636, 49152, 16384, 8192, 4},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rc_error err = {0};
        rc_arena *mem = rc_arena_open();
        int64_t bytes, stats, more = cases[i].activation + cases[i].norms + cases[i].rotary;
        rc_config *cfg = law_config(&measured, "local", mem);
        cfg->tensor_model_parallel_size = cases[i].t;
        cfg->sequence_parallel = cases[i].has_sequence_parallel;
        const rc_graph *graph =
            law_passes(cfg, RC_PROFILE_MEGATRON_LOCAL, RC_NOUN_GRAPH, mem).graph;
        law_check(rc_cost_layer(law_policy(graph, cases[i].setting, mem), 1, mem, &bytes,
                                &stats, &err),
                  &err);
        if (bytes + stats + more + cases[i].scalar != cases[i].held)
            fail_msg("%s, t %lld: %lld bytes and %lld of unfused kernels, %lld were held",
                     cases[i].setting, (long long)cases[i].t, (long long)(bytes + stats),
                     (long long)(more + cases[i].scalar), (long long)cases[i].held);
        rc_arena_close(mem);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_set_of_acting_labels_keeps_what_its_modules_save),
        cmocka_unit_test(full_keeps_the_inputs_of_its_groups),
        cmocka_unit_test(ends_keep_masks_the_final_norm_and_one_softmax),
        cmocka_unit_test(linears_send_the_whole_hidden_state),
        cmocka_unit_test(what_is_gathered_is_gathered_again),
        cmocka_unit_test(retained_bytes_match_what_megatron_core_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
