/* bench_check.c — the whole process `recompute check` on Bridge's run_config.yaml of 600 lines: one
 * file, a folder of 1,000, and its peak memory.
 *
 * Limits: 5 ms, 2 s, 16 MiB. Beside them, measured in the same run: the same program printing its
 * version (a process's own price), and, where PYTHON names an interpreter with megatron-core, the
 * same question put to it.
 */
#define _DEFAULT_SOURCE
#include <recompute/config.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { N_LINES = 600, N_FILES = 1000, N_RUNS = 9 };

typedef struct cost {
    double seconds;
    long peak_kib;
} cost;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Every field of section `model` with its default, and keys of Bridge that are none of ours. */
static void write_config(const char *path)
{
    FILE *to = fopen(path, "w");
    int n_lines = 5;
    if (!to)
        exit(3);
    fprintf(to, "model:\n  _target_: a.b.GPTModelProvider\n  num_layers: 32\n"
                "  hidden_size: 4096\n  num_attention_heads: 32\n");
    for (int i = 0; i < RC_FIELD_COUNT; i++) {
        const rc_field_facts *field = rc_field_find((rc_field)i);
        if (strncmp(field->key, "model.", 6) != 0 || field->key[6] == '_' ||
            strstr("num_layers hidden_size num_attention_heads", field->key + 6))
            continue;
        fprintf(to, "  %s: %s\n", field->key + 6, field->dflt);
        n_lines++;
    }
    for (; n_lines < N_LINES; n_lines++)
        fprintf(to, "  a_setting_of_bridge_%d: null\n", n_lines);
    fclose(to);
}

static cost run(char *const *argv)
{
    struct rusage used;
    int status = 0;
    double start = now();
    pid_t child = fork();
    if (child == 0) {
        int none = open("/dev/null", O_WRONLY);
        dup2(none, 1);
        dup2(none, 2);
        execvp(argv[0], argv);
        _exit(127);
    }
    if (child < 0 || wait4(child, &status, 0, &used) < 0)
        exit(3);
    if (!WIFEXITED(status) || WEXITSTATUS(status) > 2)
        return (cost){-1.0, 0};
    return (cost){now() - start, used.ru_maxrss};
}

static int compare(const void *a, const void *b)
{
    double x = ((const cost *)a)->seconds, y = ((const cost *)b)->seconds;
    return (x > y) - (x < y);
}

static cost median(char *const *argv, int n_runs)
{
    cost runs[N_RUNS];
    for (int i = 0; i < n_runs; i++)
        runs[i] = run(argv);
    qsort(runs, (size_t)n_runs, sizeof *runs, compare);
    return runs[n_runs / 2];
}

static void print(const char *what, cost one, double limit_seconds)
{
    printf("%-28s %9.2f ms, limit %7.0f ms, ratio %.2f; peak %5.1f MiB, limit 16 MiB\n", what,
           one.seconds * 1e3, limit_seconds * 1e3, one.seconds / limit_seconds,
           (double)one.peak_kib / 1024.0);
}

int main(void)
{
    char folder[] = "/tmp/bench_check.XXXXXX", path[128];
    char program[] = RC_BINARY_DIR "/recompute", check[] = "check", version[] = "--version";
    char question[] =
        "from megatron.core.transformer.transformer_config import TransformerConfig; "
        "TransformerConfig(num_layers=32, hidden_size=4096, num_attention_heads=32)";
    char dash_c[] = "-c";
    if (!mkdtemp(folder))
        return 3;
    for (int i = 0; i < N_FILES; i++) {
        snprintf(path, sizeof path, "%s/%04d.yaml", folder, i);
        write_config(path);
    }
    cost start = median((char *[]){program, version, NULL}, N_RUNS);
    cost one = median((char *[]){program, check, path, NULL}, N_RUNS);
    print("check of one file", one, 5e-3);
    print("check of 1,000 files", median((char *[]){program, check, folder, NULL}, 3), 2.0);
    printf("%-28s %9.2f ms: the check itself is %.2f ms\n", "the process alone",
           start.seconds * 1e3, (one.seconds - start.seconds) * 1e3);
    char *python = getenv("PYTHON");
    cost peer =
        python ? median((char *[]){python, dash_c, question, NULL}, 1) : (cost){-1.0, 0};
    if (peer.seconds > 0.0)
        printf("%-28s %9.2f ms, %.1f MiB: %.0f times our time\n", "megatron-core in Python",
               peer.seconds * 1e3, (double)peer.peak_kib / 1024.0, peer.seconds / one.seconds);
    else
        printf("megatron-core was not asked: PYTHON names no interpreter that has it\n");
    for (int i = 0; i < N_FILES; i++) {
        snprintf(path, sizeof path, "%s/%04d.yaml", folder, i);
        unlink(path);
    }
    rmdir(folder);
    return 0;
}
