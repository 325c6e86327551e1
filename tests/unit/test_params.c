/* test_params.c — the bytes of a parameter, by profile, precision and optimizer. */
#include "check.h"

#include <recompute/passes.h>
#include <recompute/read.h>

#include "schedule/outline.h"

#include <string.h>

enum { MOST_WORDS = 12 };

/* Llama 3 8B: 32 layers of four matrices and two norms, embedding, output layer, a last norm. Every size
 * is a multiple of RC_ALIGN, so that no buffer is rounded. */
static const int64_t n_all = 8030261248, n_matrix = INT64_C(32) * 218103808;

static rc_code make(const char *words, rc_profile profile, rc_arena *mem, rc_passes *passes,
                    rc_error *err)
{
    const char *all[MOST_WORDS] = {"--model", "llama3-8b", "model.seq_length=64",
                                   "train.micro_batch_size=1"};
    size_t n = 4;
    char *copy;
    rc_inputs said;
    rc_config *cfg;
    RC_TRY(RC_NEW(mem, &copy, strlen(words) + 1, err));
    strcpy(copy, words);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
        all[n++] = word;
    RC_TRY(rc_inputs_read(all, n, mem, &said, err));
    RC_TRY(rc_config_make(said.at, said.n, mem, &cfg, err));
    *passes = (rc_passes){.cfg = cfg, .profile = profile, .n_threads = 1};
    return rc_passes_make(passes, RC_NOUN_COST, mem, err);
}

/* Megatron's: from its optimizer's sources, named in param_layouts.def and optimizers.def. */
static const struct layout_case {
    const char *words;
    rc_profile profile;
    /* bytes a parameter: of matrices in layers, and of the others */
    int of_matrix, of_other;
} cases[] = {
    /* weight 2, gradient 4, master 4, moments 4 + 4 */
    {"--bf16", RC_PROFILE_MEGATRON_TE, 18, 18},
    {"--bf16", RC_PROFILE_MEGATRON_LOCAL, 18, 18},
    {"model.bf16=true ddp.grad_reduce_in_fp32=true", RC_PROFILE_MEGATRON_TE, 18, 18},
    {"mixed_precision=bf16_mixed", RC_PROFILE_MEGATRON_TE, 18, 18},
    {"mixed_precision=16-mixed", RC_PROFILE_MEGATRON_TE, 16, 16},
    {"--bf16 --grad-reduce-in-bf16", RC_PROFILE_MEGATRON_TE, 16, 16},
    {"model.fp16=true ddp.grad_reduce_in_fp32=false", RC_PROFILE_MEGATRON_TE, 16, 16},
    {"model.bf16=false", RC_PROFILE_MEGATRON_TE, 16, 16},
    {"--bf16 --optimizer sgd", RC_PROFILE_MEGATRON_TE, 14, 14},
    {"--bf16 --optimizer sgd --sgd-momentum 0", RC_PROFILE_MEGATRON_TE, 10, 10},
    {"model.bf16=false optimizer.optimizer=sgd", RC_PROFILE_MEGATRON_TE, 12, 12},
    {"--bf16 --optimizer lion", RC_PROFILE_MEGATRON_TE, 14, 14},
    {"--bf16 --optimizer muon", RC_PROFILE_MEGATRON_TE, 14, 18},
    {"--bf16 --optimizer dist_muon", RC_PROFILE_MEGATRON_TE, 14, 18},
    /* the 2 bytes by which bf16 differs from float32, in place of a master of 4 */
    {"--bf16 --use-precision-aware-optimizer", RC_PROFILE_MEGATRON_TE, 16, 16},
    {"--bf16 optimizer.use_precision_aware_optimizer=true optimizer.store_param_remainders=false",
     RC_PROFILE_MEGATRON_TE, 18, 18},
    {"--bf16 --use-precision-aware-optimizer --main-params-dtype fp16", RC_PROFILE_MEGATRON_TE,
     16, 16},
    {"--bf16 --use-precision-aware-optimizer --main-grads-dtype bf16 --exp-avg-dtype fp8",
     RC_PROFILE_MEGATRON_TE, 2 + 2 + 2 + 1 + 4, 11},
    {"--bf16 --use-precision-aware-optimizer --exp-avg-dtype bf16 --exp-avg-sq-dtype fp16",
     RC_PROFILE_MEGATRON_TE, 2 + 4 + 2 + 2 + 2, 12},
    /* the engine has one optimizer, and reads none of these */
    {"model.bf16=false", RC_PROFILE_ENGINE, 16, 16},
    {"--bf16", RC_PROFILE_ENGINE, 18, 18},
    {"--bf16 --grad-reduce-in-bf16 --optimizer sgd", RC_PROFILE_ENGINE, 18, 18},
};

static void model_state_is_what_the_optimizer_holds(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rc_error err = {0};
        rc_passes passes;
        rc_arena *mem = rc_arena_open();
        if (make(cases[i].words, cases[i].profile, mem, &passes, &err) != RC_OK)
            fail_msg("%s: %s", cases[i].words, err.msg);
        assert_int_equal(passes.graph->n_parameters, n_all);
        int64_t expected =
            cases[i].of_matrix * n_matrix + cases[i].of_other * (n_all - n_matrix);
        if (passes.cost->model_state_bytes != expected)
            fail_msg("%s in %s: %lld bytes, not %lld", cases[i].words,
                     rc_profile_name(cases[i].profile),
                     (long long)passes.cost->model_state_bytes, (long long)expected);
        rc_arena_close(mem);
    }
}

static rc_param find_param(const rc_schedule *schedule, const char *name)
{
    char buf[RC_GRAPH_NAME_BYTES];
    for (int i = 0; i < schedule->n_params; i++)
        if (strcmp(rc_graph_tensor_name(schedule->graph, schedule->params[i].tensor, buf),
                   name) == 0)
            return schedule->params[i];
    fail_msg("no weight %s", name);
    return (rc_param){0};
}

static void a_buffer_has_the_dtype_and_the_category_of_its_role(void **state)
{
    static const rc_dtype dtypes[] = {RC_BF16, RC_F32, RC_F32, RC_F32};
    static const rc_category categories[] = {RC_CATEGORY_WEIGHTS, RC_CATEGORY_GRADIENTS,
                                             RC_CATEGORY_OPTIMIZER, RC_CATEGORY_OPTIMIZER};
    rc_error err = {0};
    rc_passes passes;
    rc_arena *mem = rc_arena_open();
    (void)state;
    assert_ok(make("--bf16 --optimizer muon", RC_PROFILE_MEGATRON_TE, mem, &passes, &err));
    const rc_schedule *schedule = passes.schedule;
    rc_param matrix = find_param(schedule, "decoder.layers.3.mlp.linear_fc1.weight");
    rc_param norm = find_param(schedule, "decoder.layers.3.pre_mlp_layernorm.weight");
    for (int role = 0; role < RC_PARAM_MOMENT2; role++) {
        const rc_buffer *buffer = &schedule->buffers[matrix.buffer[role]];
        assert_int_equal(buffer->dtype, dtypes[role]);
        assert_int_equal(buffer->category, categories[role]);
        assert_int_equal(buffer->bytes, INT64_C(28672) * 4096 * rc_dtype_bytes(dtypes[role]));
    }
    assert_int_equal(matrix.buffer[RC_PARAM_MOMENT2], RC_NO_BUFFER);
    assert_int_not_equal(norm.buffer[RC_PARAM_MOMENT2], RC_NO_BUFFER);
    /* backward adds to a gradient in float32, also where the weight is bf16 */
    int n_checked = 0;
    for (int i = 0; i < schedule->n_instrs; i++)
        for (int k = 0; k < schedule->instrs[i].n_in; k++) {
            const rc_ref *ref = &rc_instr_d_in(schedule, &schedule->instrs[i])[k];
            if (ref->buffer != matrix.buffer[RC_PARAM_GRAD])
                continue;
            assert_int_equal(ref->dtype, RC_F32);
            n_checked++;
        }
    assert_int_equal(n_checked, 1);
    rc_arena_close(mem);
}

/* The planner prices a setting without its schedule; both add up the same buffers. */
static void an_outline_counts_the_same_state(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rc_error err = {0};
        rc_passes passes;
        rc_outliner *outliner;
        rc_outline outline;
        rc_setting setting;
        rc_arena *mem = rc_arena_open();
        assert_ok(make(cases[i].words, cases[i].profile, mem, &passes, &err));
        assert_ok(rc_outliner_open(passes.graph, 1, mem, &outliner, &err));
        assert_ok(rc_setting_make(passes.cfg, &setting, &err));
        assert_ok(rc_outline_make(outliner, &setting, &outline, &err));
        if (outline.bound_bytes != passes.schedule->bound_bytes)
            fail_msg("%s: %lld bytes, scheduled are %lld", cases[i].words,
                     (long long)outline.bound_bytes, (long long)passes.schedule->bound_bytes);
        rc_arena_close(mem);
    }
}

static void an_optimizer_or_dtype_that_is_not_known_is_refused(void **state)
{
    static const struct {
        const char *words, *said;
    } refused[] = {
        {"--bf16 --optimizer soap", "optimizer is soap"},
        {"--bf16 --optimizer adaptive_muon", "optimizer is adaptive_muon"},
        {"optimizer.optimizer=null", "optimizer is null"},
        {"model.bf16=true optimizer.use_precision_aware_optimizer=true "
         "optimizer.exp_avg_dtype=int4",
         "exp_avg_dtype is int4"},
        {"model.fp16=true optimizer.use_precision_aware_optimizer=true "
         "optimizer.main_params_dtype=null",
         "main_params_dtype is null"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        rc_error err = {0};
        rc_passes passes;
        rc_arena *mem = rc_arena_open();
        rc_code code = make(refused[i].words, RC_PROFILE_MEGATRON_TE, mem, &passes, &err);
        if (code != RC_E_UNSUPPORTED || err.where.line < 1 || !strstr(err.msg, refused[i].said))
            fail_msg("%s: code %d, line %d, %s", refused[i].words, (int)code, err.where.line,
                     err.msg);
        rc_arena_close(mem);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(model_state_is_what_the_optimizer_holds),
        cmocka_unit_test(a_buffer_has_the_dtype_and_the_category_of_its_role),
        cmocka_unit_test(an_outline_counts_the_same_state),
        cmocka_unit_test(an_optimizer_or_dtype_that_is_not_known_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
