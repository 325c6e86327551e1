/* test_fates.c — every setting has a row in fates.def or graph_lacks.def, and what training refuses of
 * either is refused by name where it stands. */
#include "fates_cases.h"

/* --- the tables themselves */

static void the_tables_are_sound(void **state)
{
    size_t n;
    const rule *rules = list_rules(&n);
    (void)state;
    for (size_t i = 0; i < n; i++) {
        const rc_ask *row = rules[i].ask;
        if (!*row->key || !*row->words)
            fail_msg("row %zu (%s) has no key or no words", i, row->key);
        if (row->neutral[0] && rules[i].kind != RC_FATE_REFUSED && !rules[i].is_lack)
            fail_msg("%s: only what is refused has neutral values", row->key);
        for (const char *const *word = row->neutral; *word; word++)
            if (**word == '=' && rc_field_find_name(*word + 1) == RC_FIELD_COUNT)
                fail_msg("%s: %s is no field", row->key, *word);
        for (size_t k = 0; k < i; k++)
            if (strcmp(row->key, rules[k].ask->key) == 0)
                fail_msg("%s stands twice", row->key);
    }
}

static void every_field_has_a_row(void **state)
{
    (void)state;
    for (int i = 0; i < RC_FIELD_COUNT; i++)
        if (!rule_of_field((rc_field)i).ask)
            fail_msg("no row for %s", rc_field_key((rc_field)i));
}

static void every_argument_has_a_row(void **state)
{
    size_t n_rules = 0;
    (void)state;
    for (size_t i = 0; i < rc_flag_count(); i++) {
        rc_arena *mem = rc_arena_open();
        const rc_flag *flag = rc_flag_at(i);
        if (is_no_field(flag, mem)) {
            if (!rule_of_argument(flag->name).ask)
                fail_msg("no row for --%s", flag->name);
            n_rules++;
        }
        rc_arena_close(mem);
    }
    assert_true(n_rules > 500);
}

/* A family of which there is nothing is misspelt. Bridge's own keys cannot be looked up here. */
static void every_family_has_a_member(void **state)
{
    size_t n;
    const rule *rules = list_rules(&n);
    (void)state;
    for (size_t i = 0; i < n; i++) {
        const rc_ask *row = rules[i].ask;
        bool is_found = !is_family(row) || strstr(row->key, ".*");
        for (size_t k = 0; k < rc_flag_count() && !is_found; k++)
            is_found = rule_of_argument(rc_flag_at(k)->name).ask == row;
        for (int k = 0; k < RC_FIELD_COUNT && !is_found; k++)
            is_found = rule_of_field((rc_field)k).ask == row;
        if (!is_found)
            fail_msg("nothing begins as %s", row->key);
    }
}

/* --- refused */

/* Fails where it stands, by name; `is_value` false: it passes as far as this setting goes. */
static void need_refused(const char *const *words, size_t n, const char *name, bool is_refused)
{
    rc_error err = {0};
    char *out;
    rc_code code = run(words, n, false, &out, &err);
    size_t n_name =
        strncmp(name, "peft.", 5) == 0 ? 4 : strlen(name); /* all of it is refused */
    if (is_refused && (code != RC_E_UNSUPPORTED || strncmp(err.msg, name, n_name) != 0 ||
                       !strstr(err.msg, "unsupported by the engine") || err.where.line < 1))
        fail_msg("%s %s: code %d, line %d, \"%s\"", words[0], n > 1 ? words[1] : "", (int)code,
                 err.where.line, err.msg);
    if (!is_refused && code != RC_OK && strncmp(err.msg, name, strlen(name)) == 0)
        fail_msg("%s %s: \"%s\"", words[0], n > 1 ? words[1] : "", err.msg);
    free(out);
}

/* `word`: of `neutral`. A value that is written so, and what else must be said for it. */
static const char *neutral_value(const char *word, char buf[100], const char **more)
{
    *more = NULL;
    snprintf(buf, 100, "%s", word);
    if (word[0] == '*')
        snprintf(buf, 100, "some.module%s", word + 1);
    if (strcmp(word, "inf") == 0)
        snprintf(buf, 100, ".inf");
    if (word[0] == '=') {
        rc_field field = rc_field_find_name(buf + 1);
        static char other[100];
        bool is_int = rc_field_find(field)->type == RC_FIELD_TYPE_INT;
        snprintf(other, sizeof other, "%s=%s", rc_field_key(field), is_int ? "4" : "0.25");
        snprintf(buf, 100, "%s", is_int ? "4" : "0.25");
        *more = other;
    }
    return buf;
}

static void every_refused_key_is_refused_by_name_and_its_neutral_values_pass(void **state)
{
    size_t n, n_tried = 0;
    const rule *rules = list_rules(&n);
    (void)state;
    for (size_t i = 0; i < n; i++) {
        char word[300], value[100];
        const char *words[3] = {word}, *more;
        const rc_ask *row = rules[i].ask;
        const char *key = row->key;
        bool is_key = has_section(row) || rc_field_find_name(key) != RC_FIELD_COUNT;
        if (rules[i].kind != RC_FATE_REFUSED || !is_key || is_family(row))
            continue;
        snprintf(word, sizeof word, "%s=%s", key, other_value(row));
        need_refused(words, 1, key, true);
        for (const char *const *at = row->neutral; *at; at++) {
            snprintf(word, sizeof word, "%s=%s", key, neutral_value(*at, value, &more));
            words[1] = more;
            need_refused(words, more ? 2 : 1, key, false);
        }
        n_tried++;
    }
    assert_true(n_tried > 120);
}

static void every_refused_argument_is_refused_by_name(void **state)
{
    size_t n_tried = 0;
    (void)state;
    for (size_t i = 0; i < rc_flag_count(); i++) {
        char buf[100];
        const char *words[2];
        rc_arena *mem = rc_arena_open();
        const rc_flag *flag = rc_flag_at(i);
        const rule row = is_no_field(flag, mem) ? rule_of_argument(flag->name) : (rule){0};
        if (row.ask && row.kind == RC_FATE_REFUSED) {
            bool is_on = has_neutral(row.ask, "true") && flag->takes == RC_FLAG_NONE;
            bool is_number = flag->takes == RC_FLAG_INT || flag->takes == RC_FLAG_REAL;
            size_t n = words_of(flag, is_number ? "7" : NULL, buf, words);
            const char *only = strrchr(flag->choices, ' '); /* the first may be neutral */
            if (n == 2 && only)
                words[1] = only + 1;
            need_refused(words, n, buf, !is_on);
            n_tried++;
        }
        rc_arena_close(mem);
    }
    assert_true(n_tried > 60);
}

/* --- what is no row */

static void a_plain_config_is_not_refused(void **state)
{
    (void)state;
    rc_arena *mem = rc_arena_open();
    const char *const words[] = {"model.bf16=true"};
    rc_config *cfg;
    assert_ok(read_config(words, 1, mem, &cfg, NULL));
    assert_ok(rc_train_refuse_model(cfg, NULL)); /* its memory can be estimated */
    assert_int_equal(rc_train_refuse_run(cfg, NULL), RC_E_UNSUPPORTED);
    rc_arena_close(mem);
}

static void a_key_that_nobody_knows_is_refused(void **state)
{
    static const char *const keys[] = {
        "model.num_layer=3",
        "train.nonsense=1",
        "profiling.nonsense=1",
        "ft.nonsense=1",
        "nonsense=1",
        "optimizer.adam_beta3=1",
        "dataset.nonsense={a:1}",
        "peft.nonsense=1",
        "mixed_precision.nonsense=1",
        "comm_overlap.nonsense=1",
        "tensor_inspect.x=1",
        "inprocess_restart.x=1",
        "nvrx_straggler.nonsense=1",
        "straggler.nonsense=1",
        "tokenizer.nonsense=1",
        "validation.nonsense=1",
        "rng.nonsense=1",
        "scheduler.nonsense=1",
        "checkpoint.nonsense=1",
        "logger.log_intervall=1",
        "dist.nonsense=1",
        "ddp.nonsense=1",
        "optimizer.mup_x=1",
        "train.moe_x=1",
        "rerun_state_machine.none=1",
        "--log-througput",
    };
    (void)state;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        rc_error err = {0};
        char *out, name[60];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(keys[i], "="), keys[i]);
        rc_code code = run(&keys[i], 1, false, &out, &err);
        if (code != RC_E_INPUT || !strstr(err.msg, name))
            fail_msg("%s: code %d, \"%s\"", keys[i], (int)code, err.msg);
        free(out);
    }
}

static void a_vocabulary_that_a_tokenizer_knows_must_be_given(void **state)
{
    static const struct {
        const char *words[4];
        size_t n;
        bool is_refused;
    } cases[] = {
        {{"tokenizer.tokenizer_type=HuggingFaceTokenizer"}, 1, true},
        {{"tokenizer.tokenizer_model=gpt2"}, 1, true},
        {{"tokenizer.tokenizer_model=null"}, 1, false},
        {{"tokenizer.tokenizer_model=gpt2", "model.vocab_size=300"}, 2, false},
        {{"tokenizer.tokenizer_model=gpt2", "tokenizer.vocab_size=300"}, 2, false},
        {{"--vocab-file", "vocab.json"}, 2, true},
        {{"--vocab-file", "vocab.json", "--vocab-size", "300"}, 4, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rc_error err = {0};
        char *out;
        rc_code code = run(cases[i].words, cases[i].n, false, &out, &err);
        if (code != (cases[i].is_refused ? RC_E_INPUT : RC_OK))
            fail_msg("case %zu: code %d, \"%s\"", i, (int)code, err.msg);
        free(out);
    }
}

/* What Bridge writes beside a checkpoint: sections that are null or empty, classes and all. */
static void a_saved_config_of_bridge_trains(void **state)
{
    static const char text[] =
        "_target_: megatron.bridge.training.config.ConfigContainer\n"
        "profiling: null\nft: {}\npeft: null\ncomm_overlap: null\nstraggler: null\n"
        "nvrx_straggler: {enabled: false, logger_name: a}\ntensor_inspect: null\n"
        "train: {_target_: megatron.bridge.training.config.TrainingConfig, manual_gc: true,\n"
        "  exit_signal: {_target_: signal.Signals, _call_: true, _args_: [15]},\n"
        "  iterations_to_skip: []}\n"
        "validation: {skip_train: false}\n"
        "model: {_target_: megatron.bridge.models.gpt_provider.GPTModelProvider,\n"
        "  init_method: {_target_: functools.partial, _partial_: true, _args_: [0.0, 0.02]},\n"
        "  params_dtype: {_target_: torch.float32, _call_: false}, softmax_type: vanilla,\n"
        "  transformer_layer_spec: {_target_: a.b.default_layer_spec, _call_: false},\n"
        "  glu_linear_offset: 0.0, tp_comm_overlap_cfg: null, should_pad_vocab: false}\n"
        "optimizer: {_target_: megatron.core.optimizer.OptimizerConfig,\n"
        "  grad_norm_skip_threshold: .inf, decoupled_weight_decay: true, timers: null}\n"
        "scheduler: {start_weight_decay: 0.1, end_weight_decay: 0.1,\n"
        "  weight_decay_incr_style: constant, lr_warmup_samples: 0}\n"
        "dataset: {_target_: megatron.bridge.training.config.GPTDatasetConfig,\n"
        "  dataloader_type: single, blend: null}\n"
        "checkpoint: {most_recent_k: -1, load_optim: true, ckpt_format: torch_dist}\n"
        "optimizer_config_override_provider: {_target_: a.OptimizerConfigOverrideProvider}\n"
        "env_vars: {ANY: 1}\n";
    const char *words[] = {path_in(folder, "saved.yaml")};
    rc_error err = {0};
    char *out;
    (void)state;
    write_bytes(words[0], text, sizeof text - 1);
    if (run(words, 1, true, &out, &err) != RC_OK)
        fail_msg("%d: %s", err.where.line, err.msg);
    free(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_tables_are_sound),
        cmocka_unit_test(every_field_has_a_row),
        cmocka_unit_test(every_argument_has_a_row),
        cmocka_unit_test(every_family_has_a_member),
        cmocka_unit_test(every_refused_key_is_refused_by_name_and_its_neutral_values_pass),
        cmocka_unit_test(every_refused_argument_is_refused_by_name),
        cmocka_unit_test(a_plain_config_is_not_refused),
        cmocka_unit_test(a_saved_config_of_bridge_trains),
        cmocka_unit_test(a_key_that_nobody_knows_is_refused),
        cmocka_unit_test(a_vocabulary_that_a_tokenizer_knows_must_be_given),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
