/* test_inputs.c — the mixed words of a command line, and the files they name. */
#include "config_cases.h"

#include <unistd.h>

/* A file in the folder the test runs in; its name goes into `path`. */
static const char *put_file(const char *name, const char *text)
{
    static char paths[8][64];
    static int n;
    char *path = paths[n++ % 8];
    snprintf(path, sizeof paths[0], "test_inputs_%s", name);
    FILE *to = fopen(path, "wb");
    assert_non_null(to);
    fputs(text, to);
    fclose(to);
    return path;
}

static rc_config *read_words(const char *const *words, size_t n, rc_arena *mem,
                             rc_inputs *inputs)
{
    rc_error err = {0};
    rc_config *cfg = NULL;
    rc_code code = rc_inputs_read(words, n, mem, inputs, &err);
    if (code == RC_OK)
        code = rc_config_make(inputs->at, inputs->n, mem, &cfg, &err);
    if (code != RC_OK)
        fail_msg("%s:%d:%d: %s", err.where.file, err.where.line, err.where.col, err.msg);
    return cfg;
}

static void inputs_combine_in_order(void **state)
{
    (void)state;
    const char *yaml =
        put_file("a.yaml", "model: {num_layers: 4, hidden_size: 64, seq_length: 128}\n");
    const char *const words[] = {"--model",
                                 "llama3-8b",
                                 yaml,
                                 "model.num_layers=6",
                                 "--seq-length",
                                 "256",
                                 "--recompute-modules",
                                 "mlp",
                                 "core_attn",
                                 "train.micro_batch_size=2"};
    rc_arena *mem = rc_arena_open();
    rc_inputs inputs;
    rc_config *cfg = read_words(words, sizeof words / sizeof *words, mem, &inputs);
    assert_int_equal(inputs.n, 5);
    assert_int_equal(inputs.n_files, 1);
    assert_string_equal(inputs.files[0], yaml);
    assert_int_equal(inputs.framework, RC_FRAMEWORK_MEGATRON_LM);
    assert_int_equal(cfg->num_layers, 6);
    assert_int_equal(cfg->hidden_size, 64);
    assert_int_equal(cfg->seq_length, 256);
    assert_int_equal(cfg->num_query_groups, 8);
    assert_int_equal(cfg->micro_batch_size, 2);
    assert_int_equal(cfg->recompute_modules.n, 2);
    assert_int_equal(cfg->origin[RC_FIELD_num_query_groups].kind, RC_FROM_PRESET);
    assert_int_equal(cfg->origin[RC_FIELD_num_query_groups].where.line, 2);
    assert_int_equal(cfg->origin[RC_FIELD_hidden_size].kind, RC_FROM_FILE);
    assert_int_equal(cfg->origin[RC_FIELD_seq_length].kind, RC_FROM_FLAG);
    assert_int_equal(cfg->origin[RC_FIELD_seq_length].where.line, 6);
    assert_int_equal(cfg->origin[RC_FIELD_num_layers].kind, RC_FROM_OVERRIDE);
    assert_int_equal(cfg->origin[RC_FIELD_num_layers].where.line, 4);
    assert_int_equal(cfg->origin[RC_FIELD_num_layers].where.col, 18);
    unlink(yaml);
    rc_arena_close(mem);
}

static void inputs_tell_formats_by_look(void **state)
{
    (void)state;
    static const struct {
        const char *name, *text;
        rc_framework framework;
    } cases[] = {
        {"1.txt", "--num-layers 7 --bf16 \\\n --lr 1e-4\n", RC_FRAMEWORK_MEGATRON_LM},
        {"2.txt", "x\n  num_layers ............................ 7\n", RC_FRAMEWORK_MEGATRON_LM},
        {"3", "{\"model_type\": \"llama\", \"num_hidden_layers\": 7}", RC_FRAMEWORK_BRIDGE},
        {"4.conf", "model:\n  num_layers: 7\n", RC_FRAMEWORK_BRIDGE},
        {"5.json", "{\"model\": {\"num_layers\": 7}}", RC_FRAMEWORK_BRIDGE},
        {"6", "#!/bin/sh\nL=7\npython pretrain_gpt.py --num-layers $L\n",
         RC_FRAMEWORK_MEGATRON_LM},
        {"7.yaml",
         "ENV_VARS: {CUDA_DEVICE_MAX_CONNECTIONS: 1}\nMODEL_ARGS:\n  --num-layers: 7\n"
         "  --recompute-modules: '[mlp moe]'\n",
         RC_FRAMEWORK_MEGATRON_LM},
        {"8.yaml", "language_model: {num_layers: 7}\nmodel_parallel: {bf16: true}\nlr: 1e-3\n",
         RC_FRAMEWORK_MEGATRON_LM},
        {"9.yml", "num_layers: 7\n", RC_FRAMEWORK_BRIDGE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rc_arena *mem = rc_arena_open();
        rc_inputs inputs;
        const char *path = put_file(cases[i].name, cases[i].text);
        rc_config *cfg = read_words(&path, 1, mem, &inputs);
        assert_int_equal(cfg->num_layers, 7);
        assert_int_equal(inputs.framework, cases[i].framework);
        unlink(path);
        rc_arena_close(mem);
    }
}

static void inputs_read_a_functional_test(void **state)
{
    (void)state;
    const char *path = put_file("m.yaml", "ENV_VARS:\n"
                                          "  CUDA_DEVICE_MAX_CONNECTIONS: 1\n"
                                          "TEST_TYPE: regular\n"
                                          "MODEL_ARGS:\n"
                                          "  --num-layers: 12\n"
                                          "  --recompute-granularity: selective\n"
                                          "  --recompute-modules: '[mlp moe]'\n"
                                          "  --moe-layer-freq: ([0]*1+[1]*2)\n"
                                          "  --sequence-parallel: true\n"
                                          "  --pipeline-model-parallel-layout: Et*2\\\\|tL\n"
                                          "  --cuda-graph-modules: attn moe_router\n");
    rc_arena *mem = rc_arena_open();
    rc_inputs inputs;
    rc_config *cfg = read_words(&path, 1, mem, &inputs);
    assert_int_equal(cfg->num_layers, 12);
    assert_int_equal(cfg->recompute_modules.n, 2);
    assert_string_equal(cfg->recompute_modules.at[1], "moe");
    assert_int_equal(cfg->moe_layer_freq->n_children, 3);
    assert_true(cfg->sequence_parallel);
    assert_string_equal(cfg->pipeline_model_parallel_layout->text, "Et*2|tL");
    assert_string_equal(cfg->cuda_device_max_connections, "1");
    assert_int_equal(cfg->cuda_graph_modules.n, 2);
    assert_int_equal(cfg->origin[RC_FIELD_num_layers].where.line, 5);
    assert_int_equal(cfg->origin[RC_FIELD_num_layers].where.col, 17);
    assert_int_equal(cfg->n_unknown, 0);
    unlink(path);
    rc_arena_close(mem);
}

static void inputs_refuse_with_word_and_column(void **state)
{
    (void)state;
    static const struct {
        const char *words[3];
        size_t n;
        int line, col;
        const char *says;
    } cases[] = {
        {{"--model"}, 1, 1, 1, "--model needs a name"},
        {{"--bf16", "--model=nothing-like-it"}, 2, 2, 9, "unknown model nothing-like-it"},
        {{"--bf16", "model.num_layers=[1"}, 2, 2, 18, "no closing ]"},
        {{"--num-layers", "two"}, 2, 2, 1, "--num-layers must be a whole number, not \"two\""},
        {{"--num-layers=two"}, 1, 1, 14, "--num-layers must be a whole number"},
        {{"--num-layers"}, 1, 1, 1, "--num-layers needs a value: a whole number"},
        {{"--bf16=true"}, 1, 1, 8, "--bf16 is a switch and takes no value; leave out =true"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rc_arena *mem = rc_arena_open();
        rc_inputs inputs;
        rc_config *cfg;
        rc_error err = {0};
        rc_code code = rc_inputs_read(cases[i].words, cases[i].n, mem, &inputs, &err);
        if (code == RC_OK)
            code = rc_config_make(inputs.at, inputs.n, mem, &cfg, &err);
        assert_int_equal(code, RC_E_INPUT);
        if (!strstr(err.msg, cases[i].says))
            fail_msg("the message is \"%s\", expected \"%s\"", err.msg, cases[i].says);
        assert_string_equal(err.where.file, "command line");
        assert_int_equal(err.where.line, cases[i].line);
        assert_int_equal(err.where.col, cases[i].col);
        rc_arena_close(mem);
    }
}

static void inputs_refuse_files_that_cannot_be_read(void **state)
{
    (void)state;
    rc_arena *mem = rc_arena_open();
    rc_inputs inputs;
    rc_error err = {0};
    const char *missing = "test_inputs_missing.yaml", *folder = ".";
    assert_int_equal(rc_inputs_read(&missing, 1, mem, &inputs, &err), RC_E_IO);
    assert_string_equal(err.where.file, missing);
    err = (rc_error){0};
    assert_int_equal(rc_inputs_read(&folder, 1, mem, &inputs, &err), RC_E_IO);
    rc_arena_close(mem);
}

static void inputs_of_settings_open_no_file(void **state)
{
    (void)state;
    rc_arena *mem = rc_arena_open();
    rc_inputs inputs;
    const char *const words[] = {"missing.yaml", "--model",      "llama3-8b", ".",
                                 "model.x=1",    "--num-layers", "4",         "missing2.yaml"};
    assert_int_equal(rc_inputs_read_settings(words, 8, mem, &inputs, NULL), RC_OK);
    assert_int_equal(inputs.n_files, 3); /* --num-layers takes one value */
    assert_string_equal(inputs.files[0], "missing.yaml");
    assert_string_equal(inputs.files[1], ".");
    assert_int_equal(inputs.n, 3);
    assert_int_equal(inputs.at[0].kind, RC_FROM_PRESET);
    assert_int_equal(inputs.at[1].kind, RC_FROM_OVERRIDE);
    assert_int_equal(inputs.at[2].kind, RC_FROM_FLAG);
    rc_arena_close(mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inputs_combine_in_order),
        cmocka_unit_test(inputs_tell_formats_by_look),
        cmocka_unit_test(inputs_read_a_functional_test),
        cmocka_unit_test(inputs_refuse_with_word_and_column),
        cmocka_unit_test(inputs_refuse_files_that_cannot_be_read),
        cmocka_unit_test(inputs_of_settings_open_no_file),
    };
    return cmocka_run_group_tests_name("inputs", tests, NULL, NULL);
}
