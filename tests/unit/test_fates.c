/* test_fates.c — every row of engine_lacks.def refuses what it names, and nothing is refused unasked. */
#include "check.h"

#include <recompute/config.h>
#include <recompute/train.h>

#include "read/flags.h"
#include "train/fates.h"

#include <string.h>

static rc_config *read_words(const char *const *words, size_t n, rc_arena *mem)
{
    rc_inputs inputs;
    rc_config *cfg;
    assert_ok(rc_inputs_read(words, n, mem, &inputs, NULL));
    assert_ok(rc_config_make(inputs.at, inputs.n, mem, &cfg, NULL));
    return cfg;
}

static void plain_config_is_not_refused(void **state)
{
    (void)state;
    rc_arena *mem = rc_arena_open();
    const char *const words[] = {"model.num_layers=2", "model.bf16=true"};
    assert_ok(rc_train_refuse_run(read_words(words, 2, mem), NULL));
    rc_arena_close(mem);
}

static void every_field_is_refused_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int harmless;
    } rows[] = {
#define RC_LACKS(field, harmless, why) {#field, harmless},
#define RC_LACKS_ARG(scope, name, why)
#include "defs/engine_lacks.def"
#undef RC_LACKS
#undef RC_LACKS_ARG
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const rc_field_facts *facts = rc_field_find(rc_field_find_name(rows[i].name));
        rc_arena *mem = rc_arena_open();
        rc_error err = {0};
        char said[160], harmless[160];
        bool is_bool = facts->type == RC_FIELD_TYPE_BOOL;
        bool is_number = facts->type == RC_FIELD_TYPE_INT;
        snprintf(said, sizeof said, "%s=%s", facts->key, is_bool ? "true" : "2");
        snprintf(harmless, sizeof harmless, "%s=%s", facts->key,
                 is_bool                 ? "false"
                 : !is_number            ? "null"
                 : rows[i].harmless == 1 ? "1"
                                         : "0");
        const char *const words[] = {harmless, said};
        assert_ok(rc_train_refuse_model(read_words(words, 1, mem), NULL));
        rc_code code = rc_train_refuse_model(read_words(words, 2, mem), &err);
        if (code != RC_E_UNSUPPORTED || strncmp(err.msg, facts->key, strlen(facts->key)) != 0)
            fail_msg("%s: code %d, \"%s\"", said, (int)code, err.msg);
        rc_arena_close(mem);
    }
}

/* Refused by the run, and by the model only where the row says so. */
static void refuse_argument(const char *name, bool is_of_model)
{
    rc_arena *mem = rc_arena_open();
    rc_error err = {0};
    char flag[100];
    const rc_flag *facts = rc_flag_find(name, strlen(name));
    if (!facts)
        fail_msg("Megatron-LM has no --%s", name);
    snprintf(flag, sizeof flag, "--%s", name);
    const char *const words[] = {flag, "1"};
    rc_config *cfg = read_words(words, facts->takes == RC_FLAG_NONE ? 1 : 2, mem);
    rc_code code = rc_train_refuse_run(cfg, &err);
    if (code != RC_E_UNSUPPORTED || strncmp(err.msg, flag, strlen(flag)) != 0)
        fail_msg("%s: code %d, \"%s\"", flag, (int)code, err.msg);
    assert_int_equal(rc_train_refuse_model(cfg, NULL), is_of_model ? RC_E_UNSUPPORTED : RC_OK);
    rc_arena_close(mem);
}

static void every_argument_is_one_of_megatrons_and_refused(void **state)
{
    (void)state;
    enum { MODEL, RUN };
    static const struct {
        int scope;
        const char *name;
    } rows[] = {
#define RC_LACKS(field, harmless, why)
#define RC_LACKS_ARG(scope, name, why) {scope, name},
#include "defs/engine_lacks.def"
#undef RC_LACKS
#undef RC_LACKS_ARG
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *star = strchr(rows[i].name, '*');
        size_t n = star ? (size_t)(star - rows[i].name) : 0, n_found = 0;
        if (!star)
            refuse_argument(rows[i].name, rows[i].scope == MODEL);
        for (size_t k = 0; star && k < rc_flag_count(); k++)
            if (strncmp(rc_flag_at(k)->name, rows[i].name, n) == 0) {
                refuse_argument(rc_flag_at(k)->name, rows[i].scope == MODEL);
                n_found++;
            }
        if (star && n_found == 0)
            fail_msg("no argument begins as %s", rows[i].name);
    }
}

static void logging_is_passed_over(void **state)
{
    (void)state;
    rc_arena *mem = rc_arena_open();
    const char *const words[] = {"--log-throughput", "--tensorboard-dir", "tb"};
    const char *const unknown[] = {"--log-througput"};
    rc_config *cfg = read_words(words, 3, mem);
    assert_int_equal(cfg->n_unknown, 2);
    assert_ok(rc_config_refuse_unknown(cfg, NULL));
    assert_ok(rc_train_refuse_run(cfg, NULL));
    assert_int_equal(rc_config_refuse_unknown(read_words(unknown, 1, mem), NULL), RC_E_INPUT);
    rc_arena_close(mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_config_is_not_refused),
        cmocka_unit_test(every_field_is_refused_by_name),
        cmocka_unit_test(every_argument_is_one_of_megatrons_and_refused),
        cmocka_unit_test(logging_is_passed_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
