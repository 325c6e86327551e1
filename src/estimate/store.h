/* store.h — what estimates of one job share, whatever is recomputed. */
#ifndef RC_ESTIMATE_STORE_H
#define RC_ESTIMATE_STORE_H

#include "estimate/segment.h"

#include <recompute/estimate.h>

typedef struct rc_estimate_store {
    const rc_layout *layout;
    rc_graphs graphs;
} rc_estimate_store;

/* The layout of a request, and no graphs yet; they live in `mem`. */
RC_MUST_CHECK
rc_code rc_estimate_store_open(const rc_estimate_request *request, rc_arena *mem,
                               rc_estimate_store *out, rc_error *err);
/* rc_estimate_make with them. */
RC_MUST_CHECK
rc_code rc_estimate_make_in(rc_estimate_store *store, const rc_estimate_request *request,
                            rc_arena *mem, rc_estimate **out, rc_error *err);

#endif
