/* override.h — one override word at a time, for callers that meet them between other words. */
#ifndef RC_ARGS_OVERRIDE_H
#define RC_ARGS_OVERRIDE_H

#include "base/nodes.h"

/* Sets what `word` says in the map `root`. `at` gives the file and line of its positions. */
RC_MUST_CHECK
rc_code rc_override_add(rc_nodes *nodes, rc_doc *root, const char *word, rc_where at,
                        rc_error *err);

/* Is this word of the form `key=value`, `+key=value`, `++key=value` or `~key`? */
bool rc_override_is(const char *word);

#endif
