/* train/lr.c — warm-up and decay of the learning rate.
 *
 *   rate
 *   max      ____            constant: stays
 *           /    \           linear, cosine: falls to min over n_decay_samples
 *          /      \          WSD: stays, then falls over the last n_wsd_samples
 *   init  /        \____ min
 *         | warm-up |
 */
#include "train/lr.h"

#include "base/num.h"
#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const style_names[] = {"constant", "linear", "cosine", "inverse-square-root",
                                          "WSD"};
static const char *const wsd_names[] = {"linear", "cosine", "exponential", "minus_sqrt"};
static const double pi = 3.14159265358979323846;

static rc_where where_of(const rc_config *cfg, rc_field field)
{
    return cfg->origin[field].where;
}

static rc_code find_name(const rc_config *cfg, rc_field field, const char *const *names, int n,
                         int *out, rc_error *err)
{
    const char *text =
        field == RC_FIELD_lr_decay_style ? cfg->lr_decay_style : cfg->lr_wsd_decay_style;
    for (int i = 0; text && i < n; i++) {
        if (strcmp(text, names[i]) == 0) {
            *out = i;
            return RC_OK;
        }
    }
    char typed[64], all[128] = "";
    size_t used = 0;
    for (int i = 0; i < n && used < sizeof all; i++)
        used +=
            (size_t)snprintf(all + used, sizeof all - used, "%s%s", i ? ", " : "", names[i]);
    rc_text_printable(text ? text : "null", strlen(text ? text : "null"), typed, sizeof typed);
    return RC_FAIL(err, RC_E_INPUT, where_of(cfg, field), "%s is %s; it must be one of %s",
                   rc_field_find(field)->key, typed, all);
}

static rc_code check_rates(const rc_config *cfg, const rc_lr *lr, rc_error *err)
{
    static const rc_field needed[] = {RC_FIELD_lr, RC_FIELD_min_lr, RC_FIELD_lr_warmup_init};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        RC_TRY(rc_config_need(cfg, needed[i], err));
    if (!(lr->max >= 0) || !isfinite(lr->max))
        return RC_FAIL(err, RC_E_INPUT, where_of(cfg, RC_FIELD_lr),
                       "optimizer.lr is %g; it must be a number at or above 0", lr->max);
    if (!(lr->min >= 0) || lr->min > lr->max)
        return RC_FAIL(err, RC_E_INPUT, where_of(cfg, RC_FIELD_min_lr),
                       "optimizer.min_lr is %g; it must be 0 to optimizer.lr, %g", lr->min,
                       lr->max);
    if (!(lr->init >= 0) || lr->init > lr->max)
        return RC_FAIL(err, RC_E_INPUT, where_of(cfg, RC_FIELD_lr_warmup_init),
                       "scheduler.lr_warmup_init is %g; it must be 0 to optimizer.lr, %g",
                       lr->init, lr->max);
    return RC_OK;
}

static rc_code set_warmup(const rc_config *cfg, int64_t n_global_batch, rc_lr *lr,
                          rc_error *err)
{
    bool has_fraction = !cfg->origin[RC_FIELD_lr_warmup_fraction].is_null;
    int64_t n_steps = cfg->origin[RC_FIELD_lr_warmup_iters].is_null ? 0 : cfg->lr_warmup_iters;
    int64_t n_samples;
    if (has_fraction && n_steps != 0)
        return RC_FAIL(err, RC_E_INPUT, where_of(cfg, RC_FIELD_lr_warmup_fraction),
                       "lr_warmup_fraction and lr_warmup_iters both say how long the warm-up "
                       "is; give one");
    if (n_steps < 0 || !rc_mul(n_steps, n_global_batch, &n_samples))
        return RC_FAIL(err, RC_E_INPUT, where_of(cfg, RC_FIELD_lr_warmup_iters),
                       "scheduler.lr_warmup_iters is %" PRId64 "; it must be 0 or more",
                       n_steps);
    lr->n_warmup_samples = (double)n_samples;
    if (has_fraction) {
        double fraction = cfg->lr_warmup_fraction;
        if (!(fraction >= 0 && fraction < 1))
            return RC_FAIL(
                err, RC_E_INPUT, where_of(cfg, RC_FIELD_lr_warmup_fraction),
                "scheduler.lr_warmup_fraction is %g; it must be 0 or more and below 1",
                fraction);
        lr->n_warmup_samples = fraction * (double)lr->n_decay_samples;
    }
    if (lr->n_warmup_samples >= (double)lr->n_decay_samples)
        return RC_FAIL(err, RC_E_INPUT, where_of(cfg, RC_FIELD_lr_warmup_iters),
                       "the warm-up takes %" PRId64 " steps and the whole schedule %" PRId64
                       "; the warm-up must be shorter (scheduler.lr_decay_iters is the length)",
                       n_steps, lr->n_decay_samples / n_global_batch);
    return RC_OK;
}

static rc_code set_wsd(const rc_config *cfg, int64_t n_global_batch, rc_lr *lr, rc_error *err)
{
    rc_where where = where_of(cfg, RC_FIELD_lr_wsd_decay_iters);
    int style = 0;
    if (lr->style != RC_LR_WSD)
        return RC_OK;
    RC_TRY(find_name(cfg, RC_FIELD_lr_wsd_decay_style, wsd_names, 4, &style, err));
    lr->wsd_style = (rc_wsd_style)style;
    if (cfg->origin[RC_FIELD_lr_wsd_decay_iters].is_null)
        return RC_FAIL(
            err, RC_E_INPUT, where,
            "lr_decay_style WSD needs scheduler.lr_wsd_decay_iters, the steps of its "
            "last phase");
    if (cfg->lr_wsd_decay_iters < 1 ||
        !rc_mul(cfg->lr_wsd_decay_iters, n_global_batch, &lr->n_wsd_samples) ||
        lr->n_wsd_samples > lr->n_decay_samples)
        return RC_FAIL(err, RC_E_INPUT, where,
                       "scheduler.lr_wsd_decay_iters is %" PRId64 "; it must be 1 to %" PRId64
                       ", the length of the schedule",
                       cfg->lr_wsd_decay_iters, lr->n_decay_samples / n_global_batch);
    return RC_OK;
}

rc_code rc_lr_make(const rc_config *cfg, int64_t n_global_batch, rc_lr *out, rc_error *err)
{
    bool is_given = !cfg->origin[RC_FIELD_lr_decay_iters].is_null;
    int64_t n_steps = is_given ? cfg->lr_decay_iters : cfg->train_iters;
    int style = 0;
    *out = (rc_lr){.init = cfg->lr_warmup_init, .max = cfg->lr, .min = cfg->min_lr};
    RC_TRY(check_rates(cfg, out, err));
    RC_TRY(find_name(cfg, RC_FIELD_lr_decay_style, style_names, 5, &style, err));
    out->style = (rc_lr_style)style;
    if (n_steps < 1 || !rc_mul(n_steps, n_global_batch, &out->n_decay_samples))
        return RC_FAIL(err, RC_E_INPUT,
                       where_of(cfg, is_given ? RC_FIELD_lr_decay_iters : RC_FIELD_train_iters),
                       "%s is %" PRId64 "; it must be at least 1",
                       is_given ? "scheduler.lr_decay_iters" : "train.train_iters", n_steps);
    RC_TRY(set_warmup(cfg, n_global_batch, out, err));
    return set_wsd(cfg, n_global_batch, out, err);
}

/* The share of max - min that is left at `ratio` of the last phase of WSD. */
static double wsd_share(rc_wsd_style style, double ratio)
{
    switch (style) {
    case RC_WSD_LINEAR:
        return 1.0 - ratio;
    case RC_WSD_COSINE:
        return 0.5 * (cos(pi * ratio) + 1.0);
    case RC_WSD_EXPONENTIAL:
        return 2.0 * pow(0.5, ratio) - 1.0;
    case RC_WSD_MINUS_SQRT:
    default:
        return 1.0 - sqrt(ratio);
    }
}

double rc_lr_at(const rc_lr *lr, int64_t n_samples)
{
    double n = (double)n_samples, share;
    if (lr->n_warmup_samples > 0 && n <= lr->n_warmup_samples)
        return lr->init + (lr->max - lr->init) * n / lr->n_warmup_samples;
    if (lr->style == RC_LR_CONSTANT)
        return lr->max;
    if (n_samples > lr->n_decay_samples)
        return lr->min;
    if (lr->style == RC_LR_INVERSE_SQUARE_ROOT) {
        double warmup = lr->n_warmup_samples > 1 ? lr->n_warmup_samples : 1;
        double rate = lr->max * sqrt(warmup) / sqrt(n > 1 ? n : 1);
        return rate > lr->min ? rate : lr->min;
    }
    double ratio =
        (n - lr->n_warmup_samples) / ((double)lr->n_decay_samples - lr->n_warmup_samples);
    int64_t n_before_last = lr->n_decay_samples - lr->n_wsd_samples;
    if (lr->style == RC_LR_LINEAR)
        share = 1.0 - ratio;
    else if (lr->style == RC_LR_COSINE)
        share = 0.5 * (cos(pi * ratio) + 1.0);
    else if (n_samples <= n_before_last)
        share = 1.0;
    else
        share = wsd_share(lr->wsd_style,
                          (double)(n_samples - n_before_last) / (double)lr->n_wsd_samples);
    return lr->min + share * (lr->max - lr->min);
}
