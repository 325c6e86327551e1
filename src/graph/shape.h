/* shape.h — shapes as text in the field's symbols, and what they come to. */
#ifndef RC_GRAPH_SHAPE_H
#define RC_GRAPH_SHAPE_H

#include <recompute/graph.h>

enum { RC_SHAPE_MAX_DIMS = 4 };

typedef struct rc_shape {
    int n_dims;
    int64_t dim[RC_SHAPE_MAX_DIMS];
    int64_t n_elem;
} rc_shape;

/* Evaluates "[N, (a+2g)d/t]": sums of products of symbols, numbers and brackets; neighbours
 * multiply; a division must come out whole.
 * errors  RC_E_INPUT when a division has a remainder, RC_E_RANGE on overflow */
RC_MUST_CHECK
rc_code rc_shape_eval(const char *text, const rc_dims *dims, rc_shape *out, rc_error *err);

#endif
