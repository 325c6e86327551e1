/* rope.c — rotary position embedding. Backward turns the gradient back and reads nothing. */
#include "op/rope.h"

#include "op/facts.h"
#include "op/scratch.h"

#include <math.h>

static const double two_pi = 6.283185307179586476925286766559;

/* A pair that makes few turns within the old length has seen only a part of its circle, so new
 * positions must be squeezed into it; one that makes many turns tells near positions apart and
 * stays; between the two bounds the turns decide linearly. */
static double scale_llama3(const rc_rope_scaling *by, double rate)
{
    double turns = by->old_length * rate / two_pi;
    if (turns < by->least_turns)
        return rate / by->factor;
    if (turns > by->most_turns)
        return rate;
    double kept = (turns - by->least_turns) / (by->most_turns - by->least_turns);
    return (1 - kept) * rate / by->factor + kept * rate;
}

/* The pair, as a real number, that makes so many turns within the old length. */
static double pair_of(const rc_op_attr *attr, double turns)
{
    double length = attr->rope_scaling.old_length / (turns * two_pi);
    return (double)attr->rotary_dim * log(length) / (2 * log(attr->rotary_base));
}

/* As LLAMA3, but between the bounds the pair's index decides linearly. */
static double scale_yarn(const rc_op_attr *attr, double i, double rate)
{
    const rc_rope_scaling *by = &attr->rope_scaling;
    double first = pair_of(attr, by->most_turns), last = pair_of(attr, by->least_turns);
    if (by->is_rounded) {
        first = floor(first);
        last = ceil(last);
    }
    first = fmax(first, 0);
    last = fmin(last, (double)attr->rotary_dim - 1);
    double width = first == last ? 0.001 : last - first; /* as the authors' code avoids 0 / 0 */
    double squeezed = fmin(fmax((i - first) / width, 0), 1);
    return squeezed * rate / by->factor + (1 - squeezed) * rate;
}

double rc_rope_rate(const rc_op_attr *attr, int64_t i)
{
    double rate = pow(attr->rotary_base, -2.0 * (double)i / (double)attr->rotary_dim);
    switch (attr->rope_scaling.kind) {
    case RC_ROPE_PLAIN:
        break;
    case RC_ROPE_LINEAR:
        return rate / attr->rope_scaling.factor;
    case RC_ROPE_LLAMA3:
        return scale_llama3(&attr->rope_scaling, rate);
    case RC_ROPE_YARN:
        return scale_yarn(attr, (double)i, rate);
    }
    return rate;
}

double rc_rope_amplitude(const rc_op_attr *attr)
{
    return attr->rope_scaling.kind == RC_ROPE_YARN ? attr->rope_scaling.amplitude : 1;
}

static int64_t scratch_bytes(const rc_op_attr *attr, rc_dtype dtype, int n_threads)
{
    (void)dtype;
    const int64_t table = rc_pad16(rc_rope_table_rows(attr->s) * (attr->rotary_dim / 2) * 2);
    const int64_t turns = n_threads * rc_pad16(attr->rotary_dim / 2 * 2);
    return table * (int64_t)sizeof(double) + turns * (int64_t)sizeof(float);
}

const rc_op_facts rc_op_rope = {
    .name = "rope",
    .n_in = 1,
    .n_out = 1,
    .grads = RC_BIT(0),
    .in_place = RC_BIT(0),
    .grad_in_place = RC_BIT(0),
    .fwd_flops = rc_op_no_flops,
    .bwd_flops = rc_op_no_flops,
    .fwd_scratch_bytes = scratch_bytes,
    .bwd_scratch_bytes = scratch_bytes,
    .tolerance = 2e-6,
};
