/* router.h — the router of a mixture of experts. */
#ifndef RC_GRAPH_ROUTER_H
#define RC_GRAPH_ROUTER_H

#include "graph/builder.h"

/* Of every token the probability of each expert, 0 of those it does not go to: [n,E], in the model's dtype or float32. */
int rc_build_router(rc_builder *b, int x);

#endif
