/* test_check.c — positions, fixes, releases and versions of the rule engine; the rules themselves
 * are tested by tests/rules/. */
#include "check.h"

#include "check/checked.h"
#include "check/te.h"

#include <recompute/release.h>

#include <recompute/check.h>
#include <recompute/read.h>

#include <string.h>

static int open_arena(void **state)
{
    *state = rc_arena_open();
    return *state == NULL;
}

static int close_arena(void **state)
{
    rc_arena_close(*state);
    return 0;
}

static rc_config *config_of(const char *yaml, rc_arena *mem)
{
    rc_doc *doc;
    rc_config *cfg;
    assert_ok(rc_yaml_read("test.yaml", yaml, strlen(yaml), mem, &doc, NULL));
    rc_input input = {doc, RC_FROM_FILE};
    assert_ok(rc_config_make(&input, 1, mem, &cfg, NULL));
    return cfg;
}

static rc_check *check_of(const char *yaml, rc_check_options options, rc_arena *mem)
{
    rc_check *check;
    options.has_advice = true;
    assert_ok(rc_check_make(config_of(yaml, mem), &options, mem, &check, NULL));
    return check;
}

/* The finding of that rule, which must be there. */
static rc_finding find(const rc_check *check, const char *rule)
{
    for (size_t i = 0; i < check->findings.n; i++)
        if (strcmp(check->findings.at[i].rule, rule) == 0)
            return check->findings.at[i];
    fail_msg("no finding of %s", rule);
    return (rc_finding){0};
}

static void versions_sort_by_pep_440(void **state)
{
    static const char *const sorted[] = {
        "0.0.0",       "1.7.0.dev0", "1.7.0",    "2.6.0.dev0", "2.6.0.dev1",
        "2.6.0a1",     "2.6.0b2",    "2.6.0rc1", "2.6.0",      "2.6.0+cu12",
        "2.6.0.post1", "2.6.1",      "2.10.0",   "1!0.1"};
    (void)state;
    for (size_t i = 0; i < sizeof sorted / sizeof *sorted; i++)
        for (size_t k = 0; k < sizeof sorted / sizeof *sorted; k++) {
            rc_te te;
            assert_true(rc_te_find(sorted[i], &te));
            assert_int_equal(rc_te_is_below(&te, sorted[k]), i < k);
        }
}

static void versions_know_pep_440_spellings(void **state)
{
    static const struct {
        const char *text, *same;
    } cases[] = {{"v2.6", "2.6.0"},         {"2.6.0-rc.1", "2.6rc1"}, {"2.6.0c1", "2.6rc1"},
                 {"2.6.0.alpha", "2.6a0"},  {"2.6-1", "2.6.post1"},   {"2.6.rev3", "2.6.post3"},
                 {"2.6.0.DEV2", "2.6.dev2"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rc_te te, same;
        assert_true(rc_te_find(cases[i].text, &te));
        assert_true(rc_te_find(cases[i].same, &same));
        assert_memory_equal(&te, &same, sizeof te);
    }
    static const char *const wrong[] = {"",           "x",    "2.6.",  "2.6.0-",
                                        "2.6 beta x", "2.6+", "latest"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        rc_te te;
        assert_false(rc_te_find(wrong[i], &te));
    }
}

static void releases_are_found_by_their_names(void **state)
{
    static const struct {
        const char *name;
        rc_release release;
    } cases[] = {{"0.9", RC_RELEASE_0_9},           {"0.16.1", RC_RELEASE_0_16},
                 {"core_v0.12.0", RC_RELEASE_0_12}, {"core_r0.19.0", RC_RELEASE_0_19},
                 {"v0.18", RC_RELEASE_0_18},        {"0.19.0rc1", RC_RELEASE_0_19},
                 {"main", RC_RELEASE_main},         {"latest", RC_RELEASE_main}};
    rc_release release;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_true(rc_release_find(cases[i].name, &release));
        assert_int_equal(release, cases[i].release);
    }
    assert_false(rc_release_find("0.8", &release));
    assert_false(rc_release_find("0.1", &release));
    assert_false(rc_release_find("", &release));
}

static void releases_of_a_rule_read_as_a_range(void **state)
{
    static const struct {
        const char *rule, *releases;
    } cases[] = {
        {"full-recompute-needs-method", "all"},
        {"recompute-module-unknown", "0.12-"},
        {"mhc-excludes-mtp", "main-"},
        {"grouped-gemm-excludes-fp8", "-0.9"},
        {"capacity-needs-alltoall", "-0.11"},
        {"graph-recompute-0-15", "0.15-0.15"},
        {"rope-fusion-excludes-mla", "0.11-0.12"},
    };
    char buf[RC_RULE_RELEASES_ROOM];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(rc_rule_releases(rc_rule_find(cases[i].rule), buf),
                            cases[i].releases);
}

static void columns_of_a_rule_are_told_as_text(void **state)
{
    const rc_rule_facts *rule = rc_rule_find("sequence-parallel-needs-tensor-parallel");
    char source[256];
    (void)state;
    rc_field settings[RC_RULE_SETTINGS_ROOM];
    assert_int_equal(rc_rule_settings(rule, settings), 2);
    assert_int_equal(settings[0], RC_FIELD_sequence_parallel);
    assert_int_equal(settings[1], RC_FIELD_tensor_model_parallel_size);
    assert_string_equal(rule->fields, "sequence_parallel tensor_model_parallel_size");
    assert_string_equal(rule->fix,
                        "sequence_parallel=false | or raise tensor_model_parallel_size");
    assert_string_equal(rc_rule_source(rule, source, sizeof source),
                        "ValueError, megatron/core/model_parallel_config.py 504");
    assert_string_equal(rc_rule_find("recompute-module-unknown")->fix,
                        "recompute_modules-=$ | `recompute list labels` prints the labels");
    assert_string_equal(rc_rule_find("pp-layout-decoder-count")->fix,
                        " | count the t in the layout");
    assert_string_equal(rc_rule_find("set-recompute-modules-default")->fix, "");
    assert_string_equal(rc_rule_find("python-type-error")->fields, "");
}

/* A class refuses a keyword that it does not have, or has not yet. */
static void a_call_is_refused_what_its_class_lacks(void **state)
{
    static const struct {
        const char *fields, *megatron;
        bool is_mla, is_refused;
    } cases[] = {
        {"{rope_type: rope}", "main", false, true},
        {"{rope_type: rope}", "main", true, false},
        {"{rope_type: rope}", "0.10", true, true},
        {"{cache_mla_latents: false}", "main", false, true},
        {"{fp4: null}", "0.14", false, true},
        {"{fp4: null}", "0.15", false, false},
        {"{mhc_sinkhorn_iterations: 3}", "0.19", false, true},
        {"{mhc_sinkhorn_iterations: 3}", "main", false, false},
        /* a setting of the job, which the class is not handed */
        {"{micro_batch_size: 2}", "0.9", false, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rc_check_options options = {.megatron = cases[i].megatron};
        rc_doc *doc;
        rc_check *check;
        bool is_refused = false;
        assert_ok(rc_yaml_read("test.yaml", cases[i].fields, strlen(cases[i].fields), *state,
                               &doc, NULL));
        assert_ok(rc_check_make_core(doc, cases[i].is_mla, &options, *state, &check, NULL));
        for (size_t k = 0; k < check->findings.n; k++)
            is_refused =
                is_refused || strcmp(check->findings.at[k].rule, "field-not-in-release") == 0;
        assert_int_equal(is_refused, cases[i].is_refused);
    }
}

/* Bridge and the model's build warn too; `warnings` are those of the config class. */
static void warnings_are_those_of_the_config_class(void **state)
{
    static const char yaml[] = "model:\n"
                               "  num_layers: 4\n"
                               "  recompute_granularity: full\n"
                               "  recompute_method: block\n"
                               "  recompute_num_layers: 2\n"
                               "  mtp_num_layers: 1\n"
                               "  multi_latent_attention: true\n"
                               "  apply_rope_fusion: true\n";
    rc_check *check = check_of(yaml, (rc_check_options){.target = RC_CHECK_BRIDGE}, *state);
    assert_int_equal(find(check, "run-mtp-block-skipped").level, RC_LEVEL_WARNING);
    bool is_own = false;
    for (size_t i = 0; i < check->n_warnings; i++) {
        assert_int_equal(rc_rule_find(check->warnings[i])->layer, RC_LAYER_CORE);
        is_own =
            is_own || strcmp(check->warnings[i], "warn-mla-rope-fusion-training-only") == 0;
    }
    assert_true(is_own);
}

/* A model without experts needs no grouped GEMM of them. */
static void a_dense_model_has_fixes_of_its_own(void **state)
{
    static const struct {
        const char *yaml, *rule, *fix;
    } cases[] = {
        {"core: {num_layers: 4, recompute_granularity: selective, "
         "recompute_modules: [mlp, moe_act]}",
         "moe-act-recompute-needs-grouped-gemm",
         "recompute_modules=[mlp], or experts with moe_grouped_gemm=true"},
        {"core: {num_layers: 4, recompute_granularity: selective, num_moe_experts: 8, "
         "recompute_modules: [mlp, moe_act]}",
         "moe-act-recompute-needs-grouped-gemm", "moe_grouped_gemm=true, or drop the label"},
        {"core: {num_layers: 4, cuda_graph_impl: transformer_engine, "
         "cuda_graph_modules: [attn, moe_preprocess]}",
         "graph-moe-preprocess-needs-moe-router",
         "cuda_graph_modules=[attn]; which goes with moe_router, in models with experts"},
        {"core: {num_layers: 4, cuda_graph_impl: transformer_engine, num_moe_experts: 8, "
         "cuda_graph_modules: [attn, moe_preprocess]}",
         "graph-moe-preprocess-needs-moe-router",
         "cuda_graph_modules=[attn,moe_preprocess,moe_router]"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rc_check *check =
            check_of(cases[i].yaml, (rc_check_options){.target = RC_CHECK_CORE}, *state);
        assert_string_equal(find(check, cases[i].rule).fix, cases[i].fix);
    }
}

/* Where both say the same, the row of checked_fields.def goes. */
static void class_defaults_stand_where_they_differ(void **state)
{
    int n_own = 0;
    (void)state;
    for (rc_checked_field i = 0; i < RC_CHECKED_COUNT; i++) {
        const char *dflt = rc_field_find(rc_checked_find(i)->field)->dflt;
        bool is_own = rc_checked_default(i) != dflt;
        n_own += is_own;
        assert_true(!is_own || strcmp(rc_checked_default(i), dflt) != 0);
    }
    assert_int_equal(n_own, 4);
    assert_string_equal(rc_checked_default(RC_CHECKED_num_layers), "0");
    assert_string_equal(rc_checked_default(RC_CHECKED_cuda_graph_warmup_steps), "3");
}

static void a_finding_stands_at_the_value_and_names_the_fix(void **state)
{
    static const char yaml[] = "model:\n"
                               "  num_layers: 8\n"
                               "  num_attention_heads: 8\n"
                               "  recompute_granularity: selective\n"
                               "  recompute_num_layers: 12\n";
    /*                                                  ^^ line 5, column 25 */
    rc_check *check = check_of(yaml, (rc_check_options){.target = RC_CHECK_BRIDGE}, *state);
    rc_finding finding = find(check, "selective-recompute-forbids-num-layers");
    assert_false(check->is_accepted);
    assert_string_equal(check->exception, "ValueError");
    assert_string_equal(check->findings.at[check->first].rule, finding.rule);
    assert_int_equal(finding.where.line, 5);
    assert_int_equal(finding.where.col, 25);
    assert_int_equal(finding.where.n_cols, 2);
    assert_string_equal(finding.fix, "model.recompute_num_layers=null");
}

static void a_check_prints_its_verdict_findings_and_settings(void **state)
{
    static const char accepted[] = "core:\n"
                                   "  num_layers: 8\n"
                                   "  num_attention_heads: 8\n"
                                   "  num_moe_experts: 4\n"
                                   "  moe_ffn_hidden_size: 64\n"
                                   "  add_bias_linear: false\n"
                                   "  moe_expert_capacity_factor: -1.0\n"
                                   "  moe_token_dispatcher_type: alltoall\n"
                                   "  moe_layer_recompute: true\n"
                                   "  cuda_graph_modules: []\n";
    static const char refused[] = "core: {num_layers: 8, num_attention_heads: 8,\n"
                                  "  recompute_granularity: fu, cuda_graph_modules: []}\n";
    check_text text;
    check_open(&text);
    rc_check_print(check_of(accepted, (rc_check_options){.target = RC_CHECK_CORE}, *state),
                   text.to);
    rc_check_print(check_of(refused, (rc_check_options){.target = RC_CHECK_CORE}, *state),
                   text.to);
    char *printed = check_close(&text);
    assert_non_null(strstr(printed, "accept\n"));
    assert_non_null(strstr(printed, "warns warn-moe-layer-recompute-deprecated\n"));
    assert_non_null(strstr(printed,
                           "\neffective {\"recompute_granularity\": \"selective\", "
                           "\"recompute_method\": null, \"recompute_num_layers\": null, "
                           "\"recompute_modules\": [\"core_attn\", \"moe\"]}\n"
                           "effective_other {\"moe_expert_capacity_factor\": null}\nreject "
                           "recompute-granularity-unknown ValueError\nerror "
                           "recompute-granularity-unknown test.yaml:2:26 "));
    free(printed);
}

static void a_crash_has_its_own_exception(void **state)
{
    static const char none[] =
        "core: {num_layers: 0, num_attention_heads: 8, hidden_size: 64}\n";
    static const char odd[] = "core: {num_layers: 4, num_attention_heads: 8, hidden_size: 64,\n"
                              "  cuda_graph_modules: [1]}\n";
    rc_check *check = check_of(none, (rc_check_options){.target = RC_CHECK_CORE}, *state);
    assert_string_equal(check->exception, "ZeroDivisionError");
    assert_string_equal(check->findings.at[check->first].rule, "layer-count-positive");
    check = check_of(odd, (rc_check_options){.target = RC_CHECK_CORE}, *state);
    assert_string_equal(check->findings.at[check->first].rule, "graph-module-unknown");
}

static void a_check_is_a_table_with_a_row_per_finding(void **state)
{
    static const char yaml[] = "model:\n"
                               "  num_layers: 8\n"
                               "  num_attention_heads: 8\n"
                               "  recompute_granularity: selective\n"
                               "  recompute_num_layers: 12\n"
                               "  recompute_modules: [mlp]\n";
    rc_table *table;
    rc_check *check = check_of(yaml, (rc_check_options){.target = RC_CHECK_BRIDGE}, *state);
    assert_ok(rc_check_table(check, *state, &table, NULL));
    assert_int_equal(table->n_rows, check->findings.n);
    assert_true(table->n_rows >= 1);
    assert_int_equal(table->cells[1].i, 5);
    assert_int_equal(table->cells[2].i, 25);
    assert_string_equal(table->cells[3].text, "error");
    assert_string_equal(table->cells[4].text, "selective-recompute-forbids-num-layers");
    assert_string_equal(table->cells[5].text, "core");
    assert_string_equal(table->cells[7].text, "model.recompute_num_layers=null");
}

static void a_finding_about_a_list_stands_at_the_item(void **state)
{
    static const char yaml[] = "model:\n"
                               "  num_layers: 8\n"
                               "  recompute_granularity: selective\n"
                               "  recompute_modules: [core_attn, atention]\n";
    /*                                                   ^^^^^^^^ line 4, column 34 */
    rc_check *check = check_of(yaml, (rc_check_options){.target = RC_CHECK_BRIDGE}, *state);
    rc_finding finding = find(check, "recompute-module-unknown");
    assert_int_equal(finding.where.line, 4);
    assert_int_equal(finding.where.col, 34);
    assert_non_null(strstr(finding.fix, "model.recompute_modules=[core_attn]"));
}

static void all_violations_are_reported_in_firing_order(void **state)
{
    static const char yaml[] = "core:\n"
                               "  num_layers: 8\n"
                               "  num_attention_heads: 8\n"
                               "  sequence_parallel: true\n"
                               "  fp16: true\n"
                               "  bf16: true\n"
                               "  recompute_granularity: full\n";
    static const char *const rules[] = {"sequence-parallel-needs-tensor-parallel",
                                        "fp16-bf16-exclusive", "full-recompute-needs-method",
                                        "full-recompute-needs-num-layers"};
    rc_check *check = check_of(yaml, (rc_check_options){.target = RC_CHECK_CORE}, *state);
    assert_int_equal(rc_findings_count(&check->findings, RC_LEVEL_ERROR), 4);
    for (size_t i = 0; i < 4; i++)
        assert_string_equal(check->findings.at[i].rule, rules[i]);
}

static void a_fragment_leaves_open_what_a_recipe_may_set(void **state)
{
    static const char fragment[] = "model:\n"
                                   "  recompute_granularity: selective\n"
                                   "  recompute_modules: [mla_up_proj]\n";
    static const char whole[] = "model:\n"
                                "  num_layers: 8\n"
                                "  recompute_granularity: selective\n"
                                "  recompute_modules: [mla_up_proj]\n";
    rc_check_options options = {.target = RC_CHECK_BRIDGE};
    const char *rule = "mla-up-proj-recompute-needs-mla";
    assert_int_equal(find(check_of(fragment, options, *state), rule).level, RC_LEVEL_WARNING);
    assert_int_equal(find(check_of(whole, options, *state), rule).level, RC_LEVEL_ERROR);
}

static void releases_change_the_verdict(void **state)
{
    static const char yaml[] = "core:\n"
                               "  num_layers: 8\n"
                               "  num_attention_heads: 8\n"
                               "  recompute_granularity: selective\n"
                               "  recompute_modules: [shared_experts]\n";
    rc_check_options old = {.target = RC_CHECK_CORE, .megatron = "0.13"};
    rc_check_options later = {.target = RC_CHECK_CORE, .megatron = "0.14"};
    assert_int_equal(find(check_of(yaml, old, *state), "recompute-module-unknown").level,
                     RC_LEVEL_ERROR);
    assert_true(check_of(yaml, later, *state)->is_accepted);
}

static void unknown_releases_and_versions_are_refused(void **state)
{
    rc_config *cfg = config_of("core:\n  num_layers: 8\n", *state);
    rc_check_options release = {.megatron = "0.7"}, version = {.transformer_engine = "new"};
    rc_check *check;
    rc_error err = {0};
    assert_int_equal(rc_check_make(cfg, &release, *state, &check, &err), RC_E_INPUT);
    assert_non_null(strstr(err.msg, "0.9 to 0.19 and main"));
    err = (rc_error){0};
    assert_int_equal(rc_check_make(cfg, &version, *state, &check, &err), RC_E_INPUT);
    assert_non_null(strstr(err.msg, "2.9.0"));
}

static void refusing_names_the_first_error_its_place_and_fix(void **state)
{
    rc_error err = {0};
    rc_config *cfg = config_of("model:\n"
                               "  num_layers: 8\n"
                               "  num_attention_heads: 8\n"
                               "  recompute_granularity: full\n",
                               *state);
    assert_int_equal(rc_check_refuse_errors(cfg, *state, &err), RC_E_INPUT);
    assert_int_equal(err.where.line, 4);
    assert_non_null(strstr(err.msg, "full-recompute-needs-method"));
    assert_non_null(strstr(err.msg, "model.recompute_method=uniform"));
    assert_ok(rc_check_refuse_errors(
        config_of("model:\n  num_layers: 8\n  num_attention_heads: 8\n", *state), *state,
        NULL));
}

static void values_keep_their_kind(void **state)
{
    static const struct {
        const char *value;
        bool is_accepted;
    } cases[] = {{"1", true},     {"2", true},    {"0", false},
                 {"true", false}, {"2.0", false}, {"null", true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *yaml;
        assert_ok(rc_arena_printf(*state, &yaml, NULL,
                                  "core:\n  num_layers: 8\n  num_attention_heads: 8\n"
                                  "  enable_mhc_connections: true\n"
                                  "  recompute_granularity: selective\n"
                                  "  recompute_modules: [mhc]\n"
                                  "  mhc_recompute_layer_num: %s\n",
                                  cases[i].value));
        rc_check *check = check_of(yaml, (rc_check_options){.target = RC_CHECK_CORE}, *state);
        assert_int_equal(check->is_accepted, cases[i].is_accepted);
    }
}

static void rules_are_found_by_either_name(void **state)
{
    char buf[RC_RULE_ID_ROOM];
    (void)state;
    const rc_rule_facts *rule = rc_rule_find("full-recompute-needs-method");
    assert_non_null(rule);
    assert_ptr_equal(rc_rule_find("full_recompute_needs_method"), rule);
    assert_ptr_equal(rc_rule_find("full-needs-method"), rule);
    assert_string_equal(rc_rule_other_name(rule), "full-needs-method");
    assert_null(rc_rule_find("no-such-rule"));
    assert_string_equal(rc_rule_nearest("full-recompute-needs-methods", buf),
                        "full-recompute-needs-method");
}

static void every_rule_tells_its_layer_reason_and_fields(void **state)
{
    (void)state;
    for (size_t i = 0; i < rc_rule_count(); i++) {
        const rc_rule_facts *rule = rc_rule_find_nth(i);
        char id[RC_RULE_ID_ROOM], source[256];
        assert_true(strlen(rule->reason) > 15);
        assert_true(strlen(rule->name) + 1 < RC_RULE_ID_ROOM);
        assert_ptr_equal(rc_rule_find(rc_rule_id(rule, id)), rule);
        assert_non_null(rc_rule_source(rule, source, sizeof source));
        if (rule->layer != RC_LAYER_ADVICE)
            assert_true(rule->effect != RC_EFFECT_ACCEPTS);
    }
    assert_null(rc_rule_find_nth(rc_rule_count()));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(versions_sort_by_pep_440),
        cmocka_unit_test(versions_know_pep_440_spellings),
        cmocka_unit_test(releases_are_found_by_their_names),
        cmocka_unit_test(releases_of_a_rule_read_as_a_range),
        cmocka_unit_test(columns_of_a_rule_are_told_as_text),
        cmocka_unit_test(class_defaults_stand_where_they_differ),
        cmocka_unit_test(a_call_is_refused_what_its_class_lacks),
        cmocka_unit_test(warnings_are_those_of_the_config_class),
        cmocka_unit_test(a_dense_model_has_fixes_of_its_own),
        cmocka_unit_test(a_finding_stands_at_the_value_and_names_the_fix),
        cmocka_unit_test(a_check_prints_its_verdict_findings_and_settings),
        cmocka_unit_test(a_crash_has_its_own_exception),
        cmocka_unit_test(a_check_is_a_table_with_a_row_per_finding),
        cmocka_unit_test(a_finding_about_a_list_stands_at_the_item),
        cmocka_unit_test(all_violations_are_reported_in_firing_order),
        cmocka_unit_test(a_fragment_leaves_open_what_a_recipe_may_set),
        cmocka_unit_test(releases_change_the_verdict),
        cmocka_unit_test(unknown_releases_and_versions_are_refused),
        cmocka_unit_test(refusing_names_the_first_error_its_place_and_fix),
        cmocka_unit_test(values_keep_their_kind),
        cmocka_unit_test(rules_are_found_by_either_name),
        cmocka_unit_test(every_rule_tells_its_layer_reason_and_fields),
    };
    return cmocka_run_group_tests(tests, open_arena, close_arena);
}
