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
#include <recompute/release.h>
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

/* "core" "cli" "bridge" "build" "advice" */
RC_API const char *rc_layer_name(rc_layer layer);

enum { RC_RULE_ID_ROOM = 80, RC_RULE_RELEASES_ROOM = 16, RC_RULE_SETTINGS_ROOM = 8 };

/* What the framework does where a rule fires. */
typedef enum rc_effect {
    RC_EFFECT_RAISES,
    RC_EFFECT_WARNS,
    RC_EFFECT_LOGS,
    RC_EFFECT_SETS,
    RC_EFFECT_EXITS,
    RC_EFFECT_HANGS,
    RC_EFFECT_IGNORES,
    RC_EFFECT_CLAMPS,
    /* without a word */
    RC_EFFECT_ACCEPTS
} rc_effect;

/* A row of the table, with its words. */
typedef struct rc_rule_facts {
    /* as in C: words joined by _ */
    const char *name;
    rc_layer layer;
    rc_level level;
    rc_effect effect;
    /* what is raised, or NULL */
    const char *exception;
    /* of Megatron Core, both included */
    rc_release first, last;
    /* the settings at fault, most blamed first, split by spaces */
    const char *fields;
    /* a file of the framework and its lines; "" where the rule is ours */
    const char *where;
    const char *reason;
    /* overrides, then " | " and words; either part may be empty */
    const char *fix;
} rc_rule_facts;

/* The rows of the table: how many, and the i-th, NULL past the last. */
RC_API size_t rc_rule_count(void);
RC_API const rc_rule_facts *rc_rule_find_nth(size_t i);

/* By id, with - or _; the names that other collections use for a rule are known too. NULL where there is
 * none. */
RC_API const rc_rule_facts *rc_rule_find(const char *id);
/* The name another collection has for it, or NULL. */
RC_API const char *rc_rule_other_name(const rc_rule_facts *rule);
/* The id nearest to what was typed, in buf; NULL where none is near. */
RC_API const char *rc_rule_nearest(const char *id, char buf[RC_RULE_ID_ROOM]);
/* The id as printed: words joined by -. Returns buf. */
RC_API const char *rc_rule_id(const rc_rule_facts *rule, char buf[RC_RULE_ID_ROOM]);

/* "ValueError, megatron/core/transformer/transformer_config.py 1903", cut to `room` bytes with its NUL; ""
 * where the rule is ours. Returns buf. */
RC_API const char *rc_rule_source(const rc_rule_facts *rule, char *buf, size_t room);
/* The exception a rejection raises ("ValueError"); NULL where the rule raises none, or rejects nothing. */
RC_API const char *rc_rule_exception(const rc_rule_facts *rule);
/* The settings at fault, most blamed first, in `out`. Returns how many. */
RC_API size_t rc_rule_settings(const rc_rule_facts *rule, rc_field out[RC_RULE_SETTINGS_ROOM]);
/* "0.16-", "0.15-0.15", "-0.14" or "all", in buf or a constant. */
RC_API const char *rc_rule_releases(const rc_rule_facts *rule, char buf[RC_RULE_RELEASES_ROOM]);

typedef enum rc_check_target {
    /* the config classes alone */
    RC_CHECK_CORE,
    /* and validate_args, build and run time, advice */
    RC_CHECK_MEGATRON_LM,
    /* and Bridge's finalize and validate, build and run time, advice */
    RC_CHECK_BRIDGE
} rc_check_target;

/* The target that the kind of input calls for. */
RC_API rc_check_target rc_check_find_target(const rc_config *cfg);

typedef struct rc_check_options {
    rc_check_target target;
    /* release of Megatron Core: "0.16", "main"; NULL is main */
    const char *megatron;
    /* "2.9.0"; NULL is new enough for everything */
    const char *transformer_engine;
    /* also the rules of our own */
    bool has_advice;
} rc_check_options;

typedef struct rc_check {
    /* errors in firing order, then warnings and notes in emission order */
    rc_findings findings;
    /* [findings.n] the row of each finding */
    const rc_rule_facts **rules;
    /* [findings.n] MAP of settings that correct it, or NULL */
    const rc_doc **fixes;
    /* the finding that stops the framework; findings.n when it is accepted */
    size_t first;
    /* by the target: no error at all */
    bool is_accepted;
    /* of the first, or NULL */
    const char *exception;
    /* what the framework itself warns, ids in emission order, up to where it stops */
    const char **warnings;
    size_t n_warnings;
    /* MAP: the four recompute settings as the framework leaves them */
    const rc_doc *effective;
    /* MAP: other settings that it changed */
    const rc_doc *effective_other;
} rc_check;

/**
 * All findings about one configuration.
 *
 * takes   cfg      from rc_config_make; its positions are the findings' positions; must outlive *out
 *         options  whose rules, of which releases
 * gives   *out     the findings; `effective` is meaningful only when is_accepted
 * errors  RC_E_INPUT when options name an unknown release or version; RC_E_MEMORY
 * cost    a few microseconds: every rule once
 * source  Megatron-LM d98e8a64 and Megatron-Bridge 067f987d, 22 August 2026
 */
RC_MUST_CHECK
RC_API rc_code rc_check_make(const rc_config *cfg, const rc_check_options *options,
                             rc_arena *mem, rc_check **out, rc_error *err);

/* The same for what a Python call would pass to a config class. Core rules only.
 *
 * takes   fields   a map {num_layers: 4, ...} with values of any type; must outlive *out
 *         is_mla   the class is MLATransformerConfig, else TransformerConfig
 *         options  as above; the target is not read
 * gives   *out     as above
 * errors  as above; RC_E_INPUT for what is no map */
RC_MUST_CHECK
RC_API rc_code rc_check_make_core(const rc_doc *fields, bool is_mla,
                                  const rc_check_options *options, rc_arena *mem,
                                  rc_check **out, rc_error *err);

/* The fix as lines to paste: overrides of Bridge, arguments of Megatron-LM with comments on those to
 * leave out, and where they stand in the inputs of `cfg`; `export` of the job's environment.
 *
 * takes   fix   MAP of settings (rc_check.fixes); NULL gives ""
 *         cfg   what it was found in
 * gives   *out  each line ends in a newline
 * errors  RC_E_MEMORY */
RC_MUST_CHECK
RC_API rc_code rc_say_patch(const rc_doc *fix, const rc_config *cfg, rc_arena *mem,
                            const char **out, rc_error *err);

/* A fix, or several in one map, as the framework's user writes them: "model.a=b", "--a b", "a=b".
 *
 * takes   fix      MAP of settings
 *         between  stands between two of them
 * gives   *out     one line, unless `between` breaks it
 * errors  RC_E_MEMORY */
RC_MUST_CHECK
RC_API rc_code rc_say_fix(const rc_doc *fix, rc_framework framework, const char *between,
                          rc_arena *mem, const char **out, rc_error *err);

/* Fails with the first finding of level error, as an error with its position and fix.
 *
 * takes   cfg  judged by the rules of the core layer, without advice
 * errors  RC_E_INPUT; as rc_check_make */
RC_MUST_CHECK
RC_API rc_code rc_check_refuse_errors(const rc_config *cfg, rc_arena *mem, rc_error *err);

/* The verdict, a line per finding, what the framework warns, and the settings it leaves. */
RC_API void rc_check_print(const rc_check *check, FILE *to);

/* For people and programs.
 *
 * gives   *out  a row per finding, in their order
 * errors  RC_E_MEMORY */
RC_MUST_CHECK
RC_API rc_code rc_check_table(const rc_check *check, rc_arena *mem, rc_table **out,
                              rc_error *err);

/* The table of rules, for `recompute list rules`.
 *
 * gives   *out  a row per rule, with its other name
 * errors  RC_E_MEMORY */
RC_MUST_CHECK
RC_API rc_code rc_rule_table(rc_arena *mem, rc_table **out, rc_error *err);

RC_EXTERN_C_END

#endif
