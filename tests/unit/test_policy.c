/* test_policy.c — settings, their names, and what a policy discards. */
#include "../laws/law.h"

static void setting_names_round_trip(void **state)
{
    (void)state;
    rc_arena *mem = rc_arena_open();
    law_settings settings = law_all_settings(law_graph(&law_models[0], "fused", mem), mem);
    for (size_t i = 0; i < settings.n; i++) {
        rc_setting setting;
        char name[160];
        assert_true(rc_setting_parse(settings.at[i], &setting));
        assert_string_equal(rc_setting_name(&setting, name), settings.at[i]);
    }
    rc_arena_close(mem);
    rc_setting setting;
    assert_true(rc_setting_parse("[mlp,core_attn]", &setting));
    assert_int_equal(setting.labels, 1u << RC_LABEL_mlp | 1u << RC_LABEL_core_attn);
    assert_true(rc_setting_parse("[]", &setting));
    assert_int_equal(setting.granularity, RC_GRANULARITY_SELECTIVE);
    assert_int_equal(setting.labels, 0);
    static const char *const wrong[] = {
        "",           "fuller",        "full/uniform/0", "full/block",
        "[mlp,nope]", "full/block/2x", "selective/mlp+", "["};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (rc_setting_parse(wrong[i], &setting) && strcmp(wrong[i], "selective/mlp+") != 0)
            fail_msg("%s was taken for a setting", wrong[i]);
}

static rc_code setting_of(const char *const *words, size_t n, rc_setting *out, rc_error *err)
{
    rc_arena *mem = rc_arena_open();
    rc_doc *doc;
    rc_config *cfg;
    law_check(rc_override_read(words, n, mem, &doc, err), err);
    rc_input input = {doc, RC_FROM_OVERRIDE};
    law_check(rc_config_make(&input, 1, mem, &cfg, err), err);
    rc_code code = rc_setting_make(cfg, out, err);
    rc_arena_close(mem);
    return code;
}

static void settings_are_read_as_megatron_reads_them(void **state)
{
    static const struct {
        const char *words[4];
        const char *name; /* or what the error says */
        rc_code code;
    } cases[] = {
        {{"model.num_layers=1"}, "none", RC_OK},
        {{"model.recompute_granularity=selective"}, "selective/core_attn", RC_OK},
        {{"model.recompute_granularity=selective", "model.recompute_modules=[]"},
         "selective/[]",
         RC_OK},
        {{"model.recompute_granularity=selective", "model.recompute_modules=[mlp,layernorm]"},
         "selective/layernorm+mlp",
         RC_OK},
        {{"model.recompute_granularity=full", "model.recompute_method=block",
          "model.recompute_num_layers=2"},
         "full/block/2",
         RC_OK},
        {{"model.recompute_granularity=full", "model.recompute_method=uniform",
          "model.recompute_num_layers=0"},
         "it must be at least 1",
         RC_E_INPUT},
        {{"model.recompute_granularity=full"}, "needs uniform or block", RC_E_INPUT},
        {{"model.recompute_granularity=full", "model.recompute_method=block"},
         "needs at least 1",
         RC_E_INPUT},
        {{"model.recompute_granularity=selective", "model.recompute_modules=[mpl]"},
         "did you mean mlp",
         RC_E_INPUT},
        {{"model.recompute_granularity=selective", "model.recompute_num_layers=1"},
         "must be null under granularity selective",
         RC_E_INPUT},
        {{"model.recompute_granularity=some"}, "null, selective or full", RC_E_INPUT},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rc_setting setting;
        rc_error err = {0};
        char name[160];
        size_t n = 0;
        while (n < 4 && cases[i].words[n])
            n++;
        rc_code code = setting_of(cases[i].words, n, &setting, &err);
        assert_int_equal(code, cases[i].code);
        if (code == RC_OK)
            assert_string_equal(rc_setting_name(&setting, name), cases[i].name);
        else if (!strstr(err.msg, cases[i].name))
            fail_msg("%s: %s", cases[i].words[0], err.msg);
    }
}

static int tensor_named(const rc_graph *graph, const char *name)
{
    char buf[RC_GRAPH_NAME_BYTES];
    for (int i = 0; i < graph->n_tensors; i++)
        if (strcmp(rc_graph_tensor_name(graph, i, buf), name) == 0)
            return i;
    fail_msg("no tensor %s", name);
    return -1;
}

static bool is_discarded(const rc_policy *policy, const char *name)
{
    return policy->fates[tensor_named(policy->graph, name)].kind == RC_FATE_DISCARD;
}

static void labels_discard_what_their_region_covers(void **state)
{
    static const struct {
        const char *setting, *tensor;
        bool is_discarded;
    } cases[] = {
        {"selective/core_attn", "decoder.layers.0.self_attention.core_attention.softmax", true},
        {"selective/core_attn", "decoder.layers.0.self_attention.core_attention", false},
        {"selective/core_attn", "decoder.layers.0.self_attention.linear_qkv", false},
        {"selective/layernorm", "decoder.layers.1.input_layernorm", true},
        {"selective/layernorm", "decoder.layers.1.input_layernorm.rstd", false},
        {"selective/layernorm", "decoder.final_layernorm", false},
        {"selective/mlp", "decoder.layers.1.mlp.linear_fc1", true},
        {"selective/mlp", "decoder.layers.1.mlp.activation", true},
        {"selective/mlp", "decoder.layers.1.pre_mlp_layernorm", false},
        {"full/block/1", "decoder.layers.0.self_attn_bda", true},
        {"full/block/1", "decoder.layers.0.mlp_bda", false},
        {"full/block/1", "decoder.layers.1.mlp.activation", false},
        {"full/uniform/2", "decoder.layers.0.mlp_bda", true},
        {"full/uniform/2", "decoder.layers.1.mlp_bda", false},
        {"full/uniform/2", "decoder.layers.2.mlp.activation", true},
    };
    (void)state;
    rc_arena *mem = rc_arena_open();
    const rc_graph *graph = law_graph(&law_models[0], "unfused", mem);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const rc_policy *policy = law_policy(graph, cases[i].setting, mem);
        if (is_discarded(policy, cases[i].tensor) != cases[i].is_discarded)
            fail_msg("%s: %s", cases[i].setting, cases[i].tensor);
    }
    rc_arena_close(mem);
}

static void what_no_op_computes_cannot_be_discarded(void **state)
{
    static const struct {
        const char *tensor, *message;
    } cases[] = {
        {"decoder.layers.1.mlp.linear_fc1.weight", "no op computes it"},
        {"tokens", "no op computes it"},
        {"decoder.layers.0.self_attention.query", "a slice goes with the value"},
        {"loss", "it is the result of the step"},
        {"decoder.layers.2.mlp.linear_fc1", NULL},
    };
    (void)state;
    rc_arena *mem = rc_arena_open();
    const rc_graph *graph = law_graph(&law_models[0], "fused", mem);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rc_error err = {0};
        rc_tensor_fate *fates;
        rc_policy *policy;
        law_check(RC_NEW(mem, &fates, graph->n_tensors, &err), &err);
        fates[tensor_named(graph, cases[i].tensor)] =
            (rc_tensor_fate){RC_FATE_DISCARD, RC_BY_CALLER};
        rc_code code = rc_policy_make_of(graph, fates, "one", mem, &policy, &err);
        assert_int_equal(code, cases[i].message ? RC_E_INPUT : RC_OK);
        if (!cases[i].message)
            continue;
        assert_non_null(strstr(err.msg, cases[i].tensor));
        assert_non_null(strstr(err.msg, cases[i].message));
    }
    rc_arena_close(mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(setting_names_round_trip),
        cmocka_unit_test(settings_are_read_as_megatron_reads_them),
        cmocka_unit_test(labels_discard_what_their_region_covers),
        cmocka_unit_test(what_no_op_computes_cannot_be_discarded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
