/* checking.h — a check in progress: the state that the rules of every layer read and change, and the
 * words rules are made of.
 *
 * Megatron's config classes do not check types: a comparison means what Python makes of it. The
 * state therefore holds untyped values (rc_doc), and the words below follow Python: truth, `is
 * None`, `==`, `in`, `<`. What Python would answer with an exception is reported as the rule
 * `python_type_error` or `python_zero_division`, and counts as false: the functions that do so are
 * called need_, those that only look is_ and has_.
 *
 * A rule function reads `checking` and calls RAISE, WARN or a rc_checking_set_; after a RAISE Megatron
 * has stopped, but the functions go on, so that every violation is reported.
 *
 * above  rule.h, te.h; every file of rules stands on this one
 */
#ifndef RC_CHECK_CHECKING_H
#define RC_CHECK_CHECKING_H

#include "check/rule.h"
#include "check/te.h"

#include <recompute/config.h>
#include <recompute/doc.h>
#include <recompute/label.h>

/* One firing of a rule. */
typedef struct rc_hit {
    rc_rule rule;
    /* the list entry at fault ("moe_act"), or NULL */
    const char *item;
    /* where it is not the rule's own */
    const char *exception;
    /* what it comes to in this configuration ("1.2 GiB more"), or NULL */
    const char *here;
    /* what it is about, when that is no setting; or NULL */
    const rc_unknown_key *key;
} rc_hit;

typedef struct rc_checking {
    /* now; never NULL */
    const rc_doc *at[RC_CHECKED_COUNT];
    /* by the user, or the class default */
    const rc_doc *given[RC_CHECKED_COUNT];
    /* the same, before a launcher changes it */
    const rc_doc *written[RC_CHECKED_COUNT];
    bool is_given[RC_CHECKED_COUNT];
    /* only the job will know it: the value here is a stand-in */
    bool is_late[RC_CHECKED_COUNT];
    /* MLATransformerConfig */
    bool is_mla;
    /* of Megatron Core */
    rc_release release;
    /* Transformer Engine */
    rc_te te;
    /* whose settings the fixes are written in */
    rc_framework framework;
    /* a Python call: what is absent has the class's default */
    bool is_call;
    /* a fragment: what it leaves unset, a recipe may set */
    bool is_partial;
    /* another layer said it in its own words */
    bool is_told[RC_RULE_COUNT];
    /* where all settings stand typed; NULL for a call */
    const rc_config *cfg;
    /* a violation was raised: what follows Megatron never says */
    bool has_stopped;
    rc_hit *hits;
    size_t n_hits, n_room;
    /* hits up to and including the first violation */
    size_t n_until_stop;
    rc_arena *mem;
    /* sticky: RC_E_MEMORY */
    rc_code code;
    rc_error *err;
} rc_checking;

/* --- asking */
/* Python's truth */
bool rc_checking_is_on(const rc_checking *checking, rc_checked_field field);
bool rc_checking_is_null(const rc_checking *checking, rc_checked_field field);
bool rc_checking_is_text(const rc_checking *checking, rc_checked_field field, const char *text);
bool rc_checking_is_number(const rc_checking *checking, rc_checked_field field, double value);
/* `is False` */
bool rc_checking_is_false(const rc_checking *checking, rc_checked_field field);
/* Given, or absent from a call: not left to a launcher or a recipe. */
bool rc_checking_is_settled(const rc_checking *checking, rc_checked_field field);
/* An item of what rc_checking_need_set has seen. */
bool rc_checking_is_in_set(const rc_checking *checking, rc_checked_field field,
                           const char *item);
bool rc_checking_is_selective(const rc_checking *checking);
bool rc_checking_is_full(const rc_checking *checking);
/* A label of this release. */
bool rc_checking_knows_label(const rc_checking *checking, const char *name);
/* By their impl or by the old switches. */
bool rc_checking_has_graphs(const rc_checking *checking);

/* --- asking what Python may refuse: false or 0 then, and a python_type_error or, dividing by 0, the rule
 * `blame` */
/* item in field */
bool rc_checking_need_item(rc_checking *checking, rc_checked_field field, const char *item);
/* a number */
bool rc_checking_need_numeric(rc_checking *checking, rc_checked_field field);
double rc_checking_need_number(rc_checking *checking, rc_checked_field field);
bool rc_checking_need_below(rc_checking *checking, rc_checked_field field, double limit);
bool rc_checking_need_above(rc_checking *checking, rc_checked_field field, double limit);
/* what can stand beside `*` and an int: a number, a text or a list */
bool rc_checking_need_countable(rc_checking *checking, rc_checked_field field);
/* len(field) */
bool rc_checking_need_sized(rc_checking *checking, rc_checked_field field);
/* set(field): what is in it, letter by letter where it is a text */
bool rc_checking_need_set(rc_checking *checking, rc_checked_field field);
/* a % b != 0 */
bool rc_checking_need_rest(rc_checking *checking, double a, double b, rc_rule blame);
/* The same of two settings. */
bool rc_checking_need_uneven(rc_checking *checking, rc_checked_field a, rc_checked_field b,
                             rc_rule blame);
/* a // b is only computed. */
void rc_checking_need_quotient(rc_checking *checking, rc_checked_field a, rc_checked_field b,
                               rc_rule blame);
/* Recompute is selective and the label in its list. */
bool rc_checking_need_label(rc_checking *checking, rc_label label);
/* A part of a layer ("attn", "mlp"): by its name, with the whole layer, or with the iteration. */
bool rc_checking_need_captured(rc_checking *checking, const char *module);
bool rc_checking_need_expandable_segments(rc_checking *checking);

/* --- answering */
void rc_checking_raise(rc_checking *checking, rc_rule rule, const char *item);
void rc_checking_crash(rc_checking *checking, rc_rule rule, const char *exception);
/* The same, blaming one field. */
void rc_checking_crash_at(rc_checking *checking, rc_rule rule, rc_checked_field field);
void rc_checking_warn(rc_checking *checking, rc_rule rule);
void rc_checking_warn_item(rc_checking *checking, rc_rule rule, const char *item);
/* With a figure behind the reason: what it comes to here. Made only when the rule is one of this
 * release. */
void rc_checking_warn_here(rc_checking *checking, rc_rule rule, const char *item,
                           const char *fmt, ...) RC_PRINTF(4, 5);
void rc_checking_warn_key(rc_checking *checking, rc_rule rule, const rc_unknown_key *key);
/* A launcher hands the class another value, without a word. */
void rc_checking_give_text(rc_checking *checking, rc_checked_field field, const char *text);
void rc_checking_give_bool(rc_checking *checking, rc_checked_field field, bool value);
void rc_checking_give_int(rc_checking *checking, rc_checked_field field, int64_t value);
void rc_checking_give_null(rc_checking *checking, rc_checked_field field);
/* The class's validation changes a value, in releases that have the rule `change`. */
void rc_checking_set(rc_checking *checking, rc_checked_field field, const rc_doc *value,
                     rc_rule change);
void rc_checking_set_text(rc_checking *checking, rc_checked_field field, const char *text,
                          rc_rule change);
void rc_checking_set_bool(rc_checking *checking, rc_checked_field field, bool value,
                          rc_rule change);
void rc_checking_set_int(rc_checking *checking, rc_checked_field field, int64_t value,
                         rc_rule change);
void rc_checking_set_real(rc_checking *checking, rc_checked_field field, double value,
                          rc_rule change);
void rc_checking_set_null(rc_checking *checking, rc_checked_field field, rc_rule change);
/* A list of texts to fill; NULL when memory is out (checking->code says so). */
rc_doc *rc_checking_new_list(rc_checking *checking);
void rc_checking_list_add(rc_checking *checking, rc_doc *list, const char *text);
/* The items of `from`, of whatever kind. */
void rc_checking_list_add_all(rc_checking *checking, rc_doc *list, const rc_doc *from);

/* Short forms, so that a rule reads like the condition it states. IN, BELOW, ABOVE, NUMBER, NEED_NUMERIC
 * and RECOMPUTES need a value that Python can search or compare. */
#define ON(field) rc_checking_is_on(checking, RC_CHECKED_##field)
#define IS_NULL(field) rc_checking_is_null(checking, RC_CHECKED_##field)
#define IS(field, text) rc_checking_is_text(checking, RC_CHECKED_##field, text)
#define IN(field, item) rc_checking_need_item(checking, RC_CHECKED_##field, item)
#define BELOW(field, limit) rc_checking_need_below(checking, RC_CHECKED_##field, limit)
#define ABOVE(field, limit) rc_checking_need_above(checking, RC_CHECKED_##field, limit)
#define NUMBER(field) rc_checking_need_number(checking, RC_CHECKED_##field)
#define NEED_NUMERIC(field) rc_checking_need_numeric(checking, RC_CHECKED_##field)
#define RECOMPUTES(label) rc_checking_need_label(checking, RC_LABEL_##label)
#define RAISE(rule) rc_checking_raise(checking, RC_RULE_##rule, NULL)
#define RAISE_ITEM(rule, item) rc_checking_raise(checking, RC_RULE_##rule, item)
#define WARN_ITEM(rule, item) rc_checking_warn_item(checking, RC_RULE_##rule, item)
#define WARN_HERE(rule, item, ...)                                                             \
    rc_checking_warn_here(checking, RC_RULE_##rule, item, __VA_ARGS__)
#define WARN(rule) rc_checking_warn(checking, RC_RULE_##rule)
#define SINCE(name) (checking->release >= RC_RELEASE_##name)

/* An empty state with the class defaults, of the newest release. */
RC_MUST_CHECK
rc_code rc_checking_make(rc_arena *mem, bool is_mla, rc_checking **out, rc_error *err);

/* Takes the settings of a config; what it leaves at its default keeps the class's (fill.c). */
RC_MUST_CHECK
rc_code rc_checking_fill(rc_checking *checking, const rc_config *cfg, rc_error *err);

#endif
