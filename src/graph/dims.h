/* dims.h — the values of the symbols that shapes are written in. */
#ifndef RC_GRAPH_DIMS_H
#define RC_GRAPH_DIMS_H

#include <recompute/graph.h>

/* A graph holds every layer, so layers have a limit of their own. */
enum { RC_MOST_LAYERS = 4096 };

/* Those of a request's config; each is in its range, and what is cut over ranks divides.
 * errors  RC_E_INPUT, RC_E_RANGE with the place of the setting */
RC_MUST_CHECK
rc_code rc_dims_make(const rc_graph_request *request, rc_dims *dims, rc_error *err);

#endif
