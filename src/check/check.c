/* check.c — the configuration in, findings out: fills the state, runs the layers, and says what
 * fired where.
 *
 * takes  an rc_config, or one map of config-class fields
 * gives  rc_check
 * next   `recompute check` prints it; train and plan refuse by it
 *
 * above  core.c, the rules of the other layers, fill.c and say.c
 */
#include "check/layers.h"
#include "check/say.h"

#include <string.h>

/* A word of the config class itself. */
static bool is_framework_warning(const rc_hit *hit)
{
    const rc_rule_facts *rule = rc_rule_at(hit->rule);
    return rule->layer == RC_LAYER_CORE &&
           (rule->effect == RC_EFFECT_WARNS || rule->effect == RC_EFFECT_LOGS);
}

/* --- what the framework leaves */

static rc_code add_copy(rc_doc *map, const char *key, const rc_doc *value, rc_arena *mem,
                        rc_error *err)
{
    rc_doc *copy;
    RC_TRY(rc_doc_new(mem, value->kind, value->where, &copy, err));
    *copy = *value;
    copy->key = key;
    copy->next = NULL;
    rc_doc_add(map, key, value->where, copy);
    return RC_OK;
}

static bool take_number(const rc_doc *value, double *out)
{
    *out = value->kind == RC_DOC_FLOAT ? value->f : (double)value->i;
    return value->kind == RC_DOC_BOOL || value->kind == RC_DOC_INT ||
           value->kind == RC_DOC_FLOAT;
}

/* As Python has it: 1, 1.0 and True are equal. */
static bool is_equal(const rc_doc *a, const rc_doc *b)
{
    double x_number, y_number;
    if (take_number(a, &x_number) && take_number(b, &y_number))
        return !(x_number < y_number) && !(x_number > y_number);
    if (a->kind != b->kind)
        return false;
    if (a->kind == RC_DOC_STRING)
        return a->n_bytes == b->n_bytes && memcmp(a->text, b->text, a->n_bytes) == 0;
    if (a->kind != RC_DOC_LIST && a->kind != RC_DOC_MAP)
        return true;
    const rc_doc *y = b->child;
    for (const rc_doc *x = a->child; x; x = x->next, y = y->next)
        if (!y || !is_equal(x, y))
            return false;
    return y == NULL;
}

/* Before 0.18 the graphs' modules were their scope. */
static bool is_named_scope(const rc_checking *checking, rc_checked_field field)
{
    return field == RC_CHECKED_cuda_graph_modules && !SINCE(0_18);
}

/* "full", the default, and null mean an empty list, so a change from one to the other is none; and
 * an unset inference scope means none. */
static bool is_changed(const rc_checking *checking, rc_checked_field field)
{
    const rc_doc *now = checking->at[field], *given = checking->given[field];
    if (is_named_scope(checking, field) && checking->is_given[RC_CHECKED_cuda_graph_scope])
        given = checking->given[RC_CHECKED_cuda_graph_scope];
    bool means_empty = given->kind == RC_DOC_NULL ||
                       (given->kind == RC_DOC_STRING && strcmp(given->text, "full") == 0);
    if (field == RC_CHECKED_cuda_graph_modules && means_empty)
        return now->n_children > 0;
    if (field == RC_CHECKED_inference_cuda_graph_scope && given->kind == RC_DOC_NULL)
        return now->kind == RC_DOC_STRING && strcmp(now->text, "none") != 0;
    return !is_equal(now, given);
}

static rc_code add_effective(const rc_checking *checking, rc_check *check, rc_error *err)
{
    static const rc_checked_field own[] = {
        RC_CHECKED_recompute_granularity, RC_CHECKED_recompute_method,
        RC_CHECKED_recompute_num_layers, RC_CHECKED_recompute_modules};
    static const rc_checked_field left_out[] = {RC_CHECKED_expert_tensor_parallel_size,
                                                RC_CHECKED_moe_ffn_hidden_size,
                                                RC_CHECKED_cuda_graph_scope};
    rc_doc *effective, *other;
    RC_TRY(rc_doc_new(checking->mem, RC_DOC_MAP, RC_NOWHERE, &effective, err));
    RC_TRY(rc_doc_new(checking->mem, RC_DOC_MAP, RC_NOWHERE, &other, err));
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        RC_TRY(add_copy(effective, rc_checked_find(own[i])->name, checking->at[own[i]],
                        checking->mem, err));
    for (int i = 0; i < RC_CHECKED_COUNT; i++) {
        const rc_checked_facts *field = rc_checked_find((rc_checked_field)i);
        bool is_left_out = field->owner == RC_OWNER_OTHER;
        for (size_t k = 0; k < sizeof own / sizeof *own; k++)
            is_left_out = is_left_out || i == (int)own[k];
        for (size_t k = 0; k < sizeof left_out / sizeof *left_out; k++)
            is_left_out = is_left_out || i == (int)left_out[k];
        bool is_scope = is_named_scope(checking, (rc_checked_field)i);
        if (!is_left_out && (is_scope || checking->release >= field->since) &&
            is_changed(checking, (rc_checked_field)i))
            RC_TRY(add_copy(other, is_scope ? "cuda_graph_scope" : field->name, checking->at[i],
                            checking->mem, err));
    }
    check->effective = effective;
    check->effective_other = other;
    return RC_OK;
}

/* --- findings */

static rc_code add_finding(const rc_checking *checking, const rc_hit *hit, rc_check *check,
                           size_t *k, rc_error *err)
{
    rc_finding finding;
    RC_TRY(rc_say_finding(checking, hit, &finding, &check->fixes[*k], err));
    RC_TRY(rc_findings_add(&check->findings, &finding, err));
    check->rules[(*k)++] = rc_rule_at(hit->rule);
    return RC_OK;
}

static rc_code add_warning(const rc_checking *checking, const rc_hit *hit, rc_check *check,
                           rc_error *err)
{
    char id[RC_RULE_ID_ROOM];
    return rc_arena_printf(checking->mem, &check->warnings[check->n_warnings++], err, "%s",
                           rc_rule_id(rc_rule_at(hit->rule), id));
}

/* Advice that says more than what the framework logs. */
static bool is_said_better(const rc_checking *checking, rc_rule rule)
{
    if (rule != RC_RULE_warn_core_attn_recompute_may_be_needless)
        return false;
    for (size_t i = 0; i < checking->n_hits; i++)
        if (checking->hits[i].rule == RC_RULE_core_attn_with_fused_attention ||
            checking->hits[i].rule == RC_RULE_core_attn_raises_memory)
            return true;
    return false;
}

/* A default that turns into what it means is not worth a word. */
static bool is_worth_saying(const rc_checking *checking, const rc_hit *hit)
{
    const rc_rule_facts *rule = rc_rule_at(hit->rule);
    if (is_said_better(checking, hit->rule))
        return false;
    bool is_change = rule->layer == RC_LAYER_CORE && rule->effect == RC_EFFECT_SETS;
    return !is_change || rc_say_is_given(checking, hit->rule);
}

/* Errors first, in the order they would be raised; then what else was said. */
static rc_code add_findings(const rc_checking *checking, rc_check *check, rc_error *err)
{
    size_t k = 0;
    RC_TRY(RC_NEW(checking->mem, &check->rules, checking->n_hits, err));
    RC_TRY(RC_NEW(checking->mem, &check->fixes, checking->n_hits, err));
    RC_TRY(RC_NEW(checking->mem, &check->warnings, checking->n_hits, err));
    check->findings.mem = checking->mem;
    for (rc_level level = RC_LEVEL_ERROR; level <= RC_LEVEL_NOTE; level++)
        for (size_t i = 0; i < checking->n_hits; i++)
            if (rc_say_level(checking, &checking->hits[i]) == level &&
                is_worth_saying(checking, &checking->hits[i]))
                RC_TRY(add_finding(checking, &checking->hits[i], check, &k, err));
    check->is_accepted = rc_findings_count(&check->findings, RC_LEVEL_ERROR) == 0;
    check->first = check->is_accepted ? check->findings.n : 0;
    for (size_t i = 0; i < checking->n_until_stop; i++)
        if (is_framework_warning(&checking->hits[i]))
            RC_TRY(add_warning(checking, &checking->hits[i], check, err));
    return RC_OK;
}

static void add_exception(const rc_checking *checking, rc_check *check)
{
    size_t i = 0;
    if (check->is_accepted)
        return;
    while (rc_say_level(checking, &checking->hits[i]) != RC_LEVEL_ERROR)
        i++; /* the first finding */
    check->exception = checking->hits[i].exception;
    if (!check->exception)
        check->exception = rc_rule_exception(check->rules[0]);
}

static rc_code make_check(rc_checking *checking, rc_arena *mem, rc_check **out, rc_error *err)
{
    rc_check *check;
    RC_TRY(RC_NEW(mem, &check, 1, err));
    RC_TRY(add_findings(checking, check, err));
    add_exception(checking, check);
    RC_TRY(add_effective(checking, check, err));
    *out = check;
    return RC_OK;
}

/* --- inputs */

static rc_code set_options(rc_checking *checking, const rc_check_options *options,
                           rc_error *err)
{
    const char *megatron = options->megatron ? options->megatron : "main";
    const char *te = options->transformer_engine ? options->transformer_engine : "999";
    if (!rc_release_find(megatron, &checking->release))
        return RC_FAIL(err, RC_E_INPUT, RC_NOWHERE,
                       "no release of Megatron Core is called %.60s; known are %s to %s and %s",
                       megatron, rc_release_name(RC_RELEASE_0_9),
                       rc_release_name(RC_RELEASE_main - 1), rc_release_name(RC_RELEASE_main));
    if (!rc_te_find(te, &checking->te))
        return RC_FAIL(err, RC_E_INPUT, RC_NOWHERE,
                       "%.60s is no version of Transformer Engine; write it like 2.9.0", te);
    return RC_OK;
}

/* Sizes that a fragment of a config leaves to a recipe; without them errors are warnings. */
static bool is_fragment(const rc_config *cfg, const rc_checking *checking)
{
    return cfg->framework != RC_FRAMEWORK_CORE && !checking->is_given[RC_CHECKED_num_layers];
}

/* Megatron-LM names neither the class nor its size before it builds them; of Bridge's providers the
 * plain one and that of hybrid models are no MLA classes, whatever the switch says. */
static bool is_mla_class(const rc_config *cfg)
{
    if (cfg->config_class && strcmp(cfg->config_class, "MLATransformerConfig") == 0)
        return true;
    return cfg->multi_latent_attention && !rc_bridge_is_plain_provider(cfg);
}

/* A keyword that the class does not have: Python refuses the call before any check. */
static void refuse_later_fields(rc_checking *checking)
{
    for (int i = 0; i < RC_CHECKED_COUNT; i++) {
        const rc_checked_facts *field = rc_checked_find((rc_checked_field)i);
        /* a launcher does not hand them to the other class */
        bool is_elsewhere =
            field->owner == RC_OWNER_MLA && checking->is_call && !checking->is_mla;
        if (checking->is_given[i] && (checking->release < field->since || is_elsewhere))
            rc_checking_raise(checking, RC_RULE_field_not_in_release, field->name);
    }
}

rc_code rc_check_make_core(const rc_doc *fields, bool is_mla, const rc_check_options *options,
                           rc_arena *mem, rc_check **out, rc_error *err)
{
    rc_checking *checking;
    if (fields->kind != RC_DOC_MAP)
        return RC_FAIL(err, RC_E_INPUT, fields->where,
                       "the fields of a config class are a map, such as {num_layers: 4}");
    RC_TRY(rc_checking_make(mem, is_mla, &checking, err));
    RC_TRY(set_options(checking, options, err));
    checking->framework = RC_FRAMEWORK_CORE;
    checking->is_call = true;
    for (const rc_doc *node = fields->child; node; node = node->next) {
        rc_checked_field field = rc_checked_find_name(node->key);
        if (field == RC_CHECKED_COUNT || rc_checked_find(field)->owner == RC_OWNER_OTHER)
            continue;
        checking->at[field] = checking->given[field] = checking->written[field] = node;
        checking->is_given[field] = true;
    }
    checking->err = err;
    refuse_later_fields(checking);
    RC_TRY(rc_check_core(checking, err));
    return make_check(checking, mem, out, err);
}

static rc_code run_layers(rc_checking *checking, const rc_config *cfg,
                          const rc_check_options *options, rc_error *err)
{
    checking->err = err;
    if (options->target == RC_CHECK_MEGATRON_LM)
        rc_check_cli(checking);
    if (options->target == RC_CHECK_BRIDGE)
        rc_check_bridge(checking);
    refuse_later_fields(checking);
    RC_TRY(rc_check_core(checking, err));
    if (options->target == RC_CHECK_BRIDGE)
        rc_check_bridge_late(checking);
    if (options->target != RC_CHECK_CORE)
        rc_check_build(checking);
    if (options->has_advice) {
        rc_check_advice(checking);
        rc_check_unknown(checking, cfg);
    }
    return checking->code;
}

rc_code rc_check_make(const rc_config *cfg, const rc_check_options *options, rc_arena *mem,
                      rc_check **out, rc_error *err)
{
    rc_checking *checking;
    RC_TRY(rc_checking_make(mem, is_mla_class(cfg), &checking, err));
    RC_TRY(set_options(checking, options, err));
    RC_TRY(rc_checking_fill(checking, cfg, err));
    checking->cfg = cfg;
    checking->framework = cfg->framework;
    checking->is_partial = is_fragment(cfg, checking);
    RC_TRY(run_layers(checking, cfg, options, err));
    return make_check(checking, mem, out, err);
}

rc_check_target rc_check_find_target(const rc_config *cfg)
{
    switch (cfg->framework) {
    case RC_FRAMEWORK_MEGATRON_LM:
        return RC_CHECK_MEGATRON_LM;
    case RC_FRAMEWORK_CORE:
        return RC_CHECK_CORE;
    case RC_FRAMEWORK_BRIDGE:
        break;
    }
    return RC_CHECK_BRIDGE;
}

rc_code rc_check_refuse_errors(const rc_config *cfg, rc_arena *mem, rc_error *err)
{
    rc_check_options options = {.target = RC_CHECK_CORE};
    rc_check *check;
    RC_TRY(rc_check_make(cfg, &options, mem, &check, err));
    if (check->is_accepted)
        return RC_OK;
    const rc_finding *first = &check->findings.at[check->first];
    return RC_FAIL(err, RC_E_INPUT, first->where, "%s%s%s [%s]", first->reason,
                   first->fix ? "; write " : "", first->fix ? first->fix : "", first->rule);
}
