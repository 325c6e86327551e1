/* attention_bwd.c — backward of fused attention, from q, k, v, o and the log-sum-exp of each row.
 *
 *     p  = exp(scale q k^T - lse)      dp = do v^T      delta = rowsum(do o)
 *     ds = p (keep dp - delta)         dv = (keep p)^T do
 *     dq = scale ds k                  dk = scale ds^T q                    (Dao et al. 2022)
 *
 * A pair of blocks is worked on with the keys in the vector lanes: rows of p and ds are queries.
 * Per key block, k^T and v^T are made once; queries and do are copied as they are. dk^T and dv^T [d, key] stay in cache over all query blocks and over the heads of
 * the group, in order.
 *
 * One unit of work is a (sequence, group), which adds to dq over its key blocks in order. Where
 * there are too few of these for the threads, dk and dv are made by key block and dq by query
 * block in a second pass: 7 products for 5, the same sums in the same order, so the same bits.
 */
#include "exec/cpu/attention.h"

#include "exec/cpu/fmath.h"
#include "exec/cpu/kernels.h"
#include "exec/cpu/tile.h"

#include <omp.h>
#include <string.h>

typedef struct bwd_block {
    const rc_call *call;
    const float *delta;       /* [b,a,s] */
    float *key_t, *value_t;   /* [pad16 d, RC_BLOCK]; key_t times scale */
    float *key;               /* [RC_BLOCK, pad16 d] times scale */
    float *query, *dout;      /* [RC_BLOCK, pad16 d] */
    float *dkey_t, *dvalue_t; /* [pad16 d, RC_BLOCK] */
    float *dquery;            /* [RC_BLOCK, pad16 d]: where d is not whole vectors */
    float *p, *ds, *keep;     /* [RC_BLOCK queries, RC_BLOCK keys] */
    bool wants_dq, wants_dkv;
} bwd_block;

static bwd_block block_at(const rc_call *call)
{
    const int64_t d = call->attr->d, wide = rc_pad16(d) * RC_BLOCK;
    float *delta = call->scratch;
    float *part = delta + rc_pad16(call->attr->n * call->attr->a) +
                  omp_get_thread_num() * rc_attention_bwd_part(d);
    float *squares = part + 8 * wide;
    return (bwd_block){.call = call,
                       .delta = delta,
                       .key_t = part,
                       .value_t = part + wide,
                       .key = part + 2 * wide,
                       .dkey_t = part + 3 * wide,
                       .dvalue_t = part + 4 * wide,
                       .dquery = part + 5 * wide,
                       .query = part + 6 * wide,
                       .dout = part + 7 * wide,
                       .p = squares,
                       .ds = squares + RC_BLOCK * RC_BLOCK,
                       .keep = squares + 2 * RC_BLOCK * RC_BLOCK};
}

RC_CLONES static float dot(const float *a, const float *b, int64_t n)
{
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static void delta_token(const rc_call *call, int64_t token)
{
    const rc_op_attr *attr = call->attr;
    float *delta = call->scratch;
    const int64_t seq = token / attr->s, i = token % attr->s;
    for (int64_t head = 0; head < attr->a; head++)
        delta[(seq * attr->a + head) * attr->s + i] =
            dot(rc_f32_row(&call->d_out, token) + head * attr->d,
                rc_f32_row(&call->out[0], token) + head * attr->d, attr->d);
}

/* One row of a block: p, ds (and p dropped), for n keys; the rest of the vectors become 0. */
typedef struct bwd_row {
    float *p, *ds;
    const float *keep; /* NULL: no dropout */
    float lse, delta;
} bwd_row;

RC_CLONES static void row_gradient(const bwd_row *row, int64_t n, int64_t n_padded)
{
    float *p = row->p, *ds = row->ds;
    const float *keep = row->keep;
    const float lse = row->lse, delta = row->delta;
    if (keep) {
#pragma omp simd
        for (int64_t j = 0; j < n; j++) {
            float prob = rc_exp(p[j] - lse);
            ds[j] = prob * (ds[j] * keep[j] - delta);
            p[j] = prob * keep[j];
        }
    } else {
#pragma omp simd
        for (int64_t j = 0; j < n; j++) {
            float prob = rc_exp(p[j] - lse);
            ds[j] = prob * (ds[j] - delta);
            p[j] = prob;
        }
    }
    for (int64_t j = n; j < n_padded; j++)
        p[j] = ds[j] = 0;
}

/* Where a pair of blocks lies. On the diagonal, query row i has keys 0..i, in whole vectors. */
typedef struct bwd_pair {
    int64_t seq, head, query, key; /* first query and key */
    int64_t n_queries, n_keys, piece;
    bool is_diagonal;
} bwd_pair;

static int64_t piece_vecs(const bwd_pair *pair, int64_t i)
{
    return pair->is_diagonal ? i / RC_VEC + 1 : rc_ceil_div(pair->n_keys, RC_VEC);
}

/* to[query, key] = x[query, d] key_or_value^T */
static void square_product(const bwd_pair *pair, float *to, const float *x, int64_t ld,
                           const float *transposed, int64_t d)
{
    for (int64_t i = 0; i < pair->n_queries; i += pair->piece) {
        rc_tile tile = {.m = rc_min(pair->piece, pair->n_queries - i),
                        .n_vec = piece_vecs(pair, i),
                        .k = d,
                        .a = x + i * ld,
                        .a_row = ld,
                        .a_step = 1,
                        .b = transposed,
                        .ldb = RC_BLOCK,
                        .c = to + i * RC_BLOCK,
                        .ldc = RC_BLOCK};
        rc_cpu_tile(&tile);
    }
}

/* to[d, key] += x^T[d, query] square[query, key] */
static void key_product(const bwd_pair *pair, float *to, const float *x, int64_t ld,
                        const float *square, int64_t d)
{
    for (int64_t i = 0; i < pair->n_queries; i += pair->piece) {
        rc_tile tile = {.m = d,
                        .n_vec = piece_vecs(pair, i),
                        .k = rc_min(pair->piece, pair->n_queries - i),
                        .a = x + i * ld,
                        .a_row = 1,
                        .a_step = ld,
                        .b = square + i * RC_BLOCK,
                        .ldb = RC_BLOCK,
                        .c = to,
                        .ldc = RC_BLOCK,
                        .is_added = true};
        rc_cpu_tile(&tile);
    }
}

/* dq[query, d] (+)= ds[query, key] key[key, d]; the first key block starts dq. */
static void query_product(const bwd_block *block, const bwd_pair *pair)
{
    const rc_operand *dq = &block->call->d_in[0];
    const rc_op_attr *attr = block->call->attr;
    const int64_t d = attr->d, pad = rc_pad16(d);
    const bool is_direct = d == pad, is_added = dq->is_added || pair->key > 0;
    float *to = rc_attention_head(dq, attr, pair->seq, pair->head, pair->query);
    for (int64_t i = 0; i < pair->n_queries; i += pair->piece) {
        rc_tile tile = {.m = rc_min(pair->piece, pair->n_queries - i),
                        .n_vec = pad / RC_VEC,
                        .k = rc_min(pair->n_keys, piece_vecs(pair, i) * RC_VEC),
                        .a = block->ds + i * RC_BLOCK,
                        .a_row = RC_BLOCK,
                        .a_step = 1,
                        .b = block->key,
                        .ldb = pad,
                        .c = is_direct ? to + i * dq->ld : block->dquery + i * pad,
                        .ldc = is_direct ? dq->ld : pad,
                        .is_added = is_direct && is_added};
        rc_cpu_tile(&tile);
    }
    for (int64_t i = 0; !is_direct && i < pair->n_queries; i++)
        for (int64_t dim = 0; dim < d; dim++)
            rc_put(&to[i * dq->ld + dim], block->dquery[i * pad + dim], is_added);
}

static void pair_probabilities(const bwd_block *block, const bwd_pair *pair)
{
    const rc_call *call = block->call;
    const rc_op_attr *attr = call->attr;
    const rc_random random = {.seed = call->seed, .draw = call->draw, .id = attr->random_id};
    const int64_t at = (pair->seq * attr->a + pair->head) * attr->s + pair->query;
    const float *lse = rc_f32(&call->out[1]) + at, *delta = block->delta + at;
    for (int64_t i = 0; i < pair->n_queries; i++) {
        bwd_row row = {.p = block->p + i * RC_BLOCK,
                       .ds = block->ds + i * RC_BLOCK,
                       .lse = lse[i],
                       .delta = delta[i]};
        int64_t n = pair->is_diagonal ? rc_min(i + 1, pair->n_keys) : pair->n_keys;
        if (attr->p > 0) {
            uint64_t counter =
                rc_attention_counter(attr, pair->seq, pair->head, pair->query + i);
            row.keep = block->keep;
            rc_random_keep(&random, counter * 4 + (uint64_t)pair->key, n, attr->p, block->keep);
        }
        row_gradient(&row, n, piece_vecs(pair, i) * RC_VEC);
    }
}

static void pair_gradients(const bwd_block *block, const bwd_pair *pair)
{
    const rc_call *call = block->call;
    const rc_op_attr *attr = call->attr;
    const int64_t d = attr->d, pad = rc_pad16(d), ld = call->in[0].ld;
    const float *q = rc_attention_head(&call->in[0], attr, pair->seq, pair->head, pair->query);
    const float *d_o =
        rc_attention_head(&call->d_out, attr, pair->seq, pair->head, pair->query);
    rc_attention_prefetch(d_o, call->d_out.ld, pair->n_queries, d);
    rc_attention_copy(block->query, q, ld, pair->n_queries, d);
    square_product(pair, block->p, block->query, pad, block->key_t, d);
    rc_attention_copy(block->dout, d_o, call->d_out.ld, pair->n_queries, d);
    square_product(pair, block->ds, block->dout, pad, block->value_t, d);
    pair_probabilities(block, pair);
    if (pair->query + 2 * RC_BLOCK <= attr->s)
        rc_attention_prefetch(q + RC_BLOCK * ld, ld, RC_BLOCK, d);
    if (block->wants_dkv) {
        key_product(pair, block->dvalue_t, block->dout, pad, block->p, d);
        key_product(pair, block->dkey_t, block->query, pad, block->ds, d);
    }
    if (block->wants_dq)
        query_product(block, pair);
}

static bwd_pair pair_at(const rc_op_attr *attr, int64_t seq, int64_t head, int64_t query,
                        int64_t key)
{
    const bool is_diagonal = attr->is_causal && query == key;
    return (bwd_pair){.seq = seq,
                      .head = head,
                      .query = query,
                      .key = key,
                      .n_queries = rc_min(RC_BLOCK, attr->s - query),
                      .n_keys = rc_min(RC_BLOCK, attr->s - key),
                      .piece = is_diagonal ? RC_VEC : RC_BLOCK,
                      .is_diagonal = is_diagonal};
}

/* The key block at `first` of a group: transposed copies, and a padded one for dq. */
static void load_keys(const bwd_block *block, int64_t seq, int64_t group, int64_t first)
{
    const rc_call *call = block->call;
    const rc_op_attr *attr = call->attr;
    const int64_t d = attr->d, pad = rc_pad16(d), n = rc_min(RC_BLOCK, attr->s - first);
    const float *k = rc_attention_head(&call->in[1], attr, seq, group, first);
    const float *v = rc_attention_head(&call->in[2], attr, seq, group, first);
    const float scale = (float)attr->scale;
    rc_attention_transpose(block->key_t, k, call->in[1].ld, n, d, scale);
    rc_attention_transpose(block->value_t, v, call->in[2].ld, n, d, 1);
    for (int64_t j = 0; block->wants_dq && j < n; j++) {
        for (int64_t dim = 0; dim < d; dim++)
            block->key[j * pad + dim] = k[j * call->in[1].ld + dim] * scale;
        for (int64_t dim = d; dim < pad; dim++)
            block->key[j * pad + dim] = 0;
    }
}

/* to[key, d] (+)= by * from^T */
static void store_keys(const rc_operand *to, const rc_op_attr *attr, float *rows,
                       const float *from, int64_t n, float by)
{
    rc_transpose part = {.rows = attr->d,
                         .cols = n,
                         .from = from,
                         .ld_from = RC_BLOCK,
                         .to = rows,
                         .ld_to = to->ld,
                         .by = by,
                         .is_added = to->is_added};
    rc_cpu_transpose(&part);
}

/* One key block against every query of its group's heads that sees it. */
static void key_block(const bwd_block *block, int64_t seq, int64_t group, int64_t key)
{
    const rc_call *call = block->call;
    const rc_op_attr *attr = call->attr;
    const int64_t per_group = attr->a / attr->g, n = rc_min(RC_BLOCK, attr->s - key);
    const size_t bytes = (size_t)(attr->d * RC_BLOCK) * sizeof(float);
    load_keys(block, seq, group, key);
    memset(block->dkey_t, 0, bytes);
    memset(block->dvalue_t, 0, bytes);
    for (int64_t i = 0; i < per_group; i++)
        for (int64_t query = attr->is_causal ? key : 0; query < attr->s; query += RC_BLOCK) {
            bwd_pair pair = pair_at(attr, seq, group * per_group + i, query, key);
            pair_gradients(block, &pair);
        }
    if (call->d_in[1].at)
        store_keys(&call->d_in[1], attr,
                   rc_attention_head(&call->d_in[1], attr, seq, group, key), block->dkey_t, n,
                   (float)attr->scale);
    if (call->d_in[2].at)
        store_keys(&call->d_in[2], attr,
                   rc_attention_head(&call->d_in[2], attr, seq, group, key), block->dvalue_t, n,
                   1);
}

static void by_group(const rc_call *call, bool wants_dq)
{
    const rc_op_attr *attr = call->attr;
#pragma omp parallel for num_threads(call->n_threads) schedule(dynamic, 1)
    for (int64_t unit = 0; unit < attr->b * attr->g; unit++) {
        bwd_block block = block_at(call);
        block.wants_dq = wants_dq;
        block.wants_dkv = true;
        for (int64_t key = 0; key < attr->s; key += RC_BLOCK)
            key_block(&block, unit / attr->g, unit % attr->g, key);
    }
}

static void by_key_block(const rc_call *call)
{
    const rc_op_attr *attr = call->attr;
    const int64_t n_blocks = rc_ceil_div(attr->s, RC_BLOCK), n_units = attr->b * attr->g;
#pragma omp parallel for num_threads(call->n_threads) schedule(dynamic, 1)
    for (int64_t unit = 0; unit < n_units * n_blocks; unit++) {
        bwd_block block = block_at(call);
        block.wants_dkv = true;
        int64_t group = unit % n_units;
        key_block(&block, group / attr->g, group % attr->g, unit / n_units * RC_BLOCK);
    }
}

static void by_query_block(const rc_call *call)
{
    const rc_op_attr *attr = call->attr;
    const int64_t n_blocks = rc_ceil_div(attr->s, RC_BLOCK), n_heads = attr->b * attr->a;
#pragma omp parallel for num_threads(call->n_threads) schedule(dynamic, 1)
    for (int64_t unit = 0; unit < n_heads * n_blocks; unit++) {
        bwd_block block = block_at(call);
        block.wants_dq = true;
        const int64_t query = (n_blocks - 1 - unit / n_heads) * RC_BLOCK;
        const int64_t seq = unit % n_heads / attr->a, head = unit % n_heads % attr->a;
        const int64_t end = attr->is_causal ? query + 1 : attr->s;
        for (int64_t key = 0; key < end; key += RC_BLOCK) {
            bwd_pair pair = pair_at(attr, seq, head, query, key);
            load_keys(&block, seq, head / (attr->a / attr->g), key);
            pair_gradients(&block, &pair);
        }
    }
}

void rc_cpu_attention_bwd(const rc_call *call)
{
    const rc_op_attr *attr = call->attr;
    const bool wants_dq = call->d_in[0].at != NULL;
    const bool wants_dkv = call->d_in[1].at || call->d_in[2].at;
    const int64_t n_units = attr->b * attr->g;
    const int64_t n_slots = rc_ceil_div(n_units, call->n_threads) * call->n_threads;
#pragma omp parallel for num_threads(call->n_threads) schedule(static)
    for (int64_t token = 0; token < attr->n; token++)
        delta_token(call, token);
    /* Whole groups while their idle threads cost less than 7 products for 5. */
    if (wants_dkv && n_units * 7 >= n_slots * 5) {
        by_group(call, wants_dq);
        return;
    }
    if (wants_dkv)
        by_key_block(call);
    if (wants_dq)
        by_query_block(call);
}
