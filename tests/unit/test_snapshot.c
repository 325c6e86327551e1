/* test_snapshot.c — generated snapshots of every generation and both writers, with a slow truth.
 *
 * A toy allocator makes the events; the truth is computed from them by copying the live set at
 * every maximum, which the reader under test must not do.
 */
#include <recompute/report.h>
#include <recompute/snapshot.h>

#include "snapshot_writer.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { N_EVENTS = 2600, MOST_LIVE = 400, N_SITES = 5 };

/* ---- what the program of the snapshot does ---- */

typedef struct frame_text {
    const char *name, *file;
    int line;
} frame_text;

static const struct site {
    const char *label, *phase, *source;
    frame_text frames[5];
    int n_frames;
} sites[N_SITES] = {
    {"mlp",
     "forward",
     "forward@mlp.py:88",
     {{"torch::unwind::unwind()", "??", 0},
      {"_call_impl", "/usr/lib/python3.12/dist-packages/torch/nn/modules/module.py", 1750},
      {"forward", "/opt/megatron-lm/megatron/core/transformer/mlp.py", 88},
      {"forward_step", "/opt/megatron-lm/pretrain_gpt.py", 20},
      {"train", "/opt/megatron-lm/megatron/training/training.py", 700}},
     5},
    {"core_attn",
     "recompute",
     "forward@dot_product_attention.py:12",
     {{"forward", "/opt/megatron-lm/megatron/core/transformer/dot_product_attention.py", 12},
      {"backward", "/opt/megatron-lm/megatron/core/tensor_parallel/random.py", 400},
      {"apply", "/usr/lib/python3.12/dist-packages/torch/autograd/function.py", 300}},
     3},
    {"core_attn",
     "backward",
     "forward@dot_product_attention.py:12",
     {{"forward", "/opt/megatron-lm/megatron/core/transformer/dot_product_attention.py", 12},
      {"_engine_run_backward", "/usr/lib/python3.12/dist-packages/torch/autograd/graph.py",
       820},
      {"backward", "/opt/megatron-lm/megatron/core/tensor_parallel/random.py", 410}},
     3},
    {"optimizer_state",
     "optimizer",
     "step@optimizer.py:33",
     {{"_init_group", "/usr/lib/python3.12/dist-packages/torch/optim/adam.py", 150},
      {"step", "/opt/megatron-lm/megatron/core/optimizer/optimizer.py", 33}},
     2},
    {"unattributed",
     "no_frames",
     "torch::unwind::unwind()@??:0",
     {{"torch::unwind::unwind()", "??", 0}, {"at::native::gelu_backward", "Activation.cpp", 0}},
     2}};

typedef struct event {
    const char *action;
    int64_t addr, size, time_us;
    int site; /* -1: no frames key */
} event;

typedef struct block {
    int64_t addr, size;
    int site;
} block;

typedef struct trace {
    event events[N_EVENTS];
    int n;
    block live[MOST_LIVE];
    int n_live;
    /* truth */
    int64_t peak_net, before_bytes, reserved;
    int peak_index;
    block at_peak[MOST_LIVE];
    int n_at_peak;
} trace;

static uint32_t random_of(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static void add_event(trace *t, const char *action, const block *b, int64_t addr, int64_t size)
{
    t->events[t->n] = (event){action, b ? b->addr : addr, b ? b->size : size,
                              1760000000000000 + t->n * 11, b ? b->site : -1};
    t->n++;
}

/* `n_before` blocks are there already when the recording begins. */
static void run_program(trace *t, uint32_t seed, int n_before)
{
    memset(t, 0, sizeof *t);
    t->peak_index = -1;
    int64_t next = 0x7F2A00000000, net = 0;
    for (; t->n_live < n_before; next += 4096) {
        t->live[t->n_live++] = (block){next, 3000, -1};
        t->before_bytes += 3000;
    }
    add_event(t, "segment_alloc", NULL, next, 64 << 20);
    t->reserved = 64 << 20;
    while (t->n < N_EVENTS - 4) {
        bool is_full = t->n_live == MOST_LIVE;
        if (t->n_live == 0 || (!is_full && random_of(&seed) % 100 < 53)) {
            block b = {next, 512 + (int64_t)(random_of(&seed) % 9000),
                       (int)(random_of(&seed) % N_SITES)};
            next += 16384;
            t->live[t->n_live++] = b;
            net += b.size;
            add_event(t, "alloc", &b, 0, 0);
            if (net > t->peak_net) {
                t->peak_net = net;
                t->peak_index = t->n - 1;
                t->n_at_peak = 0;
                for (int i = 0; i < t->n_live; i++)
                    if (t->live[i].site >= 0)
                        t->at_peak[t->n_at_peak++] = t->live[i];
            }
        } else {
            int i = (int)(random_of(&seed) % (uint32_t)t->n_live);
            block b = t->live[i];
            t->live[i] = t->live[--t->n_live];
            net -= b.size;
            add_event(t, "free_requested", &b, 0, 0);
            add_event(t, "free_completed", &b, 0, 0);
        }
    }
}

/* ---- as a file ---- */

typedef struct generation {
    const char *name;
    int protocol;
    bool is_cpp, has_history, has_time, has_context, has_pool, has_ring;
} generation;

static const generation generations[] = {
    {"2.0", 4, false, true, false, false, false, false},
    {"2.1", 2, false, false, false, false, false, false},
    {"2.2", 3, false, false, true, false, false, false},
    {"2.2 C++", 2, true, false, true, false, false, false},
    {"2.8", 4, false, false, true, true, false, false},
    {"2.11", 5, false, false, true, true, true, false},
    {"2.12", 4, false, false, true, true, true, true},
    {"2.12 C++", 2, true, false, true, true, true, true},
};
enum { N_GENERATIONS = sizeof generations / sizeof *generations };

typedef struct stacks {
    uint32_t memo[N_SITES];
    bool is_written[N_SITES];
    uint32_t frame_memo[N_SITES][5];
} stacks;

/* 2.0 writes each stack anew; later a stack is one object wherever it occurs. */
static void put_frames(writer *w, const generation *g, stacks *s, int site)
{
    w_text(w, "frames");
    if (s->is_written[site] && !g->has_history) {
        w_get(w, s->memo[site]);
        return;
    }
    bool is_first = !s->is_written[site];
    s->is_written[site] = true;
    uint32_t memo = w_list(w);
    for (int i = 0; i < sites[site].n_frames; i++) {
        const frame_text *f = &sites[site].frames[i];
        if (!is_first && !g->has_history) {
            w_get(w, s->frame_memo[site][i]);
            continue;
        }
        uint32_t dict = w_dict(w);
        w_key_text(w, "name", f->name);
        w_key_text(w, "filename", f->file);
        w_key_int(w, "line", f->line);
        s->frame_memo[site][i] = w_end_dict(w, dict);
    }
    s->memo[site] = w_end_list(w, memo);
}

static void put_event(writer *w, const generation *g, stacks *s, const event *e)
{
    uint32_t memo = w_dict(w);
    w_key_text(w, "action", e->action);
    w_key_int(w, "addr", e->addr);
    w_key_int(w, "size", e->size);
    w_key_int(w, "stream", 0);
    if (g->has_time)
        w_key_int(w, "time_us", e->time_us);
    if (g->has_context) {
        w_text(w, "compile_context");
        if (g->is_cpp)
            w_text(w, "N/A");
        else
            w_new_text(w, "N/A"); /* a fresh object for every event */
    }
    if (g->has_pool) {
        w_text(w, "pool_id");
        w_pair(w, 0, 0);
    }
    if (e->site >= 0)
        put_frames(w, g, s, e->site);
    w_end_dict(w, memo);
}

static void put_block(writer *w, const generation *g, stacks *s, const block *b)
{
    uint32_t memo = w_dict(w);
    if (!g->has_history)
        w_key_int(w, "address", b->addr);
    w_key_int(w, "size", (b->size + 511) / 512 * 512);
    w_key_int(w, "requested_size", b->size);
    w_key_text(w, "state", "active_allocated");
    if (g->has_history) {
        w_text(w, "history");
        uint32_t list = w_list(w), entry = w_dict(w);
        w_key_int(w, "addr", b->addr);
        w_key_int(w, "real_size", b->size);
        if (b->site >= 0)
            put_frames(w, g, s, b->site);
        w_end_dict(w, entry);
        w_end_list(w, list);
    } else if (b->site >= 0) {
        put_frames(w, g, s, b->site);
    } else {
        w_text(w, "frames");
        w_empty_list(w);
    }
    w_end_dict(w, memo);
}

/* Each live block in a segment of its own, so that 2.0 can do without block addresses. */
static void put_segment(writer *w, const generation *g, stacks *s, const block *b)
{
    uint32_t memo = w_dict(w);
    w_key_int(w, "device", 0);
    w_key_int(w, "address", b->addr);
    w_key_int(w, "total_size", (b->size + 511) / 512 * 512);
    w_key_int(w, "stream", 0);
    w_key_text(w, "segment_type", "small");
    if (!g->has_history) {
        w_text(w, "segment_pool_id");
        w_pair(w, 0, 0);
        w_text(w, "is_expandable");
        w_bool(w, false);
    }
    w_text(w, "blocks");
    uint32_t list = w_list(w);
    put_block(w, g, s, b);
    w_end_list(w, list);
    w_end_dict(w, memo);
}

static void put_events(writer *w, const generation *g, stacks *s, const trace *t)
{
    uint32_t memo = w_list(w);
    for (int i = 0; i < t->n; i++) {
        if (i > 0 && i % 1000 == 0 && !g->is_cpp) { /* CPython appends in batches */
            w_byte(w, 'e');
            w_byte(w, '(');
        }
        put_event(w, g, s, &t->events[i]);
    }
    w_end_list(w, memo);
}

static void write_snapshot(writer *w, const generation *g, const trace *t)
{
    stacks s = {0};
    w_begin(w, g->protocol, g->is_cpp);
    uint32_t top = w_dict(w);
    w_text(w, "segments");
    uint32_t segments = w_list(w);
    for (int i = 0; i < t->n_live; i++)
        put_segment(w, g, &s, &t->live[i]);
    w_end_list(w, segments);
    w_text(w, "device_traces");
    uint32_t traces = w_list(w);
    w_empty_list(w); /* device 0 recorded nothing, and its segments are not device 1's */
    put_events(w, g, &s, t);
    w_end_list(w, traces);
    if (g->has_ring) {
        w_text(w, "trace_alloc_overflowed");
        uint32_t lost = w_list(w);
        w_bool(w, false);
        w_bool(w, true);
        w_end_list(w, lost);
    }
    w_end_dict(w, top);
    w_finish(w);
}

/* ---- truth ---- */

static void expect_groups(const rc_snapshot *snapshot, const trace *t, rc_group_kind kind)
{
    rc_group *groups;
    size_t n;
    int64_t all = 0;
    const rc_live_set *peak = &snapshot->devices[0].peak;
    assert_int_equal(rc_snapshot_group(snapshot, peak, kind, snapshot->mem, &groups, &n, NULL),
                     RC_OK);
    for (size_t i = 0; i < n; i++) {
        int64_t bytes = 0, count = 0;
        for (int k = 0; k < t->n_at_peak; k++) {
            const struct site *site = &sites[t->at_peak[k].site];
            const char *name = kind == RC_GROUP_LABEL   ? site->label
                               : kind == RC_GROUP_PHASE ? site->phase
                                                        : site->source;
            if (strcmp(name, groups[i].name) == 0) {
                bytes += t->at_peak[k].size;
                count++;
            }
        }
        assert_int_equal(groups[i].requested_bytes, bytes);
        assert_int_equal(groups[i].count, count);
        assert_true(i == 0 || groups[i - 1].requested_bytes >= bytes);
        all += bytes;
    }
    assert_int_equal(all, peak->traced_bytes);
}

static void expect_truth(const rc_snapshot *snapshot, const generation *g, const trace *t)
{
    assert_int_equal(snapshot->n_devices, 1);
    const rc_snapshot_device *d = &snapshot->devices[0];
    assert_int_equal(d->device, 1);
    assert_int_equal(d->n_events, t->n);
    assert_int_equal(d->peak.event_index, t->peak_index);
    assert_int_equal(d->peak.net_bytes, t->peak_net);
    assert_int_equal(d->peak.n, t->n_at_peak);
    assert_int_equal(d->has_time, g->has_time);
    if (g->has_time)
        assert_int_equal(d->peak.time_us, 1760000000000000 + t->peak_index * 11);
    assert_int_equal(d->has_overflowed, g->has_ring ? 1 : -1);
    expect_groups(snapshot, t, RC_GROUP_LABEL);
    expect_groups(snapshot, t, RC_GROUP_PHASE);
    expect_groups(snapshot, t, RC_GROUP_SOURCE);
    int64_t active = 0;
    for (int i = 0; i < t->n_live; i++)
        active += t->live[i].size;
    assert_int_equal(snapshot->total.requested_bytes, active);
    assert_int_equal(snapshot->total.n_segments, t->n_live);
}

static void every_generation_and_writer_gives_the_truth(void **state)
{
    (void)state;
    static trace t;
    for (uint32_t seed = 1; seed <= 3; seed++) {
        run_program(&t, seed, seed == 2 ? 30 : 0);
        for (size_t i = 0; i < N_GENERATIONS; i++) {
            writer w;
            rc_arena *mem = rc_arena_open();
            rc_snapshot *snapshot;
            rc_error err = {0};
            write_snapshot(&w, &generations[i], &t);
            if (rc_snapshot_make_bytes(w.at, w.n, NULL, NULL, mem, &snapshot, NULL, &err) !=
                RC_OK)
                fail_msg("%s: %s", generations[i].name, err.msg);
            expect_truth(snapshot, &generations[i], &t);
            rc_arena_close(mem);
            w_free(&w);
        }
    }
}

static void the_live_set_at_any_event_is_exact(void **state)
{
    (void)state;
    static trace t;
    run_program(&t, 5, 0);
    writer w;
    write_snapshot(&w, &generations[6], &t);
    const int64_t at[] = {0, 1, 2, 1499, 2000, N_EVENTS};
    for (size_t k = 0; k < sizeof at / sizeof *at; k++) {
        int64_t bytes = 0, count = 0;
        for (int i = 0; i <= at[k] && i < t.n; i++) {
            bool is_free = strcmp(t.events[i].action, "free_completed") == 0;
            if (!is_free && strcmp(t.events[i].action, "alloc") != 0)
                continue;
            bytes += is_free ? -t.events[i].size : t.events[i].size;
            count += is_free ? -1 : 1;
        }
        rc_arena *mem = rc_arena_open();
        rc_snapshot *snapshot;
        const rc_moment moment = {RC_MOMENT_INDEX, at[k]};
        assert_int_equal(
            rc_snapshot_make_bytes(w.at, w.n, &moment, NULL, mem, &snapshot, NULL, NULL),
            RC_OK);
        const rc_live_set *set = &snapshot->devices[0].moment;
        assert_true(set->is_set);
        assert_int_equal(set->event_index, at[k] < t.n ? at[k] : t.n - 1);
        assert_int_equal(set->traced_bytes, bytes);
        assert_int_equal(set->n, count);
        rc_arena_close(mem);
    }
    w_free(&w);
}

static void without_segments_the_level_starts_at_what_is_freed(void **state)
{
    (void)state;
    static trace t;
    run_program(&t, 2, 30);
    int n_live = t.n_live;
    t.n_live = 0; /* the segments are written from what is live */
    writer w;
    write_snapshot(&w, &generations[6], &t);
    rc_arena *mem = rc_arena_open();
    rc_snapshot *snapshot;
    assert_int_equal(rc_snapshot_make_bytes(w.at, w.n, NULL, NULL, mem, &snapshot, NULL, NULL),
                     RC_OK);
    const rc_snapshot_device *d = &snapshot->devices[0];
    assert_false(d->has_segments);
    int64_t n_older = 0;
    for (int i = 0; i < t.n; i++)
        n_older += t.events[i].site < 0 && strcmp(t.events[i].action, "free_completed") == 0;
    assert_true(n_older > 0 && n_live > 0);
    assert_int_equal(d->n_unmatched_frees, n_older);
    assert_int_equal(d->baseline_requested_bytes, n_older * 3000);
    assert_int_equal(d->baseline_requested_bytes, d->baseline_check_bytes);
    assert_int_equal(d->peak.net_bytes, t.peak_net);
    rc_arena_close(mem);
    w_free(&w);
}

static void a_snapshot_compared_with_itself_has_no_difference(void **state)
{
    (void)state;
    static trace t;
    run_program(&t, 9, 10);
    writer w;
    write_snapshot(&w, &generations[7], &t);
    rc_arena *mem = rc_arena_open();
    rc_snapshot *snapshot;
    rc_report report = {0};
    const rc_snapshot_view view = {.device = -1};
    assert_int_equal(rc_snapshot_make_bytes(w.at, w.n, NULL, NULL, mem, &snapshot, NULL, NULL),
                     RC_OK);
    assert_int_equal(rc_snapshot_compare(snapshot, snapshot, &view, mem, &report, NULL), RC_OK);
    assert_string_equal(report.at[1]->name, "difference");
    assert_int_equal(report.at[1]->cells[0].i, 0);
    const rc_table *sources = report.at[5];
    assert_string_equal(sources->name, "difference_by_source");
    for (size_t i = 0; i < sources->n_rows; i++)
        assert_int_equal(sources->cells[i * sources->n_columns].i, 0);
    rc_arena_close(mem);
    w_free(&w);
}

static void every_failed_allocation_is_clean(void **state)
{
    (void)state;
    static trace t;
    run_program(&t, 3, 4);
    writer w;
    write_snapshot(&w, &generations[6], &t);
    const rc_snapshot_view view = {.device = -1};
    for (int64_t n = 0;; n++) {
        rc_arena *mem = rc_arena_open();
        rc_snapshot *snapshot;
        rc_report report = {0};
        rc_error err = {0};
        rc_arena_fail_after(mem, n);
        rc_code code =
            rc_snapshot_make_bytes(w.at, w.n, NULL, NULL, mem, &snapshot, NULL, &err);
        if (code == RC_OK)
            code = rc_snapshot_overview(snapshot, &view, &report, &err);
        rc_arena_close(mem);
        if (code == RC_OK)
            break;
        assert_int_equal(code, RC_E_MEMORY);
        assert_int_equal(err.code, RC_E_MEMORY);
        assert_true(n < 100000);
    }
    w_free(&w);
}

static void moments_are_read_as_people_write_them(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is_fine;
        rc_moment_kind kind;
        int64_t value;
    } cases[] = {{"#12", true, RC_MOMENT_INDEX, 12},
                 {"1760000840019052", true, RC_MOMENT_TIME_US, 1760000840019052},
                 {"2.5s", true, RC_MOMENT_SINCE_US, 2500000},
                 {"300ms", true, RC_MOMENT_SINCE_US, 300000},
                 {"40us", true, RC_MOMENT_SINCE_US, 40},
                 {"2min", true, RC_MOMENT_SINCE_US, 120000000},
                 {"end", true, RC_MOMENT_END, 0},
                 {"#-1", false, RC_MOMENT_NONE, 0},
                 {"#", false, RC_MOMENT_NONE, 0},
                 {"", false, RC_MOMENT_NONE, 0},
                 {"-3s", false, RC_MOMENT_NONE, 0},
                 {"nans", false, RC_MOMENT_NONE, 0},
                 {"soon", false, RC_MOMENT_NONE, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rc_moment moment;
        bool is_fine = rc_moment_parse(cases[i].text, &moment);
        if (is_fine != cases[i].is_fine)
            fail_msg("%s", cases[i].text);
        if (is_fine) {
            assert_int_equal(moment.kind, cases[i].kind);
            assert_int_equal(moment.value, cases[i].value);
        }
    }
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--write") == 0) { /* seeds for the fuzzer */
        static trace t;
        run_program(&t, 11, 2);
        t.n = 60;
        for (size_t i = 0; i < N_GENERATIONS; i++) {
            writer w;
            char path[512];
            snprintf(path, sizeof path, "%s/generation-%zu", argv[2], i);
            write_snapshot(&w, &generations[i], &t);
            FILE *to = fopen(path, "wb");
            if (!to || fwrite(w.at, 1, w.n, to) != w.n || fclose(to) != 0)
                return 1;
            w_free(&w);
        }
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_generation_and_writer_gives_the_truth),
        cmocka_unit_test(the_live_set_at_any_event_is_exact),
        cmocka_unit_test(without_segments_the_level_starts_at_what_is_freed),
        cmocka_unit_test(a_snapshot_compared_with_itself_has_no_difference),
        cmocka_unit_test(every_failed_allocation_is_clean),
        cmocka_unit_test(moments_are_read_as_people_write_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
