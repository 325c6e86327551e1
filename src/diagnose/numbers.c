/* numbers.c — the figures that were read, under stable names with their unit.
 *
 * `_gib` is 2^30 bytes whatever unit the log printed; `_gb` 1e9, where the log printed that. A
 * number is given only if a file states it or it follows from stated ones by a subtraction.
 */
#include "diagnose/diag.h"

#include "base/num.h"

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

/* The fields whose number is due now, in the order of diag_fields.def. */
static void add_fields(const diag *d, rc_diagnosis *out, diag_when when)
{
    const diag_field *field;
    for (size_t i = 0; (field = diag_field_at(i)) != NULL; i++)
        if (field->when == when)
            add_number(out, field->number, diag_number(d, field));
}

/* A figure of the log or the snapshot that no clue and no sentence asks for. */
typedef struct figure {
    const char *name;
    diag_kind kind;
    size_t offset;
} figure;

static void add_figures(rc_diagnosis *out, const void *from, const figure *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *at = (const char *)from + rows[i].offset;
        int64_t whole;
        double real;
        if (rows[i].kind == DIAG_REAL) {
            memcpy(&real, at, sizeof real);
        } else {
            memcpy(&whole, at, sizeof whole);
            real = whole < 0                    ? (double)NAN
                   : rows[i].kind == DIAG_COUNT ? (double)whole
                                                : diag_gib(whole);
        }
        add_number(out, rows[i].name, real);
    }
}
#define ADD_FIGURES(out, from, rows)                                                           \
    add_figures((out), (from), (rows), sizeof(rows) / sizeof *(rows))

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

static double gb_of(int64_t bytes)
{
    return bytes >= 0 ? (double)bytes / RC_GB : (double)NAN;
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
        RC_TRY(add_named(d, out, rows[i].gib, suffix, diag_gib(rows[i].bytes), err));
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
            add_number(out, "max_allocated_gib", diag_gib(log->ranks[i].max_allocated_bytes));
            add_number(out, "max_reserved_gib", diag_gib(log->ranks[i].max_reserved_bytes));
        }
    if (log->n_ranks < 2)
        return RC_OK;
    add_fields(d, out, DIAG_RANKS);
    for (size_t i = 0; i < log->n_ranks && i < MOST_RANKS; i++) {
        const char *suffix;
        RC_TRY(rc_arena_printf(d->mem, &suffix, err, "_rank%d", log->ranks[i].rank));
        RC_TRY(rank_numbers(d, &log->ranks[i], suffix, out, err));
    }
    return RC_OK;
}

static void train_numbers(const rc_log *log, rc_diagnosis *out)
{
    static const figure rows[] = {
        {"steady_step_ms", DIAG_REAL, offsetof(rc_log_train, steady_step_ms)},
        {"loss", DIAG_REAL, offsetof(rc_log_train, loss)},
        {"lm_loss", DIAG_REAL, offsetof(rc_log_train, loss)},
        {"grad_norm", DIAG_REAL, offsetof(rc_log_train, grad_norm)},
        {"learning_rate", DIAG_REAL, offsetof(rc_log_train, learning_rate)},
        {"loss_scale", DIAG_REAL, offsetof(rc_log_train, loss_scale)},
        {"tflops_per_gpu", DIAG_REAL, offsetof(rc_log_train, tflops)},
        {"iteration", DIAG_COUNT, offsetof(rc_log_train, last_iteration)},
        {"first_iteration", DIAG_COUNT, offsetof(rc_log_train, first_iteration)},
        {"train_iterations", DIAG_COUNT, offsetof(rc_log_train, n_iterations)},
        {"global_batch_size", DIAG_COUNT, offsetof(rc_log_train, global_batch)},
        {"consumed_samples", DIAG_COUNT, offsetof(rc_log_train, consumed_samples)}};
    static const figure counted[] = {
        {"nan_iterations", DIAG_COUNT, offsetof(rc_log_train, nan)},
        {"skipped_iterations", DIAG_COUNT, offsetof(rc_log_train, skipped)}};
    const rc_log_train *train = &log->train;
    if (train->n_lines == 0 && isnan(train->step_ms))
        return;
    add_number(out, "step_ms", train->step_ms);
    add_number(out, "step_s", train->step_ms / 1000);
    ADD_FIGURES(out, train, rows);
    if (log->n_seen[RC_LOG_ITERATION] > 0)
        ADD_FIGURES(out, train, counted);
}

static void estimate_numbers(const rc_log *log, rc_diagnosis *out)
{
    static const figure rows[] = {
        {"weight_optimizer_gib", DIAG_SIZE, offsetof(rc_log, estimate.weight_optimizer_bytes)},
        {"theoretical_activation_gib", DIAG_SIZE, offsetof(rc_log, estimate.activation_bytes)},
        {"theoretical_total_gib", DIAG_SIZE, offsetof(rc_log, estimate.total_bytes)},
        {"parameters_billion", DIAG_REAL, offsetof(rc_log, estimate.params_billion)},
        {"shard_parameters_billion", DIAG_REAL,
         offsetof(rc_log, estimate.shard_params_billion)}};
    ADD_FIGURES(out, log, rows);
}

/* Bytes as they are: a snapshot states them whole. */
static void snapshot_numbers(const rc_snapshot_facts *snapshot, rc_diagnosis *out)
{
    static const figure rows[] = {
        {"snapshot_reserved_bytes", DIAG_COUNT, offsetof(rc_snapshot_facts, reserved_bytes)},
        {"snapshot_active_bytes", DIAG_COUNT, offsetof(rc_snapshot_facts, active_bytes)},
        {"snapshot_largest_free_block_bytes", DIAG_COUNT,
         offsetof(rc_snapshot_facts, largest_free_block_bytes)},
        {"snapshot_segments", DIAG_COUNT, offsetof(rc_snapshot_facts, n_segments)},
        {"snapshot_oom_request_bytes", DIAG_COUNT,
         offsetof(rc_snapshot_facts, oom_request_bytes)}};
    if (snapshot)
        ADD_FIGURES(out, snapshot, rows);
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
    add_fields(d, out, DIAG_COMPARED);
    return RC_OK;
}

rc_code diag_numbers(const diag *d, rc_diagnosis *out, rc_error *err)
{
    RC_TRY(RC_NEW(d->mem, &out->numbers, MOST_NUMBERS, err));
    add_fields(d, out, DIAG_OOM);
    add_fields(d, out, DIAG_ALWAYS);
    RC_TRY(report_numbers(d, out, err));
    train_numbers(d->job->log, out);
    estimate_numbers(d->job->log, out);
    add_fields(d, out, DIAG_EVENTS);
    snapshot_numbers(d->job->snapshot, out);
    return comparison_numbers(d, out, err);
}
