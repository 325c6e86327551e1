/* bench_estimate.c — the memory of a large Megatron job, and the plan of one.
 *
 * The limits are what a person waits for without noticing: 10 ms for every rank of DeepSeek-V3 on 2,048 and on 16,384
 * GPUs, 50 ms for every setting of 128 layers over 16 stages; beside it stands the plan of DeepSeek-V3, which has more labels. Processor time, the median of several runs.
 */
#define _POSIX_C_SOURCE 200809L
#include <recompute/estimate.h>
#include <recompute/read.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { N_RUNS = 15 };

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void must(rc_code code, const rc_error *err)
{
    if (code == RC_OK)
        return;
    fprintf(stderr, "%s\n", err->msg);
    exit(70);
}

static const rc_config *read_config(const char *const *words, size_t n, rc_arena *mem)
{
    rc_error err = {0};
    rc_inputs said;
    rc_config *cfg;
    must(rc_inputs_read(words, n, mem, &said, &err), &err);
    must(rc_config_make(said.at, said.n, mem, &cfg, &err), &err);
    return cfg;
}

static int upwards(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void report(const char *what, double *seconds, double limit_ms)
{
    qsort(seconds, N_RUNS, sizeof *seconds, upwards);
    const double ms = 1e3 * seconds[N_RUNS / 2];
    printf("%-48s %8.2f ms, limit %.0f ms, ratio %.2f\n", what, ms, limit_ms, ms / limit_ms);
}

static void bench_ranks(const char *what, const char *const *words, size_t n)
{
    double seconds[N_RUNS];
    for (int i = 0; i < N_RUNS; i++) {
        rc_arena *mem = rc_arena_open();
        rc_error err = {0};
        rc_estimate *estimate;
        const rc_estimate_request request = {.cfg = read_config(words, n, mem),
                                             .profile = RC_PROFILE_MEGATRON_TE};
        const double start = cpu_seconds();
        must(rc_estimate_make(&request, mem, &estimate, &err), &err);
        seconds[i] = cpu_seconds() - start;
        rc_arena_close(mem);
    }
    report(what, seconds, 10);
}

static void bench_plan(const char *what, const char *const *words, size_t n)
{
    double seconds[N_RUNS];
    int n_settings = 0;
    for (int i = 0; i < N_RUNS; i++) {
        rc_arena *mem = rc_arena_open();
        rc_error err = {0};
        rc_choices *choices;
        const rc_estimate_request request = {.cfg = read_config(words, n, mem),
                                             .profile = RC_PROFILE_MEGATRON_TE};
        const double start = cpu_seconds();
        must(rc_choices_make(&request, 0, mem, &choices, &err), &err);
        seconds[i] = cpu_seconds() - start;
        n_settings = choices->n;
        rc_arena_close(mem);
    }
    report(what, seconds, 50);
    printf("%48s %8d settings\n", "", n_settings);
}

int main(void)
{
#define DEEPSEEK(world)                                                                        \
    "--model", "deepseek-v3", "model.bf16=true", "train.micro_batch_size=1",                   \
        "train.global_batch_size=15360", "model.pipeline_model_parallel_size=16",              \
        "model.expert_model_parallel_size=64", "model.num_layers_in_first_pipeline_stage=3",   \
        "model.num_layers_in_last_pipeline_stage=2",                                           \
        "optimizer.use_distributed_optimizer=true", "engine.world_size=" world
    static const char *const small[] = {DEEPSEEK("2048")}, *const large[] = {DEEPSEEK("16384")};
    static const char *const deep[] = {"--model",
                                       "llama3-70b",
                                       "model.num_layers=128",
                                       "model.bf16=true",
                                       "train.micro_batch_size=1",
                                       "train.global_batch_size=1024",
                                       "model.tensor_model_parallel_size=8",
                                       "model.sequence_parallel=true",
                                       "model.pipeline_model_parallel_size=16",
                                       "engine.world_size=2048"};
    bench_ranks("DeepSeek-V3 on 2,048 GPUs, every rank", small, sizeof small / sizeof *small);
    bench_ranks("DeepSeek-V3 on 16,384 GPUs, every rank", large, sizeof large / sizeof *large);
    bench_plan("128 layers over 16 stages, every setting", deep, sizeof deep / sizeof *deep);
    bench_plan("DeepSeek-V3 on 2,048 GPUs, every setting", small, sizeof small / sizeof *small);
    return 0;
}
