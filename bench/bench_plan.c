/* bench_plan.c — finding a recompute setting for a budget, and pricing all of them.
 *
 * The peer is the plain way in the same run: a schedule of every setting, each one placed, as
 * rc_schedule_make does it for a run. Processor time. The plain way is measured on the first
 * settings and counted for all where it would take minutes.
 */
#define _POSIX_C_SOURCE 200809L
#include <recompute/passes.h>
#include <recompute/plan.h>
#include <recompute/read.h>

#include "plan/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

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

static const rc_graph *graph_of(int n_layers, rc_arena *mem)
{
    char layers[40];
    snprintf(layers, sizeof layers, "model.num_layers=%d", n_layers);
    const char *words[] = {layers,
                           "model.hidden_size=256",
                           "model.num_attention_heads=4",
                           "model.seq_length=256",
                           "model.vocab_size=1000",
                           "train.micro_batch_size=2"};
    rc_error err = {0};
    rc_doc *doc;
    rc_config *cfg;
    must(rc_override_read(words, sizeof words / sizeof *words, mem, &doc, &err), &err);
    rc_input input = {doc, RC_FROM_OVERRIDE};
    must(rc_config_make(&input, 1, mem, &cfg, &err), &err);
    rc_passes passes = {.cfg = cfg};
    must(rc_passes_make(&passes, RC_NOUN_GRAPH, mem, &err), &err);
    return passes.graph;
}

/* Seconds for all settings, from at most `n_most` of them. */
static double plain_seconds(const rc_graph *graph, size_t n_most, rc_arena *mem)
{
    rc_error err = {0};
    rc_setting *settings;
    size_t n, n_run = 0, step;
    must(rc_plan_settings(graph, mem, &settings, &n, &err), &err);
    step = n > n_most ? n / n_most : 1;
    double start = cpu_seconds();
    for (size_t i = 0; i < n; i += step, n_run++) {
        rc_mark mark = rc_arena_mark(mem);
        rc_passes passes = {.graph = graph, .setting = &settings[i], .n_threads = 2};
        must(rc_passes_make(&passes, RC_NOUN_SCHEDULE, mem, &err), &err);
        rc_arena_rewind(mem, mark);
    }
    return (cpu_seconds() - start) / (double)n_run * (double)n;
}

static void print(const char *name, double seconds, double limit, double plain)
{
    printf("%-40s %8.3f s   limit %4.1f s   every setting placed %8.3f s   ratio %6.1f\n", name,
           seconds, limit, plain, plain / seconds);
}

static void bench(int n_layers, double limit_find, double limit_all)
{
    char name[60];
    rc_error err = {0};
    rc_arena *mem = rc_arena_open();
    const rc_graph *graph = graph_of(n_layers, mem);
    double plain = plain_seconds(graph, 24, mem);
    rc_candidate found;
    double start = cpu_seconds();
    must(rc_plan_find(graph, 2, 1, mem, &found, &err), &err);
    snprintf(name, sizeof name, "no setting fits, %d layers", n_layers);
    print(name, cpu_seconds() - start, limit_find, plain);
    start = cpu_seconds();
    must(rc_plan_find(graph, 2, found.peak_bytes + found.peak_bytes / 10, mem, &found, &err),
         &err);
    snprintf(name, sizeof name, "the cheapest that fits, %d layers", n_layers);
    print(name, cpu_seconds() - start, limit_find, plain);
    if (limit_all > 0) {
        rc_plan *plan;
        start = cpu_seconds();
        must(rc_plan_make(graph, 2, 0, mem, &plan, &err), &err);
        snprintf(name, sizeof name, "every setting priced, %d layers", n_layers);
        print(name, cpu_seconds() - start, limit_all, plain);
    }
    rc_arena_close(mem);
}

int main(void)
{
    bench(128, 0.2, 1.0);
    bench(1000, 1.0, 0);
    return 0;
}
