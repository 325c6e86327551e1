/* finding.h — rc_findings: what is wrong or worth saying about a noun.
 *
 * A finding is not an error: a config that `check` describes is work well done.
 */
#ifndef RECOMPUTE_FINDING_H
#define RECOMPUTE_FINDING_H

#include <recompute/arena.h>
#include <recompute/error.h>

RC_EXTERN_C_BEGIN

typedef enum rc_level { RC_LEVEL_ERROR, RC_LEVEL_WARNING, RC_LEVEL_NOTE } rc_level;

typedef struct rc_finding {
    rc_level level;
    /* stable id, as in the rules table */
    const char *rule;
    /* in the user's input */
    rc_where where;
    /* what is wrong and why */
    const char *reason;
    /* what to write instead; NULL where nothing can be said */
    const char *fix;
    /* where the framework decides so; NULL where it is ours */
    const char *source;
} rc_finding;

/* In the order in which they were found; empty is all zero but `mem`. */
typedef struct rc_findings {
    rc_finding *at;
    size_t n, n_room;
    /* where findings are taken from */
    rc_arena *mem;
} rc_findings;

/* Appends a copy of `finding`.
 *
 * takes   finding  its strings are borrowed as long as the findings live
 * errors  RC_E_MEMORY */
RC_MUST_CHECK
RC_API rc_code rc_findings_add(rc_findings *findings, const rc_finding *finding, rc_error *err);
/* How many there are of a level. */
RC_API size_t rc_findings_count(const rc_findings *findings, rc_level level);
/* "error", "warning", "note" */
RC_API const char *rc_level_name(rc_level level);

RC_EXTERN_C_END

#endif
