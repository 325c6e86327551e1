/* dispatch.h — rows to the experts and back. */
#ifndef RC_GRAPH_DISPATCH_H
#define RC_GRAPH_DISPATCH_H

#include "graph/shared_experts.h"

typedef struct rc_dispatch {
    /* [R,hl] expert by expert, and the probability of each row */
    int rows, probs;
    /* What the way back reads: the order that rows were put in at their tokens' rank, at this rank from the tokens that
     * reached it, and from rank by rank to expert by expert; RC_ABSENT where nothing is kept of it. */
    int sent_order, received_order, expert_order;
} rc_dispatch;

/* `probs` as the router gives it; shared experts may run while rows travel. */
rc_dispatch rc_build_dispatch(rc_builder *b, int x, int probs, rc_shared *shared);
/* The sum of each token's rows, [n,hl]. */
int rc_build_combine(rc_builder *b, int rows, const rc_dispatch *way, rc_shared *shared);

#endif
