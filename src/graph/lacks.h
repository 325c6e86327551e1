/* lacks.h — what the graph of each profile cannot build (graph and train; what commands ask is public). */
#ifndef RC_GRAPH_LACKS_H
#define RC_GRAPH_LACKS_H

#include <recompute/graph.h>

#include "config/asks.h"

typedef enum rc_lack_cell { RC_LACK_BUILDS, RC_LACK_SAME, RC_LACK_LACKS } rc_lack_cell;

/* A row of graph_lacks.def. */
typedef struct rc_lack {
    rc_ask ask; /* first: lacks are looked up as asks */
    rc_lack_cell of[RC_PROFILE_COUNT];
} rc_lack;

const rc_lack *rc_lack_list(size_t *n);
/* The same rows, to be looked up. */
rc_asks rc_lack_asks(void);

#endif
