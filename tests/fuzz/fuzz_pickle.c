/* fuzz_pickle.c — any bytes as a memory snapshot: read, replay and every report. */
#include <recompute/snapshot.h>

#include <recompute/report.h>

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What a report says of a snapshot whatever it holds. */
static void check_sums(const rc_snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->n_devices; i++) {
        const rc_live_set *peak = &snapshot->devices[i].peak;
        int64_t bytes = 0, count = 0;
        for (size_t k = 0; k < peak->n_tallies; k++) {
            bytes += peak->tallies[k].requested_bytes;
            count += peak->tallies[k].count;
        }
        if (bytes != peak->traced_bytes || count != (int64_t)peak->n)
            abort();
    }
}

static void write_reports(const rc_snapshot *snapshot, rc_arena *mem)
{
    static FILE *to;
    if (!to)
        to = fopen("/dev/null", "w");
    for (int is_brief = 0; is_brief < 2; is_brief++) {
        const rc_snapshot_view view = {
            .device = -1, .n_top = is_brief * 5, .is_brief = is_brief};
        rc_report overview = {0}, live = {0}, both = {0};
        if (rc_snapshot_overview(snapshot, &view, &overview, NULL) == RC_OK)
            (void)!rc_report_write(&overview, is_brief ? RC_FORMAT_TEXT : RC_FORMAT_JSON, to,
                                   NULL);
        if (rc_snapshot_live_report(snapshot, RC_LIVE_MOMENT, &view, &live, NULL) == RC_OK)
            (void)!rc_report_write(&live, RC_FORMAT_MD, to, NULL);
        if (rc_snapshot_compare(snapshot, snapshot, &view, mem, &both, NULL) == RC_OK)
            (void)!rc_report_write(&both, RC_FORMAT_CSV, to, NULL);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rc_arena *mem = rc_arena_open();
    rc_snapshot *snapshot;
    rc_refusal refusal;
    rc_error err = {0};
    const rc_moment moment = {RC_MOMENT_INDEX, 2};
    rc_code code =
        rc_snapshot_make_bytes(data, size, &moment, NULL, mem, &snapshot, &refusal, &err);
    if (code == RC_OK) {
        if (err.code != RC_OK || refusal != RC_REFUSAL_NONE)
            abort();
        check_sums(snapshot);
        write_reports(snapshot, mem);
    } else if (err.code != code) {
        abort();
    }
    rc_arena_close(mem);
    return 0;
}
