/* test_fates_run.c — the rows say the truth: a used setting changes something, a harmless one no bit. */
#include "fates_cases.h"

/* --- harmless */

static const char *harmless_value(rc_field field)
{
    const rc_field_facts *facts = rc_field_find(field);
    switch (facts->type) {
    case RC_FIELD_TYPE_BOOL:
        return strcmp(facts->dflt, "true") == 0 ? "false" : "true";
    case RC_FIELD_TYPE_INT:
        return "3";
    case RC_FIELD_TYPE_REAL:
        return "0.37";
    case RC_FIELD_TYPE_BYTES:
        return "3GB";
    case RC_FIELD_TYPE_STR:
        return "word";
    case RC_FIELD_TYPE_LIST:
    case RC_FIELD_TYPE_RAW:
        break;
    }
    return "[word]";
}

static void need_same_bits(const char *const *words, size_t n, const char *right)
{
    char *out = run_well(words, n);
    if (strcmp(out, right) != 0)
        fail_msg("%s %s is not harmless", words[0], n > 1 ? words[1] : "");
    free(out);
}

static void every_harmless_field_moves_no_bit(void **state)
{
    size_t n_tried = 0;
    char *right = run_well(NULL, 0);
    (void)state;
    for (int i = 0; i < RC_FIELD_COUNT; i++) {
        char word[200];
        const char *words[] = {word};
        if (rule_of_field((rc_field)i).kind != RC_FATE_HARMLESS)
            continue;
        snprintf(word, sizeof word, "%s=%s", rc_field_key((rc_field)i),
                 harmless_value((rc_field)i));
        need_same_bits(words, 1, right);
        n_tried++;
    }
    free(right);
    assert_true(n_tried > 130);
}

/* All at once, since no field holds them: a map of them is passed over, or one is not. */
static void every_harmless_key_is_passed_over(void **state)
{
    size_t n, n_words = 0;
    const rule *rules = list_rules(&n);
    char *right = run_well(NULL, 0);
    static char text[600][180];
    const char *words[600];
    (void)state;
    for (size_t i = 0; i < n; i++) {
        const char *key = rules[i].ask->key;
        bool is_key = has_section(rules[i].ask) && !is_family(rules[i].ask) &&
                      strncmp(strchr(key, '.'), "._", 2) != 0;
        if (!is_key || rules[i].kind != RC_FATE_HARMLESS)
            continue;
        rc_field field = RC_FIELD_COUNT;
        for (int k = 0; k < RC_FIELD_COUNT; k++)
            if (strcmp(rc_field_key((rc_field)k), key) == 0)
                field = (rc_field)k;
        if (field != RC_FIELD_COUNT)
            continue;
        assert_true(n_words < 600);
        snprintf(text[n_words], sizeof text[0], "%s=7", key);
        words[n_words] = text[n_words];
        n_words++;
    }
    assert_true(n_words > 250);
    need_same_bits(words, n_words, right);
    free(right);
}

static void every_harmless_argument_is_passed_over(void **state)
{
    size_t n_tried = 0;
    char *right = run_well(NULL, 0);
    static char text[600][100];
    const char *words[1200];
    size_t n_words = 0;
    (void)state;
    for (size_t i = 0; i < rc_flag_count(); i++) {
        rc_arena *mem = rc_arena_open();
        const rc_flag *flag = rc_flag_at(i);
        const rule row = is_no_field(flag, mem) ? rule_of_argument(flag->name) : (rule){0};
        if (row.ask && row.kind == RC_FATE_HARMLESS) {
            assert_true(n_tried < 600);
            const char *two[2];
            size_t n = words_of(flag, *flag->choices ? NULL : "7", text[n_tried++], two);
            words[n_words++] = two[0];
            if (n == 2 && *flag->choices)
                n_words--; /* each has choices of its own: tried below */
            else if (n == 2)
                words[n_words++] = two[1];
        }
        rc_arena_close(mem);
    }
    assert_true(n_tried > 350);
    /* a line of arguments has defaults of its own: compared with such a line */
    const char *plain[] = {"--log-throughput"};
    char *of_line = run_well(plain, 1);
    need_same_bits(words, n_words, of_line);
    free(of_line);
    free(right);
}

/* --- used */

#define LLAMA_3                                                                                \
    "model.position_embedding_type=rope model.rope_scaling=true model.rope_scaling_factor=8 "  \
    "model.rope_scaling_original_max_position_embeddings=8 model.kv_channels=16"
#define YARN                                                                                   \
    "model.position_embedding_type=yarn model.yarn_rotary_scaling_factor=4 "                   \
    "model.yarn_original_max_position_embeddings=64 model.yarn_beta_fast=8 "                   \
    "model.yarn_beta_slow=1 model.kv_channels=16 "                                             \
    "model.yarn_correction_range_round_to_int=true"
static const struct used {
    const char *set;    /* the field's key and another value than the base has */
    const char *beside; /* what else must stand for it to be read, words parted by spaces */
} used[] = {
    {"model.num_layers=1", ""},
    {"model.hidden_size=16", ""},
    {"model.num_attention_heads=4", ""},
    {"model.num_query_groups=1", ""},
    {"model.kv_channels=6", ""},
    {"model.ffn_hidden_size=20", ""},
    {"model.seq_length=4", ""},
    {"model.vocab_size=300", ""},
    {"model.layernorm_zero_centered_gamma=true", ""},
    {"model.softmax_scale=0.9", ""},
    {"model.rope_scaling=true",
     "model.position_embedding_type=rope model.rope_scaling_factor=8 model.kv_channels=16 "
     "model.rope_scaling_original_max_position_embeddings=8"},
    {"model.rope_scaling_factor=4", LLAMA_3},
    {"model.rope_scaling_low_freq_factor=2", LLAMA_3},
    {"model.rope_scaling_high_freq_factor=9", LLAMA_3},
    {"model.rope_scaling_original_max_position_embeddings=64", LLAMA_3},
    {"model.seq_len_interpolation_factor=2", "model.position_embedding_type=rope"},
    {"model.yarn_rotary_scaling_factor=8", YARN},
    {"model.yarn_original_max_position_embeddings=8", YARN},
    {"model.yarn_beta_fast=3", YARN},
    {"model.yarn_beta_slow=5", YARN},
    {"model.yarn_mscale=3", YARN " model.yarn_mscale=1 model.yarn_mscale_all_dim=2"},
    {"model.yarn_mscale_all_dim=3", YARN " model.yarn_mscale=1 model.yarn_mscale_all_dim=2"},
    {"model.yarn_correction_range_round_to_int=false", YARN},
    {"engine.yarn_attention_factor=3", YARN},
    {"engine.rope_dynamic_factor=4",
     "model.position_embedding_type=rope model.max_position_embeddings=4"},
    {"model.make_vocab_size_divisible_by=128", ""},
    {"model.normalization=RMSNorm", ""},
    {"model.layernorm_epsilon=0.1", ""},
    {"model.position_embedding_type=rope", ""},
    {"model.rotary_base=50", "model.position_embedding_type=rope"},
    {"model.rotary_percent=0.5", "model.position_embedding_type=rope"},
    {"model.rotary_interleaved=true", "model.position_embedding_type=rope"},
    {"model.gated_linear_unit=true", ""},
    {"model.activation_func=silu", ""},
    {"model.add_bias_linear=false", ""},
    {"model.add_qkv_bias=true", "model.add_bias_linear=false"},
    {"model.qk_layernorm=true", ""},
    {"model.share_embeddings_and_output_weights=false", ""},
    {"model.attention_backend=unfused", ""},
    {"model.attention_dropout=0.3", ""},
    {"model.hidden_dropout=0.3", ""},
    {"model.init_method_std=0.3", ""},
    {"model.recompute_granularity=selective", ""},
    {"model.recompute_method=block",
     "model.recompute_granularity=full "
     "model.recompute_num_layers=1 model.recompute_method=uniform"},
    {"model.recompute_num_layers=2",
     "model.recompute_granularity=full model.recompute_method=uniform "
     "model.recompute_num_layers=1"},
    {"model.recompute_modules=[mlp]", "model.recompute_granularity=selective"},
    {"--recompute-activations", "--log-throughput"},
    {"--group-query-attention", "--num-query-groups 1"},
    {"--use-rotary-position-embeddings", "--log-throughput"},
    {"model.max_position_embeddings=4", ""},
    {"model.calculate_per_token_loss=true", "dataset.eod_mask_loss=true"},
    {"train.train_iters=2", ""},
    {"train.micro_batch_size=1", ""},
    {"train.global_batch_size=2", ""},
    {"train.eval_interval=1", ""},
    {"train.eval_iters=2", ""},
    {"train.exit_interval=2", ""},
    {"optimizer.lr=0.02", ""},
    {"optimizer.min_lr=0.005", ""},
    {"optimizer.weight_decay=0.9", "optimizer.lr=0.3"},
    {"optimizer.adam_beta1=0.1", ""},
    {"optimizer.adam_beta2=0.1", ""},
    {"optimizer.adam_eps=0.1", ""},
    {"optimizer.clip_grad=0.1", "optimizer.adam_eps=0.1"},
    {"scheduler.lr_decay_style=constant", ""},
    {"scheduler.lr_decay_iters=2", ""},
    {"scheduler.lr_warmup_iters=2", ""},
    {"scheduler.lr_warmup_fraction=0.9", "scheduler.lr_warmup_iters=0"},
    {"scheduler.lr_warmup_init=0.001", ""},
    {"scheduler.lr_wsd_decay_style=linear",
     "scheduler.lr_decay_style=WSD scheduler.lr_wsd_decay_iters=2"},
    {"scheduler.lr_wsd_decay_iters=1",
     "scheduler.lr_decay_style=WSD scheduler.lr_wsd_decay_iters=2"},
    {"dataset.data_path=[/none]", ""},
    {"dataset.split='60,40'", ""},
    {"dataset.random_seed=5", ""},
    {"dataset.sequence_length=16", ""},
    {"dataset.eod_mask_loss=true", "dataset.split='1,0' model.seq_length=1024"},
    {"checkpoint.save=@/saved", ""},
    {"checkpoint.save_interval=1", "checkpoint.save=@/often"},
    {"checkpoint.load=@/saved", ""},
    {"checkpoint.pretrained_checkpoint=@/none", ""},
    {"logger.log_interval=1", ""},
    {"rng.seed=5", ""},
    {"engine.memory_budget=1GB", ""},
    {"engine.threads=2", ""},
    {"engine.eod_id=97", "dataset.data_path=[@/ids] model.vocab_size=300 "
                         "dataset.eod_mask_loss=true engine.eod_id=98"},
};

/* Words with @ for the test's folder. */
static size_t split_words(const char *line, char buf[600], const char **words)
{
    size_t n = 0, used_bytes = 0;
    while (*line) {
        size_t n_letters = strcspn(line, " ");
        words[n++] = buf + used_bytes;
        for (size_t i = 0; i < n_letters; i++)
            used_bytes +=
                (size_t)snprintf(buf + used_bytes, 600 - used_bytes, "%s%.*s",
                                 line[i] == '@' ? folder : "", line[i] != '@', line + i);
        buf[used_bytes++] = '\0';
        line += n_letters + strspn(line + n_letters, " ");
    }
    return n;
}

static void make_ids(void)
{
    unsigned char ids[1000];
    int64_t lengths[] = {500, 500};
    for (size_t i = 0; i < sizeof ids; i++)
        ids[i] = (unsigned char)('a' + i * i % 23);
    index_bytes index = make_index(lengths, 2, 1, 1);
    write_bytes(path_in(folder, "ids.idx"), index.at, index.n);
    write_bytes(path_in(folder, "ids.bin"), ids, sizeof ids);
}

static void every_used_field_changes_something(void **state)
{
    bool is_tried[RC_FIELD_COUNT] = {false};
    (void)state;
    make_ids();
    for (size_t i = 0; i < sizeof used / sizeof *used; i++) {
        char beside[600], set[600];
        const char *words[MOST_WORDS];
        char *before, *after;
        size_t n = split_words(used[i].beside, beside, words);
        rc_error err = {0};
        before = run_well(words, n);
        n += split_words(used[i].set, set, words + n);
        rc_code code = run(words, n, true, &after, &err);
        if (strcmp(before, after) == 0)
            fail_msg("%s changes nothing", used[i].set);
        if (code != RC_OK && strlen(err.msg) < 10)
            fail_msg("%s: \"%s\"", used[i].set, err.msg);
        for (int k = 0; k < RC_FIELD_COUNT; k++) {
            const rc_field_facts *facts = rc_field_find((rc_field)k);
            size_t n_key = strcspn(used[i].set, "=");
            const char *key = used[i].set[0] == '-' ? facts->flag : facts->key;
            if (strlen(key) == n_key && strncmp(used[i].set, key, n_key) == 0)
                is_tried[k] = true;
        }
        free(before);
        free(after);
    }
    for (int k = 0; k < RC_FIELD_COUNT; k++)
        if (rule_of_field((rc_field)k).kind == RC_FATE_USED && !is_tried[k])
            fail_msg("%s is said to be used, and not tried", rc_field_key((rc_field)k));
}

/* --- values that nobody means */

static const char *const odd_values[] = {"0",
                                         "-1",
                                         "1",
                                         "9223372036854775807",
                                         "-9223372036854775808",
                                         "99999999999999999999",
                                         "1.5",
                                         "nan",
                                         ".nan",
                                         "inf",
                                         ".inf",
                                         "1e400",
                                         "null",
                                         "''",
                                         "true",
                                         "word",
                                         "[]",
                                         "{a: 1}"};

/* Words that an error of this field may say: its own name, or that of what it must agree with. */
static bool is_named(const char *msg, const char *key)
{
    static const char *const partners[] = {"hidden_size",      "num_attention_heads",
                                           "micro_batch_size", "seq_length",
                                           "data_path",        "lr_decay_iters",
                                           "train_iters",      "vocab_size",
                                           "checkpoint.save",  "adam"};
    const char *name = strrchr(key, '.');
    if (strstr(msg, name ? name + 1 : key))
        return true;
    for (size_t i = 0; i < sizeof partners / sizeof *partners; i++)
        if (strstr(msg, partners[i]))
            return true;
    return false;
}

/* What is wrong with how the run took the word; NULL when nothing is. */
static const char *find_fault(const char *key, const char *value, rc_code code,
                              const rc_error *err, const char *out)
{
    if (code == RC_OK)
        return strstr(out, "nan") || strstr(out, "inf\n") ? "trains to no number" : NULL;
    if (code == RC_E_BUG || strlen(err->msg) < 20)
        return "is no error that says something";
    if (err->where.file && strcmp(err->where.file, value) == 0)
        return NULL; /* a path: the file is what is wrong */
    const char *msg = err->msg;
    if (!is_named(msg, key))
        return "is not named";
    bool is_null_shown = strstr(msg, "nan") || strstr(msg, "-9223372036854775808");
    if (is_null_shown && !strstr(value, "nan") && value[0] != '-')
        return "is a null that is shown as a number";
    return NULL;
}

static int try_odd(const char *key, const char *value)
{
    char word[200], *out;
    const char *words[] = {word};
    rc_error err = {0};
    snprintf(word, sizeof word, "%s=%s", key, value);
    rc_code code = run(words, 1, strlen(value) < 5, &out, &err);
    const char *fault = find_fault(key, value, code, &err, out);
    if (fault)
        print_error("%s %s: code %d, \"%s\"\n", word, fault, (int)code, err.msg);
    free(out);
    return fault != NULL;
}

/* Every used field with every odd value is an error that names it, or trains to finite numbers. */
static void odd_values_are_errors_by_name_or_right(void **state)
{
    int n_faults = 0;
    (void)state;
    for (int i = 0; i < RC_FIELD_COUNT; i++) {
        const char *key = rc_field_find((rc_field)i)->key;
        bool is_path = strncmp(key, "checkpoint.", 11) == 0 &&
                       strcmp(key, "checkpoint.save_interval") != 0;
        if (!*key || is_path || rule_of_field((rc_field)i).kind != RC_FATE_USED)
            continue;
        for (size_t k = 0; k < sizeof odd_values / sizeof *odd_values; k++)
            n_faults += try_odd(key, odd_values[k]);
    }
    assert_int_equal(n_faults, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_harmless_field_moves_no_bit),
        cmocka_unit_test(every_harmless_key_is_passed_over),
        cmocka_unit_test(every_harmless_argument_is_passed_over),
        cmocka_unit_test(odd_values_are_errors_by_name_or_right),
        cmocka_unit_test(every_used_field_changes_something),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
