/* test_paths.c — FIFOs, devices, folders, sockets and names of nothing, in every place of the command
 * line that takes a path; and files that are cut off while they are read.
 *
 * No run may wait for ever, none may end by a signal, and what is refused is named.
 */
#define _GNU_SOURCE
#include "../sanitized.h"

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
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static const char *program, *source, *cutter;
static char home[64], config[4200], nowhere[5001];

enum { MOST_WORDS = 32, MOST_SAID = 1 << 16, PATIENCE_SECONDS = 60, NOBODY = 65534 };

/* --- running the program --- */

typedef struct outcome {
    int status; /* of waitpid */
    bool is_late;
    char said[MOST_SAID];
} outcome;

typedef struct child {
    pid_t pid;
    int output;
} child;

static child launch(const char *const *words, bool is_nobody)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    child of = {.pid = fork(), .output = ends[0]};
    assert_true(of.pid >= 0);
    if (of.pid > 0) {
        close(ends[1]);
        return of;
    }
    int nothing = open("/dev/null", O_RDONLY);
    dup2(nothing, 0);
    dup2(ends[1], 1);
    dup2(ends[1], 2);
    close(ends[0]);
    close(ends[1]);
    if (is_nobody && (setgid(NOBODY) != 0 || setuid(NOBODY) != 0))
        _exit(126);
    execv(program, (char **)(uintptr_t)words);
    _exit(127);
}

/* Reads what it says to its end, but waits no longer than PATIENCE_SECONDS for it. */
static outcome *finish(child of)
{
    static outcome all;
    size_t n = 0;
    all.is_late = false;
    for (;;) {
        struct pollfd waiting = {.fd = of.output, .events = POLLIN};
        if (poll(&waiting, 1, PATIENCE_SECONDS * 1000) != 1) {
            all.is_late = true;
            kill(of.pid, SIGKILL);
            break;
        }
        ssize_t got = read(of.output, all.said + n, n + 1 < MOST_SAID ? MOST_SAID - 1 - n : 0);
        if (got <= 0)
            break;
        n += (size_t)got;
    }
    all.said[n] = '\0';
    close(of.output);
    assert_int_equal(waitpid(of.pid, &all.status, 0), of.pid);
    return &all;
}

static outcome *run(const char *const *words)
{
    return finish(launch(words, false));
}

static int exit_of(const outcome *of)
{
    return WIFEXITED(of->status) ? WEXITSTATUS(of->status) : -1;
}

/* --- what may stand behind a path --- */

static const struct thing {
    const char *name, *path;
    const char *as_input;  /* what is said of it where a file is read; NULL: not refused */
    const char *as_output; /* and where one is written; "": a write may wait, not tried */
    bool is_nobody;        /* seen as another user */
} things[] = {
    {"a FIFO", "fifo", "is a FIFO", "a FIFO that nobody reads", false},
    {"a link to a FIFO", "link-to-fifo", "is a FIFO", "a FIFO that nobody reads", false},
    {"endless", "/dev/zero", "is a character device", NULL, false},
    {"nothing", "/dev/null", "is a character device", NULL, false},
    {"a terminal", "/dev/ptmx", "is a character device", "", false},
    {"a folder", "folder", "is a directory", "directory", false},
    {"a socket", "socket", "is a socket", "a socket", false},
    {"no name", "", "empty", "empty", false},
    {"a dangling link", "dangling", "No such file", NULL, false},
    {"a long name", nowhere, "too long", "too long", false},
    {"unreadable", "unreadable", "Permission denied", NULL, true},
};
enum { N_THINGS = sizeof things / sizeof *things };

static void write_text(const char *path, const char *text)
{
    FILE *to = fopen(path, "w");
    assert_non_null(to);
    fputs(text, to);
    assert_int_equal(fclose(to), 0);
}

static void make_socket(const char *path)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    snprintf(name.sun_path, sizeof name.sun_path, "%s", path);
    assert_int_equal(bind(fd, (struct sockaddr *)&name, sizeof name), 0);
    close(fd);
}

static void write_long_text(const char *path)
{
    FILE *to = fopen(path, "w");
    assert_non_null(to);
    for (int i = 0; i < 8000; i++)
        fprintf(to, "%d\n", i);
    assert_int_equal(fclose(to), 0);
}

static int make_home(void **state)
{
    (void)state;
    strcpy(home, "/tmp/recompute-paths-XXXXXX");
    memset(nowhere, 'a', sizeof nowhere - 1);
    snprintf(config, sizeof config, "%s/examples/gpt.yaml", source);
    if (!mkdtemp(home) || chmod(home, 0777) != 0 || chdir(home) != 0)
        return -1;
    write_long_text("text");
    write_text("unreadable", "secret");
    write_text("half.bin", "data");
    make_socket("socket");
    return mkfifo("fifo", 0666) || symlink("fifo", "link-to-fifo") || mkdir("folder", 0777) ||
           symlink("nowhere", "dangling") || chmod("unreadable", 0);
}

static int remove_home(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -r %s", home);
    return chdir("/") || system(command);
}

/* --- places --- */

typedef struct place {
    const char *name;
    const char *words[12]; /* '@' in one of them is the path */
    /* The thing is a link of this name, since the program puts a name of its own behind a prefix. */
    const char *link;
    enum { A_FILE, A_FILE_OR_FOLDER, A_FOLDER } wants; /* a folder's refusals are its own */
} place;

#define TRAIN                                                                                  \
    "train", config, "--quiet", "train.train_iters=1", "model.num_layers=1",                   \
        "scheduler.lr_warmup_iters=0"

/* Fills `words`; texts that were put together live in `room`. */
static void place_words(const place *of, const char *path, const char *words[MOST_WORDS],
                        char room[2][6000])
{
    static const char *const common[] = {"model.hidden_size=16", "model.seq_length=16",
                                         "engine.threads=1", "train.eval_iters=0"};
    size_t n = 0, n_made = 0;
    words[n++] = program;
    for (size_t i = 0; of->words[i]; i++) {
        const char *at = strchr(of->words[i], '@');
        words[n++] = of->words[i];
        if (!at)
            continue;
        snprintf(room[n_made], sizeof room[0], "%.*s%s%s", (int)(at - of->words[i]),
                 of->words[i], path, at + 1);
        words[n - 1] = room[n_made++];
    }
    for (size_t i = 0; strcmp(of->words[0], "train") == 0 && i < 4; i++)
        words[n++] = common[i];
    words[n] = NULL;
}

static outcome *run_at(const place *of, const struct thing *thing)
{
    static char room[2][6000];
    const char *words[MOST_WORDS];
    const char *path = thing->path;
    if (of->link) {
        unlink(of->link);
        char target[6000];
        snprintf(target, sizeof target, "%s%s%s", *path == '/' ? "" : home,
                 *path == '/' ? "" : "/", path);
        if (!*path || symlink(target, of->link) != 0)
            return NULL; /* a link can be neither empty nor that long */
        path = "";
    }
    place_words(of, path, words, room);
    outcome *got = finish(launch(words, thing->is_nobody && geteuid() == 0));
    /* where another user cannot reach the program there is nothing to see */
    return thing->is_nobody && exit_of(got) >= 126 ? NULL : got;
}

static void check(const place *of, const struct thing *thing, const char *says, int *n_bad)
{
    const outcome *got = run_at(of, thing);
    if (!got)
        return;
    int status = exit_of(got);
    bool is_ended = !got->is_late && status >= 0 && status <= 4;
    bool is_refused = status == 2 || status == 3;
    if (is_ended && (!says || (is_refused && strstr(got->said, says))))
        return;
    fprintf(stderr, "%s, %s: %s, status %x, said: %.300s\n", of->name, thing->name,
            got->is_late ? "never ended" : "ended", (unsigned)got->status, got->said);
    (*n_bad)++;
}

static const place inputs[] = {
    {"data", {TRAIN, "dataset.data_path=['@']"}, NULL, A_FILE},
    {"second data", {TRAIN, "dataset.data_path=[text,'@']"}, NULL, A_FILE},
    {"index of data", {TRAIN, "dataset.data_path=[half]"}, "half.idx", A_FILE},
    {"weights",
     {TRAIN, "dataset.data_path=[text]", "checkpoint.pretrained_checkpoint=@"},
     NULL,
     A_FILE_OR_FOLDER},
    {"weights in a folder",
     {TRAIN, "dataset.data_path=[text]", "checkpoint.pretrained_checkpoint=folder"},
     "folder/model.safetensors",
     A_FILE},
    {"folder to resume from",
     {TRAIN, "dataset.data_path=[text]", "checkpoint.load=@"},
     NULL,
     A_FOLDER},
    {"pointer",
     {TRAIN, "dataset.data_path=[text]", "checkpoint.load=folder"},
     "folder/latest_checkpointed_iteration.txt",
     A_FILE},
    {"config to train", {"train", "@", "--quiet"}, NULL, A_FILE},
    {"config to estimate", {"estimate", "@"}, NULL, A_FILE},
    {"config to study", {"study", "@"}, NULL, A_FILE},
    {"config to check", {"check", "@"}, NULL, A_FILE_OR_FOLDER},
    {"check --with", {"check", config, "--with", "@"}, NULL, A_FILE},
    {"check --jsonl", {"check", "--jsonl", "@"}, NULL, A_FILE},
    {"log", {"diagnose", "@"}, NULL, A_FILE_OR_FOLDER},
    {"diagnose --config", {"diagnose", "text", "--config", "@"}, NULL, A_FILE_OR_FOLDER},
    {"diagnose --snapshot", {"diagnose", "text", "--snapshot", "@"}, NULL, A_FILE_OR_FOLDER},
    {"diagnose --before", {"diagnose", "text", "--before", "@"}, NULL, A_FILE_OR_FOLDER},
    {"snapshot", {"snapshot", "overview", "@"}, NULL, A_FILE},
};

static void nothing_that_is_read_waits_or_crashes(void **state)
{
    int n_bad = 0;
    (void)state;
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        for (size_t k = 0; k < N_THINGS; k++) {
            bool is_right =
                inputs[i].wants != A_FILE && (strcmp(things[k].name, "a folder") == 0 ||
                                              strcmp(things[k].name, "a dangling link") == 0);
            /* a link to nothing is a file that is not there, which a folder may lack */
            bool is_missing = inputs[i].link && strcmp(things[k].name, "a dangling link") == 0;
            bool is_its_own = inputs[i].wants == A_FOLDER && *things[k].path;
            const char *says = things[k].as_input;
            check(&inputs[i], &things[k], is_right || is_missing || is_its_own ? NULL : says,
                  &n_bad);
        }
        if (inputs[i].link)
            unlink(inputs[i].link);
    }
    assert_int_equal(n_bad, 0);
}

static const place outputs[] = {
    {"--log", {TRAIN, "dataset.data_path=[text]", "--log", "@"}, NULL, A_FILE},
    {"picture", {"estimate", config, "--svg", "@"}, NULL, A_FILE},
    {"folder of checkpoints",
     {TRAIN, "dataset.data_path=[text]", "checkpoint.save=@"},
     NULL,
     A_FOLDER},
    {"folder of a study",
     {"study", "--launch", "true {overrides}", "--settings", "[mlp]", "--out", "@"},
     NULL,
     A_FOLDER},
    {"log of a launched run",
     {"study", "--launch", "true {overrides}", "--settings", "[mlp]", "--out", "folder"},
     "folder/run-000.log",
     A_FILE},
};

static void nothing_that_is_written_waits_or_crashes(void **state)
{
    int n_bad = 0;
    (void)state;
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++) {
        for (size_t k = 0; k < N_THINGS; k++) {
            if (things[k].as_output && !*things[k].as_output)
                continue;
            bool is_kind = outputs[i].wants == A_FOLDER && *things[k].path;
            check(&outputs[i], &things[k], is_kind ? NULL : things[k].as_output, &n_bad);
            /* what a run made of a folder or a dangling link is no test of the next */
            unlink("nowhere");
            unlink("folder/state.jsonl");
        }
        if (outputs[i].link)
            unlink(outputs[i].link);
    }
    assert_int_equal(n_bad, 0);
}

static void what_a_shell_opened_is_read(void **state)
{
    static const char *const commands[] = {
        "cat \"$1\" | \"$0\" check -",
        "cat \"$1\" | \"$0\" check /dev/stdin",
        "\"$0\" check /dev/stdin <\"$1\"",
        "\"$0\" check <(cat \"$1\")",
        "\"$0\" check \"$1\" --with <(cat \"$1\")",
        "\"$0\" diagnose <(cat text)",
        "\"$0\" check /dev/fd/5 5< <(cat \"$1\")",
    };
    (void)state;
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        const char *words[] = {"bash", "-c", commands[i], program, config, NULL};
        const char *before = program;
        program = "/bin/bash";
        outcome *got = run(words);
        program = before;
        if (exit_of(got) != 0 && exit_of(got) != 1)
            fail_msg("%s: status %x, said: %s", commands[i], (unsigned)got->status, got->said);
    }
}

/* More data files than a shell allows to be open at once, but not more than the kernel does. */
static void many_data_files_are_read(void **state)
{
    static const char command[] =
        "ulimit -Sn 24; list=; for i in $(seq 60); do list=$list,text; done; "
        "exec \"$0\" train \"$1\" --quiet model.num_layers=1 model.hidden_size=16 engine.threads=1 "
        "model.seq_length=16 train.train_iters=1 train.eval_iters=0 scheduler.lr_warmup_iters=0 "
        "\"dataset.data_path=[${list#,}]\"";
    const char *words[] = {"bash", "-c", command, program, config, NULL}, *before = program;
    (void)state;
    program = "/bin/bash";
    outcome *got = run(words);
    program = before;
    if (exit_of(got) != 0)
        fail_msg("status %x, said: %s", (unsigned)got->status, got->said);
}

/* A run that cannot look for its checkpoints must not start afresh, and save over them. */
static void a_folder_that_cannot_be_entered_is_not_an_empty_one(void **state)
{
    static char load[5100];
    const char *words[] = {program,
                           TRAIN,
                           "dataset.data_path=[text]",
                           "model.hidden_size=16",
                           "model.seq_length=16",
                           "engine.threads=1",
                           load,
                           NULL};
    (void)state;
    assert_int_equal(mkdir("closed", 0), 0);
    snprintf(load, sizeof load, "checkpoint.load=closed");
    outcome *got = finish(launch(words, geteuid() == 0));
    if (exit_of(got) < 126 && (exit_of(got) != 3 || !strstr(got->said, "Permission denied")))
        fail_msg("status %x, said: %s", (unsigned)got->status, got->said);
    snprintf(load, sizeof load, "checkpoint.load=%s", nowhere);
    got = run(words);
    if (exit_of(got) != 3 || !strstr(got->said, "too long"))
        fail_msg("status %x, said: %s", (unsigned)got->status, got->said);
}

static void empty_settings_name_no_path(void **state)
{
    static const struct {
        const char *word, *says;
    } cases[] = {
        {"checkpoint.save=", "checkpoint.save is an empty path"},
        {"checkpoint.load=", "checkpoint.load is an empty path"},
        {"checkpoint.pretrained_checkpoint=",
         "checkpoint.pretrained_checkpoint is an empty path"},
        {"dataset.data_path=[text,'']", "dataset.data_path has an empty path"},
        {"dataset.data_path=''", "dataset.data_path has an empty path"},
        {"dataset.data_path=[]", "dataset.data_path is missing"},
        {"--log=", "the value of --log is empty"},
        {"--save=", "checkpoint.save is an empty path"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *words[] = {program, TRAIN, "dataset.data_path=[text]", cases[i].word, NULL};
        outcome *got = run(words);
        if (exit_of(got) != 2 || !strstr(got->said, cases[i].says))
            fail_msg("%s: status %x, said: %s", cases[i].word, (unsigned)got->status,
                     got->said);
    }
    assert_int_equal(access("/iter_0000001", F_OK), -1);
}

/* --- files that are cut off --- */

static bool has_steps(const char *log)
{
    struct stat info;
    return stat(log, &info) == 0 && info.st_size > 2000;
}

static long saved_iteration(const char *folder)
{
    char path[128];
    long iteration = -1;
    snprintf(path, sizeof path, "%s/latest_checkpointed_iteration.txt", folder);
    FILE *from = fopen(path, "r");
    if (!from)
        return -1;
    if (fscanf(from, "%ld", &iteration) != 1)
        iteration = -1;
    fclose(from);
    return iteration;
}

static void compare_files(const char *one, const char *other)
{
    const char *words[] = {"cmp", one, other, NULL}, *before = program;
    program = "/usr/bin/cmp";
    outcome *got = run(words);
    program = before;
    if (exit_of(got) != 0)
        fail_msg("%s", got->said);
}

/* Resumed or never stopped, a run is the same; so what was saved must be what a run to that step is. */
static void check_saved(long iteration)
{
    static const char *const names[] = {"model", "optimizer"};
    char exit_at[64], one[128], other[128];
    snprintf(exit_at, sizeof exit_at, "train.exit_interval=%ld", iteration);
    const char *words[] = {program,
                           "train",
                           config,
                           "--quiet",
                           "model.num_layers=1",
                           "model.hidden_size=16",
                           "model.seq_length=16",
                           "engine.threads=1",
                           "train.train_iters=100000",
                           "train.eval_iters=0",
                           "dataset.data_path=[text]",
                           "checkpoint.save=whole",
                           exit_at,
                           NULL};
    assert_int_equal(exit_of(run(words)), 0);
    for (int i = 0; i < 2; i++) {
        snprintf(one, sizeof one, "cut/iter_%07ld/%s.safetensors", iteration, names[i]);
        snprintf(other, sizeof other, "whole/iter_%07ld/%s.safetensors", iteration, names[i]);
        compare_files(one, other);
    }
}

static void data_that_is_cut_off_is_an_error_after_a_save(void **state)
{
    const struct timespec moment = {.tv_nsec = 5000000};
    (void)state;
    for (long left = 0; left <= 20000; left += 20000) {
        write_long_text("cut.txt");
        unlink("cut.log");
        assert_int_equal(system("rm -rf cut whole"), 0);
        const char *words[] = {program,
                               "train",
                               config,
                               "--quiet",
                               "model.num_layers=1",
                               "model.hidden_size=16",
                               "model.seq_length=16",
                               "engine.threads=1",
                               "train.train_iters=100000",
                               "train.eval_iters=0",
                               "dataset.data_path=[cut.txt]",
                               "checkpoint.save=cut",
                               "--log",
                               "cut.log",
                               NULL};
        child of = launch(words, false);
        for (int i = 0; i < 6000 && !has_steps("cut.log"); i++)
            nanosleep(&moment, NULL);
        assert_int_equal(truncate("cut.txt", left), 0);
        outcome *got = finish(of);
        if (exit_of(got) != 3 || !strstr(got->said, "cut.txt: ") ||
            !strstr(got->said, "all steps before are saved in cut/iter_"))
            fail_msg("status %x, said: %s", (unsigned)got->status, got->said);
        long iteration = saved_iteration("cut");
        assert_true(iteration > 0);
        check_saved(iteration);
    }
}

/* Weights are mapped while they are loaded. */
static void weights_that_are_cut_off_are_named(void **state)
{
    static char room[4200];
    (void)state;
    if (RC_IS_SANITIZED) {
        print_message("skipped: a sanitizer wants to be loaded before the library that cuts\n");
        skip();
    }
    write_long_text("weights.cut");
    snprintf(room, sizeof room, "LD_PRELOAD=%s", cutter);
    const char *words[] = {"env",
                           room,
                           program,
                           TRAIN,
                           "dataset.data_path=[text]",
                           "model.hidden_size=16",
                           "model.seq_length=16",
                           "engine.threads=1",
                           "checkpoint.pretrained_checkpoint=weights.cut",
                           NULL};
    const char *before = program;
    program = "/usr/bin/env";
    outcome *got = run(words);
    program = before;
    if (exit_of(got) != 3 || !strstr(got->said, "weights.cut: was cut off"))
        fail_msg("status %x, said: %s", (unsigned)got->status, got->said);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_that_is_read_waits_or_crashes),
        cmocka_unit_test(nothing_that_is_written_waits_or_crashes),
        cmocka_unit_test(what_a_shell_opened_is_read),
        cmocka_unit_test(many_data_files_are_read),
        cmocka_unit_test(a_folder_that_cannot_be_entered_is_not_an_empty_one),
        cmocka_unit_test(empty_settings_name_no_path),
        cmocka_unit_test(data_that_is_cut_off_is_an_error_after_a_save),
        cmocka_unit_test(weights_that_are_cut_off_are_named),
    };
    if (argc != 4)
        return 2;
    program = argv[1];
    source = argv[2];
    cutter = argv[3];
    return cmocka_run_group_tests(tests, make_home, remove_home);
}
