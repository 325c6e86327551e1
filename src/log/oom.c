/* oom.c — out-of-memory messages of every allocator and generation.
 *
 * takes  the line that holds "out of memory", and the lines behind it while the message goes on
 * gives  one rc_oom, or an event for refusals that carry no sizes
 * next   src/diagnose/ weighs the sizes
 *
 * A message is compared with all its blanks removed: that makes one text of the spellings with
 * one, two or no blanks and of messages that a terminal, a form or a collector broke in the
 * middle of a word.
 */
#include "log/parts.h"

#include <stdio.h>
#include <string.h>

enum { SQUEEZED_BYTES = 4096 };

typedef struct squeezed {
    char at[SQUEEZED_BYTES];
    size_t n;
} squeezed;

static void squeeze(squeezed *message, const char *text, size_t n)
{
    for (size_t i = 0; i < n && message->n < SQUEEZED_BYTES; i++)
        if (text[i] != ' ' && text[i] != '\t' && text[i] != '\r')
            message->at[message->n++] = text[i];
}

static const char *in_message(const squeezed *message, const char *label)
{
    return log_find(message->at, message->n, label);
}

/* The size behind a label. */
static int64_t size_behind(const squeezed *message, const char *label)
{
    const char *at = in_message(message, label), *end;
    int64_t bytes;
    if (!at || !log_size(at + strlen(label), message->at + message->n, &bytes, &end))
        return RC_LOG_UNKNOWN;
    return bytes;
}

/* The size in front of a label: back over the unit, then over the digits. */
static int64_t size_before(const squeezed *message, const char *label)
{
    const char *label_at = in_message(message, label);
    if (!label_at)
        return RC_LOG_UNKNOWN;
    const char *at = label_at;
    while (at > message->at &&
           ((at[-1] >= 'a' && at[-1] <= 'z') || (at[-1] >= 'A' && at[-1] <= 'Z')))
        at--;
    while (at > message->at && ((at[-1] >= '0' && at[-1] <= '9') || at[-1] == '.'))
        at--;
    while (at < label_at && *at == '.') /* the full stop of the sentence before */
        at++;
    const char *end;
    int64_t bytes;
    return log_size(at, label_at, &bytes, &end) ? bytes : RC_LOG_UNKNOWN;
}

static bool is_complete(const squeezed *message)
{
    bool is_older_end = in_message(message, "totalcapacity;") && in_message(message, ")");
    return is_older_end || in_message(message, "butunallocated");
}

/* Adds the lines that continue a broken message; stops where something else begins. */
static void join_lines(rc_log_reader *reader, const log_line *line, squeezed *message)
{
    enum { MOST = 12 };
    log_line at = *line, next;
    for (int i = 0; i < MOST && !is_complete(message); i++) {
        if (!log_line_next(reader, &at, reader->ahead, &next))
            return;
        bool is_other = log_has(&next, "out of memory") || log_has(&next, "Traceback") ||
                        log_has(&next, ", line ") || log_has(&next, "Error:") ||
                        log_has(&next, "iteration ");
        bool is_same_process = next.key == line->key || next.key == 0;
        if (is_other)
            return;
        if (is_same_process)
            squeeze(message, next.text + next.body, next.n - next.body);
        at.raw_end = next.raw_end;
    }
}

static int gpu_of(const squeezed *message)
{
    static const char *const labels[] = {"(GPU", "GPU", "(NPU", "(MLU", "(XPU", "ondevice"};
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) {
        const char *at = in_message(message, labels[i]);
        double value;
        const char *end;
        if (!at)
            continue;
        at += strlen(labels[i]);
        if (log_number(at, message->at + message->n, &value, &end) && value >= 0 &&
            value < 1024)
            return (int)value;
    }
    return RC_LOG_UNKNOWN;
}

/* "Process 40111 has 30.57 GiB memory in use" at or behind `at`; NULL when there is none left. */
static const char *next_process(const squeezed *message, const char *at, double *pid,
                                int64_t *bytes)
{
    const char *limit = message->at + message->n, *end;
    while ((at = log_find(at, (size_t)(limit - at), "Process"))) {
        at += strlen("Process");
        bool is_whole = log_number(at, limit, pid, &end) && limit - end >= 3 &&
                        memcmp(end, "has", 3) == 0 && log_size(end + 3, limit, bytes, &end);
        if (is_whole && *bytes >= 0)
            return end;
    }
    return NULL;
}

/* Any number of other processes may be listed. Where the message has no
 * sentence about this process, its pid namespace differs from the driver's (a container), and
 * the process that holds what torch reserves plus a context is this one. */
static void read_processes(const squeezed *message, rc_oom *oom)
{
    int64_t torch = oom->allocated_bytes >= 0 ? oom->allocated_bytes : 0;
    torch += oom->idle_bytes >= 0 ? oom->idle_bytes : 0;
    int64_t own = RC_LOG_UNKNOWN, total = 0, largest = -1;
    int n = 0;
    oom->process_bytes = size_behind(message, "thisprocesshas");
    double pid;
    int64_t bytes;
    for (const char *at = message->at; (at = next_process(message, at, &pid, &bytes));) {
        if (bytes > INT64_MAX - total)
            break;
        n++;
        total += bytes;
        /* Half a MiB of slack: both figures are rounded to two decimals. */
        if (bytes >= torch - (1 << 24) && (own < 0 || bytes < own))
            own = bytes;
        if (bytes > largest) {
            largest = bytes;
            oom->other_pid = pid < 1e9 ? (int64_t)pid : RC_LOG_UNKNOWN;
        }
    }
    const int64_t most_outside = (int64_t)8 << 30;
    if (oom->process_bytes < 0 && own >= 0 && oom->allocated_bytes >= 0 &&
        own - torch <= most_outside) {
        oom->process_bytes = own;
        oom->is_process_guessed = true;
        total -= own;
        n--;
    }
    oom->n_others = n;
    oom->other_bytes = n > 0 ? total : RC_LOG_UNKNOWN;
}

static void read_sizes(const squeezed *message, rc_oom *oom)
{
    oom->requested_bytes = size_behind(message, "riedtoallocate");
    oom->is_parenthesised = in_message(message, "totalcapacity;") != NULL;
    oom->allowed_bytes = size_before(message, "allowed;");
    oom->active_bytes = size_before(message, "currentactive");
    oom->capacity_bytes = size_before(message, "totalcapacity;");
    if (oom->capacity_bytes < 0)
        oom->capacity_bytes = size_behind(message, "hasatotalcapacityof");
    if (oom->capacity_bytes < 0)
        oom->capacity_bytes = size_behind(message, "hasatotalcapactyof");
    oom->free_bytes = size_before(message, "free"); /* "1.88GiBfree", "2.62MiBisfree" */
    oom->allocated_bytes = size_before(message, "alreadyallocated");
    if (oom->allocated_bytes < 0)
        oom->allocated_bytes = size_behind(message, "Oftheallocatedmemory");
    oom->private_bytes = size_before(message, "allocatedinprivatepools");
    oom->idle_bytes = size_before(message, "isreservedbyPyTorchbutunallocated");
    /* The oldest wording prints reserve minus allocated and calls it cached (torch 1.0 to 1.3,
     * CUDACachingAllocator.cpp). */
    int64_t cached = size_before(message, "cached");
    if (cached >= 0)
        oom->idle_bytes = cached;
    oom->reserved_bytes = size_before(message, "reservedintotalbyPyTorch");
    if (oom->reserved_bytes >= 0 && oom->allocated_bytes >= 0 && oom->idle_bytes < 0)
        oom->idle_bytes = oom->reserved_bytes > oom->allocated_bytes
                              ? oom->reserved_bytes - oom->allocated_bytes
                              : 0;
    bool has_parts = oom->allocated_bytes >= 0 && oom->idle_bytes >= 0;
    if (oom->reserved_bytes < 0 && has_parts)
        oom->reserved_bytes = oom->allocated_bytes < INT64_MAX - oom->idle_bytes
                                  ? oom->allocated_bytes + oom->idle_bytes
                                  : RC_LOG_UNKNOWN;
}

static void read_hints(const squeezed *message, rc_oom *oom)
{
    oom->has_expandable_hint = in_message(message, "expandable_segments") != NULL;
    oom->has_split_hint = in_message(message, "max_split_size_mb") != NULL;
    oom->has_hint = oom->has_expandable_hint || oom->has_split_hint;
    oom->has_new_variable = in_message(message, "PYTORCH_ALLOC_CONF") != NULL;
    oom->has_hip_variable = in_message(message, "PYTORCH_HIP_ALLOC_CONF") != NULL;
}

static void start_oom(rc_log_reader *reader, const log_line *line, rc_oom *oom)
{
    int64_t *sizes[] = {&oom->requested_bytes, &oom->capacity_bytes, &oom->free_bytes,
                        &oom->allocated_bytes, &oom->reserved_bytes, &oom->idle_bytes,
                        &oom->process_bytes,   &oom->other_bytes,    &oom->private_bytes,
                        &oom->allowed_bytes,   &oom->active_bytes,   &oom->other_pid};
    *oom = (rc_oom){.where = log_where(reader, line), .gpu = line->gpu};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        *sizes[i] = RC_LOG_UNKNOWN;
    oom->rank = line->rank >= 0 ? line->rank : reader->file_rank;
    oom->local_rank = line->local_rank;
    snprintf(oom->device, sizeof oom->device, "CUDA");
}

static bool is_same_failure(const rc_oom *a, const rc_oom *b)
{
    bool is_same_rank = a->rank == b->rank || a->rank < 0 || b->rank < 0;
    return is_same_rank && a->source == b->source && a->requested_bytes == b->requested_bytes &&
           a->allocated_bytes == b->allocated_bytes && a->free_bytes == b->free_bytes &&
           a->process_bytes == b->process_bytes && a->gpu == b->gpu;
}

/* Adds the message with the phase of the traceback it ends. Launchers print a failure again in
 * their summaries; the second print only fills what the first left open. */
static rc_code add_oom(rc_log_reader *reader, const log_line *line, rc_oom *oom, rc_error *err)
{
    rc_log *log = reader->log;
    log_context *context = log_context_of(reader, line);
    if (context->is_open) {
        oom->phase = log_context_phase(reader, context);
        oom->frames = log_context_frames(context);
        RC_TRY(
            rc_arena_copy(log->mem, context->trace, strlen(context->trace), &oom->trace, err));
    }
    if (context->phase == RC_JOB_UNKNOWN && log->phase != RC_JOB_NONE)
        oom->phase = log->phase;
    if (oom->rank < 0)
        oom->rank = context->rank;
    if (log->first_rank < 0)
        log->first_rank = oom->rank;
    log_context_close(reader, context);
    log->n_ooms_seen++;
    for (size_t i = 0; i < log->n_ooms; i++) {
        rc_oom *old = &log->ooms[i];
        if (!is_same_failure(old, oom))
            continue;
        old->rank = old->rank >= 0 ? old->rank : oom->rank;
        if (old->phase == RC_JOB_UNKNOWN && oom->phase != RC_JOB_UNKNOWN) {
            old->phase = oom->phase;
            old->frames = oom->frames;
            old->trace = oom->trace;
        }
        return RC_OK;
    }
    void *row;
    RC_TRY(log_grow(log, LOG_ROWS(log, ooms, RC_LOG_MAX_OOMS), &row, err));
    if (row)
        memcpy(row, oom, sizeof *oom);
    return RC_OK;
}

/* The word in front of "out of memory": "CUDA", "HIP", "NPU", ...; false when it is none. */
static bool device_of(const log_line *line, rc_oom *oom)
{
    static const char *const devices[] = {"CUDA", "HIP",  "NPU",   "XPU", "MLU",
                                          "MUSA", "SDAA", "DPCPP", "HPU", "PrivateUse1"};
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
        size_t n = strlen(devices[i]);
        if (line->hit < n + 1 || line->text[line->hit - 1] != ' ')
            continue;
        if (memcmp(line->text + line->hit - 1 - n, devices[i], n) != 0)
            continue;
        size_t kept = n < sizeof oom->device - 1 ? n : sizeof oom->device - 1;
        memcpy(oom->device, devices[i], kept);
        oom->device[kept] = '\0';
        return true;
    }
    return false;
}

static bool is_driver_message(const log_line *line)
{
    static const char *const words[] = {"error: out of memory",
                                        "Error: out of memory",
                                        "error: 2 (out of memory)",
                                        "runtime error (2)",
                                        "error (2)",
                                        "OutOfMemory: out of memory"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (log_has(line, words[i]))
            return true;
    return false;
}

/* Reads the message behind "out of memory"; false when the words only stand in some sentence. */
static bool read_message(rc_log_reader *reader, const log_line *line, squeezed *message,
                         rc_oom *oom)
{
    bool has_device = device_of(line, oom);
    join_lines(reader, line, message);
    oom->source = RC_OOM_BARE;
    if (in_message(message, "morethan1EB")) {
        oom->source = RC_OOM_OVERFLOW;
        return true;
    }
    if (!in_message(message, "riedtoallocate"))
        return has_device || log_has(line, "OutOfMemoryError");
    read_sizes(message, oom);
    read_processes(message, oom);
    read_hints(message, oom);
    oom->gpu = gpu_of(message);
    if (in_message(message, "WorkspaceAllocator"))
        snprintf(oom->device, sizeof oom->device, "NPU");
    if (oom->allocated_bytes >= 0)
        oom->source = RC_OOM_TORCH;
    else if (oom->requested_bytes >= 0)
        oom->source = RC_OOM_DEVICE;
    return true;
}

LOG_HANDLER(oom)
{
    (void)kind;
    bool is_other_row = log_has(line, "would exceed allowed") ||
                        log_has(line, "Killed process") ||
                        log_has(line, "cgroup out of memory");
    if (is_other_row)
        return RC_OK;
    if (log_has(line, "NCCL WARN") || log_has(line, "Cuda failure"))
        return log_add_event(reader, line, RC_LOG_NCCL_OOM, err);
    rc_oom oom;
    squeezed message = {.n = 0};
    squeeze(&message, line->text + line->hit, line->n - line->hit);
    if (is_driver_message(line) && !in_message(&message, "riedtoallocate")) {
        RC_TRY(log_add_event(reader, line, RC_LOG_DRIVER_OOM, err));
        log_context_close(reader, log_context_of(reader, line));
        return RC_OK;
    }
    start_oom(reader, line, &oom);
    return read_message(reader, line, &message, &oom) ? add_oom(reader, line, &oom, err)
                                                      : RC_OK;
}

LOG_HANDLER(oom_name)
{
    bool is_host = log_has(line, "ray.exceptions") || log_has(line, "running low on memory");
    bool has_message = log_has(line, "ut of memory") || log_has(line, "would exceed allowed");
    bool is_source_line = log_has(line, "except ") || log_has(line, "raise ");
    if (is_host || has_message || is_source_line || log_has(line, "RayTaskError"))
        return RC_OK;
    if (kind == RC_LOG_OOM_NAME && log_has(line, "Allocation on device"))
        return RC_OK; /* its own row */
    rc_oom oom;
    start_oom(reader, line, &oom);
    oom.source = RC_OOM_BARE;
    return add_oom(reader, line, &oom, err);
}

LOG_HANDLER(oom_async)
{
    (void)kind;
    rc_oom oom;
    start_oom(reader, line, &oom);
    squeezed message = {.n = 0};
    squeeze(&message, line->text, line->n);
    log_line at = *line, next;
    for (int i = 0; i < 10 && log_line_next(reader, &at, reader->ahead, &next); i++) {
        bool is_part = log_has(&next, "allocated") || log_has(&next, "Requested") ||
                       log_has(&next, "limit") || log_has(&next, "Free (") ||
                       log_has(&next, "iB");
        if (is_part && (next.key == line->key || next.key == 0))
            squeeze(&message, next.text + next.body, next.n - next.body);
        at.raw_end = next.raw_end;
    }
    oom.source = RC_OOM_ASYNC;
    oom.gpu = gpu_of(&message);
    oom.allocated_bytes = size_behind(&message, "Currentlyallocated:");
    oom.requested_bytes = size_behind(&message, "Requested:");
    oom.capacity_bytes = size_behind(&message, "Devicelimit:");
    oom.free_bytes = size_behind(&message, "Free(accordingtoCUDA):");
    oom.allowed_bytes = size_behind(&message, "memoryfraction):");
    return add_oom(reader, line, &oom, err);
}

/* "[Rank:0] FATAL ERROR :: MODULE:PT_DEVMEM Allocation failed for size::234881024 (224)MB" */
LOG_HANDLER(oom_gaudi)
{
    (void)kind;
    rc_oom oom;
    double value;
    start_oom(reader, line, &oom);
    snprintf(oom.device, sizeof oom.device, "HPU");
    oom.source = RC_OOM_DEVICE;
    if (log_number_after(line, line->hit, "size::", &value))
        oom.requested_bytes = log_bytes_of(value, 1);
    if (log_number_after(line, 0, "[Rank:", &value) && value >= 0 && value < 1e6)
        oom.rank = (int)value;
    return add_oom(reader, line, &oom, err);
}

/* Not the hint that ends every message of torch 2.2 and later. */
LOG_HANDLER(expandable)
{
    (void)kind;
    (void)err;
    const char *behind = line->text + line->hit + strlen("expandable_segments:True");
    size_t n = (size_t)(line->text + line->n - behind);
    bool is_hint =
        log_find(behind, n < 12 ? n : 12, "to avoid") || log_has(line, "try setting");
    bool is_comment = line->n > line->body && line->text[line->body] == '#';
    if (!is_hint && !is_comment)
        reader->log->is_expandable_on = true;
    return RC_OK;
}
