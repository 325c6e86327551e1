/* finding.c — collecting findings. */
#include <recompute/finding.h>

#include <string.h>

rc_code rc_findings_add(rc_findings *findings, const rc_finding *finding, rc_error *err)
{
    RC_TRY(RC_GROW(findings->mem, &findings->at, findings->n, &findings->n_room,
                   findings->n + 1, err));
    findings->at[findings->n++] = *finding;
    return RC_OK;
}

size_t rc_findings_count(const rc_findings *findings, rc_level level)
{
    size_t n = 0;
    for (size_t i = 0; i < findings->n; i++)
        n += findings->at[i].level == level;
    return n;
}

const char *rc_level_name(rc_level level)
{
    static const char *const names[] = {"error", "warning", "note"};
    return names[level];
}
