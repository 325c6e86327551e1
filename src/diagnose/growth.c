/* growth.c — memory that grows from step to step: a leak.
 *
 * takes  samples of every rank's memory after its steps, warm-up left out (log_memory.c)
 * gives  d->grown and what it grew from and to; unknown where nothing grows steadily
 *
 * A training step allocates what the step before freed: with constant shapes live memory after a
 * step is the same number from the third step on (optimizer state appears in the first, workspaces
 * and caches in the first two). Four quarters of the samples tell growth from everything else:
 *
 *   least of a quarter > most of the one before    lengths that vary overlap; what fell back is no leak
 *   three of four samples above the one before     a peak of an evaluation is one jump, then a plateau
 *   every quarter adds half its even share         caches that fill level off
 *   a rise of 1 % in all                           smaller ones are lists of numbers
 *
 * Lengths that grow on purpose (a curriculum) make the steps longer too: then it is no leak.
 */
#include "diagnose/diag.h"

#include <math.h>

enum { LEAST_SAMPLES = 12, N_QUARTERS = 4 };
static const double LEAST_RISE = 0.01, SLOWER = 1.10, EVEN_SHARE = 0.5, RISING_SHARE = 0.75;

typedef struct quarter {
    double least, most, mean;
} quarter;

static void measure(const rc_log_samples *samples, quarter q[N_QUARTERS])
{
    for (int k = 0; k < N_QUARTERS; k++) {
        int from = k * samples->n / N_QUARTERS, to = (k + 1) * samples->n / N_QUARTERS;
        q[k] = (quarter){.least = (double)INFINITY, .most = -(double)INFINITY};
        for (int i = from; i < to; i++) {
            double bytes = (double)samples->bytes[i];
            q[k].least = fmin(q[k].least, bytes);
            q[k].most = fmax(q[k].most, bytes);
            q[k].mean += bytes / (to - from);
        }
    }
}

static bool is_rising(const rc_log_samples *samples)
{
    quarter q[N_QUARTERS];
    int n_up = 0;
    if (samples->n < LEAST_SAMPLES)
        return false;
    measure(samples, q);
    double rise = q[N_QUARTERS - 1].mean - q[0].mean;
    for (int k = 1; k < N_QUARTERS; k++)
        if (q[k].least <= q[k - 1].most ||
            q[k].mean - q[k - 1].mean < EVEN_SHARE * rise / (N_QUARTERS - 1))
            return false;
    for (int i = 1; i < samples->n; i++)
        n_up += samples->bytes[i] > samples->bytes[i - 1];
    return rise >= LEAST_RISE * q[0].mean && n_up >= RISING_SHARE * (samples->n - 1);
}

/* Steps of the last quarter take longer than those of the first. */
static bool is_slowing(const rc_log_train *train)
{
    double sum[2] = {0};
    int64_t n[2] = {0};
    for (size_t i = RC_LOG_WARMUP_STEPS; i < train->n_steps; i++) {
        size_t at =
            (i - RC_LOG_WARMUP_STEPS) * N_QUARTERS / (train->n_steps - RC_LOG_WARMUP_STEPS);
        bool is_end = at == 0 || at == N_QUARTERS - 1;
        if (is_end && train->steps[i].ms > 0) {
            sum[at > 0] += train->steps[i].ms;
            n[at > 0]++;
        }
    }
    return n[0] > 0 && n[1] > 0 && sum[1] / (double)n[1] > SLOWER * sum[0] / (double)n[0];
}

void diag_collect_growth(diag *d)
{
    const rc_log *log = d->job->log;
    bool is_varying = d->job->cfg && d->job->cfg->variable_seq_lengths;
    if (is_varying || is_slowing(&log->train))
        return;
    for (size_t i = 0; i < log->n_ranks; i++) {
        const rc_log_samples *samples = &log->ranks[i].samples;
        if (!is_rising(samples))
            continue;
        int64_t from = samples->bytes[0], to = samples->bytes[samples->n - 1];
        if (to - from <= d->grown)
            continue;
        d->grown = to - from;
        d->grown_from = from;
        d->grown_to = to;
        d->grown_rank = log->ranks[i].rank;
        d->grown_steps = samples->n_steps;
        d->grown_metric = samples->is_peak ? "peak memory" : "live memory after a step";
    }
}
