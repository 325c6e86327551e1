/* experts.h — the routed experts of a rank. */
#ifndef RC_GRAPH_EXPERTS_H
#define RC_GRAPH_EXPERTS_H

#include "graph/dispatch.h"

/* [R,hl] to [R,hl] */
int rc_build_experts(rc_builder *b, const rc_dispatch *way);

#endif
