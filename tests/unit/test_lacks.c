/* test_lacks.c — a graph is built whole or refused by name: graph_lacks.def, and every built-in model. */
#include "fates_cases.h"

/* Of a tiny model and the words. The error outlives the arena. */
static rc_code make(const char *const *words, size_t n, rc_profile profile, rc_arena *mem,
                    rc_graph **graph, rc_config **cfg, rc_error *err)
{
    static const rc_layer_run layer = {.n_layers = 1};
    static const rc_chunk first = {.runs = &layer, .n_runs = 1, .has_embedding = true};
    RC_TRY(read_config(words, n, mem, cfg, err));
    return rc_graph_make(
        &(rc_graph_request){.cfg = *cfg,
                            .profile = profile,
                            .n_words = RC_TEXT_VOCAB,
                            .chunk = (*cfg)->pipeline_model_parallel_size > 1 ? &first : NULL},
        mem, graph, err);
}

/* Where the config says that the setting stands. */
static rc_where place_of(const rc_config *cfg, const char *key)
{
    for (int i = 0; i < RC_FIELD_COUNT; i++)
        if (strcmp(rc_field_key((rc_field)i), key) == 0)
            return cfg->origin[i].where;
    for (size_t i = 0; i < cfg->n_unknown; i++)
        if (strcmp(cfg->unknown[i].path, key) == 0)
            return cfg->unknown[i].where;
    return RC_NOWHERE;
}

/* As the cell of that profile says. */
static void need_cell(const rc_lack *row, const char *const *words, size_t n, const char *key,
                      rc_profile profile)
{
    rc_error err = {0};
    rc_graph *graph;
    rc_config *cfg;
    rc_arena *mem = rc_arena_open();
    rc_code code = make(words, n, profile, mem, &graph, &cfg, &err);
    const char *name = rc_profile_name(profile);
    if (row->of[profile] != RC_LACK_LACKS) {
        if (code != RC_OK)
            fail_msg("%s in %s: %s", words[0], name, err.msg);
        rc_arena_close(mem);
        return;
    }
    rc_where place = place_of(cfg, key);
    if (code != RC_E_UNSUPPORTED || strncmp(err.msg, key, strlen(key)) != 0 ||
        !strstr(err.msg, row->ask.words) || !strstr(err.msg, name))
        fail_msg("%s in %s: code %d, \"%s\"", words[0], name, (int)code, err.msg);
    if (place.line < 1 || err.where.line != place.line || err.where.col != place.col)
        fail_msg("%s in %s: at %d:%d, not %d:%d", words[0], name, err.where.line, err.where.col,
                 place.line, place.col);
    rc_arena_close(mem);
}

static void need_row(const rc_lack *row, const char *const *words, size_t n, const char *key)
{
    for (int profile = 0; profile < RC_PROFILE_COUNT; profile++)
        need_cell(row, words, n, key, (rc_profile)profile);
}

/* A value that asks for something, and that is in its range. */
static const char *asking_value(const rc_ask *row)
{
    if (strcmp(row->key, "model.attention_backend") == 0)
        return "unfused";
    const bool is_size = strcmp(row->key, "model.tensor_model_parallel_size") == 0 ||
                         strcmp(row->key, "model.context_parallel_size") == 0;
    return is_size ? "2" : other_value(row);
}

static void every_setting_is_built_or_refused_as_its_row_says(void **state)
{
    size_t n, n_tried = 0;
    const rc_lack *rows = rc_lack_list(&n);
    (void)state;
    for (size_t i = 0; i < n; i++) {
        char word[300];
        const char *words[] = {word, "model.add_bias_linear=false"}; /* experts have none */
        const rc_ask *row = &rows[i].ask;
        bool is_key = has_section(row) || rc_field_find_name(row->key) != RC_FIELD_COUNT;
        if (!is_key)
            continue;
        snprintf(word, sizeof word, "%s=%s", row->key, asking_value(row));
        need_row(&rows[i], words, sizeof words / sizeof *words, row->key);
        n_tried++;
    }
    assert_true(n_tried > 45);
}

static void every_argument_is_built_or_refused_as_its_row_says(void **state)
{
    size_t n_tried = 0;
    const rc_asks table = rc_lack_asks();
    (void)state;
    for (size_t i = 0; i < rc_flag_count(); i++) {
        char buf[100];
        const char *words[2];
        rc_arena *mem = rc_arena_open();
        const rc_flag *flag = rc_flag_at(i);
        const rc_ask *row =
            is_no_field(flag, mem) ? rc_asks_of_argument(&table, flag->name) : NULL;
        rc_arena_close(mem);
        if (!row || (is_family(row) && rc_fate_of_argument(flag->name)))
            continue;
        const char *last = strrchr(flag->choices, ' '); /* the first may be neutral */
        size_t n_words = words_of(flag, last ? last + 1 : "7", buf, words);
        need_row((const rc_lack *)(const void *)row, words, n_words, buf);
        n_tried++;
    }
    assert_true(n_tried > 20);
}

/* What changes the layers of a model, whatever the table says today. */
static void no_profile_builds_an_architecture_in_part(void **state)
{
    static const char *const words[] = {"model.hybrid_layer_pattern=M*-M",
                                        "model.hybrid_override_pattern=M*-M",
                                        "model.is_hybrid_model=true",
                                        "model.experimental_attention_variant=gdn",
                                        "model.enable_mhc_connections=true",
                                        "model.heterogeneous_block_specs=true",
                                        "model.attention_output_gate=true",
                                        "model.apply_residual_connection_post_layernorm=true",
                                        "model.softmax_type=learnable",
                                        "model.qk_l2_norm=true",
                                        "model.fp8=hybrid",
                                        "model.fp4=e2m1",
                                        "model.cpu_offloading=true",
                                        "model._target_=a.LlamaModelProvider",
                                        "peft={_target_: a.LoRA, dim: 8}",
                                        "tokenizer={vocab_extra_ids: 8}"};
    (void)state;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        for (int profile = 0; profile < RC_PROFILE_COUNT; profile++) {
            rc_error err = {0};
            rc_graph *graph;
            rc_config *cfg;
            rc_arena *mem = rc_arena_open();
            rc_code code = make(&words[i], 1, (rc_profile)profile, mem, &graph, &cfg, &err);
            if (code != RC_E_UNSUPPORTED ||
                strncmp(err.msg, words[i], strcspn(words[i], "=")) != 0)
                fail_msg("%s: code %d, %s", words[i], (int)code, err.msg);
            rc_arena_close(mem);
        }
}

/* The graph of a whole model is one stage; of several a chunk must be asked for. */
static void a_graph_of_several_stages_is_refused(void **state)
{
    const char *const words[] = {"model.pipeline_model_parallel_size=2"};
    (void)state;
    for (int profile = 0; profile < RC_PROFILE_COUNT; profile++) {
        rc_error err = {0};
        rc_graph *graph;
        rc_config *cfg;
        rc_arena *mem = rc_arena_open();
        assert_int_equal(read_config(words, 1, mem, &cfg, &err), RC_OK);
        assert_int_equal(rc_graph_make(&(rc_graph_request){.cfg = cfg,
                                                           .profile = (rc_profile)profile,
                                                           .n_words = RC_TEXT_VOCAB},
                                       mem, &graph, &err),
                         RC_E_UNSUPPORTED);
        assert_non_null(strstr(err.msg, "pipeline_model_parallel_size"));
        rc_arena_close(mem);
    }
}

/* Parameters of the models, as the files on Hugging Face hold them (`safetensors` on the model's
 * page, an embedding that is tied once, of DeepSeek-V3 and GLM-4.5 those of multi-token prediction too, without its copies of the tables); GPT-2 as released; GPT-3 from Brown et al. 2020, table 2.1;
 * Gemma 3 without its vision tower from its technical report, table 1. */
static const struct published {
    const char *name;
    int64_t n_parameters;
} published[] = {
    {"deepseek-v3", 682636472320},
    {"glm4.5", 356785898816},
    {"glm4.5-air", 109227310848},
    {"llama2-7b", 6738415616},
    {"llama2-13b", 13015864320},
    {"llama2-70b", 68976648192},
    {"llama3-8b", 8030261248},
    {"llama3-70b", 70553706496},
    {"llama3.1-8b", 8030261248},
    {"llama3.1-70b", 70553706496},
    {"llama3.1-405b", 405853388800},
    {"llama3.2-1b", 1235814400},
    {"llama3.2-3b", 3212749824},
    {"llama3.3-70b", 70553706496},
    {"qwen2-7b", 7615616512},
    {"qwen2-72b", 72706203648},
    {"qwen2.5-0.5b", 494032768},
    {"qwen2.5-1.5b", 1543714304},
    {"qwen2.5-3b", 3085938688},
    {"qwen2.5-7b", 7615616512},
    {"qwen2.5-14b", 14770033664},
    {"qwen2.5-32b", 32763876352},
    {"qwen2.5-72b", 72706203648},
    {"qwen3-0.6b", 596049920},
    {"qwen3-1.7b", 1720574976},
    {"qwen3-4b", 4022468096},
    {"qwen3-8b", 8190735360},
    {"qwen3-14b", 14768307200},
    {"qwen3-32b", 32762123264},
    {"mistral-7b", 7241732096},
    {"gpt2", 124439808},
    {"gpt2-medium", 354823168},
    {"gpt2-large", 774030080},
    {"gpt2-xl", 1557611200},
    {"gpt3-175b", 174600000000},
    {"gemma-2b", 2506172416},
    {"gemma-7b", 8537680896},
    {"gemma2-2b", 2614341888},
    {"gemma2-9b", 9241705984},
    {"gemma2-27b", 27227128320},
    {"gemma3-1b", 1000000000},
    {"gemma3-4b", 3884000000},
    {"gemma3-12b", 11771000000},
    {"gemma3-27b", 27016000000},
    {"phi-2", 2779683840},
    {"phi3-mini", 3821079552},
    {"phi-4", 14659507200},
    {"mixtral-8x7b", 46702792704},
    {"mixtral-8x22b", 140620634112},
    {"qwen3-30b-a3b", 30532122624},
    {"qwen3-235b-a22b", 235093634560},
    {"qwen2-57b-a14b", 57409137664},
    {"deepseek-v2-lite", 15706484224},
    {"deepseek-v2", 235741434880},
    {"moonlight-16b-a3b", 15960111936},
    {"kimi-k2", 1026408232448},
};

static int64_t published_size(const char *name)
{
    for (size_t i = 0; i < sizeof published / sizeof *published; i++)
        if (strcmp(published[i].name, name) == 0)
            return published[i].n_parameters;
    return 0;
}

static void need_preset(const char *name, rc_profile profile)
{
    const char *const words[] = {"--model", name, "train.micro_batch_size=1",
                                 "model.make_vocab_size_divisible_by=1"};
    rc_error err = {0};
    rc_inputs said;
    rc_config *cfg;
    rc_graph *graph;
    rc_arena *mem = rc_arena_open();
    assert_ok(rc_inputs_read(words, 4, mem, &said, NULL));
    assert_ok(rc_config_make(said.at, said.n, mem, &cfg, NULL));
    rc_code code =
        rc_graph_make(&(rc_graph_request){.cfg = cfg, .profile = profile}, mem, &graph, &err);
    /* what the engine lacks of a model the others may have */
    const bool is_lacked = profile == RC_PROFILE_ENGINE && cfg->num_moe_experts != RC_NULL_INT;
    const int64_t size = is_lacked ? 0 : published_size(name);
    if (size == 0 && (code != RC_E_UNSUPPORTED || strncmp(err.msg, "model.", 6) != 0))
        fail_msg("%s has no published size here, and is not refused: %d %s", name, (int)code,
                 err.msg);
    if (size && code != RC_OK)
        fail_msg("%s: %s", name, err.msg);
    if (size && llabs(graph->n_parameters - size) > size / 200)
        fail_msg("%s: %lld parameters, published are %lld", name,
                 (long long)graph->n_parameters, (long long)size);
    rc_arena_close(mem);
}

static void every_built_in_model_is_built_whole_or_refused_by_name(void **state)
{
    size_t n;
    const rc_preset *presets = rc_preset_list(&n);
    (void)state;
    for (size_t i = 0; i < n; i++)
        for (int profile = 0; profile < RC_PROFILE_COUNT; profile++)
            need_preset(presets[i].name, (rc_profile)profile);
    for (size_t i = 0; i < sizeof published / sizeof *published; i++)
        assert_non_null(rc_preset_find(published[i].name));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_setting_is_built_or_refused_as_its_row_says),
        cmocka_unit_test(every_argument_is_built_or_refused_as_its_row_says),
        cmocka_unit_test(no_profile_builds_an_architecture_in_part),
        cmocka_unit_test(a_graph_of_several_stages_is_refused),
        cmocka_unit_test(every_built_in_model_is_built_whole_or_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
