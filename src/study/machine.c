/* study/machine.c — what else the machine does while a study runs: Linux's counters of time. */
#define _POSIX_C_SOURCE 200809L
#include "study/machine.h"

#include "base/file.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static double now_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static double seconds_of(const struct timeval *time)
{
    return (double)time->tv_sec + (double)time->tv_usec * 1e-6;
}

static double usage_of(int who)
{
    struct rusage usage;
    if (getrusage(who, &usage) != 0)
        return (double)NAN;
    return seconds_of(&usage.ru_utime) + seconds_of(&usage.ru_stime);
}

/* The numbers behind the first word of a line; false at its end. */
static bool take_number(char **at, double *out)
{
    char *end;
    *out = strtod(*at, &end);
    bool has_one = end != *at;
    *at = end;
    return has_one;
}

/* "cpu  user nice system idle iowait irq softirq steal guest guest_nice": ticks, the guests' within the
 * first two. A line "cpu3 ..." is one core's. */
static void look_at_cores(rc_machine_look *look)
{
    enum { IDLE = 3, IOWAIT, STEAL = 7, N_TIMES };
    char line[512];
    FILE *from;
    double tick = 1 / (double)sysconf(_SC_CLK_TCK);
    if (rc_stream_open("/proc/stat", "r", &from, NULL) != RC_OK)
        return;
    while (fgets(line, sizeof line, from) && strncmp(line, "cpu", 3) == 0) {
        char *at = line + 3 + strspn(line + 3, "0123456789");
        double value;
        if (at > line + 3) {
            look->n_cores++;
            continue;
        }
        look->busy = look->stolen = 0;
        for (int i = 0; i < N_TIMES && take_number(&at, &value); i++) {
            if (i == STEAL)
                look->stolen = value * tick;
            else if (i != IDLE && i != IOWAIT)
                look->busy += value * tick;
        }
    }
    fclose(from);
}

/* "ran waited slices" of every thread, the first two in nanoseconds. */
static void look_at_threads(rc_machine_look *look)
{
    char path[300], line[128];
    DIR *tasks = opendir("/proc/self/task");
    if (!tasks)
        return;
    for (const struct dirent *task; (task = readdir(tasks));) {
        FILE *from;
        double ran, waited;
        snprintf(path, sizeof path, "/proc/self/task/%s/schedstat", task->d_name);
        if (task->d_name[0] == '.' || rc_stream_open(path, "r", &from, NULL) != RC_OK)
            continue;
        char *at = fgets(line, sizeof line, from);
        if (at && take_number(&at, &ran) && take_number(&at, &waited))
            look->waited = (isnan(look->waited) ? 0 : look->waited) + waited * 1e-9;
        fclose(from);
    }
    closedir(tasks);
}

/* How long a limit of the control group held its threads back: a line of cpu.stat, in version 2 and 1. */
static void look_at_limit(rc_machine_look *look)
{
    static const struct {
        const char *path, *key;
        double unit;
    } sources[] = {{"/sys/fs/cgroup/cpu.stat", "throttled_usec ", 1e-6},
                   {"/sys/fs/cgroup/cpu/cpu.stat", "throttled_time ", 1e-9}};
    char line[128];
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        FILE *from;
        size_t n = strlen(sources[i].key);
        if (rc_stream_open(sources[i].path, "r", &from, NULL) != RC_OK)
            continue;
        while (fgets(line, sizeof line, from)) {
            char *at = line + n;
            double value;
            if (strncmp(line, sources[i].key, n) == 0 && take_number(&at, &value))
                look->throttled = value * sources[i].unit;
        }
        fclose(from);
    }
}

void rc_machine_look_now(rc_machine_look *look)
{
    *look = (rc_machine_look){.at = now_seconds(),
                              .own = usage_of(RUSAGE_SELF) + usage_of(RUSAGE_CHILDREN),
                              .busy = (double)NAN,
                              .waited = (double)NAN,
                              .stolen = (double)NAN,
                              .throttled = (double)NAN};
    look_at_cores(look);
    look_at_threads(look);
    look_at_limit(look);
}

/* Counters of different clocks may differ by a tick, and a thread that ended takes its own along. */
static double grown(double before, double after)
{
    return after < before ? 0 : after - before;
}

void rc_machine_load_since(const rc_machine_look *since, bool is_launched, rc_study_load *load)
{
    rc_machine_look now;
    rc_machine_look_now(&now);
    *load =
        (rc_study_load){.seconds = grown(since->at, now.at),
                        .n_cores = now.n_cores,
                        .own = grown(since->own, now.own),
                        .waited = is_launched ? (double)NAN : grown(since->waited, now.waited),
                        .stolen = grown(since->stolen, now.stolen),
                        .throttled = grown(since->throttled, now.throttled)};
    load->other = grown(load->own, grown(since->busy, now.busy));
}
