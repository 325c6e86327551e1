/* fuzz_log.c — any bytes as a job's output: read in pieces, then diagnosed, shown and checked. */
#include <recompute/diagnose.h>
#include <recompute/report.h>

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static rc_code diagnose(const char *bytes, size_t n, size_t piece, rc_arena *mem, rc_error *err)
{
    rc_log *log;
    rc_log_reader *reader;
    rc_diagnosis *diagnosis;
    rc_report report = {.n = 0};
    RC_TRY(rc_log_make(mem, &log, err));
    RC_TRY(rc_log_open("fuzz.log", RC_LOG_UNKNOWN, log, &reader, err));
    for (size_t at = 0; at < n; at += piece)
        RC_TRY(rc_log_feed(reader, bytes + at, n - at < piece ? n - at : piece, err));
    RC_TRY(rc_log_finish(reader, err));
    RC_TRY(rc_log_verify(log, err));
    rc_job job = {.log = log};
    RC_TRY(rc_diagnosis_make(&job, mem, &diagnosis, err));
    RC_TRY(rc_diagnosis_verify(diagnosis, err));
    return rc_diagnosis_report(diagnosis, mem, &report, err);
}

/* No bytes of a log are an error, and no figure leaves its bounds. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rc_error err = {.code = RC_OK};
    rc_arena *mem = rc_arena_open();
    if (!mem)
        return 0;
    size_t piece = size > 0 && data[0] % 2 ? 4096 : size + 1;
    if (diagnose((const char *)data, size, piece, mem, &err) != RC_OK)
        abort();
    rc_arena_close(mem);
    return 0;
}
