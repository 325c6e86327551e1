/* layout/pipeline_show.c — a pipeline as text, as a table, and event by event. */
#include <recompute/pipeline.h>

#include <inttypes.h>

enum { MOST_EVENTS = 1 << 24 };

static const char *part_of(const rc_pipeline *pipeline, int run)
{
    if (run < pipeline->n_lead)
        return "warm-up";
    if (run < pipeline->n_lead + pipeline->n_period)
        return "period";
    return "end";
}

static void print_half(const char *what, int chunk, int64_t micro, int64_t n, FILE *to)
{
    if (chunk >= 0)
        fprintf(to, " %s chunk %d micro-batches %" PRId64 "-%" PRId64, what, chunk, micro,
                micro + n - 1);
}

void rc_pipeline_print(const rc_pipeline *pipeline, FILE *to)
{
    fprintf(to,
            "pipeline of stage %" PRId64 ": %" PRId64 " micro-batches, %d chunks, %" PRId64
            " forwards of warm-up%s\n",
            pipeline->stage, pipeline->n_micro_batches, pipeline->n_chunks, pipeline->n_warmup,
            pipeline->is_side_by_side ? ", side by side" : "");
    if (pipeline->n_periods)
        fprintf(to, "period: %" PRId64 " times, %" PRId64 " micro-batches on each time\n",
                pipeline->n_periods, pipeline->period_micro_batches);
    for (int i = 0; i < pipeline->n_runs; i++) {
        const rc_pipeline_run *run = &pipeline->runs[i];
        fprintf(to, "%s:", part_of(pipeline, i));
        print_half("forward", run->fwd_chunk, run->fwd_micro, run->n, to);
        print_half("backward", run->bwd_chunk, run->bwd_micro, run->n, to);
        fputc('\n', to);
    }
}

static rc_cell cell_or_null(int chunk, int64_t value)
{
    return chunk >= 0 ? rc_cell_int(value) : rc_cell_text(NULL);
}

rc_code rc_pipeline_table(const rc_pipeline *pipeline, rc_arena *mem, rc_table **out,
                          rc_error *err)
{
    static const rc_column columns[] = {{"part", NULL, RC_UNIT_TEXT},
                                        {"times", NULL, RC_UNIT_COUNT},
                                        {"fwd_chunk", "forward chunk", RC_UNIT_COUNT},
                                        {"fwd_micro_batch", "from micro-batch", RC_UNIT_COUNT},
                                        {"bwd_chunk", "backward chunk", RC_UNIT_COUNT},
                                        {"bwd_micro_batch", "from micro-batch", RC_UNIT_COUNT},
                                        {"n_steps", "steps", RC_UNIT_COUNT}};
    RC_TRY(rc_table_make(mem, "pipeline", "Order of a stage", columns, 7, out, err));
    for (int i = 0; i < pipeline->n_runs; i++) {
        const rc_pipeline_run *run = &pipeline->runs[i];
        const bool repeats = i >= pipeline->n_lead && i < pipeline->n_lead + pipeline->n_period;
        rc_cell *row;
        RC_TRY(rc_table_add_row(*out, &row, err));
        row[0] = rc_cell_text(part_of(pipeline, i));
        row[1] = rc_cell_int(repeats ? pipeline->n_periods : 1);
        row[2] = cell_or_null(run->fwd_chunk, run->fwd_chunk);
        row[3] = cell_or_null(run->fwd_chunk, run->fwd_micro);
        row[4] = cell_or_null(run->bwd_chunk, run->bwd_chunk);
        row[5] = cell_or_null(run->bwd_chunk, run->bwd_micro);
        row[6] = rc_cell_int(run->n);
    }
    return RC_OK;
}

/* The runs from `first` to below `last`, `later` micro-batches on; gives where the next event goes. */
static rc_pipeline_event *add_events(const rc_pipeline *pipeline, int first, int last,
                                     int64_t later, rc_pipeline_event *at)
{
    for (int i = first; i < last; i++) {
        const rc_pipeline_run *run = &pipeline->runs[i];
        for (int64_t k = later; k < later + run->n; k++) {
            if (run->fwd_chunk >= 0)
                *at++ = (rc_pipeline_event){.chunk = run->fwd_chunk,
                                            .micro_batch = run->fwd_micro + k};
            if (run->bwd_chunk >= 0)
                *at++ = (rc_pipeline_event){.is_backward = true,
                                            .chunk = run->bwd_chunk,
                                            .micro_batch = run->bwd_micro + k};
        }
    }
    return at;
}

rc_code rc_pipeline_events(const rc_pipeline *pipeline, rc_arena *mem,
                           const rc_pipeline_event **events, int64_t *n, rc_error *err)
{
    const int end = pipeline->n_lead + pipeline->n_period;
    rc_pipeline_event *at;
    if (pipeline->n_micro_batches > MOST_EVENTS / 2 / pipeline->n_chunks)
        return RC_FAIL(err, RC_E_RANGE, RC_NOWHERE,
                       "%" PRId64 " micro-batches through %d chunks are more than %d events",
                       pipeline->n_micro_batches, pipeline->n_chunks, MOST_EVENTS);
    *n = 2 * pipeline->n_micro_batches * pipeline->n_chunks;
    RC_TRY(RC_NEW(mem, &at, *n, err));
    *events = at;
    at = add_events(pipeline, 0, pipeline->n_lead, 0, at);
    for (int64_t i = 0; i < pipeline->n_periods; i++)
        at =
            add_events(pipeline, pipeline->n_lead, end, i * pipeline->period_micro_batches, at);
    (void)add_events(pipeline, end, pipeline->n_runs, 0, at);
    return RC_OK;
}
