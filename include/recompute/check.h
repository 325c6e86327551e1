/* check.h — what the training framework will say to a configuration, before it is started.
 *
 * A rule is a row of src/defs/rules.def. Rules of the core layer are those of Megatron Core's
 * config classes and fire in its order; cli, bridge and build hold what the launchers and the
 * model's construction add; advice is ours: settings that are accepted and do nothing, or harm.
 */
#ifndef RECOMPUTE_CHECK_H
#define RECOMPUTE_CHECK_H

#include <recompute/arena.h>
#include <recompute/config.h>
#include <recompute/doc.h>
#include <recompute/error.h>
#include <recompute/finding.h>
#include <recompute/table.h>

#include <stdio.h>

RC_EXTERN_C_BEGIN

typedef enum rc_layer {
    RC_LAYER_CORE,
    RC_LAYER_CLI,
    RC_LAYER_BRIDGE,
    RC_LAYER_BUILD,
    RC_LAYER_ADVICE
} rc_layer;
RC_API const char *rc_layer_name(rc_layer layer); /* "core" "cli" "bridge" "build" "advice" */

enum { RC_RULE_ID_ROOM = 80 };

/* A row of the table. */
typedef struct rc_rule_facts {
    const char *name; /* as in C: words joined by _ */
    rc_layer layer;
    rc_level level;
    const char *range;  /* releases of Megatron Core: "0.16-", "0.15-0.15", "" for all */
    const char *fields; /* the settings at fault, most blamed first, split by spaces */
    const char *raises; /* "ValueError TC 1903": what happens, and where */
    const char *reason;
    const char *fix; /* overrides, then " | " and words; either part may be empty */
} rc_rule_facts;

RC_API size_t rc_rule_count(void);
RC_API const rc_rule_facts *rc_rule_find_nth(size_t i);
/* By id, with - or _; the names that other collections use for a rule are known too. NULL when none. */
RC_API const rc_rule_facts *rc_rule_find(const char *id);
/* The name another collection has for it, or NULL. */
RC_API const char *rc_rule_other_name(const rc_rule_facts *rule);
RC_API const char *rc_rule_nearest(const char *id, char buf[RC_RULE_ID_ROOM]);
/* The id as printed: words joined by -. Returns buf. */
RC_API const char *rc_rule_id(const rc_rule_facts *rule, char buf[RC_RULE_ID_ROOM]);
/* "raises ValueError at megatron/core/transformer/transformer_config.py 1903"; "" where it is ours. */
RC_API const char *rc_rule_source(const rc_rule_facts *rule, char *buf, size_t room);
/* The exception a rejection raises ("ValueError"), or NULL where the rule raises none. */
RC_API const char *rc_rule_exception(const rc_rule_facts *rule, char buf[RC_RULE_ID_ROOM]);

typedef enum rc_check_target {
    RC_CHECK_CORE,        /* the config classes alone */
    RC_CHECK_MEGATRON_LM, /* + validate_args, build and run time, advice */
    RC_CHECK_BRIDGE       /* + Bridge's finalize and validate, build and run time, advice */
} rc_check_target;

/* The target that the kind of input calls for. */
RC_API rc_check_target rc_check_find_target(const rc_config *cfg);

typedef struct rc_check_options {
    rc_check_target target;
    const char *megatron;           /* release of Megatron Core: "0.16", "main"; NULL is main */
    const char *transformer_engine; /* "2.9.0"; NULL is new enough for everything */
    bool has_advice;                /* also the rules of our own */
} rc_check_options;

typedef struct rc_check {
    rc_findings
        findings; /* errors in firing order, then warnings and notes in emission order */
    const rc_rule_facts **rules; /* [findings.n] the row of each finding */
    const rc_doc **fixes;        /* [findings.n] MAP of settings that mend it, or NULL */
    size_t first;     /* the finding the framework dies of, findings.n when it is accepted */
    bool is_accepted; /* by the target: no error at all */
    const char *exception; /* of the first, or NULL */
    const char *
        *warnings; /* what the framework itself warns, ids in emission order, up to its death */
    size_t n_warnings;
    const rc_doc *effective; /* MAP: the four recompute settings as the framework leaves them */
    const rc_doc *effective_other; /* MAP: other settings that it changed */
} rc_check;

/**
 * All findings about one configuration.
 *
 * takes   cfg      from rc_config_make; its positions are the findings' positions
 * gives   *out     the findings; `effective` is meaningful only when is_accepted
 * errors  RC_E_INPUT when options name an unknown release or version; RC_E_MEMORY
 * cost    a few microseconds: every rule once
 * source  Megatron-LM d98e8a64 and Megatron-Bridge 067f987d, 22 August 2026
 */
RC_MUST_CHECK
RC_API rc_code rc_check_make(const rc_config *cfg, const rc_check_options *options,
                             rc_arena *mem, rc_check **out, rc_error *err);

/* The same for one map of config-class fields, {num_layers: 4, ...}, of any types: what a Python
 * call would pass to TransformerConfig (or MLATransformerConfig). Core rules only; RC_E_INPUT for
 * what is no map. */
RC_MUST_CHECK
RC_API rc_code rc_check_make_core(const rc_doc *fields, bool is_mla,
                                  const rc_check_options *options, rc_arena *mem,
                                  rc_check **out, rc_error *err);

/* The fix as lines to paste: overrides of Bridge, arguments of Megatron-LM with comments on those to
 * leave out, and where they stand in the inputs of `cfg`; `export` of the job's environment. */
RC_MUST_CHECK
RC_API rc_code rc_say_patch(const rc_doc *fix, const rc_config *cfg, rc_arena *mem,
                            const char **out, rc_error *err);
/* A fix, or several in one map, as the framework's user writes them: "model.a=b", "--a b", "a=b". */
RC_MUST_CHECK
RC_API rc_code rc_say_fix(const rc_doc *fix, rc_framework framework, const char *between,
                          rc_arena *mem, const char **out, rc_error *err);

/* Fails with the first finding of level error, as an error with its position and fix. */
RC_MUST_CHECK
RC_API rc_code rc_check_refuse_errors(const rc_config *cfg, rc_arena *mem, rc_error *err);

/* The verdict, a line per finding, what the framework warns, and the settings it leaves. */
RC_API void rc_check_print(const rc_check *check, FILE *to);
/* A row per finding, in their order. */
RC_MUST_CHECK
RC_API rc_code rc_check_table(const rc_check *check, rc_arena *mem, rc_table **out,
                              rc_error *err);

/* The table of rules and its other names, for `recompute list rules`. */
RC_MUST_CHECK
RC_API rc_code rc_rule_table(rc_arena *mem, rc_table **out, rc_error *err);

RC_EXTERN_C_END

#endif
