/* check.h — the pieces of `recompute check`: one file per form of output. */
#ifndef RC_CLI_CHECK_H
#define RC_CLI_CHECK_H

#include <recompute/check.h>

#include <stdio.h>

/* A value as JSON. */
void rc_check_write_value(const rc_doc *value, FILE *to);

/* One configuration of config-class fields a line in, one JSON verdict a line out (cli/check_jsonl.c).
 * *status becomes 1 when a line is rejected, 2 when one cannot be read. */
RC_MUST_CHECK
rc_code rc_check_jsonl(const char *path, const rc_check_options *options, FILE *to, int *status,
                       rc_error *err);

#endif
