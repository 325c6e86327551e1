/* bench_kernels.c — how near each CPU kernel is to what the machine can do.
 *
 *   bench_kernels [THREADS] [SECONDS per timing] [name part]
 *
 * The bounds are measured in the same run: a multiply-add loop in registers (peak), the GEMM
 * library on the shape's own products, and a copy larger than the caches (DRAM) and inside the
 * last one. Each row prints what it reached and the ratio to its bound. Best of many calls; with
 * one thread in processor time, which other programs disturb less.
 */
#define _POSIX_C_SOURCE 200809L
#include "base/random.h"
#include "base/simd.h"
#include "exec/cpu/gemm.h"
#include "exec/cpu/optimizer.h"
#include "exec/cpu/team.h"
#include "exec/kernel.h"

#include <recompute/arena.h>

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double seconds(int n_threads)
{
    struct timespec t;
    clock_gettime(n_threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

typedef struct bench {
    rc_arena *mem;
    int n_threads;
    double budget; /* seconds per timing */
    const char *only;
    double peak_flops, copy_bytes, cache_bytes; /* per second */
} bench;

typedef void (*job)(void *arg);

static double best_seconds(const bench *b, job run, void *arg)
{
    double best = 1e30, start = seconds(b->n_threads);
    run(arg);
    for (int i = 0; i < 3 || seconds(b->n_threads) - start < b->budget; i++) {
        double t = seconds(b->n_threads);
        run(arg);
        t = seconds(b->n_threads) - t;
        best = t < best ? t : best;
    }
    return best;
}

static void *take(const bench *b, int64_t n, size_t elem_bytes)
{
    void *at = NULL;
    if (rc_arena_take(b->mem, (size_t)n, elem_bytes, &at, NULL) != RC_OK) {
        fprintf(stderr, "bench_kernels: out of memory\n");
        exit(3);
    }
    return at;
}

static float *floats(const bench *b, int64_t n, uint32_t id)
{
    float *x = take(b, n, sizeof *x);
    const rc_random random = {.seed = 1, .id = id};
    uint32_t bits[4][RC_RANDOM_LANES];
    rc_random_lanes(&random, 0, 1, RC_RANDOM_LANES, bits);
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)(bits[i % 4][i / 4 % RC_RANDOM_LANES] >> 8) * 0x1p-23f - 1.0f;
    return x;
}

/* ---- bounds ---- */

enum { CHAINS = 24, FMA_STEPS = 300000 };

RC_CLONES static float fma_loop(int n)
{
    rc_vec acc[CHAINS], x, y;
    for (int i = 0; i < RC_VEC; i++) {
        x[i] = 0.9999f;
        y[i] = 0.0001f;
    }
#pragma GCC unroll 24
    for (int i = 0; i < CHAINS; i++)
        acc[i] = y * (float)i;
#pragma GCC unroll 4
    for (int k = 0; k < n; k++)
#pragma GCC unroll 24
        for (int i = 0; i < CHAINS; i++)
            acc[i] = acc[i] * x + y;
#pragma GCC unroll 24
    for (int i = 1; i < CHAINS; i++)
        acc[0] += acc[i];
    return acc[0][0];
}

static void fma_job(void *arg)
{
    const bench *b = arg;
    volatile float sink[64];
#pragma omp parallel num_threads(b->n_threads)
    sink[omp_get_thread_num() % 64] = fma_loop(FMA_STEPS);
    (void)sink[0];
}

typedef struct copy_arg {
    float *to;
    const float *from;
    int64_t n;
    int n_threads;
} copy_arg;

static void copy_job(void *arg)
{
    const copy_arg *c = arg;
    const int64_t part = 1 << 15;
#pragma omp parallel for num_threads(c->n_threads) schedule(static)
    for (int64_t i = 0; i < c->n; i += part)
        memcpy(c->to + i, c->from + i, (size_t)part * sizeof(float));
}

static double copy_speed(const bench *b, int64_t n)
{
    rc_mark mark = rc_arena_mark(b->mem);
    copy_arg c = {floats(b, n, 1), floats(b, n, 2), n, b->n_threads};
    double speed = 2.0 * (double)n * sizeof(float) / best_seconds(b, copy_job, &c);
    rc_arena_rewind(b->mem, mark);
    return speed;
}

static void measure_bounds(bench *b)
{
    b->peak_flops =
        2.0 * b->n_threads * FMA_STEPS * CHAINS * RC_VEC / best_seconds(b, fma_job, b);
    b->copy_bytes = copy_speed(b, (int64_t)1 << 26);
    b->cache_bytes = copy_speed(b, (int64_t)1 << 20);
    printf(
        "threads %d   peak %.1f GFLOP/s   copy %.1f GB/s DRAM, %.1f GB/s in 8 MB   GEMM %s\n",
        b->n_threads, b->peak_flops / 1e9, b->copy_bytes / 1e9, b->cache_bytes / 1e9,
        rc_gemm_name());
}

/* ---- kernels ---- */

typedef struct kernel_job {
    rc_call call;
    rc_kernel kernel;
} kernel_job;

static void kernel_run(void *arg)
{
    const kernel_job *j = arg;
    j->kernel(&j->call);
}

static bool is_wanted(const bench *b, const char *name)
{
    return !b->only || strstr(name, b->only);
}

static void print_flops(const bench *b, const char *name, double flops, double t)
{
    printf("%-34s %9.3f ms %8.1f GFLOP/s  %5.1f %% of peak\n", name, t * 1e3, flops / t / 1e9,
           100 * flops / t / b->peak_flops);
}

static void print_bytes(const bench *b, const char *name, double bytes, double t)
{
    printf("%-34s %9.3f ms %8.1f GB/s     %5.1f %% of copy in cache, %.1f %% of DRAM's\n", name,
           t * 1e3, bytes / t / 1e9, 100 * bytes / t / b->cache_bytes,
           100 * bytes / t / b->copy_bytes);
}

/* Times forward and backward; bytes > 0: a kernel that is bound by memory. */
static void bench_op(bench *b, const char *name, rc_op_kind kind, rc_call *call, double bytes)
{
    const rc_op_facts *facts = rc_op_find(kind);
    char label[64];
    call->n_threads = b->n_threads;
    for (int is_bwd = 0; is_bwd < 2; is_bwd++) {
        snprintf(label, sizeof label, "%s %s", name, is_bwd ? "backward" : "forward");
        if (!is_wanted(b, label))
            continue;
        int64_t (*ask)(const rc_op_attr *, rc_dtype, int) =
            is_bwd ? facts->bwd_scratch_bytes : facts->fwd_scratch_bytes;
        call->scratch = take(b, ask ? ask(call->attr, RC_F32, b->n_threads) : 0, 1);
        kernel_job j = {*call, is_bwd ? rc_backend_cpu.bwd[kind] : rc_backend_cpu.fwd[kind]};
        double t = best_seconds(b, kernel_run, &j);
        int64_t flops = is_bwd ? facts->bwd_flops(call->attr) : facts->fwd_flops(call->attr);
        if (bytes > 0)
            print_bytes(b, label, is_bwd ? 1.5 * bytes : bytes, t);
        else
            print_flops(b, label, (double)flops, t);
    }
}

static rc_operand matrix(const bench *b, int64_t rows, int64_t width)
{
    return (rc_operand){.at = floats(b, rows * width, 1), .ld = width, .dtype = RC_F32};
}

static rc_operand indices(const bench *b, int64_t n, int64_t below)
{
    int32_t *x = take(b, n, sizeof *x);
    const rc_random random = {.seed = 1};
    for (int64_t i = 0; i < n; i++)
        x[i] = (int32_t)(rc_random_bits(&random, (uint64_t)i) % (uint32_t)below);
    return (rc_operand){.at = x, .ld = n, .dtype = RC_I32};
}

typedef struct gemm_job {
    rc_gemm gemm;
    int n_threads;
} gemm_job;

static void gemm_run(void *arg)
{
    const gemm_job *j = arg;
    if (rc_gemm_run(&j->gemm, j->n_threads) != RC_FAULT_NONE)
        abort();
}

/* A linear op beside the library's bare product of its forward. */
static void bench_linear(bench *b, const char *name, int64_t n, int64_t in, int64_t out)
{
    rc_mark mark = rc_arena_mark(b->mem);
    const rc_op_attr attr = {.n = n, .in = in, .out = out};
    rc_call call = {.attr = &attr};
    if (is_wanted(b, name)) {
        call.in[0] = matrix(b, n, in);
        call.in[1] = matrix(b, out, in);
        call.in[2] = matrix(b, 1, out);
        call.out[0] = call.d_out = matrix(b, n, out);
        call.d_in[0] = matrix(b, n, in);
        call.d_in[1] = matrix(b, out, in);
        call.d_in[2] = matrix(b, 1, out);
        call.d_in[1].is_added = true;
        gemm_job j = {{.is_b_transposed = true,
                       .m = n,
                       .n = out,
                       .k = in,
                       .alpha = 1,
                       .a = call.in[0].at,
                       .lda = in,
                       .b = call.in[1].at,
                       .ldb = in,
                       .c = call.out[0].at,
                       .ldc = out},
                      b->n_threads};
        print_flops(b, "  library, forward product alone", 2.0 * (double)(n * in * out),
                    best_seconds(b, gemm_run, &j));
        bench_op(b, name, RC_OP_linear, &call, 0);
    }
    rc_arena_rewind(b->mem, mark);
}

/* Queries, keys and values inside one buffer, as the QKV product leaves them. */
static void bench_attention(bench *b, const char *name, rc_op_attr attr)
{
    rc_mark mark = rc_arena_mark(b->mem);
    const int64_t q = attr.a * attr.d, k = attr.g * attr.d;
    rc_call call = {.attr = &attr};
    attr.n = attr.s * attr.b;
    attr.scale = 0.125;
    attr.is_causal = true;
    if (is_wanted(b, name)) {
        rc_operand qkv = matrix(b, attr.n, q + 2 * k), d_qkv = matrix(b, attr.n, q + 2 * k);
        for (int i = 0; i < 3; i++) {
            int64_t at = i == 0 ? 0 : q + (i - 1) * k;
            call.in[i] = (rc_operand){(float *)qkv.at + at, qkv.ld, RC_F32, false};
            call.d_in[i] = (rc_operand){(float *)d_qkv.at + at, qkv.ld, RC_F32, false};
        }
        call.out[0] = matrix(b, attr.n, q);
        call.out[1] = matrix(b, 1, attr.n * attr.a);
        call.d_out = matrix(b, attr.n, q);
        bench_op(b, name, RC_OP_attention, &call, 0);
    }
    rc_arena_rewind(b->mem, mark);
}

static void bench_unfused(bench *b, const char *name, rc_op_attr attr)
{
    rc_mark mark = rc_arena_mark(b->mem);
    const int64_t q = attr.a * attr.d, square = attr.b * attr.a * attr.s * attr.s;
    attr.n = attr.s * attr.b;
    attr.scale = 0.125;
    attr.is_causal = true;
    if (is_wanted(b, name)) {
        rc_operand p = matrix(b, 1, square), dp = matrix(b, 1, square);
        rc_operand x = matrix(b, attr.n, q), dx = matrix(b, attr.n, q),
                   o = matrix(b, attr.n, q);
        rc_call scores = {
            .attr = &attr, .in = {x, o}, .out = {p}, .d_in = {dx, dx}, .d_out = dp};
        rc_call context = {
            .attr = &attr, .in = {p, x}, .out = {o}, .d_in = {dp, dx}, .d_out = o};
        rc_call soft = {.attr = &attr, .in = {p}, .out = {p}, .d_in = {dp}, .d_out = dp};
        bench_op(b, "unfused scores", RC_OP_attn_scores, &scores, 0);
        bench_op(b, "unfused softmax", RC_OP_softmax, &soft, 8.0 * (double)square);
        bench_op(b, "unfused context", RC_OP_attn_context, &context, 0);
    }
    rc_arena_rewind(b->mem, mark);
}

static void bench_rows(bench *b, int64_t n, int64_t h, int64_t f, int64_t V)
{
    rc_mark mark = rc_arena_mark(b->mem);
    const double row = 4.0 * (double)(n * h);
    rc_operand x = matrix(b, n, h), y = matrix(b, n, h), w = matrix(b, 1, h);
    rc_operand dx = matrix(b, n, h), dw = matrix(b, 1, h), stats = matrix(b, 1, n);
    rc_operand wide = matrix(b, n, 2 * f), d_wide = matrix(b, n, 2 * f),
               narrow = matrix(b, n, f);
    rc_op_attr norm = {.n = n, .groups = 1, .h = h, .eps = 1e-5};
    rc_call call = {.attr = &norm,
                    .in = {x, w, w},
                    .out = {y, stats, stats},
                    .d_in = {dx, dw, dw},
                    .d_out = y};
    bench_op(b, "layernorm", RC_OP_layernorm, &call, 2 * row);
    call =
        (rc_call){.attr = &norm, .in = {x, w}, .out = {y, stats}, .d_in = {dx, dw}, .d_out = y};
    bench_op(b, "rmsnorm", RC_OP_rmsnorm, &call, 2 * row);
    for (rc_act act = RC_ACT_GELU_TANH; act <= RC_ACT_SQUARED_RELU; act++) {
        static const char *const names[] = {"gelu_tanh", "gelu", "silu", "relu",
                                            "squared_relu"};
        rc_op_attr attr = {.n = n, .f = f, .act = act};
        rc_operand in = wide;
        in.ld = f;
        call = (rc_call){
            .attr = &attr, .in = {in}, .out = {narrow}, .d_in = {d_wide}, .d_out = narrow};
        bench_op(b, names[act], RC_OP_activation, &call, 8.0 * (double)(n * f));
    }
    rc_op_attr gated = {.n = n, .f = f, .act = RC_ACT_SILU, .is_gated = true};
    call = (rc_call){
        .attr = &gated, .in = {wide}, .out = {narrow}, .d_in = {d_wide}, .d_out = narrow};
    bench_op(b, "gated silu", RC_OP_activation, &call, 12.0 * (double)(n * f));
    for (int i = 0; i < 2; i++) {
        rc_op_attr attr = {.n = n, .h = h, .p = i ? 0.1 : 0};
        call = (rc_call){
            .attr = &attr, .in = {x, y, w}, .out = {dx}, .d_in = {dx, y, dw}, .d_out = y};
        bench_op(b, i ? "bias_dropout_add p=0.1" : "bias_dropout_add", RC_OP_bias_dropout_add,
                 &call, 3 * row);
    }
    rc_op_attr rope = {.s = 256,
                       .b = n / 256,
                       .n = n,
                       .groups = h / 64,
                       .d = 64,
                       .rotary_dim = 64,
                       .rotary_base = 10000};
    call = (rc_call){.attr = &rope, .in = {x}, .out = {x}, .d_in = {x}, .d_out = x};
    bench_op(b, "rope in place", RC_OP_rope, &call, 2 * row);
    rc_op_attr loss = {.n = n, .V = V, .loss_scale = 1};
    rc_operand logits = matrix(b, n, V);
    call = (rc_call){.attr = &loss,
                     .in = {logits, indices(b, n, V)},
                     .out = {matrix(b, 1, 1), stats},
                     .d_in = {logits}};
    bench_op(b, "cross_entropy", RC_OP_cross_entropy, &call, 4.0 * (double)(n * V));
    rc_op_attr embed = {.n = n, .s = 256, .b = n / 256, .h = h, .V = V};
    rc_operand table = matrix(b, V, h);
    call = (rc_call){.attr = &embed,
                     .in = {indices(b, n, V), table, {0}},
                     .out = {y},
                     .d_in = {{0}, table, {0}},
                     .d_out = y};
    call.d_in[1].is_added = true;
    bench_op(b, "embedding", RC_OP_embedding, &call, 2 * row);
    rc_arena_rewind(b->mem, mark);
}

typedef struct optimizer_job {
    rc_adamw adamw;
    void *scratch;
    int n_threads;
} optimizer_job;

static void adamw_run(void *arg)
{
    const optimizer_job *j = arg;
    rc_cpu_adamw(&j->adamw, j->n_threads);
}

static void squares_run(void *arg)
{
    const optimizer_job *j = arg;
    volatile double sum = rc_cpu_sum_squares(j->adamw.g, j->adamw.n, j->scratch, j->n_threads);
    (void)sum;
}

static void bench_optimizer(bench *b, int64_t n)
{
    rc_mark mark = rc_arena_mark(b->mem);
    optimizer_job j = {.adamw = {.p = floats(b, n, 1),
                                 .m = floats(b, n, 2),
                                 .v = take(b, n, 4),
                                 .g = floats(b, n, 3),
                                 .n = n,
                                 .g_scale = 1,
                                 .lr = 1e-4,
                                 .weight_decay = 0.1,
                                 .beta1 = 0.9,
                                 .beta2 = 0.95,
                                 .eps = 1e-8,
                                 .step = 3},
                       .scratch = take(b, rc_cpu_sum_squares_scratch_bytes(), 1),
                       .n_threads = b->n_threads};
    if (is_wanted(b, "adamw"))
        print_bytes(b, "adamw, 11 M", 28.0 * (double)n, best_seconds(b, adamw_run, &j));
    if (is_wanted(b, "sum of squares"))
        print_bytes(b, "sum of squares, 11 M", 4.0 * (double)n,
                    best_seconds(b, squares_run, &j));
    rc_arena_rewind(b->mem, mark);
}

int main(int argc, char **argv)
{
    bench b = {.mem = rc_arena_open(),
               .n_threads = argc > 1 ? atoi(argv[1]) : omp_get_max_threads(),
               .budget = argc > 2 ? atof(argv[2]) : 0.2,
               .only = argc > 3 ? argv[3] : NULL};
    if (!b.mem || b.n_threads < 1 || rc_team_open(b.n_threads, NULL) != RC_OK ||
        rc_gemm_open(b.n_threads, NULL) != RC_OK)
        return 2;
    measure_bounds(&b);
    bench_linear(&b, "linear 2048 x 384 x 1152", 2048, 384, 1152);
    bench_linear(&b, "linear 2048 x 384 x 384", 2048, 384, 384);
    bench_linear(&b, "linear 2048 x 384 x 1536", 2048, 384, 1536);
    bench_linear(&b, "linear 2048 x 1536 x 384", 2048, 1536, 384);
    bench_attention(&b, "attention s=256 b=8 a=6",
                    (rc_op_attr){.s = 256, .b = 8, .a = 6, .g = 6, .d = 64});
    bench_attention(&b, "attention s=256 b=8 a=6 p=0.1",
                    (rc_op_attr){.s = 256, .b = 8, .a = 6, .g = 6, .d = 64, .p = 0.1});
    bench_attention(&b, "attention s=1024 b=2 a=6",
                    (rc_op_attr){.s = 1024, .b = 2, .a = 6, .g = 6, .d = 64});
    bench_attention(&b, "attention s=1024 b=1 a=8 g=2 d=128",
                    (rc_op_attr){.s = 1024, .b = 1, .a = 8, .g = 2, .d = 128});
    bench_attention(&b, "attention s=512 b=1 a=32 d=128",
                    (rc_op_attr){.s = 512, .b = 1, .a = 32, .g = 32, .d = 128});
    bench_attention(&b, "attention s=4096 b=1 a=4",
                    (rc_op_attr){.s = 4096, .b = 1, .a = 4, .g = 4, .d = 64});
    bench_attention(&b, "attention s=16384 b=1 a=2",
                    (rc_op_attr){.s = 16384, .b = 1, .a = 2, .g = 2, .d = 64});
    bench_unfused(&b, "unfused", (rc_op_attr){.s = 256, .b = 8, .a = 6, .g = 6, .d = 64});
    bench_rows(&b, 2048, 384, 1536, 256);
    bench_optimizer(&b, 11000000);
    rc_arena_close(b.mem);
    return 0;
}
