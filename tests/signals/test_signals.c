/* test_signals.c — Ctrl-C typed on a terminal, SIGTERM and SIGKILL in the middle of a training run.
 *
 * The run has a terminal of its own, whose foreground process group it is: a shell's background job
 * ignores SIGINT, so a script cannot ask this.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static const char *program, *source;

enum { CTRL_C = 3, MOST_TEXT = 1 << 20, PATIENCE_MS = 60000 };

typedef struct run {
    pid_t pid;
    int terminal;
    char text[MOST_TEXT]; /* what it showed */
    size_t n;
    char folder[64];
} run;

static void write_text(void)
{
    FILE *to = fopen("text", "w");
    assert_non_null(to);
    for (int i = 0; i < 2000; i++)
        fprintf(to, "%d\n", i);
    assert_int_equal(fclose(to), 0);
}

/* `more`: settings of this run, and the last of them NULL. */
static void become_train(const char *terminal, int other_end, const char *const *more)
{
    char config[4096];
    const char *words[24] = {program,
                             "train",
                             config,
                             "dataset.data_path=[text]",
                             "model.num_layers=1",
                             "model.hidden_size=16",
                             "model.seq_length=16",
                             "train.train_iters=100000",
                             "train.eval_iters=0",
                             "engine.threads=1",
                             "checkpoint.save=out"};
    size_t n = 11;
    close(other_end);
    setsid();
    int at = open(terminal, O_RDWR);
    if (at < 0 || ioctl(at, TIOCSCTTY, 0) != 0)
        _exit(101);
    for (int i = 0; i < 3; i++)
        dup2(at, i);
    snprintf(config, sizeof config, "%s/examples/gpt.yaml", source);
    while (*more && n < 23)
        words[n++] = *more++;
    execv(program, (char **)(uintptr_t)words);
    _exit(102);
}

/* A folder of its own, which becomes the current one. */
static run *make_folder(void)
{
    run *of = calloc(1, sizeof *of);
    assert_non_null(of);
    strcpy(of->folder, "/tmp/recompute-signals-XXXXXX");
    assert_non_null(mkdtemp(of->folder));
    assert_int_equal(chdir(of->folder), 0);
    write_text();
    return of;
}

static void launch(run *of, const char *const *more)
{
    of->n = 0;
    of->text[0] = '\0';
    of->terminal = posix_openpt(O_RDWR | O_NOCTTY);
    assert_true(of->terminal >= 0);
    assert_int_equal(grantpt(of->terminal), 0);
    assert_int_equal(unlockpt(of->terminal), 0);
    const char *name = ptsname(of->terminal);
    assert_non_null(name);
    of->pid = fork();
    assert_true(of->pid >= 0);
    if (of->pid == 0)
        become_train(name, of->terminal, more);
}

/* Starts a long run. */
static run *start(void)
{
    run *of = make_folder();
    launch(of, (const char *const[]){NULL});
    return of;
}

/* Reads on until `word` was shown; false when the run ends or is silent before. */
static bool read_until(run *of, const char *word)
{
    while (!word || !strstr(of->text, word)) {
        struct pollfd waiting = {.fd = of->terminal, .events = POLLIN};
        if (poll(&waiting, 1, PATIENCE_MS) != 1)
            return false;
        ssize_t n = read(of->terminal, of->text + of->n, MOST_TEXT - 1 - of->n);
        if (n <= 0)
            return false; /* EIO: nobody holds the other end any more */
        of->n += (size_t)n;
        of->text[of->n] = '\0';
    }
    return true;
}

static int finish(run *of)
{
    int status;
    read_until(of, NULL);
    assert_int_equal(waitpid(of->pid, &status, 0), of->pid);
    return status;
}

static bool has_checkpoint(void)
{
    char folder[64], path[128];
    FILE *from = fopen("out/latest_checkpointed_iteration.txt", "r");
    long iteration;
    if (!from)
        return false;
    assert_int_equal(fscanf(from, "%ld", &iteration), 1);
    fclose(from);
    snprintf(folder, sizeof folder, "out/iter_%07ld", iteration);
    for (int i = 0; i < 3; i++) {
        static const char *const files[] = {"model.safetensors", "optimizer.safetensors",
                                            "state.json"};
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        assert_int_equal(access(path, R_OK), 0);
    }
    return true;
}

static void clean(run *of)
{
    char command[128];
    assert_int_equal(chdir("/"), 0);
    snprintf(command, sizeof command, "rm -r %s", of->folder);
    assert_int_equal(system(command), 0);
    close(of->terminal);
    free(of);
}

static void finishes_the_step_and_saves(run *of)
{
    int status = finish(of);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail_msg("status %x; it showed:\n%s", (unsigned)status, of->text);
    assert_non_null(strstr(of->text, "as asked; saved to out/iter_"));
    assert_true(has_checkpoint());
    clean(of);
}

static void ctrl_c_finishes_the_step_and_saves(void **state)
{
    (void)state;
    run *of = start();
    assert_true(read_until(of, "tokens/s"));
    assert_int_equal(write(of->terminal, &(char){CTRL_C}, 1), 1);
    finishes_the_step_and_saves(of);
}

static void sigterm_finishes_the_step_and_saves(void **state)
{
    (void)state;
    run *of = start();
    assert_true(read_until(of, "tokens/s"));
    assert_int_equal(kill(of->pid, SIGTERM), 0);
    finishes_the_step_and_saves(of);
}

/* Batches without end after the first of two steps: the signal comes while they are evaluated. */
static void a_signal_ends_the_evaluation(void **state)
{
    (void)state;
    run *of = make_folder();
    launch(of, (const char *const[]){"train.train_iters=2", "scheduler.lr_warmup_iters=0",
                                     "train.eval_interval=1", "train.eval_iters=100000", NULL});
    assert_true(read_until(of, "tokens/s"));
    assert_int_equal(kill(of->pid, SIGTERM), 0);
    assert_int_equal(finish(of), 0);
    assert_non_null(strstr(of->text, "as asked; saved to out/iter_0000001"));
    assert_true(has_checkpoint());
    clean(of);
}

/* The iteration of the checkpoint that is half written, or -1. */
static long iteration_in_the_making(void)
{
    DIR *folder = opendir("out");
    long iteration = -1;
    if (!folder)
        return -1;
    for (const struct dirent *entry; (entry = readdir(folder));)
        if (strncmp(entry->d_name, "iter_", 5) == 0 && strstr(entry->d_name, ".tmp"))
            iteration = strtol(entry->d_name + 5, NULL, 10);
    closedir(folder);
    return iteration;
}

/* Stops the run within a save that follows a complete one, and kills it there. */
static long kill_within_a_save(run *of)
{
    const struct timespec moment = {.tv_nsec = 300000};
    for (int i = 0; i < 100000; i++) {
        int status;
        nanosleep(&moment, NULL);
        if (iteration_in_the_making() < 0)
            continue;
        assert_int_equal(kill(of->pid, SIGSTOP), 0);
        assert_int_equal(waitpid(of->pid, &status, WUNTRACED), of->pid);
        long iteration = iteration_in_the_making();
        bool is_within = iteration >= 0 && has_checkpoint();
        assert_int_equal(kill(of->pid, is_within ? SIGKILL : SIGCONT), 0);
        if (!is_within)
            continue;
        status = finish(of);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        return iteration;
    }
    fail_msg("no save was met");
    return -1;
}

static void kill_9_within_a_save_leaves_the_last_checkpoint(void **state)
{
    char from[64];
    (void)state;
    run *of = make_folder();
    launch(of, (const char *const[]){"checkpoint.save_interval=1", NULL});
    long iteration = kill_within_a_save(of);
    assert_true(has_checkpoint());
    close(of->terminal);
    launch(of, (const char *const[]){"checkpoint.load=out", "train.exit_interval=1", NULL});
    assert_int_equal(finish(of), 0);
    snprintf(from, sizeof from, "resuming from out/iter_%07ld", iteration - 1);
    if (!strstr(of->text, from))
        fail_msg("killed while it saved %ld, and then:\n%s", iteration, of->text);
    assert_int_equal(iteration_in_the_making(), -1);
    assert_true(has_checkpoint());
    clean(of);
}

/* Every file of the last checkpoint, to be compared. */
static void keep_result(const char *name)
{
    char command[256];
    snprintf(command, sizeof command,
             "cat out/iter_0000030/* out/latest_checkpointed_iteration.txt >%s && rm -r out",
             name);
    assert_int_equal(system(command), 0);
}

/* The same bytes, and nothing in the folder besides checkpoints and the pointer. */
static void expect_undisturbed(void)
{
    assert_int_not_equal(system("ls out | grep -v -e '^iter_[0-9]*$' -e '^latest_.*txt$'"), 0);
    keep_result("disturbed");
    assert_int_equal(system("cmp undisturbed disturbed"), 0);
}

/* RC_KILLS: how many runs are killed; a few where it is not set. */
static int count_kills(void)
{
    const char *text = getenv("RC_KILLS");
    return text ? (int)strtol(text, NULL, 10) : 6;
}

/* Runs of 30 steps that save after each, killed at any moment and started again by the same command:
 * the end is that of a run that nobody disturbed, byte for byte. Moments come from a generator with a
 * fixed start; which step they meet is up to the machine. */
static void kill_9_at_any_moment_changes_nothing(void **state)
{
    const char *const words[] = {"train.train_iters=30",       "scheduler.lr_warmup_iters=3",
                                 "checkpoint.save_interval=1", "checkpoint.load=out",
                                 "train.eval_interval=4",      "train.eval_iters=1",
                                 "optimizer.lr=0.01",          NULL};
    uint32_t draw = 20240901;
    int status, n_killed = 0, n_wanted = count_kills();
    (void)state;
    run *of = make_folder();
    launch(of, words);
    assert_int_equal(finish(of), 0);
    keep_result("undisturbed");
    while (n_killed < n_wanted) {
        close(of->terminal);
        launch(of, words);
        draw = draw * 1664525u + 1013904223u;
        struct timespec moment = {.tv_nsec = (long)(draw >> 8) % 200000000};
        nanosleep(&moment, NULL);
        kill(of->pid, SIGKILL);
        status = finish(of);
        if (WIFSIGNALED(status)) {
            n_killed++;
            continue;
        }
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
            fail_msg("status %x; it showed:\n%s", (unsigned)status, of->text);
        expect_undisturbed(); /* it came to its end: the next begins again */
    }
    close(of->terminal);
    launch(of, words);
    assert_int_equal(finish(of), 0);
    expect_undisturbed();
    clean(of);
}

/* The run is held by SIGSTOP, so that both signals wait for it and none comes after the end. */
static void a_second_signal_ends_at_once(void **state)
{
    (void)state;
    run *of = start();
    assert_true(read_until(of, "tokens/s"));
    assert_int_equal(kill(of->pid, SIGSTOP), 0);
    assert_int_equal(kill(of->pid, SIGTERM), 0);
    assert_int_equal(kill(of->pid, SIGINT), 0);
    assert_int_equal(kill(of->pid, SIGCONT), 0);
    int status = finish(of);
    assert_true(WIFSIGNALED(status));
    assert_true(WTERMSIG(status) == SIGINT || WTERMSIG(status) == SIGTERM);
    assert_false(has_checkpoint());
    clean(of);
}

/* timeout(1) signals its child and then the group that the child is in: one request. */
static void the_same_signal_twice_at_once_is_one(void **state)
{
    (void)state;
    run *of = start();
    assert_true(read_until(of, "tokens/s"));
    assert_int_equal(kill(of->pid, SIGTERM), 0);
    for (int i = 0; i < 20; i++)
        (void)kill(of->pid, SIGTERM); /* it may have ended by itself */
    assert_int_equal(finish(of), 0);
    assert_true(has_checkpoint());
    clean(of);
}

/* Nobody reads what the run shows, and its pipe is full: it waits in a write when the signal comes. */
static void a_signal_ends_the_wait_for_a_reader(void **state)
{
    enum { MOST_WAITS = 6000 };
    const struct timespec moment = {.tv_nsec = 10000000};
    int ends[2], status = 0, n_full = 0, i = 0;
    char config[4096];
    (void)state;
    run *of = make_folder();
    assert_int_equal(pipe(ends), 0);
    fcntl(ends[1], F_SETPIPE_SZ, 4096); /* soon full; where that is refused, later */
    snprintf(config, sizeof config, "%s/examples/gpt.yaml", source);
    of->pid = fork();
    assert_true(of->pid >= 0);
    if (of->pid == 0) {
        dup2(ends[1], 1);
        close(ends[0]);
        close(ends[1]);
        execl(program, program, "train", config, "dataset.data_path=[text]",
              "model.num_layers=1", "model.hidden_size=16", "model.seq_length=16",
              "train.train_iters=100000", "train.eval_iters=0", "logger.log_interval=1",
              "engine.threads=1", "checkpoint.save=out", (char *)NULL);
        _exit(102);
    }
    for (; i < MOST_WAITS && n_full < 50; i++) {
        struct pollfd room = {.fd = ends[1], .events = POLLOUT};
        nanosleep(&moment, NULL);
        n_full += poll(&room, 1, 0) == 0;
    }
    assert_int_equal(n_full, 50);
    assert_int_equal(kill(of->pid, SIGTERM), 0);
    for (i = 0; i < MOST_WAITS && waitpid(of->pid, &status, WNOHANG) == 0; i++)
        nanosleep(&moment, NULL);
    if (i == MOST_WAITS)
        kill(of->pid, SIGKILL);
    assert_true(i < MOST_WAITS && WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 3); /* what was to be shown was not */
    assert_true(has_checkpoint());
    close(ends[0]);
    of->terminal = ends[1];
    clean(of);
}

/* A bare chroot has no /dev/pts. */
static bool has_terminals(void)
{
    int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    bool is_usable = terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0 &&
                     ptsname(terminal) != NULL;
    if (terminal >= 0)
        close(terminal);
    return is_usable;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ctrl_c_finishes_the_step_and_saves),
        cmocka_unit_test(sigterm_finishes_the_step_and_saves),
        cmocka_unit_test(a_signal_ends_the_evaluation),
        cmocka_unit_test(kill_9_within_a_save_leaves_the_last_checkpoint),
        cmocka_unit_test(kill_9_at_any_moment_changes_nothing),
        cmocka_unit_test(a_second_signal_ends_at_once),
        cmocka_unit_test(the_same_signal_twice_at_once_is_one),
        cmocka_unit_test(a_signal_ends_the_wait_for_a_reader),
    };
    if (argc != 3)
        return 2;
    if (!has_terminals()) {
        puts("skipped: no pseudo terminal can be opened here (is /dev/pts mounted?)");
        return 77;
    }
    program = argv[1];
    source = argv[2];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
