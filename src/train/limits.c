/* limits.c — how much memory the machine lets this process take, and a refusal before it is taken.
 *
 * takes  files of the kernel, rlimits; what a run will take
 * gives  the limits with what is left of each; an error where that is too little
 *
 * What is left of a cgroup's limit is the limit less what the group cannot give back: its use without
 * the page cache, which is dropped before anybody is killed. A limit counts all below it, so the
 * groups of the whole path are asked, each with its own use.
 */
#define _POSIX_C_SOURCE 200809L
#include "train/limits.h"

#include "base/file.h"
#include "base/num.h"

#include <recompute/exec.h>
#include <recompute/plan.h>

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { MOST_PATH = 4096, MOST_FILE_BYTES = 4 << 20, MOST_LEVELS = 16, KIB = 1024 };

/* --- files of the kernel --- */

/* The text of a file, or NULL where it cannot be read: then it sets no limit. */
static rc_code read_text(const char *path, rc_arena *mem, const char **text, rc_error *err)
{
    size_t n;
    rc_error why = {0};
    rc_code code = rc_file_read(path, MOST_FILE_BYTES, mem, text, &n, &why);
    if (code == RC_OK)
        return RC_OK;
    *text = NULL;
    return code == RC_E_MEMORY ? RC_FAIL(err, code, RC_NOWHERE, "%s", why.msg) : RC_OK;
}

/* The digits at `at`; false where there are none ("max", or no number at all). A number that does not
 * fit is as good as none: cgroup v1 writes "no limit" so. */
static bool parse_digits(const char *at, int64_t *out)
{
    char word[32];
    at += strspn(at, " \t");
    size_t n = strspn(at, "0123456789");
    if (n == 0 || n >= sizeof word)
        return false;
    memcpy(word, at, n);
    word[n] = '\0';
    return rc_parse_int(word, out);
}

/* The number behind `key` at the start of a line, times `unit`; 0 where there is none. */
static int64_t number_of(const char *text, const char *key, int64_t unit)
{
    size_t n = strlen(key);
    int64_t value;
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, n) == 0 && parse_digits(line + n, &value) &&
            rc_mul(value, unit, &value))
            return value;
    }
    return 0;
}

typedef struct reading {
    const char *root;
    rc_arena *mem;
    rc_limits *out;
} reading;

static void add(reading *to, const rc_limit *limit)
{
    if (to->out->n < RC_MOST_LIMITS)
        to->out->at[to->out->n++] = *limit;
}

static rc_code read_below_root(const reading *from, const char *path, const char **text,
                               rc_error *err)
{
    char full[MOST_PATH];
    int n = snprintf(full, sizeof full, "%s%s", from->root, path);
    *text = NULL;
    return n > 0 && (size_t)n < sizeof full ? read_text(full, from->mem, text, err) : RC_OK;
}

/* --- the process --- */

static void add_rlimit(reading *to, int which, const rc_limit *facts, int64_t used_bytes)
{
    struct rlimit limit;
    if (getrlimit(which, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
        limit.rlim_cur > INT64_MAX)
        return;
    rc_limit found = *facts;
    found.bytes = (int64_t)limit.rlim_cur;
    found.free_bytes = found.bytes - used_bytes;
    add(to, &found);
}

/* statm counts pages: size resident shared text lib data dt. */
static rc_code read_process(reading *to, rc_error *err)
{
    const char *text;
    int64_t pages[7] = {0}, page_bytes = sysconf(_SC_PAGESIZE);
    RC_TRY(read_below_root(to, "/proc/self/statm", &text, err));
    for (int i = 0; text && i < 7 && parse_digits(text, &pages[i]); i++) {
        text += strspn(text, " ");
        text += strspn(text, "0123456789");
    }
    const rc_limit addresses = {.name = "RLIMIT_AS (ulimit -v)", .counts = RC_COUNTS_ADDRESSES};
    const rc_limit data = {.name = "RLIMIT_DATA (ulimit -d)", .counts = RC_COUNTS_WRITABLE};
    add_rlimit(to, RLIMIT_AS, &addresses, pages[0] * page_bytes);
    add_rlimit(to, RLIMIT_DATA, &data, pages[5] * page_bytes);
    return RC_OK;
}

/* --- the machine --- */

static rc_code read_machine(reading *to, rc_error *err)
{
    const char *text, *mode;
    RC_TRY(read_below_root(to, "/proc/meminfo", &text, err));
    RC_TRY(read_below_root(to, "/proc/sys/vm/overcommit_memory", &mode, err));
    if (!text)
        return RC_OK;
    int64_t all = number_of(text, "MemTotal:", KIB);
    int64_t available = number_of(text, "MemAvailable:", KIB);
    int64_t most = number_of(text, "CommitLimit:", KIB);
    if (available > 0)
        add(to, &(rc_limit){.name = "the memory of this machine (MemAvailable)",
                            .file = "/proc/meminfo",
                            .bytes = all,
                            .free_bytes = available});
    if (mode && *mode == '2' && most > 0) /* else more may be promised than there is */
        add(to, &(rc_limit){.name = "what this machine may promise (CommitLimit)",
                            .file = "/proc/meminfo",
                            .bytes = most,
                            .free_bytes = most - number_of(text, "Committed_AS:", KIB),
                            .counts = RC_COUNTS_WRITABLE});
    return RC_OK;
}

/* --- cgroups --- */

/* What the two versions call things. */
typedef struct cgroup_version {
    const char *fs_type;    /* in /proc/self/mountinfo */
    const char *controller; /* in the mount's options and in /proc/self/cgroup */
    const char *limits[2];
    const char *used;
    const char *freed_at_need[4]; /* lines of memory.stat, of the group and all below it */
} cgroup_version;

static const cgroup_version versions[] = {
    {"cgroup2",
     "",
     {"memory.max", "memory.high"},
     "memory.current",
     {"active_file ", "inactive_file ", "slab_reclaimable "}},
    {"cgroup",
     "memory",
     {"memory.limit_in_bytes"},
     "memory.usage_in_bytes",
     {"total_active_file ", "total_inactive_file "}},
};

/* Is `word` one of the words in `list`, which commas set apart? */
static bool is_among(const char *list, size_t n_list, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = list; at < list + n_list;) {
        size_t length = 0;
        while (at + length < list + n_list && at[length] != ',')
            length++;
        if (length == n && strncmp(at, word, n) == 0)
            return true;
        at += length + 1;
    }
    return false;
}

/* "4:memory:/a/b" or "0::/a/b": the group of this process, up to the line's end. */
static bool find_group(const char *text, const char *controller, char out[MOST_PATH])
{
    for (const char *line = text; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        const char *list = strchr(line, ':'), *end = line + strcspn(line, "\n");
        const char *path = list ? strchr(list + 1, ':') : NULL;
        if (!path || path >= end || end - path > MOST_PATH)
            continue;
        bool is_it = *controller ? is_among(list + 1, (size_t)(path - list - 1), controller)
                                 : path == list + 1;
        if (!is_it)
            continue;
        memcpy(out, path + 1, (size_t)(end - path - 1));
        out[end - path - 1] = '\0';
        return true;
    }
    return false;
}

/* A word of a line of mountinfo, in which \040 is a space. */
static const char *copy_word(const char *at, char out[MOST_PATH])
{
    size_t n = 0;
    for (; *at && *at != ' ' && *at != '\n'; at++) {
        bool is_octal = at[0] == '\\' && strspn(at + 1, "01234567") >= 3;
        char c =
            (char)(is_octal ? (at[1] - '0') << 6 | (at[2] - '0') << 3 | (at[3] - '0') : *at);
        at += is_octal ? 3 : 0;
        if (n < MOST_PATH - 1)
            out[n++] = c;
    }
    out[n] = '\0';
    return at + (*at == ' ');
}

typedef struct mount {
    char root[MOST_PATH]; /* the group that is seen at `point` */
    char point[MOST_PATH];
} mount;

/* "36 35 98:0 /root /point rw,noatime master:1 - type source options" */
static bool find_mount(const char *text, const cgroup_version *version, mount *out)
{
    char word[MOST_PATH];
    for (const char *line = text; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        const char *at = line, *type = strstr(line, " - "), *end = line + strcspn(line, "\n");
        if (!type || type > end)
            continue;
        for (int i = 0; i < 3; i++)
            at = copy_word(at, word);
        at = copy_word(at, out->root);
        copy_word(at, out->point);
        at = copy_word(type + 3, word);
        if (strcmp(word, version->fs_type) != 0)
            continue;
        copy_word(copy_word(at, word), word); /* the source, and word is the options */
        if (!*version->controller || is_among(word, strlen(word), version->controller))
            return true;
    }
    return false;
}

/* The folder of the group, as far as it can be seen from here. In a container the mount may show no
 * more than the group of the container, or a group above it. */
static void find_folder(const mount *at, const char *group, char out[MOST_PATH])
{
    size_t n = strcmp(at->root, "/") == 0 ? 0 : strlen(at->root);
    bool is_below = strncmp(group, at->root, n) == 0 && (group[n] == '/' || !group[n]);
    const char *rest = is_below && !strstr(group, "/..") ? group + n : "";
    int length = snprintf(out, MOST_PATH, "%s%s", at->point, rest);
    if (length < 0 || length >= MOST_PATH)
        snprintf(out, MOST_PATH, "%s", at->point);
    for (size_t k = strlen(out); k > 1 && out[k - 1] == '/'; k--)
        out[k - 1] = '\0';
}

static rc_code read_in_group(const reading *from, const char *folder, const char *name,
                             const char **text, rc_error *err)
{
    char path[MOST_PATH];
    int n = snprintf(path, sizeof path, "%s/%s", folder, name);
    *text = NULL;
    return n > 0 && (size_t)n < sizeof path ? read_below_root(from, path, text, err) : RC_OK;
}

static rc_code count_used(const reading *from, const cgroup_version *version,
                          const char *folder, int64_t *bytes, rc_error *err)
{
    const char *text;
    *bytes = 0;
    RC_TRY(read_in_group(from, folder, version->used, &text, err));
    if (!text || !parse_digits(text, bytes))
        return RC_OK;
    RC_TRY(read_in_group(from, folder, "memory.stat", &text, err));
    for (int i = 0; text && version->freed_at_need[i]; i++)
        *bytes -= number_of(text, version->freed_at_need[i], 1);
    *bytes = *bytes < 0 ? 0 : *bytes;
    return RC_OK;
}

static rc_code read_group(reading *to, const cgroup_version *version, const char *folder,
                          rc_error *err)
{
    int64_t limit, used;
    const char *text, *file;
    for (int i = 0; i < 2 && version->limits[i]; i++) {
        rc_mark mark = rc_arena_mark(to->mem);
        RC_TRY(read_in_group(to, folder, version->limits[i], &text, err));
        bool is_set = text && parse_digits(text, &limit);
        if (is_set)
            RC_TRY(count_used(to, version, folder, &used, err));
        rc_arena_rewind(to->mem, mark);
        if (!is_set)
            continue;
        RC_TRY(rc_arena_printf(to->mem, &file, err, "%s/%s", folder, version->limits[i]));
        add(to, &(rc_limit){.name = "the limit of this memory cgroup",
                            .file = file,
                            .bytes = limit,
                            .free_bytes = limit - used});
    }
    return RC_OK;
}

/* In version 1 a group may not count what is below it. */
static rc_code counts_below(const reading *from, const char *folder, bool *out, rc_error *err)
{
    const char *text;
    RC_TRY(read_in_group(from, folder, "memory.use_hierarchy", &text, err));
    *out = !text || *text != '0';
    return RC_OK;
}

static rc_code read_groups(reading *to, const cgroup_version *version, const char *mounts,
                           const char *groups, rc_error *err)
{
    mount at;
    char group[MOST_PATH], folder[MOST_PATH];
    if (!find_group(groups, version->controller, group) || !find_mount(mounts, version, &at))
        return RC_OK;
    find_folder(&at, group, folder);
    for (int level = 0; level < MOST_LEVELS; level++) {
        bool is_counted = true;
        RC_TRY(read_group(to, version, folder, err));
        char *slash = strrchr(folder, '/');
        if (!slash || strlen(folder) <= strlen(at.point))
            return RC_OK;
        *slash = '\0';
        RC_TRY(counts_below(to, folder, &is_counted, err));
        if (!is_counted)
            return RC_OK;
    }
    return RC_OK;
}

static rc_code read_cgroups(reading *to, rc_error *err)
{
    const char *mounts, *groups;
    RC_TRY(read_below_root(to, "/proc/self/mountinfo", &mounts, err));
    RC_TRY(read_below_root(to, "/proc/self/cgroup", &groups, err));
    for (size_t i = 0; mounts && groups && i < sizeof versions / sizeof *versions; i++)
        RC_TRY(read_groups(to, &versions[i], mounts, groups, err));
    return RC_OK;
}

rc_code rc_limits_read(const char *root, rc_arena *mem, rc_limits *out, rc_error *err)
{
    reading to = {.root = root, .mem = mem, .out = out};
    out->n = 0;
    RC_TRY(read_process(&to, err));
    RC_TRY(read_machine(&to, err));
    return read_cgroups(&to, err);
}

/* --- the refusal --- */

/* Address space of the team's stacks, without the first thread's, which is there. */
static int64_t count_stacks(int n_threads)
{
    const int64_t most_bytes = INT64_MAX / 4; /* some is added to it */
    int64_t bytes;
    bool is_small = rc_mul(rc_run_stack_bytes(), n_threads - 1, &bytes) && bytes < most_bytes;
    return is_small ? bytes : most_bytes;
}

rc_code rc_limits_refuse(const rc_limits *limits, const rc_schedule *schedule,
                         int64_t order_bytes, rc_arena *mem, rc_error *err)
{
    const rc_limit *tightest = NULL;
    int64_t least = INT64_MAX, beside = 0;
    char given[240], left[32], all[32], extra[32];
    for (size_t i = 0; i < limits->n; i++) {
        const rc_limit *limit = &limits->at[i];
        int64_t needed =
            rc_run_beside_bytes(schedule->n_threads) + RC_ROUNDING_BYTES + order_bytes;
        if (limit->counts >= RC_COUNTS_WRITABLE)
            needed += count_stacks(schedule->n_threads);
        if (limit->counts >= RC_COUNTS_ADDRESSES)
            needed += RC_LIBRARY_FILES_BYTES;
        if (limit->free_bytes - needed >= least)
            continue;
        least = limit->free_bytes - needed;
        beside = needed;
        tightest = limit;
    }
    if (!tightest || schedule->arena_bytes <= least)
        return RC_OK;
    snprintf(given, sizeof given, " and %s beside it; %s, %s, leaves %s",
             rc_format_bytes(beside, extra), tightest->name,
             rc_format_bytes(tightest->bytes, all),
             rc_format_bytes(tightest->free_bytes < 0 ? 0 : tightest->free_bytes, left));
    rc_plan_bound bound = {
        .bytes = least, .given = given, .where = {.file = tightest->file}, .code = RC_E_MEMORY};
    return rc_plan_refuse_over(schedule, &bound, mem, err);
}
