/* layout/peak.c — the heaviest moment of a pipeline's step.
 *
 * takes  rc_pipeline, and what each of its chunks weighs
 * gives  the peak, and what was held then
 *
 * Within a run every step adds a forward of one chunk and drops a backward of another, so what is held changes by the
 * same amount each step and is heaviest at one end of the run: its first and its last step are looked at. A period
 * leaves what is held as it was, so one of them stands for all.
 */
#include <recompute/pipeline.h>

#include "base/num.h"

#include <string.h>

typedef struct walk {
    const rc_chunk_weight *weights;
    bool is_side_by_side;
    /* [n_chunks] held before the run, and what they weigh */
    int64_t *n_held, held;
    /* [n_chunks] at the peak so far */
    int64_t *n_at_peak;
    size_t n_chunks;
    rc_pipeline_peak *peak;
    rc_error *err;
} walk;

static rc_code too_heavy(const walk *w)
{
    return RC_FAIL(w->err, RC_E_RANGE, RC_NOWHERE, "what a stage holds passes 2^63-1");
}

/* What is held behind `n_fwd` forwards and `n_bwd` backwards of the run. Where they are of one chunk they may be many
 * more than are held at once, and only their difference counts; else every backward is of what was held before. */
static rc_code find_held(const walk *w, const rc_pipeline_run *run, int64_t n_fwd,
                         int64_t n_bwd, int64_t *out)
{
    const int f = run->fwd_chunk, b = run->bwd_chunk;
    int64_t more = 0;
    *out = w->held;
    if (f == b) {
        n_fwd -= n_bwd;
        n_bwd = 0;
    }
    if (n_bwd > 0)
        *out -= w->weights[b].held * n_bwd;
    if (n_fwd > 0 && !rc_mul(w->weights[f].held, n_fwd, &more))
        return too_heavy(w);
    return rc_add(*out, more, out) ? RC_OK : too_heavy(w);
}

static void keep(walk *w, const rc_pipeline_run *run, int64_t n_fwd, int64_t n_bwd)
{
    memcpy(w->n_at_peak, w->n_held, w->n_chunks * sizeof *w->n_held);
    if (run->fwd_chunk >= 0)
        w->n_at_peak[run->fwd_chunk] += n_fwd;
    if (run->bwd_chunk >= 0)
        w->n_at_peak[run->bwd_chunk] -= n_bwd;
}

/* Is the forward that ends, or the backward that begins, behind so many of either, the heaviest moment? */
static rc_code look(walk *w, const rc_pipeline_run *run, int64_t n_fwd, int64_t n_bwd,
                    bool is_backward)
{
    const int f = run->fwd_chunk, b = run->bwd_chunk;
    const bool has_both = b >= 0 && w->is_side_by_side;
    int64_t weight;
    RC_TRY(find_held(w, run, n_fwd, n_bwd, &weight));
    if (!is_backward && !rc_add(weight, w->weights[f].fwd_extra, &weight))
        return too_heavy(w);
    if ((is_backward || has_both) && !rc_add(weight, w->weights[b].bwd_extra, &weight))
        return too_heavy(w);
    if (weight <= w->peak->weight)
        return RC_OK;
    w->peak->weight = weight;
    w->peak->event =
        is_backward
            ? (rc_pipeline_event){.is_backward = true,
                                  .chunk = b,
                                  .micro_batch = run->bwd_micro + n_bwd}
            : (rc_pipeline_event){.chunk = f, .micro_batch = run->fwd_micro + n_fwd - 1};
    keep(w, run, n_fwd, n_bwd);
    return RC_OK;
}

/* Step `at` of the run: first its forward, then its backward. */
static rc_code look_at_step(walk *w, const rc_pipeline_run *run, int64_t at)
{
    const bool has_fwd = run->fwd_chunk >= 0, has_bwd = run->bwd_chunk >= 0;
    if (has_fwd)
        RC_TRY(look(w, run, at + 1, has_bwd ? at : 0, false));
    if (has_bwd)
        RC_TRY(look(w, run, has_fwd ? at + 1 : 0, at, true));
    return RC_OK;
}

static rc_code walk_run(walk *w, const rc_pipeline_run *run)
{
    const int64_t n_fwd = run->fwd_chunk >= 0 ? run->n : 0;
    const int64_t n_bwd = run->bwd_chunk >= 0 ? run->n : 0;
    RC_TRY(look_at_step(w, run, 0));
    if (run->n > 1)
        RC_TRY(look_at_step(w, run, run->n - 1));
    RC_TRY(find_held(w, run, n_fwd, n_bwd, &w->held));
    if (n_fwd)
        w->n_held[run->fwd_chunk] += n_fwd;
    if (n_bwd)
        w->n_held[run->bwd_chunk] -= n_bwd;
    return RC_OK;
}

rc_code rc_pipeline_find_peak(const rc_pipeline *pipeline, const rc_chunk_weight *weights,
                              rc_arena *mem, rc_pipeline_peak *out, rc_error *err)
{
    walk w = {.weights = weights,
              .is_side_by_side = pipeline->is_side_by_side,
              .n_chunks = (size_t)pipeline->n_chunks,
              .peak = out,
              .err = err};
    *out = (rc_pipeline_peak){.weight = -1};
    RC_TRY(RC_NEW(mem, &w.n_at_peak, pipeline->n_chunks, err));
    RC_TRY(RC_NEW(mem, &w.n_held, pipeline->n_chunks, err));
    for (int i = 0; i < pipeline->n_runs; i++)
        RC_TRY(walk_run(&w, &pipeline->runs[i]));
    out->n_held = w.n_at_peak;
    return RC_OK;
}
