/* bench_train.c — tokens per second of whole steps against the practical bound of the same shape,
 * measured in the same run, and what each setting adds over the time of what it replays.
 *
 * The bound: the math library's own time for the model's very products (forward, dgrad, wgrad),
 * attention's causal half at the library's best rate, and one pass over the optimizer's state;
 * everything else free. Every round times each setting's step and the bound once, so that a busy
 * machine slows all alike; ratios are taken within a round, and their medians printed.
 *
 *   bench_train [gpt|llama] [THREADS]
 */
#define _POSIX_C_SOURCE 200809L
#include <recompute/recompute.h>

#include "exec/cpu/gemm.h"
#include "exec/cpu/optimizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { N_STEPS = 7, N_WARM = 2, MAX_SETTINGS = 8 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void need(rc_code code, const rc_error *err)
{
    if (code == RC_OK)
        return;
    fprintf(stderr, "%s\n", err->msg);
    exit(1);
}

static const char *const gpt[] = {"model.num_layers=6",
                                  "model.hidden_size=384",
                                  "model.num_attention_heads=6",
                                  "model.seq_length=256",
                                  "model.vocab_size=256",
                                  "train.micro_batch_size=8",
                                  "model.activation_func=gelu_tanh",
                                  "model.hidden_dropout=0",
                                  "model.attention_dropout=0",
                                  "model.make_vocab_size_divisible_by=1"};
static const char *const llama[] = {
    "model.num_layers=8",           "model.hidden_size=512",
    "model.num_attention_heads=8",  "model.seq_length=512",
    "model.vocab_size=8192",        "train.micro_batch_size=8",
    "model.hidden_dropout=0",       "model.attention_dropout=0",
    "model.normalization=RMSNorm",  "model.position_embedding_type=rope",
    "model.gated_linear_unit=true", "model.activation_func=silu",
    "model.num_query_groups=4",     "model.add_bias_linear=false",
    "model.ffn_hidden_size=1408",   "model.share_embeddings_and_output_weights=false"};

static const rc_graph *make_graph(const char *const *words, size_t n, rc_arena *mem)
{
    rc_error err = {0};
    rc_doc *doc;
    rc_config *cfg;
    need(rc_override_read(words, n, mem, &doc, &err), &err);
    rc_input input = {doc, RC_FROM_OVERRIDE};
    need(rc_config_make(&input, 1, mem, &cfg, &err), &err);
    rc_passes passes = {.cfg = cfg};
    need(rc_passes_make(&passes, RC_NOUN_GRAPH, mem, &err), &err);
    return passes.graph;
}

/* Better of two calls: the first may find the operands cold. */
static double time_gemm(const rc_gemm *gemm, int n_threads)
{
    double best = 1e9;
    for (int i = 0; i < 2; i++) {
        double t = now();
        if (rc_gemm_run(gemm, n_threads) != RC_FAULT_NONE)
            abort();
        t = now() - t;
        best = t < best ? t : best;
    }
    return best;
}

typedef struct bound {
    double fwd, bwd, attention, optimizer; /* seconds a step */
    double best_rate;                      /* FLOP/s */
} bound;

typedef struct product {
    int64_t in, out;
    double fwd, bwd;
} product;

static product time_product(const rc_op_attr *attr, float *const at[3], int n_threads)
{
    int64_t n = attr->n, in = attr->in, out = attr->out;
    product p = {.in = in, .out = out};
    rc_gemm gemm = {.alpha = 1, .a = at[0], .b = at[1], .c = at[2]};
    gemm.m = n, gemm.n = out, gemm.k = in; /* y = x w^T */
    gemm.is_b_transposed = true;
    gemm.lda = in, gemm.ldb = in, gemm.ldc = out;
    p.fwd = time_gemm(&gemm, n_threads);
    gemm.m = n, gemm.n = in, gemm.k = out; /* dx = dy w */
    gemm.is_b_transposed = false;
    gemm.lda = out, gemm.ldb = in, gemm.ldc = in;
    p.bwd = time_gemm(&gemm, n_threads);
    gemm.m = out, gemm.n = in, gemm.k = n; /* dw += dy^T x */
    gemm.is_a_transposed = true;
    gemm.beta = 1;
    p.bwd += time_gemm(&gemm, n_threads);
    return p;
}

static double time_optimizer(int64_t n, float *const at[3], size_t room, int n_threads)
{
    double best = 1e9;
    if (n > (int64_t)room / 2)
        n = (int64_t)room / 2;
    rc_adamw arg = {.p = at[0],
                    .m = at[1],
                    .v = at[2],
                    .g = at[0] + room / 2,
                    .n = n,
                    .g_scale = 1,
                    .beta1 = 0.9,
                    .beta2 = 0.99,
                    .eps = 1,
                    .step = 1};
    for (int i = 0; i < 2; i++) {
        double t = now();
        rc_cpu_adamw(&arg, n_threads);
        t = now() - t;
        best = t < best ? t : best;
    }
    return best;
}

static void add_linear(bound *b, const rc_op *op, const product *p)
{
    b->fwd += p->fwd;
    b->bwd += p->bwd;
    double rate = (double)op->fwd_flops / p->fwd;
    b->best_rate = rate > b->best_rate ? rate : b->best_rate;
}

enum { OPERAND_ROOM = 64 << 20, MOST_SHAPES = 16 };

static bound measure_bound(const rc_graph *graph, float *const at[3], int n_threads)
{
    bound b = {0};
    product seen[MOST_SHAPES];
    size_t n_seen = 0;
    for (int i = 0; i < graph->n_ops; i++) {
        const rc_op row = rc_graph_op(graph, i), *op = &row;
        if (op->kind != RC_OP_linear)
            continue;
        size_t k = 0;
        while (k < n_seen && (seen[k].in != op->attr.in || seen[k].out != op->attr.out))
            k++;
        if (k == n_seen)
            seen[n_seen++] = time_product(&op->attr, at, n_threads);
        add_linear(&b, op, &seen[k]);
    }
    for (int i = 0; i < graph->n_ops; i++)
        if (rc_graph_op(graph, i).kind == RC_OP_attention)
            b.attention += (double)(rc_graph_op(graph, i).fwd_flops * 3) / b.best_rate;
    b.optimizer = time_optimizer(graph->n_parameters, at, OPERAND_ROOM, n_threads);
    return b;
}

typedef struct subject {
    const char *setting;
    rc_schedule *schedule;
    rc_run *run;
    double seconds[N_STEPS];  /* of a step */
    double of_bound[N_STEPS]; /* bound / step, same round */
    double of_control[N_STEPS];
} subject;

static double step_once(subject *s, const int32_t *tokens, int step)
{
    rc_error err = {0};
    double start = now(), loss, norm;
    need(rc_run_micro(s->run, &(rc_batch){tokens, tokens, step, 0}, &loss, &err), &err);
    rc_update update = {
        .lr = 1e-4, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .clip_grad = 1, .step = step + 1};
    need(rc_run_update(s->run, &update, &norm, &err), &err);
    return now() - start;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, by_value);
    return values[n / 2];
}

/* Where the control's time went, by op kind. */
static void print_ops(const subject *s, int n_steps)
{
    const rc_schedule *schedule = s->schedule;
    const double *seconds = rc_run_seconds(s->run);
    double fwd[RC_OP_COUNT] = {0}, bwd[RC_OP_COUNT] = {0};
    for (int i = schedule->micro_first; i <= schedule->micro_last; i++) {
        const rc_instr *instr = &schedule->instrs[i];
        if (instr->kind == RC_INSTR_DISCARD)
            continue;
        double *sum = instr->kind == RC_INSTR_BACKWARD ? bwd : fwd;
        sum[rc_graph_op(schedule->graph, instr->op).kind] += seconds[i] / n_steps;
    }
    printf("%-18s %10s %10s\n", "op, ms a step", "forward", "backward");
    for (int k = 0; k < RC_OP_COUNT; k++)
        if (fwd[k] > 0)
            printf("%-18s %10.2f %10.2f\n", rc_op_find((rc_op_kind)k)->name, fwd[k] * 1e3,
                   bwd[k] * 1e3);
}

static int open_subjects(const rc_graph *graph, int n_threads, subject *subjects, rc_arena *mem)
{
    static const char *const settings[] = {
        "none",          "selective/layernorm", "selective/core_attn",
        "selective/mlp", "full/block/3",        "full/uniform/1"};
    enum { N = sizeof settings / sizeof *settings };
    rc_error err = {0};
    for (int i = 0; i < N; i++) {
        rc_setting setting;
        subjects[i] = (subject){.setting = settings[i]};
        rc_setting_parse(settings[i], &setting);
        rc_passes passes = {.graph = graph, .setting = &setting, .n_threads = n_threads};
        need(rc_passes_make(&passes, RC_NOUN_SCHEDULE, mem, &err), &err);
        subjects[i].schedule = passes.schedule;
        rc_run_options options = {.seed = 1, .n_micro_batches = 1};
        need(rc_run_open(subjects[i].schedule, &options, &subjects[i].run, &err), &err);
        rc_run_init_weights(subjects[i].run);
    }
    return N;
}

/* One round: the bound, then a step of every setting. */
static void run_round(subject *subjects, int n, const int32_t *tokens, const bound *b,
                      int round)
{
    double practical = b->fwd + b->bwd + b->attention + b->optimizer;
    for (int i = 0; i < n; i++) {
        double seconds = step_once(&subjects[i], tokens, round);
        if (round < N_WARM)
            continue;
        subjects[i].seconds[round - N_WARM] = seconds;
        subjects[i].of_bound[round - N_WARM] = practical / seconds;
        subjects[i].of_control[round - N_WARM] = seconds / subjects[0].seconds[round - N_WARM];
    }
}

static void print_bound(const bound *b, int64_t n_tokens, int n_threads)
{
    double practical = b->fwd + b->bwd + b->attention + b->optimizer;
    printf(
        "\nbound of the last round, ms a step: products %.1f + %.1f, attention %.1f, optimizer "
        "%.1f; best product %.0f GFLOP/s; %.0f tokens/s at %d threads\n\n",
        b->fwd * 1e3, b->bwd * 1e3, b->attention * 1e3, b->optimizer * 1e3, b->best_rate * 1e-9,
        (double)n_tokens / practical, n_threads);
}

/* `overhead`: time added over the time the replayed FLOPs take at the control's own rate. */
static void print_subject(const subject *s, const subject *control, int64_t n_tokens)
{
    double seconds[N_STEPS], of_bound[N_STEPS], of_control[N_STEPS];
    memcpy(seconds, s->seconds, sizeof seconds);
    memcpy(of_bound, s->of_bound, sizeof of_bound);
    memcpy(of_control, s->of_control, sizeof of_control);
    double step = median(seconds, N_STEPS), ratio = median(of_control, N_STEPS);
    double share = (double)s->schedule->recompute_flops /
                   (double)(control->schedule->fwd_flops + control->schedule->bwd_flops);
    printf("%-24s %10.1f %10.0f %9.0f%% %8.3fx %10.0f %9.3fx", s->setting, step * 1e3,
           (double)n_tokens / step, 100 * median(of_bound, N_STEPS), ratio,
           (double)s->schedule->arena_bytes / 1048576, 1 + share);
    if (share > 0)
        printf(" %9.2fx", (ratio - 1) / share);
    printf("\n");
}

int main(int argc, char **argv)
{
    bool is_llama = argc > 1 && strcmp(argv[1], "llama") == 0;
    int n_threads = argc > 2 ? atoi(argv[2]) : 2;
    rc_error err = {0};
    rc_arena *mem = rc_arena_open();
    const rc_graph *graph = is_llama ? make_graph(llama, sizeof llama / sizeof *llama, mem)
                                     : make_graph(gpt, sizeof gpt / sizeof *gpt, mem);
    int64_t n_tokens = graph->dims.N;
    int32_t *tokens;
    float *at[3];
    subject subjects[MAX_SETTINGS];
    bound b = {0};
    need(RC_NEW(mem, &tokens, n_tokens, &err), &err);
    for (int64_t i = 0; i < n_tokens; i++)
        tokens[i] = (int32_t)((i * 7919) % graph->dims.W);
    for (int i = 0; i < 3; i++) {
        need(RC_NEW(mem, &at[i], OPERAND_ROOM, &err), &err);
        for (size_t k = 0; k < OPERAND_ROOM; k++)
            at[i][k] = (float)(k % 13) * 0.01f;
    }
    int n = open_subjects(graph, n_threads, subjects, mem);
    for (int round = 0; round < N_WARM + N_STEPS; round++) {
        b = measure_bound(graph, at, n_threads);
        run_round(subjects, n, tokens, &b, round);
    }
    print_ops(&subjects[0], N_WARM + N_STEPS);
    print_bound(&b, n_tokens, n_threads);
    printf("%-24s %10s %10s %10s %9s %10s %10s %10s\n", "setting", "ms", "tokens/s", "of bound",
           "time", "peak MiB", "FLOPs", "overhead");
    for (int i = 0; i < n; i++)
        print_subject(&subjects[i], &subjects[0], n_tokens);
    for (int i = 0; i < n; i++)
        rc_run_close(subjects[i].run);
    rc_arena_close(mem);
    return 0;
}
