/* test_deep.c — the pipeline of thousands of layers runs on a small stack: nothing recurses per layer or per op. */
#include "law.h"

#include <pthread.h>

enum { N_LAYERS = 4096, STACK_BYTES = 128 * 1024 };

/* Readers of configs need a stack of the usual size, so the config is made outside. */
typedef struct work {
    const rc_config *cfg;
    const char *setting;
    rc_code code;
    rc_error err;
    int64_t recompute_flops, fwd_flops;
    int n_recomputed;
} work;

static rc_code price(work *w, rc_arena *mem)
{
    rc_setting setting;
    rc_passes passes = {.cfg = w->cfg, .n_threads = 1, .setting = &setting};
    if (!rc_setting_parse(w->setting, &setting))
        return RC_FAIL(&w->err, RC_E_INPUT, RC_NOWHERE, "%s is no setting", w->setting);
    RC_TRY(rc_passes_make(&passes, RC_NOUN_COST, mem, &w->err));
    w->recompute_flops = passes.cost->recompute_flops;
    w->fwd_flops = passes.cost->fwd_flops;
    for (int i = 0; i < passes.schedule->n_instrs; i++)
        w->n_recomputed += passes.schedule->instrs[i].kind == RC_INSTR_RECOMPUTE;
    return RC_OK;
}

static void *run(void *user)
{
    work *w = user;
    rc_arena *mem = rc_arena_open();
    w->code = mem ? price(w, mem) : RC_E_MEMORY;
    rc_arena_close(mem);
    return NULL;
}

static work run_on_small_stack(const rc_config *cfg, const char *setting)
{
    work w = {.cfg = cfg, .setting = setting};
    pthread_attr_t attr;
    pthread_t thread;
    assert_int_equal(pthread_attr_init(&attr), 0);
    assert_int_equal(pthread_attr_setstacksize(&attr, STACK_BYTES), 0);
    assert_int_equal(pthread_create(&thread, &attr, run, &w), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    pthread_attr_destroy(&attr);
    law_check(w.code, &w.err);
    return w;
}

static const law_model deep = {"deep",
                               {"model.num_layers=4096", "model.hidden_size=8",
                                "model.num_attention_heads=2", "model.seq_length=4",
                                "model.vocab_size=16", "train.micro_batch_size=1",
                                "model.make_vocab_size_divisible_by=1"}};

static void thousands_of_layers_fit_a_small_stack(void **state)
{
    static const struct {
        const char *setting;
        int least_replays;
    } cases[] = {{"selective/core_attn", N_LAYERS - 1}, {"full/uniform/4096", N_LAYERS - 1}};
    rc_arena *mem = rc_arena_open();
    const rc_config *cfg = law_config(&deep, "fused", mem);
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const work w = run_on_small_stack(cfg, cases[i].setting);
        assert_true(w.fwd_flops > 0);
        assert_true(w.n_recomputed >= cases[i].least_replays);
        assert_true(w.recompute_flops > 0);
    }
    rc_arena_close(mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(thousands_of_layers_fit_a_small_stack),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
