/* test_hf.c — a config.json of Hugging Face is trained from only where every key is understood. */
#include "check.h"

#include <recompute/config.h>
#include <recompute/read.h>
#include <recompute/train.h>

#include "train/fates.h"

#include <stdio.h>
#include <string.h>

enum { MOST_TEXT = 4096 };

/* What training says of a document: an error of reading it, or what is refused. */
static rc_code judge_doc(rc_doc *doc, rc_arena *mem, rc_config **cfg, rc_error *err)
{
    rc_input input = {doc, RC_FROM_FILE};
    RC_TRY(rc_config_make(&input, 1, mem, cfg, err));
    (*cfg)->origin[RC_FIELD_bf16].node = (*cfg)->origin[RC_FIELD_fp16].node = NULL;
    (*cfg)->origin[RC_FIELD_params_dtype].node = NULL; /* as overrides to float32 would */
    return rc_train_refuse_run(*cfg, err);
}

/* Does `name=value`, or every such word, hold in the config? */
static bool has_settings(const rc_config *cfg, const char *words, rc_arena *mem)
{
    char word[80], name[80];
    const char *shown;
    int n_read;
    for (; sscanf(words, "%79s%n", word, &n_read) == 1; words += n_read) {
        size_t n = strcspn(word, "=");
        snprintf(name, sizeof name, "%.*s", (int)n, word);
        assert_int_not_equal(rc_field_find_name(name), RC_FIELD_COUNT);
        assert_ok(rc_config_show(cfg, rc_field_find_name(name), mem, &shown, NULL));
        if (strcmp(shown, word + n + 1) != 0 && word[n]) {
            print_error("%s is %s\n", name, shown);
            return false;
        }
    }
    return true;
}

/* "a|b": one of the words. */
static bool names_one(const char *text, const char *words)
{
    char word[80];
    for (; *words; words += *words == '|') {
        size_t n = strcspn(words, "|");
        snprintf(word, sizeof word, "%.*s", (int)n, words);
        if (strstr(text, word))
            return true;
        words += n;
    }
    return false;
}

static bool judge_file(const char *name, const char *verdict, const char *rest)
{
    char path[512];
    rc_error err = {0};
    rc_doc *doc;
    rc_arena *mem = rc_arena_open();
    snprintf(path, sizeof path, RC_SOURCE_DIR "/tests/hf/%s.json", name);
    assert_ok(rc_doc_read(path, mem, &doc, &err));
    rc_config *cfg;
    rc_code code = judge_doc(doc, mem, &cfg, &err);
    bool is_right = strcmp(verdict, "ok") == 0
                        ? code == RC_OK && has_settings(cfg, rest, mem)
                        : code == RC_E_UNSUPPORTED && names_one(err.msg, rest) &&
                              err.where.line > 0 && err.where.col > 0;
    if (!is_right)
        print_error("%s: %s %s: code %d at %d:%d, %s\n", name, verdict, rest, (int)code,
                    err.where.line, err.where.col, err.msg);
    rc_arena_close(mem);
    return is_right;
}

static void public_forms_are_judged_as_expected(void **state)
{
    (void)state;
    int n = 0, n_right = 0;
    char line[256], name[80], verdict[20];
    FILE *list = fopen(RC_SOURCE_DIR "/tests/hf/cases.txt", "r");
    assert_non_null(list);
    while (fgets(line, sizeof line, list)) {
        int n_read = 0;
        line[strcspn(line, "\n")] = '\0';
        if (line[0] == '#' || sscanf(line, "%79s %19s%n", name, verdict, &n_read) != 2)
            continue;
        n++;
        n_right += judge_file(name, verdict, line + n_read + strspn(line + n_read, " "));
    }
    fclose(list);
    assert_int_not_equal(n, 0);
    assert_int_equal(n_right, n);
}

/* --- near misses: every row of hf_keys.def */

enum {
    NONE = 0,
    LLAMA = 1,
    MISTRAL = 2,
    QWEN2 = 4,
    QWEN3 = 8,
    GRANITE = 16,
    GPT2 = 32,
    ANY = 63
};

/* The least config.json of each style that is computed. */
static const struct sample {
    unsigned styles;
    const char *keys;
} samples[] = {
#define SHAPE                                                                                  \
    "\"hidden_size\": 64, \"intermediate_size\": 96, \"num_hidden_layers\": 2, "               \
    "\"num_attention_heads\": 4, \"vocab_size\": 300, \"rms_norm_eps\": 1e-6"
    {LLAMA, "\"model_type\": \"llama\", " SHAPE},
    {MISTRAL,
     "\"model_type\": \"mistral\", \"num_key_value_heads\": 2, \"sliding_window\": null, " SHAPE},
    {QWEN2,
     "\"model_type\": \"qwen2\", \"num_key_value_heads\": 2, \"rope_theta\": 1e6, " SHAPE},
    {QWEN3, "\"model_type\": \"qwen3\", \"num_key_value_heads\": 2, \"head_dim\": null, "
            "\"rope_parameters\": {\"rope_theta\": 1e6}, " SHAPE},
    {GRANITE, "\"model_type\": \"granite\", \"attention_multiplier\": 0.5, " SHAPE},
    {GPT2,
     "\"model_type\": \"gpt2\", \"n_embd\": 64, \"n_layer\": 2, \"n_head\": 4, \"vocab_size\": 300"},
};
enum { N_SAMPLES = sizeof samples / sizeof *samples };

static const struct sample *sample_of(unsigned styles)
{
    for (size_t i = 0; i < N_SAMPLES; i++)
        if (samples[i].styles & styles)
            return &samples[i];
    fail_msg("no sample of styles %u", styles);
    return NULL;
}

/* What training says of a text; the config in *cfg. */
static rc_code judge_text(const char *text, rc_arena *mem, rc_config **cfg, rc_error *err)
{
    rc_doc *doc, root = {.kind = RC_DOC_MAP};
    assert_ok(rc_json_read("config.json", text, strlen(text), mem, &doc, err));
    rc_doc_add(&root, "hf_config", doc->where, doc);
    return judge_doc(&root, mem, cfg, err);
}

/* The sample without its own `key` and with key: value; value NULL leaves it out. */
static rc_code judge_key(const struct sample *of, const char *key, const char *value,
                         rc_error *err)
{
    char text[MOST_TEXT], quoted[80];
    rc_config *cfg;
    rc_arena *mem = rc_arena_open();
    size_t n = (size_t)snprintf(text, sizeof text, "{%s", of->keys);
    snprintf(quoted, sizeof quoted, "\"%s\": ", key);
    char *own = strstr(text, quoted);
    if (own) {
        char *end = strchr(own, own[strlen(quoted)] == '{' ? '}' : ',');
        end = end ? end + 1 + strspn(end + 1, ", ") : text + n;
        memmove(own, end, strlen(end) + 1);
        n = strlen(text);
        while (text[n - 1] == ' ' || text[n - 1] == ',')
            text[--n] = '\0';
    }
    if (value)
        n += (size_t)snprintf(text + n, sizeof text - n, ",\n%s%s", quoted, value);
    snprintf(text + n, sizeof text - n, "}");
    rc_code code = judge_text(text, mem, &cfg, err);
    rc_arena_close(mem);
    return code;
}

static void must_take(const struct sample *of, const char *key, const char *value)
{
    rc_error err = {0};
    if (judge_key(of, key, value, &err) != RC_OK)
        fail_msg("%s: %s was refused: %s", key, value, err.msg);
}

static void must_refuse(const struct sample *of, const char *key, const char *value)
{
    rc_error err = {0};
    rc_code code = judge_key(of, key, value, &err);
    bool is_refused = code == RC_E_UNSUPPORTED || code == RC_E_INPUT; /* or of another type */
    if (!is_refused || !strstr(err.msg, key) || (value && err.where.line != 2))
        fail_msg("%s: %s: code %d at line %d, %s", key, value ? value : "missing", (int)code,
                 err.where.line, err.msg);
}

static const struct key_row {
    unsigned styles;
    const char *key, *how, *value, *why;
} key_rows[] = {
#define RC_HF_FAMILY(name, styles, why)
#define RC_HF_NEED(styles, key, null)
#define RC_HF_ROPE_NEED(type, key)
#define RC_HF_KEY(styles, key, how, value, why) {styles, key, #how, value, why},
#include "defs/hf_keys.def"
#undef RC_HF_FAMILY
#undef RC_HF_NEED
#undef RC_HF_KEY
};

/* A value of the row as JSON: words in quotes. */
static void quote(const char *value, char out[80])
{
    bool is_bare = strcmp(value, "true") == 0 || strcmp(value, "false") == 0 ||
                   strcmp(value, "null") == 0 || strspn(value, "0123456789.") == strlen(value);
    snprintf(out, 80, is_bare ? "%s" : "\"%s\"", value);
}

static void every_key_is_taken_at_its_value_alone(void **state)
{
    static const char *const others[] = {"7.5", "\"odd\"", "[7]", "{\"a\": 1}"};
    (void)state;
    for (size_t i = 0; i < sizeof key_rows / sizeof *key_rows; i++) {
        const struct key_row *row = &key_rows[i];
        const struct sample *of = sample_of(row->styles);
        bool is_only = strcmp(row->how, "ONLY") == 0;
        char value[80], list[180];
        if (strcmp(row->how, "HARMLESS") == 0) {
            assert_true(*row->why);
            for (size_t k = 0; k < 4; k++)
                must_take(of, row->key, others[k]);
            must_take(of, row->key, "null");
        } else if (is_only || strcmp(row->how, "NULL_OR") == 0) {
            assert_true(*row->why);
            quote(row->value, value);
            snprintf(list, sizeof list, "[%s, %s]", value, value);
            must_take(of, row->key, value);
            if (strcmp(row->key, "layer_types") == 0)
                must_take(of, row->key, list);
            for (size_t k = 0; k < 4; k++)
                must_refuse(of, row->key, others[k]);
            snprintf(list, sizeof list, "[%s, 7]", value);
            must_refuse(of, row->key, list);
            if (is_only)
                must_refuse(of, row->key, "null");
            else
                must_take(of, row->key, "null");
        }
    }
}

static void unknown_keys_are_refused(void **state)
{
    static const char *const unknown[] = {"hidden_sizes", "moe_every", "n_embd",
                                          "rotary_dim",   "attn_bias", "Rope_theta",
                                          "text_config",  ""};
    (void)state;
    for (size_t i = 0; i < N_SAMPLES; i++)
        for (size_t k = 0; k < sizeof unknown / sizeof *unknown; k++)
            if (samples[i].styles != GPT2 || strcmp(unknown[k], "n_embd") != 0)
                must_refuse(&samples[i], unknown[k], "{\"hidden_size\": 3}");
}

static void keys_that_a_class_would_fill_in_are_needed(void **state)
{
    static const struct {
        unsigned styles;
        const char *key;
        bool may_be_null;
    } rows[] = {
#define NO_NULL false
#define WITH_NULL true
#define RC_HF_FAMILY(name, styles, why)
#define RC_HF_NEED(styles, key, null) {styles, key, null},
#define RC_HF_KEY(styles, key, how, value, why)
#include "defs/hf_keys.def"
#undef RC_HF_FAMILY
#undef RC_HF_NEED
#undef RC_HF_KEY
#undef NO_NULL
#undef WITH_NULL
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t k = 0; k < N_SAMPLES; k++) {
            bool is_in_map =
                samples[k].styles == QWEN3 && strcmp(rows[i].key, "rope_theta") == 0;
            if (!(samples[k].styles & rows[i].styles))
                continue;
            if (!is_in_map)
                must_refuse(&samples[k], rows[i].key, NULL);
            if (rows[i].may_be_null)
                must_take(&samples[k], rows[i].key, "null");
            else if (!is_in_map)
                must_refuse(&samples[k], rows[i].key, "null");
        }
    rc_error err = {0};
    assert_int_equal(judge_key(sample_of(QWEN3), "rope_parameters", NULL, &err),
                     RC_E_UNSUPPORTED);
    assert_non_null(strstr(err.msg, "rope_theta is missing"));
}

static void families_are_taken_or_refused_by_name(void **state)
{
    static const struct {
        const char *name;
        unsigned styles;
        const char *why;
    } rows[] = {
#define RC_HF_FAMILY(name, styles, why) {name, styles, why},
#define RC_HF_NEED(styles, key, null)
#define RC_HF_KEY(styles, key, how, value, why)
#include "defs/hf_keys.def"
#undef RC_HF_FAMILY
#undef RC_HF_NEED
#undef RC_HF_KEY
#undef RC_HF_ROPE_NEED
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char quoted[80], said[80];
        rc_error err = {0};
        snprintf(quoted, sizeof quoted, "\"%s\"", rows[i].name);
        snprintf(said, sizeof said, "model_type is %s: ", rows[i].name);
        assert_true((rows[i].styles == NONE) == (*rows[i].why != '\0'));
        rc_code code = judge_key(&samples[0], "model_type", quoted, &err);
        if (rows[i].styles == NONE && (code != RC_E_UNSUPPORTED || !strstr(err.msg, said)))
            fail_msg("%s: code %d, %s", rows[i].name, (int)code, err.msg);
    }
    for (size_t i = 0; i < N_SAMPLES; i++)
        must_take(&samples[i], "use_cache", "true");
    must_refuse(&samples[0], "model_type", "\"llama5\"");
    must_refuse(&samples[0], "model_type", "\"Llama\"");
    must_refuse(&samples[0], "model_type", "7");
    must_refuse(&samples[0], "model_type", "\"llama\\u0000\"");
    must_refuse(&samples[0], "model_type", NULL);
}

/* --- rope_scaling */

static const struct rope_row {
    const char *value, *settings; /* settings NULL: refused */
} rope_rows[] = {
    {"null", "rope_scaling=false position_embedding_type=rope"},
    {"{}", "rope_scaling=false"},
    {"{\"rope_type\": \"default\"}", "rope_scaling=false rotary_base=10000"},
    {"{\"rope_theta\": 50000.0}", "rotary_base=50000"},
    {"{\"type\": \"linear\", \"factor\": 2}", "seq_len_interpolation_factor=2"},
    {"{\"rope_type\": \"linear\", \"type\": \"linear\", \"factor\": 2.5}",
     "seq_len_interpolation_factor=2.5"},
    {"{\"type\": \"dynamic\", \"factor\": 2, \"rope_theta\": 7000}",
     "rope_dynamic_factor=2 rotary_base=7000"},
    {"{\"rope_type\": \"llama3\", \"factor\": 8, \"low_freq_factor\": 1, \"high_freq_factor\": 4, "
     "\"original_max_position_embeddings\": 8192}",
     "rope_scaling=true rope_scaling_factor=8 rope_scaling_low_freq_factor=1 "
     "rope_scaling_high_freq_factor=4 rope_scaling_original_max_position_embeddings=8192"},
    {"{\"type\": \"yarn\", \"factor\": 4, \"original_max_position_embeddings\": 64}",
     "position_embedding_type=yarn yarn_rotary_scaling_factor=4 yarn_beta_fast=32 "
     "yarn_beta_slow=1 yarn_original_max_position_embeddings=64 "
     "yarn_correction_range_round_to_int=true yarn_mscale=null yarn_mscale_all_dim=null "
     "yarn_attention_factor=null"},
    {"{\"type\": \"yarn\", \"factor\": 4, \"original_max_position_embeddings\": 64, "
     "\"beta_fast\": 16, \"beta_slow\": 2, \"truncate\": false, \"attention_factor\": 1.5, "
     "\"finetuned\": true}",
     "yarn_beta_fast=16 yarn_beta_slow=2 yarn_correction_range_round_to_int=false "
     "yarn_attention_factor=1.5"},
    {"{\"type\": \"yarn\", \"factor\": 4, \"original_max_position_embeddings\": 64, "
     "\"beta_fast\": null, \"mscale\": 0.7, \"mscale_all_dim\": 0.0}",
     "yarn_beta_fast=32 yarn_mscale=0.7 yarn_mscale_all_dim=null"},
    {"{\"type\": \"yarn\", \"factor\": 4, \"original_max_position_embeddings\": 64, "
     "\"mscale\": 0.7, \"mscale_all_dim\": 1}",
     "yarn_mscale=0.7 yarn_mscale_all_dim=1"},
    {"{\"type\": \"linear\"}", NULL},
    {"{\"type\": \"linear\", \"factor\": null}", NULL},
    {"{\"type\": \"linear\", \"factor\": 2, \"low_freq_factor\": 1}", NULL},
    {"{\"type\": \"dynamic\", \"factor\": 2, \"alpha\": 1000}", NULL},
    {"{\"type\": \"dynamic\"}", NULL},
    {"{\"type\": \"linear\", \"rope_type\": \"dynamic\", \"factor\": 2}", NULL},
    {"{\"rope_type\": \"llama3\", \"factor\": 8, \"low_freq_factor\": 1, \"high_freq_factor\": 4}",
     NULL},
    {"{\"rope_type\": \"llama3\", \"factor\": 8, \"high_freq_factor\": 4, "
     "\"original_max_position_embeddings\": 8192}",
     NULL},
    {"{\"type\": \"yarn\", \"factor\": 4}", NULL},
    {"{\"type\": \"yarn\", \"original_max_position_embeddings\": 64}", NULL},
    {"{\"type\": \"yarn\", \"factor\": 4, \"original_max_position_embeddings\": 64, \"extra\": 1}",
     NULL},
    {"{\"type\": \"longrope\", \"factor\": 4}", NULL},
    {"{\"type\": \"su\", \"factor\": 4}", NULL},
    {"{\"type\": \"proportional\", \"factor\": 4}", NULL},
    {"{\"type\": \"mrope\", \"mrope_section\": [1, 1, 2]}", NULL},
    {"{\"rope_type\": \"default\", \"mrope_section\": [1, 1, 2]}", NULL},
    {"{\"rope_type\": \"default\", \"factor\": 2}", NULL},
    {"{\"factor\": 2}", NULL},
    {"{\"rope_type\": \"default\", \"rms_norm_eps\": 1e-3}", NULL},
    {"{\"type\": \"linear\", \"factor\": 2, \"hidden_size\": 8}", NULL},
    {"{\"type\": 3, \"factor\": 2}", NULL},
    {"{\"type\": \"llama3.factor\", \"factor\": 2}", NULL},
    {"{\"rope_type\": \"default\", \"partial_rotary_factor\": 0.5}", NULL},
    {"{\"full_attention\": {\"rope_theta\": 1}, \"sliding_attention\": {\"rope_theta\": 2}}",
     NULL},
    {"\"linear\"", NULL},
    {"2.0", NULL},
};

static void rotary_scaling_is_read_by_its_type(void **state)
{
    static const char *const names[] = {"rope_scaling", "rope_parameters"};
    (void)state;
    for (size_t i = 0; i < 2 * (sizeof rope_rows / sizeof *rope_rows); i++) {
        const struct rope_row *row = &rope_rows[i / 2];
        char text[MOST_TEXT];
        rc_error err = {0};
        rc_config *cfg;
        rc_arena *mem = rc_arena_open();
        snprintf(text, sizeof text, "{%s, \"%s\": %s}", samples[0].keys, names[i % 2],
                 row->value);
        rc_code code = judge_text(text, mem, &cfg, &err);
        bool is_right = row->settings ? code == RC_OK && has_settings(cfg, row->settings, mem)
                                      : code == RC_E_UNSUPPORTED;
        assert_true(row->settings || err.where.line == 1);
        if (!is_right)
            fail_msg("%s: code %d, %s", text, (int)code, err.msg);
        rc_arena_close(mem);
    }
}

static void two_answers_to_one_question_are_refused(void **state)
{
    static const struct {
        const char *more;
        bool is_taken;
    } cases[] = {
        {"\"rope_theta\": 5e5, \"rope_parameters\": {\"rope_theta\": 500000}", true},
        {"\"rope_theta\": 5e5, \"rope_parameters\": {\"rope_theta\": 10000}", false},
        {"\"rope_theta\": null, \"rope_parameters\": {\"rope_theta\": 10000}", true},
        {"\"rope_scaling\": {\"type\": \"linear\", \"factor\": 2}, "
         "\"rope_parameters\": {\"rope_theta\": 10000}",
         false},
        {"\"rope_scaling\": null, \"rope_parameters\": {\"rope_theta\": 10000}", true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[MOST_TEXT];
        rc_error err = {0};
        rc_config *cfg;
        rc_arena *mem = rc_arena_open();
        snprintf(text, sizeof text, "{%s, %s}", samples[0].keys, cases[i].more);
        rc_code code = judge_text(text, mem, &cfg, &err);
        if (code != (cases[i].is_taken ? RC_OK : RC_E_UNSUPPORTED))
            fail_msg("%s: code %d, %s", cases[i].more, (int)code, err.msg);
        rc_arena_close(mem);
    }
    static const char *const windows[] = {"0", "-1", "0.5", "true", "\"all\"", "[4]"};
    for (size_t i = 0; i < sizeof windows / sizeof *windows; i++)
        must_refuse(sample_of(MISTRAL), "sliding_window", windows[i]);
    must_refuse(sample_of(GPT2), "embd_pdrop", "0.1, \"resid_pdrop\": 0.2");
    must_take(sample_of(GPT2), "embd_pdrop", "0.1, \"resid_pdrop\": 0.1");
}

static void activations_are_mapped_or_refused(void **state)
{
    static const struct {
        const char *value, *field;
    } cases[] = {
        {"silu", "activation_func=silu"},
        {"swish", "activation_func=silu"},
        {"gelu", "activation_func=gelu"},
        {"gelu_new", "activation_func=gelu_tanh"},
        {"gelu_pytorch_tanh", "activation_func=gelu_tanh"},
        {"relu", "activation_func=relu"},
        {"relu2", "activation_func=squared_relu"},
        {"quick_gelu", NULL},
        {"gelu_10", NULL},
        {"tanh", NULL},
        {"xielu", NULL},
    };
    (void)state;
    for (size_t i = 0; i < 2 * (sizeof cases / sizeof *cases); i++) {
        char text[MOST_TEXT];
        const char *value = cases[i / 2].value, *field = cases[i / 2].field;
        rc_error err = {0};
        rc_config *cfg;
        rc_arena *mem = rc_arena_open();
        snprintf(text, sizeof text, "{%s, \"%s\": \"%s\"}",
                 sample_of(i % 2 ? GPT2 : LLAMA)->keys,
                 i % 2 ? "activation_function" : "hidden_act", value);
        rc_code code = judge_text(text, mem, &cfg, &err);
        if (field ? code != RC_OK || !has_settings(cfg, field, mem) : code != RC_E_UNSUPPORTED)
            fail_msg("%s: code %d, %s", text, (int)code, err.msg);
        rc_arena_close(mem);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(public_forms_are_judged_as_expected),
        cmocka_unit_test(every_key_is_taken_at_its_value_alone),
        cmocka_unit_test(unknown_keys_are_refused),
        cmocka_unit_test(keys_that_a_class_would_fill_in_are_needed),
        cmocka_unit_test(families_are_taken_or_refused_by_name),
        cmocka_unit_test(rotary_scaling_is_read_by_its_type),
        cmocka_unit_test(two_answers_to_one_question_are_refused),
        cmocka_unit_test(activations_are_mapped_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
