/* python.h — values as Python writes them: None, True, [1, 2], ([0]*3+[1]*58), torch.bfloat16. */
#ifndef RC_ARGS_PYTHON_H
#define RC_ARGS_PYTHON_H

#include "base/nodes.h"

/* A node for the text, whose positions count from `at`. What is no literal becomes a string of the
 * whole text: a name, a path, a dotted word, an object's <representation>. */
RC_MUST_CHECK
rc_code rc_python_read(rc_nodes *nodes, const char *text, size_t n, rc_where at, rc_doc **out,
                       rc_error *err);

#endif
