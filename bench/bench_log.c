/* bench_log.c — how fast a log is read, beside the cost of only looking at its bytes.
 *
 * Two logs of RC_BENCH_MIB (256) MiB in memory: `few`, training chatter with a report every 2,000
 * lines; `steps`, nothing but iteration lines. The limits measured in the same run: memchr for a
 * byte that does not occur, and memchr from newline to newline.
 */
#define _POSIX_C_SOURCE 200809L
#include <recompute/log.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static size_t add_line(char *to, size_t room, int64_t i, bool is_steps)
{
    int n;
    if (is_steps || i % 2000 == 0)
        n = snprintf(
            to, room,
            " [2026-01-01 00:00:00] iteration %8lld/ 1000000 | consumed samples: %12lld | elapsed time "
            "per iteration (ms): 1234.5 | learning rate: 1.0E-04 | global batch size:   256 | lm loss: "
            "2.5E+00 | loss scale: 1.0 | grad norm: 0.5 | number of skipped iterations:   0 | number of "
            "nan iterations:   0 |\n",
            (long long)i, (long long)i * 256);
    else
        n = snprintf(
            to, room,
            "2026-01-01 00:00:00,%03d | INFO | trainer.data | worker %lld fetched shard %lld of the data "
            "set, queue depth 12, 4096 tokens per sample\n",
            (int)(i % 1000), (long long)i % 64, (long long)i);
    return n > 0 && (size_t)n < room ? (size_t)n : 0;
}

static double read_once(const char *log_bytes, size_t n)
{
    double start = now_s();
    rc_arena *mem = rc_arena_open();
    rc_log *log = NULL;
    rc_log_reader *reader = NULL;
    bool is_read = mem && rc_log_make(mem, &log, NULL) == RC_OK &&
                   rc_log_open("bench", RC_LOG_UNKNOWN, log, &reader, NULL) == RC_OK &&
                   rc_log_feed(reader, log_bytes, n, NULL) == RC_OK &&
                   rc_log_finish(reader, NULL) == RC_OK;
    double seconds = now_s() - start;
    if (!is_read || log->train.n_lines == 0)
        exit(1);
    rc_arena_close(mem);
    return seconds;
}

static double look_once(const char *bytes, size_t n, int byte, int64_t *n_found)
{
    double start = now_s();
    for (const char *at = bytes; (at = memchr(at, byte, (size_t)(bytes + n - at))); at++)
        ++*n_found;
    return now_s() - start;
}

static void bench(const char *name, bool is_steps, char *bytes, size_t room)
{
    enum { RUNS = 5 };
    size_t n = 0;
    for (int64_t i = 1;; i++) {
        size_t more = add_line(bytes + n, room - n, i, is_steps);
        if (more == 0)
            break;
        n += more;
    }
    double read_s = 1e9, bytes_s = 1e9, lines_s = 1e9;
    int64_t n_lines = 0, n_none = 0;
    for (int run = 0; run < RUNS; run++) {
        double s = read_once(bytes, n);
        read_s = s < read_s ? s : read_s;
        s = look_once(bytes, n, 1, &n_none);
        bytes_s = s < bytes_s ? s : bytes_s;
        s = look_once(bytes, n, '\n', &n_lines);
        lines_s = s < lines_s ? s : lines_s;
    }
    double mb = (double)n / 1e6;
    printf(
        "log.%-6s %8.0f MB/s   memchr of no byte %8.0f MB/s (%.1f times)   newline to newline "
        "%8.0f MB/s (%.1f times; %lld lines)\n",
        name, mb / read_s, mb / bytes_s, read_s / bytes_s, mb / lines_s, read_s / lines_s,
        (long long)(n_lines / RUNS + n_none));
}

int main(void)
{
    const char *mib = getenv("RC_BENCH_MIB");
    size_t room = (size_t)(mib ? strtol(mib, NULL, 10) : 256) << 20;
    char *bytes = malloc(room);
    if (!bytes)
        return 3;
    bench("few", false, bytes, room);
    bench("steps", true, bytes, room);
    free(bytes);
    return 0;
}
