/* test_passes.c — the pipeline makes each noun once, in order, and takes what it is given. */
#include "../laws/law.h"

static const law_model small = {
    "small",
    {"model.num_layers=2", "model.hidden_size=32", "model.num_attention_heads=4",
     "model.seq_length=16", "train.micro_batch_size=1", "model.bf16=false",
     "model.recompute_granularity=selective", "model.recompute_modules=[mlp]"}};

static void every_noun_is_made_once_and_up_to_the_one_asked_for(void **state)
{
    (void)state;
    rc_error err = {0};
    rc_arena *mem = rc_arena_open();
    rc_passes passes = {.cfg = law_config(&small, "fused", mem), .n_threads = 2};
    law_check(rc_passes_make(&passes, RC_NOUN_CONFIG, mem, &err), &err);
    assert_null(passes.graph);
    law_check(rc_passes_make(&passes, RC_NOUN_POLICY, mem, &err), &err);
    const rc_graph *graph = passes.graph;
    const rc_policy *policy = passes.policy;
    assert_non_null(policy);
    assert_null(passes.schedule);
    assert_true(passes.setting->labels == 1u << RC_LABEL_mlp);
    law_check(rc_passes_make(&passes, RC_NOUN_COST, mem, &err), &err);
    assert_ptr_equal(passes.graph, graph);
    assert_ptr_equal(passes.policy, policy);
    assert_ptr_equal(passes.cost->schedule, passes.schedule);
    assert_int_equal(passes.schedule->n_threads, 2);
    rc_arena_close(mem);
}

static void a_graph_and_a_setting_of_the_callers_are_taken(void **state)
{
    (void)state;
    rc_error err = {0};
    rc_arena *mem = rc_arena_open();
    const rc_graph *graph =
        law_passes(law_config(&small, "fused", mem), RC_PROFILE_ENGINE, RC_NOUN_GRAPH, mem)
            .graph;
    rc_setting none;
    assert_true(rc_setting_parse("none", &none));
    rc_passes bare = {.graph = graph, .setting = &none, .n_threads = 1};
    law_check(rc_passes_make(&bare, RC_NOUN_COST, mem, &err), &err);
    assert_ptr_equal(bare.graph, graph);
    assert_int_equal(bare.cost->recompute_flops, 0);
    assert_true(law_setting(graph, "full/uniform/1", 1, RC_NOUN_COST, mem).cost->peak_bytes <
                bare.cost->peak_bytes);
    rc_arena_close(mem);
}

/* What a search knows of a setting need not be found again: the choice is taken, either way. */
static void the_last_layer_is_kept_where_the_caller_says_so(void **state)
{
    (void)state;
    rc_arena *mem = rc_arena_open();
    const rc_graph *graph = law_graph(&small, "fused", mem);
    rc_setting full;
    assert_true(rc_setting_parse("full/uniform/1", &full));
    for (int i = 0; i < 2; i++) {
        rc_error err = {0};
        const bool is_kept = i == 1;
        rc_passes passes = {
            .graph = graph, .setting = &full, .is_last_layer_kept = &is_kept, .n_threads = 1};
        law_check(rc_passes_make(&passes, RC_NOUN_SCHEDULE, mem, &err), &err);
        assert_int_equal(passes.schedule->policy->is_last_layer_kept, is_kept);
    }
    rc_arena_close(mem);
}

/* 257 words, padded as make_vocab_size_divisible_by has it; Megatron's tokenizer is not known. */
static void text_as_bytes_is_the_vocabulary_of_the_engine_alone(void **state)
{
    (void)state;
    rc_error err = {0};
    rc_arena *mem = rc_arena_open();
    const rc_config *cfg = law_config(&small, "fused", mem);
    const rc_graph *graph = law_passes(cfg, RC_PROFILE_ENGINE, RC_NOUN_GRAPH, mem).graph;
    assert_int_equal(graph->dims.W, 257);
    assert_int_equal(graph->dims.V, 384);
    rc_passes other = {.cfg = cfg, .profile = RC_PROFILE_MEGATRON_TE, .n_threads = 1};
    assert_int_equal(rc_passes_make(&other, RC_NOUN_COST, mem, &err), RC_E_INPUT);
    assert_non_null(strstr(err.msg, "vocab_size is not set"));
    assert_null(other.graph);
    rc_arena_close(mem);
}

static void a_wrong_setting_is_told_before_a_graph_is_made(void **state)
{
    (void)state;
    rc_error err = {0};
    rc_arena *mem = rc_arena_open();
    rc_config *cfg = law_config(&small, "fused", mem);
    cfg->recompute_granularity = "partial";
    rc_passes passes = {.cfg = cfg, .n_threads = 1};
    assert_int_equal(rc_passes_make(&passes, RC_NOUN_GRAPH, mem, &err), RC_E_INPUT);
    assert_null(passes.graph);
    rc_arena_close(mem);
}

static void nouns_are_found_by_their_whole_name(void **state)
{
    (void)state;
    rc_noun noun;
    for (int i = 0; i < RC_NOUN_COUNT; i++) {
        const char *name = rc_noun_name((rc_noun)i);
        assert_true(rc_noun_find(name, strlen(name), &noun) && (int)noun == i);
        assert_false(rc_noun_find(name, strlen(name) - 1, &noun));
    }
    assert_true(rc_noun_find("cost,graph", 4, &noun) && noun == RC_NOUN_COST);
    assert_false(rc_noun_find("costs", 5, &noun));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_noun_is_made_once_and_up_to_the_one_asked_for),
        cmocka_unit_test(a_graph_and_a_setting_of_the_callers_are_taken),
        cmocka_unit_test(the_last_layer_is_kept_where_the_caller_says_so),
        cmocka_unit_test(text_as_bytes_is_the_vocabulary_of_the_engine_alone),
        cmocka_unit_test(a_wrong_setting_is_told_before_a_graph_is_made),
        cmocka_unit_test(nouns_are_found_by_their_whole_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
