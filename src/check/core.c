/* core.c — the words that rules of the core layer are made of, and the order they run in.
 *
 * takes  a map of config-class fields, or the fields of an rc_config
 * gives  hits in firing order, and the fields as Megatron's validation leaves them
 * next   check.c makes findings of the hits
 */
#include "check/core.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const rc_core_field_facts fields[RC_CORE_COUNT] = {
#define RC_CORE(name, dflt, since) {#name, dflt, since, RC_FIELD_##name},
#include "defs/core_fields.def"
#undef RC_CORE
};

const rc_core_field_facts *rc_core_field_find(rc_core_field field)
{
    return &fields[field];
}

rc_core_field rc_core_field_named(const char *name)
{
    for (int i = 0; i < RC_CORE_COUNT; i++)
        if (strcmp(fields[i].name, name) == 0)
            return (rc_core_field)i;
    return RC_CORE_COUNT;
}

/* --- asking */

bool rc_core_is_on(const rc_core *core, rc_core_field field)
{
    const rc_doc *value = core->at[field];
    switch (value->kind) {
    case RC_DOC_NULL:
        return false;
    case RC_DOC_BOOL:
    case RC_DOC_INT:
        return value->i != 0;
    case RC_DOC_FLOAT:
        return value->f < 0.0 || value->f > 0.0 || isnan(value->f);
    case RC_DOC_STRING:
        return value->n_bytes > 0;
    case RC_DOC_LIST:
    case RC_DOC_MAP:
        return value->n_children > 0;
    }
    return false;
}

bool rc_core_is_null(const rc_core *core, rc_core_field field)
{
    return core->at[field]->kind == RC_DOC_NULL;
}

static bool is_text(const rc_doc *value, const char *text)
{
    return value->kind == RC_DOC_STRING && value->n_bytes == strlen(text) &&
           memcmp(value->text, text, value->n_bytes) == 0;
}

bool rc_core_is_text(const rc_core *core, rc_core_field field, const char *text)
{
    return is_text(core->at[field], text);
}

bool rc_core_has(rc_core *core, rc_core_field field, const char *item)
{
    const rc_doc *value = core->at[field];
    if (value->kind == RC_DOC_STRING)
        return strstr(value->text, item) != NULL;
    if (value->kind != RC_DOC_LIST) {
        rc_core_crash_at(core, RC_RULE_python_type_error, field);
        return false;
    }
    for (const rc_doc *child = value->child; child; child = child->next)
        if (is_text(child, item))
            return true;
    return false;
}

static bool take_number(const rc_doc *value, double *out)
{
    if (value->kind == RC_DOC_FLOAT)
        *out = value->f;
    else if (value->kind == RC_DOC_INT || value->kind == RC_DOC_BOOL)
        *out = (double)value->i;
    else
        return false;
    return true;
}

static bool is_equal(double a, double b)
{
    return !(a < b) && !(a > b) && !isnan(a) && !isnan(b);
}

bool rc_core_is_number(const rc_core *core, rc_core_field field, double value)
{
    double number;
    return take_number(core->at[field], &number) && is_equal(number, value);
}

bool rc_core_is_settled(const rc_core *core, rc_core_field field)
{
    return core->is_given[field] || core->is_call;
}

double rc_core_number(rc_core *core, rc_core_field field)
{
    double number = 0.0;
    if (!take_number(core->at[field], &number))
        rc_core_crash_at(core, RC_RULE_python_type_error, field);
    return number;
}

bool rc_core_is_below(rc_core *core, rc_core_field field, double limit)
{
    double number;
    if (take_number(core->at[field], &number))
        return number < limit;
    rc_core_crash_at(core, RC_RULE_python_type_error, field);
    return false;
}

bool rc_core_is_above(rc_core *core, rc_core_field field, double limit)
{
    double number;
    if (take_number(core->at[field], &number))
        return number > limit;
    rc_core_crash_at(core, RC_RULE_python_type_error, field);
    return false;
}

bool rc_core_is_numeric(rc_core *core, rc_core_field field)
{
    double number;
    if (take_number(core->at[field], &number))
        return true;
    rc_core_crash_at(core, RC_RULE_python_type_error, field);
    return false;
}

bool rc_core_is_false(const rc_core *core, rc_core_field field)
{
    return core->at[field]->kind == RC_DOC_BOOL && !core->at[field]->i;
}

bool rc_core_is_countable(rc_core *core, rc_core_field field)
{
    rc_doc_kind kind = core->at[field]->kind;
    if (kind != RC_DOC_NULL && kind != RC_DOC_MAP)
        return true;
    rc_core_crash_at(core, RC_RULE_python_type_error, field);
    return false;
}

bool rc_core_is_sized(rc_core *core, rc_core_field field)
{
    rc_doc_kind kind = core->at[field]->kind;
    if (kind == RC_DOC_STRING || kind == RC_DOC_LIST || kind == RC_DOC_MAP)
        return true;
    rc_core_crash_at(core, RC_RULE_python_type_error, field);
    return false;
}

bool rc_core_is_set(rc_core *core, rc_core_field field)
{
    const rc_doc *value = core->at[field];
    if (!rc_core_is_sized(core, field))
        return false;
    for (const rc_doc *item = value->child; item && value->kind == RC_DOC_LIST;
         item = item->next)
        if (item->kind == RC_DOC_LIST || item->kind == RC_DOC_MAP) {
            rc_core_crash_at(core, RC_RULE_python_type_error, field);
            return false;
        }
    return true;
}

/* A text is the set of its letters, none of which is a name. */
bool rc_core_set_has(const rc_core *core, rc_core_field field, const char *item)
{
    const rc_doc *value = core->at[field];
    for (const rc_doc *child = value->child; child && value->kind == RC_DOC_LIST;
         child = child->next)
        if (is_text(child, item))
            return true;
    return false;
}

bool rc_core_divides_unevenly(rc_core *core, rc_core_field a, rc_core_field b, rc_rule blame)
{
    const rc_doc *left = core->at[a], *right = core->at[b];
    /* `%` behind a text is formatting, which takes a list or a map without complaint */
    if (left->kind == RC_DOC_STRING &&
        (right->kind == RC_DOC_LIST || right->kind == RC_DOC_MAP))
        return true;
    return rc_core_is_numeric(core, a) && rc_core_is_numeric(core, b) &&
           rc_core_has_rest(core, rc_core_number(core, a), rc_core_number(core, b), blame);
}

void rc_core_divide(rc_core *core, rc_core_field a, rc_core_field b, rc_rule blame)
{
    if (rc_core_is_numeric(core, a) && rc_core_is_numeric(core, b) &&
        rc_core_is_number(core, b, 0))
        rc_core_crash(core, blame, NULL);
}

bool rc_core_has_rest(rc_core *core, double a, double b, rc_rule blame)
{
    if (is_equal(b, 0.0)) {
        rc_core_crash(core, blame, NULL);
        return false;
    }
    return !is_equal(fmod(a, b), 0.0);
}

bool rc_core_is_selective(const rc_core *core)
{
    return IS(recompute_granularity, "selective");
}

bool rc_core_recomputes(rc_core *core, const char *label)
{
    if (!SINCE("0.12")) /* selective meant one thing */
        return rc_core_is_selective(core) && strcmp(label, "core_attn") == 0;
    return rc_core_is_selective(core) && HAS(recompute_modules, label);
}

bool rc_core_is_full(const rc_core *core)
{
    return IS(recompute_granularity, "full");
}

bool rc_core_is_delta_net(const rc_core *core)
{
    if (!SINCE("main"))
        return IS(experimental_attention_variant, "gated_delta_net");
    return IS(experimental_attention_variant, "gdn") ||
           IS(experimental_attention_variant, "gdn2");
}

bool rc_core_has_graphs(const rc_core *core)
{
    return !IS(cuda_graph_impl, "none") || ON(enable_cuda_graph) || ON(external_cuda_graph);
}

bool rc_core_has_expandable_segments(rc_core *core)
{
    const char *const mark = "expandable_segments:True";
    return (!IS_NULL(pytorch_cuda_alloc_conf) && HAS(pytorch_cuda_alloc_conf, mark)) ||
           (!IS_NULL(pytorch_alloc_conf) && HAS(pytorch_alloc_conf, mark));
}

bool rc_core_is_hybrid(const rc_core *core)
{
    return !IS_NULL(hybrid_override_pattern) || !IS_NULL(hybrid_layer_pattern);
}

bool rc_core_has_own_split(const rc_core *core)
{
    return !IS_NULL(num_layers_in_first_pipeline_stage) ||
           !IS_NULL(num_layers_in_last_pipeline_stage) ||
           !IS_NULL(pipeline_model_parallel_layout) || rc_core_is_hybrid(core);
}

bool rc_core_has_own_norms(const rc_core *core)
{
    bool is_latent = ON(multi_latent_attention) && !core->cfg->mla_down_proj_fusion;
    return !IS(transformer_impl, "transformer_engine") || is_latent || ON(num_moe_experts) ||
           !IS_NULL(experimental_attention_variant);
}

bool rc_core_counts_ends(const rc_core *core)
{
    return ON(account_for_embedding_in_pipeline_split) ||
           ON(account_for_loss_in_pipeline_split);
}

/* --- answering */

static void add_hit(rc_core *core, rc_hit hit)
{
    if (core->code != RC_OK)
        return;
    if (core->n_hits == core->n_room) {
        size_t room = core->n_room ? 2 * core->n_room : 32;
        rc_hit *hits;
        core->code = RC_NEW(core->mem, &hits, room, core->err);
        if (core->code != RC_OK)
            return;
        if (core->n_hits)
            memcpy(hits, core->hits, core->n_hits * sizeof *hits);
        core->hits = hits;
        core->n_room = room;
    }
    core->hits[core->n_hits++] = hit;
    if (!core->has_stopped)
        core->n_until_stop = core->n_hits;
}

static bool is_in_release(const rc_core *core, rc_rule rule)
{
    return rc_release_is_in(core->release, rc_rule_at(rule)->range);
}

/* Two checks of one rule (first and last stage, say) are one violation. */
static bool has_hit(const rc_core *core, rc_rule rule, const char *item)
{
    for (size_t i = 0; i < core->n_hits; i++)
        if (core->hits[i].rule == rule &&
            (core->hits[i].item == item ||
             (item && core->hits[i].item && strcmp(core->hits[i].item, item) == 0)))
            return true;
    return false;
}

void rc_core_raise(rc_core *core, rc_rule rule, const char *item)
{
    if (!is_in_release(core, rule) || has_hit(core, rule, item) || core->is_told[rule])
        return;
    add_hit(core, (rc_hit){.rule = rule, .item = item});
    core->has_stopped = true;
}

void rc_core_crash(rc_core *core, rc_rule rule, const char *exception)
{
    if (has_hit(core, rule, NULL))
        return;
    add_hit(core, (rc_hit){.rule = rule, .exception = exception});
    core->has_stopped = true;
}

void rc_core_crash_at(rc_core *core, rc_rule rule, rc_core_field field)
{
    rc_core_raise(core, rule, rc_core_field_find(field)->name);
}

void rc_core_warn(rc_core *core, rc_rule rule)
{
    rc_core_warn_item(core, rule, NULL);
}

void rc_core_warn_item(rc_core *core, rc_rule rule, const char *item)
{
    if (is_in_release(core, rule) && !core->is_told[rule])
        add_hit(core, (rc_hit){.rule = rule, .item = item});
}

void rc_core_warn_here(rc_core *core, rc_rule rule, const char *item, const char *fmt, ...)
{
    size_t n_before = core->n_hits;
    char text[200];
    rc_core_warn_item(core, rule, item);
    if (core->n_hits == n_before)
        return;
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (n > 0 && (size_t)n < sizeof text)
        core->code =
            rc_arena_copy(core->mem, text, (size_t)n, &core->hits[n_before].here, core->err);
}

void rc_core_warn_key(rc_core *core, rc_rule rule, const rc_unknown_key *key)
{
    add_hit(core, (rc_hit){.rule = rule, .item = key->path, .key = key});
}

static rc_doc *new_value(rc_core *core, rc_doc_kind kind)
{
    rc_doc *value;
    rc_code code = rc_doc_new(core->mem, kind, RC_NOWHERE, &value, core->err);
    if (code == RC_OK)
        return value;
    core->code = code;
    return NULL;
}

/* The class knows the new value alone; the position stays that of the user's. */
static void give(rc_core *core, rc_core_field field, rc_doc *value)
{
    value->where = core->given[field]->where;
    core->at[field] = core->given[field] = value;
}

static void give_number(rc_core *core, rc_core_field field, rc_doc_kind kind, int64_t number)
{
    rc_doc *value = new_value(core, kind);
    if (!value)
        return;
    value->i = number;
    value->f = (double)number;
    give(core, field, value);
}

void rc_core_give_text(rc_core *core, rc_core_field field, const char *text)
{
    rc_doc *value = new_value(core, RC_DOC_STRING);
    if (!value)
        return;
    value->text = text;
    value->n_bytes = strlen(text);
    give(core, field, value);
}

void rc_core_give_bool(rc_core *core, rc_core_field field, bool value)
{
    give_number(core, field, RC_DOC_BOOL, value);
}

void rc_core_give_int(rc_core *core, rc_core_field field, int64_t value)
{
    give_number(core, field, RC_DOC_INT, value);
}

void rc_core_give_null(rc_core *core, rc_core_field field)
{
    give_number(core, field, RC_DOC_NULL, 0);
}

void rc_core_set(rc_core *core, rc_core_field field, const rc_doc *value, rc_rule change)
{
    if (!is_in_release(core, change))
        return;
    core->at[field] = value;
    rc_core_warn(core, change);
}

static void set_number(rc_core *core, rc_core_field field, rc_doc_kind kind, int64_t number,
                       rc_rule change)
{
    const rc_doc *given = core->given[field];
    if (!is_in_release(core, change))
        return;
    give_number(core, field, kind, number);
    core->given[field] = given;
    rc_core_warn(core, change);
}

void rc_core_set_text(rc_core *core, rc_core_field field, const char *text, rc_rule change)
{
    const rc_doc *given = core->given[field];
    if (!is_in_release(core, change))
        return;
    rc_core_give_text(core, field, text);
    core->given[field] = given;
    rc_core_warn(core, change);
}

void rc_core_set_bool(rc_core *core, rc_core_field field, bool value, rc_rule change)
{
    set_number(core, field, RC_DOC_BOOL, value, change);
}

void rc_core_set_int(rc_core *core, rc_core_field field, int64_t value, rc_rule change)
{
    set_number(core, field, RC_DOC_INT, value, change);
}

void rc_core_set_real(rc_core *core, rc_core_field field, double value, rc_rule change)
{
    rc_doc *real = new_value(core, RC_DOC_FLOAT);
    if (!real)
        return;
    real->f = value;
    real->where = core->given[field]->where;
    rc_core_set(core, field, real, change);
}

void rc_core_set_null(rc_core *core, rc_core_field field, rc_rule change)
{
    set_number(core, field, RC_DOC_NULL, 0, change);
}

rc_doc *rc_core_new_list(rc_core *core)
{
    return new_value(core, RC_DOC_LIST);
}

void rc_core_list_add(rc_core *core, rc_doc *list, const char *text)
{
    rc_doc *item = list ? new_value(core, RC_DOC_STRING) : NULL;
    if (!item)
        return;
    item->text = text;
    item->n_bytes = strlen(text);
    rc_doc_add(list, NULL, RC_NOWHERE, item);
}

void rc_core_list_add_all(rc_core *core, rc_doc *list, const rc_doc *from)
{
    for (const rc_doc *item = from->child; item; item = item->next) {
        rc_doc *copy = list ? new_value(core, item->kind) : NULL;
        if (!copy)
            return;
        *copy = *item;
        copy->key = NULL;
        copy->next = NULL;
        rc_doc_add(list, NULL, RC_NOWHERE, copy);
    }
}

/* --- running */

/* ORDER core_families: Megatron's, first the parallel sizes of the base class, then the config
 * class from top to bottom, then what the MLA class adds. */
static void (*const families[])(rc_core *core) = {
    rc_core_parallel,
    rc_core_precision,
    rc_core_linear_attention,
    rc_core_experts,
    rc_core_cpu_offload,
    rc_core_recompute,
    rc_core_mhc,
    rc_core_fine_offload,
    rc_core_pipeline,
    rc_core_late_model,
    rc_core_graph_names,
    rc_core_graphs,
    rc_core_graph_recompute,
    rc_core_graph_offload,
    rc_core_overlap,
    rc_core_mla,
};

rc_code rc_core_run(rc_core *core, rc_error *err)
{
    core->err = err;
    for (size_t i = 0; i < sizeof families / sizeof *families && core->code == RC_OK; i++)
        families[i](core);
    return core->code;
}

/* Written as in JSON: a list is empty. */
static rc_code make_default(rc_arena *mem, const char *text, const rc_doc **out, rc_error *err)
{
    rc_doc *value;
    bool is_list = strcmp(text, "[]") == 0;
    RC_TRY(rc_doc_new(mem, is_list ? RC_DOC_LIST : RC_DOC_STRING, RC_NOWHERE, &value, err));
    if (!is_list) {
        value->text = text;
        value->n_bytes = strlen(text);
        rc_doc_resolve_scalar(value);
    }
    *out = value;
    return RC_OK;
}

rc_code rc_core_open(rc_arena *mem, bool is_mla, rc_core **out, rc_error *err)
{
    RC_TRY(RC_NEW(mem, out, 1, err));
    rc_core *core = *out;
    core->mem = mem;
    core->is_mla = is_mla;
    core->release = RC_RELEASE_MAIN;
    for (int i = 0; i < RC_CORE_COUNT; i++) {
        bool is_switched = is_mla && i == RC_CORE_multi_latent_attention;
        RC_TRY(make_default(mem, is_switched ? "true" : fields[i].dflt, &core->at[i], err));
        core->given[i] = core->written[i] = core->at[i];
    }
    return RC_OK;
}
