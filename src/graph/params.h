/* params.h — what the buffers of a parameter hold (src/graph/ only). */
#ifndef RC_GRAPH_PARAMS_H
#define RC_GRAPH_PARAMS_H

#include <recompute/graph.h>

/* graph->layout of a config, from graph->profile and graph->dtype.
 * errors  RC_E_UNSUPPORTED at an optimizer or a dtype that no row has */
RC_MUST_CHECK
rc_code rc_params_layout(const rc_config *cfg, rc_graph *graph, rc_error *err);

#endif
