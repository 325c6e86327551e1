/* layout_cases.h — a layout from a line of words: overrides, arguments of Megatron-LM, --model NAME. */
#ifndef RC_TESTS_LAYOUT_CASES_H
#define RC_TESTS_LAYOUT_CASES_H

#include "check.h"

#include <recompute/layout.h>

#include <string.h>

/* Each is one word and a space. */
#define LAYERS(n) "model.num_layers=" #n " "
#define STAGES(n) "model.pipeline_model_parallel_size=" #n " "
#define VIRTUAL(n) "model.virtual_pipeline_model_parallel_size=" #n " "
#define FIRST(n) "model.num_layers_in_first_pipeline_stage=" #n " "
#define LAST(n) "model.num_layers_in_last_pipeline_stage=" #n " "
#define EMBEDDING_COUNTS "model.account_for_embedding_in_pipeline_split=true "
#define LOSS_COUNTS "model.account_for_loss_in_pipeline_split=true "
#define WRITTEN(text) "model.pipeline_model_parallel_layout=\"" text "\" "
#define LISTED(lists) "model.pipeline_model_parallel_layout=" lists " "
#define DEPTHS(n) "model.mtp_num_layers=" #n " "
#define EXPERTS(n) "model.num_moe_experts=" #n " "
#define TENSOR(n) "model.tensor_model_parallel_size=" #n " "
#define EXPERT_PARALLEL(n) "model.expert_model_parallel_size=" #n " "
#define MICRO(n) "train.micro_batch_size=" #n " "
#define GLOBAL(n) "train.global_batch_size=" #n " "
#define WORLD(n) "engine.world_size=" #n " "
#define PATTERN(text) "model.hybrid_layer_pattern=" text " "

static inline rc_code make_config(const char *line, rc_arena *mem, rc_config **cfg,
                                  rc_error *err)
{
    const char *words[32];
    rc_inputs inputs;
    size_t n = 0;
    for (const char *at = line + strspn(line, " "); *at; at += strspn(at, " ")) {
        const size_t n_bytes = strcspn(at, " ");
        assert_true(n < sizeof words / sizeof *words);
        RC_TRY(rc_arena_copy(mem, at, n_bytes, &words[n++], err));
        at += n_bytes;
    }
    RC_TRY(rc_inputs_read_settings(words, n, mem, &inputs, err));
    return rc_config_make(inputs.at, inputs.n, mem, cfg, err);
}

static inline rc_code try_layout(const char *line, rc_arena *mem, rc_layout **out,
                                 rc_error *err)
{
    rc_config *cfg;
    RC_TRY(make_config(line, mem, &cfg, err));
    return rc_layout_make(cfg, 0, mem, out, err);
}

static inline rc_layout *need_layout(const char *line, rc_arena *mem)
{
    rc_error err = {0};
    rc_layout *layout = NULL;
    if (try_layout(line, mem, &layout, &err) != RC_OK)
        fail_msg("%s: %s", line, err.msg);
    return layout;
}

static inline void need_text(const char *is, const char *should_be, const char *what)
{
    if ((is == NULL) != (should_be == NULL) || (is && strcmp(is, should_be) != 0))
        fail_msg("%s: %s, not %s", what, is ? is : "none", should_be ? should_be : "none");
}

#endif
