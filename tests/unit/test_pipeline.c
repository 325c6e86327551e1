/* test_pipeline.c — the order of a stage against the full list of events, in-flight counts against the closed formulas,
 * and the heaviest moment against a walk over every event. */
#include "check.h"

#include <recompute/pipeline.h>

#include <string.h>

typedef struct job {
    int p, v, group, m;
    bool is_interleaved, overlaps;
} job;

static rc_layout layout_of(const job *j)
{
    return (rc_layout){
        .sizes = {.pp = j->p, .vp = j->v, .is_interleaved = j->is_interleaved},
        .n_micro_batches = j->m,
        .micro_batch_group = j->group,
        .overlaps_experts = j->overlaps,
    };
}

static rc_pipeline *need_pipeline(const job *j, int stage, rc_arena *mem)
{
    const rc_layout layout = layout_of(j);
    rc_error err = {0};
    rc_pipeline *pipeline = NULL;
    if (rc_pipeline_make(&layout, stage, mem, &pipeline, &err) != RC_OK)
        fail_msg("p %d v %d group %d m %d, stage %d: %s", j->p, j->v, j->group, j->m, stage,
                 err.msg);
    return pipeline;
}

/* --- all events, as schedules.py has them: get_schedule_table, then a warm-up, pairs, and the rest */

enum { MOST_EVENTS = 8192 };

static int schedule_table(const job *j, rc_pipeline_event *table)
{
    const int group = j->v > 1 ? j->group : j->m;
    int n = 0;
    for (int first = 0; first < j->m; first += group)
        for (int chunk = 0; chunk < j->v; chunk++)
            for (int micro = first; micro < j->m && micro < first + group; micro++)
                table[n++] = (rc_pipeline_event){.chunk = chunk, .micro_batch = micro};
    return n;
}

static int warmup_of(const job *j, int stage)
{
    const int n_behind = j->p - stage - 1;
    const int n = j->is_interleaved ? 2 * n_behind + (j->v - 1) * j->group : n_behind;
    const int most = j->m * j->v;
    return n + j->overlaps < most ? n + j->overlaps : most;
}

static rc_pipeline_event backward_of(const job *j, rc_pipeline_event table)
{
    return (rc_pipeline_event){
        .is_backward = true, .chunk = j->v - 1 - table.chunk, .micro_batch = table.micro_batch};
}

static int all_events(const job *j, int stage, rc_pipeline_event *events)
{
    static rc_pipeline_event table[MOST_EVENTS];
    const int total = schedule_table(j, table), n_warmup = warmup_of(j, stage);
    int n = 0;
    assert_true(2 * total <= MOST_EVENTS);
    for (int i = 0; i < n_warmup; i++)
        events[n++] = table[i];
    for (int i = 0; i < total - n_warmup; i++) {
        events[n++] = table[i + n_warmup];
        events[n++] = backward_of(j, table[i]);
    }
    for (int i = total - n_warmup; i < total; i++)
        events[n++] = backward_of(j, table[i]);
    return n;
}

static bool is_same_event(rc_pipeline_event a, rc_pipeline_event b)
{
    return a.is_backward == b.is_backward && a.chunk == b.chunk &&
           a.micro_batch == b.micro_batch;
}

static void need_events(const job *j, int stage)
{
    static rc_pipeline_event expected[MOST_EVENTS];
    const int n_expected = all_events(j, stage, expected);
    rc_arena *mem = rc_arena_open();
    const rc_pipeline_event *events;
    int64_t n;
    assert_ok(rc_pipeline_events(need_pipeline(j, stage, mem), mem, &events, &n, NULL));
    assert_int_equal(n, n_expected);
    for (int i = 0; i < n_expected; i++)
        if (!is_same_event(events[i], expected[i]))
            fail_msg("p %d v %d group %d m %d, stage %d: event %d is of chunk %d, "
                     "micro-batch %d",
                     j->p, j->v, j->group, j->m, stage, i, events[i].chunk,
                     (int)events[i].micro_batch);
    rc_arena_close(mem);
}

static int draw(uint64_t *seed, int below)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (int)((*seed >> 33) % (uint64_t)below);
}

static job draw_job(uint64_t *seed)
{
    job j = {.p = 1 + draw(seed, 6), .v = 1};
    j.is_interleaved = j.p > 1 && draw(seed, 2);
    j.v = j.is_interleaved ? 1 + draw(seed, 4) : 1;
    j.group = j.p + draw(seed, 3);
    j.m = j.is_interleaved ? j.group + draw(seed, 40) : 1 + draw(seed, 40);
    j.overlaps = (j.p == 1 || j.is_interleaved) && draw(seed, 2);
    return j;
}

static void events_come_in_megatrons_order(void **state)
{
    uint64_t seed = 3;
    (void)state;
    for (int i = 0; i < 1500; i++) {
        const job j = draw_job(&seed);
        need_events(&j, draw(&seed, j.p));
    }
}

/* By hand, after the docstring of ModelParallelConfig: two stages, groups of three, five micro-batches. */
static void a_last_group_may_be_smaller(void **state)
{
    static const int chunks[] = {0, 0, 0, 1, 1, 1, 0, 0, 1, 1};
    static const int micros[] = {0, 1, 2, 0, 1, 2, 3, 4, 3, 4};
    const job j = {.p = 2, .v = 2, .group = 3, .m = 5, .is_interleaved = true};
    rc_arena *mem = rc_arena_open();
    const rc_pipeline_event *events;
    int64_t n;
    int n_forwards = 0;
    (void)state;
    assert_ok(rc_pipeline_events(need_pipeline(&j, 0, mem), mem, &events, &n, NULL));
    for (int64_t i = 0; i < n; i++) {
        if (events[i].is_backward)
            continue;
        assert_int_equal(events[i].chunk, chunks[n_forwards]);
        assert_int_equal(events[i].micro_batch, micros[n_forwards++]);
    }
    assert_int_equal(n_forwards, 10);
    rc_arena_close(mem);
}

/* --- in-flight counts */

static int64_t most_held(const job *j, int stage)
{
    const rc_chunk_weight ones[] = {{.held = 1}, {.held = 1}, {.held = 1}, {.held = 1}};
    rc_arena *mem = rc_arena_open();
    rc_pipeline_peak peak;
    assert_ok(rc_pipeline_find_peak(need_pipeline(j, stage, mem), ones, mem, &peak, NULL));
    rc_arena_close(mem);
    return peak.weight;
}

/* Narayanan et al. 2021; a backward of the oldest micro-batch follows the forward of the newest. */
static void chunks_held_are_those_of_the_closed_formulas(void **state)
{
    static const struct {
        job j;
        int held[8];
    } cases[] = {
        {{.p = 1, .v = 1, .group = 1, .m = 8}, {1}},
        {{.p = 1, .v = 1, .group = 1, .m = 8, .overlaps = true}, {2}},
        {{.p = 4, .v = 1, .group = 4, .m = 8}, {4, 3, 2, 1}},
        {{.p = 4, .v = 1, .group = 4, .m = 2}, {2, 2, 2, 1}},
        {{.p = 4, .v = 2, .group = 4, .m = 8, .is_interleaved = true}, {11, 9, 7, 5}},
        {{.p = 4, .v = 1, .group = 4, .m = 8, .is_interleaved = true}, {7, 5, 3, 1}},
        {{.p = 4, .v = 2, .group = 4, .m = 8, .is_interleaved = true, .overlaps = true},
         {12, 10, 8, 6}},
        {{.p = 8, .v = 4, .group = 8, .m = 32, .is_interleaved = true},
         {39, 37, 35, 33, 31, 29, 27, 25}},
        {{.p = 8, .v = 2, .group = 8, .m = 8, .is_interleaved = true},
         {16, 16, 16, 16, 15, 13, 11, 9}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int stage = 0; stage < cases[i].j.p; stage++)
            assert_int_equal(most_held(&cases[i].j, stage), cases[i].held[stage]);
}

static void drawn_jobs_hold_what_the_formula_says(void **state)
{
    uint64_t seed = 11;
    (void)state;
    for (int i = 0; i < 1500; i++) {
        const job j = draw_job(&seed);
        const int stage = draw(&seed, j.p), n = warmup_of(&j, stage) + 1, total = j.m * j.v;
        assert_int_equal(most_held(&j, stage), n < total ? n : total);
    }
}

/* --- the heaviest moment, by walking over every event */

typedef struct moment {
    int64_t weight;
    rc_pipeline_event event;
    int64_t n_held[4];
} moment;

static void note_moment(moment *peak, int64_t weight, rc_pipeline_event event,
                        const int64_t *n_held)
{
    if (weight <= peak->weight)
        return;
    peak->weight = weight;
    peak->event = event;
    memcpy(peak->n_held, n_held, sizeof peak->n_held);
}

static moment walk_events(const job *j, int stage, const rc_chunk_weight *weights)
{
    static rc_pipeline_event events[MOST_EVENTS];
    const int n = all_events(j, stage, events);
    moment peak = {.weight = -1};
    int64_t held = 0, n_held[4] = {0};
    for (int i = 0; i < n; i++) {
        const rc_chunk_weight *weight = &weights[events[i].chunk];
        if (events[i].is_backward) {
            note_moment(&peak, held + weight->bwd_extra, events[i], n_held);
            held -= weight->held;
            n_held[events[i].chunk]--;
            continue;
        }
        held += weight->held;
        n_held[events[i].chunk]++;
        /* the backward that follows runs beside it, unless it is the warm-up's last forward that is alone */
        const bool has_backward = j->overlaps && i >= warmup_of(j, stage) && i + 1 < n;
        note_moment(&peak,
                    held + weight->fwd_extra +
                        (has_backward ? weights[events[i + 1].chunk].bwd_extra : 0),
                    events[i], n_held);
    }
    return peak;
}

static void need_peak(const job *j, int stage, const rc_chunk_weight *weights)
{
    const moment expected = walk_events(j, stage, weights);
    rc_arena *mem = rc_arena_open();
    rc_pipeline_peak peak;
    assert_ok(rc_pipeline_find_peak(need_pipeline(j, stage, mem), weights, mem, &peak, NULL));
    if (peak.weight != expected.weight || !is_same_event(peak.event, expected.event))
        fail_msg("p %d v %d group %d m %d, stage %d: %d of chunk %d, not %d of chunk %d", j->p,
                 j->v, j->group, j->m, stage, (int)peak.weight, peak.event.chunk,
                 (int)expected.weight, expected.event.chunk);
    for (int c = 0; c < j->v; c++)
        assert_int_equal(peak.n_held[c], expected.n_held[c]);
    rc_arena_close(mem);
}

static void the_peak_is_that_of_every_event(void **state)
{
    uint64_t seed = 5;
    (void)state;
    for (int i = 0; i < 3000; i++) {
        const job j = draw_job(&seed);
        rc_chunk_weight weights[4];
        for (int c = 0; c < 4; c++)
            weights[c] = (rc_chunk_weight){draw(&seed, 50), draw(&seed, 90), draw(&seed, 90)};
        need_peak(&j, draw(&seed, j.p), weights);
    }
}

/* --- huge numbers */

static void a_schedule_does_not_grow_with_micro_batches(void **state)
{
    static const struct {
        int p, v;
        bool is_interleaved;
    } jobs[] = {{8, 1, false}, {8, 4, true}, {1, 1, false}};
    const rc_chunk_weight weights[] = {{1 << 30, 7, 9}, {1 << 29, 5, 3}, {3, 2, 1}, {1, 1, 1}};
    (void)state;
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
        rc_pipeline *pipelines[2];
        rc_pipeline_peak peaks[2];
        rc_arena *mem = rc_arena_open();
        for (int k = 0; k < 2; k++) {
            const rc_layout layout = {.sizes = {.pp = jobs[i].p,
                                                .vp = jobs[i].v,
                                                .is_interleaved = jobs[i].is_interleaved},
                                      .n_micro_batches = k ? (int64_t)1 << 50 : 1 << 10,
                                      .micro_batch_group = 8};
            assert_ok(rc_pipeline_make(&layout, 0, mem, &pipelines[k], NULL));
            assert_ok(rc_pipeline_find_peak(pipelines[k], weights, mem, &peaks[k], NULL));
        }
        assert_int_equal(pipelines[1]->n_runs, pipelines[0]->n_runs);
        assert_true(pipelines[1]->n_runs <= 8 * jobs[i].v + 8);
        assert_int_equal(peaks[1].weight, peaks[0].weight);
        assert_true(is_same_event(peaks[1].event, peaks[0].event));
        rc_arena_close(mem);
    }
}

static void numbers_past_the_range_are_refused(void **state)
{
    const job j = {.p = 2, .v = 1, .group = 2, .m = 4};
    const rc_chunk_weight heavy = {.held = INT64_MAX / 2 + 1},
                          extra = {.held = 1, .bwd_extra = INT64_MAX};
    rc_layout layout = layout_of(&j);
    rc_arena *mem = rc_arena_open();
    rc_pipeline *pipeline = need_pipeline(&j, 0, mem);
    rc_pipeline_peak peak;
    rc_error err = {0};
    const rc_pipeline_event *events;
    int64_t n;
    (void)state;
    assert_int_equal(rc_pipeline_find_peak(pipeline, &heavy, mem, &peak, NULL), RC_E_RANGE);
    assert_int_equal(rc_pipeline_find_peak(pipeline, &extra, mem, &peak, NULL), RC_E_RANGE);
    layout.n_micro_batches = (int64_t)1 << 40;
    assert_ok(rc_pipeline_make(&layout, 1, mem, &pipeline, NULL));
    assert_int_equal(rc_pipeline_events(pipeline, mem, &events, &n, NULL), RC_E_RANGE);
    layout.n_micro_batches = INT64_MAX;
    assert_int_equal(rc_pipeline_make(&layout, 1, mem, &pipeline, NULL), RC_E_RANGE);
    layout.n_micro_batches = 0;
    assert_int_equal(rc_pipeline_make(&layout, 1, mem, &pipeline, &err), RC_E_INPUT);
    assert_non_null(strstr(err.msg, "train.micro_batch_size"));
    rc_arena_close(mem);
}

/* --- the noun's own invariants, and its text */

static void a_broken_pipeline_does_not_verify(void **state)
{
    const job j = {.p = 2, .v = 2, .group = 2, .m = 8, .is_interleaved = true};
    rc_arena *mem = rc_arena_open();
    const rc_pipeline *good = need_pipeline(&j, 1, mem);
    rc_pipeline_run runs[32];
    (void)state;
    assert_true(good->n_runs <= 32 && good->n_lead == 1 && good->n_periods > 1);
    for (int fault = 0; fault < 8; fault++) {
        rc_pipeline broken = *good;
        memcpy(runs, good->runs, (size_t)good->n_runs * sizeof *runs);
        broken.runs = runs;
        runs[0].n -= fault == 1;
        runs[1].fwd_micro += fault == 2;
        runs[1].bwd_micro += fault == 3;
        runs[1].bwd_chunk -= fault == 4; /* of a micro-batch that has not been forward */
        broken.n_periods -= fault == 5;
        broken.n_runs -= fault == 6;
        broken.n_micro_batches += fault == 7;
        assert_int_equal(rc_pipeline_verify(&broken, mem, NULL), fault ? RC_E_BUG : RC_OK);
    }
    rc_arena_close(mem);
}

static void a_pipeline_prints_as_text(void **state)
{
    const job j = {.p = 2, .v = 2, .group = 2, .m = 7, .is_interleaved = true};
    rc_arena *mem = rc_arena_open();
    check_text text;
    (void)state;
    check_open(&text);
    rc_pipeline_print(need_pipeline(&j, 1, mem), text.to);
    char *said = check_close(&text);
    assert_string_equal(
        said, "pipeline of stage 1: 7 micro-batches, 2 chunks, 2 forwards of warm-up\n"
              "period: 2 times, 2 micro-batches on each time\n"
              "warm-up: forward chunk 0 micro-batches 0-1\n"
              "period: forward chunk 1 micro-batches 0-1 backward chunk 1 micro-batches 0-1\n"
              "period: forward chunk 0 micro-batches 2-3 backward chunk 0 micro-batches 0-1\n"
              "end: forward chunk 1 micro-batches 4-5 backward chunk 1 micro-batches 4-5\n"
              "end: forward chunk 0 micro-batches 6-6 backward chunk 0 micro-batches 4-4\n"
              "end: forward chunk 1 micro-batches 6-6 backward chunk 0 micro-batches 5-5\n"
              "end: backward chunk 1 micro-batches 6-6\n"
              "end: backward chunk 0 micro-batches 6-6\n");
    free(said);
    rc_arena_close(mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_come_in_megatrons_order),
        cmocka_unit_test(a_last_group_may_be_smaller),
        cmocka_unit_test(chunks_held_are_those_of_the_closed_formulas),
        cmocka_unit_test(drawn_jobs_hold_what_the_formula_says),
        cmocka_unit_test(the_peak_is_that_of_every_event),
        cmocka_unit_test(a_schedule_does_not_grow_with_micro_batches),
        cmocka_unit_test(numbers_past_the_range_are_refused),
        cmocka_unit_test(a_broken_pipeline_does_not_verify),
        cmocka_unit_test(a_pipeline_prints_as_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
