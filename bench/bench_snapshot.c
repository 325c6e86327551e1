/* bench_snapshot.c — the program on memory snapshots: processor time and peak memory of each action.
 *
 *   bench_snapshot [FILE [FILE_B]]   without files: a million events of our own, like CPython writes them
 *
 * Beside it, in the same run: `cat` of the file (what reading costs at all) and, where Python is
 * found, pickle.load (what every script pays before it begins). Best of three.
 */
#define _DEFAULT_SOURCE
#include "../tests/unit/snapshot_writer.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    N_EVENTS = 1000000,
    N_RISING = 330000,
    N_STACKS = 40,
    N_FRAMES = 25,
    N_LIVE = 512,
    N_RUNS = 3
};

/* ---- a file of our own ---- */

static void flush(writer *w, FILE *to)
{
    fwrite(w->at, 1, w->n, to);
    w->n = 0;
}

static void put_stack(writer *w, int stack, const uint32_t *frame_memo)
{
    uint32_t memo = w_list(w);
    for (int i = 0; i < N_FRAMES; i++)
        w_get(w, frame_memo[(stack * 7 + i) % (N_STACKS + N_FRAMES)]);
    w_end_list(w, memo);
}

static void put_frames(writer *w, uint32_t *frame_memo)
{
    static char names[N_STACKS + N_FRAMES][32];
    uint32_t list = w_list(w);
    for (int i = 0; i < N_STACKS + N_FRAMES; i++) {
        snprintf(names[i], sizeof names[i], "function_%d", i);
        frame_memo[i] = w_dict(w);
        w_key_text(w, "name", names[i]);
        w_key_text(w, "filename", "/opt/megatron-lm/megatron/core/transformer/mlp.py");
        w_key_int(w, "line", i);
        w_end_dict(w, frame_memo[i]);
    }
    w_end_list(w, list);
}

static void put_event(writer *w, const char *action, int64_t addr, int64_t size, int64_t i)
{
    w_dict(w);
    w_key_text(w, "action", action);
    w_key_int(w, "addr", addr);
    w_key_int(w, "size", size);
    w_key_int(w, "stream", 0);
    w_key_int(w, "time_us", 1760000000000000 + i * 9);
    w_text(w, "compile_context");
    w_new_text(w, "N/A");
    w_text(w, "frames");
}

/* Allocations that take turns in N_LIVE places; each free shows the stack of its allocation. Or rising:
 * nothing is freed, so every event is a new peak. */
static int write_file(const char *path, int64_t n_events, bool is_rising)
{
    FILE *to = fopen(path, "wb");
    if (!to)
        return 1;
    writer w;
    uint32_t frame_memo[N_STACKS + N_FRAMES], memo[N_LIVE];
    w_begin(&w, 4, false);
    w_dict(&w);
    w_text(&w, "frames_of_this_file");
    put_frames(&w, frame_memo);
    w_text(&w, "segments");
    w_empty_list(&w);
    w_text(&w, "device_traces");
    w_list(&w);
    w_list(&w);
    for (int64_t i = 0; i < n_events; i++) {
        int64_t turn = i / 3, place = turn % N_LIVE;
        int64_t before = is_rising ? 0 : turn / N_LIVE;
        const char *const actions[] = {"free_requested", "free_completed", "alloc"};
        bool is_alloc = i % 3 == 2;
        int64_t size = 512 * (1 + (turn * 37 + before * 11) % 4096);
        if (i > 0 && i % 1000 == 0) {
            w_byte(&w, 'e');
            w_byte(&w, '(');
        }
        put_event(&w, is_alloc || before == 0 ? "alloc" : actions[i % 3],
                  0x7F0000000000 + (is_rising     ? i
                                    : is_alloc    ? place
                                    : before == 0 ? N_LIVE + i
                                                  : place) *
                                       4194304,
                  size, i);
        if (is_alloc || before == 0) {
            memo[place] = w.n_memo;
            put_stack(&w, (int)(turn % N_STACKS), frame_memo);
        } else {
            w_get(&w, memo[place]);
        }
        w_byte(&w, 'u');
        if (w.n > 1 << 20)
            flush(&w, to);
    }
    w_byte(&w, 'e');
    w_byte(&w, 'e');
    w_byte(&w, 'u');
    w_finish(&w);
    flush(&w, to);
    w_free(&w);
    return fclose(to) != 0;
}

/* ---- measuring ---- */

typedef struct cost {
    double cpu_seconds, mib;
    bool is_fine;
} cost;

static cost run_once(char *const *words)
{
    pid_t child = fork();
    if (child == 0) {
        int null = open("/dev/null", O_WRONLY);
        dup2(null, 1);
        dup2(null, 2);
        execvp(words[0], words);
        _exit(127);
    }
    int status = 1;
    struct rusage used = {0};
    wait4(child, &status, 0, &used);
    return (cost){(double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                      1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec),
                  (double)used.ru_maxrss / 1024, WIFEXITED(status) && WEXITSTATUS(status) == 0};
}

static double report(const char *name, char *const *words, double cat_seconds)
{
    cost best = {1e9, 0, false};
    for (int i = 0; i < N_RUNS; i++) {
        cost one = run_once(words);
        if (one.is_fine && one.cpu_seconds < best.cpu_seconds)
            best = one;
    }
    if (!best.is_fine)
        printf("%-28s not run\n", name);
    else if (cat_seconds > 0)
        printf("%-28s %7.3f s  %7.1f MiB  %6.1f x cat\n", name, best.cpu_seconds, best.mib,
               best.cpu_seconds / cat_seconds);
    else
        printf("%-28s %7.3f s  %7.1f MiB\n", name, best.cpu_seconds, best.mib);
    return best.cpu_seconds;
}

int main(int argc, char **argv)
{
    char own[] = RC_BINARY_DIR "/bench_snapshot.pickle", program[] = RC_BINARY_DIR "/recompute";
    char *a = argc > 1 ? argv[1] : own, *b = argc > 2 ? argv[2] : a;
    struct stat info;
    char rising[] = RC_BINARY_DIR "/bench_snapshot_rising.pickle";
    if (argc == 1 &&
        (write_file(own, N_EVENTS, false) != 0 || write_file(rising, N_RISING, true) != 0))
        return 1;
    if (stat(a, &info) != 0)
        return 1;
    printf("%s: %.1f MB\n", a, (double)info.st_size * 1e-6);
    char load[] = "import pickle,sys; pickle.load(open(sys.argv[1],'rb'))";
    char cat[] = "cat", python[] = "python3", dash_c[] = "-c", json[] = "--json";
    char snapshot[] = "snapshot", overview[] = "overview", peak[] = "peak",
         compare[] = "compare";
    char timeline[] = "timeline", html[] = "--html", steps[] = "steps";
    double cat_seconds = report("cat", (char *const[]){cat, a, NULL}, 0);
    cat_seconds = cat_seconds > 0.001 ? cat_seconds : 0.001;
    report("overview", (char *const[]){program, snapshot, overview, a, json, NULL},
           cat_seconds);
    report("peak", (char *const[]){program, snapshot, peak, a, json, NULL}, cat_seconds);
    report("timeline page", (char *const[]){program, snapshot, timeline, a, html, NULL},
           cat_seconds);
    report("steps (two readings)", (char *const[]){program, snapshot, steps, a, json, NULL},
           cat_seconds);
    report("compare two", (char *const[]){program, snapshot, compare, a, b, json, NULL},
           cat_seconds);
    report("pickle.load in Python", (char *const[]){python, dash_c, load, a, NULL},
           cat_seconds);
    if (argc == 1) {
        report("compare two that rise",
               (char *const[]){program, snapshot, compare, rising, rising, json, NULL}, 0);
        remove(own);
        remove(rising);
    }
    return 0;
}
