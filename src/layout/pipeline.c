/* layout/pipeline.c — the order in which a stage runs its chunks and micro-batches.
 *
 * takes  rc_layout: stages, chunks, micro-batches and how many of them a chunk runs in a row
 * gives  rc_pipeline: runs of steps, the steady state once
 * next   peak.c finds the heaviest moment
 *
 * Forwards have an order of their own, and backwards the same one with the chunks reversed: groups of G micro-batches,
 * each through chunk 0, then chunk 1 and so on; the last group may be smaller. A stage runs `w` forwards, then a forward
 * and the oldest backward by turns, then the backwards that are left:
 *
 *     forward   0 .. w-1 | w   w+1 .. total-1 |
 *     backward           | 0   1   ..         | .. total-1
 *
 * Within a chunk and a group micro-batches follow one another, so both orders are few runs whatever G is, and a pair of
 * them is a run as long as neither ends. Where all groups are full, both orders go on by G micro-batches every G * v
 * steps: that is the period.
 *
 * Source: Megatron-LM megatron/core/pipeline_parallel/schedules.py; Narayanan et al. 2021.
 */
#include <recompute/pipeline.h>

#include "base/num.h"

#include <inttypes.h>

/* One of the two orders: of n_micro micro-batches through v chunks, in groups. */
typedef struct order {
    int64_t n_micro, group;
    int v;
    bool is_reversed;
} order;

/* Where an order stands at a step, and steps until its run ends. */
typedef struct position {
    int chunk;
    int64_t micro, n_left;
} position;

static position find_position(const order *o, int64_t at)
{
    const int64_t in_full = o->n_micro / o->group * o->group;
    const int64_t n_full = in_full * o->v, of_group = o->group * o->v;
    const bool is_full = at < n_full;
    const int64_t group = is_full ? o->group : o->n_micro % o->group;
    const int64_t first = is_full ? at / of_group * o->group : in_full;
    const int64_t in_group = is_full ? at % of_group : at - n_full;
    const int chunk = (int)(in_group / group);
    return (position){.chunk = o->is_reversed ? o->v - 1 - chunk : chunk,
                      .micro = first + in_group % group,
                      .n_left = group - in_group % group};
}

static int64_t at_most(int64_t n, int64_t most)
{
    return n < most ? n : most;
}

typedef struct maker {
    rc_pipeline *out;
    order forwards, backwards;
    int64_t total;
    rc_pipeline_run *runs;
    size_t n_room;
    rc_arena *mem;
    rc_error *err;
} maker;

/* Forwards from `fwd` on and backwards from `bwd` on, `n` steps; -1: none of them. */
static rc_code add_steps(maker *m, int64_t fwd, int64_t bwd, int64_t n)
{
    while (n > 0) {
        position f = {.chunk = -1, .n_left = n}, b = f;
        if (fwd >= 0)
            f = find_position(&m->forwards, fwd);
        if (bwd >= 0)
            b = find_position(&m->backwards, bwd);
        const int64_t n_steps = at_most(n, at_most(f.n_left, b.n_left));
        RC_TRY(RC_GROW(m->mem, &m->runs, (size_t)m->out->n_runs, &m->n_room,
                       (size_t)m->out->n_runs + 1, m->err));
        m->runs[m->out->n_runs++] = (rc_pipeline_run){.fwd_chunk = f.chunk,
                                                      .fwd_micro = f.micro,
                                                      .bwd_chunk = b.chunk,
                                                      .bwd_micro = b.micro,
                                                      .n = n_steps};
        fwd += fwd >= 0 ? n_steps : 0;
        bwd += bwd >= 0 ? n_steps : 0;
        n -= n_steps;
    }
    return RC_OK;
}

/* Forwards before the first backward; a side-by-side step needs one more, so that its two halves are of
 * different micro-batches. Without a pipeline that is all there is (combined_1f1b.py). */
static int64_t find_warmup(const rc_layout *layout, int64_t stage, int64_t total)
{
    const rc_parallel *s = &layout->sizes;
    const int64_t n_behind = s->pp - stage - 1;
    int64_t n = n_behind;
    if (s->is_interleaved)
        n = 2 * n_behind + (s->vp - 1) * layout->micro_batch_group;
    return at_most(n + layout->overlaps_experts, total);
}

static rc_code make_runs(maker *m)
{
    rc_pipeline *out = m->out;
    const int64_t n_warmup = out->n_warmup, n_pairs = m->total - n_warmup;
    const int64_t group = m->forwards.group, period = group * out->n_chunks;
    const int64_t n_full = m->total / period * period;
    RC_TRY(add_steps(m, 0, -1, n_warmup));
    out->n_lead = out->n_runs;
    if (n_full - n_warmup >= period) {
        out->n_periods = (n_full - n_warmup) / period;
        out->period_micro_batches = group;
        RC_TRY(add_steps(m, n_warmup, 0, period));
        out->n_period = out->n_runs - out->n_lead;
    }
    const int64_t n_done = out->n_periods * period;
    RC_TRY(add_steps(m, n_warmup + n_done, n_done, n_pairs - n_done));
    return add_steps(m, -1, n_pairs, n_warmup);
}

rc_code rc_pipeline_make(const rc_layout *layout, int64_t stage, rc_arena *mem,
                         rc_pipeline **out, rc_error *err)
{
    const int64_t n_micro = layout->n_micro_batches;
    const int v = (int)layout->sizes.vp;
    RC_TRY(RC_NEW(mem, out, 1, err));
    /* one chunk takes them as they come: no group ends before the last */
    const order forwards = {
        .n_micro = n_micro, .group = v > 1 ? layout->micro_batch_group : n_micro, .v = v};
    maker m = {
        .out = *out, .forwards = forwards, .backwards = forwards, .mem = mem, .err = err};
    m.backwards.is_reversed = true;
    if (n_micro < 1)
        return RC_FAIL(err, RC_E_INPUT, RC_NOWHERE,
                       "a schedule needs micro-batches: give train.micro_batch_size");
    if (!rc_mul(n_micro, v, &m.total) || m.total > INT64_MAX / 2)
        return RC_FAIL(err, RC_E_RANGE, RC_NOWHERE,
                       "%" PRId64 " micro-batches through %d chunks", n_micro, v);
    **out = (rc_pipeline){.stage = stage,
                          .n_chunks = v,
                          .n_micro_batches = n_micro,
                          .n_warmup = find_warmup(layout, stage, m.total),
                          .is_side_by_side = layout->overlaps_experts};
    RC_TRY(make_runs(&m));
    (*out)->runs = m.runs;
    return rc_pipeline_verify(*out, mem, err);
}

/* --- what must hold */

#define BROKEN(err, ...) RC_FAIL((err), RC_E_BUG, RC_NOWHERE, __VA_ARGS__)

/* Micro-batches of each chunk that are through. */
typedef struct progress {
    int64_t *n_fwd, *n_bwd;
} progress;

/* A half of a run goes on where its chunk is. */
static rc_code verify_half(const rc_pipeline *pipeline, int chunk, int64_t micro, int64_t n,
                           int64_t *through, rc_error *err)
{
    if (chunk < 0)
        return RC_OK;
    if (chunk >= pipeline->n_chunks || micro != through[chunk] || n < 1)
        return BROKEN(err, "chunk %d goes on with micro-batch %" PRId64, chunk, micro);
    through[chunk] += n;
    return RC_OK;
}

/* In a step the forward comes first, so a backward may be of the micro-batch just before it. */
static rc_code verify_run(const rc_pipeline *pipeline, const rc_pipeline_run *run,
                          progress *through, rc_error *err)
{
    const int b = run->bwd_chunk;
    RC_TRY(verify_half(pipeline, run->fwd_chunk, run->fwd_micro, run->n, through->n_fwd, err));
    RC_TRY(verify_half(pipeline, b, run->bwd_micro, run->n, through->n_bwd, err));
    if (b >= 0 && through->n_bwd[b] > through->n_fwd[b])
        return BROKEN(err, "chunk %d runs micro-batch %" PRId64 " backward before forward", b,
                      through->n_fwd[b]);
    return RC_OK;
}

static rc_code verify_runs(const rc_pipeline *pipeline, progress *through, rc_error *err)
{
    for (int i = 0; i < pipeline->n_runs; i++) {
        RC_TRY(verify_run(pipeline, &pipeline->runs[i], through, err));
        if (i + 1 != pipeline->n_lead + pipeline->n_period)
            continue;
        for (int c = 0; c < pipeline->n_chunks && pipeline->n_periods > 1; c++) {
            through->n_fwd[c] += (pipeline->n_periods - 1) * pipeline->period_micro_batches;
            through->n_bwd[c] += (pipeline->n_periods - 1) * pipeline->period_micro_batches;
        }
    }
    for (int c = 0; c < pipeline->n_chunks; c++)
        if (through->n_fwd[c] != pipeline->n_micro_batches ||
            through->n_bwd[c] != pipeline->n_micro_batches)
            return BROKEN(
                err, "chunk %d runs %" PRId64 " forward and %" PRId64 " backward of %" PRId64,
                c, through->n_fwd[c], through->n_bwd[c], pipeline->n_micro_batches);
    return RC_OK;
}

rc_code rc_pipeline_verify(const rc_pipeline *pipeline, rc_arena *tmp, rc_error *err)
{
    const rc_mark mark = rc_arena_mark(tmp);
    progress through;
    RC_TRY(RC_NEW(tmp, &through.n_fwd, pipeline->n_chunks, err));
    RC_TRY(RC_NEW(tmp, &through.n_bwd, pipeline->n_chunks, err));
    rc_code code = verify_runs(pipeline, &through, err);
    rc_arena_rewind(tmp, mark);
    return code;
}
