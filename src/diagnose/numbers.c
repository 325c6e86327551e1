/* numbers.c — the figures that were read, under stable names with their unit.
 *
 * `_gib` is 2^30 bytes whatever unit the log printed; `_gb` 1e9, where the log printed that. A
 * number is given only if a file states it or it follows from stated ones by a subtraction.
 */
#include "diagnose/diag.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { MOST_NUMBERS = 400, MOST_RANKS = 64 };

static void add_number(rc_diagnosis *out, const char *name, double value)
{
    if (isnan(value) || out->n_numbers >= MOST_NUMBERS)
        return;
    for (size_t i = 0; i < out->n_numbers; i++)
        if (strcmp(out->numbers[i].name, name) == 0)
            return;
    out->numbers[out->n_numbers++] = (rc_number){.name = name, .value = value};
}

static void add_count(rc_diagnosis *out, const char *name, int64_t value)
{
    if (value >= 0)
        add_number(out, name, (double)value);
}

static void add_gib(rc_diagnosis *out, const char *name, int64_t bytes)
{
    if (bytes >= 0)
        add_number(out, name, (double)bytes / 1073741824);
}

static rc_code add_named(const diag *d, rc_diagnosis *out, const char *name, const char *suffix,
                         double value, rc_error *err)
{
    const char *full;
    if (isnan(value) || out->n_numbers >= MOST_NUMBERS)
        return RC_OK;
    RC_TRY(rc_arena_printf(d->mem, &full, err, "%s%s", name, suffix));
    add_number(out, full, value);
    return RC_OK;
}

static double gib_of(int64_t bytes)
{
    return bytes >= 0 ? (double)bytes / 1073741824 : (double)NAN;
}

static double gb_of(int64_t bytes)
{
    return bytes >= 0 ? (double)bytes / 1e9 : (double)NAN;
}

static void oom_numbers(const diag *d, rc_diagnosis *out)
{
    const rc_oom *oom = d->oom;
    if (!oom)
        return;
    add_gib(out, "requested_gib", d->request);
    add_gib(out, "capacity_gib", d->capacity);
    add_gib(out, "free_gib", d->free_bytes);
    add_gib(out, "allocated_gib", d->allocated);
    add_gib(out, "reserved_gib", d->reserved);
    add_gib(out, "reserved_unallocated_gib", d->idle);
    add_gib(out, "process_gib", d->process);
    add_gib(out, "other_process_gib", d->other);
    add_gib(out, "non_pytorch_gib", d->outside);
    add_gib(out, "private_pools_gib", d->private_bytes);
    add_gib(out, "allowed_gib", d->limit >= 0 ? d->limit : oom->allowed_bytes);
    add_gib(out, "active_gib", oom->active_bytes);
    add_count(out, "gpu", d->gpu);
    add_count(out, "local_rank", oom->local_rank);
    add_count(out, "oom_messages", d->job->log->n_ooms_seen);
    /* Ranks that failed, each once. */
    int64_t n = 0;
    for (size_t i = 0; i < d->job->log->n_ooms; i++) {
        bool is_new = d->job->log->ooms[i].rank >= 0;
        for (size_t k = 0; k < i; k++)
            is_new = is_new && d->job->log->ooms[k].rank != d->job->log->ooms[i].rank;
        n += is_new;
    }
    if (n > 0)
        add_count(out, "oom_ranks", n);
}

static rc_code rank_numbers(const diag *d, const rc_log_rank *rank, const char *suffix,
                            rc_diagnosis *out, rc_error *err)
{
    const struct {
        const char *gib, *gb;
        int64_t bytes;
    } rows[] = {
        {"allocated_gib", "allocated_gb", rank->allocated_bytes},
        {"max_allocated_gib", "max_allocated_gb", rank->max_allocated_bytes},
        {"reserved_gib", "reserved_gb", rank->reserved_bytes},
        {"max_reserved_gib", "max_reserved_gb", rank->max_reserved_bytes},
        {"device_gib", "device_gb", rank->device_bytes},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        RC_TRY(add_named(d, out, rows[i].gib, suffix, gib_of(rows[i].bytes), err));
        if (rank->is_decimal)
            RC_TRY(add_named(d, out, rows[i].gb, suffix, gb_of(rows[i].bytes), err));
    }
    if (rank->alloc_retries >= 0)
        RC_TRY(add_named(d, out, "alloc_retries", suffix, (double)rank->alloc_retries, err));
    return RC_OK;
}

static rc_code report_numbers(const diag *d, rc_diagnosis *out, rc_error *err)
{
    const rc_log *log = d->job->log;
    for (size_t i = 0; i < log->n_ranks; i++)
        if (log->ranks[i].rank == d->worst_rank && !d->oom)
            RC_TRY(rank_numbers(d, &log->ranks[i], "", out, err));
        else if (log->ranks[i].rank == d->worst_rank) {
            add_gib(out, "max_allocated_gib", log->ranks[i].max_allocated_bytes);
            add_gib(out, "max_reserved_gib", log->ranks[i].max_reserved_bytes);
        }
    if (log->n_ranks < 2)
        return RC_OK;
    add_count(out, "worst_rank", d->worst_rank);
    add_count(out, "best_rank", d->best_rank);
    add_number(out, "spread_percent", d->spread_percent);
    add_gib(out, "spread_gib", d->worst >= 0 ? d->worst - d->best : RC_LOG_UNKNOWN);
    for (size_t i = 0; i < log->n_ranks && i < MOST_RANKS; i++) {
        const char *suffix;
        RC_TRY(rc_arena_printf(d->mem, &suffix, err, "_rank%d", log->ranks[i].rank));
        RC_TRY(rank_numbers(d, &log->ranks[i], suffix, out, err));
    }
    return RC_OK;
}

static void train_numbers(const rc_log *log, rc_diagnosis *out)
{
    const rc_log_train *train = &log->train;
    if (train->n_lines == 0 && isnan(train->step_ms))
        return;
    add_number(out, "step_ms", train->step_ms);
    add_number(out, "step_s", train->step_ms / 1000);
    add_number(out, "steady_step_ms", train->steady_step_ms);
    add_number(out, "loss", train->loss);
    add_number(out, "lm_loss", train->loss);
    add_number(out, "grad_norm", train->grad_norm);
    add_number(out, "learning_rate", train->learning_rate);
    add_number(out, "loss_scale", train->loss_scale);
    add_number(out, "tflops_per_gpu", train->tflops);
    add_count(out, "iteration", train->last_iteration);
    add_count(out, "first_iteration", train->first_iteration);
    add_count(out, "train_iterations", train->n_iterations);
    add_count(out, "global_batch_size", train->global_batch);
    add_count(out, "consumed_samples", train->consumed_samples);
    if (log->n_seen[RC_LOG_ITERATION] > 0) {
        add_count(out, "nan_iterations", train->nan);
        add_count(out, "skipped_iterations", train->skipped);
    }
}

static void other_numbers(const diag *d, rc_diagnosis *out)
{
    const rc_log *log = d->job->log;
    add_gib(out, "weight_optimizer_gib", log->estimate.weight_optimizer_bytes);
    add_gib(out, "theoretical_activation_gib", log->estimate.activation_bytes);
    add_gib(out, "theoretical_total_gib", log->estimate.total_bytes);
    add_number(out, "parameters_billion", log->estimate.params_billion);
    add_number(out, "shard_parameters_billion", log->estimate.shard_params_billion);
    add_count(out, "tensors_saved_forward", log->saved_tensors);
    add_count(out, "tensors_saved_recompute", log->replayed_tensors);
    if (log->n_mismatches > 0) {
        const rc_log_mismatch *first = &log->mismatches[0];
        add_count(out, "mismatch_position", first->position);
        if (first->n_saved > 0)
            add_count(out, "saved_rows", first->saved[0]);
        if (first->n_replayed > 0)
            add_count(out, "recomputed_rows", first->replayed[0]);
    }
    if (d->exit != RC_LOG_NO_EXIT)
        add_number(out, "exitcode", (double)d->exit);
    add_count(out, "local_rank", log->exit_local_rank);
    add_count(out, "rank", log->exit_rank);
    add_number(out, "host_percent", log->host_percent);
    add_number(out, "host_used_gib", log->host_used_gib);
}

static void snapshot_numbers(const rc_snapshot_facts *snapshot, rc_diagnosis *out)
{
    if (!snapshot)
        return;
    add_count(out, "snapshot_reserved_bytes", snapshot->reserved_bytes);
    add_count(out, "snapshot_active_bytes", snapshot->active_bytes);
    add_count(out, "snapshot_largest_free_block_bytes", snapshot->largest_free_block_bytes);
    add_count(out, "snapshot_segments", snapshot->n_segments);
    add_count(out, "snapshot_oom_request_bytes", snapshot->oom_request_bytes);
}

static rc_code comparison_numbers(const diag *d, rc_diagnosis *out, rc_error *err)
{
    const rc_log *both[] = {d->job->base, d->job->log};
    static const char *const suffixes[] = {"_base", "_recompute"};
    if (!d->job->base)
        return RC_OK;
    for (size_t i = 0; i < 2; i++) {
        for (size_t k = 0; k < both[i]->n_ranks; k++)
            if (both[i]->ranks[k].rank == d->worst_rank || both[i]->n_ranks == 1)
                RC_TRY(rank_numbers(d, &both[i]->ranks[k], suffixes[i], out, err));
        RC_TRY(add_named(d, out, "step_ms", suffixes[i], both[i]->train.step_ms, err));
        RC_TRY(add_named(d, out, "loss", suffixes[i], both[i]->train.loss, err));
        RC_TRY(add_named(d, out, "lm_loss", suffixes[i], both[i]->train.loss, err));
    }
    add_number(out, "saved_percent", d->saved_percent);
    if (d->before >= 0 && d->after >= 0)
        add_number(out, "saved_gib", (double)(d->before - d->after) / 1073741824);
    double before = d->step_before, after = d->step_after;
    if (before > 0)
        add_number(out, "slower_percent", 100 * (after - before) / before);
    return RC_OK;
}

rc_code diag_numbers(const diag *d, rc_diagnosis *out, rc_error *err)
{
    RC_TRY(RC_NEW(d->mem, &out->numbers, MOST_NUMBERS, err));
    oom_numbers(d, out);
    add_count(out, "rank", d->rank);
    add_gib(out, "grown_gib", d->grown);
    RC_TRY(report_numbers(d, out, err));
    train_numbers(d->job->log, out);
    other_numbers(d, out);
    snapshot_numbers(d->job->snapshot, out);
    return comparison_numbers(d, out, err);
}
