/* estimate/chunk.c — cuts a model chunk into segments that are priced once each, and adds them up.
 *
 * takes  a chunk's runs of layers, a recompute setting
 * gives  pieces (a segment, how many in a row), what all retain, and where the most is alive
 * next   rank.c
 *
 * source  megatron/core/transformer/transformer_block.py, _checkpointed_forward: uniform makes groups of
 *         recompute_num_layers from the chunk's first layer on, the last may be shorter; block recomputes the
 *         first recompute_num_layers layers one by one, of every chunk
 */
#include "estimate/chunk.h"

#include "base/num.h"

typedef struct cutter {
    rc_segments *segments;
    const rc_chunk *chunk;
    rc_chunk_cost *out;
    rc_arena *mem;
    rc_error *err;
    /* the next layer: its run, and how many of that run are behind it */
    int run, done;
} cutter;

static rc_code add_piece(cutter *c, const rc_chunk *of, bool is_full, int n)
{
    rc_chunk_cost *out = c->out;
    int segment;
    RC_TRY(rc_segment_find(c->segments, of, is_full, c->mem, &segment, c->err));
    if (out->n_pieces > 0 && out->pieces[out->n_pieces - 1].segment == segment) {
        out->pieces[out->n_pieces - 1].n += n;
        return RC_OK;
    }
    RC_TRY(RC_GROW(c->mem, &out->pieces, (size_t)out->n_pieces, &out->n_room,
                   (size_t)out->n_pieces + 1, c->err));
    out->pieces[out->n_pieces++] = (rc_piece){segment, n};
    return RC_OK;
}

static bool is_at_end(const cutter *c)
{
    return c->run >= c->chunk->n_runs;
}

static int left_of_run(const cutter *c)
{
    return is_at_end(c) ? 0 : c->chunk->runs[c->run].n_layers - c->done;
}

static void skip(cutter *c, int n)
{
    c->done += n;
    if (c->done == c->chunk->runs[c->run].n_layers) {
        c->run++;
        c->done = 0;
    }
}

/* Layers one by one, at most so many. */
static rc_code cut_layers(cutter *c, bool is_full, int64_t most)
{
    while (!is_at_end(c) && most > 0) {
        const int left = left_of_run(c), n = most < left ? (int)most : left;
        const rc_layer_run one = {c->chunk->runs[c->run].kind, 1};
        RC_TRY(add_piece(c, &(rc_chunk){.runs = &one, .n_runs = 1}, is_full, n));
        skip(c, n);
        most -= n;
    }
    return RC_OK;
}

/* The next group of at most `size` layers, over the ends of runs. */
static rc_code cut_group(cutter *c, rc_layer_run *runs, int64_t size)
{
    rc_chunk group = {.runs = runs};
    while (!is_at_end(c) && size > 0) {
        const int left = left_of_run(c), n = size < left ? (int)size : left;
        runs[group.n_runs++] = (rc_layer_run){c->chunk->runs[c->run].kind, n};
        skip(c, n);
        size -= n;
    }
    return add_piece(c, &group, true, 1);
}

/* Whole groups inside a run are alike: one is cut, and counted so often. */
static rc_code cut_groups(cutter *c, int64_t size)
{
    rc_layer_run *runs;
    RC_TRY(RC_NEW(c->mem, &runs, c->chunk->n_runs, c->err));
    while (!is_at_end(c)) {
        const int n = (int)(left_of_run(c) / size);
        RC_TRY(cut_group(c, runs, size));
        if (n < 2)
            continue;
        c->out->pieces[c->out->n_pieces - 1].n += n - 1;
        skip(c, (int)((n - 1) * size));
    }
    return RC_OK;
}

static rc_code cut_all(cutter *c, const rc_setting *setting)
{
    if (setting->granularity == RC_GRANULARITY_FULL && setting->method == RC_METHOD_UNIFORM)
        return cut_groups(c, setting->num_layers);
    if (setting->granularity == RC_GRANULARITY_FULL)
        RC_TRY(cut_layers(c, true, setting->num_layers));
    return cut_layers(c, false, INT64_MAX);
}

/* Segments hand on what they receive, so the last of a row sees the most before it. */
static rc_code add_up(const cutter *c)
{
    rc_chunk_cost *out = c->out;
    for (int i = 0; i < out->n_pieces; i++) {
        const rc_piece *piece = &out->pieces[i];
        const rc_segment *s = &c->segments->at[piece->segment];
        int64_t row, before, fwd, bwd;
        if (!rc_mul(s->retained_bytes, piece->n, &row) ||
            !rc_add(out->retained_bytes, row - s->retained_bytes, &before) ||
            !rc_add(before, s->fwd_peak_bytes, &fwd) ||
            !rc_add(before, s->bwd_peak_bytes, &bwd) ||
            !rc_add(before, s->retained_bytes, &out->retained_bytes))
            return RC_FAIL(c->err, RC_E_RANGE, RC_NOWHERE,
                           "the activations of a model chunk pass 2^63-1 bytes");
        if (fwd > out->fwd.bytes)
            out->fwd = (rc_chunk_peak){fwd, before, i};
        if (bwd > out->bwd.bytes)
            out->bwd = (rc_chunk_peak){bwd, before, i};
    }
    return RC_OK;
}

rc_code rc_chunk_price(rc_segments *segments, const rc_setting *setting, const rc_chunk *chunk,
                       rc_arena *mem, rc_chunk_cost *out, rc_error *err)
{
    cutter c = {.segments = segments, .chunk = chunk, .out = out, .mem = mem, .err = err};
    *out = (rc_chunk_cost){.chunk = chunk};
    if (chunk->has_embedding)
        RC_TRY(add_piece(&c, &(rc_chunk){.has_embedding = true}, false, 1));
    RC_TRY(cut_all(&c, setting));
    if (chunk->has_loss)
        RC_TRY(add_piece(&c,
                         &(rc_chunk){.has_loss = true,
                                     .n_mtp = chunk->n_mtp,
                                     .mtp_runs = chunk->mtp_runs,
                                     .n_mtp_runs = chunk->n_mtp_runs},
                         false, 1));
    if (out->n_pieces == 0)
        RC_TRY(add_piece(&c, &(rc_chunk){.n_runs = 0}, false, 1));
    return add_up(&c);
}
