/* train/settings.c — ranges of the loop's fields, one row each, and what depends on two. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "train/settings.h"

#include "train/fates.h"

#include <recompute/exec.h>
#include <recompute/train.h>

#include "base/num.h"
#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <sched.h>
#include <string.h>

static rc_where where_of(const rc_config *cfg, rc_field field)
{
    return cfg->origin[field].where;
}

static bool is_null(const rc_config *cfg, rc_field field)
{
    return cfg->origin[field].is_null;
}

static rc_code check_integer(const rc_config *cfg, rc_field field, int64_t value, int64_t least,
                             int64_t most, rc_error *err)
{
    const char *key = rc_field_find(field)->key;
    if (is_null(cfg, field))
        return RC_FAIL(err, RC_E_INPUT, where_of(cfg, field), "%s is missing; it must be given",
                       key);
    if (value < least || value > most)
        return RC_FAIL(err, RC_E_INPUT, where_of(cfg, field),
                       "%s is %" PRId64 "; it must be %" PRId64 " to %" PRId64, key, value,
                       least, most);
    return RC_OK;
}

static rc_code check_real(const rc_config *cfg, rc_field field, double value, bool is_share,
                          rc_error *err)
{
    const char *key = rc_field_find(field)->key;
    if (!(value >= 0) || !isfinite(value) || (is_share && value >= 1))
        return RC_FAIL(err, RC_E_INPUT, where_of(cfg, field),
                       "%s is %g; it must be 0 or more%s", key, value,
                       is_share ? " and below 1" : "");
    return RC_OK;
}

/* checkpoint.save=$UNSET would be a folder in the root, were "" taken for a path. */
static rc_code refuse_empty_paths(const rc_config *cfg, rc_error *err)
{
    const struct {
        rc_field field;
        const char *path;
    } rows[] = {
        {RC_FIELD_save, cfg->save},
        {RC_FIELD_load, cfg->load},
        {RC_FIELD_pretrained_checkpoint, cfg->pretrained_checkpoint},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].path && !*rows[i].path)
            return RC_FAIL(err, RC_E_INPUT, where_of(cfg, rows[i].field),
                           "%s is an empty path; name a folder, or write null for none",
                           rc_field_find(rows[i].field)->key);
    return RC_OK;
}

static rc_code refuse_unsupported(const rc_config *cfg, rc_error *err)
{
    const struct {
        rc_field field;
        bool is_asked;
        const char *why;
    } rows[] = {
        {RC_FIELD_reset_position_ids, cfg->reset_position_ids,
         "positions count from the start of the sample, set it to false"},
        {RC_FIELD_reset_attention_mask, cfg->reset_attention_mask,
         "attention reaches over document ends, set it to false"},
        {RC_FIELD_bf16, cfg->bf16, "it computes in float32, set it to false"},
        {RC_FIELD_fp16, cfg->fp16, "it computes in float32, set it to false"},
        {RC_FIELD_optimizer, !cfg->optimizer || strcmp(cfg->optimizer, "adam") != 0,
         "the one optimizer is adam"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].is_asked)
            return rc_train_unsupported(cfg, rows[i].field, rows[i].why, err);
    return rc_train_refuse_run(cfg, err);
}

static rc_code check_numbers(const rc_config *cfg, rc_error *err)
{
    const int64_t most = INT32_MAX;
    RC_TRY(check_integer(cfg, RC_FIELD_seq_length, cfg->seq_length, 1, most, err));
    RC_TRY(check_integer(cfg, RC_FIELD_train_iters, cfg->train_iters, 1, most, err));
    RC_TRY(check_integer(cfg, RC_FIELD_micro_batch_size, cfg->micro_batch_size, 1, most, err));
    RC_TRY(check_integer(cfg, RC_FIELD_eval_interval, cfg->eval_interval, 0, most, err));
    RC_TRY(check_integer(cfg, RC_FIELD_eval_iters, cfg->eval_iters, 0, most, err));
    RC_TRY(check_integer(cfg, RC_FIELD_log_interval, cfg->log_interval, 1, most, err));
    RC_TRY(check_integer(cfg, RC_FIELD_seed, cfg->seed, 0, UINT32_MAX, err));
    RC_TRY(check_real(cfg, RC_FIELD_weight_decay, cfg->weight_decay, false, err));
    RC_TRY(check_real(cfg, RC_FIELD_clip_grad, cfg->clip_grad, false, err));
    RC_TRY(check_real(cfg, RC_FIELD_adam_beta1, cfg->adam_beta1, true, err));
    RC_TRY(check_real(cfg, RC_FIELD_adam_beta2, cfg->adam_beta2, true, err));
    RC_TRY(check_real(cfg, RC_FIELD_adam_eps, cfg->adam_eps, false, err));
    RC_TRY(check_real(cfg, RC_FIELD_attention_dropout, cfg->attention_dropout, true, err));
    return check_real(cfg, RC_FIELD_hidden_dropout, cfg->hidden_dropout, true, err);
}

/* Fields that may be null; *out is 0 then. */
static rc_code optional(const rc_config *cfg, rc_field field, int64_t value, int64_t *out,
                        rc_error *err)
{
    *out = 0;
    if (is_null(cfg, field))
        return RC_OK;
    RC_TRY(check_integer(cfg, field, value, 1, INT32_MAX, err));
    *out = value;
    return RC_OK;
}

static rc_code set_batches(const rc_config *cfg, rc_train_settings *out, rc_error *err)
{
    RC_TRY(
        optional(cfg, RC_FIELD_global_batch_size, cfg->global_batch_size, &out->n_global, err));
    if (out->n_global == 0)
        out->n_global = out->b;
    if (out->n_global % out->b != 0)
        return RC_FAIL(err, RC_E_INPUT, where_of(cfg, RC_FIELD_global_batch_size),
                       "train.global_batch_size is %" PRId64
                       "; it must be a multiple of micro_batch_size, %" PRId64,
                       out->n_global, out->b);
    out->n_micro = out->n_global / out->b;
    if (out->n_steps * out->n_global >> 48)
        return RC_FAIL(err, RC_E_INPUT, where_of(cfg, RC_FIELD_train_iters),
                       "train.train_iters is %" PRId64 " steps of %" PRId64
                       " samples; a run has fewer than 2^48 samples, or draws of dropout would "
                       "come again",
                       out->n_steps, out->n_global);
    return RC_OK;
}

/* More than any host has cores; OpenMP ends the process when it cannot start its threads. */
enum { MOST_THREADS = 1024 };

/* Cores that this process may use: what `engine.threads: null` means. */
static int count_cores(void)
{
    cpu_set_t cpus;
    return sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : 1;
}

rc_code rc_train_threads(const rc_config *cfg, int *out, rc_error *err)
{
    int64_t n;
    RC_TRY(optional(cfg, RC_FIELD_threads, cfg->threads, &n, err));
    if (n > 0)
        RC_TRY(check_integer(cfg, RC_FIELD_threads, n, 1, MOST_THREADS, err));
    *out = n > 0 ? (int)n : count_cores();
    if (*out > rc_run_most_threads())
        *out = rc_run_most_threads();
    return RC_OK;
}

rc_code rc_train_settings_make(const rc_config *cfg, rc_train_settings *out, rc_error *err)
{
    RC_TRY(refuse_unsupported(cfg, err));
    RC_TRY(refuse_empty_paths(cfg, err));
    RC_TRY(check_numbers(cfg, err));
    *out = (rc_train_settings){.n_steps = cfg->train_iters,
                               .b = cfg->micro_batch_size,
                               .s = cfg->seq_length,
                               .seed = cfg->seed,
                               .data_seed = cfg->seed,
                               .eval_interval = cfg->eval_interval,
                               .eval_iters = cfg->eval_iters,
                               .log_interval = cfg->log_interval};
    RC_TRY(set_batches(cfg, out, err));
    RC_TRY(optional(cfg, RC_FIELD_save_interval, cfg->save_interval, &out->save_interval, err));
    RC_TRY(optional(cfg, RC_FIELD_exit_interval, cfg->exit_interval, &out->exit_interval, err));
    RC_TRY(rc_train_threads(cfg, &out->n_threads, err));
    if (!is_null(cfg, RC_FIELD_dataset_random_seed)) {
        RC_TRY(check_integer(cfg, RC_FIELD_dataset_random_seed, cfg->dataset_random_seed, 0,
                             UINT32_MAX, err));
        out->data_seed = cfg->dataset_random_seed;
    }
    if (!is_null(cfg, RC_FIELD_dataset_sequence_length) &&
        cfg->dataset_sequence_length != cfg->seq_length)
        return RC_FAIL(err, RC_E_INPUT, where_of(cfg, RC_FIELD_dataset_sequence_length),
                       "dataset.sequence_length is %" PRId64 " and model.seq_length %" PRId64
                       "; they must be equal",
                       cfg->dataset_sequence_length, cfg->seq_length);
    if (out->save_interval > 0 && !cfg->save)
        return RC_FAIL(err, RC_E_INPUT, where_of(cfg, RC_FIELD_save_interval),
                       "checkpoint.save_interval says when to save but checkpoint.save not "
                       "where; name a folder");
    return RC_OK;
}
