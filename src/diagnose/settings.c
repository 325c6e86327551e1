/* settings.c — the job's settings under the framework's rules, and proposals tried on them.
 *
 * takes  the inputs the person brought, the rules of src/check/
 * gives  the first broken rule with its remedy; whether a proposal would be accepted; the
 *        recompute labels that act in this model
 */
#include "diagnose/diag.h"

#include "base/text.h"

#include <recompute/args.h>

#include <stdio.h>
#include <string.h>

static rc_check_options options_of(const diag *d)
{
    rc_check_options options = {.target = RC_CHECK_MEGATRON_LM, .has_advice = true};
    if (d->framework == RC_TRAINER_BRIDGE)
        options.target = RC_CHECK_BRIDGE;
    return options;
}

static bool has_rules(const diag *d)
{
    return d->job->cfg &&
           (d->framework == RC_TRAINER_BRIDGE || d->framework == RC_TRAINER_MEGATRON_LM);
}

const char *diag_granularity(const rc_config *cfg)
{
    if (cfg && cfg->recompute_granularity)
        return cfg->recompute_granularity;
    return cfg && cfg->recompute_activations ? "selective" : "";
}

static size_t n_errors(const rc_check *check)
{
    return rc_findings_count(&check->findings, RC_LEVEL_ERROR);
}

rc_code diag_accepts(const diag *d, const char *overrides, bool *is_accepted, rc_error *err)
{
    enum { MOST_WORDS = 8, MOST_INPUTS = 15 };
    const char *words[MOST_WORDS];
    rc_input inputs[MOST_INPUTS + 1];
    size_t n_words = 0;
    *is_accepted = true;
    if (!has_rules(d) || !d->check || d->job->n_inputs > MOST_INPUTS)
        return RC_OK;
    for (const char *at = overrides; *at && n_words < MOST_WORDS; at += strspn(at, " ")) {
        size_t n = strcspn(at, " ");
        RC_TRY(rc_arena_copy(d->mem, at, n, &words[n_words++], err));
        at += n;
    }
    rc_doc *doc;
    rc_config *cfg;
    rc_check *check;
    rc_check_options options = options_of(d);
    rc_error refusal = {.code = RC_OK};
    if (d->job->n_inputs)
        memcpy(inputs, d->job->inputs, d->job->n_inputs * sizeof *inputs);
    /* A line that is no setting of ours cannot be judged; it is not refused for that. */
    if (rc_override_read(words, n_words, d->mem, &doc, &refusal) != RC_OK)
        return RC_OK;
    inputs[d->job->n_inputs] = (rc_input){.doc = doc, .kind = RC_FROM_OVERRIDE};
    if (rc_config_make(inputs, d->job->n_inputs + 1, d->mem, &cfg, &refusal) != RC_OK)
        return RC_OK;
    RC_TRY(rc_check_make(cfg, &options, d->mem, &check, err));
    *is_accepted = n_errors(check) <= n_errors(d->check);
    return RC_OK;
}

/* --- the remedy of a rule, as the framework's user writes it */

/* "recompute_method=null" as a flag or as Bridge's key. */
static rc_code add_fix_word(const diag *d, const char *word, size_t n, rc_text *to,
                            rc_error *err)
{
    char name[96];
    size_t n_name = strcspn(word, "=-+ ");
    n_name = n_name < n && n_name < sizeof name ? n_name : 0;
    memcpy(name, word, n_name);
    name[n_name] = '\0';
    rc_field field = rc_field_find_name(name);
    const char *gap = to->n ? " " : "";
    if (field == RC_FIELD_COUNT)
        return rc_text_printf(to, err, "%s%.*s", gap, (int)n, word);
    const rc_field_facts *facts = rc_field_find(field);
    const char *value = word + n_name;
    size_t n_value = n - n_name;
    if (d->framework == RC_TRAINER_BRIDGE && facts->key[0])
        return rc_text_printf(to, err, "%s%s%.*s", gap, facts->key, (int)n_value, value);
    bool is_flag = facts->flag[0] == '-' && n_value > 1 && value[0] == '=';
    if (!is_flag)
        return rc_text_printf(to, err, "%s%.*s", gap, (int)n, word);
    bool is_off = strncmp(value, "=false", 6) == 0 || strncmp(value, "=null", 5) == 0;
    if (is_off)
        return rc_text_printf(to, err, "%s(without %s)", gap, facts->flag);
    if (facts->type == RC_FIELD_TYPE_BOOL)
        return rc_text_printf(to, err, "%s%s", gap, facts->flag);
    return rc_text_printf(to, err, "%s%s %.*s", gap, facts->flag, (int)n_value - 1, value + 1);
}

/* A rule's fix is "overrides | words"; either part may be missing. */
static rc_code split_fix(diag *d, const char *fix, rc_error *err)
{
    const char *bar = strstr(fix, " | ");
    const char *words = bar ? bar + 3 : NULL;
    size_t n = bar ? (size_t)(bar - fix) : strlen(fix);
    /* A finding that has only words carries no bar. */
    bool is_line = strcspn(fix, "=") < strcspn(fix, " ") || strncmp(fix, "--", 2) == 0;
    if (!bar && !is_line) {
        words = fix;
        n = 0;
    }
    rc_text line = {.mem = d->mem};
    for (const char *at = fix; at < fix + n; at += strspn(at, " ")) {
        size_t n_word = strcspn(at, " ");
        if (n_word > (size_t)(fix + n - at))
            n_word = (size_t)(fix + n - at);
        RC_TRY(add_fix_word(d, at, n_word, &line, err));
        at += n_word;
    }
    d->fix_line = line.at;
    if (words)
        return rc_arena_printf(d->mem, &d->fix_text, err, "Change the setting: %s.", words);
    d->fix_text = "Change the setting that the rule blames.";
    return RC_OK;
}

static rc_code find_remedy(diag *d, rc_error *err)
{
    const rc_log *log = d->job->log;
    const rc_finding *broken = d->broken ? d->broken : d->open;
    const char *fix = broken ? broken->fix : NULL;
    if (log->n_refusals > 0) {
        const rc_rule_facts *rule = rc_rule_find(log->refusals[0].rule);
        fix = rule && rule->fix[0] ? rule->fix : fix;
        for (size_t i = 0; d->check && i < d->check->findings.n; i++)
            if (d->check->rules[i] == rule && d->check->findings.at[i].fix)
                fix = d->check->findings.at[i].fix; /* in the words of this framework */
    }
    if (fix && fix[0])
        return split_fix(d, fix, err);
    d->fix_text = "Change the setting that the message names.";
    return RC_OK;
}

/* --- labels that act in this model */

static rc_code try_modules(diag *d, const char *modules, const char *spaced, rc_error *err)
{
    char overrides[200];
    bool is_accepted;
    if (d->modules)
        return RC_OK;
    snprintf(overrides, sizeof overrides,
             "model.recompute_granularity=selective model.recompute_modules=[%s] "
             "model.recompute_method=null model.recompute_num_layers=null",
             modules);
    RC_TRY(diag_accepts(d, overrides, &is_accepted, err));
    if (!is_accepted)
        return RC_OK;
    d->modules = modules;
    d->modules_words = spaced;
    return RC_OK;
}

static rc_code choose_modules(diag *d, rc_error *err)
{
    const rc_config *cfg = d->job->cfg;
    bool is_moe =
        cfg ? cfg->num_moe_experts != RC_NULL_INT : (d->frames & RC_FRAMES_EXPERTS) != 0;
    bool is_mla = cfg && cfg->multi_latent_attention;
    if (is_moe && is_mla)
        RC_TRY(try_modules(d, "moe_act,mla_up_proj", "moe_act mla_up_proj", err));
    if (is_mla)
        RC_TRY(try_modules(d, "mla_up_proj", "mla_up_proj", err));
    if (is_moe)
        RC_TRY(try_modules(d, "moe_act", "moe_act", err));
    if (is_moe)
        RC_TRY(try_modules(d, "moe", "moe", err));
    if (!is_moe)
        RC_TRY(try_modules(d, "mlp", "mlp", err));
    return RC_OK;
}

/* --- rules that the values of a recipe could still correct */

static bool is_given(const rc_config *cfg, rc_field field)
{
    return field != RC_FIELD_COUNT && cfg->origin[field].kind != RC_FROM_DEFAULT &&
           cfg->origin[field].kind != RC_FROM_DERIVED;
}

/* What was given contradicts itself: a recompute setting, or two settings that the rule blames.
 * One setting alone against a default is what recipes are for. */
static bool is_own_contradiction(const rc_config *cfg, const rc_rule_facts *rule)
{
    int n_given = 0;
    rc_field fields[RC_RULE_SETTINGS_ROOM];
    size_t n = rc_rule_settings(rule, fields);
    for (size_t i = 0; i < n; i++) {
        bool is_recompute = strstr(rc_field_find(fields[i])->name, "recompute") != NULL;
        if (is_given(cfg, fields[i]))
            n_given += is_recompute ? 2 : 1;
    }
    return n_given >= 2;
}

static void find_broken(diag *d)
{
    const rc_findings *findings = &d->check->findings;
    for (size_t i = 0; i < findings->n && !d->broken; i++) {
        const rc_rule_facts *rule = d->check->rules[i];
        if (findings->at[i].level == RC_LEVEL_ERROR)
            d->broken = &findings->at[i];
        else if (rule->level == RC_LEVEL_ERROR && !d->open &&
                 is_own_contradiction(d->job->cfg, rule))
            d->open = &findings->at[i];
    }
}

rc_code diag_check_settings(diag *d, rc_error *err)
{
    if (has_rules(d)) {
        rc_check_options options = options_of(d);
        rc_check *check;
        RC_TRY(rc_check_make(d->job->cfg, &options, d->mem, &check, err));
        d->check = check;
        find_broken(d);
    }
    const rc_finding *broken = d->broken ? d->broken : d->open;
    if (broken)
        RC_TRY(diag_safe(d->mem, broken->reason, 240, &d->rule_text, err));
    d->settings_path = d->job->settings_path;
    RC_TRY(find_remedy(d, err));
    return choose_modules(d, err);
}
