/* test_durable.c — a save that is killed, or whose disk fails, at each of its system calls.
 *
 * The calls that change what is on disk are this program's own functions of the same names, which the
 * library's object files are linked to: they note what happens, and end or fail the one asked for.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "checkpoint_model.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { MOST_CALLS = 400 };

typedef struct call {
    const char *name;
    char path[200], to[200];
} call;

static struct {
    bool is_on;
    int n;         /* calls so far */
    int kill_at;   /* the process ends before this one; -1 never */
    int fail_at;   /* this one fails; -1 never */
    int fail_with; /* errno */
    call calls[MOST_CALLS];
} disk = {.kill_at = -1, .fail_at = -1};

/* False: the call is to fail. */
static bool note(const char *name, const char *path, const char *to)
{
    if (!disk.is_on)
        return true;
    int at = disk.n++;
    if (at == disk.kill_at)
        raise(SIGKILL);
    if (at < MOST_CALLS) {
        disk.calls[at].name = name;
        snprintf(disk.calls[at].path, sizeof disk.calls[at].path, "%s", path);
        snprintf(disk.calls[at].to, sizeof disk.calls[at].to, "%s", to);
    }
    if (at != disk.fail_at)
        return true;
    errno = disk.fail_with;
    return false;
}

static const char *path_of(int fd, char buf[200])
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, buf, 199);
    buf[n > 0 ? n : 0] = '\0';
    return buf;
}

/* No test here ends the machine: noting that it was asked for is enough, and a hundred times faster. */
int fsync(int fd)
{
    char path[200];
    return note("fsync", path_of(fd, path), "") ? 0 : -1;
}

int rename(const char *from, const char *to)
{
    return note("rename", from, to)
               ? (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0)
               : -1;
}

int mkdir(const char *path, mode_t mode)
{
    return note("mkdir", path, "") ? (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode) : -1;
}

int unlinkat(int fd, const char *name, int flags)
{
    char path[200];
    return note("unlinkat", path_of(fd, path), name)
               ? (int)syscall(SYS_unlinkat, fd, name, flags)
               : -1;
}

size_t fwrite(const void *bytes, size_t size, size_t n, FILE *to)
{
    static size_t (*real)(const void *, size_t, size_t, FILE *);
    char path[200];
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "fwrite");
    return note("fwrite", path_of(fileno(to), path), "") ? real(bytes, size, n, to) : 0;
}

/* --- */

static char folder[64];

static int open_all(void **state)
{
    *state = rc_arena_open();
    make_temp_folder(folder);
    return 0;
}

static int close_all(void **state)
{
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", folder);
    rc_arena_close(*state);
    return system(command);
}

/* A new folder with iteration 10 of model 1; a save of model 2 is watched then. */
static const char *begin(void **state)
{
    static int n_folders;
    char name[32];
    model m;
    rc_state first = state_at(10);
    snprintf(name, sizeof name, "run%d", n_folders++);
    const char *where = path_in(folder, name);
    fill_model(&m, 1);
    assert_int_equal(rc_checkpoint_save(where, &first, &m.all, *state, NULL), RC_OK);
    return where;
}

static rc_code watched_save(const char *where, int64_t iteration, rc_arena *mem, rc_error *err)
{
    model m;
    rc_state second = state_at(iteration);
    fill_model(&m, 2);
    disk.n = 0;
    disk.is_on = true;
    rc_code code = rc_checkpoint_save(where, &second, &m.all, mem, err);
    disk.is_on = false;
    return code;
}

/* What the pointer means is whole: the first checkpoint or the second. Gives its iteration. */
static int64_t expect_whole(const char *where, int64_t second, void **state)
{
    model m, one, two;
    const char *path;
    rc_error err = {0};
    rc_state is = this_run();
    fill_model(&m, 0);
    fill_model(&one, 1);
    fill_model(&two, 2);
    if (rc_checkpoint_find(where, *state, &path, &err) != RC_OK || !path ||
        rc_checkpoint_load(path, &m.all, &is, *state, &err) != RC_OK)
        fail_msg("call %d: %s", disk.kill_at + disk.fail_at + 1, err.msg);
    assert_true(is_same_model(&m, &one) || is_same_model(&m, &two));
    assert_true(is.iteration == 10 || is.iteration == second);
    if (second != 10)
        assert_int_equal(is.iteration == 10, is_same_model(&m, &one));
    return is.iteration;
}

/* Nothing half written, and where `is_clean` no checkpoint twice. */
static void expect_names(const char *where, rc_arena *mem, bool is_clean)
{
    const char **names;
    size_t n;
    assert_int_equal(rc_path_list(where, mem, &names, &n, NULL), RC_OK);
    for (size_t i = 0; i < n; i++)
        assert_null(strstr(names[i], "tmp"));
    for (size_t i = 0; is_clean && i < n; i++)
        assert_null(strstr(names[i], "old"));
}

/* After it the next start cleans the folder, and a save goes through. */
static void expect_next_save(const char *where, int64_t iteration, void **state)
{
    rc_error err = {0};
    assert_int_equal(rc_checkpoint_clean(where, *state, NULL), RC_OK);
    expect_names(where, *state, true);
    if (watched_save(where, iteration, *state, &err) != RC_OK)
        fail_msg("%s", err.msg);
    assert_int_equal(expect_whole(where, iteration, state), iteration);
    expect_names(where, *state, true);
}

static int count_calls(int64_t iteration, void **state)
{
    const char *where = begin(state);
    assert_int_equal(watched_save(where, iteration, *state, NULL), RC_OK);
    assert_in_range(disk.n, 20, MOST_CALLS - 1);
    return disk.n;
}

static void kill_at_each_call(int64_t iteration, void **state)
{
    int n = count_calls(iteration, state), n_old = 0, n_new = 0, status;
    for (int i = 0; i < n; i++) {
        const char *where = begin(state);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            disk.kill_at = i;
            (void)!watched_save(where, iteration, *state, NULL);
            _exit(0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        disk.kill_at = i; /* for messages */
        expect_whole(where, iteration, state) == 10 ? n_old++ : n_new++;
        disk.kill_at = -1;
        expect_next_save(where, iteration, state);
    }
    if (iteration != 10)
        assert_true(n_old > 10 && n_new > 0);
}

static void killed_at_any_call_one_of_two_checkpoints_is_whole(void **state)
{
    kill_at_each_call(20, state);
}

static void killed_while_the_same_iteration_is_saved_again(void **state)
{
    kill_at_each_call(10, state);
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* A folder that is there already, and files of iter_N.old, which the next start tries again. */
static bool is_harmless(const call *of)
{
    return (strcmp(of->name, "mkdir") == 0 && !ends_with(of->path, ".tmp")) ||
           (strcmp(of->name, "unlinkat") == 0 && ends_with(of->path, ".old"));
}

static void fail_at_each_call(int64_t iteration, void **state)
{
    int n = count_calls(iteration, state);
    for (int i = 0; i < n; i++) {
        const char *where = begin(state);
        rc_error err = {0};
        disk.fail_at = i;
        disk.fail_with = i % 2 ? ENOSPC : EIO;
        rc_code code = watched_save(where, iteration, *state, &err);
        disk.fail_at = -1;
        bool is_told = code == RC_E_IO && strstr(err.msg, strerror(disk.fail_with));
        if (!is_told && !is_harmless(&disk.calls[i]))
            fail_msg("call %d, %s of %s: code %d, \"%s\"", i, disk.calls[i].name,
                     disk.calls[i].path, (int)code, err.msg);
        expect_names(where, *state, false);
        expect_whole(where, iteration, state);
        if (strcmp(disk.calls[i].name, "rename") == 0) /* what was moved away is moved back */
            assert_int_equal(access(path_in(where, "iter_0000010"), F_OK), 0);
        expect_next_save(where, iteration, state);
    }
}

static void a_disk_that_fails_at_any_call_is_a_clean_error(void **state)
{
    fail_at_each_call(30, state);
}

static void a_disk_that_fails_while_the_same_iteration_is_saved_again(void **state)
{
    fail_at_each_call(10, state);
}

/* The last call of that name before `before` whose path or target ends so, or -1. */
static int find_call(int before, const char *name, const char *end)
{
    for (int i = before - 1; i >= 0; i--)
        if (strcmp(disk.calls[i].name, name) == 0 &&
            (ends_with(disk.calls[i].path, end) || ends_with(disk.calls[i].to, end)))
            return i;
    return -1;
}

/* A power failure keeps what was synced: every file before its rename, and every directory after the
 * names in it changed and before the next step relies on them. */
static void each_step_is_synced_before_the_next(void **state)
{
    static const char *const files[] = {"model.safetensors", "optimizer.safetensors",
                                        "state.json"};
    const char *where = begin(state), *name = strrchr(where, '/');
    assert_int_equal(watched_save(where, 10, *state, NULL), RC_OK);
    int made = find_call(disk.n, "rename", "/iter_0000010");
    int moved = find_call(made, "rename", "/iter_0000010.old");
    int pointed = find_call(disk.n, "rename", "/latest_checkpointed_iteration.txt");
    int removed = find_call(disk.n, "unlinkat", "/iter_0000010.old");
    assert_true(0 < moved && moved < made && made < pointed && pointed < removed);
    for (int i = 0; i < 3; i++) {
        int placed = find_call(moved, "rename", files[i]);
        assert_true(placed > 0);
        assert_string_equal(disk.calls[placed - 1].name, "fsync");
        assert_string_equal(disk.calls[placed - 1].path, disk.calls[placed].path);
        assert_true(find_call(moved, "fsync", "/iter_0000010.tmp") > placed);
    }
    assert_true(find_call(moved, "fsync", name) > find_call(moved, "mkdir", ".tmp"));
    assert_true(find_call(made, "fsync", name) > moved);
    assert_true(find_call(pointed, "fsync", name) > made);
    assert_string_equal(disk.calls[pointed - 1].name, "fsync");
    assert_string_equal(disk.calls[pointed - 1].path, disk.calls[pointed].path);
    assert_true(find_call(removed, "fsync", name) > pointed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(killed_at_any_call_one_of_two_checkpoints_is_whole),
        cmocka_unit_test(killed_while_the_same_iteration_is_saved_again),
        cmocka_unit_test(a_disk_that_fails_at_any_call_is_a_clean_error),
        cmocka_unit_test(a_disk_that_fails_while_the_same_iteration_is_saved_again),
        cmocka_unit_test(each_step_is_synced_before_the_next),
    };
    return cmocka_run_group_tests_name("durable", tests, open_all, close_all);
}
