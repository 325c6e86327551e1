/* test_agree.c — weights are taken only for the function that their own config.json describes. */
#define _XOPEN_SOURCE 700 /* symlink */
#include "check.h"

#include <recompute/config.h>
#include <recompute/read.h>
#include <recompute/train.h>

#include "train/agree.h"
#include "train/checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_TEXT = 4096 };

static const char llama_theirs[] =
    "\"model_type\": \"llama\", \"hidden_size\": 64, \"intermediate_size\": 96, "
    "\"num_hidden_layers\": 2, \"num_attention_heads\": 4, \"vocab_size\": 300, "
    "\"rms_norm_eps\": 1e-6";

static const char llama_run[] =
    "model.num_layers=2 model.hidden_size=64 model.num_attention_heads=4 model.seq_length=64 "
    "model.ffn_hidden_size=96 model.vocab_size=300 model.normalization=RMSNorm "
    "model.layernorm_epsilon=1e-6 model.position_embedding_type=rope "
    "model.gated_linear_unit=true model.activation_func=silu model.add_bias_linear=false "
    "model.share_embeddings_and_output_weights=false";

static const struct agreement {
    const char *theirs; /* behind the sample's keys */
    const char *run;    /* behind llama_run */
    const char *said;   /* NULL: they agree */
} agreements[] = {
    {"", "", NULL},
    {"", "model.hidden_dropout=0.3 model.init_method_std=0.1 model.seq_length=8", NULL},
    {", \"num_key_value_heads\": 4", "", NULL},
    {", \"num_key_value_heads\": 2", "", "model.num_query_groups is 4 in this run"},
    {", \"num_key_value_heads\": 2", "model.num_query_groups=2", NULL},
    {", \"head_dim\": 16", "", NULL},
    {", \"head_dim\": 32", "", "model.kv_channels is 16 in this run"},
    {"", "model.num_layers=3",
     "model.num_layers is 3 in this run, but the weights are of a model with 2"},
    {"", "model.hidden_size=128 model.kv_channels=16", "model.hidden_size is 128"},
    {"", "model.num_attention_heads=8 model.num_query_groups=4 model.kv_channels=16",
     "model.num_attention_heads is 8"},
    {"", "model.vocab_size=304", "model.vocab_size is 304 in this run"},
    {"", "model.vocab_size=null", NULL},
    {"", "model.ffn_hidden_size=null", "model.ffn_hidden_size is 256 in this run"},
    {"", "model.layernorm_epsilon=1e-5", "model.layernorm_epsilon is 1e-05 in this run"},
    {"", "model.normalization=LayerNorm", "model.normalization is LayerNorm"},
    {"", "model.activation_func=gelu", "model.activation_func is gelu"},
    {"", "model.gated_linear_unit=false", "model.gated_linear_unit is false"},
    {"", "model.add_bias_linear=true", "model.add_bias_linear is true"},
    {"", "model.add_qkv_bias=true", "model.add_qkv_bias is true"},
    {"", "model.qk_layernorm=true", "model.qk_layernorm is true"},
    {"", "model.layernorm_zero_centered_gamma=true",
     "model.layernorm_zero_centered_gamma is true"},
    {"", "model.softmax_scale=0.2", "model.softmax_scale is 0.2"},
    {"", "model.softmax_scale=0.25", NULL},
    {"", "model.share_embeddings_and_output_weights=true",
     "model.share_embeddings_and_output_weights is true"},
    {", \"tie_word_embeddings\": true", "",
     "model.share_embeddings_and_output_weights is false"},
    {"", "model.position_embedding_type=learned_absolute",
     "model.position_embedding_type is learned_absolute"},
    {", \"rope_theta\": 500000.0", "",
     "model.rotary_base is 10000 in this run, but the weights are of a model with 500000"},
    {", \"rope_theta\": 500000.0", "model.rotary_base=500000", NULL},
    {"", "model.rotary_percent=0.5", "model.rotary_percent is 0.5"},
    {"", "model.rotary_interleaved=true", "model.rotary_interleaved is true"},
    {", \"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 8, \"low_freq_factor\": 1, "
     "\"high_freq_factor\": 4, \"original_max_position_embeddings\": 64}",
     "", "model.rope_scaling is false in this run, but the weights are of a model with true"},
    {", \"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 8, \"low_freq_factor\": 1, "
     "\"high_freq_factor\": 4, \"original_max_position_embeddings\": 64}",
     "model.rope_scaling=true model.rope_scaling_factor=8",
     "model.rope_scaling_original_max_position_embeddings is 8192"},
    {", \"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 8, \"low_freq_factor\": 1, "
     "\"high_freq_factor\": 4, \"original_max_position_embeddings\": 8192}",
     "model.rope_scaling=true model.rope_scaling_factor=8", NULL},
    {", \"rope_scaling\": {\"type\": \"linear\", \"factor\": 2}", "",
     "model.seq_len_interpolation_factor is null"},
    {", \"rope_scaling\": {\"type\": \"linear\", \"factor\": 1}", "", NULL},
    {"", "model.rope_scaling_factor=8", NULL}, /* read by nothing */
    {", \"max_position_embeddings\": 64, \"rope_scaling\": {\"type\": \"dynamic\", \"factor\": 2}",
     "", NULL}, /* as trained up to 64 */
    {", \"max_position_embeddings\": 64, \"rope_scaling\": {\"type\": \"dynamic\", \"factor\": 2}",
     "model.seq_length=65", "engine.rope_dynamic_factor is null"},
    {", \"rope_scaling\": {\"type\": \"yarn\", \"factor\": 4, "
     "\"original_max_position_embeddings\": 16, \"mscale\": 1, \"mscale_all_dim\": 0}",
     "model.position_embedding_type=yarn model.yarn_rotary_scaling_factor=4 "
     "model.yarn_original_max_position_embeddings=16 model.yarn_beta_fast=32 "
     "model.yarn_beta_slow=1 model.yarn_correction_range_round_to_int=true",
     NULL}, /* the same angles and size, said otherwise */
    {", \"rope_scaling\": {\"type\": \"yarn\", \"factor\": 4, "
     "\"original_max_position_embeddings\": 16, \"attention_factor\": 1.0}",
     "model.position_embedding_type=yarn model.yarn_rotary_scaling_factor=4 "
     "model.yarn_original_max_position_embeddings=16 model.yarn_beta_fast=32 "
     "model.yarn_beta_slow=1 model.yarn_correction_range_round_to_int=true",
     "engine.yarn_attention_factor is null"},
    {", \"logit_scale\": 0.5", "", "logit_scale is 0.5: unsupported"},
    {", \"made_up\": 1", "", "made_up: not known here"},
    {", \"sliding_window\": 16", "", "model.window_size: unsupported"},
    {", \"num_experts\": 4", "", "num_experts"},
};

static rc_config *read_run(const char *words, const char *more, const char *folder,
                           rc_arena *mem)
{
    char text[MOST_TEXT], start[256];
    const char *list[64];
    size_t n = 0;
    rc_config *cfg;
    rc_error err = {0};
    snprintf(text, sizeof text, "%s %s", words, more);
    snprintf(start, sizeof start, "checkpoint.pretrained_checkpoint=%s", folder);
    for (char *word = strtok(text, " "); word; word = strtok(NULL, " "))
        list[n++] = word;
    list[n++] = start;
    rc_doc *doc;
    assert_ok(rc_override_read(list, n, mem, &doc, &err));
    rc_input input = {doc, RC_FROM_OVERRIDE};
    assert_ok(rc_config_make(&input, 1, mem, &cfg, &err));
    assert_ok(rc_train_refuse_unknown(cfg, &err));
    return cfg;
}

static void write_text(const char *folder, const char *name, const char *text)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void weights_are_of_the_function_that_runs(void **state)
{
    char folder[] = "/tmp/recompute-hf-XXXXXX", text[MOST_TEXT], weights[64];
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(weights, sizeof weights, "%s/model.safetensors", folder);
    for (size_t i = 0; i < 2 * (sizeof agreements / sizeof *agreements); i++) {
        const struct agreement *row = &agreements[i / 2];
        rc_error err = {0};
        rc_arena *mem = rc_arena_open();
        snprintf(text, sizeof text, "{%s%s}", llama_theirs, row->theirs);
        write_text(folder, "config.json", text);
        const rc_config *cfg = read_run(llama_run, row->run, i % 2 ? weights : folder, mem);
        bool is_told;
        rc_code code = rc_train_agree(cfg, mem, &is_told, &err);
        assert_int_equal(is_told, code == RC_OK);
        bool is_right = row->said ? code != RC_OK && strstr(err.msg, row->said) : code == RC_OK;
        if (!is_right)
            fail_msg("%s, %s: code %d, %s", row->theirs, row->run, (int)code, err.msg);
        bool is_in_run = code == RC_E_INPUT && strstr(err.msg, "in this run");
        assert_true(!is_in_run || strstr(err.msg, "config.json:1:") ||
                    strstr(err.msg, "by default"));
        rc_arena_close(mem);
    }
    snprintf(text, sizeof text, "%s/config.json", folder);
    assert_int_equal(remove(text), 0);
    rc_arena *mem = rc_arena_open(); /* without one nothing is known, and nothing is refused */
    bool is_told;
    assert_ok(rc_train_agree(read_run(llama_run, "", folder, mem), mem, &is_told, NULL));
    assert_false(is_told);
    rc_arena_close(mem);
    assert_int_equal(remove(folder), 0);
}

/* A checkpoint of ours tells its settings in state.json; settings it does not tell are the defaults. */
static void own_checkpoints_are_of_the_function_that_runs(void **state)
{
    static const struct {
        const char *identity, *run, *said;
    } cases[] = {
        {"", "", NULL},
        {", \"model.rotary_base\": \"500000\"", "",
         "model.rotary_base is 10000 in this run, but the weights are of a model with 500000"},
        {", \"model.rotary_base\": \"500000\"", "model.rotary_base=500000", NULL},
        {", \"model.num_query_groups\": \"2\"", "", "model.num_query_groups is 4"},
        {", \"model.layernorm_zero_centered_gamma\": \"true\"", "",
         "model.layernorm_zero_centered_gamma is false"},
        {", \"engine.rope_dynamic_factor\": \"2\", \"model.max_position_embeddings\": \"8\"",
         "", "engine.rope_dynamic_factor is null"},
        {", \"model.window_size\": \"null\", \"optimizer.lr\": \"7\"", "", NULL},
    };
    static const char shape[] =
        "\"model.num_layers\": \"2\", \"model.hidden_size\": \"64\", "
        "\"model.num_attention_heads\": \"4\", \"model.ffn_hidden_size\": \"96\", "
        "\"model.normalization\": \"RMSNorm\", \"model.layernorm_epsilon\": \"1e-06\", "
        "\"model.position_embedding_type\": \"rope\", \"model.gated_linear_unit\": \"true\", "
        "\"model.activation_func\": \"silu\", \"model.add_bias_linear\": \"false\", "
        "\"model.share_embeddings_and_output_weights\": \"false\"";
    char folder[] = "/tmp/recompute-own-XXXXXX", iteration[64], path[128], text[MOST_TEXT];
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(iteration, sizeof iteration, "%s/iter_0000003", folder);
    assert_int_equal(mkdir(iteration, 0700), 0);
    write_text(folder, "latest_checkpointed_iteration.txt", "3");
    for (size_t i = 0; i < 2 * (sizeof cases / sizeof *cases); i++) {
        rc_error err = {0};
        rc_arena *mem = rc_arena_open();
        snprintf(text, sizeof text, "{\"version\": 1, \"identity\": {%s%s}}", shape,
                 cases[i / 2].identity);
        write_text(iteration, "state.json", text);
        const rc_config *cfg =
            read_run(llama_run, cases[i / 2].run, i % 2 ? iteration : folder, mem);
        bool is_told;
        rc_code code = rc_train_agree(cfg, mem, &is_told, &err);
        assert_int_equal(is_told, code == RC_OK);
        const char *said = cases[i / 2].said;
        if (said ? code != RC_E_INPUT || !strstr(err.msg, said) : code != RC_OK)
            fail_msg("%s: code %d, %s", cases[i / 2].identity, (int)code, err.msg);
        rc_arena_close(mem);
    }
    snprintf(path, sizeof path, "%s/state.json", iteration);
    assert_int_equal(remove(path), 0);
    assert_int_equal(remove(iteration), 0);
    snprintf(path, sizeof path, "%s/latest_checkpointed_iteration.txt", folder);
    assert_int_equal(remove(path), 0);
    assert_int_equal(remove(folder), 0);
}

/* Whoever trains from it believes it as little as whoever resumes from it: here a setting was edited
 * to what the run wants. */
static void a_state_that_was_edited_tells_nothing(void **state)
{
    static const rc_same identity[] = {
        {"model.num_layers", "2", NULL},
        {"model.hidden_size", "64", NULL},
        {"model.num_attention_heads", "4", NULL},
        {"model.ffn_hidden_size", "96", NULL},
        {"model.normalization", "RMSNorm", NULL},
        {"model.layernorm_epsilon", "1e-06", NULL},
        {"model.position_embedding_type", "rope", NULL},
        {"model.gated_linear_unit", "true", NULL},
        {"model.activation_func", "silu", NULL},
        {"model.add_bias_linear", "false", NULL},
        {"model.share_embeddings_and_output_weights", "false", NULL},
        {"model.rotary_base", "20000", NULL},
    };
    static const rc_file_seal seals[RC_CHECKPOINT_FILES];
    char folder[] = "/tmp/recompute-seal-XXXXXX", path[64], text[MOST_TEXT] = "";
    rc_state saved = {
        .identity = identity, .n_identity = sizeof identity / sizeof *identity, .n_global = 1};
    rc_error err = {0};
    rc_arena *mem = rc_arena_open();
    bool is_told;
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/state.json", folder);
    assert_ok(rc_state_write(path, &saved, seals, mem, &err));
    const rc_config *cfg = read_run(llama_run, "model.rotary_base=20000", folder, mem);
    assert_ok(rc_train_agree(cfg, mem, &is_told, &err));
    assert_true(is_told);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_true(fread(text, 1, sizeof text - 1, file) > 0);
    fclose(file);
    char *digit = strstr(text, "\"20000\"");
    assert_non_null(digit);
    digit[1] = '1';
    write_text(folder, "state.json", text);
    cfg = read_run(llama_run, "", folder, mem);
    assert_int_equal(rc_train_agree(cfg, mem, &is_told, &err), RC_E_INPUT);
    assert_non_null(strstr(err.msg, "was changed or damaged after it was written"));
    assert_int_equal(remove(path), 0);
    assert_int_equal(remove(folder), 0);
    rc_arena_close(mem);
}

/* A link to itself stands for all that is there and cannot be looked at. */
static void a_config_that_cannot_be_looked_at_is_an_error(void **state)
{
    static const char *const names[] = {"config.json", "state.json"};
    char folder[] = "/tmp/recompute-loop-XXXXXX", path[64];
    (void)state;
    assert_non_null(mkdtemp(folder));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        rc_error err = {0};
        rc_arena *mem = rc_arena_open();
        bool is_told;
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        assert_int_equal(symlink(names[i], path), 0);
        const rc_config *cfg = read_run(llama_run, "", folder, mem);
        assert_int_equal(rc_train_agree(cfg, mem, &is_told, &err), RC_E_IO);
        assert_non_null(strstr(err.msg, "cannot look at it"));
        assert_string_equal(err.where.file, path);
        assert_int_equal(remove(path), 0);
        rc_arena_close(mem);
    }
    assert_int_equal(remove(folder), 0);
}

/* A config.json that does not look like one is one all the same where weights lie beside it. */
static void any_config_beside_weights_is_judged(void **state)
{
    static const char *const texts[] = {
        "{}", "[]", "7", "{\"hidden_size\": 64}", "{\"num_layers\": 2}", "{"};
    char folder[] = "/tmp/recompute-any-XXXXXX", path[64];
    (void)state;
    assert_non_null(mkdtemp(folder));
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        rc_arena *mem = rc_arena_open();
        write_text(folder, "config.json", texts[i]);
        bool is_told;
        const rc_config *cfg = read_run(llama_run, "", folder, mem);
        rc_code code = rc_train_agree(cfg, mem, &is_told, NULL);
        assert_true(code == RC_E_INPUT || code == RC_E_UNSUPPORTED);
        rc_arena_close(mem);
    }
    snprintf(path, sizeof path, "%s/config.json", folder);
    assert_int_equal(remove(path), 0);
    assert_int_equal(remove(folder), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_are_of_the_function_that_runs),
        cmocka_unit_test(own_checkpoints_are_of_the_function_that_runs),
        cmocka_unit_test(a_state_that_was_edited_tells_nothing),
        cmocka_unit_test(a_config_that_cannot_be_looked_at_is_an_error),
        cmocka_unit_test(any_config_beside_weights_is_judged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
