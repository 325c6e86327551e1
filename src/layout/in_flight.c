/* layout/in_flight.c — how many micro-batches the stages of a job hold at once, one row a stage. */
#include <recompute/pipeline.h>

#include "base/text.h"

#include <inttypes.h>

/* "4, 4, 3": of each chunk, or its number alone where there is one. */
static rc_code show_held(const rc_pipeline_peak *peak, int n_chunks, rc_arena *mem,
                         const char **out, rc_error *err)
{
    rc_text text = {.mem = mem};
    for (int i = 0; i < n_chunks; i++)
        RC_TRY(rc_text_printf(&text, err, "%s%" PRId64, i ? ", " : "", peak->n_held[i]));
    *out = text.at;
    return RC_OK;
}

rc_code rc_pipeline_in_flight_table(const rc_layout *layout, rc_arena *mem, rc_table **out,
                                    rc_error *err)
{
    static const rc_column columns[] = {{"stage", NULL, RC_UNIT_COUNT},
                                        {"n_warmup", "warm-up forwards", RC_UNIT_COUNT},
                                        {"n_held", "in flight", RC_UNIT_COUNT},
                                        {"held_by_chunk", "by chunk", RC_UNIT_TEXT}};
    const int n_chunks = (int)layout->sizes.vp;
    rc_chunk_weight *ones;
    RC_TRY(RC_NEW(mem, &ones, n_chunks, err));
    for (int i = 0; i < n_chunks; i++)
        ones[i].held = 1;
    RC_TRY(rc_table_make(mem, "in_flight", "Micro-batches of a chunk held at once", columns, 4,
                         out, err));
    for (int64_t stage = 0; stage < layout->sizes.pp; stage++) {
        rc_pipeline *pipeline;
        rc_pipeline_peak peak;
        const char *held;
        rc_cell *row;
        RC_TRY(rc_pipeline_make(layout, stage, mem, &pipeline, err));
        RC_TRY(rc_pipeline_find_peak(pipeline, ones, mem, &peak, err));
        RC_TRY(show_held(&peak, n_chunks, mem, &held, err));
        RC_TRY(rc_table_add_row(*out, &row, err));
        row[0] = rc_cell_int(stage);
        row[1] = rc_cell_int(pipeline->n_warmup);
        row[2] = rc_cell_int(peak.weight);
        row[3] = rc_cell_text(held);
    }
    return RC_OK;
}
