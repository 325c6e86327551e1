/* rope.c — rotary position embedding (Su et al. 2021) of every head.
 *
 * Pair i of position t turns by t * rate_i (op/rope.h). Angles come without a stored table:
 * position t = block * RC_ROPE_STRIDE + rest, and the turn by t is the turn by the block's first
 * position times the turn by the rest, both in double: a few thousand sines per call, exact to
 * 1e-15 at any length. Backward turns the other way. Both grow or shrink by the amplitude.
 */
#include "exec/cpu/kernels.h"

#include "exec/cpu/operand.h"
#include "op/rope.h"
#include "op/scratch.h"

#include <math.h>
#include <omp.h>

/* cos | sin of one position, `half` each, times the amplitude; sin also times the direction. */
RC_CLONES static void turn_row(float *turn, const double *coarse, const double *fine,
                               int64_t half, const double times[2])
{
#pragma omp simd
    for (int64_t i = 0; i < half; i++) {
        double c = coarse[i] * fine[i] - coarse[half + i] * fine[half + i];
        double s = coarse[half + i] * fine[i] + coarse[i] * fine[half + i];
        turn[i] = (float)(times[0] * c);
        turn[half + i] = (float)(times[1] * s);
    }
}

typedef struct rope_row {
    float *to;
    const float *from; /* may be `to` */
    const float *turn;
    int64_t n_heads, d, half;
    bool is_interleaved, is_added;
} rope_row;

RC_INLINE void rotate_pairs(const rope_row *row, int64_t head, int64_t step, int64_t other)
{
    const float *x = row->from + head * row->d, *c = row->turn, *s = row->turn + row->half;
    float *y = row->to + head * row->d;
#pragma omp simd
    for (int64_t i = 0; i < row->half; i++) {
        float x0 = x[i * step], x1 = x[i * step + other];
        rc_put(&y[i * step], x0 * c[i] - x1 * s[i], row->is_added);
        rc_put(&y[i * step + other], x0 * s[i] + x1 * c[i], row->is_added);
    }
    for (int64_t i = 2 * row->half; i < row->d && (y != x || row->is_added); i++)
        rc_put(&y[i], x[i], row->is_added);
}

RC_CLONES static void rotate_row(const rope_row *row)
{
    for (int64_t head = 0; head < row->n_heads; head++)
        if (row->is_interleaved)
            rotate_pairs(row, head, 2, 1);
        else
            rotate_pairs(row, head, 1, row->half);
}

static void angle_row(double *to, int64_t position, int64_t half, const rc_op_attr *attr)
{
    for (int64_t i = 0; i < half; i++) {
        double rate = rc_rope_rate(attr, i);
        to[i] = cos((double)position * rate);
        to[half + i] = sin((double)position * rate);
    }
}

/* Tables in scratch: RC_ROPE_STRIDE rows of rests, then one row per block. */
static void angle_tables(const rc_call *call, double *table, int64_t half)
{
    const int64_t n_rows = rc_rope_table_rows(call->attr->s);
#pragma omp parallel for num_threads(call->n_threads) schedule(static)
    for (int64_t r = 0; r < n_rows; r++) {
        int64_t position = r < RC_ROPE_STRIDE ? r : (r - RC_ROPE_STRIDE) * RC_ROPE_STRIDE;
        angle_row(table + r * 2 * half, position, half, call->attr);
    }
}

/* to (+)= from, turned by each row's position in `direction` */
static void rope(const rc_call *call, const rc_operand *to, const rc_operand *from,
                 double direction)
{
    const rc_op_attr *attr = call->attr;
    const int64_t half = attr->rotary_dim / 2;
    const double amplitude = rc_rope_amplitude(attr);
    const double times[2] = {amplitude, direction * amplitude};
    double *table = call->scratch;
    float *turns = (float *)(table + rc_pad16(rc_rope_table_rows(attr->s) * 2 * half));
    angle_tables(call, table, half);
#pragma omp parallel for num_threads(call->n_threads) schedule(static)
    for (int64_t r = 0; r < attr->n; r++) {
        int64_t position = r % attr->s;
        float *turn = turns + omp_get_thread_num() * rc_pad16(2 * half);
        const double *fine = table + position % RC_ROPE_STRIDE * 2 * half;
        const double *coarse = table + (RC_ROPE_STRIDE + position / RC_ROPE_STRIDE) * 2 * half;
        rope_row row = {.to = rc_f32_row(to, r),
                        .from = rc_f32_row(from, r),
                        .turn = turn,
                        .n_heads = attr->groups,
                        .d = attr->d,
                        .half = half,
                        .is_interleaved = attr->is_rotary_interleaved,
                        .is_added = to->is_added};
        turn_row(turn, coarse, fine, half, times);
        rotate_row(&row);
    }
}

void rc_cpu_rope_fwd(const rc_call *call)
{
    rope(call, &call->out[0], &call->in[0], 1);
}

void rc_cpu_rope_bwd(const rc_call *call)
{
    if (call->d_in[0].at)
        rope(call, &call->d_in[0], &call->d_out, -1);
}
