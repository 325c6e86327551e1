/* test_signals.c — Ctrl-C typed on a terminal, and SIGTERM, in the middle of a training run.
 *
 * The run has a terminal of its own, whose foreground process group it is: a shell's background job
 * ignores SIGINT, so a script cannot ask this.
 */
#define _XOPEN_SOURCE 700
#define _DEFAULT_SOURCE
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

static void become_train(const char *terminal, int other_end)
{
    char config[4096];
    close(other_end);
    setsid();
    int at = open(terminal, O_RDWR);
    if (at < 0 || ioctl(at, TIOCSCTTY, 0) != 0)
        _exit(101);
    for (int i = 0; i < 3; i++)
        dup2(at, i);
    snprintf(config, sizeof config, "%s/examples/gpt.yaml", source);
    execl(program, program, "train", config, "dataset.data_path=[text]", "model.num_layers=1",
          "model.hidden_size=16", "model.seq_length=16", "train.train_iters=100000",
          "train.eval_iters=0", "engine.threads=1", "checkpoint.save=out", (char *)NULL);
    _exit(102);
}

/* Starts a long run in a folder of its own, which becomes the current one. */
static run *start(void)
{
    run *of = calloc(1, sizeof *of);
    assert_non_null(of);
    strcpy(of->folder, "/tmp/recompute-signals-XXXXXX");
    assert_non_null(mkdtemp(of->folder));
    assert_int_equal(chdir(of->folder), 0);
    write_text();
    of->terminal = posix_openpt(O_RDWR | O_NOCTTY);
    assert_true(of->terminal >= 0);
    assert_int_equal(grantpt(of->terminal), 0);
    assert_int_equal(unlockpt(of->terminal), 0);
    const char *name = ptsname(of->terminal);
    assert_non_null(name);
    of->pid = fork();
    assert_true(of->pid >= 0);
    if (of->pid == 0)
        become_train(name, of->terminal);
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

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ctrl_c_finishes_the_step_and_saves),
        cmocka_unit_test(sigterm_finishes_the_step_and_saves),
        cmocka_unit_test(a_second_signal_ends_at_once),
    };
    if (argc != 3)
        return 2;
    program = argv[1];
    source = argv[2];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
