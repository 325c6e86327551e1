/* test_limits.c — the machine's limits as the kernel writes them, and what they refuse.
 *
 * Folders that look like /proc and /sys stand for machines: both versions of cgroups, containers,
 * files that are missing or say something else.
 */
#define _GNU_SOURCE
#include "../laws/law.h"
#include "../sanitized.h"

#include "train/limits.h"

#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MIB = 1 << 20 };

static char home[64];

static int make_home(void **state)
{
    (void)state;
    strcpy(home, "/tmp/recompute-limits-XXXXXX");
    return mkdtemp(home) ? 0 : -1;
}

static int remove_home(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -r %s", home);
    return system(command);
}

typedef struct made_file {
    const char *path, *text;
} made_file;

/* One machine: all its files, below a folder of its own. */
static const char *make_machine(const char *name, const made_file *files)
{
    static char root[128];
    char path[512], command[600];
    snprintf(root, sizeof root, "%s/%s", home, name);
    for (const made_file *file = files; file->path; file++) {
        snprintf(path, sizeof path, "%s/%s", root, file->path);
        snprintf(command, sizeof command, "mkdir -p \"$(dirname \"%s\")\"", path);
        assert_int_equal(system(command), 0);
        FILE *to = fopen(path, "w");
        assert_non_null(to);
        fputs(file->text, to);
        assert_int_equal(fclose(to), 0);
    }
    return root;
}

#define V2_MOUNT                                                                               \
    "23 1 0:1 / /proc rw - proc proc rw\n"                                                     \
    "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
#define V1_MOUNT                                                                               \
    "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"                               \
    "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"                      \
    "33 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"

static const struct machine {
    const char *name;
    made_file files[12];
    /* of the tightest; NULL: there is no limit */
    const char *file;
    int64_t bytes, free_bytes;
} machines[] = {
    {"nothing", {{"proc/x", ""}}, NULL, 0, 0},
    {"v2",
     {{"proc/self/mountinfo", V2_MOUNT},
      {"proc/self/cgroup", "0::/job\n"},
      {"sys/fs/cgroup/job/memory.max", "1000\n"},
      {"sys/fs/cgroup/job/memory.current", "300\n"}},
     "/sys/fs/cgroup/job/memory.max",
     1000,
     700},
    {"v2-page-cache-is-given-back",
     {{"proc/self/mountinfo", V2_MOUNT},
      {"proc/self/cgroup", "0::/job\n"},
      {"sys/fs/cgroup/job/memory.max", "1000\n"},
      {"sys/fs/cgroup/job/memory.current", "900\n"},
      {"sys/fs/cgroup/job/memory.stat", "anon 100\nfile 750\ninactive_file 500\n"
                                        "active_file 200\nslab_reclaimable 50\n"
                                        "workingset_activate_file 7000\n"}},
     "/sys/fs/cgroup/job/memory.max",
     1000,
     850},
    {"v2-max-is-none",
     {{"proc/self/mountinfo", V2_MOUNT},
      {"proc/self/cgroup", "0::/job\n"},
      {"sys/fs/cgroup/job/memory.max", "max\n"},
      {"sys/fs/cgroup/job/memory.high", "max\n"},
      {"sys/fs/cgroup/job/memory.current", "300\n"}},
     NULL,
     0,
     0},
    {"v2-high",
     {{"proc/self/mountinfo", V2_MOUNT},
      {"proc/self/cgroup", "0::/job\n"},
      {"sys/fs/cgroup/job/memory.max", "1000\n"},
      {"sys/fs/cgroup/job/memory.high", "800\n"},
      {"sys/fs/cgroup/job/memory.current", "300\n"}},
     "/sys/fs/cgroup/job/memory.high",
     800,
     500},
    {"v2-parent-is-tighter",
     {{"proc/self/mountinfo", V2_MOUNT},
      {"proc/self/cgroup", "0::/pod/a/b\n"},
      {"sys/fs/cgroup/pod/a/b/memory.max", "1000\n"},
      {"sys/fs/cgroup/pod/a/b/memory.current", "10\n"},
      {"sys/fs/cgroup/pod/memory.max", "2000\n"},
      {"sys/fs/cgroup/pod/memory.current", "1900\n"}},
     "/sys/fs/cgroup/pod/memory.max",
     2000,
     100},
    {"v2-in-a-container", /* a namespace of its own: the group is the mount */
     {{"proc/self/mountinfo", V2_MOUNT},
      {"proc/self/cgroup", "0::/\n"},
      {"sys/fs/cgroup/memory.max", "500\n"},
      {"sys/fs/cgroup/memory.current", "100\n"}},
     "/sys/fs/cgroup/memory.max",
     500,
     400},
    {"v2-above-the-namespace",
     {{"proc/self/mountinfo", V2_MOUNT},
      {"proc/self/cgroup", "0::/../other\n"},
      {"sys/fs/cgroup/memory.max", "500\n"},
      {"sys/fs/cgroup/memory.current", "100\n"}},
     "/sys/fs/cgroup/memory.max",
     500,
     400},
    {"v2-passed-already",
     {{"proc/self/mountinfo", V2_MOUNT},
      {"proc/self/cgroup", "0::/job\n"},
      {"sys/fs/cgroup/job/memory.max", "1000\n"},
      {"sys/fs/cgroup/job/memory.current", "1300\n"}},
     "/sys/fs/cgroup/job/memory.max",
     1000,
     -300},
    {"v1",
     {{"proc/self/mountinfo", V1_MOUNT},
      {"proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/job\n0::/\n"},
      {"sys/fs/cgroup/memory/job/memory.limit_in_bytes", "1000\n"},
      {"sys/fs/cgroup/memory/job/memory.usage_in_bytes", "600\n"},
      {"sys/fs/cgroup/memory/job/memory.stat", "active_file 1\ntotal_active_file 100\n"
                                               "total_inactive_file 200\n"}},
     "/sys/fs/cgroup/memory/job/memory.limit_in_bytes",
     1000,
     700},
    {"v1-parent-counts",
     {{"proc/self/mountinfo", V1_MOUNT},
      {"proc/self/cgroup", "4:memory:/pod/job\n"},
      {"sys/fs/cgroup/memory/pod/job/memory.limit_in_bytes", "9223372036854771712\n"},
      {"sys/fs/cgroup/memory/pod/memory.limit_in_bytes", "1000\n"},
      {"sys/fs/cgroup/memory/pod/memory.use_hierarchy", "1\n"}},
     "/sys/fs/cgroup/memory/pod/memory.limit_in_bytes",
     1000,
     1000},
    {"v1-parent-does-not-count",
     {{"proc/self/mountinfo", V1_MOUNT},
      {"proc/self/cgroup", "4:memory:/pod/job\n"},
      {"sys/fs/cgroup/memory/pod/job/memory.limit_in_bytes", "5000\n"},
      {"sys/fs/cgroup/memory/pod/memory.limit_in_bytes", "1000\n"},
      {"sys/fs/cgroup/memory/pod/memory.use_hierarchy", "0\n"}},
     "/sys/fs/cgroup/memory/pod/job/memory.limit_in_bytes",
     5000,
     5000},
    {"v1-in-a-container", /* without a namespace: the mount shows the group as its root */
     {{"proc/self/mountinfo",
       "33 31 0:32 /docker/12ab /sys/fs/cgroup/memory ro master:9 - cgroup "
       "cgroup rw,memory\n"},
      {"proc/self/cgroup", "4:memory:/docker/12ab\n"},
      {"sys/fs/cgroup/memory/memory.limit_in_bytes", "1000\n"},
      {"sys/fs/cgroup/memory/memory.usage_in_bytes", "10\n"}},
     "/sys/fs/cgroup/memory/memory.limit_in_bytes",
     1000,
     990},
    {"hybrid", /* version 2 is there without its memory controller */
     {{"proc/self/mountinfo",
       V1_MOUNT "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"},
      {"proc/self/cgroup", "4:memory:/job\n0::/job\n"},
      {"sys/fs/cgroup/memory/job/memory.limit_in_bytes", "700\n"},
      {"sys/fs/cgroup/unified/job/cgroup.procs", "1\n"}},
     "/sys/fs/cgroup/memory/job/memory.limit_in_bytes",
     700,
     700},
    {"a-space-in-the-mount",
     {{"proc/self/mountinfo", "30 23 0:26 / /my\\040groups rw - cgroup2 cgroup2 rw\n"},
      {"proc/self/cgroup", "0::/job\n"},
      {"my groups/job/memory.max", "800\n"}},
     "/my groups/job/memory.max",
     800,
     800},
    {"garbage",
     {{"proc/self/mountinfo", "30 - cgroup2\n - \n\nx\n" V2_MOUNT},
      {"proc/self/cgroup", "x\n::\n0:\n0::/job\n"},
      {"proc/self/statm", "many pages"},
      {"proc/meminfo", "MemAvailable: lots\nMemTotal:\n"},
      {"sys/fs/cgroup/job/memory.max", "-5\n"},
      {"sys/fs/cgroup/job/memory.high", "99999999999999999999999999999999999999\n"}},
     NULL,
     0,
     0},
    {"machine",
     {{"proc/meminfo", "MemTotal: 100 kB\nMemFree: 1 kB\nMemAvailable:    40 kB\n"
                       "CommitLimit: 30 kB\nCommitted_AS: 20 kB\n"},
      {"proc/sys/vm/overcommit_memory", "0\n"}},
     "/proc/meminfo",
     100 * 1024,
     40 * 1024},
    {"machine-that-promises-no-more-than-it-has",
     {{"proc/meminfo", "MemTotal: 100 kB\nMemAvailable:    40 kB\n"
                       "CommitLimit: 30 kB\nCommitted_AS: 20 kB\n"},
      {"proc/sys/vm/overcommit_memory", "2\n"}},
     "/proc/meminfo",
     30 * 1024,
     10 * 1024},
};

static const rc_limit *tightest_of(const rc_limits *limits)
{
    const rc_limit *found = NULL;
    for (size_t i = 0; i < limits->n; i++)
        if (limits->at[i].file && (!found || limits->at[i].free_bytes < found->free_bytes))
            found = &limits->at[i];
    return found;
}

static void limits_are_read_as_the_kernel_writes_them(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++) {
        const struct machine *machine = &machines[i];
        rc_limits limits;
        rc_arena *mem = rc_arena_open();
        const char *root = make_machine(machine->name, machine->files);
        assert_int_equal(rc_limits_read(root, mem, &limits, NULL), RC_OK);
        const rc_limit *found = tightest_of(&limits);
        bool is_right = machine->file ? found && strcmp(found->file, machine->file) == 0 &&
                                            found->bytes == machine->bytes &&
                                            found->free_bytes == machine->free_bytes
                                      : !found;
        if (!is_right)
            fail_msg("%s: %s, %lld, %lld", machine->name, found ? found->file : "none",
                     found ? (long long)found->bytes : 0,
                     found ? (long long)found->free_bytes : 0);
        rc_arena_close(mem);
    }
}

/* Every file of this machine that is asked exists and is understood, or is not there. */
static void this_machine_has_memory(void **state)
{
    (void)state;
    rc_limits limits;
    rc_arena *mem = rc_arena_open();
    assert_int_equal(rc_limits_read("", mem, &limits, NULL), RC_OK);
    const rc_limit *found = tightest_of(&limits);
    /* MemAvailable at least */
    assert_true(found && found->free_bytes > 0);
    rc_arena_close(mem);
}

/* --- the refusal --- */

static void what_does_not_fit_is_refused_by_the_tightest_limit(void **state)
{
    (void)state;
    rc_arena *mem = rc_arena_open();
    const rc_schedule *schedule =
        law_schedule(law_graph(&law_models[0], "unfused", mem), "none", 3, mem);
    const int64_t arena = schedule->arena_bytes, order = 5 * MIB;
    const int64_t needed = arena + order + rc_run_beside_bytes(3) + RC_ROUNDING_BYTES;
    struct rlimit stack = {.rlim_cur = 4 * MIB, .rlim_max = RLIM_INFINITY};
    assert_int_equal(getrlimit(RLIMIT_STACK, &stack), 0);
    stack.rlim_cur = 4 * MIB;
    assert_int_equal(setrlimit(RLIMIT_STACK, &stack), 0);
    const struct {
        const char *name;
        int64_t spare[2]; /* of a limit of touched memory, and of one of addresses */
        const char *says; /* NULL: fits */
    } cases[] = {
        {"both just fit", {0, 8 * MIB}, NULL},
        {"touched memory", {-1, 99 * MIB}, "the group, 9.00 GiB, leaves"},
        {"addresses: two stacks more",
         {99 * MIB, 8 * MIB - 1},
         "the addresses, 8.00 GiB, leaves"},
        {"the tighter of the two", {-2, 8 * MIB - 1}, "the group"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rc_limits limits = {.n = 2,
                            .at = {{.name = "the group",
                                    .file = "f",
                                    .bytes = 9LL << 30,
                                    .free_bytes = needed + cases[i].spare[0]},
                                   {.name = "the addresses",
                                    .bytes = 8LL << 30,
                                    .free_bytes = needed + cases[i].spare[1],
                                    .counts = RC_COUNTS_WRITABLE}}};
        rc_error err = {0};
        rc_code code = rc_limits_refuse(&limits, schedule, order, mem, &err);
        if (code != (cases[i].says ? RC_E_MEMORY : RC_OK) ||
            (cases[i].says && !strstr(err.msg, cases[i].says)))
            fail_msg("%s: %d, %s", cases[i].name, (int)code, err.msg);
        if (cases[i].says)
            assert_non_null(strstr(err.msg, "the cheapest setting that fits needs"));
    }
    rc_arena_close(mem);
}

/* In a process of its own, since a limit that was lowered stays. 0: both were seen and were right. */
static int look_at_rlimits(void)
{
    const char *const names[2] = {"RLIMIT_AS", "RLIMIT_DATA"};
    rc_arena *mem = rc_arena_open();
    rc_limits limits;
    for (int i = 0; i < 2; i++) {
        struct rlimit limit = {.rlim_cur = 3000LL * MIB, .rlim_max = 3000LL * MIB};
        if ((i == 0 ? setrlimit(RLIMIT_AS, &limit) : setrlimit(RLIMIT_DATA, &limit)) != 0)
            return 10 + i;
    }
    if (rc_limits_read("", mem, &limits, NULL) != RC_OK)
        return 20;
    for (int i = 0; i < 2; i++) {
        size_t k = 0;
        while (k < limits.n && strncmp(limits.at[k].name, names[i], strlen(names[i])) != 0)
            k++;
        if (k == limits.n)
            return 30 + i;
        if (limits.at[k].bytes != 3000LL * MIB || limits.at[k].free_bytes >= 3000LL * MIB ||
            limits.at[k].free_bytes < 2000LL * MIB || limits.at[k].counts == RC_COUNTS_TOUCHED)
            return 40 + i;
    }
    return 0;
}

static void rlimits_of_the_process_are_seen(void **state)
{
    int status;
    (void)state;
    if (RC_IS_SANITIZED) {
        print_message("skipped: a sanitizer's own memory needs terabytes of addresses\n");
        skip();
    }
    pid_t pid = fork();
    if (pid == 0)
        _exit(look_at_rlimits());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits_are_read_as_the_kernel_writes_them),
        cmocka_unit_test(this_machine_has_memory),
        cmocka_unit_test(what_does_not_fit_is_refused_by_the_tightest_limit),
        cmocka_unit_test(rlimits_of_the_process_are_seen),
    };
    return cmocka_run_group_tests(tests, make_home, remove_home);
}
