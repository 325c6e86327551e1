/* bench_config.c — reading a Megatron Bridge run_config.yaml of 600 lines into typed settings.
 *
 * The bound is libfyaml alone, its events over the same bytes in the same run: what any reader
 * built on it pays. Processor time, best of many.
 */
#define _POSIX_C_SOURCE 200809L
#include <recompute/config.h>
#include <recompute/read.h>

#include <libfyaml.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { N_LINES = 600, N_RUNS = 400 };

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Every field of section `model` with its default, and foreign keys up to 600 lines. */
static size_t write_config(char *text, size_t room)
{
    size_t n = (size_t)snprintf(text, room, "model:\n  _target_: a.b.GPTModelProvider\n");
    int n_lines = 2;
    for (int i = 0; i < RC_FIELD_COUNT; i++) {
        const rc_field_facts *field = rc_field_find((rc_field)i);
        if (strncmp(field->key, "model.", 6) != 0 || strchr(field->key, '_') == field->key + 6)
            continue;
        n += (size_t)snprintf(text + n, room - n, "  %s: %s\n", field->key + 6, field->dflt);
        n_lines++;
    }
    for (; n_lines < N_LINES; n_lines++)
        n += (size_t)snprintf(text + n, room - n, "  a_setting_of_bridge_%d: null\n", n_lines);
    return n;
}

static rc_code read_config(const char *text, size_t n)
{
    rc_arena *mem = rc_arena_open();
    rc_doc *doc;
    rc_config *cfg;
    rc_code code = rc_yaml_read("bench", text, n, mem, &doc, NULL);
    rc_input input = {doc, RC_FROM_FILE};
    if (code == RC_OK)
        code = rc_config_make(&input, 1, mem, &cfg, NULL);
    rc_arena_close(mem);
    return code;
}

static rc_code read_events(const char *text, size_t n)
{
    struct fy_parse_cfg cfg = {.flags = FYPCF_QUIET};
    struct fy_parser *parser = fy_parser_create(&cfg);
    struct fy_event *event;
    fy_parser_set_string(parser, text, n);
    while ((event = fy_parser_parse(parser)) != NULL)
        fy_parser_event_free(parser, event);
    fy_parser_destroy(parser);
    return RC_OK;
}

static double best_us(rc_code (*run)(const char *text, size_t n), const char *text, size_t n)
{
    double best = 1e30;
    for (int i = 0; i < N_RUNS; i++) {
        double start = cpu_seconds();
        if (run(text, n) != RC_OK)
            exit(70);
        double t = cpu_seconds() - start;
        best = t < best ? t : best;
    }
    return best * 1e6;
}

int main(void)
{
    static char text[1 << 18];
    size_t n = write_config(text, sizeof text);
    double bound = best_us(read_events, text, n), ours = best_us(read_config, text, n);
    printf(
        "config of %d lines, %zu bytes: %.0f us; libfyaml's events alone %.0f us; ratio %.2f\n",
        N_LINES, n, ours, bound, ours / bound);
    return 0;
}
