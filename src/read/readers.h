/* readers.h — which files the readers of configurations know by their names: readers.def. */
#ifndef RC_READ_READERS_H
#define RC_READ_READERS_H

#include <stdbool.h>

/* Does the path end as a file of configuration does: .yaml, .json, .sh, ...? */
bool rc_reader_is_named(const char *path);

#endif
