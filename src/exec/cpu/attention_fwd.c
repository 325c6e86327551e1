/* attention_fwd.c — fused attention: o = dropout(softmax(scale q k^T, causal)) v without an s x s
 * tensor (online softmax: Milakov and Gimelshein 2018; blocks: Dao et al. 2022).
 *
 * One unit of work is a block of RC_BLOCK queries of one head. Everything is held transposed, with
 * the queries in the vector lanes:
 *
 *     scores^T [key, query]  =  k [key, d]  (scale q)^T [d, query]
 *     o^T      [d, query]   +=  v^T [d, key]  p^T [key, query]
 *
 * so keys and values are read where they lie, element by element, the query block is transposed
 * once, and the softmax (running maximum m, sum l, correction of earlier blocks) never sums across
 * lanes. Key blocks above the diagonal are skipped; in the block on it, key rows 16 t.. use the
 * lanes 16 t.. only. Units share nothing, so the bits do not depend on the threads.
 */
#include "exec/cpu/attention.h"

#include "exec/cpu/fmath.h"
#include "exec/cpu/kernels.h"
#include "exec/cpu/tile.h"

#include <math.h>
#include <omp.h>
#include <string.h>

/* A score that counts as minus infinity; finite, so that differences stay numbers. */
static const float masked = -1e30f;

typedef struct fwd_block {
    float *query, *out;            /* [pad16 d, RC_BLOCK] */
    float *scores;                 /* [RC_BLOCK keys, RC_BLOCK queries] */
    float *most, *sum, *fix, *aux; /* [RC_BLOCK] */
} fwd_block;

void rc_attention_transpose(float *to, const float *from, int64_t ld, int64_t n_rows, int64_t d,
                            float by)
{
    rc_transpose part = {.rows = n_rows,
                         .cols = d,
                         .from = from,
                         .ld_from = ld,
                         .to = to,
                         .ld_to = RC_BLOCK,
                         .by = by};
    rc_cpu_transpose(&part);
    for (int64_t dim = 0; dim < d; dim++)
        for (int64_t i = n_rows; i < RC_BLOCK; i++)
            to[dim * RC_BLOCK + i] = 0;
}

/* Lanes of key row j on the diagonal start here; all lanes elsewhere. */
RC_INLINE int64_t first_lane(int64_t j, bool is_diagonal)
{
    return is_diagonal ? j / RC_VEC * RC_VEC : 0;
}

/* Masks the diagonal, updates m, turns scores into p and l; fix is what earlier sums and
 * outputs are multiplied by. */
RC_CLONES static void block_softmax(const fwd_block *block, int64_t n_keys, bool is_diagonal)
{
    float *most = block->most, *sum = block->sum, *fix = block->fix, *next = block->aux;
    for (int64_t i = 0; i < RC_BLOCK; i++)
        next[i] = most[i];
    for (int64_t j = 0; j < n_keys; j++) {
        float *row = block->scores + j * RC_BLOCK;
        int64_t first = first_lane(j, is_diagonal);
        for (int64_t i = first; is_diagonal && i < j; i++)
            row[i] = masked;
#pragma omp simd
        for (int64_t i = first; i < RC_BLOCK; i++)
            next[i] = row[i] > next[i] ? row[i] : next[i];
    }
#pragma omp simd
    for (int64_t i = 0; i < RC_BLOCK; i++) {
        fix[i] = rc_exp(most[i] - next[i]);
        sum[i] *= fix[i];
        most[i] = next[i];
    }
    for (int64_t j = 0; j < n_keys; j++) {
        float *row = block->scores + j * RC_BLOCK;
#pragma omp simd
        for (int64_t i = first_lane(j, is_diagonal); i < RC_BLOCK; i++) {
            row[i] = rc_exp(row[i] - next[i]);
            sum[i] += row[i];
        }
    }
}

RC_CLONES static void rescale(float *out, const float *fix, int64_t d)
{
    for (int64_t dim = 0; dim < d; dim++)
#pragma omp simd
        for (int64_t i = 0; i < RC_BLOCK; i++)
            out[dim * RC_BLOCK + i] *= fix[i];
}

RC_CLONES static void drop_lanes(float *row, const uint32_t *bits, uint32_t threshold,
                                 float scale)
{
#pragma omp simd
    for (int64_t i = 0; i < RC_BLOCK; i++)
        row[i] *= bits[i] < threshold ? 0.0f : scale;
}

/* Drops probabilities: four keys per counter, one counter per query lane. */
static void block_dropout(const rc_call *call, float *p, uint64_t counter, int64_t n_keys)
{
    const rc_random random = {
        .seed = call->seed, .draw = call->draw, .id = call->attr->random_id};
    const uint64_t step = (uint64_t)rc_ceil_div(call->attr->s, 4);
    const uint32_t threshold = rc_random_threshold(call->attr->p);
    const float scale = (float)(1.0 / (1.0 - call->attr->p));
    uint32_t bits[4][RC_RANDOM_LANES];
    for (int64_t j = 0; j < n_keys; j += 4) {
        rc_random_lanes(&random, counter + (uint64_t)j / 4, step, RC_BLOCK, bits);
        for (int64_t w = 0; w < 4 && j + w < n_keys; w++)
            drop_lanes(p + (j + w) * RC_BLOCK, bits[w], threshold, scale);
    }
}

/* Runs `tile` over key rows first..first+m (scores) or over key steps (output) in pieces whose
 * lanes are the ones the diagonal leaves. */
static void scores_product(const fwd_block *block, const float *k, int64_t ld, int64_t d,
                           int64_t n_keys, bool is_diagonal)
{
    const int64_t piece = is_diagonal ? RC_VEC : RC_BLOCK;
    for (int64_t j = 0; j < n_keys; j += piece) {
        int64_t lane = first_lane(j, is_diagonal);
        rc_tile tile = {.m = rc_min(piece, n_keys - j),
                        .n_vec = RC_BLOCK_VECS - lane / RC_VEC,
                        .k = d,
                        .a = k + j * ld,
                        .a_row = ld,
                        .a_step = 1,
                        .b = block->query + lane,
                        .ldb = RC_BLOCK,
                        .c = block->scores + j * RC_BLOCK + lane,
                        .ldc = RC_BLOCK};
        rc_cpu_tile(&tile);
    }
}

static void output_product(const fwd_block *block, const float *v, int64_t ld, int64_t d,
                           int64_t n_keys, bool is_diagonal)
{
    const int64_t piece = is_diagonal ? RC_VEC : RC_BLOCK;
    for (int64_t j = 0; j < n_keys; j += piece) {
        int64_t lane = first_lane(j, is_diagonal);
        rc_tile tile = {.m = d,
                        .n_vec = RC_BLOCK_VECS - lane / RC_VEC,
                        .k = rc_min(piece, n_keys - j),
                        .a = v + j * ld,
                        .a_row = 1,
                        .a_step = ld,
                        .b = block->scores + j * RC_BLOCK + lane,
                        .ldb = RC_BLOCK,
                        .c = block->out + lane,
                        .ldc = RC_BLOCK,
                        .is_added = true};
        rc_cpu_tile(&tile);
    }
}

/* Writes o = o^T / l and lse = m + log l. */
static void block_finish(const rc_call *call, const fwd_block *block, float *o, float *lse,
                         int64_t n_queries)
{
    const int64_t d = call->attr->d;
    rc_transpose part = {.rows = d,
                         .cols = n_queries,
                         .from = block->out,
                         .ld_from = RC_BLOCK,
                         .to = o,
                         .ld_to = call->out[0].ld,
                         .by = 1};
    for (int64_t i = 0; i < RC_BLOCK; i++)
        block->fix[i] = 1.0f / block->sum[i];
    rescale(block->out, block->fix, d);
    rc_cpu_transpose(&part);
    for (int64_t i = 0; i < n_queries; i++)
        lse[i] = block->most[i] + logf(block->sum[i]);
}

static fwd_block block_at(float *scratch, int64_t d)
{
    const int64_t wide = rc_pad16(d) * RC_BLOCK;
    float *vectors = scratch + 2 * wide + RC_BLOCK * RC_BLOCK;
    return (fwd_block){.query = scratch,
                       .out = scratch + wide,
                       .scores = scratch + 2 * wide,
                       .most = vectors,
                       .sum = vectors + RC_BLOCK,
                       .fix = vectors + 2 * RC_BLOCK,
                       .aux = vectors + 3 * RC_BLOCK};
}

static void attention_unit(const rc_call *call, int64_t seq, int64_t head, int64_t first)
{
    const rc_op_attr *attr = call->attr;
    const int64_t s = attr->s, d = attr->d, group = head / (attr->a / attr->g);
    const int64_t n_queries = rc_min(RC_BLOCK, s - first);
    const int64_t end = attr->is_causal ? rc_min(s, first + RC_BLOCK) : s;
    fwd_block block =
        block_at((float *)call->scratch + omp_get_thread_num() * rc_attention_fwd_part(d), d);
    rc_attention_transpose(block.query, rc_attention_head(&call->in[0], attr, seq, head, first),
                           call->in[0].ld, n_queries, d, (float)attr->scale);
    memset(block.out, 0, (size_t)(d * RC_BLOCK) * sizeof *block.out);
    for (int64_t i = 0; i < RC_BLOCK; i++) {
        block.most[i] = masked;
        block.sum[i] = 0;
    }
    for (int64_t key = 0; key < end; key += RC_BLOCK) {
        const int64_t n_keys = rc_min(RC_BLOCK, s - key);
        const bool is_diagonal = attr->is_causal && key == first;
        const float *k = rc_attention_head(&call->in[1], attr, seq, group, key);
        const float *v = rc_attention_head(&call->in[2], attr, seq, group, key);
        scores_product(&block, k, call->in[1].ld, d, n_keys, is_diagonal);
        block_softmax(&block, n_keys, is_diagonal);
        if (key > 0)
            rescale(block.out, block.fix, d);
        if (attr->p > 0)
            block_dropout(call, block.scores,
                          rc_attention_counter(attr, seq, head, first) + (uint64_t)key / 4,
                          n_keys);
        output_product(&block, v, call->in[2].ld, d, n_keys, is_diagonal);
    }
    block_finish(call, &block, rc_attention_head(&call->out[0], attr, seq, head, first),
                 rc_f32(&call->out[1]) + (seq * attr->a + head) * s + first, n_queries);
}

void rc_cpu_attention_fwd(const rc_call *call)
{
    const rc_op_attr *attr = call->attr;
    const int64_t n_blocks = rc_ceil_div(attr->s, RC_BLOCK), n_heads = attr->b * attr->a;
    /* Causal units cost from one block to all: the longest first, whoever is free takes the next. */
#pragma omp parallel for num_threads(call->n_threads) schedule(dynamic, 1)
    for (int64_t unit = 0; unit < n_blocks * n_heads; unit++) {
        int64_t block = n_blocks - 1 - unit / n_heads, head = unit % n_heads;
        attention_unit(call, head / attr->a, head % attr->a, block * RC_BLOCK);
    }
}
