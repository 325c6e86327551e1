/* attention.c — rope and attention, fused and unfused, plainly.
 *
 * The fused formulas recompute a score wherever they need one: slow, and without scratch.
 */
#include "exec/naive/naive.h"

#include "op/rope.h"

#include <math.h>

/* One pair of a head turned by its position: y0 = x0 cos - x1 sin, y1 = x0 sin + x1 cos, both times
 * the amplitude. */
static void rotate_head(const rc_call *call, const rc_operand *to, const rc_operand *from,
                        int64_t row, int64_t head, double direction)
{
    const rc_op_attr *attr = call->attr;
    const int64_t half = attr->rotary_dim / 2, at = head * attr->d;
    const double r = rc_rope_amplitude(attr);
    for (int64_t i = 0; i < half; i++) {
        double angle = direction * (double)(row % attr->s) * rc_rope_rate(attr, i);
        int64_t first = at + (attr->is_rotary_interleaved ? 2 * i : i);
        int64_t second = first + (attr->is_rotary_interleaved ? 1 : half);
        double x0 = rc_get(from, row, first), x1 = rc_get(from, row, second);
        rc_set(to, row, first, r * (x0 * cos(angle) - x1 * sin(angle)));
        rc_set(to, row, second, r * (x0 * sin(angle) + x1 * cos(angle)));
    }
    for (int64_t i = 2 * half; i < attr->d && to->at != from->at; i++)
        rc_set(to, row, at + i, rc_get(from, row, at + i));
}

static void rotate(const rc_call *call, const rc_operand *to, const rc_operand *from,
                   double direction)
{
    for (int64_t row = 0; row < call->attr->n && to->at; row++)
        for (int64_t head = 0; head < call->attr->groups; head++)
            rotate_head(call, to, from, row, head, direction);
}

void rc_naive_rope_fwd(const rc_call *call)
{
    rotate(call, &call->out[0], &call->in[0], 1);
}

void rc_naive_rope_bwd(const rc_call *call)
{
    rotate(call, &call->d_in[0], &call->d_out, -1);
}

/* Heads are numbered over sequences too: head = seq * a + head of the sequence. Row of position i
 * and column of the head's first element, for queries and for the keys of its group. */
static int64_t row_of(const rc_op_attr *attr, int64_t head, int64_t i)
{
    return head / attr->a * attr->s + i;
}

static int64_t query_col(const rc_op_attr *attr, int64_t head)
{
    return head % attr->a * attr->d;
}

static int64_t key_col(const rc_op_attr *attr, int64_t head)
{
    return head % attr->a / (attr->a / attr->g) * attr->d;
}

/* Elements [row of i, col..] of x times [row of j, col..] of y, summed over the head. */
static double head_dot(const rc_op_attr *attr, const rc_operand *x, int64_t x_row,
                       int64_t x_col, const rc_operand *y, int64_t y_at)
{
    double sum = 0;
    for (int64_t i = 0; i < attr->d; i++)
        sum += rc_get(x, x_row, x_col + i) * (double)((const float *)y->at)[y_at + i];
    return sum;
}

static int64_t key_at(const rc_op_attr *attr, const rc_operand *k, int64_t head, int64_t j)
{
    return row_of(attr, head, j) * k->ld + key_col(attr, head);
}

static double score_at(const rc_call *call, int64_t head, int64_t i, int64_t j)
{
    const rc_op_attr *attr = call->attr;
    return attr->scale * head_dot(attr, &call->in[0], row_of(attr, head, i),
                                  query_col(attr, head), &call->in[1],
                                  key_at(attr, &call->in[1], head, j));
}

static int64_t n_seen(const rc_op_attr *attr, int64_t i)
{
    return attr->is_causal ? i + 1 : attr->s;
}

/* The mask's rows are padded to whole counters of four keys (random.h). */
static double keep_at(const rc_call *call, int64_t head, int64_t i, int64_t j)
{
    const rc_op_attr *attr = call->attr;
    return rc_naive_keep(call, (head * attr->s + i) * ((attr->s + 3) / 4 * 4) + j);
}

static double row_lse(const rc_call *call, int64_t head, int64_t i)
{
    double most = -INFINITY, sum = 0;
    for (int64_t j = 0; j < n_seen(call->attr, i); j++)
        most = fmax(most, score_at(call, head, i, j));
    for (int64_t j = 0; j < n_seen(call->attr, i); j++)
        sum += exp(score_at(call, head, i, j) - most);
    return most + log(sum);
}

enum { PART = 64 }; /* elements of a head summed at once, on the stack */

void rc_naive_attention_fwd(const rc_call *call)
{
    const rc_op_attr *attr = call->attr;
    const rc_operand *v = &call->in[2];
    for (int64_t head = 0; head < attr->b * attr->a; head++)
        for (int64_t i = 0; i < attr->s; i++) {
            double lse = row_lse(call, head, i);
            for (int64_t first = 0; first < attr->d; first += PART) {
                double o[PART] = {0};
                int64_t n = attr->d - first < PART ? attr->d - first : PART;
                for (int64_t j = 0; j < n_seen(attr, i); j++) {
                    double p = exp(score_at(call, head, i, j) - lse);
                    p *= keep_at(call, head, i, j);
                    for (int64_t t = 0; t < n; t++)
                        o[t] += p * rc_get(v, row_of(attr, head, j),
                                           key_col(attr, head) + first + t);
                }
                for (int64_t t = 0; t < n; t++)
                    rc_set(&call->out[0], row_of(attr, head, i),
                           query_col(attr, head) + first + t, o[t]);
            }
            rc_set(&call->out[1], 0, head * attr->s + i, lse);
        }
}

/* ds of (i, j), before the scale; *kept is the probability after dropout. */
static double score_grad(const rc_call *call, int64_t head, int64_t i, int64_t j, double *kept)
{
    const rc_op_attr *attr = call->attr;
    const rc_operand *d_o = &call->d_out, *v = &call->in[2], *o = &call->out[0];
    const int64_t row = row_of(attr, head, i), col = query_col(attr, head);
    double keep = keep_at(call, head, i, j);
    double p = exp(score_at(call, head, i, j) - rc_get(&call->out[1], 0, head * attr->s + i));
    double dp = head_dot(attr, d_o, row, col, v, key_at(attr, v, head, j));
    double delta = head_dot(attr, d_o, row, col, o, row * o->ld + col);
    *kept = p * keep;
    return p * (keep * dp - delta);
}

static void query_grad(const rc_call *call, int64_t head, int64_t i, int64_t first)
{
    const rc_op_attr *attr = call->attr;
    const int64_t n = attr->d - first < PART ? attr->d - first : PART;
    double dq[PART] = {0}, kept;
    for (int64_t j = 0; j < n_seen(attr, i); j++) {
        double ds = score_grad(call, head, i, j, &kept);
        for (int64_t t = 0; t < n; t++)
            dq[t] += ds * rc_get(&call->in[1], row_of(attr, head, j),
                                 key_col(attr, head) + first + t);
    }
    for (int64_t t = 0; t < n; t++)
        rc_set(&call->d_in[0], row_of(attr, head, i), query_col(attr, head) + first + t,
               attr->scale * dq[t]);
}

/* Elements first.. of key j of the group whose first head is `lead`. */
static void key_grad(const rc_call *call, int64_t lead, int64_t j, int64_t first)
{
    const rc_op_attr *attr = call->attr;
    const int64_t n = attr->d - first < PART ? attr->d - first : PART;
    double dk[PART] = {0}, dv[PART] = {0}, kept;
    for (int64_t head = lead; head < lead + attr->a / attr->g; head++)
        for (int64_t i = attr->is_causal ? j : 0; i < attr->s; i++) {
            const int64_t row = row_of(attr, head, i), col = query_col(attr, head) + first;
            double ds = score_grad(call, head, i, j, &kept);
            for (int64_t t = 0; t < n; t++) {
                dk[t] += ds * rc_get(&call->in[0], row, col + t);
                dv[t] += kept * rc_get(&call->d_out, row, col + t);
            }
        }
    for (int64_t t = 0; t < n; t++) {
        const int64_t row = row_of(attr, lead, j), col = key_col(attr, lead) + first + t;
        rc_set(&call->d_in[1], row, col, attr->scale * dk[t]);
        rc_set(&call->d_in[2], row, col, dv[t]);
    }
}

void rc_naive_attention_bwd(const rc_call *call)
{
    const rc_op_attr *attr = call->attr;
    for (int64_t first = 0; first < attr->d; first += PART) {
        for (int64_t head = 0; head < attr->b * attr->a; head++)
            for (int64_t i = 0; i < attr->s; i++)
                query_grad(call, head, i, first);
        for (int64_t lead = 0; lead < attr->b * attr->a; lead += attr->a / attr->g)
            for (int64_t j = 0; j < attr->s; j++)
                key_grad(call, lead, j, first);
    }
}

/* Square [b,a,s,s]: row head * s + i, column j, whatever the operand's ld. */
static double square_get(const rc_call *call, const rc_operand *x, int64_t head, int64_t i,
                         int64_t j)
{
    const int64_t s = call->attr->s;
    return (double)((const float *)x->at)[(head * s + i) * s + j];
}

static void square_set(const rc_call *call, const rc_operand *x, int64_t row, int64_t j,
                       double value)
{
    rc_set(x, 0, row * call->attr->s + j, value);
}

void rc_naive_attn_scores_fwd(const rc_call *call)
{
    const int64_t s = call->attr->s;
    for (int64_t r = 0; r < call->attr->b * call->attr->a * s; r++)
        for (int64_t j = 0; j < s; j++)
            square_set(call, &call->out[0], r, j, score_at(call, r / s, r % s, j));
}

/* to of the group of `first`, position j (+)= by * sum over its heads and i of
 * square[head, i, j] x[i] */
static void group_sum(const rc_call *call, const rc_operand *to, const rc_operand *square,
                      const rc_operand *x, int64_t first, double by)
{
    const rc_op_attr *attr = call->attr;
    for (int64_t j = 0; j < attr->s; j++)
        for (int64_t t = 0; t < attr->d; t++) {
            double sum = 0;
            for (int64_t head = first; head < first + attr->a / attr->g; head++)
                for (int64_t i = 0; i < attr->s; i++)
                    sum += square_get(call, square, head, i, j) *
                           rc_get(x, row_of(attr, head, i), query_col(attr, head) + t);
            rc_set(to, row_of(attr, first, j), key_col(attr, first) + t, by * sum);
        }
}

/* to of a query (+)= by * sum over j of square[head, i, j] x[j] */
static void query_sum(const rc_call *call, const rc_operand *to, const rc_operand *square,
                      const rc_operand *x, int64_t head, double by)
{
    const rc_op_attr *attr = call->attr;
    for (int64_t i = 0; i < attr->s; i++)
        for (int64_t t = 0; t < attr->d; t++) {
            double sum = 0;
            for (int64_t j = 0; j < attr->s; j++)
                sum += square_get(call, square, head, i, j) *
                       rc_get(x, row_of(attr, head, j), key_col(attr, head) + t);
            rc_set(to, row_of(attr, head, i), query_col(attr, head) + t, by * sum);
        }
}

void rc_naive_attn_scores_bwd(const rc_call *call)
{
    const rc_op_attr *attr = call->attr;
    for (int64_t head = 0; head < attr->b * attr->a; head++) {
        query_sum(call, &call->d_in[0], &call->d_out, &call->in[1], head, attr->scale);
        if (head % (attr->a / attr->g) == 0)
            group_sum(call, &call->d_in[1], &call->d_out, &call->in[0], head, attr->scale);
    }
}

void rc_naive_softmax_fwd(const rc_call *call)
{
    const rc_op_attr *attr = call->attr;
    const int64_t s = attr->s;
    for (int64_t r = 0; r < attr->b * attr->a * s; r++) {
        const int64_t seen = n_seen(attr, r % s);
        double most = -INFINITY, sum = 0;
        for (int64_t j = 0; j < seen; j++)
            most = fmax(most, square_get(call, &call->in[0], r / s, r % s, j));
        for (int64_t j = 0; j < seen; j++)
            sum += exp(square_get(call, &call->in[0], r / s, r % s, j) - most);
        for (int64_t j = 0; j < s; j++) {
            double x = square_get(call, &call->in[0], r / s, r % s, j);
            square_set(call, &call->out[0], r, j, j < seen ? exp(x - most) / sum : 0);
        }
    }
}

void rc_naive_softmax_bwd(const rc_call *call)
{
    const int64_t s = call->attr->s;
    for (int64_t r = 0; r < call->attr->b * call->attr->a * s; r++) {
        double dot = 0;
        for (int64_t j = 0; j < s; j++)
            dot += square_get(call, &call->out[0], r / s, r % s, j) *
                   square_get(call, &call->d_out, r / s, r % s, j);
        for (int64_t j = 0; j < s; j++) {
            double p = square_get(call, &call->out[0], r / s, r % s, j);
            double dp = square_get(call, &call->d_out, r / s, r % s, j);
            square_set(call, &call->d_in[0], r, j, p * (dp - dot));
        }
    }
}

void rc_naive_attn_context_fwd(const rc_call *call)
{
    for (int64_t head = 0; head < call->attr->b * call->attr->a; head++)
        query_sum(call, &call->out[0], &call->in[0], &call->in[1], head, 1);
}

void rc_naive_attn_context_bwd(const rc_call *call)
{
    const rc_op_attr *attr = call->attr;
    const rc_operand *d_o = &call->d_out, *v = &call->in[1];
    for (int64_t head = 0; head < attr->b * attr->a; head++) {
        for (int64_t i = 0; i < attr->s; i++)
            for (int64_t j = 0; j < attr->s; j++)
                square_set(call, &call->d_in[0], head * attr->s + i, j,
                           head_dot(attr, d_o, row_of(attr, head, i), query_col(attr, head), v,
                                    key_at(attr, v, head, j)));
        if (head % (attr->a / attr->g) == 0)
            group_sum(call, &call->d_in[1], &call->in[0], d_o, head, 1);
    }
}
