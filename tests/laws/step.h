/* step.h — one run under a law: opened with overrides, fed with samples, its state copied out.
 *
 * The laws of a step call the executor only through step_micro, step_eval and step_update.
 */
#ifndef RC_TESTS_STEP_H
#define RC_TESTS_STEP_H

#include "law.h"

#include <math.h>

enum { LAW_MOST_TOKENS = 1024 };

/* Single precision: what is rounded once is off by at most this share. */
static const double law_unit = 1.0 / (1 << 24);

/* How a law wants its run; zeros mean none, fused, one thread, one micro-batch, seed 0. */
typedef struct law_options {
    const char *words[8]; /* over the model's own */
    const char *core, *setting;
    int n_threads, n_micro;
    uint64_t seed;
    bool is_poisoned;
} law_options;

typedef struct law_run {
    rc_arena *mem;
    const rc_graph *graph;
    rc_run *run;
} law_run;

static inline law_run law_open(const law_model *model, const law_options *options)
{
    rc_error err = {0};
    law_model mixed = *model;
    law_run out = {.mem = rc_arena_open()};
    int n = 0;
    while (mixed.words[n])
        n++;
    for (int i = 0; i < 8 && options->words[i]; i++)
        mixed.words[n++] = options->words[i];
    out.graph = law_graph(&mixed, options->core ? options->core : "fused", out.mem);
    rc_run_options opened = {.seed = options->seed,
                             .n_micro_batches = options->n_micro ? options->n_micro : 1,
                             .is_poisoned = options->is_poisoned};
    rc_schedule *schedule =
        law_schedule(out.graph, options->setting ? options->setting : "none",
                     options->n_threads ? options->n_threads : 1, out.mem);
    law_check(rc_run_open(schedule, &opened, &out.run, &err), &err);
    rc_run_init_weights(out.run);
    return out;
}

static inline void law_close(law_run *of)
{
    rc_run_close(of->run);
    rc_arena_close(of->mem);
}

/* Tokens and targets of one micro-batch. */
typedef struct law_batch {
    int32_t tokens[LAW_MOST_TOKENS], targets[LAW_MOST_TOKENS];
} law_batch;

/* Samples first, first + 1, ... of an endless set; the same whatever the batch's size. */
static inline void law_fill(const rc_graph *graph, int first, law_batch *batch)
{
    const rc_dims *dims = &graph->dims;
    assert_true(dims->b * dims->s <= LAW_MOST_TOKENS);
    for (int64_t i = 0; i < dims->b * dims->s; i++) {
        uint32_t x = (uint32_t)(first * dims->s + i) * 2654435761u;
        x = (x ^ x >> 15) * 2246822519u;
        batch->tokens[i] = (int32_t)((x >> 4) % (uint32_t)dims->W);
        batch->targets[i] = (int32_t)((x >> 13) % (uint32_t)dims->W);
    }
}

static inline double step_micro(const law_run *of, const law_batch *batch, int64_t step,
                                int micro)
{
    return law_micro(of->run, batch->tokens, batch->targets, step, micro);
}

static inline double step_eval(const law_run *of, const law_batch *batch)
{
    rc_error err = {0};
    rc_batch fed = {.tokens = batch->tokens, .targets = batch->targets};
    double loss;
    law_check(rc_run_eval(of->run, &fed, &loss, &err), &err);
    return loss;
}

/* Gives the norm before clipping. */
static inline double step_update(const law_run *of, const rc_update *update)
{
    return law_update(of->run, update);
}

typedef enum law_part { LAW_WEIGHT, LAW_GRAD, LAW_MOMENT1, LAW_MOMENT2, LAW_N_PARTS } law_part;

static inline float *law_at(const rc_run_param *param, law_part part)
{
    void *const at[] = {param->weight, param->grad, param->moment1, param->moment2};
    return at[part];
}

static inline int64_t law_count(const law_run *of)
{
    int n_params;
    int64_t n = 0;
    const rc_run_param *params = rc_run_params(of->run, &n_params);
    for (int i = 0; i < n_params; i++)
        n += params[i].tensor.n_elem;
    return n;
}

/* One part of every parameter, one behind another; lives as long as the run. */
static inline float *law_copy(const law_run *of, law_part part)
{
    int n_params;
    float *to;
    rc_error err = {0};
    const rc_run_param *params = rc_run_params(of->run, &n_params);
    law_check(RC_NEW(of->mem, &to, law_count(of), &err), &err);
    int64_t at = 0;
    for (int i = 0; i < n_params; i++) {
        memcpy(to + at, law_at(&params[i], part), (size_t)params[i].tensor.bytes);
        at += params[i].tensor.n_elem;
    }
    return to;
}

/* Weights, gradients and both moments of two runs of one model are the same bits. */
static inline void law_need_same(const law_run *a, const law_run *b, const char *name)
{
    static const char *const parts[] = {"weights", "gradients", "first moments",
                                        "second moments"};
    int64_t n = law_count(a);
    assert_int_equal(n, law_count(b));
    for (int part = 0; part < LAW_N_PARTS; part++) {
        const float *x = law_copy(a, (law_part)part), *y = law_copy(b, (law_part)part);
        for (int64_t i = 0; i < n; i++)
            if (memcmp(&x[i], &y[i], sizeof *x) != 0)
                fail_msg("%s: of the %s, number %lld is %.9g and %.9g", name, parts[part],
                         (long long)i, (double)x[i], (double)y[i]);
    }
}

#endif
