/* setting.c — a recompute setting: from a config, from and to its short name, to overrides.
 *
 * The rules here are those the engine cannot run without; Megatron's full verdict is check/'s.
 */
#include <recompute/policy.h>

#include "base/num.h"

#include <inttypes.h>
#include <string.h>

static rc_code make_labels(const rc_config *cfg, uint32_t *labels, rc_error *err)
{
    rc_where where = cfg->origin[RC_FIELD_recompute_modules].where;
    *labels = 0;
    if (!cfg->recompute_modules.at) /* Megatron's default list */
        *labels = 1u << RC_LABEL_core_attn;
    for (size_t i = 0; i < cfg->recompute_modules.n; i++) {
        const char *name = cfg->recompute_modules.at[i];
        rc_label label;
        if (!rc_label_find(name, &label)) {
            const char *nearest = rc_label_nearest(name);
            return RC_FAIL(err, RC_E_INPUT, where, "recompute_modules has no label %s%s%s",
                           name,
                           nearest ? ", did you mean " : "; `recompute list labels` shows them",
                           nearest ? nearest : "");
        }
        *labels |= 1u << label;
    }
    return RC_OK;
}

static rc_code make_full(const rc_config *cfg, rc_setting *out, rc_error *err)
{
    rc_where method_at = cfg->origin[RC_FIELD_recompute_method].where;
    rc_where layers_at = cfg->origin[RC_FIELD_recompute_num_layers].where;
    const char *method = cfg->recompute_method;
    if (!method || (strcmp(method, "uniform") != 0 && strcmp(method, "block") != 0))
        return RC_FAIL(err, RC_E_INPUT, method_at,
                       "recompute_method is %s; granularity full needs uniform or block",
                       method ? method : "null");
    if (cfg->recompute_num_layers == RC_NULL_INT)
        return RC_FAIL(err, RC_E_INPUT, layers_at,
                       "recompute_num_layers is null; granularity full needs at least 1");
    if (cfg->recompute_num_layers < 1)
        return RC_FAIL(
            err, RC_E_INPUT, layers_at,
            "recompute_num_layers is %" PRId64
            "; it must be at least 1 (in Megatron, 0 with uniform never ends and with "
            "block recomputes nothing)",
            cfg->recompute_num_layers);
    out->method = strcmp(method, "block") == 0 ? RC_METHOD_BLOCK : RC_METHOD_UNIFORM;
    out->num_layers = cfg->recompute_num_layers;
    return RC_OK;
}

rc_code rc_setting_make(const rc_config *cfg, rc_setting *out, rc_error *err)
{
    /* Megatron-LM's --recompute-activations is granularity selective (arguments.py) */
    const char *granularity =
        cfg->recompute_activations ? "selective" : cfg->recompute_granularity;
    *out = (rc_setting){.granularity = RC_GRANULARITY_NONE};
    if (!granularity)
        return RC_OK;
    if (strcmp(granularity, "full") == 0) {
        out->granularity = RC_GRANULARITY_FULL;
        return make_full(cfg, out, err);
    }
    if (strcmp(granularity, "selective") != 0)
        return RC_FAIL(err, RC_E_INPUT, cfg->origin[RC_FIELD_recompute_granularity].where,
                       "recompute_granularity is %s; it must be null, selective or full",
                       granularity);
    out->granularity = RC_GRANULARITY_SELECTIVE;
    if (cfg->recompute_num_layers != RC_NULL_INT)
        return RC_FAIL(err, RC_E_INPUT, cfg->origin[RC_FIELD_recompute_num_layers].where,
                       "recompute_num_layers must be null under granularity selective");
    return make_labels(cfg, &out->labels, err);
}

/* "core_attn+mlp" with any separator; "" for none. */
static void join_labels(uint32_t labels, char separator, char *buf, size_t room)
{
    size_t used = 0;
    buf[0] = '\0';
    for (int i = 0; i < RC_LABEL_COUNT; i++) {
        if (!(labels >> i & 1u) || used + 20 > room)
            continue;
        int n = used ? snprintf(buf + used, room - used, "%c%s", separator,
                                rc_label_find_facts((rc_label)i)->name)
                     : snprintf(buf, room, "%s", rc_label_find_facts((rc_label)i)->name);
        used += (size_t)n;
    }
}

const char *rc_setting_name(const rc_setting *setting, char buf[160])
{
    char labels[140];
    if (setting->granularity == RC_GRANULARITY_NONE) {
        snprintf(buf, 160, "none");
    } else if (setting->granularity == RC_GRANULARITY_FULL) {
        snprintf(buf, 160, "full/%s/%" PRId64,
                 setting->method == RC_METHOD_BLOCK ? "block" : "uniform", setting->num_layers);
    } else {
        join_labels(setting->labels, '+', labels, sizeof labels);
        snprintf(buf, 160, "selective/%s", setting->labels ? labels : "[]");
    }
    return buf;
}

static bool parse_labels(const char *list, uint32_t *labels)
{
    *labels = 0;
    while (*list) {
        size_t n = strcspn(list, "+,");
        char name[40];
        rc_label label;
        if (n == 0 || n >= sizeof name)
            return false;
        memcpy(name, list, n);
        name[n] = '\0';
        if (!rc_label_find(name, &label))
            return false;
        *labels |= 1u << label;
        list += n + (list[n] != '\0');
    }
    return true;
}

static bool parse_selective(const char *list, rc_setting *out)
{
    char inner[160];
    size_t n = strlen(list);
    out->granularity = RC_GRANULARITY_SELECTIVE;
    if (n >= sizeof inner)
        return false;
    if (list[0] == '[' && list[n - 1] == ']') {
        memcpy(inner, list + 1, n - 2);
        inner[n - 2] = '\0';
        list = inner;
    }
    return parse_labels(list, &out->labels);
}

/* "full/uniform/4" or "full/block/4" */
static bool parse_full(const char *name, rc_setting *out)
{
    static const char uniform[] = "full/uniform/", block[] = "full/block/";
    out->granularity = RC_GRANULARITY_FULL;
    if (strncmp(name, uniform, sizeof uniform - 1) == 0) {
        out->method = RC_METHOD_UNIFORM;
        name += sizeof uniform - 1;
    } else if (strncmp(name, block, sizeof block - 1) == 0) {
        out->method = RC_METHOD_BLOCK;
        name += sizeof block - 1;
    } else {
        return false;
    }
    return rc_parse_int(name, &out->num_layers) && out->num_layers >= 1;
}

bool rc_setting_parse(const char *name, rc_setting *out)
{
    *out = (rc_setting){.granularity = RC_GRANULARITY_NONE};
    if (strcmp(name, "none") == 0)
        return true;
    if (strncmp(name, "selective/", 10) == 0)
        return parse_selective(name + 10, out);
    if (name[0] == '[')
        return parse_selective(name, out);
    return parse_full(name, out);
}

const char *rc_setting_overrides(const rc_setting *setting, char buf[400])
{
    char labels[200];
    if (setting->granularity == RC_GRANULARITY_NONE) {
        snprintf(buf, 400, "model.recompute_granularity=null");
    } else if (setting->granularity == RC_GRANULARITY_SELECTIVE) {
        join_labels(setting->labels, ',', labels, sizeof labels);
        snprintf(buf, 400,
                 "model.recompute_granularity=selective 'model.recompute_modules=[%s]' "
                 "model.recompute_method=null model.recompute_num_layers=null",
                 labels);
    } else {
        snprintf(buf, 400,
                 "model.recompute_granularity=full model.recompute_method=%s "
                 "model.recompute_num_layers=%" PRId64,
                 setting->method == RC_METHOD_BLOCK ? "block" : "uniform", setting->num_layers);
    }
    return buf;
}

const char *rc_setting_flags(const rc_setting *setting, char buf[400])
{
    char labels[200];
    buf[0] = '\0';
    if (setting->granularity == RC_GRANULARITY_SELECTIVE) {
        join_labels(setting->labels, ' ', labels, sizeof labels);
        snprintf(buf, 400, "--recompute-granularity selective --recompute-modules %s", labels);
    } else if (setting->granularity == RC_GRANULARITY_FULL) {
        snprintf(buf, 400,
                 "--recompute-granularity full --recompute-method %s --recompute-num-layers "
                 "%" PRId64,
                 setting->method == RC_METHOD_BLOCK ? "block" : "uniform", setting->num_layers);
    }
    return buf;
}
