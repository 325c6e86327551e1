/* test_config.c — from documents to typed fields. */
#include "config_cases.h"

static void config_sets_every_type(void **state)
{
    (void)state;
    rc_arena *mem = rc_arena_open();
    rc_config *cfg = make("model: {num_layers: 4, bf16: true, layernorm_epsilon: 1,\n"
                          "  normalization: RMSNorm, recompute_modules: [mlp, core_attn]}\n"
                          "engine: {memory_budget: 1.5MiB}\n",
                          mem);
    assert_int_equal(cfg->num_layers, 4);
    assert_true(cfg->bf16);
    assert_true(cfg->layernorm_epsilon == 1.0);
    assert_string_equal(cfg->normalization, "RMSNorm");
    assert_int_equal(cfg->recompute_modules.n, 2);
    assert_string_equal(cfg->recompute_modules.at[1], "core_attn");
    assert_int_equal(cfg->memory_budget, 1536 * 1024);
    rc_arena_close(mem);
}

static void config_tells_null_from_empty_and_default(void **state)
{
    (void)state;
    rc_arena *mem = rc_arena_open();
    rc_config *cfg =
        make("model: {recompute_modules: [], hidden_dropout: null, seq_length: null}", mem);
    assert_non_null(cfg->recompute_modules.at);
    assert_int_equal(cfg->recompute_modules.n, 0);
    assert_false(cfg->origin[RC_FIELD_recompute_modules].is_null);
    assert_true(isnan(cfg->hidden_dropout));
    assert_true(cfg->origin[RC_FIELD_hidden_dropout].is_null);
    assert_int_equal(cfg->origin[RC_FIELD_hidden_dropout].kind, RC_FROM_FILE);
    assert_int_equal(cfg->seq_length, RC_NULL_INT);
    assert_int_equal(cfg->origin[RC_FIELD_attention_dropout].kind, RC_FROM_DEFAULT);
    assert_true(cfg->attention_dropout == 0.1);
    assert_null(cfg->recompute_granularity);
    rc_arena_close(mem);
}

static void config_every_default_is_of_its_type(void **state)
{
    (void)state;
    rc_arena *mem = rc_arena_open();
    rc_config *cfg = make("{}", mem);
    for (int i = 0; i < RC_FIELD_COUNT; i++) {
        const rc_field_facts *facts = rc_field_find((rc_field)i);
        assert_int_equal(cfg->origin[i].is_null, strcmp(facts->dflt, "null") == 0);
        assert_int_equal(rc_field_find_name(facts->name), i);
        assert_true(*facts->help);
    }
    rc_arena_close(mem);
}

static void config_lets_later_inputs_win_and_says_so(void **state)
{
    (void)state;
    rc_arena *mem = rc_arena_open();
    static const char file[] = "model: {num_layers: 4, hidden_size: 64}\n";
    static const char *const words[] = {"model.num_layers=8"};
    rc_doc *a, *b;
    assert_int_equal(rc_yaml_read("m.yaml", file, sizeof file - 1, mem, &a, NULL), RC_OK);
    assert_int_equal(rc_override_read(words, 1, mem, &b, NULL), RC_OK);
    rc_input inputs[] = {{a, RC_FROM_FILE}, {b, RC_FROM_OVERRIDE}};
    rc_config *cfg;
    assert_int_equal(rc_config_make(inputs, 2, mem, &cfg, NULL), RC_OK);
    assert_int_equal(cfg->num_layers, 8);
    assert_int_equal(cfg->origin[RC_FIELD_num_layers].kind, RC_FROM_OVERRIDE);
    assert_int_equal(cfg->origin[RC_FIELD_num_layers].where.col, 18);
    assert_int_equal(cfg->origin[RC_FIELD_hidden_size].kind, RC_FROM_FILE);
    assert_int_equal(cfg->origin[RC_FIELD_hidden_size].where.col, 37);
    rc_arena_close(mem);
}

static void config_refuses_wrong_types_with_what_is_right(void **state)
{
    (void)state;
    expect_refused("model:\n  num_layers: abc\n", 2,
                   /* */ "              ^", "num_layers must be a whole number, not \"abc\"");
    expect_refused("model:\n  num_layers: 2.5\n", 2,
                   /* */ "              ^", "must be a whole number, not 2.5");
    expect_refused("model:\n  num_layers: 2.0\n", 2,
                   /* */ "              ^", "must be a whole number, not 2.0");
    expect_refused("model:\n  num_layers: true\n", 2,
                   /* */ "              ^", "must be a whole number, not true");
    expect_refused("model:\n  bf16: maybe\n", 2,
                   /* */ "        ^", "must be true or false, not \"maybe\"");
    expect_refused("model:\n  bf16: 2\n", 2,
                   /* */ "        ^", "must be true or false, not 2");
    expect_refused("optimizer: {lr: fast}\n", 1,
                   /* */ "                ^", "must be a number, not \"fast\"");
    expect_refused("engine: {memory_budget: much}\n", 1,
                   /* */ "                        ^", "must be a size such as 512MiB");
    expect_refused("model: {recompute_modules: {a: 1}}\n", 1,
                   /* */ "                           ^", "must be a list of words, not a map");
    expect_refused("model: {recompute_modules: [[a]]}\n", 1,
                   /* */ "                            ^",
                   "must be a list of words, not a list");
    expect_refused("model: {normalization: [a]}\n", 1,
                   /* */ "                       ^", "must be a word, not a list");
    expect_refused("model: 5\n", 1,
                   /* */ "       ^", "model must be a map of settings");
    expect_refused("[1]\n", 1, "^", "a configuration is a map of sections");
}

static void config_names_the_nearest_key(void **state)
{
    (void)state;
    expect_refused("model:\n  num_layer: 4\n", 2,
                   /* */ "  ^", "unknown key model.num_layer, did you mean model.num_layers?");
    expect_refused("train:\n  seq_length: 4\n", 2,
                   /* */ "  ^", "seq_length stands in another section: model.seq_length");
    expect_refused("model:\n  zzz: 4\n", 2,
                   /* */ "  ^", "unknown key model.zzz; `recompute list fields`");
}

static void config_keeps_unknown_sections_in_silence(void **state)
{
    (void)state;
    rc_arena *mem = rc_arena_open();
    rc_config *cfg =
        make("nvrx_straggler: {enabled: false, x: {y: 1}}\nmodel: {num_layers: 2}\n", mem);
    assert_int_equal(cfg->num_layers, 2);
    assert_int_equal(cfg->n_unknown, 1);
    assert_string_equal(cfg->unknown[0].path, "nvrx_straggler");
    rc_arena_close(mem);
}

static void config_resolves_interpolations(void **state)
{
    (void)state;
    rc_arena *mem = rc_arena_open();
    rc_config *cfg =
        make("base: {n: 6}\nmodel: {num_layers: \"${base.n}\", hidden_size: 64}\n", mem);
    assert_int_equal(cfg->num_layers, 6);
    rc_arena_close(mem);
    expect_refused("model: {num_layers: '${oc.env:N}'}\n", 1,
                   /* */ "                    ^", "known only when the job starts");
    expect_refused("model: {num_layers: '${model.num_layers}'}\n", 1,
                   /* */ "                    ^", "known only when the job starts");
}

static void config_adds_nested_keys_to_what_a_file_gave(void **state)
{
    (void)state;
    rc_arena *mem = rc_arena_open();
    static const char file[] = "peft: {_target_: a.LoRA, dim: 8}\n";
    static const char *const words[] = {"peft.dim=16"};
    rc_doc *a, *b;
    assert_int_equal(rc_yaml_read("m.yaml", file, sizeof file - 1, mem, &a, NULL), RC_OK);
    assert_int_equal(rc_override_read(words, 1, mem, &b, NULL), RC_OK);
    rc_input inputs[] = {{a, RC_FROM_FILE}, {b, RC_FROM_OVERRIDE}};
    rc_config *cfg;
    assert_int_equal(rc_config_make(inputs, 2, mem, &cfg, NULL), RC_OK);
    assert_int_equal(cfg->peft_dim, 16);
    assert_string_equal(cfg->peft->tag, "a.LoRA");
    rc_arena_close(mem);
}

static void config_forgets_a_deleted_key(void **state)
{
    (void)state;
    rc_arena *mem = rc_arena_open();
    static const char file[] = "model: {num_layers: 4, hidden_dropout: 0.0}\n";
    static const char *const words[] = {"~model.hidden_dropout"};
    rc_doc *a, *b;
    assert_int_equal(rc_yaml_read("m.yaml", file, sizeof file - 1, mem, &a, NULL), RC_OK);
    assert_int_equal(rc_override_read(words, 1, mem, &b, NULL), RC_OK);
    rc_input inputs[] = {{a, RC_FROM_FILE}, {b, RC_FROM_OVERRIDE}};
    rc_config *cfg;
    assert_int_equal(rc_config_make(inputs, 2, mem, &cfg, NULL), RC_OK);
    assert_true(cfg->hidden_dropout == 0.1);
    assert_int_equal(cfg->num_layers, 4);
    rc_arena_close(mem);
}

static void config_derives_as_megatron_does(void **state)
{
    (void)state;
    rc_arena *mem = rc_arena_open();
    rc_config *cfg = make("model: {hidden_size: 1024, num_attention_heads: 16,\n"
                          "  gated_linear_unit: true, vocab_size: 50257}\n",
                          mem);
    assert_int_equal(rc_config_head_dim(cfg), 64);
    assert_int_equal(rc_config_groups(cfg), 16);
    assert_int_equal(rc_config_ffn(cfg), 4096);
    assert_int_equal(rc_config_vocab(cfg, 257), 50304); /* GPT-2's 50257 to a multiple of 128 */
    cfg = make("megatron_args: {hidden_size: 1024, swiglu: true}\n", mem);
    assert_int_equal(cfg->framework, RC_FRAMEWORK_MEGATRON_LM);
    assert_int_equal(rc_config_ffn(cfg), 2688); /* int(4096 * 2/3 / 64) * 64 */
    assert_string_equal(cfg->activation_func, "silu");
    cfg = make("model: {tensor_model_parallel_size: 8}\n", mem);
    assert_int_equal(rc_config_vocab(cfg, 257), 1024);
    assert_int_equal(rc_config_head_dim(cfg), RC_NULL_INT);
    rc_arena_close(mem);
}

static void config_keeps_aside_what_only_the_job_knows(void **state)
{
    (void)state;
    rc_arena *mem = rc_arena_open();
    static const char text[] = "export NCCL_GRAPH_REGISTER=0\n--num-layers $(cat n) --bf16\n";
    rc_doc *doc;
    rc_config *cfg;
    assert_int_equal(rc_args_read("a.sh", text, sizeof text - 1, mem, &doc, NULL), RC_OK);
    rc_input input = {doc, RC_FROM_FLAG};
    assert_int_equal(rc_config_make(&input, 1, mem, &cfg, NULL), RC_OK);
    assert_int_equal(cfg->num_layers, RC_NULL_INT);
    assert_int_equal(cfg->n_unknown, 1);
    assert_true(cfg->unknown[0].is_value);
    assert_string_equal(cfg->unknown[0].path, "num_layers");
    assert_int_equal(cfg->unknown[0].where.line, 2);
    assert_int_equal(cfg->unknown[0].where.col, 14);
    assert_string_equal(cfg->nccl_graph_register, "0");
    assert_true(cfg->bf16);
    rc_arena_close(mem);
}

static void config_reads_core_fields(void **state)
{
    (void)state;
    rc_arena *mem = rc_arena_open();
    rc_doc *doc;
    static const char text[] = "{\"num_layers\": 8, \"recompute_granularity\": \"selective\"}";
    assert_int_equal(rc_json_read("c", text, sizeof text - 1, mem, &doc, NULL), RC_OK);
    rc_config *cfg;
    assert_int_equal(rc_config_from_core_json(doc, mem, &cfg, NULL), RC_OK);
    assert_int_equal(cfg->num_layers, 8);
    assert_string_equal(cfg->recompute_granularity, "selective");
    assert_int_equal(cfg->framework, RC_FRAMEWORK_CORE);
    assert_int_equal(cfg->origin[RC_FIELD_num_layers].node->kind, RC_DOC_INT);
    rc_arena_close(mem);
}

static void config_shows_values_in_yaml_notation(void **state)
{
    (void)state;
    rc_arena *mem = rc_arena_open();
    rc_config *cfg = make(
        "model: {recompute_modules: [mlp, moe], layernorm_epsilon: 1e-6, bf16: true}\n", mem);
    static const struct {
        rc_field field;
        const char *shown;
    } cases[] = {
        {RC_FIELD_recompute_modules, "[mlp,moe]"},
        {RC_FIELD_layernorm_epsilon, "1e-06"},
        {RC_FIELD_bf16, "true"},
        {RC_FIELD_recompute_method, "null"},
        {RC_FIELD_seed, "1234"},
        {RC_FIELD_attention_dropout, "0.1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *shown;
        assert_int_equal(rc_config_show(cfg, cases[i].field, mem, &shown, NULL), RC_OK);
        assert_string_equal(shown, cases[i].shown);
    }
    rc_table *table;
    assert_int_equal(rc_config_table(cfg, mem, &table, NULL), RC_OK);
    assert_int_equal(table->n_rows, RC_FIELD_COUNT);
    rc_arena_close(mem);
}

/* Allocation number 0, 1, 2, ... fails until all succeed; every failure must be clean. */
static void config_fails_cleanly_when_memory_ends(void **state)
{
    (void)state;
    static const char yaml[] =
        "preset: deepseek-v3\nmixed_precision: bf16_mixed\n"
        "d: &d {num_layers: 2}\nmodel: {<<: *d, x: 1, recompute_modules: [mlp]}\n";
    static const char script[] =
        "A=(--num-layers 2)\npython p.py ${A[@]} --moe-layer-freq '[1]*2'\n";
    rc_code code = RC_E_MEMORY;
    for (int64_t n = 0; code != RC_OK; n++) {
        rc_arena *mem = rc_arena_open();
        rc_doc *docs[2];
        rc_config *cfg;
        rc_error err = {0};
        rc_arena_fail_after(mem, n);
        code = rc_yaml_read("m.yaml", yaml, sizeof yaml - 1, mem, &docs[0], &err);
        if (code == RC_OK)
            code = rc_args_read("m.sh", script, sizeof script - 1, mem, &docs[1], &err);
        rc_input inputs[] = {{docs[0], RC_FROM_FILE}, {docs[1], RC_FROM_FLAG}};
        if (code == RC_OK)
            code = rc_config_make(inputs, 2, mem, &cfg, &err);
        if (code != RC_OK)
            assert_int_equal(err.code, RC_E_MEMORY);
        else
            assert_int_equal(cfg->moe_layer_freq->n_children, 2);
        assert_true(n < 100000);
        rc_arena_close(mem);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(config_sets_every_type),
        cmocka_unit_test(config_tells_null_from_empty_and_default),
        cmocka_unit_test(config_every_default_is_of_its_type),
        cmocka_unit_test(config_lets_later_inputs_win_and_says_so),
        cmocka_unit_test(config_refuses_wrong_types_with_what_is_right),
        cmocka_unit_test(config_names_the_nearest_key),
        cmocka_unit_test(config_keeps_unknown_sections_in_silence),
        cmocka_unit_test(config_resolves_interpolations),
        cmocka_unit_test(config_adds_nested_keys_to_what_a_file_gave),
        cmocka_unit_test(config_forgets_a_deleted_key),
        cmocka_unit_test(config_derives_as_megatron_does),
        cmocka_unit_test(config_keeps_aside_what_only_the_job_knows),
        cmocka_unit_test(config_fails_cleanly_when_memory_ends),
        cmocka_unit_test(config_reads_core_fields),
        cmocka_unit_test(config_shows_values_in_yaml_notation),
    };
    return cmocka_run_group_tests_name("config", tests, NULL, NULL);
}
