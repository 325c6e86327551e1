/* config_cases.h — tests of the config: a text in YAML, and the fields or the refusal it gives. */
#ifndef CONFIG_CASES_H
#define CONFIG_CASES_H

#include <recompute/config.h>
#include <recompute/read.h>
#include <recompute/train.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static inline rc_code make_kind(const char *text, rc_origin_kind kind, rc_arena *mem,
                                rc_config **cfg, rc_error *err)
{
    rc_doc *doc;
    RC_TRY(rc_yaml_read("m.yaml", text, strlen(text), mem, &doc, err));
    rc_input input = {doc, kind};
    return rc_config_make(&input, 1, mem, cfg, err);
}

static inline rc_config *make(const char *text, rc_arena *mem)
{
    rc_config *cfg = NULL;
    rc_error err = {0};
    if (make_kind(text, RC_FROM_FILE, mem, &cfg, &err) != RC_OK)
        fail_msg("%d:%d: %s", err.where.line, err.where.col, err.msg);
    return cfg;
}

/* The message for `text`, which must be refused on `line` under the ^ of `caret`. */
static inline void expect_refused(const char *text, int line, const char *caret,
                                  const char *says)
{
    rc_arena *mem = rc_arena_open();
    rc_config *cfg = NULL;
    rc_error err = {0};
    rc_code code = make_kind(text, RC_FROM_FILE, mem, &cfg, &err);
    if (code == RC_OK)
        code = rc_train_refuse_unknown(cfg, &err);
    assert_int_equal(code, RC_E_INPUT);
    if (!strstr(err.msg, says))
        fail_msg("the message is \"%s\", expected \"%s\"", err.msg, says);
    assert_int_equal(err.where.line, line);
    assert_int_equal(err.where.col, (int)strcspn(caret, "^") + 1);
    rc_arena_close(mem);
}

#endif
