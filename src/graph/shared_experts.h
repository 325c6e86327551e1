/* shared_experts.h — shared experts: all at once, or step by step between the exchanges of the routed ones. */
#ifndef RC_GRAPH_SHARED_EXPERTS_H
#define RC_GRAPH_SHARED_EXPERTS_H

#include "graph/builder.h"

typedef struct rc_shared {
    /* what they read, [n,h] */
    int x;
    bool is_overlapped;
    /* what the last step gave, RC_ABSENT before the first and where there are none; the gate's score */
    int at, score;
} rc_shared;

rc_shared rc_build_shared(rc_builder *b, int x);
/* Steps, in this order; each does nothing where they do not overlap. */
void rc_build_shared_start(rc_builder *b, rc_shared *shared);
void rc_build_shared_up(rc_builder *b, rc_shared *shared);
void rc_build_shared_down(rc_builder *b, rc_shared *shared);
/* y + what the shared experts gave. */
int rc_build_shared_add(rc_builder *b, int y, const rc_shared *shared);

#endif
