/* test_layout_refused.c — what no layout is made of, and the word of the line that is blamed. */
#include "layout_cases.h"

#include <recompute/read.h>

#define CLI "--num-layers 8 --pipeline-model-parallel-size 2 "
#define GROUP(n) "model.microbatch_group_size_per_vp_stage=" #n " "
#define MOE(freq) "model.moe_layer_freq=" freq " "

/* `at` counts the words from 1; 0: it stands nowhere. */
static const struct refusal {
    const char *line;
    int at;
    rc_code code;
    const char *said;
} refusals[] = {
    {LAYERS(9) STAGES(2), 1, RC_E_INPUT, "9 is no multiple of pipeline_model_parallel_size, 2"},
    {LAYERS(8) STAGES(0), 2, RC_E_INPUT, "must be at least 1"},
    {LAYERS(0), 1, RC_E_INPUT, "the model has 0 layers"},
    {LAYERS(70000), 1, RC_E_RANGE, "65536"},
    {STAGES(2), 0, RC_E_INPUT, "num_layers is null"},
    {LAYERS(8) STAGES(2) VIRTUAL(3), 3, RC_E_INPUT, "do not divide by 3 chunks"},
    {LAYERS(8) VIRTUAL(2), 2, RC_E_INPUT, "there is one"},
    {LAYERS(8) VIRTUAL(1), 2, RC_E_INPUT, "there is one"},
    {LAYERS(0) EMBEDDING_COUNTS LOSS_COUNTS, 1, RC_E_INPUT, "has 0 layers"},
    {LAYERS(9) STAGES(4) FIRST(3) LAST(3), 4, RC_E_INPUT, "3 is no multiple of the stages"},
    {LAYERS(8) STAGES(2) FIRST(4) LAST(3), 4, RC_E_INPUT, "leaves 1 layers for 0 stages"},
    {LAYERS(8) STAGES(4) FIRST(8), 3, RC_E_INPUT, "leaves 0 layers for 3 stages"},
    {LAYERS(8) STAGES(4) FIRST(9), 3, RC_E_INPUT, "leaves -1 layers"},
    {LAYERS(8) FIRST(4) LAST(4), 3, RC_E_INPUT, "for -1 stages"},
    {LAYERS(8) STAGES(4) FIRST(0), 3, RC_E_INPUT, "must be at least 1"},
    {LAYERS(8) STAGES(4) FIRST(2) LOSS_COUNTS, 4, RC_E_INPUT, "not set together"},
    {LAYERS(8) STAGES(4) WRITTEN("Et|t|t|tttttL") LAST(2), 4, RC_E_INPUT, "not set together"},
    {LAYERS(8) STAGES(4) WRITTEN("Et|t|t|tttttL") LOSS_COUNTS, 4, RC_E_INPUT,
     "not set together"},
    {LAYERS(1) STAGES(1) WRITTEN("Et|L"), 3, RC_E_INPUT, "there is one"},
    {LAYERS(3) STAGES(2) WRITTEN("Et|t|tL"), 3, RC_E_INPUT, "3 is no multiple"},
    {LAYERS(3) STAGES(2) WRITTEN("Et|tL"), 3, RC_E_INPUT, "has 2 layers; the model has 3"},
    {LAYERS(3) STAGES(2) WRITTEN("Et|ttx"), 3, RC_E_INPUT, "stages such as"},
    {LAYERS(3) STAGES(2) LISTED("7"), 3, RC_E_INPUT, "stages such as"},
    {LAYERS(3) STAGES(2) LISTED("[[],[]]"), 3, RC_E_INPUT, "stages such as"},
    {LAYERS(3) STAGES(2) WRITTEN("tE|ttL"), 3, RC_E_INPUT, "begin with one E"},
    {LAYERS(3) STAGES(2) WRITTEN("Et|ttmL"), 3, RC_E_INPUT, "as many m"},
    {LAYERS(3) STAGES(2) DEPTHS(1) WRITTEN("Et|tmtL"), 4, RC_E_INPUT, "behind every t"},
    {LAYERS(3) STAGES(2) DEPTHS(2) WRITTEN("Ettt|L"), 4, RC_E_INPUT, "as many m"},
    {LAYERS(3) STAGES(2) DEPTHS(2) WRITTEN("Ettt||m|mL"), 4, RC_E_INPUT, "on one stage"},
    {LAYERS(3) STAGES(2) DEPTHS(1) WRITTEN("Ettt|m||L"), 4, RC_E_INPUT, "last chunk"},
    {LAYERS(3) STAGES(2) VIRTUAL(2) WRITTEN("Et|ttL"), 3, RC_E_INPUT, "for 1 chunks"},
    {LAYERS(3) STAGES(2) LISTED("[[embedding,encoder],[loss]]"), 3, RC_E_INPUT, "no encoders"},
    {LAYERS(1) STAGES(70000) WRITTEN("Et(|)*69999L"), 3, RC_E_RANGE, "65536"},
    {CLI "--num-layers-per-virtual-pipeline-stage 3", 6, RC_E_INPUT, "4 is no multiple"},
    {CLI "--num-virtual-stages-per-pipeline-rank 3", 6, RC_E_INPUT, "divide by 3 chunks"},
    {CLI "--decoder-first-pipeline-num-layers 2 --num-layers-per-virtual-pipeline-stage 2", 8,
     RC_E_INPUT, "no equal chunks"},
    {LAYERS(4) TENSOR(2) WORLD(3), 3, RC_E_INPUT, "one replica of the model, 2"},
    {LAYERS(4) WORLD(4) "data_parallel_size=3", 3, RC_E_INPUT,
     "a job of 4 ranks has 4 replicas"},
    {LAYERS(4) EXPERTS(8) EXPERT_PARALLEL(4) WORLD(6), 4, RC_E_INPUT, "of the experts, 4"},
    {LAYERS(4) EXPERTS(6) EXPERT_PARALLEL(4), 2, RC_E_INPUT,
     "6 is no multiple of expert_model"},
    {LAYERS(4) EXPERT_PARALLEL(4), 2, RC_E_INPUT, "no experts"},
    {LAYERS(4) MICRO(3) GLOBAL(8), 3, RC_E_INPUT, "8 is no multiple of micro_batch_size"},
    {LAYERS(4) MICRO(3) GLOBAL(2) "train.decrease_batch_size_if_needed=true", 3, RC_E_INPUT,
     "2 is no multiple of micro_batch_size"},
    {LAYERS(4) MICRO(0), 2, RC_E_INPUT, "must be at least 1"},
    {LAYERS(8) STAGES(4) VIRTUAL(2) MICRO(1) GLOBAL(9) GROUP(3), 6, RC_E_INPUT, "from 4 to 9"},
    {LAYERS(8) STAGES(4) VIRTUAL(2) MICRO(1) GLOBAL(9) GROUP(10), 6, RC_E_INPUT, "from 4 to 9"},
    {LAYERS(8) STAGES(4) VIRTUAL(2) MICRO(1) GLOBAL(9), 0, RC_E_INPUT, "leaves 1 of 9"},
    {LAYERS(8) STAGES(2) "model.overlap_moe_expert_parallel_comm=true", 3, RC_E_INPUT,
     "needs interleaved stages"},
    {LAYERS(4) TENSOR(2) "model.tensor_parallel_num_weight_shards=3", 3, RC_E_INPUT,
     "3 is no multiple"},
    {LAYERS(4) TENSOR(9999999999), 2, RC_E_RANGE, "2147483647"},
    {LAYERS(4) EXPERTS(4) MOE("0"), 3, RC_E_INPUT, "at least 1"},
    {LAYERS(4) EXPERTS(4) MOE("[0,1]"), 3, RC_E_INPUT, "has 2 items; the model has 4 layers"},
    {LAYERS(2) EXPERTS(4) MOE("[0,2]"), 3, RC_E_INPUT, "must be 0 or 1"},
    {LAYERS(2) "model.experimental_attention_variant=gdn", 0, RC_E_INPUT,
     "linear_attention_freq is null"},
    {LAYERS(2) "model.experimental_attention_variant=retention", 2, RC_E_UNSUPPORTED,
     "known here are: gated_delta_net, gdn, gdn2, dsa"},
    {PATTERN("M-Q"), 1, RC_E_INPUT, "Q stands for no layer"},
    {PATTERN("M*+"), 1, RC_E_INPUT, "one model has one of them"},
    {PATTERN("M-E"), 1, RC_E_INPUT, "give model.num_moe_experts"},
    {PATTERN("M-/M/MM") DEPTHS(2), 1, RC_E_INPUT, "the same layers"},
    {PATTERN("M-/M|") DEPTHS(1), 1, RC_E_INPUT, "| stands for no layer"},
    {PATTERN("M-/M"), 1, RC_E_INPUT, "set model.mtp_num_layers to 1"},
    {PATTERN("M-") DEPTHS(1), 2, RC_E_INPUT, "has 0"},
    {PATTERN("M-") LAYERS(3), 2, RC_E_INPUT, "has 2"},
    {PATTERN("M-") "model.hybrid_override_pattern=M-", 2, RC_E_INPUT, "not set together"},
    {PATTERN("M|-|M") STAGES(2), 1, RC_E_INPUT, "3 is no multiple"},
    {PATTERN("M|-") STAGES(2) FIRST(1), 3, RC_E_INPUT, "not set together"},
    {PATTERN("M-M-") STAGES(2) VIRTUAL(2), 3, RC_E_INPUT, "where | parts"},
    {PATTERN("M-") WRITTEN("Et|tL"), 2, RC_E_INPUT, "not set together"},
    {PATTERN("M-") LOSS_COUNTS, 1, RC_E_INPUT, "count for nothing"},
    {PATTERN("/M"), 1, RC_E_INPUT, "0 layers"},
    {LAYERS(4) "model.is_hybrid_model=true", 2, RC_E_INPUT, "give the layers as"},
    {PATTERN("M-") "model.hybrid_stack_spec=my.own_stack", 2, RC_E_UNSUPPORTED, "another make"},
    {"--num-layers 4 --standalone-embedding-stage", 3, RC_E_UNSUPPORTED, "a stage E"},
};

static void what_does_not_fit_is_refused_at_its_place(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        const struct refusal *c = &refusals[i];
        rc_error err = {0};
        rc_arena *mem = rc_arena_open();
        rc_layout *layout;
        rc_code code = try_layout(c->line, mem, &layout, &err);
        if (code != c->code || !strstr(err.msg, c->said))
            fail_msg("%s: %d \"%s\"", c->line, (int)code, err.msg);
        if (err.where.line != c->at)
            fail_msg("%s: \"%s\" at word %d, not %d", c->line, err.msg, err.where.line, c->at);
        rc_arena_close(mem);
    }
}

static void what_only_the_job_knows_is_asked_for(void **state)
{
    static const char script[] = "--num-layers 8 --pipeline-model-parallel-size $(stages)\n";
    /*                                                                          ^ */
    rc_error err = {0};
    rc_arena *mem = rc_arena_open();
    rc_doc *doc;
    rc_config *cfg;
    rc_layout *layout;
    (void)state;
    assert_ok(rc_args_read("job.sh", script, sizeof script - 1, mem, &doc, &err));
    rc_input input = {doc, RC_FROM_FLAG};
    assert_ok(rc_config_make(&input, 1, mem, &cfg, &err));
    assert_int_equal(rc_layout_make(cfg, 0, mem, &layout, &err), RC_E_INPUT);
    assert_non_null(strstr(err.msg, "known to the running job alone"));
    assert_int_equal(err.where.col, 47);
    rc_arena_close(mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_does_not_fit_is_refused_at_its_place),
        cmocka_unit_test(what_only_the_job_knows_is_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
