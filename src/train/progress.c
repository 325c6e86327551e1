/* train/progress.c — a run as people watch it.
 *
 * takes  events of the loop
 * gives  a line that is redrawn on a terminal, Megatron's lines elsewhere, JSON lines in a log
 */
#define _POSIX_C_SOURCE 200809L
#include <recompute/train.h>

#include "base/num.h"
#include "base/text.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <string.h>
#include <time.h>

static double now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

static void clear_line(rc_progress *progress)
{
    if (progress->has_line)
        fputs("\r\033[K", progress->to);
    progress->has_line = false;
}

/* "step 120/1000  loss 3.1416  12,345 tokens/s  64.0 MiB of 128 MiB  ETA 1m20s", cut to the
 * terminal, since a wrapped line cannot be redrawn. */
static void draw_line(rc_progress *progress, const rc_train_event *event)
{
    char line[256], speed[32], peak[32], budget[32], eta[32];
    double rate = (double)event->n_tokens / progress->recent_seconds;
    double left = (double)(event->n_steps - event->iteration) * progress->recent_seconds;
    bool has_budget = event->budget_bytes > 0;
    int n = snprintf(
        line, sizeof line, "step %" PRId64 "/%" PRId64 "  loss %.4f  %s tokens/s  %s%s%s%s%s",
        event->iteration, event->n_steps, event->loss, rc_format_count((int64_t)rate, speed),
        rc_format_bytes(event->peak_bytes, peak), has_budget ? " of " : "",
        has_budget ? rc_format_bytes(event->budget_bytes, budget) : "",
        left > 0 ? "  ETA " : "", left > 0 ? rc_format_seconds(left, eta) : "");
    if (progress->width > 1 && n >= progress->width)
        line[progress->width - 1] = '\0';
    clear_line(progress);
    fputs(line, progress->to);
    fflush(progress->to);
    progress->has_line = true;
    progress->drawn_at = now();
}

/* Megatron-LM megatron/training/utils.py, report_memory: once, after the first line. One block is all
 * that a run takes, from its first step to its last. */
static void print_memory(rc_progress *progress, const rc_train_event *event)
{
    double mib = (double)event->peak_bytes / 0x1p20;
    fprintf(progress->to,
            "[Rank 0] (after %" PRId64 " iterations) memory (MB) | allocated: %.2f | max "
            "allocated: %.2f | reserved: %.2f | max reserved: %.2f\n",
            event->iteration, mib, mib, mib, mib);
}

/* Megatron-LM megatron/training/training.py, training_log: the same fields, blanks and digits, so
 * that what reads Megatron's logs reads ours. Nothing is scaled or skipped here: 1.0, 0, 0. */
static void print_iteration(rc_progress *progress, const rc_train_event *event)
{
    char date[32];
    time_t at = time(NULL);
    struct tm fields;
    double n = (double)progress->since_line.n_steps;
    localtime_r(&at, &fields);
    strftime(date, sizeof date, "%Y-%m-%d %H:%M:%S", &fields);
    fprintf(
        progress->to,
        " [%s] iteration %8" PRId64 "/%8" PRId64 " | consumed samples: %12" PRId64
        " | elapsed time per iteration (ms): %.1f | learning rate: %.6E | global batch size: "
        "%5" PRId64 " | lm loss: %.6E | loss scale: 1.0 | grad norm: %.3f | number of skipped "
        "iterations:   0 | number of nan iterations:   0 |\n",
        date, event->iteration, event->n_steps, event->n_samples,
        progress->since_line.seconds / n * 1000.0, event->next_lr, event->n_global,
        progress->since_line.loss / n, event->grad_norm);
    if (!progress->has_memory_line)
        print_memory(progress, event);
    progress->has_memory_line = true;
    fflush(progress->to);
    progress->since_line.loss = progress->since_line.seconds = 0;
    progress->since_line.n_steps = 0;
}

/* Megatron-LM megatron/training/training.py, evaluate_and_print_results. */
static void print_validation(rc_progress *progress, const rc_train_event *event)
{
    char line[256];
    double perplexity = exp(event->loss < 20 ? event->loss : 20);
    int n = snprintf(line, sizeof line,
                     " validation loss at iteration %" PRId64
                     " | lm loss value: %.6E | lm loss PPL: %.6E | ",
                     event->iteration, event->loss, perplexity);
    for (int i = 0; i <= n; i++)
        fputc('-', progress->to);
    fprintf(progress->to, "\n%s\n", line);
    for (int i = 0; i <= n; i++)
        fputc('-', progress->to);
    fputc('\n', progress->to);
}

static void show_step(rc_progress *progress, const rc_train_event *event)
{
    double *recent = &progress->recent_seconds;
    *recent = *recent > 0 ? 0.9 * *recent + 0.1 * event->seconds : event->seconds;
    progress->since_line.loss += event->loss;
    progress->since_line.seconds += event->seconds;
    progress->since_line.n_steps++;
    bool is_last = event->iteration == event->n_steps;
    if (progress->is_terminal) {
        if (is_last || !progress->has_line || now() - progress->drawn_at >= 1.0)
            draw_line(progress, event);
    } else if (event->iteration % progress->log_interval == 0) {
        print_iteration(progress, event);
    }
}

static void show(rc_progress *progress, const rc_train_event *event)
{
    if (event->kind == RC_TRAIN_STEP) {
        show_step(progress, event);
        return;
    }
    char text[8192] = ""; /* its paths are untrusted */
    if (event->text)
        rc_text_printable(event->text, strlen(event->text), text, sizeof text);
    bool is_over = event->iteration == event->n_steps;
    if (progress->has_line && is_over)
        fputc('\n', progress->to); /* the last step's line stays on the screen */
    else
        clear_line(progress);
    progress->has_line = false;
    if (event->kind == RC_TRAIN_START)
        fprintf(progress->to, "%s\n", text);
    if (event->kind == RC_TRAIN_VALID && !progress->is_terminal)
        print_validation(progress, event);
    if (event->kind == RC_TRAIN_VALID && progress->is_terminal)
        fprintf(progress->to, "step %" PRId64 "  validation loss %.4f\n", event->iteration,
                event->loss);
    if (event->kind == RC_TRAIN_SAVE)
        fprintf(progress->to,
                "  successfully saved checkpoint from iteration %7" PRId64 " to %s\n",
                event->iteration, text);
    if (event->kind == RC_TRAIN_STOP)
        fprintf(progress->to, "stopped after step %" PRId64 " of %" PRId64 ", as asked; %s%s\n",
                event->iteration, event->n_steps,
                *text ? "saved to " : "nothing is saved (checkpoint.save is not set)", text);
    fflush(progress->to);
}

static const char *event_name(rc_train_event_kind kind)
{
    static const char *const names[] = {"start", "step", "validation", "save", "stop", "end"};
    return names[kind];
}

/* JSON has no NaN: a number that is not finite is left out. */
static void set_real(json_t *line, const char *key, double value)
{
    if (isfinite(value))
        json_object_set_new(line, key, json_real(value));
}

static void write_log(rc_progress *progress, const rc_train_event *event)
{
    char path[8192];
    json_t *line = json_pack("{s:s, s:I, s:I}", "event", event_name(event->kind), "iteration",
                             (json_int_t)event->iteration, "consumed_samples",
                             (json_int_t)event->n_samples);
    if (event->kind == RC_TRAIN_START) {
        json_object_set_new(line, "train_iters", json_integer(event->n_steps));
        json_object_set_new(line, "global_batch_size", json_integer(event->n_global));
        json_object_set_new(line, "peak_bytes", json_integer(event->peak_bytes));
        if (event->budget_bytes > 0)
            json_object_set_new(line, "budget_bytes", json_integer(event->budget_bytes));
    }
    if (event->kind == RC_TRAIN_STEP || event->kind == RC_TRAIN_VALID)
        set_real(line, "lm_loss", event->loss);
    if (event->kind == RC_TRAIN_STEP) {
        set_real(line, "learning_rate", event->lr);
        set_real(line, "grad_norm", event->grad_norm);
        set_real(line, "tokens_per_second", (double)event->n_tokens / event->seconds);
    }
    if (event->seconds > 0)
        set_real(line, "seconds", event->seconds);
    if (event->kind == RC_TRAIN_SAVE) /* JSON is UTF-8; a path may be any bytes */
        json_object_set_new(line, "path",
                            json_string(rc_text_printable(event->text, strlen(event->text),
                                                          path, sizeof path)));
    errno = 0;
    bool is_written = json_dumpf(line, progress->log, JSON_COMPACT) == 0 &&
                      fputc('\n', progress->log) != EOF &&
                      fflush(progress->log) == 0; /* a log is read while the run goes on */
    if (!is_written && !progress->log_failure)
        progress->log_failure = errno ? errno : EIO;
    json_decref(line);
}

void rc_progress_event(void *user, const rc_train_event *event)
{
    rc_progress *progress = user;
    if (progress->log)
        write_log(progress, event);
    if (progress->to)
        show(progress, event);
}
