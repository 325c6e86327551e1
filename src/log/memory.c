/* memory.c — memory that trainers report while they run.
 *
 * takes  lines of Megatron-LM, Megatron Bridge, NeMo, DeepSpeed, verl, torchtitan
 * gives  one rc_log_rank per rank: largest peaks, last live value, samples over the steps; and the
 *        estimate block
 *
 * Units, from the programs: Megatron's MB are 2^20 bytes, Bridge's gigabytes 1e9, NeMo prints
 * bytes, DeepSpeed's and verl's GB are 2^30.
 */
#include "log/parts.h"

#include "base/num.h"

#include <string.h>

static int rank_in_line(const rc_log_reader *reader, const log_line *line)
{
    double value;
    const char *at = NULL;
    /* Glued lines: the report's own "[Rank N]" is the last one before the keyword. */
    for (const char *next = line->text;
         (next = log_find(next, line->hit - (size_t)(next - line->text), "[Rank ")); next++)
        at = next;
    const char *end;
    if (at && log_number(at + strlen("[Rank "), line->text + line->n, &value, &end) &&
        value >= 0 && value < 1e8)
        return (int)value;
    if (line->rank >= 0)
        return line->rank;
    return reader->file_rank >= 0 ? reader->file_rank : 0;
}

static void keep_largest(int64_t *kept, int64_t bytes)
{
    if (bytes > *kept)
        *kept = bytes;
}

static int64_t bytes_after(const log_line *line, size_t from, const char *label, double unit)
{
    double value;
    return log_number_after(line, from, label, &value) ? log_bytes_of(value, unit)
                                                       : RC_LOG_UNKNOWN;
}

static void keep_iteration(const log_line *line, rc_log_rank *row)
{
    double value;
    const char *at = NULL;
    for (const char *next = line->text;
         (next = log_find(next, line->hit - (size_t)(next - line->text), "after ")); next++)
        at = next;
    if (at && log_number_after(line, (size_t)(at - line->text), "after ", &value) &&
        value >= 0 && value < 1e15)
        row->iteration = (int64_t)value;
}

/* Keeps every second sample. */
static void thin(rc_log_samples *samples)
{
    samples->n /= 2;
    for (int i = 0; i < samples->n; i++)
        samples->bytes[i] = samples->bytes[2 * i];
    samples->stride *= 2;
}

/* One sample a step, the first report of it: what parts of a step leave behind is no growth. */
static rc_code keep_sample(rc_log *log, rc_log_rank *row, rc_error *err)
{
    rc_log_samples *samples = &row->samples;
    int64_t step = row->iteration >= 0 ? row->iteration : log->train.n_lines;
    if (step <= samples->last_step)
        return RC_OK;
    samples->last_step = step;
    bool is_peak = samples->bytes ? samples->is_peak : row->allocated_bytes < 0;
    int64_t bytes = is_peak ? row->max_allocated_bytes : row->allocated_bytes;
    if (bytes < 0 || ++samples->n_steps <= RC_LOG_WARMUP_STEPS)
        return RC_OK;
    if (!samples->bytes) {
        if (row - log->ranks >= RC_LOG_SAMPLED_RANKS)
            return RC_OK;
        RC_TRY(RC_NEW(log->mem, &samples->bytes, RC_LOG_MAX_SAMPLES, err));
        samples->stride = 1;
        samples->is_peak = is_peak;
    }
    if ((samples->n_steps - RC_LOG_WARMUP_STEPS - 1) % samples->stride != 0)
        return RC_OK;
    samples->bytes[samples->n++] = bytes;
    if (samples->n == RC_LOG_MAX_SAMPLES)
        thin(samples);
    return RC_OK;
}

/* "[Rank 2] (after 1 iterations) memory (MB) | allocated: F | max allocated: F | reserved: F |
 * max reserved: F | total device memory used: F", and Bridge's key names in decimal GB. */
LOG_HANDLER(memory)
{
    rc_log_rank *row;
    reader->log->n_seen[kind]++;
    RC_TRY(log_rank_of(reader, line, rank_in_line(reader, line), &row, err));
    if (!row)
        return RC_OK;
    keep_iteration(line, row);
    size_t from = line->hit;
    double value;
    if (kind == RC_LOG_MEMORY_GB) {
        row->is_decimal = true;
        row->allocated_bytes = bytes_after(line, from, "mem-allocated-gigabytes", RC_GB);
        row->reserved_bytes = bytes_after(line, from, "mem-reserved-gigabytes", RC_GB);
        keep_largest(&row->max_allocated_bytes,
                     bytes_after(line, from, "mem-max-allocated-gigabytes", RC_GB));
        keep_largest(&row->max_reserved_bytes,
                     bytes_after(line, from, "mem-max-reserved-gigabytes", RC_GB));
        if (log_number_after(line, from, "mem-alloc-retires", &value) && value >= 0 &&
            value < 1e15)
            keep_largest(&row->alloc_retries, (int64_t)value);
        return keep_sample(reader->log, row, err);
    }
    row->allocated_bytes = bytes_after(line, from, "| allocated", RC_MIB);
    row->reserved_bytes = bytes_after(line, from, "| reserved", RC_MIB);
    keep_largest(&row->max_allocated_bytes, bytes_after(line, from, "max allocated", RC_MIB));
    keep_largest(&row->max_reserved_bytes, bytes_after(line, from, "max reserved", RC_MIB));
    keep_largest(&row->device_bytes,
                 bytes_after(line, from, "total device memory used", RC_MIB));
    return keep_sample(reader->log, row, err);
}

/* "MA 0.02 GB         Max_MA 0.08 GB         CA 0.08 GB         Max_CA 0 GB" */
LOG_HANDLER(memory_ds)
{
    rc_log_rank *row;
    reader->log->n_seen[kind]++;
    RC_TRY(log_rank_of(reader, line, rank_in_line(reader, line), &row, err));
    if (!row)
        return RC_OK;
    row->allocated_bytes = bytes_after(line, 0, " MA ", RC_GIB);
    row->reserved_bytes = bytes_after(line, 0, " CA ", RC_GIB);
    keep_largest(&row->max_allocated_bytes, bytes_after(line, 0, "Max_MA ", RC_GIB));
    keep_largest(&row->max_reserved_bytes, bytes_after(line, 0, "Max_CA ", RC_GIB));
    return keep_sample(reader->log, row, err);
}

LOG_HANDLER(memory_kv)
{
    static const struct {
        const char *label;
        double unit;
        bool is_peak, is_reserved;
    } labels[] = {
        {"perf/max_memory_allocated_gb", RC_GIB, true, false},
        {"perf/max_memory_reserved_gb", RC_GIB, true, true},
        {"memory allocated (GB)", RC_GIB, false, false},
        {"memory reserved (GB)", RC_GIB, false, true},
        {"peak_memory_usage", 1, true, false},
        {"memory_allocated", 1, false, false},
        {"  memory:", RC_GIB, true, true},
        {"MaxMemAllocated", RC_GIB, true, false},
        {", MemAllocated", RC_GIB, false, false},
    };
    rc_log_rank *row;
    reader->log->n_seen[kind]++;
    RC_TRY(log_rank_of(reader, line, rank_in_line(reader, line), &row, err));
    if (!row)
        return RC_OK;
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) {
        int64_t bytes = bytes_after(line, 0, labels[i].label, labels[i].unit);
        if (bytes < 0)
            continue;
        if (labels[i].is_peak)
            keep_largest(labels[i].is_reserved ? &row->max_reserved_bytes
                                               : &row->max_allocated_bytes,
                         bytes);
        else if (labels[i].is_reserved)
            row->reserved_bytes = bytes;
        else
            row->allocated_bytes = bytes;
    }
    return keep_sample(reader->log, row, err);
}

/* "weight and optimizer=35695.42 MB, activation=86554.12 MB, total=122249.54 MB"; newer Bridge
 * prints other names, the total last. */
LOG_HANDLER(estimate)
{
    (void)err;
    rc_log_estimate *estimate = &reader->log->estimate;
    double value;
    if (kind == RC_LOG_ESTIMATE_TOTAL) {
        if (log_number_after(line, line->hit, "in billions:", &value))
            estimate->params_billion = value;
        return RC_OK;
    }
    if (kind == RC_LOG_ESTIMATE_SHARD) {
        if (log_number_after(line, line->hit, "in billions:", &value))
            estimate->shard_params_billion = value;
        return RC_OK;
    }
    static const struct {
        const char *label;
        size_t offset;
    } parts[] = {
        {"weight and optimizer", offsetof(rc_log_estimate, weight_optimizer_bytes)},
        {"activation", offsetof(rc_log_estimate, activation_bytes)},
        {"total", offsetof(rc_log_estimate, total_bytes)},
    };
    estimate->where = log_where(reader, line);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const char *at = log_find(line->text + line->hit, line->n - line->hit, parts[i].label);
        if (!at)
            continue;
        at += strlen(parts[i].label);
        const char *limit = line->text + line->n;
        at += at < limit && (*at == '=' || *at == ':');
        int64_t bytes;
        const char *end;
        if (log_size(at, limit, &bytes, &end))
            memcpy((char *)estimate + parts[i].offset, &bytes, sizeof bytes);
    }
    return RC_OK;
}

/* "CPU Virtual Memory:  used = 351.92 GB, percent = 97.3%" */
LOG_HANDLER(host)
{
    double value;
    if (log_number_after(line, line->hit, "used", &value))
        reader->log->host_used_gib = value;
    if (log_number_after(line, line->hit, "percent", &value))
        reader->log->host_percent = value;
    return log_add_event(reader, line, kind, err);
}
