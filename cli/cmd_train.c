/* cmd_train.c — `recompute train`: trains the model of a config inside its memory budget. */
#define _POSIX_C_SOURCE 200809L
#include "model.h"

#include "base/file.h"

#include <recompute/train.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const rc_option options[] = {
    {"--dry-run", NULL,
     "everything up to the first step: check, open the data, plan the memory", false},
    {"--log", "FILE.jsonl",
     "append one JSON line per event: start, step, validation, save, end", false},
    {"--dump", "NOUN,...",
     "print nouns on the way: config, data, graph, policy, schedule, cost", false},
    {"--quiet", NULL, "no progress, only the result", false},
    RC_MODEL_OPTION,
};

/* A signal handler can reach nothing but a global: C gives it no argument. */
static volatile sig_atomic_t signal_seen, is_showing;
static long long
    first_ms; /* when the first came; the handler's own, which no other signal interrupts */
static timer_t patience;

static void on_alarm(int number)
{
    (void)number;
}

/* After a second every write is broken off, hence no SA_RESTART. The alarm rings again and again,
 * since a write may not have begun yet, and a line takes several. Until a stop is asked for,
 * SIGALRM is left as it was. */
static void break_off_writes(void)
{
    const struct itimerspec often = {.it_value = {.tv_sec = 1},
                                     .it_interval = {.tv_nsec = 10000000}};
    struct sigaction action = {.sa_handler = on_alarm};
    sigemptyset(&action.sa_mask);
    sigaction(SIGALRM, &action, NULL);
    timer_settime(patience, 0, &often, NULL);
}

/* The second signal, of either kind, ends the process as if there were no handler. The same kind
 * right behind the first is the same request: timeout(1) and batch systems signal a process and then
 * its group. */
static void on_signal(int number)
{
    enum { SAME_MS = 500 };
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    const long long now_ms = (long long)at.tv_sec * 1000 + at.tv_nsec / 1000000;
    if (signal_seen && (number != signal_seen || now_ms - first_ms >= SAME_MS)) {
        struct sigaction none = {.sa_handler = SIG_DFL};
        sigaction(number, &none, NULL);
        raise(number);
        return; /* it comes once the handler is left */
    }
    if (signal_seen)
        return;
    first_ms = now_ms;
    signal_seen = number;
    if (is_showing)
        break_off_writes();
}

static bool is_stopping(void *user)
{
    (void)user;
    return signal_seen != 0;
}

/* A signal that was ignored when the program started (nohup, a background job) stays ignored.
 * None of them breaks off what is going on, as a save. */
static void catch_signals(void)
{
    static const int signals[] = {SIGINT, SIGTERM};
    struct sigaction before, action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < 2; i++)
        sigaddset(&action.sa_mask, signals[i]);
    for (size_t i = 0; i < 2; i++)
        if (sigaction(signals[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(signals[i], &action, NULL);
}

/* --- who watches --- */

/* A pipe that nobody empties holds up a write for ever. A run that is asked to stop does not wait
 * for it: it goes on without showing more, saves, and says in the end that its output is
 * incomplete. */
typedef struct viewer {
    rc_progress progress;
    bool has_timer, has_lost_output;
} viewer;

static bool takes_more(FILE *to)
{
    enum { PATIENCE_MS = 1000 };
    struct pollfd waiting = {.fd = fileno(to), .events = POLLOUT};
    return !signal_seen || poll(&waiting, 1, PATIENCE_MS) == 1;
}

static void give_up_if_stuck(FILE **to, viewer *of)
{
    if (!*to || (!ferror(*to) && takes_more(*to)))
        return;
    /* what is still buffered goes nowhere, or the end of the program would wait for it */
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (nowhere >= 0) {
        dup2(nowhere, fileno(*to));
        close(nowhere);
    }
    *to = NULL;
    of->has_lost_output = true;
}

static void on_event(void *user, const rc_train_event *event)
{
    viewer *of = user;
    give_up_if_stuck(&of->progress.to, of);
    give_up_if_stuck(&of->progress.log, of);
    is_showing = of->has_timer; /* a signal from here on sets the alarm itself */
    if (is_showing && signal_seen)
        break_off_writes();
    rc_progress_event(&of->progress, event);
    is_showing = 0;
    if (of->has_timer)
        timer_settime(patience, 0, &(const struct itimerspec){.it_value = {0}}, NULL);
}

/* Where all but the result goes: to standard output too, unless a program reads it. */
static FILE *aside(const rc_args *args)
{
    return args->format == RC_FORMAT_TEXT ? stdout : stderr;
}

/* "graph,cost": each in turn. */
static rc_code dump_nouns(const rc_training *training, const rc_args *args, rc_arena *mem,
                          rc_error *err)
{
    const char *nouns = rc_args_find(args, "--dump");
    while (nouns && *nouns) {
        const char *noun;
        size_t n = strcspn(nouns, ",");
        RC_TRY(rc_arena_copy(mem, nouns, n, &noun, err));
        RC_TRY(rc_training_dump(training, noun, aside(args), err));
        nouns += n + (nouns[n] == ',');
    }
    return RC_OK;
}

static rc_code report_plan(const rc_training *training, const rc_args *args, rc_arena *mem,
                           rc_error *err)
{
    rc_report report = {.n = 0};
    RC_TRY(rc_training_report(training, mem, &report, err));
    return rc_report_write(&report, args->format, stdout, err);
}

static rc_code close_log(rc_progress *progress, const char *path, rc_error *err)
{
    if (!progress->log)
        return RC_OK;
    errno = EIO;
    if (fclose(progress->log) != 0 && !progress->log_failure)
        progress->log_failure = errno;
    if (!progress->log_failure)
        return RC_OK;
    return RC_FAIL(err, RC_E_IO, (rc_where){.file = path},
                   "cannot write: %s; the log is incomplete", strerror(progress->log_failure));
}

static rc_code report_result(const rc_train_result *result, const rc_args *args, rc_arena *mem,
                             rc_error *err)
{
    rc_report report = {.n = 0};
    rc_table *table;
    RC_TRY(rc_train_result_table(result, mem, &table, err));
    rc_report_add(&report, table, true);
    return rc_report_write(&report, args->format, stdout, err);
}

static rc_code train(rc_training *training, const rc_config *cfg, const rc_args *args,
                     rc_arena *mem, rc_error *err)
{
    const char *log_path = rc_args_find(args, "--log");
    FILE *to = aside(args), *log = NULL;
    viewer eyes = {.progress = {.to = rc_args_find(args, "--quiet") ? NULL : to,
                                .is_terminal = isatty(fileno(to)) == 1,
                                .width = rc_style_of(to).width,
                                .log_interval = cfg->log_interval}};
    rc_train_watch watch = {on_event, is_stopping, &eyes};
    rc_train_result result;
    if (log_path)
        RC_TRY(rc_stream_open(log_path, "a", &log, err));
    eyes.progress.log = log;
    struct sigevent alarm = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
    eyes.has_timer = timer_create(CLOCK_MONOTONIC, &alarm, &patience) == 0;
    catch_signals();
    rc_code code = rc_training_run(training, &watch, &result, err);
    give_up_if_stuck(&eyes.progress.to, &eyes);
    give_up_if_stuck(&eyes.progress.log, &eyes);
    eyes.progress.log = log; /* given up or not, it is closed */
    rc_code log_code = close_log(&eyes.progress, log_path, code == RC_OK ? err : NULL);
    RC_TRY(code);
    RC_TRY(log_code);
    if (eyes.has_lost_output)
        return RC_FAIL(err, RC_E_IO, RC_NOWHERE,
                       "the output took no more and is incomplete%s%s",
                       result.saved_to[0] ? "; saved to " : "", result.saved_to);
    return report_result(&result, args, mem, err);
}

static rc_code run(const rc_args *args, rc_arena *mem, int *status, rc_error *err)
{
    rc_model model = {0};
    rc_training *training;
    (void)status;
    RC_TRY(rc_model_read_run(args, mem, &model, err));
    RC_TRY(rc_training_open(model.cfg, mem, &training, err));
    rc_model_note_passed_over(model.cfg);
    rc_code code = dump_nouns(training, args, mem, err);
    if (code == RC_OK && rc_args_find(args, "--dry-run"))
        code = report_plan(training, args, mem, err);
    else if (code == RC_OK)
        code = train(training, model.cfg, args, mem, err);
    rc_training_close(training);
    return code;
}

const rc_command rc_command_train = {
    .name = "train",
    .usage =
        "recompute train CONFIG [--model NAME] [key=value ...] [--megatron-flag ...] [options]",
    .about =
        "Trains a GPT or Llama-style model on the CPU, with any recompute setting of Megatron "
        "and\n"
        "inside a memory budget. The config has Megatron Bridge's sections and keys "
        "(`recompute\n"
        "list fields`); key=value changes one of them for this run.\n"
        "\n"
        "  recompute train examples/gpt.yaml                            the config's data\n"
        "  recompute train examples/gpt.yaml dataset.data_path=[book.txt] "
        "train.train_iters=500\n"
        "  recompute train examples/gpt.yaml engine.memory_budget=64MiB \\\n"
        "      model.recompute_granularity=full model.recompute_method=uniform \\\n"
        "      model.recompute_num_layers=1\n"
        "  recompute train examples/gpt.yaml --dry-run                  the plan, no training\n"
        "\n"
        "Data (dataset.data_path): any text file, read as bytes (vocabulary 257), or the "
        "prefix of\n"
        "a Megatron indexed dataset (PREFIX.bin, PREFIX.idx). Samples come in Megatron's "
        "order.\n"
        "\n"
        "Memory: the whole run lives in one block whose size is known before the first step. "
        "A\n"
        "budget (engine.memory_budget) that it does not fit is refused at once, naming the\n"
        "recompute setting that would fit.\n"
        "\n"
        "Checkpoints (checkpoint.save, save_interval) are safetensors; checkpoint.load "
        "continues\n"
        "the newest bit for bit, and starts afresh while the folder is empty, so that one "
        "command\n"
        "line serves both. checkpoint.pretrained_checkpoint starts from Hugging Face weights.\n"
        "SIGINT (Ctrl-C) or SIGTERM finishes the step, saves and exits 0; a second one ends at "
        "once.\n"
        "\n"
        "On a terminal one line shows loss, speed, memory and time left; elsewhere lines have\n"
        "Megatron's format. With --json (--csv, --md) the result alone is on standard output.\n"
        "\n"
        "exit status: 0 trained or stopped as asked; 2 bad input, over budget, or a loss that "
        "is\n"
        "not finite; 3 the machine; 4 unsupported here.",
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .has_threads = true,
    .takes_foreign_flags = true,
    .run = run,
};
