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
    RC_TRY(rc_config_need(cfg, field, err));
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
    RC_TRY(rc_config_need(cfg, field, err));
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

/* Every micro-batch counts its targets alike unless some are masked; then a mean over all tokens of a
 * step is not the mean of the micro-batches' means, which is what the loop takes. */
static rc_code check_token_loss(const rc_config *cfg, const rc_train_settings *set,
                                rc_error *err)
{
    if (!cfg->calculate_per_token_loss || !cfg->eod_mask_loss || set->n_micro == 1)
        return RC_OK;
    return RC_FAIL(err, RC_E_UNSUPPORTED, where_of(cfg, RC_FIELD_calculate_per_token_loss),
                   "model.calculate_per_token_loss: unsupported by the engine where "
                   "dataset.eod_mask_loss masks targets and a step has %" PRId64
                   " micro-batches; set it to false, or train.micro_batch_size to %" PRId64,
                   set->n_micro, set->n_global);
}

static rc_code check_lengths(const rc_config *cfg, rc_error *err)
{
    const int64_t s = cfg->seq_length, most = cfg->max_position_embeddings;
    const char *positions = cfg->position_embedding_type;
    bool is_learned = positions && strcmp(positions, "learned_absolute") == 0;
    if (!is_null(cfg, RC_FIELD_dataset_sequence_length) && cfg->dataset_sequence_length != s)
        return RC_FAIL(err, RC_E_INPUT, where_of(cfg, RC_FIELD_dataset_sequence_length),
                       "dataset.sequence_length is %" PRId64 " and model.seq_length %" PRId64
                       "; they must be equal",
                       cfg->dataset_sequence_length, s);
    if (is_learned && !is_null(cfg, RC_FIELD_max_position_embeddings) && most < s)
        return RC_FAIL(err, RC_E_INPUT, where_of(cfg, RC_FIELD_max_position_embeddings),
                       "model.max_position_embeddings is %" PRId64 " and model.seq_length "
                       "%" PRId64 "; there must be a position for every token",
                       most, s);
    return RC_OK;
}

rc_code rc_train_settings_make(const rc_config *cfg, rc_train_settings *out, rc_error *err)
{
    RC_TRY(refuse_empty_paths(cfg, err));
    RC_TRY(rc_train_refuse_run(cfg, err));
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
    RC_TRY(check_lengths(cfg, err));
    RC_TRY(check_token_loss(cfg, out, err));
    if (out->save_interval > 0 && !cfg->save)
        return RC_FAIL(err, RC_E_INPUT, where_of(cfg, RC_FIELD_save_interval),
                       "checkpoint.save_interval says when to save but checkpoint.save not "
                       "where; name a folder");
    return RC_OK;
}
