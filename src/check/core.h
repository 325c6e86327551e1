/* core.h — the state a rule of the core layer reads and changes, and the words rules are made of.
 *
 * Megatron's config classes do not check types: a comparison means what Python makes of it. The
 * state therefore holds untyped values (rc_doc), and the words below follow Python: truth, `is
 * None`, `==`, `in`, `<`. What Python would answer with an exception is reported as the rule
 * `python_type_error` or `python_zero_division`, and counts as false.
 *
 * A rule function reads `core` and calls RAISE, WARN or a core_set_; after a RAISE Megatron has
 * stopped, but the functions go on, so that every violation is reported.
 */
#ifndef RC_CHECK_CORE_H
#define RC_CHECK_CORE_H

#include "check/release.h"
#include "check/rule.h"

#include <recompute/config.h>
#include <recompute/doc.h>

typedef enum rc_core_field {
#define RC_CORE(name, dflt, since) RC_CORE_##name,
#include "defs/core_fields.def"
#undef RC_CORE
    RC_CORE_COUNT
} rc_core_field;
/* Fields from here on are no members of the config classes. */
#define RC_CORE_CLASS_COUNT RC_CORE_checkpoint_activations

typedef struct rc_core_field_facts {
    const char *name, *dflt, *since;
    rc_field field; /* the same setting in an rc_config */
} rc_core_field_facts;
const rc_core_field_facts *rc_core_field_find(rc_core_field field);
/* RC_CORE_COUNT when the class has no such field */
rc_core_field rc_core_field_named(const char *name);

/* One firing of a rule. */
typedef struct rc_hit {
    rc_rule rule;
    const char *item;      /* the list entry at fault ("moe_act"), or NULL */
    const char *exception; /* where it is not the rule's own */
    const char *here; /* what it comes to in this configuration ("1.2 GiB more"), or NULL */
    const rc_unknown_key *key; /* what it is about, when that is no setting; or NULL */
} rc_hit;

typedef struct rc_core {
    const rc_doc *at[RC_CORE_COUNT];      /* now; never NULL */
    const rc_doc *given[RC_CORE_COUNT];   /* by the user, or the class default */
    const rc_doc *written[RC_CORE_COUNT]; /* the same, before a launcher changes it */
    bool is_given[RC_CORE_COUNT];
    bool is_late[RC_CORE_COUNT]; /* only the job will know it: the value here is a stand-in */
    bool is_mla;                 /* MLATransformerConfig */
    rc_release release;          /* of Megatron Core */
    rc_te te;                    /* Transformer Engine */
    rc_framework framework;      /* whose tongue the fixes are written in */
    bool is_call;                /* a Python call: what is absent has the class's default */
    bool is_partial;             /* a fragment: what it leaves unset, a recipe may set */
    bool is_told[RC_RULE_COUNT]; /* another layer said it in its own words */
    const rc_config *cfg;        /* where all settings stand typed; NULL for a call */
    bool has_stopped;            /* a violation was raised: what follows Megatron never says */
    rc_hit *hits;
    size_t n_hits, n_room;
    size_t n_until_stop; /* hits up to and including the first violation */
    rc_arena *mem;
    rc_code code; /* sticky: RC_E_MEMORY */
    rc_error *err;
} rc_core;

/* --- asking */
bool rc_core_is_on(const rc_core *core, rc_core_field field); /* Python's truth */
bool rc_core_is_null(const rc_core *core, rc_core_field field);
bool rc_core_is_text(const rc_core *core, rc_core_field field, const char *text);
bool rc_core_has(rc_core *core, rc_core_field field, const char *item); /* item in field */
/* Given, or absent from a call: not left to a launcher or a recipe. */
bool rc_core_is_settled(const rc_core *core, rc_core_field field);
bool rc_core_is_number(const rc_core *core, rc_core_field field, double value);
/* False, and a python_type_error, when the value is no number. */
bool rc_core_is_below(rc_core *core, rc_core_field field, double limit);
bool rc_core_is_above(rc_core *core, rc_core_field field, double limit);
/* The number, or 0 with a python_type_error. */
double rc_core_number(rc_core *core, rc_core_field field);
/* False, and a python_type_error, when the value is no number. */
bool rc_core_is_numeric(rc_core *core, rc_core_field field);
bool rc_core_is_false(const rc_core *core, rc_core_field field); /* `is False` */
/* The value can stand beside `*` and an int: a number, a text or a list. */
bool rc_core_is_countable(rc_core *core, rc_core_field field);
/* The value has a len(); false, and a python_type_error, where it has none. */
bool rc_core_is_sized(rc_core *core, rc_core_field field);
/* set(field): what is in it, letter by letter where it is a text; false, and a
 * python_type_error, when it cannot be one. */
bool rc_core_is_set(rc_core *core, rc_core_field field);
bool rc_core_set_has(const rc_core *core, rc_core_field field, const char *item);
/* a % b != 0; a python_zero_division (of `blame`) and false when b is 0. */
bool rc_core_has_rest(rc_core *core, double a, double b, rc_rule blame);
/* The same of two settings; false, and a python_type_error, when one is no number. */
bool rc_core_divides_unevenly(rc_core *core, rc_core_field a, rc_core_field b, rc_rule blame);
/* a // b is only computed: what it raises, as above. */
void rc_core_divide(rc_core *core, rc_core_field a, rc_core_field b, rc_rule blame);
bool rc_core_is_selective(const rc_core *core);
bool rc_core_recomputes(rc_core *core, const char *label); /* selective and in the list */
bool rc_core_is_every_layer_moe(const rc_core *core);      /* by moe_layer_freq alone */
bool rc_core_is_full(const rc_core *core);
bool rc_core_is_label(const rc_core *core, const char *name); /* of this release */
bool rc_core_is_delta_net(
    const rc_core *core); /* gated_delta_net until 0.19, then gdn and gdn2 */
bool rc_core_has_graphs(const rc_core *core); /* by their impl or by the old switches */
/* A part of a layer ("attn", "mlp"): by its name, with the whole layer, or with the iteration. */
bool rc_core_captures(rc_core *core, const char *module);
bool rc_core_has_expandable_segments(rc_core *core);
bool rc_core_is_hybrid(const rc_core *core); /* layers by a pattern */
/* First or last stage, layout or hybrid pattern: layers are not dealt out evenly. */
bool rc_core_has_own_split(const rc_core *core);
/* Some norm is a module, which the label layernorm finds: in the local implementation, in MLA and before
 * MoE layers. Not for a call. */
bool rc_core_has_own_norms(const rc_core *core);
bool rc_core_counts_ends(const rc_core *core); /* embedding or loss as a layer */

/* --- answering */
void rc_core_raise(rc_core *core, rc_rule rule, const char *item);
void rc_core_crash(rc_core *core, rc_rule rule, const char *exception);
/* The same, blaming one field. */
void rc_core_crash_at(rc_core *core, rc_rule rule, rc_core_field field);
void rc_core_warn(rc_core *core, rc_rule rule);
void rc_core_warn_item(rc_core *core, rc_rule rule, const char *item);
/* With a figure behind the reason: what it comes to here. Made only when the rule is one of this
 * release. */
void rc_core_warn_here(rc_core *core, rc_rule rule, const char *item, const char *fmt, ...)
    RC_PRINTF(4, 5);
void rc_core_warn_key(rc_core *core, rc_rule rule, const rc_unknown_key *key);
/* A launcher hands the class another value, without a word. */
void rc_core_give_text(rc_core *core, rc_core_field field, const char *text);
void rc_core_give_bool(rc_core *core, rc_core_field field, bool value);
void rc_core_give_int(rc_core *core, rc_core_field field, int64_t value);
void rc_core_give_null(rc_core *core, rc_core_field field);
/* The class's validation changes a value, in releases that have the rule `change`. */
void rc_core_set(rc_core *core, rc_core_field field, const rc_doc *value, rc_rule change);
void rc_core_set_text(rc_core *core, rc_core_field field, const char *text, rc_rule change);
void rc_core_set_bool(rc_core *core, rc_core_field field, bool value, rc_rule change);
void rc_core_set_int(rc_core *core, rc_core_field field, int64_t value, rc_rule change);
void rc_core_set_real(rc_core *core, rc_core_field field, double value, rc_rule change);
void rc_core_set_null(rc_core *core, rc_core_field field, rc_rule change);
/* A list of texts to fill; NULL when memory is out (core->code says so). */
rc_doc *rc_core_new_list(rc_core *core);
void rc_core_list_add(rc_core *core, rc_doc *list, const char *text);
/* The items of `from`, of whatever kind. */
void rc_core_list_add_all(rc_core *core, rc_doc *list, const rc_doc *from);

/* Short forms, so that a rule reads like the condition it states. */
#define ON(field) rc_core_is_on(core, RC_CORE_##field)
#define IS_NULL(field) rc_core_is_null(core, RC_CORE_##field)
#define IS(field, text) rc_core_is_text(core, RC_CORE_##field, text)
#define HAS(field, item) rc_core_has(core, RC_CORE_##field, item)
#define BELOW(field, limit) rc_core_is_below(core, RC_CORE_##field, limit)
#define ABOVE(field, limit) rc_core_is_above(core, RC_CORE_##field, limit)
#define NUMBER(field) rc_core_number(core, RC_CORE_##field)
#define IS_NUMERIC(field) rc_core_is_numeric(core, RC_CORE_##field)
#define RECOMPUTES(label) rc_core_recomputes(core, label)
#define RAISE(rule) rc_core_raise(core, RC_RULE_##rule, NULL)
#define RAISE_ITEM(rule, item) rc_core_raise(core, RC_RULE_##rule, item)
#define WARN_ITEM(rule, item) rc_core_warn_item(core, RC_RULE_##rule, item)
#define WARN_HERE(rule, item, ...) rc_core_warn_here(core, RC_RULE_##rule, item, __VA_ARGS__)
#define WARN(rule) rc_core_warn(core, RC_RULE_##rule)
#define SINCE(release_name) rc_release_is_at_least(core->release, release_name)

/* --- the families, in firing order; ORDER core_families (core.c) */
void rc_core_parallel(rc_core *core); /* rules_parallel.c */
void rc_core_weight_shards(rc_core *core);
void rc_core_precision(rc_core *core); /* rules_parallel.c */
void rc_core_linear_attention(rc_core *core);
void rc_core_experts(rc_core *core);      /* rules_moe.c */
void rc_core_cpu_offload(rc_core *core);  /* rules_offload.c */
void rc_core_recompute(rc_core *core);    /* rules_recompute.c */
void rc_core_mhc(rc_core *core);          /* rules_mhc.c */
void rc_core_fine_offload(rc_core *core); /* rules_offload.c */
void rc_core_pipeline(rc_core *core);     /* rules_pipeline.c */
void rc_core_late_model(rc_core *core);   /* rules_moe.c */
void rc_core_graph_names(rc_core *core);  /* rules_graph_names.c */
void rc_core_graphs(rc_core *core);       /* rules_graph.c */
void rc_core_graph_recompute(rc_core *core);
void rc_core_graph_offload(rc_core *core);
void rc_core_overlap(rc_core *core); /* rules_overlap.c */
void rc_core_mla(rc_core *core);     /* rules_overlap.c */

/* The layout's layer names by stage; NULL after a violation. */
typedef enum rc_stage_layer {
    RC_STAGE_EMBEDDING,
    RC_STAGE_LOSS,
    RC_STAGE_ENCODER,
    RC_STAGE_DECODER,
    RC_STAGE_MTP
} rc_stage_layer;

typedef struct rc_layout {
    rc_stage_layer *layers; /* in order */
    size_t n_layers;
    size_t *stage_starts; /* [n_stages + 1] offsets into layers */
    size_t n_stages, n_room, n_stage_room;
    size_t n_rows; /* stages seen, their names not looked up yet; 0 where rows are no lists */
} rc_layout;
/* false: it cannot be read (or memory is out: core->code) */
bool rc_layout_read(rc_core *core, const rc_doc *doc, rc_layout *layout);

/* --- the other layers (rules_cli.c, rules_bridge.c, rules_build.c, rules_advice.c); a launcher's
 * come before the core's and change what the class is handed */
void rc_core_cli(rc_core *core);
void rc_core_bridge(rc_core *core);
/* The model is a class of Bridge that has none of the members of MLATransformerConfig. */
bool rc_core_is_plain_provider(const rc_config *cfg);
void rc_core_bridge_late(rc_core *core); /* what Bridge asks behind the class */
void rc_core_overlap_recompute(rc_core *core);
void rc_core_build(rc_core *core);
void rc_core_advice(rc_core *core);
void rc_core_unknown(rc_core *core, const rc_config *cfg); /* rules_unknown.c */

/* Takes the settings of a config; what it leaves at its default keeps the class's. */
RC_MUST_CHECK
rc_code rc_core_fill(rc_core *core, const rc_config *cfg, rc_error *err);

/* Runs all families. */
RC_MUST_CHECK
rc_code rc_core_run(rc_core *core, rc_error *err);
/* An empty state with the class defaults, of the newest release. */
RC_MUST_CHECK
rc_code rc_core_open(rc_arena *mem, bool is_mla, rc_core **out, rc_error *err);

#endif
