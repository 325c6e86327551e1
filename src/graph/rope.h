/* rope.h — rotary positions out of a config, and whether two of them are the same. */
#ifndef RC_GRAPH_ROPE_H
#define RC_GRAPH_ROPE_H

#include <recompute/graph.h>

/* The rotary part of a rope op's attributes: all but n, groups and what rc_build_op sets.
 * takes   dims  d, and s for dynamic scaling
 * errors  RC_E_INPUT, RC_E_UNSUPPORTED with the place of the setting */
RC_MUST_CHECK
rc_code rc_rope_read(const rc_config *cfg, const rc_dims *dims, rc_op_attr *out, rc_error *err);

/* Does every pair turn by the same angles, at the same size? Many settings say one thing. */
bool rc_rope_is_same(const rc_op_attr *a, const rc_op_attr *b);

#endif
